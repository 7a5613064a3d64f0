/* Greedy placement by size. Live ranges are placed in the order of their weights. A tree over them, with leaves in
 * order of first use, finds those already placed that conflict with the next one. That one takes the lowest gap between
 * them that is large enough. */
#include "schedule/memory_plan/pack.h"

#include <stdlib.h>
#include <string.h>

/* ---- conflicts, and the place of one live range ---- */

struct size_packing {
    struct live_ranges *live_ranges;
    /* [range_count] for each live range, the first later one from which on all live ranges may reuse its bytes */
    uint32_t *first_range_that_may_reuse_bytes;
    /* [2 * leaf_count] a binary tree: for each node, the greatest `first_range_that_may_reuse_bytes` of the placed live
     * ranges in its leaves */
    uint32_t *max_first_reusing_range_by_node;
    uint32_t leaf_count;
    struct byte_block {
        uint64_t begin, end;
    } * block; /* room for the byte ranges of the placed live ranges that conflict */
    uint32_t block_count;
    uint64_t comparisons; /* number of pairs that this round has compared */
};

/* Returns 1 + the last live range of a class whose first use is before op `end`; 0 if there is none. of_class: the live
 * ranges of the class, in order. */
static uint32_t last_class_range_before_op_plus_1(const struct live_ranges *t,
                                                  const uint32_t *of_class, uint32_t count,
                                                  uint32_t end)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->first_use[of_class[middle]] < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? of_class[low - 1] + 1 : 0;
}

static void find_first_ranges_that_may_reuse(struct size_packing *p)
{
    const struct live_ranges *t = p->live_ranges;
    uint32_t *of_class = heap_alloc(t->range_count, sizeof *of_class);
    for (uint32_t i = 0; i < t->range_count; i++)
        p->first_range_that_may_reuse_bytes[i] = i + 1;
    for (uint32_t c = 0; c < t->class_count; c++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < t->range_count; i++)
            if (t->first_use_class_by_range[i] == c)
                of_class[count++] = i;
        for (uint32_t i = 0; i < t->range_count; i++) {
            uint32_t until =
                last_class_range_before_op_plus_1(t, of_class, count, live_ranges_end_ops(t, i)[c]);
            p->first_range_that_may_reuse_bytes[i] = until > p->first_range_that_may_reuse_bytes[i]
                                                         ? until
                                                         : p->first_range_that_may_reuse_bytes[i];
        }
    }
    free(of_class);
}

/* Adds to p->block the bytes of the placed live ranges below `node` of the tree that conflict with live range i. The
 * node has `width` leaves, from live range `first` on. */
static void find_blocks(struct size_packing *p, uint32_t node, uint32_t first, uint32_t width,
                        uint32_t i)
{
    const struct live_ranges *t = p->live_ranges;
    if (first >= p->first_range_that_may_reuse_bytes[i] ||
        p->max_first_reusing_range_by_node[node] <= i)
        return;
    if (width > 1) {
        find_blocks(p, 2 * node, first, width / 2, i);
        find_blocks(p, 2 * node + 1, first + width / 2, width / 2, i);
        return;
    }
    p->comparisons++;
    if (live_ranges_conflict(t, i, first))
        p->block[p->block_count++] =
            (struct byte_block){t->offset_bytes[first], t->offset_bytes[first] + t->bytes[first]};
}

/* Returns the lowest offset at which `size` bytes lie between the blocks or above them: every block in the way moves
 * the offset to the block's end. */
static uint64_t find_lowest_gap(const struct size_packing *p, uint64_t size)
{
    uint64_t offset = 0, before = UINT64_MAX;
    while (offset != before) {
        before = offset;
        for (const struct byte_block *b = p->block; b < p->block + p->block_count; b++)
            if (b->begin < offset + size && offset < b->end)
                offset = b->end;
    }
    return offset;
}

