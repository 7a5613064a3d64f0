/* predict/plan/probable.h: the best configuration that fits with the probability that was asked for, and a better one
 * that fits with less.
 *
 * A configuration is taken if it fits with a probability of at least what was asked (struct verdict). If none does, the
 * highest of the probabilities 0.8, 0.7, 0.6 and 0.5 with which any configuration fits is used instead. */
#ifndef PREDICT_PLAN_PROBABLE_H
#define PREDICT_PLAN_PROBABLE_H

#include "predict/plan/best.h"

struct probable_choice {
    /* taken_probability: the one with which the used result was found; it is below asked_probability if nothing fits
     * with that */
    double asked_probability, taken_probability;
    /* OUTCOME_SIMULATED: a configuration that is better than the winner, but fits with a probability from 0.5 to
     * asked_probability only. Other kinds: there is none */
    struct outcome less_probable_outcome;
    /* the number of GPUs of less_probable_outcome, with GOAL_GPUS */
    size_t less_probable_gpu_count;
};

/* Finds the best configuration that fits with at least `probability`, as best_find() does. If there is none, it tries
 * 0.8, 0.7, 0.6 and 0.5, and stores the probability used in chosen->taken_probability and setup->fits_probability. It
 * also finds a better configuration that fits with a lower probability (chosen->less_probable_outcome). With packed
 * documents it does neither of these. */
enum status probable_find(struct probable_choice *chosen, struct best *best, enum plan_goal goal,
                          struct setup *setup, struct space_open open, double probability,
                          struct diag *diag);

#endif
