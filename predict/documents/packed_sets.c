#include "predict/documents/packed_sets.h"

#include <stdlib.h>
#include <string.h>

enum status packing_fill_sizes(struct packing_options *sizes, const struct request *request,
                               const struct choices *c, struct diag *diag)
{
    bool cut = request->ring_layout == RING_ZIGZAG_DOCUMENTS && c->cp > 1;
    sizes->sequence_tokens = c->seq;
    sizes->round_documents_to = cut ? 2 * (int64_t)c->cp : 1;
    sizes->sequence_count = (uint32_t)c->global_batch;
    sizes->data_parallel_ranks = c->dp;
    sizes->micro_batch_sequences = (uint32_t)c->micro_batch;
    return c->seq % sizes->round_documents_to == 0
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = "--layout"}, STATUS_BAD_INPUT,
                            "zigzag-documents pads documents to multiples of %lld tokens, and a "
                            "sequence has %lld",
                            (long long)sizes->round_documents_to, (long long)c->seq);
}

static bool have_same_sizes(const struct packing_options *a, const struct packing_options *b)
{
    return a->sequence_tokens == b->sequence_tokens &&
           a->round_documents_to == b->round_documents_to &&
           a->sequence_count == b->sequence_count &&
           a->data_parallel_ranks == b->data_parallel_ranks &&
           a->micro_batch_sequences == b->micro_batch_sequences;
}

static double largest_rank_pairs(const struct packed_batch *batch)
{
    return batch->visible_pairs * batch->fullest_over_mean;
}

/* Returns the index of the typical batch (see packed_sets.h). */
static size_t find_typical_batch(const struct packed_set *packed_set)
{
    for (size_t i = 0; i < packed_set->batch_count; i++) {
        double own = largest_rank_pairs(&packed_set->batch[i]);
        size_t below = 0;
        for (size_t k = 0; k < packed_set->batch_count; k++) {
            double other = largest_rank_pairs(&packed_set->batch[k]);
            below += other < own || (other == own && k < i);
        }
        if (below == (packed_set->batch_count - 1) / 2)
            return i;
    }
    return 0;
}

static void packed_set_free(struct packed_set *packed_set)
{
    for (size_t i = 0; i < packed_set->batch_count; i++)
        packed_batch_release(&packed_set->batch[i]);
    free(packed_set->batch);
    free(packed_set);
}

static enum status pack_set(struct packed_set *packed_set, struct packed_sets *packed_sets,
                            struct diag *diag)
{
    const struct packed_sets_request *asked = &packed_sets->request;
    struct lengths lengths = {0};
    enum status status = lengths_open(&lengths, asked->lengths_text, asked->seed, diag);
    packed_set->batch = heap_zalloc(asked->batch_count, sizeof *packed_set->batch);
    while (status == STATUS_OK && packed_set->batch_count < asked->batch_count &&
           (packed_set->batch_count == 0 || !lengths_are_used_up(&lengths)))
        status = packing_pack_next_step(&packed_set->batch[packed_set->batch_count++], &lengths,
                                        &packed_set->packing_options, diag);
    lengths_release(&lengths);
    if (status != STATUS_OK)
        return status;
    packed_set->typical_batch = find_typical_batch(packed_set);
    packed_batch_fill_documents(&packed_set->batch[packed_set->typical_batch],
                                packed_set->packing_options.sequence_tokens, &packed_set->documents,
                                &packed_sets->arena);
    return STATUS_OK;
}

enum status packed_sets_find_or_pack(const struct packed_set **found,
                                     struct packed_sets *packed_sets, const struct request *request,
                                     const struct choices *choices, struct diag *diag)
{
    struct packing_options sizes = {.policy = packed_sets->request.policy,
                                    .balance = packed_sets->request.balance};
    enum status status = packing_fill_sizes(&sizes, request, choices, diag);
    for (size_t i = 0; status == STATUS_OK && i < packed_sets->set_count; i++)
        if (have_same_sizes(&packed_sets->packed_set[i]->packing_options, &sizes)) {
            *found = packed_sets->packed_set[i];
            return STATUS_OK;
        }
    if (status != STATUS_OK)
        return status;
    struct packed_set *packed_set = heap_zalloc(1, sizeof *packed_set);
    packed_set->packing_options = sizes;
    status = pack_set(packed_set, packed_sets, diag);
    if (status != STATUS_OK) {
        packed_set_free(packed_set);
        return status;
    }
    /* an array that grows by one is fast enough, since there are few packed sets */
    packed_sets->packed_set = heap_realloc(packed_sets->packed_set, packed_sets->set_count + 1,
                                           sizeof(struct packed_set *));
    packed_sets->packed_set[packed_sets->set_count++] = packed_set;
    *found = packed_set;
    return STATUS_OK;
}

void packed_sets_release(struct packed_sets *packed_sets)
{
    for (size_t i = 0; i < packed_sets->set_count; i++)
        packed_set_free(packed_sets->packed_set[i]);
    free((void *)packed_sets->packed_set);
    arena_release(&packed_sets->arena);
    *packed_sets = (struct packed_sets){0};
}

double packed_set_batch_tokens(const struct packed_set *packed_set, size_t batch)
{
    return (double)packed_set->batch[batch].document_tokens;
}

double packed_set_mean_tokens(const struct packed_set *packed_set, size_t count)
{
    double tokens = 0;
    for (size_t i = 0; i < count; i++)
        tokens += packed_set_batch_tokens(packed_set, i);
    return tokens / (double)count;
}
