/* predict/plan/split.h: how much of a loser's distance from the winner is layout, attention kernels, framework.
 *
 * Both are predicted with profile ideal, which has no framework: with the same attention kernels, the
 * difference is layout; what each one's own kernels add is kernels. The rest is framework: the host's
 * time, waits, copies, and kernels that an implementation leaves unfused. The three add up. */
#ifndef PREDICT_PLAN_SPLIT_H
#define PREDICT_PLAN_SPLIT_H

#include "predict/plan/best.h"

struct split {
    bool known;                              /* false: a prediction could not be made */
    double layout_s, kernels_s, framework_s; /* of a sequence; below 0: the loser takes less */
};

/* Fills split[i] for loser[i], count of them. NULL is not asked about. */
enum status splits_find(struct split *split, const struct outcome *const *loser, size_t count,
                        const struct outcome *winner, struct setup *setup, struct diag *diag);

#endif
