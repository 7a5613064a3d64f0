#include "traces/external.h"

#include "base/data_path.h"
#include "traces/records.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The columns that external_print() adds to those of the file: a column's name, and the call that appends its value to
 * `out`. r: the result of the row; kind: the kind of memory of its second figure, in words. */
#define EXTERNAL_PREDICTION_COLUMNS(X)                                                             \
    X("predicted", append_predicted(out, r))                                                       \
    X("predicted_step_s", append_number_if_finite(out, r->step_s))                                 \
    X("relative_error", append_number_if_finite(out, r->relative_error))                           \
    X("predicted_peak_bytes", append_whole_bytes_if_finite(out, r->peak_bytes))                    \
    X("predicted_reserved_bytes", append_whole_bytes_if_finite(out, r->reserved_bytes))            \
    X("memory_kind", text_puts(out, kind))                                                         \
    X("memory_error", append_number_if_finite(out, r->memory_error))                               \
    X("status", measurement_append_status(out, r->outcome, r->status_reason))

static const char *const column_names[] = {
#define COLUMN(symbol, name, kind, about) name,
    EXTERNAL_COLUMNS(COLUMN)
#undef COLUMN
#define COLUMN(name, put) name,
        EXTERNAL_PREDICTION_COLUMNS(COLUMN)
#undef COLUMN
};
enum { RESULT_COLUMN_COUNT = ARRAY_LEN(column_names) - EXTERNAL_COLUMN_COUNT };

/* The kinds of EXTERNAL_COLUMNS as values of needed[]: only a column of kind NEEDED must be there. */
enum { NEEDED = true, TEXT = false, COUNT = false, NUMBER = false };
/* [columns] true if a file must have the column and no row may leave it empty */
static const bool needed[ARRAY_LEN(column_names)] = {
#define COLUMN(symbol, name, kind, about) [EXTERNAL_##symbol] = kind,
    EXTERNAL_COLUMNS(COLUMN)
#undef COLUMN
};
static const struct record_columns columns = {column_names, ARRAY_LEN(column_names),
                                              RESULT_COLUMN_COUNT, .has_any_order = true,
                                              .is_needed_by_column = needed};

/* The metrics of the column `second_metric`. The column `metric` has others: those of traces/measurements.h. */
static const struct {
    const char *name;
    double scale; /* factor from the file's unit to SI units */
    enum external_memory_kind kind;
} metrics[EXTERNAL_METRIC_COUNT] = {[EXTERNAL_NO_SECOND_METRIC] = {"", 0, MEMORY_KIND_NONE},
#define METRIC(symbol, name, kind, scale)                                                          \
    [EXTERNAL_METRIC_##symbol] = {name, scale, MEMORY_KIND_##kind},
                                    EXTERNAL_SECOND_METRICS(METRIC)
#undef METRIC
};

/* Words in cells. The columns `as_run` and `counts` may be "yes". If the metric is max_seq_len, `counts` may be
 * "least": longer sequences than the published one may fit, too. */
static const char yes[] = "yes", least[] = "least";

void external_release(struct external_runs *runs)
{
    free(runs->rows);
    arena_release(&runs->arena);
    *runs = (struct external_runs){0};
}

const char *external_column_name(enum external_column column)
{
    assert(column < EXTERNAL_COLUMN_COUNT);
    return column_names[column];
}

enum external_memory_kind external_metric_memory_kind(enum external_second_metric metric)
{
    return metrics[metric].kind;
}

const char *external_memory_kind_name(enum external_memory_kind kind)
{
    static const char *const names[MEMORY_KIND_COUNT] = {"", "allocated", "reserved", "unnamed"};
    return names[kind];
}

bool external_is_run_as_described(const struct external_run *run)
{
    return strcmp(run->cells[EXTERNAL_AS_RUN], yes) == 0;
}

const char *external_laboratory(const struct external_run *run)
{
    const char *laboratory = run->cells[EXTERNAL_LABORATORY];
    return laboratory[0] != '\0' ? laboratory : run->cells[EXTERNAL_SOURCE];
}

bool external_is_in_set(const struct external_run *run, const char *set)
{
    return strcmp(run->cells[EXTERNAL_SET], set) == 0;
}

const char *external_value_of_group_key(const struct external_run *run, const char *key,
                                        size_t *size)
{
    size_t length = strlen(key);
    for (const char *at = run->cells[EXTERNAL_GROUP]; *at != '\0';) {
        size_t all = strcspn(at, ";");
        if (all > length && at[length] == '=' && strncmp(at, key, length) == 0) {
            *size = all - length - 1;
            return at + length + 1;
        }
        at += all + (at[all] == ';');
    }
    return NULL;
}

bool external_are_in_same_group(const struct external_run *a, const struct external_run *b,
                                const char *key)
{
    size_t one = 0, other = 0;
    const char *of_a = external_value_of_group_key(a, key, &one),
               *of_b = external_value_of_group_key(b, key, &other);
    return of_a != NULL && of_b != NULL && one == other && memcmp(of_a, of_b, one) == 0;
}

bool external_is_first_of_set(const struct external_runs *runs, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (external_is_in_set(&runs->rows[k], runs->rows[i].cells[EXTERNAL_SET]))
            return false;
    return true;
}

/* ---- reading ---- */

static enum status read_number(const struct record *record, enum external_column column,
                               double *value, struct diag *diag)
{
    if (parse_double(record->fields[column], record->field_sizes[column], value) &&
        isfinite(*value) && *value > 0)
        return STATUS_OK;
    return records_report_expected(record, &columns, column, "a number above 0", diag);
}

/* Sets *index to the index of a cell's word in names[0..count). Fails if it is none of them; the message lists them. */
static enum status read_word_index(const struct record *record, enum external_column column,
                                   const char *const *names, size_t count, size_t *index,
                                   struct diag *diag)
{
    struct text all = {0};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], record->fields[column]) == 0) {
            *index = i;
            text_release(&all);
            return STATUS_OK;
        }
        text_printf(&all, "%s'%s'", i == 0 ? "" : i + 1 == count ? " or " : ", ", names[i]);
    }
    enum status status = records_report_expected(record, &columns, column, all.data, diag);
    text_release(&all);
    return status;
}

