/* cli/sweep/summary.h: a finished sweep in a few lines: the number of points by status and, for each workload, the
 * fastest point that fits. Points with different lengths or models compute different things for a token, so their
 * tokens per second are not compared: they are different workloads. */
#ifndef CLI_SWEEP_SUMMARY_H
#define CLI_SWEEP_SUMMARY_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/common/rows.h"
#include "cli/common/table.h"
#include "cli/sweep/predictor.h"

#include <stdbool.h>
#include <stddef.h>

/* The columns that JSON has for the fastest point of a workload. */
extern const struct row_table sweep_point_table;

struct sweep_summary {
    size_t count_of_status[SWEEP_STATUS_COUNT];
    size_t axis_count; /* number of axes, which are the first columns */
    /* the row with most tokens/s/GPU of those that fit; SIZE_MAX: none fits */
    size_t fastest_fitting_row;
    /* [workloads] on the heap: the best row of each workload, in the order of their first points that fit */
    size_t *best_row_of_workload;
    /* The number of workloads among the points that fit. A workload is a combination of values of the axes that change
     * what a step computes (model, length, documents and the like). */
    size_t workload_count;
};

/* Returns the words that follow the number of points with a status: "fits" after 1, "do not fit" after another
 * number. */
const char *sweep_summary_words_of_status(int status, size_t count);

/* Fills *summary, which must be released even after an error. */
enum status sweep_summary_make(struct sweep_summary *summary, const struct table *table,
                               struct diag *diag);
void sweep_summary_release(struct sweep_summary *summary);

/* Appends the values of the axes in a row of the table, " seq=64K hp=4". of_work: those of the axes that make
 * workloads; otherwise those of the other axes. */
void sweep_put_axis_values_of_row(struct text *out, const struct table *table,
                                  const struct sweep_summary *summary, size_t row, bool of_work);

/* Appends the speed of a point that has a time: "617.4 tokens/s/GPU, a step of 106.15 s". */
void sweep_put_speed(struct text *out, const struct table *table, size_t row);

/* Returns how a sweep ended: STATUS_SYSTEM, with an error, if a point has failed; STATUS_BAD_INPUT,
 * with an error, if all are refused; STATUS_NO if none fits; otherwise STATUS_OK. */
enum status sweep_summary_exit_status(const struct sweep_summary *summary,
                                      const struct table *table, struct diag *diag);

/* Prints the summary of the finished file, and returns its verdict (sweep_summary_exit_status()).
 * resumed: how many rows an earlier run made. complete: an earlier run made all rows. */
enum status sweep_print_summary(const char *path, size_t resumed, bool complete, bool json,
                                struct diag *diag);

#endif
