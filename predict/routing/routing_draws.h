/* predict/routing/routing_draws.h: what routing that is not even costs: the step with even routing, with other draws of
 * the same distribution, and the rank for which the others wait.
 *
 * The folder predict/routing/ predicts steps of mixtures of experts as a distribution over shares of experts. */
#ifndef PREDICT_ROUTING_DRAWS_H
#define PREDICT_ROUTING_DRAWS_H

#include "predict/prediction.h"
#include "predict/repeated_steps.h"

enum { ROUTING_DRAWS = 20 };

/* The time that uneven routing costs a step. All-zero: routing is even, or that of a schedule file. */
struct routing_draws {
    bool is_uneven; /* routing is not even */
    /* fullest_rank: of the ranks with different experts, the one that has the most copies in the largest number of
     * layers; late_layers: the number of these layers; layers: the number of layers with experts */
    uint32_t fullest_rank, late_layers, layers;
    /* the copies computed by the rank that computes the most, divided by the mean over ranks; a mean over layers */
    double fullest_over_mean;
    double even_step_s; /* the step with even routing */
    /* the steps of seeds 1 to ROUTING_DRAWS; 0 steps: shares are not drawn */
    struct step_spread spread;
    uint32_t worst_seed; /* the first of the seeds that take longest */
};

/* Predicts the request of `first`, which must have been simulated, with even routing and, if its shares are drawn, with
 * other seeds. Does nothing if its routing is even, or if it is of a schedule file. */
enum status routing_draws_make(struct routing_draws *draws, const struct prediction *first,
                               struct diag *diag);

#endif