static enum status read_second_published_value(const struct record *record,
                                               struct external_run *row, struct diag *diag)
{
    const char *names[EXTERNAL_METRIC_COUNT];
    size_t index = 0;
    for (size_t i = 0; i < EXTERNAL_METRIC_COUNT; i++)
        names[i] = metrics[i].name;
    enum status status =
        read_word_index(record, EXTERNAL_SECOND_METRIC, names, EXTERNAL_METRIC_COUNT, &index, diag);
    if (status != STATUS_OK)
        return status;
    row->second_metric = (enum external_second_metric)index;
    if (row->second_metric == EXTERNAL_NO_SECOND_METRIC)
        return record->field_sizes[EXTERNAL_SECOND_VALUE] == 0
                   ? STATUS_OK
                   : records_report_expected(record, &columns, EXTERNAL_SECOND_VALUE,
                                             "nothing, since second_metric is empty", diag);
    status = read_number(record, EXTERNAL_SECOND_VALUE, &row->second_value, diag);
    row->second_value *= metrics[row->second_metric].scale;
    return status;
}

/* Reads the metric, the value and the unit of a row. */
static enum status read_published_value(const struct record *record, struct external_run *row,
                                        struct diag *diag)
{
    const char *field = record->fields[EXTERNAL_VALUE];
    const size_t size = record->field_sizes[EXTERNAL_VALUE];
    if (!measurement_find_metric(record->fields[EXTERNAL_METRIC], &row->metric))
        return records_report_expected(record, &columns, EXTERNAL_METRIC, "a metric", diag);
    const struct measurement_metric_info *info = &measurement_metrics[row->metric];
    const char *word = measurement_word_instead_of_number(row->metric);
    const bool is_word = word != NULL && strcmp(field, word) == 0;
    row->is_number = parse_double(field, size, &row->value) && isfinite(row->value);
    if (!row->is_number)
        row->value = 0;
    const char *expected = NULL; /* what the value should be; NULL: it is right */
    if (info->score == SCORE_VERDICT && !is_word)
        expected = "'OOM'";
    else if (info->score == SCORE_NONE && size > 0)
        expected = "nothing";
    else if (info->score == SCORE_LENGTH && !is_word && !(row->is_number && row->value > 0))
        expected = "a length or 'model does not fit'";
    else if (info->score == SCORE_RELATIVE && !(row->is_number && row->value >= 0))
        expected = "a number that is not negative";
    else if (info->quantity == QUANTITY_FRACTION && row->value > 1)
        expected = "a fraction from 0 to 1";
    if (expected != NULL)
        return records_report_expected(record, &columns, EXTERNAL_VALUE, expected, diag);
    struct text right = {0};
    enum status status = STATUS_OK;
    if (!measurement_find_scale_of_unit(row->metric, record->fields[EXTERNAL_UNIT], &row->si_factor,
                                        &right))
        status = records_report_field(record, column_names[EXTERNAL_UNIT], diag,
                                      "'%s' has the unit %s, not '%.100s'", info->name, right.data,
                                      record->fields[EXTERNAL_UNIT]);
    text_release(&right);
    return status;
}

