/* predict/documents/packed_sets.h: the packed batches on which the configurations of a search are compared.
 *
 * Configurations whose steps have the same sizes share a packed set. The typical batch of a packed set is the one in
 * which the pairs of the largest data-parallel rank are the median over the batches (of two, the lower one): its step
 * is about the median of all steps. */
#ifndef PREDICT_DOCUMENTS_PACKED_SETS_H
#define PREDICT_DOCUMENTS_PACKED_SETS_H

#include "predict/documents/packing.h"
#include "schedule/choices/choices.h"

#include <stddef.h>

/* What is sampled: as lengths_open() and struct packing_options have it. */
struct packed_sets_request {
    const char *lengths;
    uint64_t seed;
    enum packing_policy policy;
    enum packing_balance balance;
    size_t
        batches; /* of each packed set, 1 or more; fewer where a file of sampled batches has fewer */
};

struct packed_set {
    struct packing_options sizes;
    struct packed_batch *batch; /* [count], heap */
    size_t count, typical;
    struct documents documents; /* of the typical batch */
};

/* All-zero but for `asked` is empty. */
struct packed_sets {
    struct packed_sets_request asked;
    struct packed_set **packed_set; /* [count], heap, each on the heap */
    size_t count;
    struct arena arena;
};

/* Fills the sizes of a step, and the multiple to which its layout rounds documents up; policy and balance are the
 * caller's. An error says that the multiple does not divide a sequence. */
enum status packing_sizes(struct packing_options *sizes, const struct request *request,
                          const struct choices *choices, struct diag *diag);

/* Finds the packed set of a step's sizes, or packs it. It stays where it is until packed_sets_release(). */
enum status packed_sets_find(const struct packed_set **found, struct packed_sets *packed_sets,
                             const struct request *request, const struct choices *choices,
                             struct diag *diag);
void packed_sets_release(struct packed_sets *packed_sets);

/* Returns the tokens of documents of one batch, and of a packed set's first `count` batches on average. */
double packed_set_tokens(const struct packed_set *packed_set, size_t batch);
double packed_set_mean_tokens(const struct packed_set *packed_set, size_t count);

#endif
