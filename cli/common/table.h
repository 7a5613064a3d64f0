/* cli/common/table.h: a CSV file of ours as texts: its head "# key=value", its columns, its rows. Columns that were
 * renamed have their new names, also in files that were written before. */
#ifndef CLI_COMMON_TABLE_H
#define CLI_COMMON_TABLE_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

struct table {
    struct arena arena;
    const char *path;
    size_t columns, rows, capacity;
    const char *const *name; /* columns */
    const char ***row;       /* row[i][column] */
    size_t heads;
    const char **head; /* "key=value" */
};

/* *table must be all-zero; release it in either case. path is borrowed. */
enum status table_load(struct table *table, const char *path, struct diag *diag);
void table_release(struct table *table);

/* SIZE_MAX: there is no such column. */
size_t table_find(const struct table *table, const char *name);
/* The same; an error lists the columns there are. */
enum status table_get(const struct table *table, const char *name, size_t *column,
                      struct diag *diag);

/* Keeps the rows that have one of the values in a column, "zero=1,3", which has that form. Errors point to
 * `at`: no such column, or no row would be left. */
enum status table_keep(struct table *table, const char *wanted, struct loc at, struct diag *diag);

/* The number in a cell; false where there is none. */
bool table_number(const struct table *table, size_t row, size_t column, double *value);

/* A value of the head; NULL: none. */
const char *table_head(const struct table *table, const char *key);

#endif
