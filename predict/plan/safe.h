/* predict/plan/safe.h: a search that takes what fits for sure, with the faster gamble beside it.
 *
 * A configuration is taken if it fits with a probability of at least what was asked (struct verdict). Where none does,
 * the safest that fits in half of the cases is taken: of 0.8, 0.7, 0.6 and 0.5 the highest with which any fits. */
#ifndef PREDICT_PLAN_SAFE_H
#define PREDICT_PLAN_SAFE_H

#include "predict/plan/best.h"

struct safe {
    double asked, taken; /* probabilities; taken < asked: nothing is that safe */
    /* TIMED: what is better than the winner, but fits with less than `asked`, and at least 0.5 */
    struct outcome gamble;
    size_t gamble_gpus; /* of it, with GOAL_GPUS */
};

/* Does what best_find() does, among configurations that fit with that probability, and fills *safe. The setup keeps the
 * probability that was taken. With packed documents no gamble is searched for. */
enum status safe_find(struct safe *safe, struct best *best, enum goal goal, struct setup *setup,
                      struct space_open open, double probability, struct diag *diag);

#endif
