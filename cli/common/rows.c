#include "cli/common/rows.h"

#include "base/units.h"
#include "cli/common/screen.h"
#include "traces/records.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A column that is filled is appended to each output that is set: JSON, CSV, text and page. Text and page are the
 * outputs for people. They show the columns with a label; the other two have the columns with a key.
 *
 * COLUMNS_MAX: the most columns of a table. FLAT_MAX: the most columns of a row that is written as a JSON object on one
 * line. */
enum { COLUMNS_MAX = 48, FLAT_MAX = 16 };

static int column_kind_of(const struct column *column)
{
    return column->kind & COLUMN_KIND_MASK;
}

/* Appends the blanks that separate a column from the one before it in text. */
static void put_column_gap(struct rows *rows, const struct column *column)
{
    const struct column *before = NULL;
    for (const struct column *c = rows->column; c < column; c++)
        before = c->label != NULL ? c : before;
    if (before != NULL)
        text_puts(rows->out, before->text_width > 0 && column->text_width < 0 ? "  " : " ");
}

/* Returns the number of characters in the last line of a text. */
static size_t last_line_length(const struct text *out)
{
    size_t at = 0;
    while (at < out->size && out->data[out->size - 1 - at] != '\n')
        at++;
    return at;
}

/* Appends a cell to the text: padded to the width of its column or, in a COLUMN_WRAPPED_TEXT, wrapped. */
static void put_cell(struct rows *rows, const struct column *column, const char *cell)
{
    put_column_gap(rows, column);
    if (column_kind_of(column) == COLUMN_WRAPPED_TEXT) {
        size_t at = last_line_length(rows->out);
        screen_wrap(rows->out, cell, rows->continuation_indent > 0 ? rows->continuation_indent : at,
                    at, rows->screen_width);
        rows->out->size--; /* without the line end, which end_text_line() appends */
    } else {
        text_printf(rows->out, "%*s", column->text_width, cell);
    }
}

/* Ends a line of text, without blanks before its end. */
static void end_text_line(struct rows *rows)
{
    struct text *out = rows->out;
    while (out->size > 0 && out->data[out->size - 1] == ' ')
        out->size--;
    text_putc(out, '\n');
}

static void begin_csv(struct rows *rows)
{
    const char *csv_column_keys[COLUMNS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < rows->column_count; i++)
        if (rows->column[i].key != NULL)
            csv_column_keys[count++] = rows->column[i].key;
    records_append_fields(rows->csv, csv_column_keys, count);
    text_putc(rows->csv, '\n');
}

void rows_begin(struct rows *rows, const char *key, const char *details,
                const struct row_table *table)
{
    const char *headers[COLUMNS_MAX + 1] = {NULL};
    size_t shown = 0;
    bool has_label = false;
    rows->column = table->column;
    rows->column_count = table->column_count;
    rows->filled_columns = 0;
    rows->single_row_key = NULL;
    assert(table->column_count <= COLUMNS_MAX);
    if (rows->json != NULL)
        json_begin_array(rows->json, key);
    if (rows->csv != NULL)
        begin_csv(rows);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->column[i];
        if (column->label == NULL)
            continue;
        has_label |= column->label[0] != '\0';
        headers[shown++] = column->label_on_page != NULL ? column->label_on_page : column->label;
    }
    if (rows->page != NULL)
        page_begin_table(rows->page, details, headers);
    if (rows->out == NULL || !has_label)
        return;
    for (size_t i = 0; i < table->column_count; i++)
        if (table->column[i].label != NULL)
            put_cell(rows, &table->column[i], table->column[i].label);
    end_text_line(rows);
}

/* True if a JSON object is written on one line: if it is one of many rows, has no rows of its own, and has few
 * members. */
static bool is_object_on_one_line(const struct rows *rows)
{
    if (rows->single_row_key != NULL || rows->column_count > FLAT_MAX)
        return false;
    for (size_t i = 0; i < rows->column_count; i++)
        if (column_kind_of(&rows->column[i]) == COLUMN_NESTED_ROWS ||
            column_kind_of(&rows->column[i]) == COLUMN_NESTED_ROW)
            return false;
    return true;
}

