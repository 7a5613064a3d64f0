#include "traces/residuals.h"

#include "base/data_path.h"
#include "base/file_set.h"
#include "traces/records.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum residual_column_kind { WORD, OPTIONAL_WORD, SWITCH, COUNT, SECONDS, LOGARITHM };

/* COLUMN(name, member of struct residual, kind, words for false and for true): the columns, in order. */
/* clang-format off */
#define RESIDUAL_COLUMNS(COLUMN)                                           \
    COLUMN("source",      source,                 WORD,          NULL, NULL)       \
    COLUMN("laboratory",  laboratory,             WORD,          NULL, NULL)       \
    COLUMN("run",         run,                    WORD,          NULL, NULL)       \
    COLUMN("set",         set,                    OPTIONAL_WORD, NULL, NULL)       \
    COLUMN("device",      device,                 WORD,          NULL, NULL)       \
    COLUMN("framework",   framework,              WORD,          NULL, NULL)       \
    COLUMN("attention",   attention,              WORD,          NULL, NULL)       \
    COLUMN("context",     context,                WORD,          NULL, NULL)       \
    COLUMN("activations", activations,            WORD,          NULL, NULL)       \
    COLUMN("optimizer",   host_optimizer,         SWITCH,        "device", "host") \
    COLUMN("nodes",       spans_several_nodes,          SWITCH,        "one", "several") \
    COLUMN("tp",          tp,                     COUNT,         NULL, NULL)       \
    COLUMN("pp",          pp,                     COUNT,         NULL, NULL)       \
    COLUMN("gpus",        gpus,                   COUNT,         NULL, NULL)       \
    COLUMN("seq_len",     seq_len,                COUNT,         NULL, NULL)       \
    COLUMN("sequences",   sequences,              COUNT,         NULL, NULL)       \
    COLUMN("parameters",  parameters,             COUNT,         NULL, NULL)       \
    COLUMN("layer_s",     layer_s,                SECONDS,       NULL, NULL)       \
    COLUMN("time",        log_ratio[RESIDUAL_TIME], LOGARITHM,     NULL, NULL)       \
    COLUMN("memory",      log_ratio[RESIDUAL_MEMORY], LOGARITHM,     NULL, NULL)       \
    COLUMN("first",       log_ratio_at_first_prediction,                LOGARITHM,     NULL, NULL)
/* clang-format on */

static const struct {
    size_t offset; /* offset of the member in struct residual */
    enum residual_column_kind kind;
    const char *words[2];
} table[] = {
#define COLUMN(name, member, kind, no, yes) {offsetof(struct residual, member), kind, {no, yes}},
    RESIDUAL_COLUMNS(COLUMN)
#undef COLUMN
};
enum { COLUMN_COUNT = ARRAY_LEN(table) };

static const char *const names[] = {
#define COLUMN(name, member, kind, no, yes) name,
    RESIDUAL_COLUMNS(COLUMN)
#undef COLUMN
};
static const struct record_columns columns = {names, COLUMN_COUNT, .has_any_order = false};

/* Return the address of the member of a row that column i holds. */
static const char **text_member_address(struct residual *row, size_t i)
{
    return (const char **)((char *)row + table[i].offset);
}

static bool *switch_member_address(struct residual *row, size_t i)
{
    return (bool *)((char *)row + table[i].offset);
}

static int64_t *count_member_address(struct residual *row, size_t i)
{
    return (int64_t *)((char *)row + table[i].offset);
}

static double *number_member_address(struct residual *row, size_t i)
{
    return (double *)((char *)row + table[i].offset);
}

void residuals_release(struct residuals *residuals)
{
    free(residuals->rows);
    arena_release(&residuals->arena);
    *residuals = (struct residuals){0};
}

void residuals_add(struct residuals *residuals, const struct residual *row)
{
    struct residual copy = *row;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (table[i].kind == WORD || table[i].kind == OPTIONAL_WORD) {
            const char **text = text_member_address(&copy, i);
            *text = arena_text(&residuals->arena, *text, strlen(*text));
        }
    residuals->rows = heap_grow(residuals->rows, &residuals->capacity, residuals->row_count + 1,
                                sizeof *residuals->rows);
    residuals->rows[residuals->row_count++] = copy;
}

