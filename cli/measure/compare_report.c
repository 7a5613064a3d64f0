#include "cli/measure/compare_report.h"

#include "base/json_write.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* KINDS_SHOWN: the most kinds of work that one screen shows. LABEL: the width of the labels of the lines above the
 * tables. */
enum { KINDS_SHOWN = 8, LABEL = 11 };

/* Returns the relative error of a prediction; 0 also if both values are 0. */
static double relative_error(double predicted, double measured)
{
    return predicted == measured ? 0 : comparison_signed_relative_error(predicted, measured);
}

static void put_percent(struct text *out, double error)
{
    if (isfinite(error))
        text_printf(out, "%+.1f %%", 100 * error);
    else
        text_puts(out, "-");
}

static void put_error(struct text *out, double predicted, double measured)
{
    put_percent(out, relative_error(predicted, measured));
}

static void print_verdict(struct text *out, const struct compare_report *report)
{
    const struct comparison *c = report->comparison;
    double percent = 100 * report->tolerance;
    bool step = fabs(comparison_signed_relative_error(c->predicted.step_s, c->measured.step_s)) <=
                report->tolerance;
    switch (report->verdict) {
    case VERDICT_WITHIN:
        text_printf(out, "verdict    within %.3g %%: step time and every figure of memory\n",
                    percent);
        break;
    case VERDICT_BEYOND:
        text_printf(out, "verdict    beyond %.3g %%: %s\n", percent, step ? "memory" : "step time");
        break;
    case VERDICT_NONE:
        text_puts(out, "verdict    none: too little was matched\n");
        break;
    }
}

static void print_verdict_step_times_and_files(struct text *out,
                                               const struct compare_report *report)
{
    const struct comparison *c = report->comparison;
    if (report->tolerance > 0)
        print_verdict(out, report);
    text_printf(out, "step       predicted %.3f ms, measured %.3f ms, error ",
                1e3 * c->predicted.step_s, 1e3 * c->measured.step_s);
    put_error(out, c->predicted.step_s, c->measured.step_s);
    if (c->measured_steps > 1)
        text_printf(out, "; median of %zu steps, %.3f to %.3f ms", c->measured_steps,
                    1e3 * c->shortest_step_s, 1e3 * c->longest_step_s);
    text_putc(out, '\n');
    text_printf(out, "predicted  %s%s%s\n", report->predicted_path,
                report->predicted_program ? ", " : "",
                report->predicted_program ? report->predicted_program : "");
    text_printf(out, "measured   %s%s%s\n", report->measured_path,
                report->measured_program ? ", " : "",
                report->measured_program ? report->measured_program : "");
    if (report->predicted_kernels != NULL && report->measured_kernels != NULL &&
        strcmp(report->predicted_kernels, report->measured_kernels) != 0)
        text_printf(
            out,
            "kernels    attention's differ: %s, and %s in what it is compared with; predict "
            "--attention makes them alike\n",
            report->predicted_kernels, report->measured_kernels);
    if (report->work_fused_into_op_before != NULL)
        text_printf(out,
                    "epilogues  of what was measured, an op before it computed %s: its time is in "
                    "that op's, "
                    "and is predicted apart\n",
                    report->work_fused_into_op_before);
    text_printf(out,
                "matched    %.1f %% of the time; without a partner: %zu of %zu predicted rows "
                "(%.3f ms), %zu of %zu measured (%.3f ms)\n",
                100 * c->matched_time_share, c->predicted.unmatched_rows, c->predicted.rows,
                1e3 * c->predicted.unmatched_s, c->measured.unmatched_rows, c->measured.rows,
                1e3 * c->measured.unmatched_s);
    if (c->matched_time_share < COMPARE_MATCHED_SHARE_MIN)
        text_puts(out,
                  "           too little for a verdict: the figures below may pair unlike work\n");
    if (c->unpredicted_rank_count > 0)
        text_printf(out, "ranks      %zu compared; %zu measured ones are not in the prediction\n",
                    c->compared_rank_count, c->unpredicted_rank_count);
    if (c->is_profiler_trace && c->predicted_period.repeat_count > 0 &&
        c->measured_period.repeat_count > 0)
        text_printf(
            out, "layers     predicted %zu of %zu products and attentions, measured %zu of %zu\n",
            c->predicted_period.repeat_count, c->predicted_period.item_count,
            c->measured_period.repeat_count, c->measured_period.item_count);
}

