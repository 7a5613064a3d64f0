/* predict/plan/probable.h: the best configuration that fits with the probability that was asked for (the winner), and a
 * better one, if there is one, that fits with a lower probability of at least 0.5 (the less probable one).
 *
 * If no configuration fits with the probability that was asked for, the highest of the probabilities 0.8, 0.7, 0.6 and
 * 0.5 with which any fits takes its place; then there is no less probable one. */
#ifndef PREDICT_PLAN_PROBABLE_H
#define PREDICT_PLAN_PROBABLE_H

#include "predict/plan/best.h"

struct fits_probabilities_of_winner {
    double asked_probability; /* the probability that was asked for */
    /* the probability with which the winner was searched for, at most asked_probability */
    double search_probability;
    /* the outcome of the less probable configuration; if it is not OUTCOME_SIMULATED, there is none */
    struct outcome less_probable_outcome;
    /* with GOAL_GPUS: the number of GPUs of less_probable_outcome */
    size_t less_probable_gpu_count;
};

/* Finds the winner as best_find() does, and fills *best and *chosen. The probability with which it was searched for is
 * also stored in setup->fits_probability. With packed documents, if a limit or a signal ended the search, or if
 * `probability` is at most 0.5, lower probabilities are not tried, and there is no less probable configuration. */
enum status probable_find(struct fits_probabilities_of_winner *chosen, struct best *best,
                          enum plan_goal goal, struct setup *setup, struct space_open open,
                          double probability, struct diag *diag);

#endif
