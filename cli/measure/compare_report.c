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

/* Kinds of work that one screen has room for; columns of the labels of the lines above the tables. */
enum { KINDS_SHOWN = 8, LABEL = 11 };

static void put_percent(struct text *out, double error)
{
    if (isfinite(error))
        text_printf(out, "%+.1f %%", 100 * error);
    else
        text_puts(out, "-");
}

static void put_error(struct text *out, double predicted, double measured)
{
    put_percent(out, predicted == measured ? 0 : compare_error(predicted, measured));
}

/* Appends a right-aligned cell. */
static void put_cell(struct text *out, int width, const struct text *cell)
{
    text_printf(out, "%*s", width, cell->data == NULL ? "" : cell->data);
}

static void put_error_cell(struct text *out, int width, double predicted, double measured)
{
    struct text cell = {0};
    put_error(&cell, predicted, measured);
    put_cell(out, width, &cell);
    text_release(&cell);
}

/* Appends milliseconds of a part and of the whole, and the part's percentage. */
static void put_share(struct text *out, double part_s, double all_s)
{
    text_printf(out, " %13.3f %13.3f ", 1e3 * part_s, 1e3 * all_s);
    if (all_s > 0)
        text_printf(out, "%8.1f %%", 100 * part_s / all_s);
    else
        text_printf(out, "%10s", "-");
}

