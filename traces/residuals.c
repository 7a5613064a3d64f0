#include "traces/residuals.h"

#include "base/data_path.h"
#include "base/file_set.h"
#include "traces/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum column { SOURCE, RUN, DEVICE, FRAMEWORK, NODES, TIME, MEMORY, COLUMN_COUNT };
static const char *const names[COLUMN_COUNT] = {
    "source", "run", "device", "framework", "nodes", "time", "memory",
};
_Static_assert((int)MEMORY - (int)TIME == (int)RESIDUAL_MEMORY, "residuals are the last columns");
static const char *const nodes[] = {"one", "several"};

void residuals_release(struct residuals *residuals)
{
    free(residuals->row);
    arena_release(&residuals->arena);
    *residuals = (struct residuals){0};
}

void residuals_add(struct residuals *residuals, const struct residual *row)
{
    struct residual copy = *row;
    const char **const text[] = {&copy.source, &copy.run, &copy.device, &copy.framework};
    for (size_t i = 0; i < ARRAY_LEN(text); i++)
        *text[i] = arena_text(&residuals->arena, *text[i], strlen(*text[i]));
    if (residuals->count == residuals->capacity) {
        residuals->capacity = heap_next_capacity(residuals->capacity, residuals->count + 1);
        residuals->row = heap_realloc(residuals->row, residuals->capacity, sizeof *residuals->row);
    }
    residuals->row[residuals->count++] = copy;
}

/* ---- reading ---- */

struct reader {
    struct residuals *residuals;
    bool named; /* the line of column names was read */
};

static enum status read_value(const struct record *record, enum column column, double *value,
                              struct diag *diag)
{
    *value = NAN;
    if (record->size[column] == 0)
        return STATUS_OK;
    if (parse_double(record->field[column], record->size[column], value) && isfinite(*value))
        return STATUS_OK;
    return records_field_error(record, names[column], diag,
                               "expected a number or nothing, not '%s'", record->field[column]);
}

static enum status read_row(void *context, const struct record *record, struct diag *diag)
{
    struct reader *reader = context;
    if (!reader->named) {
        reader->named = true;
        return records_check_columns(record, names, COLUMN_COUNT, 0, diag);
    }
    if (record->count != COLUMN_COUNT)
        return diag_error(diag, record->at, STATUS_BAD_INPUT, "%zu fields, expected %d",
                          record->count, COLUMN_COUNT);
    for (int i = SOURCE; i <= NODES; i++)
        if (record->size[i] == 0)
            return records_field_error(record, names[i], diag, "is empty");
    struct residual row = {.source = record->field[SOURCE],
                           .run = record->field[RUN],
                           .device = record->field[DEVICE],
                           .framework = record->field[FRAMEWORK],
                           .several = strcmp(record->field[NODES], nodes[true]) == 0};
    if (!row.several && strcmp(record->field[NODES], nodes[false]) != 0)
        return records_field_error(record, names[NODES], diag, "expected '%s' or '%s', not '%s'",
                                   nodes[false], nodes[true], record->field[NODES]);
    enum status status = read_value(record, TIME, &row.value[RESIDUAL_TIME], diag);
    if (status == STATUS_OK)
        status = read_value(record, MEMORY, &row.value[RESIDUAL_MEMORY], diag);
    if (status == STATUS_OK)
        residuals_add(reader->residuals, &row);
    return status;
}

enum status residuals_parse(struct residuals *residuals, const char *name, const char *data,
                            size_t size, struct diag *diag)
{
    struct reader reader = {.residuals = residuals};
    struct record_handler handler = {.context = &reader, .row = read_row};
    return records_parse(name, data, size, &handler, diag);
}

enum status residuals_load_shipped(struct residuals *residuals, struct diag *diag)
{
    struct text path = {0}, text = {0};
    struct diag unread = {0};
    enum status status = STATUS_OK;
    if (data_path(&path, "traces/published/residuals.csv", &unread) == STATUS_OK) {
        status = text_read(&text, path.data, diag);
        if (status == STATUS_OK)
            status = residuals_parse(residuals, path.data, text.data, text.size, diag);
    }
    diag_release(&unread);
    text_release(&text);
    text_release(&path);
    return status;
}

/* ---- printing ---- */

void residuals_print(const struct residuals *residuals, struct text *out)
{
    for (int i = 0; i < COLUMN_COUNT; i++)
        text_printf(out, "%s%s", i > 0 ? "," : "", names[i]);
    text_putc(out, '\n');
    for (size_t i = 0; i < residuals->count; i++) {
        const struct residual *row = &residuals->row[i];
        const char *const text[] = {row->source, row->run, row->device, row->framework,
                                    nodes[row->several]};
        for (size_t k = 0; k < ARRAY_LEN(text); k++) {
            text_puts(out, k > 0 ? "," : "");
            records_put_field(out, text[k]);
        }
        for (int k = 0; k < RESIDUAL_COUNT; k++) {
            text_putc(out, ',');
            if (!isnan(row->value[k]))
                text_printf(out, "%.4f", row->value[k]);
        }
        text_putc(out, '\n');
    }
}

enum status residuals_save(const struct residuals *residuals, const char *path, struct diag *diag)
{
    struct text out = {0};
    residuals_print(residuals, &out);
    enum status status = file_set_write(path, out.data, out.size, diag);
    text_release(&out);
    return status;
}