/* Reads the counts of a row. A training step must have GPUs, length and batches; degrees may always be absent. */
static enum status read_sizes_and_degrees(const struct record *record, struct external_run *row,
                                          bool is_step, struct diag *diag)
{
    static const enum external_column degrees[] = {EXTERNAL_TP, EXTERNAL_CP, EXTERNAL_PP,
                                                   EXTERNAL_VPP, EXTERNAL_DP};
    const struct {
        enum external_column column;
        int64_t *value;
    } counts[] = {{EXTERNAL_GPUS, &row->gpus},
                  {EXTERNAL_SEQ_LEN, &row->seq_len},
                  {EXTERNAL_MICRO_BATCH, &row->micro_batch},
                  {EXTERNAL_GLOBAL_BATCH, &row->global_batch}};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(counts); i++)
        status = records_read_count_field(record, &columns, counts[i].column, !is_step,
                                          counts[i].value, diag);
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(degrees); i++) {
        int64_t degree;
        status = records_read_count_field(record, &columns, degrees[i], true, &degree, diag);
    }
    return status;
}

/* Fails unless the metric of a training step is one from which the step's time follows, and its value is above 0. */
static enum status check_step(const struct record *record, const struct external_run *row,
                              struct diag *diag)
{
    static const bool of_step[METRIC_COUNT] = {
        [METRIC_TGS] = true,          [METRIC_STEP_MS] = true,
        [METRIC_TOKENS_PER_S] = true, [METRIC_SEQUENCES_PER_S] = true,
        [METRIC_TFLOPS] = true,
    };
    if (!of_step[row->metric])
        return records_report_expected(
            record, &columns, EXTERNAL_METRIC,
            "tgs, step_ms, tokens_per_s, sequences_per_s or tflops, since "
            "measured_step_s is given",
            diag);
    return row->value > 0 ? STATUS_OK
                          : records_report_expected(record, &columns, EXTERNAL_VALUE,
                                                    "a number above 0", diag);
}

/* Fails unless the columns `counts` and `against` fit the metric. `counts` may be "least" only for max_seq_len.
 * `against` must be filled for speedup, and must be empty for all other metrics. */
static enum status check_columns_fit_metric(const struct record *record,
                                            const struct external_run *row, struct diag *diag)
{
    const bool is_speedup = row->metric == METRIC_SPEEDUP;
    if (row->is_lower_bound && row->metric != METRIC_MAX_SEQ_LEN)
        return records_report_field(record, column_names[EXTERNAL_COUNTS], diag,
                                    "'least' is for max_seq_len only");
    if (is_speedup != (record->field_sizes[EXTERNAL_AGAINST] > 0))
        return records_report_field(record, column_names[EXTERNAL_AGAINST], diag,
                                    is_speedup ? "is empty, and metric is speedup"
                                               : "is for metric speedup only");
    return STATUS_OK;
}

static enum status read_row(void *context, const struct record *record, struct diag *diag)
{
    struct external_runs *runs = context;
    struct external_run row = {.place = record->place};
    const char *counts = record->fields[EXTERNAL_COUNTS];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < EXTERNAL_COLUMN_COUNT; i++)
        if (needed[i] && record->field_sizes[i] == 0)
            return records_report_field(record, column_names[i], diag, "is empty");
    if (record->field_sizes[EXTERNAL_STEP_S] > 0)
        status = read_number(record, EXTERNAL_STEP_S, &row.step_s, diag);
    if (status == STATUS_OK)
        status = read_sizes_and_degrees(record, &row, row.step_s > 0, diag);
    if (status == STATUS_OK)
        status = read_published_value(record, &row, diag);
    if (status == STATUS_OK && row.step_s > 0)
        status = check_step(record, &row, diag);
    if (status == STATUS_OK)
        status = read_second_published_value(record, &row, diag);
    row.is_lower_bound = strcmp(counts, least) == 0;
    row.is_counted = counts[0] == '\0' || strcmp(counts, yes) == 0 || row.is_lower_bound;
    if (status == STATUS_OK)
        status = check_columns_fit_metric(record, &row, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < EXTERNAL_COLUMN_COUNT; i++)
        row.cells[i] = arena_text(&runs->arena, record->fields[i], record->field_sizes[i]);
    runs->rows = heap_grow(runs->rows, &runs->capacity, runs->row_count + 1, sizeof *runs->rows);
    runs->rows[runs->row_count++] = row;
    return STATUS_OK;
}

