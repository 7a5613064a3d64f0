/* longhaul predict: the time and memory that a training step would take. */
#include "cli/command.h"

#include "cli/common/idle_options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/folder/trace_folder.h"
#include "cli/folder/traces_out.h"
#include "cli/report/record.h"
#include "cli/report/report.h"
#include "cli/setup/documents_options.h"
#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"
#include "predict/alternatives.h"
#include "predict/prediction.h"
#include "schedule/choices/strategies.h"
#include "schedule/verify/verify.h"
#include "sim/uniform/uniform.h"

#include <string.h>

static const struct option rows[] = {
    SETUP_EXACT_OPTION_INITIALIZERS,
    {.name = "late-rank",
     .kind = OPTION_TEXT,
     .value_name = "RANK:PERCENT",
     .help = "simulate every rank, with the kernels of rank RANK slower by PERCENT, such as "
             "1:20%: shows how one slow GPU delays the others"},
    {.name = "batches",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 1,
     .high = 4096,
     .default_text = "1",
     .help = "with --documents: how many steps are packed and predicted; from 2 on, the median, "
             "90 % and worst of their times are printed, and everything else is of the first step"},
    {.name = "kernel-times",
     .kind = OPTION_TEXT,
     .value_name = "FILE",
     .help =
         "of a recorded step: take the times of kernels from a recording of the PyTorch profiler "
         "on one GPU (with record_shapes=True), by operator and shapes; others keep their "
         "predicted ones"},
    {.name = "quick",
     .kind = OPTION_FLAG,
     .help = "leave out the comparison with profile ideal and the search for better options"},
    {.name = "verify",
     .kind = OPTION_FLAG,
     .help = "verify the schedule before it is simulated; a schedule file is always verified"},
    {.name = "tokens",
     .kind = OPTION_TRAINING_TOKENS,
     .value_name = "N",
     .help = "add the days and GPU-hours of a training run over N tokens: 1B, 15T"},
    {.name = "price",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "X",
     .help = "with --tokens: price of one GPU-hour, to print the cost of the run"},
    {.name = "all",
     .kind = OPTION_FLAG,
     .help = "print every detail instead of a summary of one screen: all causes, MFU by every "
             "convention, what was "
             "simulated"},
    {.name = "mfu",
     .kind = OPTION_CHOICE,
     .names = mfu_names,
     .name_count = MFU_CONVENTION_COUNT,
     .default_text = "longhaul",
     .help = "the convention by which the MFU on the screen counts model flops; `longhaul list "
             "conventions` explains each"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, in SI units"},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "DIR",
     .help = "write ops.csv, memory.csv, trace.json and prediction.json into a folder"},
    {.name = "record",
     .kind = OPTION_TEXT,
     .value_name = "FILE",
     .help = "append the prediction to a file as one line of JSON, with version and commit; "
             "`longhaul validate --records` compares it with a measurement that is added to the "
             "line later"},
    {.name = "emit-ir", .kind = OPTION_FLAG, .help = "with -o: also write schedule.ir"},
    {.name = "emit-snapshot",
     .kind = OPTION_FLAG,
     .help =
         "with -o: also write snapshot.pickle, the memory of rank 0 for pytorch.org/memory_viz"},
    {.name = "emit-chakra",
     .kind = OPTION_FLAG,
     .help = "with -o: also write chakra.RANK.et, a Chakra execution trace of every rank"},
};
const struct option_set predict_options = {"prediction", rows, ARRAY_LEN(rows)};

