/* cli/validate/print.c: prints validated rows as text. */
#include "cli/validate/print.h"
#include "base/units.h"
#include "predict/validate/error_means.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *column_text(const struct validation *v, size_t i, enum external_column which)
{
    return v->rows->rows[i].cells[which];
}

/* Appends what ran, "system model, 32 x 512K", and its options on the next line. */
static void put_run_description(struct text *out, const struct validation *v, size_t i)
{
    const struct external_run *row = &v->rows->rows[i];
    text_printf(out, "%s %s", column_text(v, i, EXTERNAL_FRAMEWORK),
                column_text(v, i, EXTERNAL_MODEL));
    if (row->gpus > 0)
        text_printf(out, ", %lld x ", (long long)row->gpus);
    if (row->gpus > 0 && row->seq_len > 0)
        units_put_tokens(out, row->seq_len);
    text_printf(out, "\n  %s", column_text(v, i, EXTERNAL_ARGS));
}

void validation_put_memory_arithmetic(struct text *out, const struct verdict *verdict,
                                      const struct reserved *reserved, const char *label)
{
    text_printf(out, "%14s%s%s ", "", label, prediction_limit_name(verdict->limiting_memory));
    verdict_print(out, verdict, verdict->limiting_memory);
    verdict_put_probability_or_cache(out, verdict);
    if (reserved != NULL && reserved->total_bytes > 0) {
        text_puts(out, ";");
        for (int i = 0; i < RESERVED_PART_COUNT; i++) {
            text_printf(out, "%s %s ", i == 0 ? "" : ",",
                        reserved_part_label((enum reserved_part)i));
            units_put_gib(out, (double)reserved->bytes[i]);
        }
    }
    text_putc(out, '\n');
}

static void put_length_tokens(struct text *out, double tokens)
{
    units_put_tokens(out, (int64_t)tokens);
}

static void put_row(struct text *out, const struct validation *v, size_t i)
{
    const struct external_run *row = &v->rows->rows[i];
    const struct validated_row *r = &v->row[i];
    const struct external_prediction *result = &r->result;
    const char *metric = column_text(v, i, EXTERNAL_METRIC);
    text_printf(out, "  %-12s%s", metric, strlen(metric) < 12 ? "" : " ");
    if (result->outcome == OUTCOME_PREDICTION_FAILED) {
        text_printf(out, "%s; error: %s\n", column_text(v, i, EXTERNAL_VALUE),
                    result->status_reason);
        return;
    }
    bool length = row->metric == METRIC_MAX_SEQ_LEN;
    if (length && row->is_number)
        put_length_tokens(out, row->value);
    else if (row->is_number)
        text_printf(out, "%.6g", row->value);
    else
        text_puts(out, column_text(v, i, EXTERNAL_VALUE));
    text_puts(out, " -> ");
    if (result->predicted_text != NULL)
        text_puts(out, result->predicted_text);
    else if (length)
        put_length_tokens(out, result->predicted);
    else
        text_printf(out, "%.4g", result->predicted);
    if (!isnan(result->relative_error))
        text_printf(out, "  %+.1f %%", 100 * result->relative_error);
    else
        text_printf(out, "  %s", measurement_outcome_name(result->outcome));
    if (r->remark != NULL)
        text_printf(out, "  (%s)", r->remark);
    text_putc(out, '\n');
    const struct validated_run *answer = &v->answer[r->run_index];
    if (row->metric == METRIC_VERDICT) {
        validation_put_memory_arithmetic(out, &answer->verdict, &answer->reserved, "");
    } else if (length) {
        if (answer->longest_tokens > 0)
            validation_put_memory_arithmetic(out, &answer->verdict, &answer->reserved, "there: ");
        /* the next length is not searched if the published one is only a lower bound */
        if (answer->verdict_on_next_length_or_against.available_bytes[LIMIT_DEVICE] > 0)
            validation_put_memory_arithmetic(out, &answer->verdict_on_next_length_or_against, NULL,
                                             "one length further: ");
    } else if (!answer->verdict.fits) {
        validation_put_memory_arithmetic(out, &answer->verdict, &answer->reserved, "it ran, yet ");
    }
}

/* Returns whether a row is printed even without --all, since its result is wrong or an error. */
static bool is_row_printed_without_all(const struct validated_row *row)
{
    return row->result.outcome == OUTCOME_WRONG || row->result.outcome == OUTCOME_PREDICTION_FAILED;
}

static void put_rows(struct text *out, const struct validation *v, bool all)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < v->rows->row_count; i++) {
        if (v->row[i].run_index == SIZE_MAX || (!all && !is_row_printed_without_all(&v->row[i])))
            continue;
        if (last == SIZE_MAX ||
            !validation_are_rows_of_one_run(&v->rows->rows[i], &v->rows->rows[last])) {
            text_printf(out, "%s %s: ", column_text(v, i, EXTERNAL_SOURCE),
                        column_text(v, i, EXTERNAL_PLACE));
            put_run_description(out, v, i);
            text_putc(out, '\n');
        }
        put_row(out, v, i);
        last = i;
    }
}

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
static const struct column figure_means[] = {
    {NULL, "  source", NULL, COLUMN_PLAIN_TEXT, -18, NULL}, /* indented */
    {"source", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"place", "table", NULL, COLUMN_PLAIN_TEXT, -10, "The table or page where the source printed them."},
    {"metric", "metric", NULL, COLUMN_PLAIN_TEXT, -30, NULL},
    {"figures", "rows", NULL, COLUMN_COUNT, 4, "Rows that count."},
    {"mean_absolute_error", "mean", NULL, COLUMN_SHARE, 9, "Mean of absolute values of predicted / measured - 1."},
    {"worst_error", "worst", NULL, COLUMN_SIGNED_PERCENT, 9, "The largest by its size."},
};
static const struct column step_means[] = {
    {"set", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "The set of the rows; empty: they are in none."},
    {"by", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "What the rows have in common: source, device (its family), named_device, framework, scale, all; memory: the errors are of memory, by source; memory_kind: by what the source calls it; large_memory: of reserved memory, at least 0.4 of the device's."},
    {NULL, "", NULL, COLUMN_PLAIN_TEXT, -26, NULL}, /* text has the name indented */
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "The source, device, framework, scale or kind of memory."},
    {"runs", "", NULL, COLUMN_COUNT, 3, "Rows that count."},
    {"mean_absolute_error", "", NULL, COLUMN_SHARE, 9, "Mean of absolute values. Of speed: measured / predicted seconds - 1; of memory: predicted / measured - 1."},
    {"mean_error", "", NULL, COLUMN_SIGNED_PERCENT, 9, "Mean."},
    {"worst_error", "", NULL, COLUMN_SIGNED_PERCENT, 9, "The largest by its size."},
};
/* clang-format on */

