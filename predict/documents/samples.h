/* predict/documents/samples.h: the packed batches on which the configurations of a search are compared.
 *
 * Configurations whose steps have the same sizes share a sample. The typical batch of a sample is the one in which
 * the pairs of the largest data-parallel rank are the median over the batches (of two, the lower one): its step is
 * about the median of all steps. */
#ifndef PREDICT_DOCUMENTS_SAMPLES_H
#define PREDICT_DOCUMENTS_SAMPLES_H

#include "predict/documents/packing.h"
#include "schedule/choices/choices.h"

#include <stddef.h>

/* What is sampled: as lengths_open() and struct packing_options have it. */
struct samples_request {
    const char *lengths;
    uint64_t seed;
    enum packing_policy policy;
    enum packing_balance balance;
    size_t batches; /* of each sample, 1 or more; fewer where a file of sampled batches has fewer */
};

struct sample {
    struct packing_options sizes;
    struct packed_batch *batch; /* [count], heap */
    size_t count, typical;
    struct documents documents; /* of the typical batch */
};

/* All-zero but for `asked` is empty. */
struct samples {
    struct samples_request asked;
    struct sample **sample; /* [count], heap, each on the heap */
    size_t count;
    struct arena arena;
};

/* Fills the sizes of a step, and the multiple to which its layout rounds documents up; policy and balance are the
 * caller's. An error says that the multiple does not divide a sequence. */
enum status packing_sizes(struct packing_options *sizes, const struct request *request,
                          const struct choices *choices, struct diag *diag);

/* Finds the sample of a step's sizes, or packs it. It stays where it is until samples_release(). */
enum status samples_find(const struct sample **found, struct samples *samples,
                         const struct request *request, const struct choices *choices,
                         struct diag *diag);
void samples_release(struct samples *samples);

/* Returns the tokens of documents of one batch, and of a sample's first `count` batches on average. */
double sample_tokens(const struct sample *sample, size_t batch);
double sample_mean_tokens(const struct sample *sample, size_t count);

#endif