static void place_live_range(struct size_packing *p, uint32_t i)
{
    p->block_count = 0;
    find_blocks(p, 1, 0, p->leaf_count, i);
    p->live_ranges->offset_bytes[i] = find_lowest_gap(p, p->live_ranges->bytes[i]);
    for (uint32_t node = p->leaf_count + i; node > 0 && p->max_first_reusing_range_by_node[node] <
                                                            p->first_range_that_may_reuse_bytes[i];
         node /= 2)
        p->max_first_reusing_range_by_node[node] = p->first_range_that_may_reuse_bytes[i];
}

/* ---- rounds ---- */

enum { ROUNDS_MAX = 16 };

struct live_range_weight {
    double weight;
    uint32_t live_range;
};

/* Orders live ranges by falling weight, and those of equal weight by first use. */
static int compare_ranges_by_weight(const void *a, const void *b)
{
    const struct live_range_weight *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->live_range > y->live_range) - (x->live_range < y->live_range);
}

/* Places all live ranges in the order of falling weight, and those of equal weight in the order of first use. Returns
 * the end of the last byte; UINT64_MAX if this compared more than PACK_FIRST_ROUND_COMPARISONS_MAX pairs. */
static uint64_t pack_by_weight(struct size_packing *p, struct live_range_weight *row)
{
    struct live_ranges *t = p->live_ranges;
    uint64_t top = 0;
    qsort(row, t->range_count, sizeof *row, compare_ranges_by_weight);
    memset(p->max_first_reusing_range_by_node, 0,
           (size_t)p->leaf_count * 2 * sizeof *p->max_first_reusing_range_by_node);
    p->comparisons = 0;
    for (uint32_t k = 0; k < t->range_count && p->comparisons <= PACK_FIRST_ROUND_COMPARISONS_MAX;
         k++) {
        uint32_t i = row[k].live_range;
        place_live_range(p, i);
        top = t->offset_bytes[i] + t->bytes[i] > top ? t->offset_bytes[i] + t->bytes[i] : top;
    }
    return p->comparisons > PACK_FIRST_ROUND_COMPARISONS_MAX ? UINT64_MAX : top;
}

uint64_t pack_by_size(struct live_ranges *t, uint64_t enough)
{
    if (t->range_count > PACK_BY_SIZE_RANGES_MAX)
        return UINT64_MAX;
    struct size_packing p = {.live_ranges = t, .leaf_count = 1};
    while (p.leaf_count < t->range_count)
        p.leaf_count *= 2;
    p.first_range_that_may_reuse_bytes =
        heap_alloc(t->range_count, sizeof *p.first_range_that_may_reuse_bytes);
    p.max_first_reusing_range_by_node =
        heap_alloc((size_t)p.leaf_count * 2, sizeof *p.max_first_reusing_range_by_node);
    p.block = heap_alloc(t->range_count, sizeof *p.block);
    find_first_ranges_that_may_reuse(&p);
    struct live_range_weight *row = heap_alloc(t->range_count, sizeof *row);
    uint64_t *best = heap_alloc(t->range_count, sizeof *best), least = UINT64_MAX, comparisons = 0;
    for (uint32_t i = 0; i < t->range_count; i++)
        row[i] = (struct live_range_weight){(double)t->bytes[i], i};
    for (int round = 0; round < ROUNDS_MAX && least > enough; round++) {
        /* this round may compare as many pairs as the one before it */
        if (comparisons + p.comparisons > PACK_ALL_ROUNDS_COMPARISONS_MAX)
            break;
        uint64_t top = pack_by_weight(&p, row);
        comparisons += p.comparisons;
        if (top < least)
            memcpy(best, t->offset_bytes, t->range_count * sizeof *best);
        least = top < least ? top : least;
        for (uint32_t k = 0; k < t->range_count; k++)
            if (t->offset_bytes[row[k].live_range] + t->bytes[row[k].live_range] > enough)
                row[k].weight *= 2;
    }
    memcpy(t->offset_bytes, best, t->range_count * sizeof *best);
    free(p.first_range_that_may_reuse_bytes);
    free(p.max_first_reusing_range_by_node);
    free(p.block);
    free(row);
    free(best);
    return least;
}
