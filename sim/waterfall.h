/* sim/waterfall.h: where the step of one rank went: every instant has one cause.
 *
 * While a compute stream works, the cause is what the work is for; else it is what the
 * next compute op waits for last. The intervals tile [0, step], so the causes add up to
 * the step. docs/simulation.md, "Waterfall", has the rules. */
#ifndef SIM_WATERFALL_H
#define SIM_WATERFALL_H

#include "schedule/ir.h"
#include "sim/sim.h"

enum cause {
    CAUSE_USEFUL,       /* model flops at the device's peak, forward and backward */
    CAUSE_IMBALANCE,    /* flops of tiles on pairs that the mask hides */
    CAUSE_RECOMPUTE,    /* everything in phase recompute */
    CAUSE_INEFFICIENCY, /* compute-bound kinds: time beyond flops / peak */
    CAUSE_MEMORY_BOUND, /* kinds limited by memory traffic */
    CAUSE_OPTIMIZER,
    CAUSE_ALL_TO_ALL, /* from here on: no compute op runs */
    CAUSE_RING,       /* shifts, and sends and receives inside attention */
    CAUSE_WEIGHTS,    /* gathers and reductions, broadcasts */
    CAUSE_PIPELINE,   /* sends and receives between stages */
    CAUSE_OFFLOAD,    /* copies between device and host, and work of host streams */
    CAUSE_HOST,       /* issue, syncs, barriers */
    CAUSE_OTHER,
    CAUSE_COUNT
};

struct waterfall {
    double step_s;
    double cause_s[CAUSE_COUNT];
};

/* The waterfall of one rank. peak_flop_per_s is the device's; INFINITY (the ideal cluster) is
 * not usable: give the peak that the costs were made with. */
void waterfall_make(struct waterfall *waterfall, const struct ir *ir,
                    const struct sim_result *result, const struct sim_costs *costs,
                    double peak_flop_per_s, uint32_t rank);

const char *cause_name(enum cause cause);

#endif
