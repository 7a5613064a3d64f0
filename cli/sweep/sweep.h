/* cli/sweep/sweep.h: all points of a grid predicted, on all cores, and over nodes where a launcher started
 * more than one of us. */
#ifndef CLI_SWEEP_SWEEP_H
#define CLI_SWEEP_SWEEP_H

#include "base/diag.h"
#include "cli/sweep/grid.h"
#include "cli/sweep/journal.h"
#include "cli/sweep/launcher.h"

#include <stdbool.h>
#include <stddef.h>

struct sweep_options {
    size_t jobs;        /* worker processes; 0: one per core that we may use */
    size_t part, parts; /* points with point % parts == part - 1; 0 of 0: all */
};

/* Predicts the points that the journal has no row of. A point whose process dies is tried once
 * more, alone, and then has a row that says so. An interrupt ends it with STATUS_SYSTEM and
 * interrupted() set; the journal keeps what was done. Rank 0 of the launcher calls it, even
 * when nothing is left to do: the others wait for its word. */
enum status sweep_run(const struct sweep_grid *grid, const struct sweep_options *options,
                      struct sweep_journal *journal, struct launcher *launcher, struct diag *diag);

#endif