static enum status check_option_conflicts(const struct options *options, struct diag *diag)
{
    if (is_option_given(options, "price") && !is_option_given(options, "tokens"))
        return diag_error(diag, (struct loc){.name = "--price"}, STATUS_BAD_INPUT,
                          "needs --tokens, the length of the training");
    if (is_option_given(options, "batches") && !is_option_given(options, "documents"))
        return diag_error(diag, (struct loc){.name = "--batches"}, STATUS_BAD_INPUT,
                          "needs --documents: without documents all batches are equal");
    if (is_option_given(options, "kernel-times") && options->argument_count == 0)
        return diag_error(diag, (struct loc){.name = "--kernel-times"}, STATUS_BAD_INPUT,
                          "needs the file of a recorded step, whose kernels it gives their times");
    static const char *const emits[] = {"emit-ir", "emit-snapshot", "emit-chakra"};
    for (size_t i = 0; i < ARRAY_LEN(emits); i++)
        if (is_option_given(options, emits[i]) && !is_option_given(options, "o"))
            return diag_error(diag, (struct loc){.name = options_name_with_dashes(emits[i]).text},
                              STATUS_BAD_INPUT, "needs -o, the folder to write into");
    return STATUS_OK;
}

/* If only a part of a step is predicted (--scope), refuses options that make sense only for a whole step. If the tokens
 * of a step are not known, refuses --tokens, which needs them. */
static enum status check_scope_options(const struct options *options, const struct prediction *p,
                                       struct diag *diag)
{
    static const char *const of_steps[] = {"tokens", "record"};
    for (size_t i = 0; i < ARRAY_LEN(of_steps) && p->choices.scope != SCOPE_WHOLE_STEP; i++)
        if (is_option_given(options, of_steps[i]))
            return diag_error(
                diag, (struct loc){.name = options_name_with_dashes(of_steps[i]).text},
                STATUS_BAD_INPUT, "is for the step of the whole model, not of --scope %s",
                scope_names[p->choices.scope]);
    if (is_option_given(options, "tokens") && !(prediction_tokens(p) > 0))
        return diag_error(diag, (struct loc){.name = "--tokens"}, STATUS_BAD_INPUT,
                          "needs the tokens of a step, which '%s' does not say for all ranks",
                          options->positional_arguments[0]);
    return STATUS_OK;
}

/* Returns whether a given option needs the offsets of buffers: it shows them or the arenas, or it checks them. */
static bool needs_memory_offsets(const struct options *options)
{
    static const char *const asking[] = {"all", "json", "o", "record", "verify"};
    for (size_t i = 0; i < ARRAY_LEN(asking); i++)
        if (is_option_given(options, asking[i]))
            return true;
    return false;
}

/* Parses --late-rank: "1:20%" is rank 1, slower by a factor of 1.2. */
static enum status read_late_rank(struct prediction_question *question,
                                  const struct options *options, struct diag *diag)
{
    const char *text = options_text(options, "late-rank");
    const char *colon = text != NULL ? strchr(text, ':') : NULL;
    struct loc at = {.name = "--late-rank"};
    size_t size = colon != NULL ? strlen(colon + 1) : 0;
    uint64_t rank;
    double slowdown_percent;
    if (text == NULL)
        return STATUS_OK;
    if (size < 2 || colon[size] != '%' || !parse_u64(text, (size_t)(colon - text), &rank) ||
        !parse_double(colon + 1, size - 1, &slowdown_percent) ||
        !(slowdown_percent > 0 && slowdown_percent <= 10000))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "'%s' is not a rank and a percentage above 0, such as 1:20%%", text);
    question->slow_rank = rank < UINT32_MAX ? (uint32_t)rank : UINT32_MAX;
    question->slow_factor = 1 + slowdown_percent / 100;
    return STATUS_OK;
}

static enum status check_late_rank(const struct prediction *p, struct diag *diag)
{
    uint32_t ranks = mesh_rank_count(&p->ir.mesh), rank = p->question.slow_rank;
    if (rank < ranks)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "--late-rank"}, STATUS_BAD_INPUT,
                      "rank %u is not among the %u ranks of the schedule", rank, ranks);
}

static enum status verify_schedule(const struct prediction *p, const char *name, struct diag *diag)
{
    return verify(&p->ir, NULL, name, NULL, diag);
}

