/* predict/operator_times.h: the simulated times of a part of the model: one layer or its attention operator. */
#ifndef PREDICT_OPERATOR_TIMES_H
#define PREDICT_OPERATOR_TIMES_H

#include "predict/prediction.h"

/* Seconds. */
struct operator_times {
    /* until the part's last op ends on any rank: from its first op or its inputs */
    double elapsed_s;
    /* of rank 0: */
    double
        exchange_s; /* some all-to-all, or a pack or unpack around it, is running; 0: there is no all-to-all, but with
                          SCOPE_EXCHANGE, where it is then only of packing */
    bool all_to_all;
    double compute_s;  /* sum of the kernels, without those of an exchange */
    double ring_s;     /* sum of the messages with keys, values and their gradients, on the busiest
                         stream */
    double rotation_s; /* mean time to pass keys and values on, for one step of the forward */
    double pair_s, set_s; /* SCOPE_FETCH: the fetches of one forward and one backward tile */
    double
        communication_s; /* elapsed when kernels take no time, 0 without communication; operator_times_alone() */
};

/* Returns the times of a prediction that was simulated for a part of the model (--scope). */
struct operator_times operator_times_of(const struct prediction *prediction);

/* Simulates the prediction once more without kernels and sets communication_s. */
enum status operator_times_alone(struct operator_times *times, const struct prediction *prediction,
                                 bool exact, struct diag *diag);

#endif
