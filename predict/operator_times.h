/* predict/operator_times.h: what became of a part of the model, one layer or its attention operator, in a
 * simulation. */
#ifndef PREDICT_OPERATOR_TIMES_H
#define PREDICT_OPERATOR_TIMES_H

#include "predict/prediction.h"

/* Seconds. */
struct operator_times {
    double elapsed_s; /* from the first op of the part on any rank to its last */
    /* of rank 0: */
    double exchange_s; /* some all-to-all, or a pack or unpack around it, is running */
    bool all_to_all;   /* there is one; else there is only the packing */
    double compute_s;  /* sum of the kernels, without those of the exchange */
    double ring_s;     /* sum of the messages with keys, values and their gradients, on the busiest
                         stream */
    double rotation_s; /* the mean of what keys and values take for one step of the forward */
    double pair_s, set_s; /* of SCOPE_FETCH: what a forward and a backward tile fetch, one by one */
    double communication_s; /* elapsed when kernels take no time; operator_times_alone() */
};

/* The prediction must have been simulated, for a part of the model (--scope). */
struct operator_times operator_times_of(const struct prediction *prediction);

/* Simulates it once more without kernels, for communication_s. */
enum status operator_times_alone(struct operator_times *times, const struct prediction *prediction,
                                 bool exact, struct diag *diag);

#endif