static enum status print_report(const struct report *report, const struct options *options,
                                struct diag *note, struct diag *diag)
{
    struct text out = {0};
    struct screen screen = screen_make(&out);
    enum status status = STATUS_OK;
    progress_show_running_part_seconds("writing the files");
    if (is_option_given(options, "o"))
        status = traces_write(report, options_text(options, "o"),
                              (struct traces_requested_files){
                                  .writes_ir = is_option_given(options, "emit-ir"),
                                  .writes_snapshot = is_option_given(options, "emit-snapshot"),
                                  .writes_chakra = is_option_given(options, "emit-chakra"),
                              },
                              note, diag);
    if (status == STATUS_OK && is_option_given(options, "record"))
        status = record_append_prediction(options_text(options, "record"), report, diag);
    progress_show_running_part_seconds(NULL);
    if (is_option_given(options, "json"))
        report_print_json(&out, report);
    else
        report_print(&screen, report);
    if (status == STATUS_OK)
        status = command_print(&out, diag);
    text_release(&out);
    if (status == STATUS_OK && report->times_of_model_part == NULL &&
        !report->prediction->verdict.fits)
        return STATUS_NO;
    return status;
}

/* Appends the text of the first warning among the notes, without its line end; nothing if there is
 * none. The report shows this text besides the notes on standard error. */
static void put_first_warning(struct text *out, const struct diag *note)
{
    static const char head[] = "warning: ";
    const char *found = note->warning_count > 0 ? strstr(note->text, head) : NULL;
    if (found != NULL)
        text_append(out, found + sizeof head - 1, strcspn(found, "\n") - (sizeof head - 1));
}

/* Returns whether the command of `plan` that is proposed keeps the option of a choice. The command drops the options of
 * the layout, since `plan` searches for the layout. */
static bool is_choice_kept_by_search(const struct choice_row *row)
{
    return row->subject != CHOICE_LAYOUT;
}

/* Appends to *predict the command that repeats this prediction, and to *plan the command that searches all layouts of
 * the same work, with the same number formats, kernels and profile. *plan stays empty if there is nothing to search: a
 * schedule from a file, ranks that share a GPU, a part of a step. */
static void put_follow_up_commands(struct text *predict, struct text *plan,
                                   const struct options *options)
{
    static const char *const without[] = {
        "o", "json", "all", "mfu", "emit-ir", "emit-snapshot", "emit-chakra", "record", NULL};
    static const char *const drop[] = {"scope", NULL}; /* plan searches for the whole step only */
    text_puts(predict, "longhaul predict");
    options_put_command(predict, options, without);
    if (options->argument_count > 0 || is_option_given(options, "loopback") ||
        (is_option_given(options, "scope") &&
         options_index_of_choice(options, "scope") != SCOPE_WHOLE_STEP))
        return;
    text_puts(plan, "longhaul plan");
    setup_put_given_options(plan, options, &predict_options, is_choice_kept_by_search, drop);
    if (is_option_given(options, "sparsity")) /* its value holds for chunks of this size */
        text_printf(plan, " --chunk %s", options_text(options, "chunk"));
}

