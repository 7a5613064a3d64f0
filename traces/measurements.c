#include "traces/measurements.h"
#include "base/file_set.h"

#include "traces/records.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define METRIC_ROW(symbol, name, quantity, score)                                                  \
    [METRIC_##symbol] = {name, QUANTITY_##quantity, SCORE_##score},
const struct measurement_metric_info measurement_metrics[METRIC_COUNT] = {
    [METRIC_UNKNOWN] = {"", QUANTITY_NONE, SCORE_RELATIVE}, MEASUREMENT_METRICS(METRIC_ROW)};
#undef METRIC_ROW

/* The columns of the file; a comparison appends the last RESULT_COLUMNS. */
static const char *const column_names[] = {
    "source", "table", "system", "model", "cluster",   "gpus",           "seq_len", "options",
    "metric", "value", "unit",   "note",  "predicted", "relative_error", "status",
};
enum { RESULT_COLUMNS = 3 };
_Static_assert(ARRAY_LEN(column_names) == MEASUREMENT_COLUMN_COUNT + RESULT_COLUMNS,
               "one name for each column");
static const struct record_columns columns = {column_names, ARRAY_LEN(column_names), RESULT_COLUMNS,
                                              .by_name = false};

/* Units by quantity, and what they are in s, bytes, ... */
static const struct {
    const char *name;
    enum measurement_quantity quantity;
    double scale;
} units[] = {
    {"", QUANTITY_NONE, 1},
    {"fraction", QUANTITY_FRACTION, 1},
    {"ratio", QUANTITY_RATIO, 1},
    {"tokens", QUANTITY_TOKENS, 1},
    {"tokens/s/gpu", QUANTITY_TOKENS_PER_GPU, 1},
    {"s", QUANTITY_SECONDS, 1},
    {"ms", QUANTITY_SECONDS, 1e-3},
    {"us", QUANTITY_SECONDS, 1e-6},
    {"B", QUANTITY_BYTES, 1},
    {"MB", QUANTITY_BYTES, 1e6},
    {"GB", QUANTITY_BYTES, 1e9},
    {"TB", QUANTITY_BYTES, 1e12},
    {"MiB", QUANTITY_BYTES, 1048576},
    {"GiB", QUANTITY_BYTES, 1073741824},
    {"TiB", QUANTITY_BYTES, 1099511627776},
};

/* Values that are words, by how the metric is scored. */
static const char *const words[SCORE_COUNT] = {
    [SCORE_LENGTH] = "model does not fit",
    [SCORE_VERDICT] = "OOM",
};

static const char *const outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_OK] = "ok",
    [OUTCOME_RIGHT] = "right",
    [OUTCOME_WRONG] = "wrong",
    [OUTCOME_ZERO] = "zero",
    [OUTCOME_UNSUPPORTED] = "unsupported",
    [OUTCOME_ERROR] = "error",
};

void measurements_release(struct measurements *measurements)
{
    free(measurements->row);
    arena_release(&measurements->arena);
    *measurements = (struct measurements){0};
}

const char *measurement_column_name(enum measurement_column column)
{
    assert(column < MEASUREMENT_COLUMN_COUNT);
    return column_names[column];
}

const char *measurement_outcome_name(enum measurement_outcome outcome)
{
    assert(outcome < OUTCOME_COUNT);
    return outcome_names[outcome];
}

const char *measurement_option(const struct measurement *row, const char *key)
{
    for (size_t i = 0; i < row->option_count; i++)
        if (strcmp(row->option[i].key, key) == 0)
            return row->option[i].value;
    return NULL;
}

const struct measurement_option *measurement_unknown_option(const struct measurement *row,
                                                            const char *const *known, size_t count)
{
    for (size_t i = 0; i < row->option_count; i++) {
        size_t k = 0;
        while (k < count && strcmp(row->option[i].key, known[k]) != 0)
            k++;
        if (k == count)
            return &row->option[i];
    }
    return NULL;
}

/* ---- reading ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* text[0..*size) without the blanks around it. */
static const char *trim(const char *text, size_t *size)
{
    while (*size > 0 && is_blank(text[0])) {
        text++;
        --*size;
    }
    while (*size > 0 && is_blank(text[*size - 1]))
        --*size;
    return text;
}

