/* predict/recorded_operators.h: the kernels of a recorded program by operator and shapes, and their measured times. */
#ifndef PREDICT_RECORDED_OPERATORS_H
#define PREDICT_RECORDED_OPERATORS_H

#include "predict/prediction.h"
#include "traces/kernel_times.h"

/* All kernels of one recorded rank that have the same key. */
struct recorded_kernels_of_operator {
    /* the operator and its shapes; texts are in the arena and in the recording */
    struct operator_key key;
    uint32_t rank;
    size_t call_count;
    double predicted_s; /* seconds of all calls */
};

struct recorded_operators {
    struct arena arena;
    struct recorded_kernels_of_operator *row; /* sorted by rank and key */
    size_t count;
};

/* Sums the kernels of a simulated prediction of a recorded step. Release *operators. */
void recorded_operators_make(struct recorded_operators *operators,
                             const struct prediction *prediction);
void recorded_operators_release(struct recorded_operators *operators);

/* Gives the kernels of a recorded step, before it is simulated, the times of the same operators in a recording of the
 * PyTorch profiler, and fills prediction->measured. It is an error if the recording has none of the operators, or says
 * that it was made on another GPU than the cluster's. */
enum status recorded_operators_use_measured(struct prediction *prediction, const char *path,
                                            struct diag *diag);

#endif