static double memory_error(const struct compare_memory *row)
{
    return relative_error(row->predicted_bytes, row->measured_bytes);
}

/* Appends the arenas that differ, and the peak with the largest error; with report->shows_all, every arena and peak. */
static void print_memory(struct text *out, const struct compare_report *report)
{
    const struct comparison *c = report->comparison;
    for (size_t i = 0; i < c->planned_memory_count; i++) {
        const struct compare_memory *row = &c->planned_memory[i];
        if (!report->shows_all && row->predicted_bytes == row->measured_bytes)
            continue;
        text_printf(out, "arena      %s: ", row->memory);
        if (row->predicted_bytes == row->measured_bytes)
            text_printf(out, "%.0f bytes in both\n", row->predicted_bytes);
        else
            text_printf(out, "predicted %.0f bytes, measured %.0f\n", row->predicted_bytes,
                        row->measured_bytes);
    }
    size_t worst = 0;
    for (size_t i = 1; i < c->peak_memory_count; i++)
        if (fabs(memory_error(&c->peak_memory[i])) > fabs(memory_error(&c->peak_memory[worst])))
            worst = i;
    for (size_t i = 0; i < c->peak_memory_count; i++) {
        const struct compare_memory *row = &c->peak_memory[i];
        if (!report->shows_all && i != worst)
            continue;
        text_printf(out, "peak       rank %u %s: predicted ", row->rank, row->memory);
        units_put_gib(out, row->predicted_bytes);
        text_puts(out, ", measured ");
        units_put_gib(out, row->measured_bytes);
        text_puts(out, ", error ");
        put_error(out, row->predicted_bytes, row->measured_bytes);
        text_putc(out, '\n');
    }
}