enum status cmd_predict(const struct options *options, struct diag *diag)
{
    const char *file = options->argument_count > 0 ? options->positional_arguments[0] : NULL;
    bool exact = is_option_given(options, "exact") || is_option_given(options, "late-rank");
    struct setup setup = {0};
    struct prediction_question question = {
        .setup = &setup,
        .is_exact = exact,
        .builds_whole_list =
            exact || is_option_given(options, "o") || is_option_given(options, "verify"),
        .skips_offsets = !needs_memory_offsets(options),
        .kernel_times_path = options_text(options, "kernel-times"),
    };
    struct prediction prediction = {0};
    struct alternative best = {0};
    struct operator_times part = {0};
    struct batches_of_packed_documents packed = {0};
    struct batch_times batches = {0};
    struct routing_draws draws = {0};
    struct diag note = {0};
    struct report report = {
        .prediction = &prediction,
        .profile = options_text(options, "profile"),
        .training_run_tokens = options_number(options, "tokens"),
        .price_per_gpu_hour = options_number(options, "price"),
        .model = options_text(options, "model"),
        .cluster = options_text(options, "cluster"),
        .costs = options_text(options, "costs"),
        .mfu = (enum mfu_convention)options_index_of_choice(options, "mfu"),
        .shows_all = is_option_given(options, "all"),
    };
    struct text command = {0}, plan = {0};
    put_follow_up_commands(&command, &plan, options);
    report.command = command.data;
    report.plan_command = plan.data;
    enum status status = check_option_conflicts(options, diag);
    if (status == STATUS_OK)
        status = read_late_rank(&question, options, diag);
    if (status == STATUS_OK && is_option_given(options, "o"))
        status = trace_folder_check_can_write(options_text(options, "o"), diag);
    if (status == STATUS_OK)
        status = setup_load(&setup, options, file != NULL, diag);
    if (status == STATUS_OK)
        status = documents_pack_batches(&packed, &setup, options, file != NULL,
                                        (size_t)options_whole_number(options, "batches"), diag);
    report.packed_batch = packed.count > 0 ? packed.packed_batches : NULL;
    setup.uniform_above_ranks = (uint32_t)options_whole_number(options, "even-above");
    progress_show_running_part_seconds(file != NULL ? "reading the schedule"
                                                    : "building the schedule");
    if (status == STATUS_OK)
        status = file != NULL ? prediction_memory_of_file(&prediction, &question,
                                                          options->positional_arguments,
                                                          options->argument_count, diag)
                              : prediction_memory(&prediction, &question, &note, diag);
    if (status == STATUS_OK && file == NULL)
        note_idle_options_of_prediction(options, &setup.request, &prediction.choices, &note);
    if (status == STATUS_OK && setup.cluster.line_with_mesh_board != NULL &&
        prediction.choices.ranks > 1)
        diag_note(
            &note, (struct loc){.name = "--cluster"},
            "takes GPUs of a node of eight, behind its NVSwitch; a board of four whose pairs are "
            "wired directly is --cluster %s",
            setup.cluster.line_with_mesh_board);
    struct text warning = {0};
    put_first_warning(&warning, &note);
    report.filled_in_options_warning = warning.data;
    bool step = prediction.choices.scope == SCOPE_WHOLE_STEP;
    if (status == STATUS_OK)
        status = check_scope_options(options, &prediction, diag);
    if (status == STATUS_OK)
        status = check_late_rank(&prediction, diag);
    progress_show_running_part_seconds("verifying the schedule");
    if (status == STATUS_OK && (file != NULL || is_option_given(options, "verify")))
        status = verify_schedule(&prediction, file != NULL ? file : "schedule", diag);
    progress_show_running_part_seconds("simulating the step");
    if (status == STATUS_OK)
        status = prediction_time(&prediction, diag);
    if (status == STATUS_OK && step)
        status = spreads_find(&prediction.spreads, &prediction, diag);
    if (status == STATUS_OK && packed.count > 1) {
        progress_show_running_part_seconds(NULL);
        status = batch_times_make(&batches, &prediction, packed.packed_batches, packed.count, diag);
        report.batch_times = &batches;
        report.packed_batches = packed.packed_batches;
    }
    if (status == STATUS_OK && step && prediction.choices.routing != NULL) {
        progress_show_running_part_seconds(NULL);
        status = routing_draws_make(&draws, &prediction, diag);
        report.uneven_routing_cost = &draws;
    }
    progress_show_running_part_seconds("comparing with other options");
    if (status == STATUS_OK && !step) {
        part = operator_times_of(&prediction);
        report.times_of_model_part = &part;
        status = operator_times_find_communication(&part, &prediction, diag);
    }
    if (status == STATUS_OK && step && file == NULL && !is_option_given(options, "quick")) {
        status = alternatives_find_best(&best, &prediction, diag);
        report.best_alternative = &best;
    }
    if (status == STATUS_OK)
        status = print_report(&report, options, &note, diag);
    progress_show_running_part_seconds(
        NULL); /* the progress line is still shown if no report was printed */
    if (status == STATUS_OK || status == STATUS_NO)
        command_print_notes(&note);
    diag_release(&note);
    text_release(&command);
    text_release(&plan);
    text_release(&warning);
    prediction_release(&prediction);
    batch_times_release(&batches);
    batches_of_packed_documents_release(&packed);
    setup_release(&setup);
    return status;
}