struct row_id {
    const char *id;
    struct loc place;
};

/* Orders rows by id, and those with equal ids by line. */
static int compare_by_id(const void *a, const void *b)
{
    const struct row_id *one = a, *other = b;
    int order = strcmp(one->id, other->id);
    return order != 0                            ? order
           : one->place.line < other->place.line ? -1
                                                 : one->place.line > other->place.line;
}

static enum status check_ids_are_unique(const struct external_runs *runs, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct row_id *row = heap_zalloc(runs->row_count + 1, sizeof *row);
    for (size_t i = 0; i < runs->row_count; i++)
        row[i] = (struct row_id){runs->rows[i].cells[EXTERNAL_ID], runs->rows[i].place};
    qsort(row, runs->row_count, sizeof *row, compare_by_id);
    for (size_t i = 1; status == STATUS_OK && i < runs->row_count; i++)
        if (strcmp(row[i].id, row[i - 1].id) == 0)
            status = diag_error(diag, row[i].place, STATUS_BAD_INPUT,
                                "column 'id': '%.100s' is also the id of the row in line %u",
                                row[i].id, (unsigned)row[i - 1].place.line);
    free(row);
    return status;
}

enum status external_parse(struct external_runs *runs, const char *name, const char *data,
                           size_t size, struct diag *diag)
{
    enum status status = records_parse_table(name, data, size, &columns, read_row, runs, diag);
    return status == STATUS_OK ? check_ids_are_unique(runs, diag) : status;
}

enum status external_load(struct external_runs *runs, const char *path, struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    const char *name = arena_text(&runs->arena, path, strlen(path));
    if (status == STATUS_OK)
        status = external_parse(runs, name, text.data, text.size, diag);
    text_release(&text);
    return status;
}

enum status external_load_shipped(struct external_runs *runs, struct diag *diag)
{
    static const char *const shipped[] = {"traces/published/measurements.csv",
                                          "traces/published/external.csv",
                                          "traces/published/external-2026-11.csv"};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(shipped); i++) {
        struct text path = {0};
        status = data_path(&path, shipped[i], diag);
        if (status == STATUS_OK)
            status = external_load(runs, path.data, diag);
        text_release(&path);
    }
    return status;
}

/* ---- printing ---- */

static void append_number_if_finite(struct text *out, double value)
{
    if (isfinite(value))
        text_printf(out, "%.6g", value);
}

static void append_whole_bytes_if_finite(struct text *out, double bytes)
{
    if (isfinite(bytes))
        text_put_double(out, round(bytes));
}

static void append_predicted(struct text *out, const struct external_prediction *result)
{
    if (result->predicted_text != NULL)
        records_append_field(out, result->predicted_text);
    else if (isfinite(result->predicted)) /* lengths with all their digits */
        text_printf(out, result->predicted == floor(result->predicted) ? "%.15g" : "%.6g",
                    result->predicted);
}

struct external_prediction external_make_unknown_prediction(void)
{
    return (struct external_prediction){
        .outcome = OUTCOME_PREDICTION_FAILED,
        .predicted = NAN,
        .relative_error = NAN,
        .step_s = NAN,
        .peak_bytes = NAN,
        .reserved_bytes = NAN,
        .predicted_memory_bytes = NAN,
        .memory_error = NAN,
    };
}

void external_print_columns(struct text *out)
{
    records_append_fields(out, columns.names, columns.column_count);
    text_putc(out, '\n');
}

void external_print(const struct external_runs *runs, const struct external_prediction *result,
                    struct text *out)
{
    for (size_t row = 0; row < runs->row_count; row++) {
        const struct external_prediction *r = &result[row];
        const char *kind =
            external_memory_kind_name(external_metric_memory_kind(runs->rows[row].second_metric));
        records_append_fields(out, runs->rows[row].cells, EXTERNAL_COLUMN_COUNT);
#define PUT(name, put)                                                                             \
    text_putc(out, ',');                                                                           \
    put;
        EXTERNAL_PREDICTION_COLUMNS(PUT)
#undef PUT
        text_putc(out, '\n');
    }
}