static enum status read_option(struct arena *arena, const struct record *record, const char *pair,
                               size_t size, struct measurement *row,
                               struct measurement_option *option, struct diag *diag)
{
    const char *name = column_names[MEASUREMENT_OPTIONS];
    int shown = size < 100 ? (int)size : 100;
    const char *equals = memchr(pair, '=', size);
    size_t key_size = equals ? (size_t)(equals - pair) : 0;
    size_t value_size = equals ? size - key_size - 1 : 0;
    const char *key = trim(pair, &key_size);
    const char *value = equals ? trim(equals + 1, &value_size) : NULL;
    if (key_size == 0 || value_size == 0)
        return records_field_error(record, name, diag,
                                   "expected key=value pairs separated by ';', not '%.*s'", shown,
                                   pair);
    option->key = arena_text(arena, key, key_size);
    option->value = arena_text(arena, value, value_size);
    if (measurement_option(row, option->key))
        return records_field_error(record, name, diag, "'%.100s' is given twice", option->key);
    return STATUS_OK;
}

static enum status read_options(struct arena *arena, const struct record *record,
                                struct measurement *row, struct diag *diag)
{
    const char *at = record->field[MEASUREMENT_OPTIONS];
    size_t size = record->size[MEASUREMENT_OPTIONS];
    if (trim(at, &size), size == 0)
        return STATUS_OK;
    size_t pairs = 1;
    for (const char *c = at; *c; c++)
        pairs += *c == ';';
    /* Each key is compared with all before it, so the limit keeps a row of many options from being slow. */
    enum { PAIR_LIMIT = 256 };
    if (pairs > PAIR_LIMIT)
        return records_field_error(record, column_names[MEASUREMENT_OPTIONS], diag,
                                   "more than %d options", PAIR_LIMIT);
    struct measurement_option *option = arena_array(arena, pairs, sizeof *option);
    row->option = option;
    for (size_t i = 0; i < pairs; i++) {
        size_t pair_size = strcspn(at, ";");
        enum status status = read_option(arena, record, at, pair_size, row, &option[i], diag);
        if (status != STATUS_OK)
            return status;
        row->option_count = i + 1;
        at += pair_size + 1;
    }
    return STATUS_OK;
}

static enum measurement_metric find_metric(const char *name)
{
    for (size_t i = METRIC_UNKNOWN + 1; i < METRIC_COUNT; i++)
        if (strcmp(measurement_metrics[i].name, name) == 0)
            return (enum measurement_metric)i;
    return METRIC_UNKNOWN;
}

static enum status read_unit(const struct record *record, struct measurement *row,
                             struct diag *diag)
{
    enum measurement_quantity quantity = measurement_metrics[row->metric].quantity;
    struct text right = {0};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (units[i].quantity != quantity)
            continue;
        if (strcmp(units[i].name, record->field[MEASUREMENT_UNIT]) == 0) {
            row->scale = units[i].scale;
            text_release(&right);
            return STATUS_OK;
        }
        text_printf(&right, "%s'%s'", right.size ? ", " : "", units[i].name);
    }
    enum status status = records_field_error(
        record, column_names[MEASUREMENT_UNIT], diag, "'%s' has the unit %s, not '%s'",
        record->field[MEASUREMENT_METRIC], right.data, record->field[MEASUREMENT_UNIT]);
    text_release(&right);
    return status;
}

static enum status read_value(const struct record *record, struct measurement *row,
                              struct diag *diag)
{
    const char *field = record->field[MEASUREMENT_VALUE];
    row->metric = find_metric(record->field[MEASUREMENT_METRIC]);
    row->scale = 1;
    row->is_number =
        parse_double(field, record->size[MEASUREMENT_VALUE], &row->value) && isfinite(row->value);
    if (!row->is_number)
        row->value = 0;
    if (row->metric == METRIC_UNKNOWN)
        return STATUS_OK;

