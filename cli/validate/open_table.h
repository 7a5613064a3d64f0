/* cli/validate/open_table.h: a table of the errors of whole steps: how accurate predictions are. It has a row for each
 * combination of source, device, framework and scale (one node, or several). */
#ifndef CLI_VALIDATE_OPEN_TABLE_H
#define CLI_VALIDATE_OPEN_TABLE_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/validate/error_means.h"

/* A row of the table: the runs of one source, device, framework and scale. Errors are of seconds, measured / predicted
 * - 1. */
struct accuracy_table_row {
    /* the first of the runs, which all have its source, device, framework and scale */
    const struct residual *first_residual;
    struct error_means errors;
    /* the runs that have a 90 % interval from the rows of other laboratories */
    size_t runs_with_interval;
    size_t inside_count; /* those of these runs whose error lies inside the interval */
};

/* Fills rows[], which has room for runs->row_count rows, and returns their number. evidence: the measured runs from
 * which intervals are made. */
size_t open_table_make_accuracy_rows(struct accuracy_table_row *rows, const struct residuals *runs,
                                     const struct evidence *evidence);

/* Appends the table as aligned text, or as Markdown. */
void open_table_print_accuracy(struct text *out, const struct residuals *runs,
                               const struct evidence *evidence, bool markdown);

#endif
