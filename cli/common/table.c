#include "cli/common/table.h"

#include "base/text.h"
#include "traces/records.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_SHOWN = 16 };

/* Old and new names of columns that were renamed. Files that longhaul 0.1 wrote before schema version 1 have the old
 * names. */
static const char *const renamed[][2] = {
    {"extrapolated", "extrapolated_share"},
    {"chosen_tokens", "chosen_sequence_tokens"},
};

static const char *name_now(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(renamed); i++)
        if (strcmp(name, renamed[i][0]) == 0)
            return renamed[i][1];
    return name;
}

static enum status take_row(void *context, const struct record *record, struct diag *diag)
{
    struct table *table = context;
    if (table->name != NULL && record->count != table->columns)
        return diag_error(diag, record->at, STATUS_BAD_INPUT,
                          "this row has %zu fields, but the line of column names has %zu",
                          record->count, table->columns);
    const char **row = arena_array(&table->arena, record->count, sizeof *row);
    for (size_t i = 0; i < record->count; i++)
        row[i] = arena_text(&table->arena, record->field[i], record->size[i]);
    if (table->name == NULL) {
        for (size_t i = 0; i < record->count; i++)
            row[i] = name_now(row[i]);
        table->name = row;
        table->columns = record->count;
        return STATUS_OK;
    }
    if (table->rows == table->capacity) {
        table->capacity = heap_next_capacity(table->capacity, table->rows + 1);
        table->row = heap_realloc((void *)table->row, table->capacity, sizeof *table->row);
    }
    table->row[table->rows++] = row;
    return STATUS_OK;
}

static enum status take_comment(void *context, struct loc at, const char *text, size_t size,
                                struct diag *diag)
{
    struct table *table = context;
    (void)at;
    (void)diag;
    table->head = heap_realloc((void *)table->head, table->heads + 1, sizeof *table->head);
    size_t blank = size > 0 && text[0] == ' ';
    table->head[table->heads++] = arena_text(&table->arena, text + blank, size - blank);
    return STATUS_OK;
}

enum status table_parse(struct table *table, const char *name, const struct text *text,
                        struct diag *diag)
{
    const struct record_handler handler = {
        .context = table, .row = take_row, .comment = take_comment};
    table->path = name;
    enum status status =
        records_parse(name, text->data == NULL ? "" : text->data, text->size, &handler, diag);
    if (status == STATUS_OK && table->name == NULL)
        status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                            "has no line of column names");
    return status;
}

enum status table_load(struct table *table, const char *path, struct diag *diag)
{
    struct text text = {0};
    table->path = path;
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = table_parse(table, path, &text, diag);
    text_release(&text);
    return status;
}

void table_release(struct table *table)
{
    free((void *)table->row);
    free((void *)table->head);
    arena_release(&table->arena);
    *table = (struct table){0};
}

size_t table_find(const struct table *table, const char *name)
{
    for (size_t i = 0; i < table->columns; i++)
        if (strcmp(table->name[i], name) == 0)
            return i;
    return SIZE_MAX;
}

enum status table_get(const struct table *table, const char *name, size_t *column,
                      struct diag *diag)
{
    *column = table_find(table, name);
    if (*column != SIZE_MAX)
        return STATUS_OK;
    const char *nearest = diag_nearest(name, table->name, table->columns);
    if (nearest != NULL)
        return diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
                          "has no column '%s'; did you mean '%s'?", name, nearest);
    struct text all = {0};
    if (table->columns > COLUMNS_SHOWN)
        return diag_error(
            diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
            "has no column '%s'; its first column is '%s', and its first line names all of them",
            name, table->name[0]);
    for (size_t i = 0; i < table->columns; i++)
        text_printf(&all, "%s%s", i == 0 ? "" : ", ", table->name[i]);
    enum status status = diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
                                    "has no column '%s'; there are %s", name, all.data);
    text_release(&all);
    return status;
}

/* Returns whether a list "1,3" contains the value. */
static bool lists(const char *list, const char *value)
{
    size_t length = strlen(value);
    for (const char *at = list;; at++) {
        size_t size = strcspn(at, ",");
        if (size == length && memcmp(at, value, size) == 0)
            return true;
        at += size;
        if (*at == '\0')
            return false;
    }
}

/* Appends the values of a column as a phrase: "1, 3 and 4 more". */
static void put_values(struct text *out, const struct table *table, size_t column)
{
    enum { SHOWN = 8 };
    size_t values = 0;
    for (size_t i = 0; i < table->rows; i++) {
        size_t before = 0;
        while (strcmp(table->row[before][column], table->row[i][column]) != 0)
            before++;
        if (before == i && ++values <= SHOWN)
            text_printf(out, "%s%s", values > 1 ? ", " : "", table->row[i][column]);
    }
    if (values > SHOWN)
        text_printf(out, " and %zu more", values - SHOWN);
}

enum status table_keep(struct table *table, const char *wanted, struct loc at, struct diag *diag)
{
    const char *equals = strchr(wanted, '=');
    size_t column, kept = 0;
    const char *name = arena_text(&table->arena, wanted, (size_t)(equals - wanted));
    enum status status = table_get(table, name, &column, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < table->rows; i++)
        kept += lists(equals + 1, table->row[i][column]);
    if (kept == 0 && table->rows > 0) {
        struct text values = {0};
        put_values(&values, table, column);
        status =
            diag_error(diag, at, STATUS_BAD_INPUT, "no row has %s; the values of column %s are %s",
                       wanted, name, values.data);
        text_release(&values);
        return status;
    }
    kept = 0;
    for (size_t i = 0; i < table->rows; i++)
        if (lists(equals + 1, table->row[i][column]))
            table->row[kept++] = table->row[i];
    table->rows = kept;
    return STATUS_OK;
}

bool table_number(const struct table *table, size_t row, size_t column, double *value)
{
    const char *text = table->row[row][column];
    return parse_double(text, strlen(text), value);
}

const char *table_head(const struct table *table, const char *key)
{
    size_t size = strlen(key);
    for (size_t i = 0; i < table->heads; i++)
        if (strncmp(table->head[i], key, size) == 0 && table->head[i][size] == '=')
            return table->head[i] + size + 1;
    return NULL;
}
