/* predict/documents/packed_sets.h: the packed batches on which the configurations of a search are compared.
 *
 * Configurations whose steps have the same sizes share a packed set. In each of its batches, one data-parallel rank has
 * the most pairs. The typical batch of a packed set is the batch in which the number of that rank's pairs is the median
 * (of an even number of batches, the lower of the two in the middle): its step is about the median of all steps. */
#ifndef PREDICT_DOCUMENTS_PACKED_SETS_H
#define PREDICT_DOCUMENTS_PACKED_SETS_H

#include "predict/documents/packing.h"
#include "schedule/choices/choices.h"

#include <stddef.h>

/* The distribution of documents and how they are packed. The members mean the same as in lengths_open() and struct
 * packing_options. */
struct packed_sets_request {
    const char *lengths_text;
    uint64_t seed;
    enum packing_policy policy;
    enum packing_balance_policy balance;
    /* number of batches of each packed set, 1 or more; a packed set has fewer if a file of sampled batches has fewer */
    size_t batch_count;
};

struct packed_set {
    struct packing_options packing_options;
    struct packed_batch *batch; /* [batch_count], heap */
    size_t batch_count;
    size_t typical_batch;       /* the index of the typical batch in batch[] */
    struct documents documents; /* the documents of the typical batch */
};

/* All-zero is empty, apart from `request`, which the caller sets. */
struct packed_sets {
    struct packed_sets_request request;
    /* [set_count] on the heap; each packed set is on the heap, too */
    struct packed_set **packed_set;
    size_t set_count;
    struct arena arena;
};

/* Fills the sizes of a step, and the multiple to which its layout rounds documents up. It leaves policy and balance to
 * the caller. If the multiple does not divide a sequence, it returns an error. */
enum status packing_fill_sizes(struct packing_options *sizes, const struct request *request,
                               const struct choices *choices, struct diag *diag);

/* Finds the packed set for the sizes of the step; if there is none, packs it. *found stays valid until
 * packed_sets_release(). */
enum status packed_sets_find_or_pack(const struct packed_set **found,
                                     struct packed_sets *packed_sets, const struct request *request,
                                     const struct choices *choices, struct diag *diag);
void packed_sets_release(struct packed_sets *packed_sets);

/* packed_set_batch_tokens() returns the tokens that belong to documents in batch number `batch`,
 * packed_set_mean_tokens() their mean over the first `count` batches. */
double packed_set_batch_tokens(const struct packed_set *packed_set, size_t batch);
double packed_set_mean_tokens(const struct packed_set *packed_set, size_t count);

#endif