/* Returns the next column. Before the first column of a row, begins the JSON object of the row. */
static const struct column *next_column(struct rows *rows)
{
    if (rows->filled_columns == 0 && rows->json != NULL && is_object_on_one_line(rows))
        json_begin_inline_object(rows->json, rows->single_row_key);
    else if (rows->filled_columns == 0 && rows->json != NULL)
        json_begin_object(rows->json, rows->single_row_key);
    assert(rows->filled_columns < rows->column_count);
    return &rows->column[rows->filled_columns++];
}

/* Ends the row if its last column has been filled. */
static void end_row(struct rows *rows)
{
    if (rows->filled_columns < rows->column_count)
        return;
    rows->filled_columns = 0;
    if (rows->json != NULL && is_object_on_one_line(rows))
        json_end_inline_object(rows->json);
    else if (rows->json != NULL)
        json_end_object(rows->json);
    if (rows->out != NULL)
        end_text_line(rows);
    if (rows->csv != NULL)
        text_putc(rows->csv, '\n');
    if (rows->page != NULL)
        page_end_row(rows->page);
}

/* Appends a cell to the outputs for people, text and page. A column without a label is left out. */
static void put_cell_in_text_and_page(struct rows *rows, const struct column *column,
                                      const char *cell)
{
    if (column->label == NULL)
        return;
    if (rows->out != NULL)
        put_cell(rows, column, cell);
    if (rows->page != NULL)
        page_put_cell(rows->page, cell);
}

/* Appends a field of CSV, with a comma before it unless it is the first of its row. Columns without a key are left
 * out. */
static void put_csv_field(struct rows *rows, const struct column *column, const char *field)
{
    if (rows->csv == NULL || column->key == NULL)
        return;
    for (const struct column *before = rows->column; before < column; before++)
        if (before->key != NULL) {
            text_putc(rows->csv, ',');
            break;
        }
    records_append_field(rows->csv, field);
}

void rows_put_text(struct rows *rows, const char *name)
{
    const struct column *column = next_column(rows);
    assert(column_kind_of(column) <= COLUMN_NUMBER_OR_TEXT); /* kinds of texts are the first ones */
    assert(name != NULL || (column->kind & COLUMN_NULLABLE) != 0);
    if (rows->json != NULL && column->key != NULL)
        json_put_text(rows->json, column->key, name);
    put_csv_field(rows, column, name != NULL ? name : "");
    if (name == NULL || (name[0] == '\0' && column_kind_of(column) != COLUMN_WRAPPED_TEXT))
        name = "(none)";
    put_cell_in_text_and_page(rows, column, name);
    end_row(rows);
}

/* Appends a number in the form that people read. In a page, the head of the column has the percent sign of a share. */
static void put_number_as_text(struct text *out, const struct column *column, double value,
                               bool page)
{
    const char *unit = page ? "" : " %";
    switch (column_kind_of(column)) {
    case COLUMN_FLAG:
        text_puts(out, value != 0 ? "yes" : "no");
        break;
    case COLUMN_NUMBER_OR_TEXT:
    case COLUMN_NUMBER:
        text_printf(out, "%.6g", value);
        break;
    case COLUMN_SECONDS:
        text_printf(out, "%.3f", 1e3 * value);
        break;
    case COLUMN_SECONDS_DIFFERENCE: /* what rounds to 0 is shown as +0.000 */
        text_printf(out, "%+.3f", fabs(1e3 * value) < 5e-4 ? 0 : 1e3 * value);
        break;
    case COLUMN_BYTES_WITH_UNIT:
        units_put_gib(out, value);
        break;
    case COLUMN_GIB:
        text_printf(out, "%.2f", value / 0x1p30);
        break;
    case COLUMN_SIGNED_PERCENT:
        text_printf(out, "%+.1f%s", 100 * value, unit);
        break;
    case COLUMN_SHARE:
        text_printf(out, "%.1f%s", 100 * value, unit);
        break;
    case COLUMN_WHOLE_PERCENT:
        text_printf(out, "%.0f%s", 100 * value, unit);
        break;
    case COLUMN_SMALL_NUMBER:
        text_printf(out, "%.1e", value);
        break;
    default:
        text_printf(out, "%.0f", value);
    }
}