/* ---- tables ---- */

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
#define GROUP_COLUMN_LIST(name, kind) \
    {{#name, #name, NULL, kind, -24, NULL}, \
     {"pairs", "pairs", NULL, COLUMN_COUNT, 5, NULL}, \
     {"predicted_s", "predicted ms", NULL, COLUMN_SECONDS, 13, "Sum over all ranks."}, \
     {"measured_s", "measured ms", NULL, COLUMN_SECONDS, 13, "Sum over all ranks."}, \
     {"error", "error", "error %", COLUMN_SIGNED_PERCENT, 10, "predicted / measured - 1."}, \
     {"off_s", "off by ms", NULL, COLUMN_SECONDS, 11, "Sum of absolute differences."}}

enum { GROUP_COLUMNS = 6 };
static const struct column groups[BY_COUNT][GROUP_COLUMNS] = {
    [BY_KIND] = GROUP_COLUMN_LIST(kind, COLUMN_PLAIN_TEXT),
    [BY_STREAM] = GROUP_COLUMN_LIST(stream, COLUMN_PLAIN_TEXT),
    [BY_PHASE] = GROUP_COLUMN_LIST(phase, COLUMN_PLAIN_TEXT),
    [BY_RANK] = GROUP_COLUMN_LIST(rank, COLUMN_COUNT),
};

static const struct column ops[] = {
    {"op", "op", NULL, COLUMN_COUNT, -5, "Of the schedule."},
    {"kind", "most off, times in ms", "kind", COLUMN_PLAIN_TEXT, -22, NULL},
    {"phase", "phase", NULL, COLUMN_PLAIN_TEXT, -9, NULL},
    {"layer", "layer", NULL, COLUMN_INDEX, 5, "-1: of no layer."},
    {"ranks", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"predicted_s", "predicted", "predicted ms", COLUMN_SECONDS, 9, "Sum over ranks."},
    {"measured_s", "measured", "measured ms", COLUMN_SECONDS, 9, "Sum over ranks."},
    {"error", "error", "error %", COLUMN_SIGNED_PERCENT, 8, "predicted / measured - 1."},
    {"share", "share", "share of all errors %", COLUMN_SHARE, 6, "Of the absolute differences of all pairs."},
};

static const struct column cycles[] = {
    {"kind", "cycles of kinds", NULL, COLUMN_PLAIN_TEXT, -24, NULL},
    {"predicted_cycles", "predicted", NULL, COLUMN_COUNT, 15, "Seconds x the SM clock that the prediction assumes, over all ranks."},
    {"measured_cycles", "measured", NULL, COLUMN_COUNT, 15, "Seconds x the mean of the sampled SM clock, over all ranks."},
    {"error", "error", "error %", COLUMN_SIGNED_PERCENT, 10, "predicted / measured - 1."},
};

static const struct column exposed[] = {
    {"stream", "exposed, of a rank", NULL, COLUMN_PLAIN_TEXT, -24, NULL},
    {"predicted_s", "predicted ms", NULL, COLUMN_SECONDS, 13, "Time in which only these streams work."},
    {"predicted_busy_s", "of ms", NULL, COLUMN_SECONDS, 13, "Time in which they work."},
    {NULL, "share", NULL, COLUMN_SHARE, 10, NULL},
    {"measured_s", "measured ms", NULL, COLUMN_SECONDS, 13, "Time in which only these streams work."},
    {"measured_busy_s", "of ms", NULL, COLUMN_SECONDS, 13, "Time in which they work."},
    {NULL, "share", NULL, COLUMN_SHARE, 10, NULL},
};

static const struct column memories[] = {
    {"rank", "rank", NULL, COLUMN_COUNT, 5, NULL},
    {"memory", "memory", NULL, COLUMN_PLAIN_TEXT, -24, NULL},
    {NULL, "what", NULL, COLUMN_PLAIN_TEXT, -12, NULL},
    {"predicted_bytes", "predicted", NULL, COLUMN_BYTES, 13, NULL},
    {"measured_bytes", "measured", NULL, COLUMN_BYTES, 13, NULL},
    {NULL, "error", "error %", COLUMN_SIGNED_PERCENT, 10, NULL},
};
/* clang-format on */

const struct row_table compare_tables[COMPARE_TABLE_COUNT] = {
    [BY_KIND] = {"compare_kind", groups[BY_KIND], GROUP_COLUMNS},
    [BY_STREAM] = {"compare_stream", groups[BY_STREAM], GROUP_COLUMNS},
    [BY_PHASE] = {"compare_phase", groups[BY_PHASE], GROUP_COLUMNS},
    [BY_RANK] = {"compare_rank", groups[BY_RANK], GROUP_COLUMNS},
    [COMPARE_TABLE_OPS] = {"compare_op", ops, ARRAY_LEN(ops)},
    [COMPARE_TABLE_CLOCK_CYCLES] = {"compare_cycles", cycles, ARRAY_LEN(cycles)},
    [COMPARE_TABLE_EXPOSED_TIMES] = {"compare_exposed", exposed, ARRAY_LEN(exposed)},
    [COMPARE_TABLE_MEMORY] = {"compare_memory", memories, ARRAY_LEN(memories)},
};

/* Begins a table. In text it stands after an empty line. */
static void begin_table(struct rows *rows, const char *key, const char *details,
                        const struct row_table *table)
{
    if (rows->out != NULL)
        text_putc(rows->out, '\n');
    rows_begin(rows, key, details, table);
}

static void put_times_and_error(struct rows *rows, double predicted_s, double measured_s)
{
    rows_put_number(rows, predicted_s);
    rows_put_number(rows, measured_s);
    rows_put_number(rows, relative_error(predicted_s, measured_s));
}

size_t compare_report_put_groups(struct rows *rows, const struct comparison *c,
                                 enum compare_grouping by, size_t most)
{
    struct compare_group *group;
    const size_t all = compare_list_groups(c, by, &group);
    struct text key = {0};
    text_printf(&key, "by_%s", compare_grouping_name(by));
    begin_table(rows, key.data, by == BY_KIND ? NULL : compare_grouping_name(by),
                &compare_tables[by]);
    for (size_t i = 0; i < all && i < most; i++) {
        if (by == BY_RANK)
            rows_put_number(rows, group[i].rank);
        else
            rows_put_text(rows, group[i].name);
        rows_put_number(rows, (double)group[i].pair_count);
        put_times_and_error(rows, group[i].predicted_s, group[i].measured_s);
        rows_put_number(rows, group[i].absolute_error_s);
    }
    rows_end(rows);
    text_release(&key);
    free(group);
    return all < most ? 0 : all - most;
}

/* Returns `seconds` as whole cycles of the clock of a kind of work; 0: the clock is not known. */
static double seconds_to_clock_cycles_of_kind(double seconds, const struct trace *trace,
                                              const char *kind)
{
    return round(seconds * 1e6 * comparison_clock_mhz_of_header(trace, kind));
}

void compare_report_put_clock_cycles(struct rows *rows, const struct comparison *c)
{
    struct compare_group *group;
    const size_t all = compare_list_groups(c, BY_KIND, &group);
    bool begun = rows->json != NULL;
    if (begun)
        begin_table(rows, "cycles", "cycles", &compare_tables[COMPARE_TABLE_CLOCK_CYCLES]);
    for (size_t i = 0; i < all; i++) {
        double predicted = seconds_to_clock_cycles_of_kind(group[i].predicted_s, c->predicted.trace,
                                                           group[i].name),
               measured = seconds_to_clock_cycles_of_kind(group[i].measured_s, c->measured.trace,
                                                          group[i].name);
        if (!group[i].is_on_compute_stream || predicted <= 0 || measured <= 0)
            continue;
        if (!begun)
            begin_table(rows, "cycles", "cycles", &compare_tables[COMPARE_TABLE_CLOCK_CYCLES]);
        begun = true;
        rows_put_text(rows, group[i].name);
        rows_put_number(rows, predicted);
        rows_put_number(rows, measured);
        rows_put_number(rows, relative_error(predicted, measured));
    }
    if (begun)
        rows_end(rows);
    free(group);
}

void compare_report_put_ops(struct rows *rows, const struct comparison *c, size_t top)
{
    struct compare_op *op;
    const size_t count = compare_list_ops(c, &op);
    if (rows->out == NULL || (count > 0 && top > 0)) {
        begin_table(rows, "ops", NULL, &compare_tables[COMPARE_TABLE_OPS]);
        for (size_t i = 0; i < count && i < top; i++) {
            rows_put_number(rows, op[i].pair_of_lowest_rank->op);
            rows_put_text(rows, op[i].pair_of_lowest_rank->kind);
            rows_put_text(rows, op[i].pair_of_lowest_rank->phase);
            rows_put_number(rows, op[i].pair_of_lowest_rank->layer);
            rows_put_number(rows, (double)op[i].rank_count);
            put_times_and_error(rows, op[i].predicted_s, op[i].measured_s);
            rows_put_number(rows, op[i].share_of_total_error);
        }
        rows_end(rows);
    }
    free(op);
}

static double part_share_of_time(double part_s, double all_s)
{
    return all_s > 0 ? part_s / all_s : NAN;
}

/* Puts the exposed time of every role of streams that has work, except computation. */
static void put_exposed_times(struct rows *rows, const struct comparison *c)
{
    bool any = rows->out == NULL;
    for (int role = ROLE_COMPUTE + 1; role < ROLE_COUNT; role++)
        any |= c->exposed_time_by_stream_role[role].predicted_busy_s != 0 ||
               c->exposed_time_by_stream_role[role].measured_busy_s != 0;
    if (!any)
        return;
    begin_table(rows, "exposed", NULL, &compare_tables[COMPARE_TABLE_EXPOSED_TIMES]);
    for (int role = ROLE_COMPUTE + 1; role < ROLE_COUNT; role++) {
        const struct compare_exposed *row = &c->exposed_time_by_stream_role[role];
        if (row->predicted_busy_s == 0 && row->measured_busy_s == 0)
            continue;
        rows_put_text(rows, stream_role_name((enum stream_role)role));
        rows_put_number(rows, row->predicted_exposed_s);
        rows_put_number(rows, row->predicted_busy_s);
        rows_put_number(rows, part_share_of_time(row->predicted_exposed_s, row->predicted_busy_s));
        rows_put_number(rows, row->measured_exposed_s);
        rows_put_number(rows, row->measured_busy_s);
        rows_put_number(rows, part_share_of_time(row->measured_exposed_s, row->measured_busy_s));
    }
    rows_end(rows);
}

void compare_report_put_memory(struct rows *rows, const struct comparison *c)
{
    const struct {
        const char *key, *what;
        const struct compare_memory *memory_row;
        size_t count;
    } tables[] = {{"arena", "arena, bytes", c->planned_memory, c->planned_memory_count},
                  {"peak", "peak, bytes", c->peak_memory, c->peak_memory_count}};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        if (rows->json == NULL && tables[t].count == 0)
            continue;
        begin_table(rows, tables[t].key, NULL, &compare_tables[COMPARE_TABLE_MEMORY]);
        for (size_t i = 0; i < tables[t].count; i++) {
            const struct compare_memory *row = &tables[t].memory_row[i];
            rows_put_number(rows, row->rank);
            rows_put_text(rows, row->memory);
            rows_put_text(rows, tables[t].what);
            rows_put_number(rows, row->predicted_bytes);
            rows_put_number(rows, row->measured_bytes);
            rows_put_number(rows, relative_error(row->predicted_bytes, row->measured_bytes));
        }
        rows_end(rows);
    }
}

