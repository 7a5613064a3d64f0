/* predict/documents/batches.h: the step times of many packed batches, each of which is a schedule of its own.
 *
 * The folder predict/documents/ predicts steps of packed documents as a distribution over batches. */
#ifndef PREDICT_DOCUMENTS_BATCHES_H
#define PREDICT_DOCUMENTS_BATCHES_H

#include "predict/documents/packing.h"
#include "predict/prediction.h"
#include "predict/repeated_steps.h"

/* The step times of all batches. All-zero is empty. */
struct batch_times {
    size_t batch_count;
    double *step_s;                              /* [batch_count], heap */
    struct document_lateness_of_ranks *lateness; /* [batch_count], heap */
    struct step_spread spread;
    size_t slowest_batch; /* the first of the batches that take longest */
    /* tokens of all batches together, without padding, per second, on all GPUs together */
    double tokens_per_s;
    double padding_share; /* padding as a share of the tokens of all batches */
    /* number of layers with which the batches after the first were simulated; 0: all layers */
    int64_t simulated_layers;
};

/* Predicts the request of `first` with the documents of each of count >= 1 batches, in as many processes as there are
 * cores. `first` is the step of batch 0 and must have been simulated. If it has a slow rank, all batches have that slow
 * rank. */
enum status batch_times_make(struct batch_times *times, const struct prediction *first,
                             const struct packed_batch *batch, size_t count, struct diag *diag);
void batch_times_release(struct batch_times *times);

#endif
