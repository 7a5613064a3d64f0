/* sim/stages.h: the time of a step by cause for each stage of a pipeline, and the pipeline's bubble.
 *
 * A bubble is the idle time of a pipeline. Sources publish it relative to useful time, (P - 1) / N for
 * N units on P stages, or as a share of the step, (P - 1) / (N + P - 1).
 * Both are given, over all ranks. */
#ifndef SIM_STAGES_H
#define SIM_STAGES_H

#include "schedule/ir/ir.h"
#include "sim/sim.h"
#include "sim/waterfall.h"

struct stages {
    uint32_t stage_count;          /* roles of the schedule */
    uint32_t *rank_count_by_stage; /* [stage_count] ranks of each stage */
    struct waterfall *waterfall;   /* [stage_count] the waterfall of each stage's lowest rank */
    /* mean over ranks of the time in which a compute stream works, or the rank waits for an optimizer step on the
     * host */
    double mean_busy_s;
    double fill_s, drain_s, pipeline_imbalance_s, documents_s, offload_s,
        other_s; /* means over ranks: the rest of the step, by cause */
    double bubble_to_busy,
        bubble_to_step; /* the bubble: idle time over busy time, and over the step */
};

/* Fills *stages from a simulated step. peak: as for waterfall_make(). */
void stages_make(struct stages *stages, const struct ir *ir, const struct sim_result *result,
                 struct waterfall_peak peak);
/* Does what waterfall_attribute_documents() does, for every stage. result: the one that stages_make() was given;
 * uniform: the stages if all ranks saw equally many pairs. */
void stages_attribute_documents(struct stages *stages, const struct stages *uniform,
                                const struct sim_result *result);
/* True if every waterfall adds up to the step, which those of a short list may not. */
bool stages_parts_sum_to_step(const struct stages *stages);
void stages_release(struct stages *stages);

#endif
