/* sim/plan/steady.h: times of iterations that were not simulated, from those that were.
 *
 * When iterations around a gap come one and the same time after each other, on all ranks and streams, and nothing else
 * is open meanwhile, those that were left out there can only do the same once more, and all that follows the gap comes
 * later by so many periods. docs/simulation.md proves it; every start is then checked against all that it has to wait for.
 * Gaps are those of a sample, which stands for a longer list (schedule/ir/repeats.h), or of a whole list that the
 * scheduler has simulated in part (sim/plan/depth.h). */
#ifndef SIM_STEADY_H
#define SIM_STEADY_H

#include "sim/plan/fold.h"
#include "sim/plan/plan.h"

/* Start and end of every op, of one class of ranks after the other (fold's). */
struct steady_times {
    double *start_s, *end_s;
};

struct steady_run {
    uint32_t role;
    uint32_t begin, ops; /* of the first iteration */
    uint32_t gap,
        left_out; /* after how many iterations the gap comes; iterations of the list that were not simulated */
    double period_s; /* from one iteration to the next, which steady_find_periods() finds */
};

struct steady {
    const struct sim_plan *plan;
    const struct fold *fold;
    struct steady_times times;
    struct steady_run *run; /* [run_count] in list order */
    uint32_t run_count;
    size_t *row; /* per class: of its first op in the times */
    double same_s;
};

/* The first members above are given. */
void steady_begin(struct steady *steady);
void steady_release(struct steady *steady);

/* Returns false when times do not repeat. */
bool steady_find_periods(struct steady *steady);

/* Does every op of the whole list start when the last of what it needs has ended? *step_s: when the list ends. */
bool steady_starts_are_right(const struct steady *steady, double *step_s);

/* All of it for a sample: fills period_s[run] and *step_s, of the whole list. Returns false when times do not tell
 * those of the whole list. */
bool steady_periods(const struct sim_plan *plan, const struct fold *fold, struct steady_times times,
                    double *period_s, double *step_s);

#endif
