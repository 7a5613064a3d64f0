/* cli/sweep/summary.h: a finished sweep in a few lines: the number of points by status, and the fastest point that
 * fits, of each work that was varied. Points of different lengths or models compute different things for a token, so
 * that their tokens per second are not compared. */
#ifndef CLI_SWEEP_SUMMARY_H
#define CLI_SWEEP_SUMMARY_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/common/table.h"
#include "cli/sweep/predictor.h"

#include <stdbool.h>
#include <stddef.h>

struct sweep_summary {
    size_t count[SWEEP_STATUS_COUNT];
    size_t axes; /* the first columns */
    size_t best; /* row with most tokens/s/GPU of those that fit; SIZE_MAX: none fits */
    /* (works) on the heap: the best row of each workload, in the order of their first points that fit. */
    size_t *best_of;
    /* Workloads among the points that fit: distinct values of the axes that change what a step computes (model, length,
     * batch and the like). */
    size_t works;
};

/* Returns the words for a status after a number of points: "fits" for one point, "do not fit" for several. */
const char *sweep_summary_words(int status, size_t count);

/* Fills *summary; release it in either case. */
enum status sweep_summary_make(struct sweep_summary *summary, const struct table *table,
                               struct diag *diag);
void sweep_summary_release(struct sweep_summary *summary);

/* Appends " seq=64K hp=4": a point's values of the axes of work, or of the others. */
void sweep_put_axes(struct text *out, const struct table *table,
                    const struct sweep_summary *summary, size_t row, bool of_work);

/* Appends "617.4 tokens/s/GPU, a step of 106.15 s" of a point that has a time. */
void sweep_put_speed(struct text *out, const struct table *table, size_t row);

/* Prints the summary of the file. STATUS_NO when no point fits, STATUS_SYSTEM when one has failed.
 * resumed: the number of rows that an earlier run made; complete: an earlier run made all of them. */
enum status sweep_summarise(const char *path, size_t resumed, bool complete, bool json,
                            struct diag *diag);

#endif
