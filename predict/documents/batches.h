/* predict/documents/batches.h: the step times of many packed batches, each of which is a schedule of its own.
 *
 * The folder predict/documents/ predicts steps of packed documents as a distribution over batches. */
#ifndef PREDICT_DOCUMENTS_BATCHES_H
#define PREDICT_DOCUMENTS_BATCHES_H

#include "predict/documents/packing.h"
#include "predict/setup/setup.h"

/* All-zero is empty. */
struct batch_times {
    size_t count;
    double *step_s; /* [count], heap: by batch */
    double median_s, high_s,
        worst_s;          /* high: 9 of 10 steps take no longer, between steps by interpolation */
    size_t worst;         /* the batch that takes longest, the first of them */
    double tokens_per_s;  /* of all batches together, without padding, all GPUs */
    double padding_share; /* of the tokens of all batches */
};

/* Predicts the setup's request with the documents of each batch, in as many processes as there are cores. `exact` as
 * of prediction_time(). */
enum status batch_times_make(struct batch_times *times, const struct setup *setup,
                             const struct packed_batch *batch, size_t count, bool exact,
                             struct diag *diag);
void batch_times_release(struct batch_times *times);

#endif