/* ---- reading ---- */

static enum status read_field(const struct record *record, size_t i, struct residual *row,
                              struct diag *diag)
{
    const char *field = record->fields[i];
    size_t size = record->field_sizes[i];
    double *number = number_member_address(row, i);
    switch (table[i].kind) {
    case WORD:
        if (size == 0)
            return records_report_field(record, names[i], diag, "is empty");
        *text_member_address(row, i) = field;
        return STATUS_OK;
    case OPTIONAL_WORD:
        *text_member_address(row, i) = field;
        return STATUS_OK;
    case SWITCH:
        *switch_member_address(row, i) = strcmp(field, table[i].words[true]) == 0;
        return *switch_member_address(row, i) || strcmp(field, table[i].words[false]) == 0
                   ? STATUS_OK
                   : records_report_field(record, names[i], diag, "expected '%s' or '%s', not '%s'",
                                          table[i].words[false], table[i].words[true], field);
    case COUNT:
        return records_read_count_field(record, &columns, i, false, count_member_address(row, i),
                                        diag);
    case SECONDS:
        return parse_double(field, size, number) && isfinite(*number) && *number > 0
                   ? STATUS_OK
                   : records_report_expected(record, &columns, i, "a number above 0", diag);
    default:
        if (size == 0)
            *number = NAN;
        else if (!parse_double(field, size, number) || !isfinite(*number))
            return records_report_expected(record, &columns, i, "a number or nothing", diag);
        return STATUS_OK;
    }
}

static enum status read_row(void *context, const struct record *record, struct diag *diag)
{
    struct residual row = {0};
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        enum status status = read_field(record, i, &row, diag);
        if (status != STATUS_OK)
            return status;
    }
    residuals_add(context, &row);
    return STATUS_OK;
}

enum status residuals_parse(struct residuals *residuals, const char *name, const char *data,
                            size_t size, struct diag *diag)
{
    return records_parse_table(name, data, size, &columns, read_row, residuals, diag);
}

typedef enum status parse_function(struct residuals *residuals, const char *name, const char *data,
                                   size_t size, struct diag *diag);

/* Reads a file of the data folder by `parse`; does nothing if the folder lacks the file. */
static enum status load_shipped(struct residuals *residuals, const char *file,
                                parse_function *parse, struct diag *diag)
{
    struct text path = {0}, text = {0};
    struct diag unread = {0};
    enum status status = STATUS_OK;
    if (data_path(&path, file, &unread) == STATUS_OK) {
        status = text_read(&text, path.data, diag);
        if (status == STATUS_OK)
            status = parse(residuals, path.data, text.data, text.size, diag);
    }
    diag_release(&unread);
    text_release(&text);
    text_release(&path);
    return status;
}

enum status residuals_load_shipped(struct residuals *residuals, struct diag *diag)
{
    return load_shipped(residuals, "traces/published/residuals.csv", residuals_parse, diag);
}

/* ---- errors at first sight (residual.log_ratio_at_first_prediction) ---- */

enum { FIRST_ID, FIRST_SOURCE, FIRST_COMMIT, FIRST_ARGS, FIRST_VALUE, FIRST_COUNT };
static const char *const first_names[FIRST_COUNT] = {"id", "source", "commit", "args", "first"};
static const struct record_columns first_columns = {first_names, FIRST_COUNT,
                                                    .has_any_order = false};

static enum status read_first_prediction_row(void *context, const struct record *record,
                                             struct diag *diag)
{
    struct residuals *residuals = context;
    double first;
    if (!parse_double(record->fields[FIRST_VALUE], record->field_sizes[FIRST_VALUE], &first) ||
        !isfinite(first))
        return records_report_expected(record, &first_columns, FIRST_VALUE, "a number", diag);
    for (size_t i = 0; i < residuals->row_count; i++)
        if (strcmp(residuals->rows[i].run, record->fields[FIRST_ID]) == 0 &&
            strcmp(residuals->rows[i].source, record->fields[FIRST_SOURCE]) == 0)
            residuals->rows[i].log_ratio_at_first_prediction = first;
    return STATUS_OK;
}