    enum measurement_score score = measurement_metrics[row->metric].score;
    bool is_word = words[score] && strcmp(field, words[score]) == 0;
    if (score == SCORE_VERDICT && !is_word)
        return records_expected(record, &columns, MEASUREMENT_VALUE, "'OOM'", diag);
    if (score == SCORE_LENGTH && !is_word && !(row->is_number && row->value > 0))
        return records_expected(record, &columns, MEASUREMENT_VALUE,
                                "a length or 'model does not fit'", diag);
    if (score == SCORE_RELATIVE && !(row->is_number && row->value >= 0))
        return records_expected(record, &columns, MEASUREMENT_VALUE,
                                "a number that is not negative", diag);
    if (measurement_metrics[row->metric].quantity == QUANTITY_FRACTION && row->value > 1)
        return records_expected(record, &columns, MEASUREMENT_VALUE, "a fraction from 0 to 1",
                                diag);
    return read_unit(record, row, diag);
}

static enum status read_row(void *context, const struct record *record, struct diag *diag)
{
    static const enum measurement_column needed[] = {MEASUREMENT_SOURCE, MEASUREMENT_SYSTEM,
                                                     MEASUREMENT_METRIC, MEASUREMENT_VALUE};
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (record->size[needed[i]] == 0)
            return records_field_error(record, column_names[needed[i]], diag, "is empty");

    struct measurements *all = context;
    struct measurement row = {.at = record->at};
    enum status status =
        records_read_count(record, &columns, MEASUREMENT_GPUS, true, &row.gpus, diag);
    if (status == STATUS_OK)
        status =
            records_read_count(record, &columns, MEASUREMENT_SEQ_LEN, true, &row.seq_len, diag);
    if (status == STATUS_OK)
        status = read_options(&all->arena, record, &row, diag);
    if (status == STATUS_OK)
        status = read_value(record, &row, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < MEASUREMENT_COLUMN_COUNT; i++)
        row.text[i] = arena_text(&all->arena, record->field[i], record->size[i]);
    all->row = heap_grow(all->row, &all->capacity, all->count + 1, sizeof *all->row);
    all->row[all->count++] = row;
    return STATUS_OK;
}

enum status measurements_parse(struct measurements *measurements, const char *name,
                               const char *data, size_t size, struct diag *diag)
{
    return records_parse_table(name, data, size, &columns, read_row, measurements, diag);
}

enum status measurements_load(struct measurements *measurements, const char *path,
                              struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    const char *name = arena_text(&measurements->arena, path, strlen(path));
    if (status == STATUS_OK)
        status = measurements_parse(measurements, name, text.data, text.size, diag);
    text_release(&text);
    return status;
}

/* ---- printing ---- */

/* Appends `why` on one line: it may hold several messages, each on a line of its own. */
static void put_why(struct text *out, const char *why)
{
    size_t size = strlen(why);
    while (size > 0 && why[size - 1] == '\n')
        size--;
    for (size_t i = 0; i < size; i++) {
        if (why[i] == '\n')
            text_puts(out, "; ");
        else
            text_putc(out, why[i]);
    }
}

void measurement_put_status(struct text *out, enum measurement_outcome outcome, const char *why)
{
    struct text status = {0};
    text_puts(&status, measurement_outcome_name(outcome));
    if (why) {
        text_puts(&status, ": ");
        put_why(&status, why);
    }
    records_put_field(out, status.data);
    text_release(&status);
}

static void put_result(const struct measurement_result *result, struct text *out)
{
    text_putc(out, ',');
    if (result->predicted_text)
        records_put_field(out, result->predicted_text);
    else if (isfinite(result->predicted)) /* lengths with all their digits */
        text_printf(out, result->predicted == floor(result->predicted) ? "%.15g" : "%.6g",
                    result->predicted);
    text_putc(out, ',');
    if (isfinite(result->relative_error))
        text_printf(out, "%.6g", result->relative_error);
    text_putc(out, ',');
    measurement_put_status(out, result->outcome, result->why);
}

void measurements_print(const struct measurements *measurements,
                        const struct measurement_result *result, struct text *out)
{
    records_put_fields(out, columns.name, columns.count);
    text_putc(out, '\n');
    for (size_t row = 0; row < measurements->count; row++) {
        records_put_fields(out, measurements->row[row].text, MEASUREMENT_COLUMN_COUNT);
        put_result(&result[row], out);
        text_putc(out, '\n');
    }
}

enum status measurements_save(const struct measurements *measurements,
                              const struct measurement_result *result, const char *path,
                              struct diag *diag)
{
    struct text out = {0};
    measurements_print(measurements, result, &out);
    enum status status = file_set_write(path, out.data, out.size, diag);
    text_release(&out);
    return status;
}
