/* longhaul why: what filled a PyTorch process' memory, and the options that would have fitted. */
#include "cli/command.h"

#include "base/json_write.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/setup/read_setup.h"
#include "predict/alternatives.h"
#include "traces/torch_snapshot.h"

#include <stdio.h>
#include <stdlib.h>

static const struct option why_rows[] = {
    {.name = "top",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .default_text = "8",
     .low = 1,
     .high = 100000,
     .help = "how many of the places that allocated memory are listed, and how many of the options "
             "that would save memory"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, in SI units"},
};
const struct option_set why_options = {"snapshot", why_rows, ARRAY_LEN(why_rows)};

/* The part of the answer about the configuration that the options describe. */
struct configuration_answer {
    /* the options describe a configuration, and it was predicted */
    bool is_configuration_predicted;
    uint64_t predicted_allocator_bytes; /* predicted bytes in the allocator, without its cache */
    /* bytes that the process had in use, plus those of the allocation that failed */
    uint64_t used_bytes;
    uint64_t allocator_limit_bytes; /* the most bytes that the allocator could have had */
    /* bytes that the process used beyond the predicted ones; they are added to what each suggestion needs */
    uint64_t unpredicted_bytes;
    double step_s;
    struct suggestion suggested_options[SUGGESTIONS_MAX];
    size_t suggestion_count, tried_count;
};

static enum status load_snapshot(struct torch_snapshot *snapshot, const char *path,
                                 struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = torch_snapshot_parse(snapshot, path, text.data == NULL ? "" : text.data, text.size,
                                      diag);
    text_release(&text);
    return status;
}

/* Predicts the configuration, compares its memory with what the process had, and finds options with which the step
 * would have fitted. */
static enum status find_configuration_answer(struct configuration_answer *a,
                                             const struct torch_snapshot *s,
                                             const struct options *options, struct diag *diag)
{
    struct setup setup = {0};
    struct prediction base = {0};
    const struct prediction_question question = {.setup = &setup};
    enum status status = setup_load(&setup, options, false, diag);
    if (status == STATUS_OK)
        status = prediction_make(&base, &question, diag);
    if (status == STATUS_OK) {
        a->is_configuration_predicted = true;
        a->predicted_allocator_bytes = alternatives_allocator_bytes(&base);
        a->used_bytes = s->active_bytes + s->failed_bytes;
        a->allocator_limit_bytes = s->reserved_bytes + s->device_free_bytes;
        a->unpredicted_bytes = a->used_bytes > a->predicted_allocator_bytes
                                   ? a->used_bytes - a->predicted_allocator_bytes
                                   : 0;
        a->step_s = base.sim.step_s;
        uint64_t most = a->allocator_limit_bytes > a->unpredicted_bytes
                            ? a->allocator_limit_bytes - a->unpredicted_bytes
                            : 0;
        status = alternatives_rank_suggestions(a->suggested_options, &a->suggestion_count,
                                               &a->tried_count, &base, most, diag);
    }
    prediction_release(&base);
    setup_release(&setup);
    return status;
}

static void put_gib(struct text *out, const char *before, uint64_t bytes, const char *after)
{
    text_puts(out, before);
    units_put_gib(out, (double)bytes);
    text_puts(out, after);
}

/* A column has: key, label, label in a page, kind, width in text (negative: left-aligned), description
 * (cli/common/rows.h). */
/* clang-format off */
static const struct column sites[] = {
    {NULL, "allocated at", NULL, COLUMN_PLAIN_TEXT, -60, NULL}, /* cut to 60 bytes */
    {"where", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "The line of code that allocated."},
    {"bytes", "bytes", NULL, COLUMN_BYTES_WITH_UNIT, 10, NULL},
    {NULL, "share", NULL, COLUMN_SHARE, 7, NULL},
    {"blocks", "blocks", NULL, COLUMN_COUNT, 7, NULL},
};

static const struct column suggestions[] = {
    {"options", "would have fitted", NULL, COLUMN_PLAIN_TEXT, -50, "Options of predict, added to those given."},
    {NULL, "step", NULL, COLUMN_PLAIN_TEXT, 12, NULL}, /* all rows have the same unit */
    {"step_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
    {"time_lost", "time lost", NULL, COLUMN_SIGNED_PERCENT, 10, "Share of the step as it was configured."},
    {"bytes", "GiB", NULL, COLUMN_GIB, 10, "Needed inside the allocator."},
    {"fits_probability", "P(fits)", NULL, COLUMN_SHARE, 9, "Probability that it fits, by the interval of memory."},
};
/* clang-format on */

const struct row_table why_tables[WHY_TABLE_COUNT] = {
    [WHY_SITES] = {"why_site", sites, ARRAY_LEN(sites)},
    [WHY_SUGGESTIONS] = {"why_option", suggestions, ARRAY_LEN(suggestions)},
};

static void put_allocation_sites(struct rows *rows, const struct torch_snapshot *s, size_t top)
{
    rows_begin(rows, "allocated_at", NULL, &why_tables[WHY_SITES]);
    for (size_t i = 0; i < s->site_count && i < top; i++) {
        char cut[61];
        snprintf(cut, sizeof cut, "%s", s->site[i].name);
        rows_put_text(rows, cut);
        rows_put_text(rows, s->site[i].name);
        rows_put_number(rows, (double)s->site[i].bytes);
        rows_put_number(rows, (double)s->site[i].bytes /
                                  (double)(s->active_bytes > 0 ? s->active_bytes : 1));
        rows_put_number(rows, (double)s->site[i].block_count);
    }
    rows_end(rows);
}

static void put_suggestions(struct rows *rows, const struct configuration_answer *a, size_t top)
{
    const struct report_time_format time = report_time_format_for(a->step_s);
    rows_begin(rows, "would_have_fitted", NULL, &why_tables[WHY_SUGGESTIONS]);
    for (size_t i = 0; i < a->suggestion_count && i < top; i++) {
        const struct suggestion *r = &a->suggested_options[i];
        struct text step = {0};
        text_printf(&step, "%.*f %-2s", time.decimals, r->step_s / time.seconds_per_unit,
                    time.name);
        rows_put_text(rows, r->options);
        rows_put_text(rows, step.data);
        rows_put_number(rows, r->step_s);
        rows_put_number(rows, r->step_s / a->step_s - 1);
        rows_put_number(rows, (double)(r->allocator_bytes + a->unpredicted_bytes));
        rows_put_number(rows, r->fits_probability);
        text_release(&step);
    }
    rows_end(rows);
}

static void print_snapshot(struct text *out, const struct torch_snapshot *s, size_t top)
{
    if (s->has_failed_allocation) {
        put_gib(out, "out of memory: ", s->failed_bytes, " were asked for, ");
        put_gib(out, "", s->device_free_bytes, " were free on the device, and ");
        put_gib(out, "", s->reserved_bytes - s->active_bytes, " in the process' own cache");
        put_gib(out, " (largest piece ", s->largest_free_bytes, ")\n");
    } else {
        text_puts(out, "no allocation failed while the snapshot's history was recorded\n");
    }
    put_gib(out, "held       ", s->reserved_bytes, " in ");
    text_printf(out, "%zu segment%s of device %lld: ", s->segment_count,
                s->segment_count == 1 ? "" : "s", (long long)s->device);
    put_gib(out, "", s->active_bytes, " in use by ");
    text_printf(out, "%zu block%s (", s->active_block_count, s->active_block_count == 1 ? "" : "s");
    put_gib(out, "", s->active_bytes - s->requested_bytes, " of it rounding), ");
    put_gib(out, "", s->reserved_bytes - s->active_bytes, " cached\n\n");
    struct rows rows = {.out = out};
    put_allocation_sites(&rows, s, top);
}

static void print_configuration_answer(struct text *out, const struct configuration_answer *a,
                                       size_t top)
{
    struct report_time_format time = report_time_format_for(a->step_s);
    put_gib(out, "\nneeded     ", a->used_bytes, " of ");
    put_gib(out, "", a->allocator_limit_bytes, " that the allocator could have; predicted ");
    put_gib(out, "", a->predicted_allocator_bytes,
            a->predicted_allocator_bytes > a->used_bytes
                ? " at the step's peak, which was not reached"
                : "");
    if (a->unpredicted_bytes > 0)
        put_gib(out, ", and ", a->unpredicted_bytes,
                " that the schedule does not know of are added to "
                "every option");
    text_printf(out, "\nstep       %.*f %s as it was configured, had there been memory\n\n",
                time.decimals, a->step_s / time.seconds_per_unit, time.name);
    if (a->suggestion_count == 0) {
        text_printf(out, "none of %zu options, alone or two together, would have fitted\n",
                    a->tried_count);
        return;
    }
    struct rows rows = {.out = out};
    put_suggestions(&rows, a, top);
}

static void print_json(struct text *out, const struct torch_snapshot *s,
                       const struct configuration_answer *a, size_t top)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "why");
    json_put_bool(&json, "out_of_memory", s->has_failed_allocation);
    json_put_count(&json, "device", (uint64_t)s->device);
    json_put_count(&json, "failed_bytes", s->failed_bytes);
    json_put_count(&json, "device_free_bytes", s->device_free_bytes);
    json_put_count(&json, "reserved_bytes", s->reserved_bytes);
    json_put_count(&json, "active_bytes", s->active_bytes);
    json_put_count(&json, "requested_bytes", s->requested_bytes);
    json_put_count(&json, "largest_free_bytes", s->largest_free_bytes);
    json_put_count(&json, "segments", s->segment_count);
    struct rows rows = {.json = &json};
    put_allocation_sites(&rows, s, top);
    if (a->is_configuration_predicted) {
        json_put_count(&json, "predicted_bytes", a->predicted_allocator_bytes);
        json_put_count(&json, "not_predicted_bytes", a->unpredicted_bytes);
        json_put_count(&json, "most_bytes", a->allocator_limit_bytes);
        json_put_number(&json, "step_s", a->step_s);
        json_put_count(&json, "tried", a->tried_count);
        put_suggestions(&rows, a, top);
    }
    json_end_object(&json);
    text_putc(out, '\n');
}

