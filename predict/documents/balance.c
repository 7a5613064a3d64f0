/* predict/documents/balance.c: distributes sequences over ranks and micro-batches such that these have about equally
 * many visible pairs of a query and a key. It deals out the sequences, those with the most pairs first, each to the
 * group that has the fewest so far (longest processing time first), with equally many sequences in each group. WLB-LLM
 * (arXiv 2503.17924) and FlexSP (arXiv 2412.01523) balance the cost of attention, too, instead of tokens. */
#include "predict/documents/packing.h"

#include <stdlib.h>
#include <string.h>

const char *const balance_names[BALANCE_COUNT] = {"none", "pairs", "ranks", "dynamic-cp"};

static int more_pairs_first(const void *a, const void *b)
{
    const struct packed_sequence *x = a, *y = b;
    return (x->visible_pairs < y->visible_pairs) - (x->visible_pairs > y->visible_pairs);
}

/* Returns the number of visible pairs in a group of `size` sequences. */
static double visible_pairs_of_sequence_group(const struct packed_sequence *sequence, uint32_t size)
{
    double pairs = 0;
    for (uint32_t i = 0; i < size; i++)
        pairs += sequence[i].visible_pairs;
    return pairs;
}

static double most_pairs_of_sequence_group(const struct packed_sequence *sequence, uint32_t groups,
                                           uint32_t size)
{
    double most = 0;
    for (uint32_t g = 0; g < groups; g++) {
        double pairs = visible_pairs_of_sequence_group(sequence + (size_t)g * size, size);
        most = pairs > most ? pairs : most;
    }
    return most;
}

/* Distributes groups x size sequences over `groups` groups. If the largest group would not become smaller, the order
 * stays as it is. */
static void distribute_sequences_over_groups(struct packed_sequence *sequence, uint32_t groups,
                                             uint32_t size)
{
    size_t count = (size_t)groups * size;
    struct packed_sequence *sorted = heap_alloc(2 * count, sizeof *sorted), *dealt = sorted + count;
    uint32_t *held = heap_zalloc(groups, sizeof *held);
    double *pairs = heap_zalloc(groups, sizeof *pairs);
    memcpy(sorted, sequence, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, more_pairs_first);
    for (size_t i = 0; i < count; i++) {
        uint32_t to = groups;
        for (uint32_t g = 0; g < groups; g++)
            if (held[g] < size && (to == groups || pairs[g] < pairs[to]))
                to = g;
        dealt[(size_t)to * size + held[to]++] = sorted[i];
        pairs[to] += sorted[i].visible_pairs;
    }
    if (most_pairs_of_sequence_group(dealt, groups, size) <
        most_pairs_of_sequence_group(sequence, groups, size))
        memcpy(sequence, dealt, count * sizeof *sequence);
    free(pairs);
    free(held);
    free(sorted);
}

/* Orders the groups by their visible pairs, the most first. Groups with equally many keep their order. */
static void sort_sequence_groups_by_pairs(struct packed_sequence *sequence, uint32_t groups,
                                          uint32_t size)
{
    struct packed_sequence *moved = heap_alloc(size, sizeof *moved);
    for (uint32_t g = 1; g < groups; g++)
        for (uint32_t k = g; k > 0; k--) {
            struct packed_sequence *above = sequence + (size_t)(k - 1) * size;
            if (visible_pairs_of_sequence_group(above, size) >=
                visible_pairs_of_sequence_group(above + size, size))
                break;
            memcpy(moved, above, size * sizeof *moved);
            memcpy(above, above + size, size * sizeof *moved);
            memcpy(above + size, moved, size * sizeof *moved);
        }
    free(moved);
}

void packing_apply_balance(struct packed_batch *batch, const struct packing_options *o)
{
    uint32_t own = batch->sequence_count / o->data_parallel_ranks;
    if (o->balance == BALANCE_RANKS_AND_MICRO_BATCHES)
        distribute_sequences_over_groups(batch->sequence, o->data_parallel_ranks, own);
    for (uint32_t r = 0; r < o->data_parallel_ranks && o->balance != BALANCE_NONE; r++) {
        struct packed_sequence *first = batch->sequence + (size_t)r * own;
        distribute_sequences_over_groups(first, own / o->micro_batch_sequences,
                                         o->micro_batch_sequences);
        sort_sequence_groups_by_pairs(first, own / o->micro_batch_sequences,
                                      o->micro_batch_sequences);
    }
    double most = 0;
    for (uint32_t r = 0; r < o->data_parallel_ranks; r++) {
        double pairs = visible_pairs_of_sequence_group(batch->sequence + (size_t)r * own, own);
        if (pairs > most) {
            most = pairs;
            batch->fullest_rank = r;
        }
    }
    batch->fullest_over_mean = most * o->data_parallel_ranks / batch->visible_pairs;
}
