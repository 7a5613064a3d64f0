/* predict/documents/batches.h: the step times of many packed batches, each of which is a schedule of its own.
 *
 * The folder predict/documents/ predicts steps of packed documents as a distribution over batches. */
#ifndef PREDICT_DOCUMENTS_BATCHES_H
#define PREDICT_DOCUMENTS_BATCHES_H

#include "predict/documents/packing.h"
#include "predict/prediction.h"

/* The median of steps, the time that 9 of 10 do not exceed (interpolated between steps), and the longest. */
struct step_spread {
    size_t steps;
    double median_s, high_s, worst_s;
};

/* All-zero is empty. */
struct batch_times {
    size_t count;
    double *step_s;                     /* [count], heap: by batch */
    struct document_lateness *lateness; /* [count], heap: by batch */
    struct step_spread spread;
    size_t worst;         /* the batch that takes longest, the first of them */
    double tokens_per_s;  /* of all batches together, without padding, all GPUs */
    double padding_share; /* of the tokens of all batches */
    int64_t layers;       /* what was simulated of the batches after the first; 0: all layers */
};

/* Predicts the request of `first`, with the documents of each batch, in as many processes as there are cores. `first`
 * must have been simulated; it is the step of batch 0, and if it has a slow rank, so have the others. count is 1 or more.
 *
 * If very many ops of the first step were simulated, each other step is estimated from two steps of few layers, of its
 * own batch and of batch 0: T_i = T_0 + L / l (t_i - t_0). L and l are the numbers of layers without a window in the
 * model and in the shorter steps; if no layer or every layer has one, all layers count. No step of an exact
 * prediction is estimated. */
enum status batch_times_make(struct batch_times *times, const struct prediction *first,
                             const struct packed_batch *batch, size_t count, struct diag *diag);
void batch_times_release(struct batch_times *times);

/* Summarises the seconds of `count` steps, 1 or more. */
struct step_spread step_spread_of(const double *step_s, size_t count);

#endif
