/* sim/plan/steady.h: the times of a whole list from those of a sample (schedule/ir/repeats.h).
 *
 * The sample is simulated as any list. When the iterations around a gap come one and the same time after each
 * other, on all ranks and streams, and nothing else is open meanwhile, the copies that were left out can only do the
 * same once more: all that follows the gap comes later by the copies' periods. docs/simulation.md, "Repeated
 * iterations", proves it; every start is then checked against all that it has to wait for in the whole list. */
#ifndef SIM_STEADY_H
#define SIM_STEADY_H

#include "sim/plan/fold.h"
#include "sim/plan/plan.h"

/* Start and end of every op of the sample, of one class of ranks after the other (fold's). */
struct steady_times {
    const double *start_s, *end_s;
};

/* Fills period_s[run]: from one iteration of a run to the next; and *step_s, when the whole list ends. Returns false
 * when times do not repeat; then they are worth nothing. */
bool steady_periods(const struct plan *plan, const struct fold *fold,
                    const struct steady_times *times, double *period_s, double *step_s);

/* How much later an op of the sample comes in the whole list. */
double steady_shift_s(const struct ir *ir, const double *period_s, uint32_t role, uint32_t op);

#endif
