/* longhaul schedule: prints the schedule of a configuration as text. longhaul check: checks a schedule. */
#include "base/path.h"
#include "cli/command.h"

#include "base/json_write.h"
#include "cli/common/idle_options.h"
#include "cli/common/output.h"
#include "cli/report/check_core_plan.h"
#include "cli/setup/read_setup.h"
#include "predict/setup/resolved.h"
#include "schedule/activations/classes.h"
#include "schedule/core_plan/core_plan.h"
#include "schedule/ir/ir_text.h"
#include "schedule/schedule_file.h"
#include "schedule/step/build.h"
#include "schedule/verify/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct option schedule_rows[] = {
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "FILE",
     .default_text = "-",
     .help = "the file to which the schedule is written; - is standard output"},
    {.name = "flat",
     .kind = OPTION_FLAG,
     .help = "print every operation and every buffer on a line of its own, without loops, and each "
             "buffer's offset in memory"},
    {.name = "classes",
     .kind = OPTION_FLAG,
     .help = "print, instead of the schedule, which tensors of a layer could be kept on the host "
             "between forward and backward"},
};
const struct option_set schedule_options = {"output", schedule_rows, ARRAY_LEN(schedule_rows)};

static const struct option check_rows[] = {
    {.name = "quiet", .kind = OPTION_FLAG, .help = "print only faults"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON"},
};
const struct option_set check_options = {"output", check_rows, ARRAY_LEN(check_rows)};

static enum status build_schedule(struct ir *ir, struct setup *setup, const struct options *options,
                                  struct diag *diag)
{
    struct resolved resolved;
    struct diag note = {0};
    enum status status = resolved_make(&resolved, setup, &setup->request, &note, diag);
    if (status == STATUS_OK)
        status = step_build(ir, &resolved.choices, diag);
    if (status == STATUS_OK) {
        note_idle_options_of_prediction(options, &setup->request, &resolved.choices, &note);
        command_print_notes(&note);
    }
    resolved_release(&resolved);
    diag_release(&note);
    return status;
}

/* Prints the tensors that the forward of layer 0 makes for unit 0, with their classes, and the
 * bytes of the two classes that outlive the forward. */
static enum status print_tensor_classes(const struct ir *ir, struct diag *diag)
{
    struct text out = {0};
    uint64_t sum[ACTIVATION_CLASS_COUNT] = {0};
    uint32_t rows;
    struct activation_row *row = activations_of_layer(ir, 0, &rows);
    text_printf(&out, "%-16s %-18s %16s %8s\n", "tensor", "class", "bytes", "buffers");
    for (uint32_t i = 0; i < rows; i++) {
        sum[row[i].class] += row[i].bytes;
        text_printf(&out, "%-16s %-18s %16llu %8llu\n", row[i].name_stem,
                    activation_class_names[row[i].class], (unsigned long long)row[i].bytes,
                    (unsigned long long)row[i].buffer_count);
    }
    text_printf(&out, "kept on the device %llu, may wait on the host %llu bytes\n",
                (unsigned long long)sum[ACTIVATION_SHARED_BY_UNITS],
                (unsigned long long)sum[ACTIVATION_FOR_OWN_BACKWARD]);
    enum status status = command_print(&out, diag);
    text_release(&out);
    free(row);
    return status;
}

enum status cmd_schedule(const struct options *options, struct diag *diag)
{
    const char *file = options->argument_count > 0 ? options->positional_arguments[0] : NULL;
    struct setup setup = {0};
    struct ir ir = {0};
    enum status status = file ? setup_refuse_for_schedule_file(options, diag)
                              : setup_load(&setup, options, false, diag);
    if (status == STATUS_OK)
        status = file ? schedule_load(&ir, options->positional_arguments, options->argument_count,
                                      NULL, diag)
                      : build_schedule(&ir, &setup, options, diag);
    if (status == STATUS_OK && is_option_given(options, "classes"))
        status = print_tensor_classes(&ir, diag);
    else if (status == STATUS_OK)
        status = ir_save(&ir, options_text(options, "o"),
                         is_option_given(options, "flat") ? IR_TEXT_FLAT : IR_TEXT_LOOPS, diag);
    ir_release(&ir);
    setup_release(&setup);
    return status;
}

static void print_verify_result(struct text *out, const struct ir *ir,
                                const struct verify_report *report)
{
    uint64_t failures = 0;
    for (size_t i = 0; i < VERIFY_RULE_COUNT; i++) {
        const struct verify_result *result = &report->result[i];
        failures += result->failure_count;
        text_printf(out, "%-18s ", verify_rule_name(i));
        if (result->failure_count > 0)
            text_printf(out, "%llu faults\n", (unsigned long long)result->failure_count);
        else
            text_printf(out, "ok%s%s\n", result->what_was_checked_text[0] == '\0' ? "" : ": ",
                        result->what_was_checked_text);
    }
    if (failures == 0)
        text_printf(out, "right: %u ops, %u buffers, %u ranks\n", ir->op.count, ir->buffer.count,
                    mesh_rank_count(&ir->mesh));
    else
        text_printf(out, "wrong: %llu faults\n", (unsigned long long)failures);
}

static void print_verify_json(struct text *out, const struct ir *ir,
                              const struct verify_report *report)
{
    struct json_out json = {.out = out};
    uint64_t failures = 0;
    command_begin_json(&json, "check");
    json_begin_array(&json, "rules");
    for (size_t i = 0; i < VERIFY_RULE_COUNT; i++) {
        failures += report->result[i].failure_count;
        json_begin_object(&json, NULL);
        json_put_text(&json, "name", verify_rule_name(i));
        json_put_count(&json, "faults", report->result[i].failure_count);
        json_put_text(&json, "checked", report->result[i].what_was_checked_text);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_put_bool(&json, "right", failures == 0);
    json_put_count(&json, "faults", failures);
    json_put_count(&json, "ops", ir->op.count);
    json_put_count(&json, "buffers", ir->buffer.count);
    json_put_count(&json, "ranks", mesh_rank_count(&ir->mesh));
    json_end_object(&json);
    text_putc(out, '\n');
}

/* Returns the limits for the verifier: the usable bytes of a device, if a cluster is named whose devices have a
 * limit; otherwise no limit. */
static struct verify_arena_limits arena_limits_of_cluster(const struct setup *setup)
{
    struct verify_arena_limits limits = {0};
    double bytes = setup->cluster.device.usable_bytes;
    if (setup->cluster.name != NULL && isfinite(bytes))
        limits.bytes[MEMORY_HBM] = (uint64_t)bytes;
    return limits;
}

enum status cmd_check(const struct options *options, struct diag *diag)
{
    bool is_from_file = options->argument_count > 0;
    const char *name = is_from_file ? options->positional_arguments[0] : "schedule";
    struct setup setup = {0};
    struct ir ir = {0};
    struct verify_report report = {0};
    struct text file = {0}, out = {0};
    enum status status = STATUS_OK, verdict = STATUS_OK;
    const bool stages = options->argument_count > 1 ||
                        (is_from_file && path_is_folder(options->positional_arguments[0]));
    if (is_from_file && !stages) /* the file is read only once, since it may be a pipe */
        status = text_read(&file, name, diag);
    if (strcmp(name, "-") == 0)
        name = "standard input";
    const bool core_plan = file.size > 0 && core_plan_is_text_of_plan(file.data, file.size);
    if (status == STATUS_OK && !core_plan && (!is_from_file || is_option_given(options, "cluster")))
        status = setup_load(&setup, options, is_from_file, diag);
    else if (status == STATUS_OK)
        status = setup_refuse_for_schedule_file(options, diag);
    if (status == STATUS_OK && core_plan)
        verdict = check_core_plan(name, &file, options, diag);
    else if (status == STATUS_OK)
        status = stages ? schedule_load(&ir, options->positional_arguments, options->argument_count,
                                        NULL, diag)
                 : is_from_file ? schedule_parse(&ir, name, &file, NULL, diag)
                                : build_schedule(&ir, &setup, options, diag);
    if (status == STATUS_OK && !core_plan) {
        struct verify_arena_limits limits = arena_limits_of_cluster(&setup);
        verdict = verify(&ir, &limits, name, &report, diag);
        if (is_option_given(options, "json"))
            print_verify_json(&out, &ir, &report);
        else
            print_verify_result(&out, &ir, &report);
        if (!is_option_given(options, "quiet"))
            status = command_print(&out, diag);
    }
    text_release(&out);
    text_release(&file);
    ir_release(&ir);
    setup_release(&setup);
    return status == STATUS_OK ? verdict : status;
}
