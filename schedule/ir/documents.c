#include "schedule/ir/documents.h"

#include <assert.h>
#include <string.h>

void documents_init(struct documents *d, struct arena *arena, uint32_t sequences)
{
    *d = (struct documents){.sequence_count = sequences};
    d->list_of_sequence = arena_array(arena, sequences, sizeof *d->list_of_sequence);
    for (uint32_t i = 0; i < sequences; i++)
        d->list_of_sequence[i] = DOCUMENTS_NO_LIST;
}

static bool documents_are_equal(const struct document_list *a, const struct document_list *b)
{
    return a->document_count == b->document_count &&
           memcmp(a->document_end, b->document_end, a->document_count * sizeof *a->document_end) ==
               0 &&
           deal_is_equal(a->deal, b->deal) && tile_plan_is_equal(a->tiles, b->tiles);
}

void documents_set_list(struct documents *d, struct arena *arena, uint32_t sequence,
                        struct document_list set)
{
    assert(sequence < d->sequence_count && set.document_count > 0);
    uint32_t row = 0;
    while (row < d->list_count && !documents_are_equal(&d->list[row], &set))
        row++;
    d->list_of_sequence[sequence] = row;
    if (row < d->list_count)
        return;
    if (d->list_count == d->list_capacity) {
        d->list_capacity = (uint32_t)heap_next_capacity(d->list_capacity, d->list_count + 1);
        struct document_list *list = arena_array(arena, d->list_capacity, sizeof *list);
        if (d->list_count > 0)
            memcpy(list, d->list, d->list_count * sizeof *list);
        d->list = list;
    }
    int64_t *copy = arena_array(arena, set.document_count, sizeof *copy);
    memcpy(copy, set.document_end, set.document_count * sizeof *copy);
    set.document_end = copy;
    d->list[d->list_count++] = set;
}

void documents_set_lengths(struct documents *d, struct arena *arena, uint32_t sequence,
                           const int64_t *length, uint32_t count)
{
    int64_t *end = arena_array(arena, count, sizeof *end), sum = 0;
    for (uint32_t i = 0; i < count; i++)
        end[i] = sum += length[i];
    documents_set_list(d, arena, sequence,
                       (struct document_list){.document_count = count, .document_end = end});
}

void documents_copy(struct documents *to, struct arena *arena, const struct documents *from)
{
    documents_init(to, arena, from->sequence_count);
    for (uint32_t i = 0; i < from->sequence_count; i++)
        if (from->list_of_sequence[i] != DOCUMENTS_NO_LIST)
            documents_set_list(to, arena, i, from->list[from->list_of_sequence[i]]);
}

const struct document_list *documents_of_sequence(const struct documents *d, uint32_t sequence)
{
    if (sequence >= d->sequence_count || d->list_of_sequence[sequence] == DOCUMENTS_NO_LIST)
        return NULL;
    return &d->list[d->list_of_sequence[sequence]];
}

bool documents_are_single(const struct documents *d)
{
    for (uint32_t i = 0; i < d->sequence_count; i++)
        if (documents_of_sequence(d, i) == NULL || documents_of_sequence(d, i)->document_count > 1)
            return false;
    return true;
}

bool documents_have_token_deal(const struct documents *d)
{
    for (uint32_t l = 0; l < d->list_count; l++)
        if (d->list[l].deal != NULL)
            return true;
    return false;
}

bool documents_have_tile_plan(const struct documents *d)
{
    for (uint32_t l = 0; l < d->list_count; l++)
        if (d->list[l].tiles != NULL)
            return true;
    return false;
}

bool documents_sequence_is_single(const struct documents *d, uint32_t sequence, uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const struct document_list *list =
            documents_of_sequence(d, rank * (d->sequence_count / ranks) + sequence);
        if (list != NULL && list->document_count > 1)
            return false;
    }
    return true;
}

bool documents_equal_on_ranks(const struct documents *d, uint32_t ranks)
{
    uint32_t each = d->sequence_count / ranks;
    for (uint32_t i = each; i < each * ranks; i++)
        if (d->list_of_sequence[i] != d->list_of_sequence[i % each])
            return false;
    return true;
}

uint32_t documents_first_equal_sequence(const struct documents *d, uint32_t sequence,
                                        uint32_t ranks)
{
    uint32_t each = d->sequence_count / ranks;
    for (uint32_t i = 0; i < sequence; i++) {
        uint32_t rank = 0;
        while (rank < ranks &&
               d->list_of_sequence[rank * each + i] == d->list_of_sequence[rank * each + sequence])
            rank++;
        if (rank == ranks)
            return i;
    }
    return sequence;
}

uint32_t document_index_at_position(const struct document_list *list, int64_t position)
{
    uint32_t low = 0, high = list->document_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->document_end[middle] > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