const struct row_table validate_tables[VALIDATE_TABLE_COUNT] = {
    [VALIDATE_FIGURE_MEANS] = {"validate_figure_means", figure_means, ARRAY_LEN(figure_means)},
    [VALIDATE_STEP_MEANS] = {"validate_step_means", step_means, ARRAY_LEN(step_means)},
};

/* The sum of the absolute errors of times and speeds of steps over all tables, and their number. */
struct speed_error_sum {
    double sum;
    size_t count;
};

/* Fills a row for each table and metric with the errors of the rows that count. Returns the errors of tokens per
 * second, MFU and step times over all tables. */
static struct speed_error_sum put_means(struct rows *rows, const struct validation *v)
{
    bool *done = heap_zalloc(v->rows->row_count + 1, sizeof *done);
    struct speed_error_sum speed = {0};
    struct text indented = {0};
    rows_begin(rows, "figure_means", NULL, &validate_tables[VALIDATE_FIGURE_MEANS]);
    for (size_t i = 0; i < v->rows->row_count; i++) {
        if (done[i] || !v->row[i].counts_in_means)
            continue;
        const struct error_means means = validation_table_means(v, i, done);
        indented.size = 0;
        text_printf(&indented, "  %s", column_text(v, i, EXTERNAL_SOURCE));
        rows_put_text(rows, indented.data);
        rows_put_text(rows, column_text(v, i, EXTERNAL_SOURCE));
        rows_put_text(rows, column_text(v, i, EXTERNAL_PLACE));
        rows_put_text(rows, column_text(v, i, EXTERNAL_METRIC));
        rows_put_number(rows, (double)means.count);
        rows_put_number(rows, error_means_mean_absolute(&means));
        rows_put_number(rows, means.worst_error);
        enum measurement_metric metric = v->rows->rows[i].metric;
        if (metric == METRIC_TGS || metric == METRIC_MFU || metric == METRIC_STEP_MS) {
            speed.sum += means.absolute_sum;
            speed.count += means.count;
        }
    }
    rows_end(rows);
    text_release(&indented);
    free(done);
    return speed;
}

static void print_means(struct text *out, const struct validation *v)
{
    struct rows rows = {.out = out};
    text_puts(out, "errors: mean of absolute values, and worst; predicted / measured - 1, of a "
                   "step's time as of its tokens per second: + is faster\n");
    const struct speed_error_sum speed = put_means(&rows, v);
    if (speed.count > 0)
        text_printf(out, "  all of tgs, mfu and step_ms: %.1f %% of %zu\n",
                    100 * speed.sum / (double)speed.count, speed.count);
    else
        text_puts(out, "  none\n");
}

void validation_put_means(struct json_out *json, const struct validation *v)
{
    struct rows rows = {.json = json};
    (void)put_means(&rows, v);
}

static size_t count_figures_with_outcome(const struct validation *v,
                                         enum measurement_outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < v->rows->row_count; i++)
        count += v->row[i].result.outcome == outcome;
    return count;
}

/* Appends how many verdicts and longest lengths are right, and how many of the runs that were timed are predicted not
 * to fit. A run that was timed did fit. */
static void put_counts_of_right_verdicts(struct text *out, const struct validation *v)
{
    size_t ran = 0, unfit = 0;
    for (size_t run = 0; run < v->run_count; run++)
        if (v->does_run_need_times[run] && v->answer[run].has_succeeded) {
            ran++;
            unfit += !v->answer[run].verdict.fits;
        }
    text_printf(out,
                "verdicts and longest lengths: %zu right, %zu wrong; of %zu runs that were "
                "timed, %zu are predicted not to fit\n",
                count_figures_with_outcome(v, OUTCOME_RIGHT),
                count_figures_with_outcome(v, OUTCOME_WRONG), ran, unfit);
}

static void put_row_counts_by_outcome(struct text *out, const struct validation *v)
{
    text_printf(out, "rows: %zu; ok %zu, right %zu, wrong %zu, zero %zu, error %zu\n",
                v->rows->row_count - count_figures_with_outcome(v, OUTCOME_NOT_COMPARABLE),
                count_figures_with_outcome(v, OUTCOME_OK),
                count_figures_with_outcome(v, OUTCOME_RIGHT),
                count_figures_with_outcome(v, OUTCOME_WRONG),
                count_figures_with_outcome(v, OUTCOME_PUBLISHED_ZERO),
                count_figures_with_outcome(v, OUTCOME_PREDICTION_FAILED));
}

void validation_print(struct text *out, const struct validation *v, bool all)
{
    put_rows(out, v, all);
    print_means(out, v);
    validation_print_choices(out, v);
    put_counts_of_right_verdicts(out, v);
    put_row_counts_by_outcome(out, v);
}