enum status cmd_why(const struct options *options, struct diag *diag)
{
    struct torch_snapshot snapshot = {0};
    struct configuration_answer *answer = heap_zalloc(1, sizeof *answer);
    struct text out = {0};
    size_t top = (size_t)options_whole_number(options, "top");
    bool configured_step = is_option_given(options, "model") ||
                           is_option_given(options, "cluster") || is_option_given(options, "seq");
    enum status status = load_snapshot(&snapshot, options->positional_arguments[0], diag);
    if (status == STATUS_OK && configured_step)
        status = find_configuration_answer(answer, &snapshot, options, diag);
    if (status == STATUS_OK) {
        if (is_option_given(options, "json")) {
            print_json(&out, &snapshot, answer, top);
        } else {
            print_snapshot(&out, &snapshot, top);
            if (answer->is_configuration_predicted)
                print_configuration_answer(&out, answer, top);
            else
                text_puts(&out,
                          "\nwith --model, --cluster, --seq and the options of the run, those "
                          "that would have fitted are ranked\n");
        }
        status = command_print(&out, diag);
    }
    if (status == STATUS_OK && answer->is_configuration_predicted && answer->suggestion_count == 0)
        status = STATUS_NO;
    text_release(&out);
    free(answer);
    torch_snapshot_release(&snapshot);
    return status;
}
