/* predict/plan/split.h: splits the time by which a configuration loses to the winner into layout, attention kernels
 * and framework.
 *
 * The loser and the winner are both predicted with profile ideal, which has no overheads of a framework: once with the
 * same attention kernels, and once with the kernels of their own profiles. The difference of the first two predictions
 * is due to the layouts. What the second two differ by beyond that is due to the kernels. The rest is due to the
 * framework: the host's time, waits, copies, and kernels that an implementation leaves unfused. The three parts add up
 * to the whole difference. */
#ifndef PREDICT_PLAN_SPLIT_H
#define PREDICT_PLAN_SPLIT_H

#include "predict/plan/best.h"

/* The seconds by which a loser lags behind the winner, split by causes. */
struct lag_by_cause {
    bool is_known; /* false: a prediction could not be made */
    /* seconds per sequence by which the loser is slower; below 0: it is faster */
    double layout_s, kernels_s, framework_s;
};

/* Fills split[i] for loser[i], i < count, by predictions in child processes. A loser that is NULL is skipped. */
enum status splits_find_lag_by_cause(struct lag_by_cause *split, const struct outcome *const *loser,
                                     size_t count, const struct outcome *winner,
                                     struct setup *setup, struct diag *diag);

#endif
