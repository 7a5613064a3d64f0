/* predict/operator_times.h: the simulated times of a part of the model: one layer or its attention operator. */
#ifndef PREDICT_OPERATOR_TIMES_H
#define PREDICT_OPERATOR_TIMES_H

#include "predict/prediction.h"

/* Seconds. */
struct operator_times {
    /* until the part's last op ends on any rank: from its first op or its inputs */
    double elapsed_s;
    /* of rank 0: */
    /* some all-to-all, or a pack or unpack around it, is running. Without an all-to-all it is 0, but of packing with
     * SCOPE_EXCHANGE. */
    double exchange_s;
    bool all_to_all;
    double packing_s;  /* sum of packs and unpacks, which are kernels */
    double compute_s;  /* sum of the other kernels */
    double ring_s;     /* sum of the messages with keys, values and their gradients, on the busiest
                         stream */
    double rotation_s; /* mean time to pass keys and values on, for one step of the forward */
    double pair_s, set_s;   /* SCOPE_FETCH: the fetches of one forward and one backward tile */
    double communication_s; /* elapsed when kernels take no time, 0 without communication;
                               operator_times_alone() */
};

/* Returns the times of a prediction that was simulated for a part of the model (--scope). */
struct operator_times operator_times_of(const struct prediction *prediction);

/* Returns the kernels of rank 0 one after the other; where there are all-to-alls, without those of the exchange. */
static inline double operator_times_kernels(const struct operator_times *times)
{
    return times->compute_s + (times->all_to_all ? 0 : times->packing_s);
}

/* Simulates the prediction once more without kernels and sets communication_s. */
enum status operator_times_alone(struct operator_times *times, const struct prediction *prediction,
                                 struct diag *diag);

#endif
