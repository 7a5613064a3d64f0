/* cli/operator_times.h: what became of one layer's attention operator in a simulation. */
#ifndef CLI_OPERATOR_TIMES_H
#define CLI_OPERATOR_TIMES_H

#include "cli/prediction.h"

/* Seconds. All from the first op of the operator on any rank to its last. */
struct operator_times {
    double elapsed_s;
    double exchange_s; /* rank 0: some all-to-all, or a pack or unpack around it, is running */
    double
        compute_s; /* rank 0: kernels alone, one after the other, without those of the exchange */
    double ring_s; /* rank 0: messages of the busiest ring alone, one after the other */
};

/* Of a prediction that was simulated, of a schedule with scope attention. */
struct operator_times operator_times_of(const struct prediction *prediction);

#endif
