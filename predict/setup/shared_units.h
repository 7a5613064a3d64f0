/* predict/setup/shared_units.h: chooses which subsequences stages of `msp` share, if the user left that open.
 *
 * Sharing gives work to stages that would idle, but it has costs: the keys and values of a shared unit are gathered
 * in every layer, stages need each other's weights and return gradient sums, and sharing the last units needs the
 * keys and values of all others. So for every number of shared first and last units the step is replayed, task by
 * task over all stages in their order, at the rates of large work and of the links, without an op list and without
 * contention beyond the costs named here. docs/strategies/pipelines.md, "Multiplexed sequence partitioning". */
#ifndef PREDICT_SETUP_SHARED_UNITS_H
#define PREDICT_SETUP_SHARED_UNITS_H

#include "predict/setup/setup.h"

enum { SHARED_UNITS_MAX = 4 };

/* Numbers of shared units that are worth trying, the fastest first by the seconds of the replayed step. Each later one
 * is slower, but needs less memory; the last shares nothing. */
struct shared_units_worth_trying {
    struct shared_units fastest_first[SHARED_UNITS_MAX];
    uint32_t count;
};
/* Finds the numbers of shared units that are worth trying, for choices of pipeline `msp` whose
 * must_compute_subsequence_tokens is false. */
struct shared_units_worth_trying shared_units_rank_by_step_time(const struct setup *setup,
                                                                const struct choices *choices);

/* Returns the seconds of all layers and the head in a replayed step. Only tests call it. */
double shared_units_step_s(const struct setup *setup, const struct choices *choices,
                           struct shared_units shared);

#endif