enum status residuals_parse_first_predictions(struct residuals *residuals, const char *name,
                                              const char *data, size_t size, struct diag *diag)
{
    return records_parse_table(name, data, size, &first_columns, read_first_prediction_row,
                               residuals, diag);
}

enum status residuals_load_first_predictions(struct residuals *residuals, struct diag *diag)
{
    return load_shipped(residuals, "traces/published/first.csv", residuals_parse_first_predictions,
                        diag);
}

/* ---- printing ---- */

static void put_field(struct text *out, struct residual *row, size_t i)
{
    switch (table[i].kind) {
    case WORD:
    case OPTIONAL_WORD:
        records_append_field(out, *text_member_address(row, i));
        break;
    case SWITCH:
        text_puts(out, table[i].words[*switch_member_address(row, i)]);
        break;
    case COUNT:
        text_printf(out, "%lld", (long long)*count_member_address(row, i));
        break;
    case SECONDS:
        text_printf(out, "%.4g", *number_member_address(row, i));
        break;
    default:
        if (!isnan(*number_member_address(row, i)))
            text_printf(out, "%.4f", *number_member_address(row, i));
    }
}

void residuals_print(const struct residuals *residuals, struct text *out)
{
    records_append_fields(out, names, COLUMN_COUNT);
    text_putc(out, '\n');
    for (size_t r = 0; r < residuals->row_count; r++) {
        for (size_t i = 0; i < COLUMN_COUNT; i++) {
            text_puts(out, i > 0 ? "," : "");
            put_field(out, &residuals->rows[r], i);
        }
        text_putc(out, '\n');
    }
}

/* ---- features as JSON ---- */

/* Features are the columns from FEATURES_BEGIN (device) to FEATURES_END - 1 (layer_s); columns before them say which
 * run it is, those after them are its residuals. */
enum { FEATURES_BEGIN = 4, FEATURES_END = COLUMN_COUNT - 3 };

void residual_put_json(struct json_out *json, const struct residual *row)
{
    struct residual copy = *row;
    for (size_t i = FEATURES_BEGIN; i < FEATURES_END; i++) {
        if (table[i].kind == SWITCH)
            json_put_text(json, names[i], table[i].words[*switch_member_address(&copy, i)]);
        else if (table[i].kind == COUNT)
            json_put_count(json, names[i], (uint64_t)*count_member_address(&copy, i));
        else if (table[i].kind == SECONDS)
            json_put_number(json, names[i], *number_member_address(&copy, i));
        else
            json_put_text(json, names[i], *text_member_address(&copy, i));
    }
}

enum status residual_read_json(struct residual *row, struct json_node object, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = FEATURES_BEGIN; i < FEATURES_END && status == STATUS_OK; i++) {
        const char *word;
        switch (table[i].kind) {
        case SWITCH:
            status = json_get_string(object, names[i], &word, diag);
            if (status == STATUS_OK)
                *switch_member_address(row, i) = strcmp(word, table[i].words[true]) == 0;
            break;
        case COUNT:
            status =
                json_get_i64(object, names[i], 0, INT64_MAX, count_member_address(row, i), diag);
            break;
        case SECONDS:
            status = json_get_double(object, names[i], 0, 1e9, number_member_address(row, i), diag);
            break;
        default:
            status = json_get_string(object, names[i], text_member_address(row, i), diag);
        }
    }
    return status;
}

/* ---- files ---- */

enum status residuals_save(const struct residuals *residuals, const char *path, struct diag *diag)
{
    struct text out = {0};
    residuals_print(residuals, &out);
    enum status status = file_set_write_single_file(path, out.data, out.size, diag);
    text_release(&out);
    return status;
}
