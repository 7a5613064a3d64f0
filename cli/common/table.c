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

static const char *new_name_of_renamed_column(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(renamed); i++)
        if (strcmp(name, renamed[i][0]) == 0)
            return renamed[i][1];
    return name;
}

static enum status add_row(void *context, const struct record *record, struct diag *diag)
{
    struct table *table = context;
    if (table->column_name != NULL && record->field_count != table->column_count)
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "this row has %zu fields, but the line of column names has %zu",
                          record->field_count, table->column_count);
    const char **row = arena_array(&table->arena, record->field_count, sizeof *row);
    for (size_t i = 0; i < record->field_count; i++)
        row[i] = arena_text(&table->arena, record->fields[i], record->field_sizes[i]);
    if (table->column_name == NULL) {
        for (size_t i = 0; i < record->field_count; i++)
            row[i] = new_name_of_renamed_column(row[i]);
        table->column_name = row;
        table->column_count = record->field_count;
        return STATUS_OK;
    }
    if (table->row_count == table->row_capacity) {
        table->row_capacity = heap_next_capacity(table->row_capacity, table->row_count + 1);
        table->cells =
            heap_realloc((void *)table->cells, table->row_capacity, sizeof *table->cells);
    }
    table->cells[table->row_count++] = row;
    return STATUS_OK;
}

static enum status add_header_line(void *context, struct loc at, const char *text, size_t size,
                                   struct diag *diag)
{
    struct table *table = context;
    (void)at;
    (void)diag;
    table->header_lines = heap_realloc((void *)table->header_lines, table->header_line_count + 1,
                                       sizeof *table->header_lines);
    size_t blank = size > 0 && text[0] == ' ';
    table->header_lines[table->header_line_count++] =
        arena_text(&table->arena, text + blank, size - blank);
    return STATUS_OK;
}

enum status table_parse(struct table *table, const char *name, const struct text *text,
                        struct diag *diag)
{
    const struct record_handler handler = {
        .context = table, .row = add_row, .comment = add_header_line};
    table->path = name;
    enum status status =
        records_parse(name, text->data == NULL ? "" : text->data, text->size, &handler, diag);
    if (status == STATUS_OK && table->column_name == NULL)
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
    free((void *)table->cells);
    free((void *)table->header_lines);
    arena_release(&table->arena);
    *table = (struct table){0};
}

size_t table_find_column(const struct table *table, const char *name)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (strcmp(table->column_name[i], name) == 0)
            return i;
    return SIZE_MAX;
}

enum status table_find_required_column(const struct table *table, const char *name, size_t *column,
                                       struct diag *diag)
{
    *column = table_find_column(table, name);
    if (*column != SIZE_MAX)
        return STATUS_OK;
    const char *nearest = diag_nearest(name, table->column_name, table->column_count);
    if (nearest != NULL)
        return diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
                          "has no column '%s'; did you mean '%s'?", name, nearest);
    struct text all = {0};
    if (table->column_count > COLUMNS_SHOWN)
        return diag_error(
            diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
            "has no column '%s'; its first column is '%s', and its first line names all of them",
            name, table->column_name[0]);
    for (size_t i = 0; i < table->column_count; i++)
        text_printf(&all, "%s%s", i == 0 ? "" : ", ", table->column_name[i]);
    enum status status = diag_error(diag, (struct loc){.name = table->path}, STATUS_BAD_INPUT,
                                    "has no column '%s'; there are %s", name, all.data);
    text_release(&all);
    return status;
}

/* Returns whether a list "1,3" contains the value. */
static bool list_contains(const char *list, const char *value)
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

/* Appends the first SHOWN distinct values of a column, and how many others there are: "1, 3, ... and 4 more". */
static void put_column_values(struct text *out, const struct table *table, size_t column)
{
    enum { SHOWN = 8 };
    size_t values = 0;
    for (size_t i = 0; i < table->row_count; i++) {
        size_t before = 0;
        while (strcmp(table->cells[before][column], table->cells[i][column]) != 0)
            before++;
        if (before == i && ++values <= SHOWN)
            text_printf(out, "%s%s", values > 1 ? ", " : "", table->cells[i][column]);
    }
    if (values > SHOWN)
        text_printf(out, " and %zu more", values - SHOWN);
}

enum status table_drop_other_rows(struct table *table, const char *wanted, struct loc at,
                                  struct diag *diag)
{
    const char *equals = strchr(wanted, '=');
    size_t column, kept = 0;
    const char *name = arena_text(&table->arena, wanted, (size_t)(equals - wanted));
    enum status status = table_find_required_column(table, name, &column, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < table->row_count; i++)
        kept += list_contains(equals + 1, table->cells[i][column]);
    if (kept == 0 && table->row_count > 0) {
        struct text values = {0};
        put_column_values(&values, table, column);
        status =
            diag_error(diag, at, STATUS_BAD_INPUT, "no row has %s; the values of column %s are %s",
                       wanted, name, values.data);
        text_release(&values);
        return status;
    }
    kept = 0;
    for (size_t i = 0; i < table->row_count; i++)
        if (list_contains(equals + 1, table->cells[i][column]))
            table->cells[kept++] = table->cells[i];
    table->row_count = kept;
    return STATUS_OK;
}

bool table_read_number(const struct table *table, size_t row, size_t column, double *value)
{
    const char *text = table->cells[row][column];
    return parse_double(text, strlen(text), value);
}

const char *table_header_value(const struct table *table, const char *key)
{
    size_t size = strlen(key);
    for (size_t i = 0; i < table->header_line_count; i++)
        if (strncmp(table->header_lines[i], key, size) == 0 && table->header_lines[i][size] == '=')
            return table->header_lines[i] + size + 1;
    return NULL;
}
