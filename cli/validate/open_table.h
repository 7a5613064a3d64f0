/* cli/validate/open_table.h: errors of whole steps, a row per source, device, framework and scale. */
#ifndef CLI_VALIDATE_OPEN_TABLE_H
#define CLI_VALIDATE_OPEN_TABLE_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/validate/error_means.h"

/* A row of the table: runs of one source on one device by one framework at one scale. Errors are measured / predicted
 * - 1, of seconds. */
struct open_row {
    const struct residual *like; /* the first run, which has the traits of all */
    struct error_means errors;
    size_t with_interval,
        held; /* runs that have a 90 % interval by the rows of other laboratories, and lie in it */
};

/* Fills rows, which has room for runs->count rows, and returns their number. evidence: what
 * intervals are made from. */
size_t open_table_make(struct open_row *rows, const struct residuals *runs,
                       const struct evidence *evidence);

/* Appends the table, aligned, or as Markdown. */
void open_table_print(struct text *out, const struct residuals *runs,
                      const struct evidence *evidence, bool markdown);

#endif
