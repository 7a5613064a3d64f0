#include "cli/common/rows.h"

#include "base/units.h"

#include <assert.h>
#include <math.h>

enum { COLUMNS_MAX = 16 };

static bool is_shown(const struct rows *rows, const struct column *column)
{
    return rows->json != NULL ? column->key != NULL : column->label != NULL;
}

/* Appends a cell of text. A blank separates it from the cell before. */
static void put_cell(struct rows *rows, const struct column *column, const char *cell)
{
    bool first = true;
    for (const struct column *before = rows->column; before < column; before++)
        first &= before->label == NULL;
    text_printf(rows->out, "%s%*s", first ? "" : " ", column->width, cell);
}

void rows_begin(struct rows *rows, const char *key, const char *details,
                const struct row_table *table)
{
    const char *heads[COLUMNS_MAX + 1] = {NULL};
    size_t shown = 0;
    bool labelled = false;
    rows->column = table->column;
    rows->count = table->count;
    rows->at = 0;
    assert(table->count <= COLUMNS_MAX);
    if (rows->json != NULL) {
        json_begin_array(rows->json, key);
        return;
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct column *column = &table->column[i];
        if (!is_shown(rows, column))
            continue;
        labelled |= column->label[0] != '\0';
        heads[shown++] = column->head != NULL ? column->head : column->label;
    }
    if (rows->page != NULL)
        page_begin_table(rows->page, details, heads);
    for (size_t i = 0; i < table->count && rows->out != NULL && labelled; i++)
        if (is_shown(rows, &table->column[i]))
            put_cell(rows, &table->column[i], table->column[i].label);
    if (rows->out != NULL && labelled)
        text_putc(rows->out, '\n');
}

/* Returns the next column. If it is the first one, it begins a row. */
static const struct column *next(struct rows *rows)
{
    if (rows->at == 0 && rows->json != NULL)
        json_begin_row(rows->json, NULL);
    return &rows->column[rows->at++];
}

/* Ends the row if its last column has been filled. */
static void end_row(struct rows *rows)
{
    if (rows->at < rows->count)
        return;
    rows->at = 0;
    if (rows->json != NULL)
        json_end_row(rows->json);
    else if (rows->out != NULL)
        text_putc(rows->out, '\n');
    else
        page_end_row(rows->page);
}

static void put_shown(struct rows *rows, const struct column *column, const char *cell)
{
    if (rows->out != NULL)
        put_cell(rows, column, cell);
    else
        page_cell(rows->page, cell);
}

void rows_name(struct rows *rows, const char *name)
{
    const struct column *column = next(rows);
    assert(column->kind == COLUMN_NAME);
    if (is_shown(rows, column) && rows->json != NULL)
        json_put_text(rows->json, column->key, name);
    else if (is_shown(rows, column))
        put_shown(rows, column, name[0] == '\0' ? "(none)" : name);
    end_row(rows);
}

/* Appends a number in the form that people read. In a page, the head of the column has the percent sign of a share. */
static void put_value(struct text *out, const struct column *column, double value, bool page)
{
    const char *unit = page ? "" : " %";
    switch (column->kind) {
    case COLUMN_SECONDS:
        text_printf(out, "%.3f", 1e3 * value);
        break;
    case COLUMN_MEMORY:
        units_put_gib(out, value);
        break;
    case COLUMN_GIB:
        text_printf(out, "%.2f", value / 0x1p30);
        break;
    case COLUMN_ERROR:
        text_printf(out, "%+.1f%s", 100 * value, unit);
        break;
    case COLUMN_SHARE:
        text_printf(out, "%.1f%s", 100 * value, unit);
        break;
    case COLUMN_DEVIATION:
        text_printf(out, "%.1e", value);
        break;
    default:
        text_printf(out, "%.0f", value);
    }
}

void rows_number(struct rows *rows, double value)
{
    const struct column *column = next(rows);
    assert(column->kind != COLUMN_NAME);
    if (is_shown(rows, column) && rows->json != NULL) {
        if (column->kind == COLUMN_COUNT || column->kind == COLUMN_MEMORY ||
            column->kind == COLUMN_GIB)
            json_put_count(rows->json, column->key, (uint64_t)value);
        else
            json_put_number(rows->json, column->key, value);
    } else if (is_shown(rows, column)) {
        struct text cell = {0};
        if (isnan(value) || (column->kind == COLUMN_INDEX && value < 0))
            text_putc(&cell, '-');
        else
            put_value(&cell, column, value, rows->page != NULL);
        put_shown(rows, column, cell.data);
        text_release(&cell);
    }
    end_row(rows);
}

void rows_end(struct rows *rows)
{
    assert(rows->at == 0);
    if (rows->json != NULL)
        json_end_array(rows->json);
    else if (rows->page != NULL)
        page_end_table(rows->page);
}
