#include "traces/external.h"
#include "base/file_set.h"

#include "traces/records.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The columns of the file; a comparison appends the last RESULT_COLUMNS. */
static const char *const column_names[] = {
#define COLUMN(symbol, name) name,
    EXTERNAL_COLUMNS(COLUMN)
#undef COLUMN
        "predicted_step_s",
    "relative_error",
    "predicted_peak_bytes",
    "predicted_reserved_bytes",
    "memory_error",
    "status",
};
enum { RESULT_COLUMNS = 6 };
_Static_assert(ARRAY_LEN(column_names) == EXTERNAL_COLUMN_COUNT + RESULT_COLUMNS,
               "one name for each column");
/* Columns that a file must have. */
static const bool needed[ARRAY_LEN(column_names)] = {
    [EXTERNAL_ID] = true,
    [EXTERNAL_SOURCE] = true,
    [EXTERNAL_GPU] = true,
    [EXTERNAL_GPUS] = true,
    [EXTERNAL_SEQ_LEN] = true,
    [EXTERNAL_MICRO_BATCH] = true,
    [EXTERNAL_GLOBAL_BATCH] = true,
    [EXTERNAL_FRAMEWORK] = true,
    [EXTERNAL_STEP_S] = true,
    [EXTERNAL_PUBLISHED_UNIT] = true,
    [EXTERNAL_PUBLISHED_VALUE] = true,
    [EXTERNAL_ARGS] = true,
};
static const struct record_columns columns = {column_names, ARRAY_LEN(column_names), RESULT_COLUMNS,
                                              .by_name = true, .needed = needed};

static const struct {
    const char *name;
    double scale;
} metrics[EXTERNAL_METRIC_COUNT] = {[EXTERNAL_NO_METRIC] = {"", 0},
#define METRIC(symbol, name, scale) [EXTERNAL_METRIC_##symbol] = {name, scale},
                                    EXTERNAL_METRICS(METRIC)
#undef METRIC
};

static const char *const unit_names[EXTERNAL_UNIT_COUNT] = {
#define UNIT(symbol, name) [EXTERNAL_UNIT_##symbol] = name,
    EXTERNAL_UNITS(UNIT)
#undef UNIT
};

static const char yes[] = "yes"; /* in columns as_run and counts */

void external_release(struct external_runs *runs)
{
    free(runs->row);
    arena_release(&runs->arena);
    *runs = (struct external_runs){0};
}

const char *external_column_name(enum external_column column)
{
    assert(column < EXTERNAL_COLUMN_COUNT);
    return column_names[column];
}

bool external_as_run(const struct external_run *run)
{
    return strcmp(run->text[EXTERNAL_AS_RUN], yes) == 0;
}

const char *external_laboratory(const struct external_run *run)
{
    const char *laboratory = run->text[EXTERNAL_LABORATORY];
    return laboratory[0] != '\0' ? laboratory : run->text[EXTERNAL_SOURCE];
}

bool external_in_set(const struct external_run *run, const char *set)
{
    return strcmp(run->text[EXTERNAL_SET], set) == 0;
}

bool external_is_first_of_set(const struct external_runs *runs, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (external_in_set(&runs->row[k], runs->row[i].text[EXTERNAL_SET]))
            return false;
    return true;
}

/* ---- reading ---- */

static enum status recognise_row(void *context, const struct record *record, struct diag *diag)
{
    (void)diag;
    bool *is_id = context;
    for (size_t i = 0; i < record->count; i++)
        *is_id |= strcmp(record->field[i], column_names[EXTERNAL_ID]) == 0;
    return STATUS_NO; /* the first row is enough */
}

bool external_recognise(const char *data, size_t size)
{
    bool is_id = false;
    struct record_handler handler = {.context = &is_id, .row = recognise_row};
    records_parse("", data, size, &handler, NULL);
    return is_id;
}

static enum status read_number(const struct record *record, enum external_column column,
                               double *value, struct diag *diag)
{
    if (parse_double(record->field[column], record->size[column], value) && isfinite(*value) &&
        *value > 0)
        return STATUS_OK;
    return records_expected(record, &columns, column, "a number above 0", diag);
}

/* Sets *index to the number of a column's word among names[0..count). */
static enum status one_of(const struct record *record, enum external_column column,
                          const char *const *names, size_t count, size_t *index, struct diag *diag)
{
    struct text all = {0};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], record->field[column]) == 0) {
            *index = i;
            text_release(&all);
            return STATUS_OK;
        }
        text_printf(&all, "%s'%s'", i == 0 ? "" : i + 1 == count ? " or " : ", ", names[i]);
    }
    enum status status = records_expected(record, &columns, column, all.data, diag);
    text_release(&all);
    return status;
}

static enum status read_second(const struct record *record, struct external_run *row,
                               struct diag *diag)
{
    const char *names[EXTERNAL_METRIC_COUNT];
    size_t index = 0;
    for (size_t i = 0; i < EXTERNAL_METRIC_COUNT; i++)
        names[i] = metrics[i].name;
    enum status status =
        one_of(record, EXTERNAL_SECOND_METRIC, names, EXTERNAL_METRIC_COUNT, &index, diag);
    if (status != STATUS_OK)
        return status;
    row->second_metric = (enum external_metric)index;
    if (row->second_metric == EXTERNAL_NO_METRIC)
        return record->size[EXTERNAL_SECOND_VALUE] == 0
                   ? STATUS_OK
                   : records_expected(record, &columns, EXTERNAL_SECOND_VALUE,
                                      "nothing, since second_metric is empty", diag);
    status = read_number(record, EXTERNAL_SECOND_VALUE, &row->second, diag);
    row->second *= metrics[row->second_metric].scale;
    return status;
}

