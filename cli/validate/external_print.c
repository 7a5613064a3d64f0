/* cli/validate/external_print.c: prints validated rows of training steps as text, and their means as JSON. */
#include "base/units.h"
#include "cli/validate/print.h"
#include "predict/validate/error_means.h"
#include "predict/validate/external_validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *column_text(const struct external_run *row, enum external_column which)
{
    return row->cells[which];
}

static const struct external_answer *external_answer_of_row(const struct external_validation *v,
                                                            size_t i)
{
    return &v->answer[v->answer_index_of_each_row[i]];
}

/* Appends the memory of a row, if it has one that can be compared: "; memory_allocated_gib 28.29 -> 28.21 GiB peak of
 * tensors  -0.3 %". */
static void put_memory(struct text *out, const struct external_run *row,
                       const struct external_prediction *result)
{
    double measured; /* the measured memory, in the unit of the column */
    const enum external_memory_kind kind = external_metric_memory_kind(row->second_metric);
    const char *what = external_compared_memory_name(kind);
    const char *value = column_text(row, EXTERNAL_SECOND_VALUE);
    if (what == NULL || !parse_double(value, strlen(value), &measured))
        return;
    text_printf(out, "; %s %s -> %.4g %s  %+.1f %%", column_text(row, EXTERNAL_SECOND_METRIC),
                value, result->predicted_memory_bytes * measured / row->second_value, what,
                100 * result->memory_error);
    if (kind == MEMORY_KIND_UNNAMED)
        text_puts(out, ", not scored");
}

static void put_rows(struct text *out, const struct external_validation *v, bool all)
{
    for (size_t i = 0; i < v->runs->row_count; i++) {
        const struct external_run *row = &v->runs->rows[i];
        const struct external_prediction *result = &v->result[i];
        if (!all && result->outcome != OUTCOME_WRONG &&
            result->outcome != OUTCOME_PREDICTION_FAILED)
            continue;
        text_printf(out, "%s: %s, %s, %lld x ", column_text(row, EXTERNAL_ID),
                    column_text(row, EXTERNAL_MODEL), column_text(row, EXTERNAL_GPU),
                    (long long)row->gpus);
        units_put_tokens(out, row->seq_len);
        text_puts(out, ": ");
        if (result->outcome == OUTCOME_PREDICTION_FAILED) {
            text_printf(out, "%.4g s; error: %s\n", row->step_s, result->status_reason);
            continue;
        }
        text_printf(out, "%.4g -> %.4g s  %+.1f %%", row->step_s, result->step_s,
                    100 * result->relative_error);
        put_memory(out, row, result);
        if (!external_is_run_as_described(row))
            text_printf(out, "  (%s)", column_text(row, EXTERNAL_AS_RUN));
        if (!row->is_counted)
            text_printf(out, "  (not counted: %s)", column_text(row, EXTERNAL_COUNTS));
        text_putc(out, '\n');
        if (result->outcome == OUTCOME_WRONG)
            validation_put_memory_arithmetic(out, &external_answer_of_row(v, i)->verdict,
                                             &external_answer_of_row(v, i)->reserved,
                                             "it ran, yet ");
    }
}

/* ---- tables ---- */

/* Appends the text by which a table groups row i: rows with the same text are one group. */
typedef void key_fn(struct text *key, const struct external_validation *v, size_t i);

static void put_group_key_source(struct text *key, const struct external_validation *v, size_t i)
{
    text_puts(key, column_text(&v->runs->rows[i], EXTERNAL_SOURCE));
}

static void put_group_key_device_family(struct text *key, const struct external_validation *v,
                                        size_t i)
{
    const char *gpu = column_text(&v->runs->rows[i], EXTERNAL_GPU);
    text_append(key, gpu, strcspn(gpu, "-_"));
}

static void put_group_key_device(struct text *key, const struct external_validation *v, size_t i)
{
    text_puts(key, column_text(&v->runs->rows[i], EXTERNAL_GPU));
}

/* Appends the name of the framework up to a comma or to its version, the first later word with a digit: "torchtitan" of
 * "torchtitan 2024-12, FSDP eager". */
static void put_group_key_framework(struct text *key, const struct external_validation *v, size_t i)
{
    const char *name = column_text(&v->runs->rows[i], EXTERNAL_FRAMEWORK);
    size_t size = strcspn(name, ",");
    for (size_t at = 1; at < size; at++)
        if (name[at - 1] == ' ' && strcspn(name + at, " ,") > 0 &&
            strcspn(name + at, "0123456789") < strcspn(name + at, " ,")) {
            size = at - 1;
            break;
        }
    text_append(key, name, size);
}

static void put_group_key_one_or_more_nodes(struct text *key, const struct external_validation *v,
                                            size_t i)
{
    text_puts(key,
              external_answer_of_row(v, i)->node_count == 1 ? "GPUs of one node" : "more nodes");
}

static void put_group_key_memory_kind(struct text *key, const struct external_validation *v,
                                      size_t i)
{
    text_puts(key, external_memory_kind_name(
                       external_metric_memory_kind(v->runs->rows[i].second_metric)));
}

static void put_group_key_same_for_all(struct text *key, const struct external_validation *v,
                                       size_t i)
{
    (void)v;
    (void)i;
    text_puts(key, "all");
}

/* Returns the error of a row for a table; NAN if the row does not count there. */
typedef double error_fn(const struct external_validation *v, size_t i);

/* A table of means. Its lines are groups of rows that have the same key. title NULL: the lines
 * belong to the table before. */
