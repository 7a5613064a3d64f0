/* sim/stages.h: what the stages of a pipeline do with a step, and its bubble.
 *
 * A bubble is the idle time of a pipeline, and published in two ways: relative to useful time, so
 * that (P - 1) / N is that of N units on P stages, and as a share of the step, (P - 1) / (N + P - 1).
 * Both are given, over all ranks. */
#ifndef SIM_STAGES_H
#define SIM_STAGES_H

#include "schedule/ir/ir.h"
#include "sim/sim.h"
#include "sim/waterfall.h"

struct stages {
    uint32_t count;       /* roles of the schedule */
    uint32_t *ranks;      /* of each */
    struct waterfall *of; /* of each: its lowest rank's */
    double busy_s;        /* mean over ranks of the time in which a compute stream works */
    double fill_s, drain_s, imbalance_s, offload_s, other_s; /* means: the rest of the step */
    double to_useful, to_step; /* the bubble: idle time over busy time, and over the step */
};

/* peak as in waterfall_make(). */
void stages_make(struct stages *stages, const struct ir *ir, const struct sim_result *result,
                 struct waterfall_peak peak);
/* Does every waterfall add up to the step? Those of a sample may not. */
bool stages_add_up(const struct stages *stages);
void stages_release(struct stages *stages);

#endif
