/* sim/plan/depth.h: depth folding: layers that repeat the layers before them are not simulated.
 *
 * Where the list of ops repeats itself (the layers of a forward pass, of a backward pass), the scheduler
 * watches its periods (sim/scheduler/leap.h). When each period follows the one before after the same time,
 * on all ranks and streams, and no flow joins them from outside, the coming periods can only do the same
 * again: they are left out while events run, and their times follow. docs/simulation.md, "Depth
 * folding", proves it; every start of the whole list is then checked against all that it had to wait for.
 * Where any of this does not hold, the whole list is simulated. */
#ifndef SIM_DEPTH_H
#define SIM_DEPTH_H

#include "sim/plan/fold.h"
#include "sim/plan/plan.h"
#include "sim/plan/steady.h"

/* Equal periods in a row, of which some may have been left out. */
struct depth_run {
    uint32_t begin, ops;    /* the first op of the first period; ops of each period */
    uint32_t periods, kept; /* all periods, and those that are simulated */
    uint32_t first_kept;    /* kept periods at the run's start; the others are at its end */
    uint32_t blocks;        /* layers of a period */
    double period_s;        /* seconds from one period to the next; depth_expand() finds them */
};

/* Returns the runs of a schedule of one role that are long enough to leave periods out, on the heap; *count is their
 * number. All periods are marked as kept. */
struct depth_run *depth_find_runs(const struct ir *ir, uint32_t *count);

/* Fills in the times of the periods that the runs leave out, and shifts the times of all ops after them. The rows of
 * left-out periods are 0 before. Returns false when the times do not follow; then they must not be used. */
bool depth_expand(const struct sim_plan *plan, const struct fold *fold, struct depth_run *run,
                  uint32_t run_count, struct steady_times times);

#endif