static const struct mean_table {
    const char *name, *title;
    key_fn *key;
    error_fn *error;
} tables[] = {
    {"source", "by source", put_group_key_source, external_row_time_error_if_counted},
    {"device", "by device", put_group_key_device_family, external_row_time_error_if_counted},
    {"named_device", "by device as the source names it", put_group_key_device,
     external_row_time_error_if_counted},
    {"framework", "by framework", put_group_key_framework, external_row_time_error_if_counted},
    {"scale", "by scale", put_group_key_one_or_more_nodes, external_row_time_error_if_counted},
    {"all", "all", put_group_key_same_for_all, external_row_time_error_if_counted},
    {"memory", "memory, predicted / measured - 1", put_group_key_source,
     external_row_memory_error_if_counted},
    {"memory_kind", "memory by what the source calls it", put_group_key_memory_kind,
     external_row_memory_error_if_counted},
    {"large_memory", "reserved memory of at least 0.4 of the device's", put_group_key_source,
     external_row_large_reserved_error},
    {"large_memory", NULL, put_group_key_same_for_all, external_row_large_reserved_error},
};

/* Fills a row for each group of rows of a set that have the same key, in the order of their first rows. */
static void put_groups(struct rows *rows, const struct external_validation *v, const char *set,
                       const struct mean_table *table)
{
    size_t count = v->runs->row_count;
    bool *done = heap_zalloc(count + 1, sizeof *done);
    struct text name = {0}, other = {0};
    for (size_t i = 0; i < count; i++) {
        if (done[i] || !external_is_in_set(&v->runs->rows[i], set) || isnan(table->error(v, i)))
            continue;
        struct error_means means = {0};
        name.size = 0;
        text_puts(&name, "  ");
        table->key(&name, v, i);
        for (size_t k = i; k < count; k++) {
            other.size = 0;
            if (done[k] || !external_is_in_set(&v->runs->rows[k], set) || isnan(table->error(v, k)))
                continue;
            text_puts(&other, "  ");
            table->key(&other, v, k);
            if (other.size != name.size || memcmp(other.data, name.data, name.size) != 0)
                continue;
            done[k] = true;
            error_means_add(&means, table->error(v, k));
        }
        rows_put_text(rows, set);
        rows_put_text(rows, table->name);
        rows_put_text(rows, name.data);
        rows_put_text(rows, name.data + 2);
        rows_put_number(rows, (double)means.count);
        rows_put_number(rows, error_means_mean_absolute(&means));
        rows_put_number(rows, error_means_mean_signed(&means));
        rows_put_number(rows, means.worst_error);
    }
    text_release(&name);
    text_release(&other);
    free(done);
}

static void put_tables(struct text *out, const struct external_validation *v, const char *set)
{
    struct text body = {0};
    struct rows rows = {.out = &body};
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        body.size = 0;
        rows_begin(&rows, NULL, NULL, &validate_tables[VALIDATE_STEP_MEANS]);
        put_groups(&rows, v, set, &tables[i]);
        rows_end(&rows);
        if (body.size > 0 && tables[i].title != NULL)
            text_printf(out, "%s\n", tables[i].title);
        text_append(out, body.data, body.size);
    }
    text_release(&body);
}

void external_validation_put_means(struct json_out *json, const struct external_validation *v)
{
    struct rows rows = {.json = json};
    rows_begin(&rows, "step_means", NULL, &validate_tables[VALIDATE_STEP_MEANS]);
    for (size_t i = 0; i < v->runs->row_count; i++)
        for (size_t k = 0; k < ARRAY_LEN(tables) && external_is_first_of_set(v->runs, i); k++)
            put_groups(&rows, v, column_text(&v->runs->rows[i], EXTERNAL_SET), &tables[k]);
    rows_end(&rows);
}

static size_t count_rows_of_set_with_outcome(const struct external_validation *v, const char *set,
                                             enum measurement_outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < v->runs->row_count; i++)
        count += external_is_in_set(&v->runs->rows[i], set) && v->result[i].outcome == outcome;
    return count;
}

static void put_errors_and_verdicts_of_row_set(struct text *out,
                                               const struct external_validation *v, const char *set)
{
    const char *of = set[0] == '\0' ? "" : " of set ";
    const size_t right = count_rows_of_set_with_outcome(v, set, OUTCOME_OK),
                 wrong = count_rows_of_set_with_outcome(v, set, OUTCOME_WRONG),
                 error = count_rows_of_set_with_outcome(v, set, OUTCOME_PREDICTION_FAILED);
    text_printf(out,
                "errors of measured training steps%s%s: number of runs, mean of absolute values, "
                "mean, worst; of speed, measured / predicted seconds - 1: + is predicted faster "
                "than measured\n",
                of, set);
    put_tables(out, v, set);
    text_printf(out, "verdicts of training steps%s%s that ran: %zu right, %zu wrong", of, set,
                right, wrong);
    size_t listed = 0;
    for (size_t i = 0; i < v->runs->row_count; i++)
        if (external_is_in_set(&v->runs->rows[i], set) && v->result[i].outcome == OUTCOME_WRONG)
            text_printf(out, "%s%s", listed++ == 0 ? ": " : ", ",
                        column_text(&v->runs->rows[i], EXTERNAL_ID));
    text_printf(out, "\nrows of training steps%s%s: %zu; ok %zu, wrong %zu, error %zu\n", of, set,
                right + wrong + error, right, wrong, error);
}

void external_validation_print(struct text *out, const struct external_validation *v, bool all)
{
    put_rows(out, v, all);
    for (size_t i = 0; i < v->runs->row_count; i++)
        if (external_is_first_of_set(v->runs, i))
            put_errors_and_verdicts_of_row_set(out, v,
                                               column_text(&v->runs->rows[i], EXTERNAL_SET));
}
