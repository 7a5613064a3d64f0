#include "cli/measure/explain_report.h"

#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "traces/compare.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

/* CAUSES_SHOWN, RANKS_SHOWN: the most causes and ranks that people see. LABEL: the width of the
 * label of the first line. CAUSE: the width of the columns before the name of a cause. */
enum { CAUSES_SHOWN = 10, RANKS_SHOWN = 8, LABEL = 11, CAUSE = 23 };

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
static const struct column causes[] = {
    {"more_s", "more ms", NULL, COLUMN_SECONDS_DIFFERENCE, 12, "Measured less predicted."},
    {NULL, "share", "share %", COLUMN_WHOLE_PERCENT | COLUMN_OPTIONAL, 8, NULL},
    {"cause", "cause", NULL, COLUMN_PLAIN_TEXT, -18, NULL},
    {"rank", NULL, NULL, COLUMN_COUNT | COLUMN_NULLABLE, 0, "null: all ranks."},
    {"text", "", "what", COLUMN_WRAPPED_TEXT, 0, NULL},
};

static const struct column ranks[] = {
    {NULL, "more ms of", NULL, COLUMN_PLAIN_TEXT, -12, NULL},
    {"rank", NULL, NULL, COLUMN_COUNT, 0, NULL},
    {"predicted_s", NULL, NULL, COLUMN_JSON_OBJECT, 0, "Seconds of each part of the step."},
    {"measured_s", NULL, NULL, COLUMN_JSON_OBJECT, 0, "Seconds of each part of the step."},
    /* one column for each enum explain_part */
    {NULL, "products", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
    {NULL, "attention", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
    {NULL, "memory", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
    {NULL, "optimizer", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
    {NULL, "stray", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
    {NULL, "messages", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
    {NULL, "copies", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
    {NULL, "waits", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
    {NULL, "idle", NULL, COLUMN_SECONDS_DIFFERENCE, 10, NULL},
};
/* clang-format on */
static_assert(ARRAY_LEN(ranks) == 4 + EXPLAIN_PART_COUNT, "each part has a column");

const struct row_table explain_tables[EXPLAIN_TABLE_COUNT] = {
    [EXPLAIN_TABLE_CAUSES] = {"explain_cause", causes, ARRAY_LEN(causes)},
    [EXPLAIN_TABLE_RANKS] = {"explain_rank", ranks, ARRAY_LEN(ranks)},
};

static double measured_minus_predicted_s(const struct explanation *e)
{
    return e->measured_s - e->predicted_s;
}

/* Returns the sum of the absolute seconds of all causes. */
static double sum_of_absolute_causes_s(const struct explanation *e)
{
    double all_s = 0;
    for (size_t i = 0; i < e->cause_count; i++)
        all_s += fabs(e->cause[i].seconds);
    return all_s;
}

/* Returns how many causes are shown to people one by one. Sets *rest_s to the sum of the others. */
static size_t count_shown_causes(const struct explanation *e, double *rest_s)
{
    size_t shown = 0;
    double all_s = sum_of_absolute_causes_s(e);
    *rest_s = 0;
    while (shown < e->cause_count && shown < CAUSES_SHOWN &&
           fabs(e->cause[shown].seconds) >= EXPLAIN_CAUSE_SHARE_MIN * all_s)
        shown++;
    for (size_t i = shown; i < e->cause_count; i++)
        *rest_s += e->cause[i].seconds;
    return shown;
}

void explain_report_put_causes(struct rows *rows, const struct explanation *e)
{
    double rest_s, all_s = sum_of_absolute_causes_s(e);
    size_t shown = count_shown_causes(e, &rest_s);
    rows_begin(rows, "causes", NULL, &explain_tables[EXPLAIN_TABLE_CAUSES]);
    for (size_t i = 0; i < (rows->json != NULL ? e->cause_count : shown); i++) {
        const struct explain_cause *cause = &e->cause[i];
        rows_put_number(rows, cause->seconds);
        rows_put_number(rows, fabs(cause->seconds) / all_s);
        rows_put_text(rows, cause->name);
        rows_put_number(rows, cause->rank >= 0 ? (double)cause->rank : NAN);
        rows_put_text(rows, cause->text);
    }
    if (rows->json == NULL) {
        rows_put_number(rows, rest_s);
        rows_skip_column(rows);
        rows_put_text(rows, "rest");
        rows_put_number(rows, NAN);
        rows_put_text(rows, "");
    }
    rows_end(rows);
}

/* True if the table shows rank i: it shows all ranks or, if these are too many, the first ones and the one that waits
 * least. */
static bool is_rank_shown(const struct explanation *e, size_t i)
{
    return e->rank_count <= RANKS_SHOWN || i == e->least_waiting_rank_index ||
           i < RANKS_SHOWN - (e->least_waiting_rank_index >= RANKS_SHOWN ? 1 : 0);
}

static void put_part_times(struct rows *rows, const double *part_s)
{
    rows_begin_object(rows);
    for (int part = 0; part < EXPLAIN_PART_COUNT && rows->json != NULL; part++)
        json_put_number(rows->json, explain_part_name((enum explain_part)part), part_s[part]);
    rows_end_object(rows);
}

static void put_ranks(struct rows *rows, const struct explanation *e)
{
    rows_begin(rows, "ranks", NULL, &explain_tables[EXPLAIN_TABLE_RANKS]);
    for (size_t i = 0; i < e->rank_count; i++) {
        const struct explain_rank *rank = &e->times_of_ranks[i];
        char name[24];
        if (rows->json == NULL && !is_rank_shown(e, i))
            continue;
        snprintf(name, sizeof name, "rank %u", rank->rank);
        rows_put_text(rows, name);
        rows_put_number(rows, rank->rank);
        put_part_times(rows, rank->predicted_s);
        put_part_times(rows, rank->measured_s);
        for (int part = 0; part < EXPLAIN_PART_COUNT; part++)
            rows_put_number(rows, rank->measured_s[part] - rank->predicted_s[part]);
    }
    rows_end(rows);
}

void explain_report_print(struct text *out, const struct explanation *e, size_t width)
{
    double more_s = measured_minus_predicted_s(e);
    struct text line = {0};
    text_printf(&line, "explain    measured %.3f ms", 1e3 * e->measured_s);
    if (e->measured_steps > 1)
        text_printf(&line, " (mean of %zu steps)", e->measured_steps);
    text_printf(&line, ", predicted %.3f ms: %.3f ms %s", 1e3 * e->predicted_s, 1e3 * fabs(more_s),
                more_s >= 0 ? "longer" : "shorter");
    if (e->rank_count > 1)
        text_printf(&line, ", on rank %u, for which the others wait",
                    e->times_of_ranks[e->least_waiting_rank_index].rank);
    screen_wrap_labelled(out, line.data, LABEL, width);
    line.size = 0;
    if (e->matched_time_share < COMPARE_MATCHED_SHARE_MIN) {
        text_printf(
            &line,
            "matched    %.1f %% of the time, too little for a verdict: is it the same model, "
            "sequence and schedule? The causes below may be those of unlike work",
            100 * e->matched_time_share);
        screen_wrap_labelled(out, line.data, LABEL, width);
    }
    text_release(&line);
    struct rows rows = {.out = out, .screen_width = width, .continuation_indent = CAUSE};
    text_putc(out, '\n');
    explain_report_put_causes(&rows, e);
    text_putc(out, '\n');
    put_ranks(&rows, e);
    if (e->rank_count > RANKS_SHOWN)
        text_printf(out, "%zu more ranks; --json has them\n", e->rank_count - RANKS_SHOWN);
}

void explain_report_print_json(struct json_out *json, const struct explanation *e)
{
    command_begin_json(json, "explain");
    json_put_number(json, "predicted_s", e->predicted_s);
    json_put_number(json, "measured_s", e->measured_s);
    json_put_number(json, "match_rate", e->matched_time_share);
    json_put_count(json, "steps", e->measured_steps);
    json_put_count(json, "rank", e->times_of_ranks[e->least_waiting_rank_index].rank);
    struct rows rows = {.json = json};
    explain_report_put_causes(&rows, e);
    put_ranks(&rows, e);
    json_end_object(json);
    text_putc(json->out, '\n');
}