/* ---- text ---- */

void compare_report_print(struct text *out, const struct compare_report *report)
{
    struct text lines = {0};
    print_verdict_step_times_and_files(&lines, report);
    print_memory(&lines, report);
    screen_wrap_labelled(out, lines.data, LABEL, report->wrap_width);
    text_release(&lines);
    struct rows rows = {.out = out};
    if (report->shown_group_table < 0 && report->shows_all)
        put_exposed_times(&rows, report->comparison);
    for (int by = 0; by < BY_COUNT; by++)
        if (report->shown_group_table < 0 ? report->shows_all : report->shown_group_table == by)
            compare_report_put_groups(&rows, report->comparison, (enum compare_grouping)by,
                                      SIZE_MAX);
    if (report->shown_group_table < 0 && !report->shows_all) {
        size_t left = compare_report_put_groups(&rows, report->comparison, BY_KIND, KINDS_SHOWN);
        if (left > 0)
            text_printf(out, "and %zu more, which --all prints\n", left);
    }
    if (report->shown_group_table < 0 || report->shown_group_table == BY_KIND)
        compare_report_put_clock_cycles(&rows, report->comparison);
    compare_report_put_ops(&rows, report->comparison, report->listed_ops_max);
}

/* ---- JSON ---- */

static void put_compared_trace_json(struct json_out *json, const char *name, const char *path,
                                    const struct compare_side *side)
{
    json_begin_object(json, name);
    json_put_text(json, "path", path);
    json_put_count(json, "rows", side->rows);
    json_put_count(json, "unmatched_rows", side->unmatched_rows);
    json_put_number(json, "busy_s", side->busy_s);
    json_put_number(json, "unmatched_s", side->unmatched_s);
    json_put_number(json, "step_s", side->step_s);
    json_end_object(json);
}