static enum status read_row(void *context, const struct record *record, struct diag *diag)
{
    static const enum external_column words[] = {EXTERNAL_ID, EXTERNAL_SOURCE, EXTERNAL_GPU,
                                                 EXTERNAL_FRAMEWORK, EXTERNAL_ARGS};
    static const enum external_column degrees[] = {EXTERNAL_TP, EXTERNAL_CP, EXTERNAL_PP,
                                                   EXTERNAL_VPP, EXTERNAL_DP};
    struct external_runs *runs = context;
    struct external_run row = {.at = record->at};
    const struct {
        enum external_column column;
        int64_t *value;
    } counts[] = {{EXTERNAL_GPUS, &row.gpus},
                  {EXTERNAL_SEQ_LEN, &row.seq_len},
                  {EXTERNAL_MICRO_BATCH, &row.micro_batch},
                  {EXTERNAL_GLOBAL_BATCH, &row.global_batch}};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (record->size[words[i]] == 0)
            return records_field_error(record, column_names[words[i]], diag, "is empty");
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(counts); i++)
        status =
            records_read_count(record, &columns, counts[i].column, false, counts[i].value, diag);
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(degrees); i++) {
        int64_t degree;
        status = records_read_count(record, &columns, degrees[i], true, &degree, diag);
    }
    size_t unit = 0;
    if (status == STATUS_OK)
        status = read_number(record, EXTERNAL_STEP_S, &row.step_s, diag);
    if (status == STATUS_OK)
        status =
            one_of(record, EXTERNAL_PUBLISHED_UNIT, unit_names, EXTERNAL_UNIT_COUNT, &unit, diag);
    if (status == STATUS_OK)
        status = read_number(record, EXTERNAL_PUBLISHED_VALUE, &row.published, diag);
    row.unit = (enum external_unit)unit;
    row.counts =
        record->size[EXTERNAL_COUNTS] == 0 || strcmp(record->field[EXTERNAL_COUNTS], yes) == 0;
    if (status == STATUS_OK)
        status = read_second(record, &row, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < EXTERNAL_COLUMN_COUNT; i++)
        row.text[i] = arena_text(&runs->arena, record->field[i], record->size[i]);
    runs->row = heap_grow(runs->row, &runs->capacity, runs->count + 1, sizeof *runs->row);
    runs->row[runs->count++] = row;
    return STATUS_OK;
}

struct named {
    const char *id;
    struct loc at;
};

/* Orders rows by id, and those with equal ids by line. */
static int by_id(const void *a, const void *b)
{
    const struct named *one = a, *other = b;
    int order = strcmp(one->id, other->id);
    return order != 0 ? order : one->at.line < other->at.line ? -1 : one->at.line > other->at.line;
}

static enum status check_ids(const struct external_runs *runs, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct named *row = heap_zalloc(runs->count + 1, sizeof *row);
    for (size_t i = 0; i < runs->count; i++)
        row[i] = (struct named){runs->row[i].text[EXTERNAL_ID], runs->row[i].at};
    qsort(row, runs->count, sizeof *row, by_id);
    for (size_t i = 1; status == STATUS_OK && i < runs->count; i++)
        if (strcmp(row[i].id, row[i - 1].id) == 0)
            status = diag_error(diag, row[i].at, STATUS_BAD_INPUT,
                                "column 'id': '%.100s' is also the id of the row in line %u",
                                row[i].id, (unsigned)row[i - 1].at.line);
    free(row);
    return status;
}

enum status external_parse(struct external_runs *runs, const char *name, const char *data,
                           size_t size, struct diag *diag)
{
    enum status status = records_parse_table(name, data, size, &columns, read_row, runs, diag);
    return status == STATUS_OK ? check_ids(runs, diag) : status;
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

/* ---- printing ---- */

static void put_number(struct text *out, double value)
{
    text_putc(out, ',');
    if (isfinite(value))
        text_printf(out, "%.6g", value);
}

static void put_bytes(struct text *out, double bytes)
{
    text_putc(out, ',');
    if (isfinite(bytes))
        text_put_double(out, round(bytes));
}

void external_print(const struct external_runs *runs, const struct external_result *result,
                    struct text *out)
{
    records_put_fields(out, columns.name, columns.count);
    text_putc(out, '\n');
    for (size_t row = 0; row < runs->count; row++) {
        records_put_fields(out, runs->row[row].text, EXTERNAL_COLUMN_COUNT);
        const struct external_result *r = &result[row];
        put_number(out, r->step_s);
        put_number(out, r->error);
        put_bytes(out, r->peak_bytes);
        put_bytes(out, r->reserved_bytes);
        put_number(out, r->memory_error);
        text_putc(out, ',');
        measurement_put_status(out, r->outcome, r->why);
        text_putc(out, '\n');
    }
}

enum status external_save(const struct external_runs *runs, const struct external_result *result,
                          const char *path, struct diag *diag)
{
    struct text out = {0};
    external_print(runs, result, &out);
    enum status status = file_set_write(path, out.data, out.size, diag);
    text_release(&out);
    return status;
}
