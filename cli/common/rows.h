/* cli/common/rows.h: a table that is declared once and filled once, and comes out as text, as JSON or in a page.
 *
 * Columns say how a value looks: its unit, digits and sign follow from the kind. A row is filled column by column;
 * after its last column it ends. A column without a label is only in JSON, and one without a key is not in JSON. If all
 * labels are empty, the text has no line of labels.
 * docs/schema/rows.json is made from the columns. */
#ifndef CLI_COMMON_ROWS_H
#define CLI_COMMON_ROWS_H

#include "base/json_write.h"
#include "base/text.h"
#include "cli/common/page.h"

#include <stddef.h>

enum column_kind {
    COLUMN_NAME,      /* a text */
    COLUMN_COUNT,     /* a whole number */
    COLUMN_INDEX,     /* a whole number, "-" if it is below 0 */
    COLUMN_SECONDS,   /* shown in ms */
    COLUMN_BYTES,     /* bytes, shown as a whole number */
    COLUMN_MEMORY,    /* bytes, shown with a unit: "1.28 GiB" */
    COLUMN_GIB,       /* bytes, shown in GiB */
    COLUMN_ERROR,     /* a fraction with its sign, shown in percent; "-" if it is not known */
    COLUMN_SHARE,     /* a fraction, shown in percent; "-" if it is not known */
    COLUMN_DEVIATION, /* a small number, shown as 1.2e-05; "-" if it is not known */
    COLUMN_KIND_COUNT
};

struct column {
    const char *key, *label;
    const char *head; /* the label in a page, which contains the unit; NULL: the same as `label` */
    enum column_kind kind;
    int width;         /* width of the column in text; negative: left-aligned */
    const char *about; /* description in the schema; NULL: the key says enough */
};

/* A table, with its name in docs/schema/rows.json. */
struct row_table {
    const char *name;
    const struct column *column;
    size_t count;
};

/* A table that is being written. The output is one of out, json and page; the others are NULL. */
struct rows {
    struct text *out;
    struct json_out *json;
    struct page *page;
    const struct column *column;
    size_t count, at; /* number of columns, and of those that are filled in this row */
};

/* Begins a table. In text it has the labels. In JSON it is the array `key`. In a page it is folded away under the line
 * `details` (NULL: it is always shown). */
void rows_begin(struct rows *rows, const char *key, const char *details,
                const struct row_table *table);
void rows_name(struct rows *rows, const char *name);
void rows_number(struct rows *rows, double value); /* for every kind of column but NAME */
void rows_end(struct rows *rows);

#endif