void compare_report_print_json(struct text *out, const struct compare_report *report)
{
    static const char *const verdicts[] = {
        [VERDICT_WITHIN] = "within", [VERDICT_BEYOND] = "beyond", [VERDICT_NONE] = "none"};
    const struct comparison *c = report->comparison;
    struct json_out json = {.out = out};
    command_begin_json(&json, "compare");
    if (report->tolerance > 0) {
        json_put_text(&json, "verdict", verdicts[report->verdict]);
        json_put_number(&json, "tolerance", report->tolerance);
    }
    put_compared_trace_json(&json, "predicted", report->predicted_path, &c->predicted);
    put_compared_trace_json(&json, "measured", report->measured_path, &c->measured);
    json_put_count(&json, "steps", c->measured_steps);
    json_put_bool(&json, "aligned", c->is_profiler_trace);
    json_put_number(&json, "step_error",
                    comparison_signed_relative_error(c->predicted.step_s, c->measured.step_s));
    json_put_number(&json, "match_rate", c->matched_time_share);
    json_put_count(&json, "ranks", c->compared_rank_count);
    json_put_count(&json, "absent_ranks", c->unpredicted_rank_count);
    struct rows rows = {.json = &json};
    compare_report_put_memory(&rows, c);
    put_exposed_times(&rows, c);
    for (int by = 0; by < BY_COUNT; by++)
        if (report->shown_group_table < 0 || report->shown_group_table == by)
            compare_report_put_groups(&rows, c, (enum compare_grouping)by, SIZE_MAX);
    if (report->shown_group_table < 0 || report->shown_group_table == BY_KIND)
        compare_report_put_clock_cycles(&rows, c);
    compare_report_put_ops(&rows, c, report->listed_ops_max);
    json_end_object(&json);
    text_putc(out, '\n');
}
