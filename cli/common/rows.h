/* cli/common/rows.h: a table that is declared once and filled once, and comes out as text, as JSON, as CSV or in a
 * page.
 *
 * Columns say how a value looks: its unit, digits and sign follow from the kind. A row is filled column by column;
 * after its last column it ends. A column without a label is neither in text nor in a page; one without a key is
 * neither in JSON nor in CSV. If all labels are empty, the text has no line of labels. In text one blank separates two
 * columns, and two blanks separate a right-aligned column from a left-aligned one after it.
 * docs/schema/rows.json is made from the columns. */
#ifndef CLI_COMMON_ROWS_H
#define CLI_COMMON_ROWS_H

#include "base/json_write.h"
#include "base/text.h"
#include "cli/common/page.h"

#include <stddef.h>

/* The kinds of values in a column. Text and pages show them in a form of their own ("shown ..."). JSON and CSV have the
 * value itself: seconds, bytes or a fraction, not ms, GiB or percent. */
enum column_kind {
    COLUMN_PLAIN_TEXT, /* a text */
    COLUMN_WRAPPED_TEXT, /* a text that is wrapped at the width of the screen; the last column that has a label */
    COLUMN_NUMBER_OR_TEXT,     /* a number or a text, as COLUMN_NUMBER or COLUMN_PLAIN_TEXT */
    COLUMN_FLAG,               /* true (any number but 0) or false (0) */
    COLUMN_COUNT,              /* a whole number */
    COLUMN_INDEX,              /* a whole number, "-" if it is below 0 */
    COLUMN_NUMBER,             /* a number in SI units, shown with six digits */
    COLUMN_SECONDS,            /* seconds, shown in ms */
    COLUMN_SECONDS_DIFFERENCE, /* a difference in seconds with its sign, shown in ms */
    COLUMN_BYTES,              /* bytes, shown as a whole number */
    COLUMN_BYTES_WITH_UNIT,    /* bytes, shown with a unit: "1.28 GiB" */
    COLUMN_GIB,                /* bytes, shown in GiB */
    COLUMN_SIGNED_PERCENT, /* a fraction with its sign, shown in percent; "-" if it is not known */
    COLUMN_SHARE,          /* a fraction, shown in percent; "-" if it is not known */
    COLUMN_WHOLE_PERCENT,  /* a fraction, shown in percent without decimals */
    COLUMN_SMALL_NUMBER,   /* a small number, shown as 1.2e-05; "-" if it is not known */
    COLUMN_NESTED_ROWS, /* rows of another table, which only JSON has; `description` is that table's name */
    COLUMN_JSON_OBJECT, /* numbers and texts with names of their own, which only JSON has */
    COLUMN_NESTED_ROW, /* one row of another table, which only JSON has; `description` is that table's name */
    COLUMN_KIND_COUNT,
    COLUMN_KIND_MASK = 31, /* the bits of a kind; the flags below may be added */
    COLUMN_OPTIONAL = 32,  /* a row may lack the column: rows_skip_column() */
    COLUMN_NULLABLE = 64   /* null in JSON where the value is NAN, or the name is NULL */
};

struct column {
    const char *key, *label;
    /* the label in a page, which contains the unit; NULL: the same as `label` */
    const char *label_on_page;
    int kind;       /* enum column_kind, with flags */
    int text_width; /* width of the column in text; negative: left-aligned */
    /* the description in the schema; "common.json" or "choices.json": that schema describes the key; NULL: the key
     * needs no description */
    const char *description;
};

/* A table, with its name in docs/schema/rows.json. */
struct row_table {
    const char *name;
    const struct column *column;
    size_t column_count;
};

/* A table that is being written. Its outputs are those of out, json, csv and page that are set: one
 * of them, or csv and page. Rows inside a row have only JSON as output, or none. */
struct rows {
    struct text *out;
    struct json_out *json;
    struct text *csv;
    struct page *page;
    size_t screen_width; /* columns at which texts are wrapped; 0: they are not wrapped */
    /* by how many columns the further lines of a wrapped text are indented; 0: they begin below the first line */
    size_t continuation_indent;
    const struct column *column;
    size_t column_count,
        filled_columns; /* number of columns, and of those that are filled in this row */
    /* the rows of the other table, of which these rows fill one column (COLUMN_NESTED_ROWS or COLUMN_NESTED_ROW); NULL:
     * they fill no column */
    struct rows *outer_rows;
    /* the key of a JSON member that is a single row, not an array of rows; NULL: there may be many rows */
    const char *single_row_key;
};

/* Begins a table. Text has its labels, CSV its keys, and JSON the array `key`. On a page a reader clicks on the line
 * `details` to see the table; NULL: it is always shown. */
void rows_begin(struct rows *rows, const char *key, const char *details,
                const struct row_table *table);
/* Fills a column of the kind COLUMN_PLAIN_TEXT, COLUMN_WRAPPED_TEXT or COLUMN_NUMBER_OR_TEXT. In text and on pages it
 * is "(none)" if `name` is NULL, or if it is empty and the kind is not COLUMN_WRAPPED_TEXT. name NULL: only for a
 * COLUMN_NULLABLE. */
void rows_put_text(struct rows *rows, const char *name);
/* Fills a column of numbers or flags, or a COLUMN_NUMBER_OR_TEXT. In text and on pages NAN is "-". */
void rows_put_number(struct rows *rows, double value);
void rows_skip_column(struct rows *rows); /* for a COLUMN_OPTIONAL that the row lacks */
void rows_end(struct rows *rows);

/* Fills a COLUMN_NESTED_ROWS: begins rows of another table, which rows_end(inner) ends. */
void rows_begin_nested_rows(struct rows *inner, struct rows *rows, const struct row_table *table);

/* Begins a single row, which is the object `key` of JSON, the only output. After its last column, rows_end() ends
 * it. */
void rows_begin_single_row(struct rows *rows, const char *key, const struct row_table *table);
/* Fills a COLUMN_NESTED_ROW: begins a single row of another table, which rows_end(inner) ends. */
void rows_begin_nested_row(struct rows *inner, struct rows *rows, const struct row_table *table);

/* Begin and end a COLUMN_JSON_OBJECT. Between the two calls the caller writes the members of the object to rows->json,
 * unless rows->json is NULL. */
void rows_begin_object(struct rows *rows);
void rows_end_object(struct rows *rows);

#endif
