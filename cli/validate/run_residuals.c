#include "cli/validate/run_residuals.h"

#include "models/interval.h"
#include "predict/validate/error_means.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- runs ---- */

/* A residual is log(measured / predicted), of seconds or of bytes: above 0 if the run took longer, or needed more, than
 * predicted. The errors of a validation are predicted / measured - 1 for speeds and bytes, and measured / predicted - 1
 * for seconds: so log1p(error) is the residual of the time, and -log1p(error) that of memory. */

static bool is_predicted(const struct validation *v, size_t i)
{
    return v->row[i].run_index != SIZE_MAX && v->row[i].result.outcome == OUTCOME_OK;
}

static bool is_speed(const struct external_run *row)
{
    return row->metric == METRIC_TGS || row->metric == METRIC_MFU || row->metric == METRIC_STEP_MS;
}

/* Returns whether two rows are figures of one run. They may be in different tables. */
static bool same_run(const struct external_run *a, const struct external_run *b)
{
    return strcmp(a->cells[EXTERNAL_SOURCE], b->cells[EXTERNAL_SOURCE]) == 0 &&
           strcmp(a->cells[EXTERNAL_ARGS], b->cells[EXTERNAL_ARGS]) == 0;
}

static bool is_counted(const struct validation *v, size_t i)
{
    return is_predicted(v, i) && v->row[i].counts_in_means && is_speed(&v->rows->rows[i]);
}

/* Returns whether an earlier row that counts is a figure of the same run. */
static bool is_figure_of_earlier_run(const struct validation *v, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_counted(v, k) && same_run(&v->rows->rows[k], &v->rows->rows[i]))
            return true;
    return false;
}

static bool is_memory_figure(const struct external_run *row)
{
    return (row->metric == METRIC_PEAK_HBM || row->metric == METRIC_RESERVED_MEMORY) &&
           external_is_run_as_described(row);
}

/* Returns log(measured bytes / predicted bytes) for the run of row i: above 0 if the run needed more than predicted.
 * NAN: no memory that can be compared was printed. The row's error is predicted / measured - 1, hence the sign. */
static double memory_log_ratio(const struct validation *v, size_t i)
{
    for (size_t k = 0; k < v->rows->row_count; k++)
        if (is_memory_figure(&v->rows->rows[k]) && is_predicted(v, k) &&
            v->row[k].run_index == v->row[i].run_index)
            return -log1p(v->row[k].result.relative_error);
    return NAN;
}

static void add_figures(struct residuals *out, const struct validation *v)
{
    for (size_t i = 0; i < v->rows->row_count; i++) {
        const struct external_run *row = &v->rows->rows[i];
        if (!is_counted(v, i) || is_figure_of_earlier_run(v, i))
            continue;
        const struct similarity *like = &v->answer[v->row[i].run_index].similarity;
        if (like->device[0] == '\0')
            continue;
        struct residual residual = similarity_make_residual(like);
        residual.source = row->cells[EXTERNAL_SOURCE];
        residual.laboratory = external_laboratory(row);
        residual.run = row->cells[EXTERNAL_ID];
        residual.set = row->cells[EXTERNAL_SET];
        residual.log_ratio[RESIDUAL_TIME] = log1p(v->row[i].result.relative_error);
        residual.log_ratio[RESIDUAL_MEMORY] = memory_log_ratio(v, i);
        residuals_add(out, &residual);
    }
}

static void add_steps(struct residuals *out, const struct external_validation *v)
{
    for (size_t i = 0; i < v->runs->row_count; i++) {
        const struct external_run *row = &v->runs->rows[i];
        const struct external_prediction *result = &v->result[i];
        const struct similarity *like = &v->answer[v->answer_index_of_each_row[i]].similarity;
        if (result->outcome == OUTCOME_PREDICTION_FAILED || like->device[0] == '\0')
            continue;
        struct residual residual = similarity_make_residual(like);
        residual.source = row->cells[EXTERNAL_SOURCE];
        residual.laboratory = external_laboratory(row);
        residual.run = row->cells[EXTERNAL_ID];
        residual.set = row->cells[EXTERNAL_SET];
        residual.log_ratio[RESIDUAL_TIME] = log1p(external_row_time_error_if_counted(v, i));
        residual.log_ratio[RESIDUAL_MEMORY] =
            external_is_run_as_described(row) ? -log1p(external_row_memory_error_if_counted(v, i))
                                              : (double)NAN;
        residuals_add(out, &residual);
    }
}

enum status run_residuals_add_runs(struct residuals *residuals, const struct validation *validation,
                                   const struct external_validation *external, struct diag *diag)
{
    add_figures(residuals, validation);
    add_steps(residuals, external);
    return residuals_load_first_predictions(residuals, diag);
}

/* ---- tables ---- */

static const char *source_key(const struct residual *row)
{
    return row->source;
}

static const char *device_key(const struct residual *row)
{
    return row->device;
}

static const char *framework_key(const struct residual *row)
{
    return row->framework;
}

