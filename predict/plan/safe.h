/* predict/plan/safe.h: a search that takes what fits for sure, with the faster gamble beside it.
 *
 * A configuration is taken if it fits with a probability of at least what was asked (struct verdict). Where none does,
 * the safest that fits in half of the cases is taken: of 0.8, 0.7, 0.6 and 0.5 the highest with which any fits. */
#ifndef PREDICT_PLAN_SAFE_H
#define PREDICT_PLAN_SAFE_H

#include "predict/plan/best.h"

struct safe_choice {
    double asked_probability,
        taken_probability; /* probabilities; taken < asked: nothing is that safe */
    /* TIMED: what is better than the winner, but fits with less than `asked_probability`, and at least 0.5 */
    struct outcome risky_outcome;
    size_t risky_gpus; /* of it, with GOAL_GPUS */
};

/* Finds the best configuration that fits with at least `probability`, as best_find() does. If none does, it tries
 * 0.8, 0.7, 0.6 and 0.5, and says in safe->taken_probability and setup->fits_probability which was used. It also
 * looks for a better configuration that fits less surely (safe->risky_outcome). With packed documents it does
 * neither. */
enum status safe_find(struct safe_choice *safe, struct best *best, enum plan_goal goal,
                      struct setup *setup, struct space_open open, double probability,
                      struct diag *diag);

#endif
