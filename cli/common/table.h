/* cli/common/table.h: a CSV file that longhaul wrote, as texts: its header lines "# key=value", its columns, its
 * rows. If an old file has the old name of a column that was renamed, the table has the new name. */
#ifndef CLI_COMMON_TABLE_H
#define CLI_COMMON_TABLE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct table {
    struct arena arena;
    const char *path;
    size_t column_count, row_count, row_capacity;
    const char *const *column_name; /* names of the columns */
    const char ***cells;            /* texts of the cells, cells[i][column] */
    size_t header_line_count;
    const char **header_lines; /* header lines "key=value" */
};

/* Reads a file. *table must be all-zero, and must be released even after an error. path must outlive it. */
enum status table_load(struct table *table, const char *path, struct diag *diag);
/* Does the same with the text of a file; messages begin with `name`, which must outlive the table. */
enum status table_parse(struct table *table, const char *name, const struct text *text,
                        struct diag *diag);
void table_release(struct table *table);

/* Returns the index of the column with a name; SIZE_MAX: there is no such column. */
size_t table_find_column(const struct table *table, const char *name);
/* Finds a column that must exist. If it does not, the error names the most similar column or, if
 * none is similar, the columns of the file (only the first one if they are many). */
enum status table_find_required_column(const struct table *table, const char *name, size_t *column,
                                       struct diag *diag);

/* Keeps only the rows that `wanted` selects: "zero=1,3" keeps those with 1 or 3 in column zero. It
 * is an error if there is no such column or, reported at `at`, if the table has rows and none would
 * be left. */
enum status table_drop_other_rows(struct table *table, const char *wanted, struct loc at,
                                  struct diag *diag);

/* Reads the number in a cell. Returns false if the cell does not contain a number. */
bool table_read_number(const struct table *table, size_t row, size_t column, double *value);

/* Returns the value of a key in the file's header; NULL: the header lacks the key. */
const char *table_header_value(const struct table *table, const char *key);

#endif