static const char *one_or_several_nodes_key(const struct residual *row)
{
    return row->spans_several_nodes ? "several nodes" : "one node";
}

static const char *single_group_key(const struct residual *row)
{
    (void)row;
    return "all";
}

typedef const char *key_fn(const struct residual *row);

static bool is_same_set(const struct residual *a, const struct residual *b)
{
    return strcmp(a->set, b->set) == 0;
}

/* Appends a line for the group of run i: the runs from i on that have its set and its key. Marks them in done[]. */
static void put_group(struct text *out, const struct residuals *runs, enum residual_quantity of,
                      const struct interval *interval, key_fn *key, size_t i, bool *done)
{
    size_t held = 0, known = 0;
    struct error_means means = {0};
    double *half = heap_zalloc(runs->row_count + 1, sizeof *half);
    for (size_t k = i; k < runs->row_count; k++) {
        double value = runs->rows[k].log_ratio[of], error = expm1(value);
        if (isnan(value) || !is_same_set(&runs->rows[k], &runs->rows[i]) ||
            strcmp(key(&runs->rows[k]), key(&runs->rows[i])) != 0)
            continue;
        done[k] = true;
        error_means_add(&means, error);
        if (!interval_is_known(&interval[k]))
            continue;
        held += value >= interval[k].low && value <= interval[k].high;
        half[known++] = (exp(interval[k].high) - exp(interval[k].low)) / 2;
    }
    text_printf(out, "  %-16s %4zu %7.1f %% %+7.1f %% %+7.1f %%", key(&runs->rows[i]), means.count,
                100 * error_means_mean_absolute(&means), 100 * error_means_mean_signed(&means),
                100 * means.worst_error);
    gsl_sort(half, 1, known);
    if (known > 0)
        text_printf(out, " %6.0f %% %6.0f %%", 100 * (double)held / (double)known,
                    100 * gsl_stats_median_from_sorted_data(half, 1, known));
    text_putc(out, '\n');
    free(half);
}

/* Appends the tables for the set of run `first`; for memory only those by source and of all runs. */
static void put_tables(struct text *out, const struct residuals *runs, enum residual_quantity of,
                       const struct interval *interval, size_t first)
{
    static const struct {
        const char *title;
        key_fn *key;
    } tables[] = {{"by source", source_key},
                  {"by device", device_key},
                  {"by framework (profile)", framework_key},
                  {"by scale", one_or_several_nodes_key},
                  {"all", single_group_key}};
    bool *done = heap_zalloc(runs->row_count + 1, sizeof *done);
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        if (of == RESIDUAL_MEMORY && tables[t].key != source_key &&
            tables[t].key != single_group_key)
            continue;
        memset(done, 0, runs->row_count * sizeof *done);
        text_printf(out, "%s\n", tables[t].title);
        for (size_t i = 0; i < runs->row_count; i++)
            if (!done[i] && !isnan(runs->rows[i].log_ratio[of]) &&
                is_same_set(&runs->rows[i], &runs->rows[first]))
                put_group(out, runs, of, interval, tables[t].key, i, done);
    }
    free(done);
}

/* Returns whether run i is the first one of its set that has a residual. */
static bool is_first_of_set(const struct residuals *runs, enum residual_quantity of, size_t i)
{
    bool is_first = !isnan(runs->rows[i].log_ratio[of]);
    for (size_t k = 0; k < i; k++)
        is_first &=
            isnan(runs->rows[k].log_ratio[of]) || !is_same_set(&runs->rows[k], &runs->rows[i]);
    return is_first;
}

void run_residuals_print(struct text *out, const struct residuals *runs,
                         const struct evidence *evidence)
{
    static const struct {
        const char *what, *columns;
    } titles[RESIDUAL_COUNT] = {
        {"whole steps, of both kinds of file, each run once",
         ": number, mean of absolute errors, mean, worst (measured / predicted seconds - 1), share "
         "inside the 90 % intervals that rows of other laboratories give, median half-width of "
         "these\n"},
        {"memory of whole steps, of runs whose options are those of the source",
         ": the same, of measured / predicted bytes - 1\n"},
    };
    struct interval *interval = heap_zalloc(runs->row_count + 1, sizeof *interval);
    for (int of = 0; of < RESIDUAL_COUNT; of++) {
        for (size_t i = 0; i < runs->row_count; i++) {
            const struct residual *row = &runs->rows[i];
            if (!isnan(row->log_ratio[of]))
                interval[i] =
                    interval_of_run(evidence, (enum residual_quantity)of, row, row->laboratory);
        }
        for (size_t i = 0; i < runs->row_count; i++) {
            const char *set = runs->rows[i].set;
            if (!is_first_of_set(runs, (enum residual_quantity)of, i))
                continue;
            text_printf(out, "\n%s%s%s%s", titles[of].what, set[0] == '\0' ? "" : ", of set ", set,
                        titles[of].columns);
            put_tables(out, runs, (enum residual_quantity)of, interval, i);
        }
    }
    free(interval);
}