static void put_json_number(struct json_out *json, const struct column *column, double value)
{
    int kind = column_kind_of(column);
    if (kind == COLUMN_FLAG)
        json_put_bool(json, column->key, value != 0);
    else if (isfinite(value) &&
             (kind == COLUMN_COUNT || kind == COLUMN_BYTES_WITH_UNIT || kind == COLUMN_GIB))
        json_put_count(json, column->key, (uint64_t)value);
    else
        json_put_number(json, column->key, value);
}

void rows_put_number(struct rows *rows, double value)
{
    const struct column *column = next_column(rows);
    struct text cell = {0};
    assert(column_kind_of(column) >= COLUMN_NUMBER_OR_TEXT);
    if (rows->json != NULL && column->key != NULL)
        put_json_number(rows->json, column, value);
    if (column_kind_of(column) == COLUMN_FLAG)
        text_puts(&cell, value != 0 ? "true" : "false");
    else if (isfinite(value))
        text_printf(&cell, "%.6g", value);
    put_csv_field(rows, column, cell.size > 0 ? cell.data : "");
    cell.size = 0;
    if (isnan(value) || (column_kind_of(column) == COLUMN_INDEX && value < 0))
        text_putc(&cell, '-');
    else
        put_number_as_text(&cell, column, value, rows->page != NULL);
    put_cell_in_text_and_page(rows, column, cell.data);
    text_release(&cell);
    end_row(rows);
}

void rows_skip_column(struct rows *rows)
{
    const struct column *column = next_column(rows);
    assert((column->kind & COLUMN_OPTIONAL) != 0);
    put_csv_field(rows, column, "");
    put_cell_in_text_and_page(rows, column, "");
    end_row(rows);
}

void rows_end(struct rows *rows)
{
    assert(rows->filled_columns == 0);
    if (rows->json != NULL && rows->single_row_key == NULL)
        json_end_array(rows->json);
    if (rows->page != NULL)
        page_end_table(rows->page);
    if (rows->outer_rows != NULL)
        end_row(rows->outer_rows);
}

void rows_begin_nested_rows(struct rows *inner, struct rows *rows, const struct row_table *table)
{
    const struct column *column = next_column(rows);
    assert(column_kind_of(column) == COLUMN_NESTED_ROWS &&
           strcmp(column->description, table->name) == 0);
    put_csv_field(rows, column, "");
    *inner = (struct rows){.json = rows->json, .outer_rows = rows};
    rows_begin(inner, column->key, NULL, table);
}

void rows_begin_single_row(struct rows *rows, const char *key, const struct row_table *table)
{
    assert(rows->out == NULL && rows->csv == NULL && rows->page == NULL);
    rows->column = table->column;
    rows->column_count = table->column_count;
    rows->filled_columns = 0;
    rows->single_row_key = key;
}

void rows_begin_nested_row(struct rows *inner, struct rows *rows, const struct row_table *table)
{
    const struct column *column = next_column(rows);
    assert(column_kind_of(column) == COLUMN_NESTED_ROW &&
           strcmp(column->description, table->name) == 0);
    put_csv_field(rows, column, "");
    *inner = (struct rows){.json = rows->json, .outer_rows = rows};
    rows_begin_single_row(inner, column->key, table);
}

void rows_begin_object(struct rows *rows)
{
    const struct column *column = next_column(rows);
    assert(column_kind_of(column) == COLUMN_JSON_OBJECT);
    put_csv_field(rows, column, "");
    if (rows->json != NULL)
        json_begin_object(rows->json, column->key);
}

void rows_end_object(struct rows *rows)
{
    if (rows->json != NULL)
        json_end_object(rows->json);
    end_row(rows);
}