static void print_verdict(struct text *out, const struct compare_report *report)
{
    const struct comparison *c = report->comparison;
    double percent = 100 * report->tolerance;
    bool step = fabs(compare_error(c->predicted.step_s, c->measured.step_s)) <= report->tolerance;
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

static void print_head(struct text *out, const struct compare_report *report)
{
    const struct comparison *c = report->comparison;
    if (report->tolerance > 0)
        print_verdict(out, report);
    text_printf(out, "step       predicted %.3f ms, measured %.3f ms, error ",
                1e3 * c->predicted.step_s, 1e3 * c->measured.step_s);
    put_error(out, c->predicted.step_s, c->measured.step_s);
    if (c->steps > 1)
        text_printf(out, "; median of %zu steps, %.3f to %.3f ms", c->steps, 1e3 * c->step_low_s,
                    1e3 * c->step_high_s);
    text_putc(out, '\n');
    text_printf(out, "predicted  %s%s%s\n", report->predicted, report->predicted_by ? ", " : "",
                report->predicted_by ? report->predicted_by : "");
    text_printf(out, "measured   %s%s%s\n", report->measured, report->measured_by ? ", " : "",
                report->measured_by ? report->measured_by : "");
    if (report->predicted_kernels != NULL && report->measured_kernels != NULL &&
        strcmp(report->predicted_kernels, report->measured_kernels) != 0)
        text_printf(
            out,
            "kernels    attention's differ: %s, and %s in what it is compared with; predict "
            "--attention makes them alike\n",
            report->predicted_kernels, report->measured_kernels);
    text_printf(out,
                "matched    %.1f %% of the time; without a partner: %zu of %zu predicted rows "
                "(%.3f ms), %zu of %zu measured (%.3f ms)\n",
                100 * c->match_rate, c->predicted.unmatched_rows, c->predicted.rows,
                1e3 * c->predicted.unmatched_s, c->measured.unmatched_rows, c->measured.rows,
                1e3 * c->measured.unmatched_s);
    if (c->match_rate < COMPARE_MATCH_MIN)
        text_puts(out,
                  "           too little for a verdict: the figures below may pair unlike work\n");
    if (c->absent_ranks > 0)
        text_printf(out, "ranks      %zu compared; %zu measured ones are not in the prediction\n",
                    c->compared_ranks, c->absent_ranks);
    if (c->foreign && c->predicted_period.repeats > 0 && c->measured_period.repeats > 0)
        text_printf(
            out, "layers     predicted %zu of %zu products and attentions, measured %zu of %zu\n",
            c->predicted_period.repeats, c->predicted_period.length, c->measured_period.repeats,
            c->measured_period.length);
}

static double memory_error(const struct compare_memory *row)
{
    return row->predicted_bytes == row->measured_bytes
               ? 0
               : compare_error(row->predicted_bytes, row->measured_bytes);
}

/* Prints the arenas that differ and the peak with the largest error, or, with `all`, every arena and peak. */
static void print_memory(struct text *out, const struct compare_report *report)
{
    const struct comparison *c = report->comparison;
    for (size_t i = 0; i < c->arena_count; i++) {
        const struct compare_memory *row = &c->arena[i];
        if (!report->all && row->predicted_bytes == row->measured_bytes)
            continue;
        text_printf(out, "arena      %s: ", row->memory);
        if (row->predicted_bytes == row->measured_bytes)
            text_printf(out, "%.0f bytes in both\n", row->predicted_bytes);
        else
            text_printf(out, "predicted %.0f bytes, measured %.0f\n", row->predicted_bytes,
                        row->measured_bytes);
    }
    size_t worst = 0;
    for (size_t i = 1; i < c->memory_count; i++)
        if (fabs(memory_error(&c->memory[i])) > fabs(memory_error(&c->memory[worst])))
            worst = i;
    for (size_t i = 0; i < c->memory_count; i++) {
        const struct compare_memory *row = &c->memory[i];
        if (!report->all && i != worst)
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

/* Prints the exposed time of each stream role that has work. */
static void print_exposed(struct text *out, const struct comparison *c)
{
    bool head = false;
    for (int role = ROLE_COMPUTE + 1; role < ROLE_COUNT; role++) {
        const struct compare_exposed *row = &c->exposed[role];
        if (row->predicted_busy_s == 0 && row->measured_busy_s == 0)
            continue;
        if (!head)
            text_printf(out, "\n%-24s %13s %13s %10s %13s %13s %10s\n", "exposed, of a rank",
                        "predicted ms", "of ms", "share", "measured ms", "of ms", "share");
        head = true;
        text_printf(out, "%-24s", stream_role_name((enum stream_role)role));
        put_share(out, row->predicted_s, row->predicted_busy_s);
        put_share(out, row->measured_s, row->measured_busy_s);
        text_putc(out, '\n');
    }
}

/* Prints at most `most` rows of a table; those with the largest difference come first. */
static void print_groups(struct text *out, const struct comparison *c, enum compare_by by,
                         size_t most)
{
    struct compare_group *group;
    size_t all = compare_groups(c, by, &group), count = all < most ? all : most;
    text_printf(out, "\n%-24s %5s %13s %13s %10s %11s\n", compare_by_name(by), "pairs",
                "predicted ms", "measured ms", "error", "off by ms");
    for (size_t i = 0; i < count; i++) {
        if (group[i].name != NULL)
            text_printf(out, "%-24s", group[i].name[0] == '\0' ? "(none)" : group[i].name);
        else
            text_printf(out, "%-24u", group[i].rank);
        text_printf(out, " %5zu %13.3f %13.3f ", group[i].pairs, 1e3 * group[i].predicted_s,
                    1e3 * group[i].measured_s);
        put_error_cell(out, 10, group[i].predicted_s, group[i].measured_s);
        text_printf(out, " %11.3f\n", 1e3 * group[i].off_s);
    }
    if (all > count)
        text_printf(out, "and %zu more, which --all prints\n", all - count);
    free(group);
}

static void print_ops(struct text *out, const struct compare_report *report)
{
    struct compare_op *op;
    size_t count = compare_ops(report->comparison, &op);
    if (count > report->top)
        count = report->top;
    if (count > 0)
        text_printf(out, "\n%-5s %-22s %-9s %5s %9s %9s %8s %6s\n", "op", "most off, times in ms",
                    "phase", "layer", "predicted", "measured", "error", "share");
    for (size_t i = 0; i < count; i++) {
        const struct compare_pair *first = op[i].first;
        text_printf(out, "%-5u %-22s %-9s ", first->op, first->kind, first->phase);
        if (first->layer >= 0)
            text_printf(out, "%5d", first->layer);
        else
            text_puts(out, "    -");
        text_printf(out, " %9.3f %9.3f ", 1e3 * op[i].predicted_s, 1e3 * op[i].measured_s);
        put_error_cell(out, 8, op[i].predicted_s, op[i].measured_s);
        text_printf(out, " %4.1f %%\n", 100 * op[i].share);
    }
    free(op);
}

void compare_report_print(struct text *out, const struct compare_report *report)
{
    struct text lines = {0};
    print_head(&lines, report);
    print_memory(&lines, report);
    screen_wrap_labelled(out, lines.data, LABEL, report->width);
    text_release(&lines);
    if (report->by < 0 && report->all)
        print_exposed(out, report->comparison);
    for (int by = 0; by < BY_COUNT; by++)
        if (report->by < 0 ? report->all : report->by == by)
            print_groups(out, report->comparison, (enum compare_by)by, SIZE_MAX);
    if (report->by < 0 && !report->all)
        print_groups(out, report->comparison, BY_KIND, KINDS_SHOWN);
    print_ops(out, report);
}

/* --- JSON: SI units, all digits --- */

static void put_times(struct json_out *json, double predicted_s, double measured_s)
{
    json_put_number(json, "predicted_s", predicted_s);
    json_put_number(json, "measured_s", measured_s);
    json_put_number(json, "error", compare_error(predicted_s, measured_s));
}

static void put_side(struct json_out *json, const char *name, const char *path,
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

static void put_memory(struct json_out *json, const char *name, const struct compare_memory *row,
                       size_t count)
{
    json_begin_array(json, name);
    for (size_t i = 0; i < count; i++) {
        json_begin_row(json, NULL);
        json_put_count(json, "rank", row[i].rank);
        json_put_text(json, "memory", row[i].memory);
        json_put_number(json, "predicted_bytes", row[i].predicted_bytes);
        json_put_number(json, "measured_bytes", row[i].measured_bytes);
        json_end_row(json);
    }
    json_end_array(json);
}

static void put_exposed(struct json_out *json, const struct comparison *c)
{
    json_begin_array(json, "exposed");
    for (int role = ROLE_COMPUTE + 1; role < ROLE_COUNT; role++) {
        const struct compare_exposed *row = &c->exposed[role];
        if (row->predicted_busy_s == 0 && row->measured_busy_s == 0)
            continue;
        json_begin_row(json, NULL);
        json_put_text(json, "stream", stream_role_name((enum stream_role)role));
        json_put_number(json, "predicted_s", row->predicted_s);
        json_put_number(json, "predicted_busy_s", row->predicted_busy_s);
        json_put_number(json, "measured_s", row->measured_s);
        json_put_number(json, "measured_busy_s", row->measured_busy_s);
        json_end_row(json);
    }
    json_end_array(json);
}

static void put_groups(struct json_out *json, const struct comparison *c, enum compare_by by)
{
    struct compare_group *group;
    size_t count = compare_groups(c, by, &group);
    char key[32];
    snprintf(key, sizeof key, "by_%s", compare_by_name(by));
    json_begin_array(json, key);
    for (size_t i = 0; i < count; i++) {
        json_begin_row(json, NULL);
        if (group[i].name != NULL)
            json_put_text(json, compare_by_name(by), group[i].name);
        else
            json_put_count(json, compare_by_name(by), group[i].rank);
        json_put_count(json, "pairs", group[i].pairs);
        put_times(json, group[i].predicted_s, group[i].measured_s);
        json_put_number(json, "off_s", group[i].off_s);
        json_end_row(json);
    }
    json_end_array(json);
    free(group);
}

static void put_ops(struct json_out *json, const struct compare_report *report)
{
    struct compare_op *op;
    size_t count = compare_ops(report->comparison, &op);
    if (count > report->top)
        count = report->top;
    json_begin_array(json, "ops");
    for (size_t i = 0; i < count; i++) {
        const struct compare_pair *first = op[i].first;
        json_begin_row(json, NULL);
        json_put_count(json, "op", first->op);
        json_put_text(json, "kind", first->kind);
        json_put_text(json, "phase", first->phase);
        json_put_number(json, "layer", first->layer);
        json_put_count(json, "ranks", op[i].ranks);
        put_times(json, op[i].predicted_s, op[i].measured_s);
        json_put_number(json, "share", op[i].share);
        json_end_row(json);
    }
    json_end_array(json);
    free(op);
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
    put_side(&json, "predicted", report->predicted, &c->predicted);
    put_side(&json, "measured", report->measured, &c->measured);
    json_put_count(&json, "steps", c->steps);
    json_put_bool(&json, "aligned", c->foreign);
    json_put_number(&json, "step_error", compare_error(c->predicted.step_s, c->measured.step_s));
    json_put_number(&json, "match_rate", c->match_rate);
    json_put_count(&json, "ranks", c->compared_ranks);
    json_put_count(&json, "absent_ranks", c->absent_ranks);
    put_memory(&json, "arena", c->arena, c->arena_count);
    put_memory(&json, "peak", c->memory, c->memory_count);
    put_exposed(&json, c);
    for (int by = 0; by < BY_COUNT; by++)
        if (report->by < 0 || report->by == by)
            put_groups(&json, c, (enum compare_by)by);
    put_ops(&json, report);
    json_end_object(&json);
    text_putc(out, '\n');
}
