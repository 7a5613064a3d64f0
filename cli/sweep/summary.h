/* cli/sweep/summary.h: a finished sweep in a few lines: the number of points by status, and the best point that
 * fits. */
#ifndef CLI_SWEEP_SUMMARY_H
#define CLI_SWEEP_SUMMARY_H

#include "base/diag.h"
#include "cli/common/table.h"
#include "cli/sweep/predictor.h"

#include <stdbool.h>
#include <stddef.h>

struct sweep_summary {
    size_t count[SWEEP_STATUS_COUNT];
    size_t axes; /* the first columns */
    size_t best; /* row with most tokens/s/GPU of those that fit; SIZE_MAX: none fits */
};

/* Returns the words for a status after a number of points: "fits" for one point, "do not fit" for several. */
const char *sweep_summary_words(int status, size_t count);

enum status sweep_summary_make(struct sweep_summary *summary, const struct table *table,
                               struct diag *diag);

/* Prints the summary of the file. STATUS_NO when no point fits, STATUS_SYSTEM when one has failed.
 * resumed: the number of rows that an earlier run made; complete: an earlier run made all of them. */
enum status sweep_summarise(const char *path, size_t resumed, bool complete, bool json,
                            struct diag *diag);

#endif
