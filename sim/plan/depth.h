/* sim/plan/depth.h: layers that do what those before them did are not simulated.
 *
 * Where the list of ops repeats itself (the layers of a forward pass, of a backward pass), the scheduler
 * watches its periods (sim/scheduler/leap.h). When each comes one and the same time behind the one before,
 * on all ranks and streams, and no flow joins them from outside, the periods to come can only do the same
 * once more: they are left out while events run, and their times follow. docs/simulation.md, "Depth
 * folding", proves it; every start of the whole list is then checked against all that it had to wait for.
 * Where any of this does not hold, the list is simulated whole. */
#ifndef SIM_DEPTH_H
#define SIM_DEPTH_H

#include "sim/plan/fold.h"
#include "sim/plan/plan.h"
#include "sim/plan/steady.h"

/* Equal periods in a row, of which some may have been left out. */
struct depth_run {
    uint32_t begin, ops;    /* the first op of the first period; of each */
    uint32_t periods, kept; /* all of them, and those that are simulated */
    uint32_t first_kept;    /* of those kept, the first in the row; the others are its last */
    uint32_t blocks;        /* layers of a period */
    double period_s;        /* from one to the next; depth_expand() finds it */
};

/* The runs of a schedule of one role that are long enough to leave periods out of, all of which are
 * kept. Heap; *count: how many. */
struct depth_run *depth_find_runs(const struct ir *ir, uint32_t *count);

/* Fills in the times of the periods that the runs leave out, and moves on what comes behind them. Rows of
 * periods left out are 0 before. Returns false when the times do not follow; then they are worth nothing. */
bool depth_expand(const struct sim_plan *plan, const struct fold *fold, struct depth_run *run,
                  uint32_t run_count, struct steady_times times);

#endif
