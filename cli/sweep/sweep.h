/* cli/sweep/sweep.h: predicts all points of a grid on all cores, and on several nodes if a launcher started several
 * processes.
 *
 * The folder cli/sweep/ holds the options, the processes and the file of `sweep`. */
#ifndef CLI_SWEEP_SWEEP_H
#define CLI_SWEEP_SWEEP_H

#include "base/diag.h"
#include "cli/sweep/grid.h"
#include "cli/sweep/journal.h"
#include "cli/sweep/launcher.h"

#include <stdbool.h>
#include <stddef.h>

struct sweep_options {
    /* number of worker processes; 0: one for each core that the process may use */
    size_t worker_count;
    /* only points with point % parts == part_number - 1 are predicted; parts 0: all points */
    size_t part_number, parts;
};

/* Predicts the points for which the journal has no row. If the process of a point dies, the point is repeated once, on
 * rank 0 while no other of its points runs; if it dies again, the point's row says so. An interrupt ends the sweep with
 * STATUS_SYSTEM, and interrupt_caught_signal_number() is then not 0; the journal keeps the rows that are done. Rank 0
 * of the launcher must call this even if no point is left, since the other ranks wait for its message to stop. */
enum status sweep_run(const struct sweep_grid *grid, const struct sweep_options *options,
                      struct sweep_journal *journal, struct launcher *launcher, struct diag *diag);

#endif
