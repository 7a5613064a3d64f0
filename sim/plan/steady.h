/* sim/plan/steady.h: derives the times of iterations that were not simulated from those that were.
 *
 * If the iterations around a gap follow each other after the same time (the period), on all ranks and streams, and no
 * other event is open meanwhile, then the left-out iterations can only do the same again, and every op after the gap
 * comes later by one period for each of them. docs/simulation.md proves it; every start is then checked against all
 * that it waits for. The gaps are those of a sample, which stands for a longer list (schedule/ir/repeats.h), or those
 * of a whole list that the scheduler has simulated in part (sim/plan/depth.h). */
#ifndef SIM_STEADY_H
#define SIM_STEADY_H

#include "sim/plan/fold.h"
#include "sim/plan/plan.h"

/* Start and end of every op, one class of ranks (struct fold) after the other. */
struct steady_times {
    double *start_s, *end_s;
};

struct steady_run {
    uint32_t role;
    uint32_t begin, ops; /* first op of the first iteration; ops of each iteration */
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

/* Sets row and same_s; the caller has set the members above them. */
void steady_begin(struct steady *steady);
void steady_release(struct steady *steady);

/* Finds period_s of every run. Returns false when times do not repeat. */
bool steady_find_periods(struct steady *steady);

/* True if every op of the whole list starts when the last of its dependencies has ended. *step_s: when the list
 * ends. */
bool steady_starts_are_right(const struct steady *steady, double *step_s);

/* Does all of this for a sample: fills period_s[run], and *step_s of the whole list. Returns false when the times of
 * the whole list do not follow from those of the sample. */
bool steady_periods(const struct sim_plan *plan, const struct fold *fold, struct steady_times times,
                    double *period_s, double *step_s);

#endif
