/* Placement in order of first use. A hole is the bytes of a live range that some first uses may reuse already. A free
 * run is a sequence of adjacent holes that one given first use may take as a whole. */
#include "schedule/memory_plan/pack.h"

#include <stdlib.h>
#include <string.h>

/* join_holes() is called once more than JOIN_EVERY + holes / JOIN_PARTS live ranges have been placed since its last
 * call: the more holes there are, the slower it is, and the more rarely it is called */
enum { JOIN_EVERY = 32, JOIN_PARTS = 4 };

struct reusable_bytes {
    uint64_t begin, end;
    uint32_t last_live_range_with_bytes; /* the live range that these bytes belonged to last */
    uint32_t reusable_from_op;           /* every first use from this op on may take the bytes */
};

struct hole_list {
    const struct live_ranges *t;
    struct reusable_bytes *row; /* ordered by address */
    size_t count, capacity;
    uint64_t first_untouched_byte; /* bytes from here on have never been taken */
    /* number of live ranges placed since join_holes() was last called */
    uint32_t ranges_placed_since_join;
};

/* Adds the bytes of live range i, which has ended for some class, as a hole. */
static void add_hole_of_ended_range(struct hole_list *h, uint32_t i)
{
    uint64_t begin = h->t->offset_bytes[i];
    uint32_t open_from = 0;
    for (uint32_t c = 0; c < h->t->class_count; c++) {
        uint32_t end = live_ranges_end_ops(h->t, i)[c];
        open_from = end > open_from ? end : open_from;
    }
    size_t at = h->count++;
    h->row = heap_grow(h->row, &h->capacity, h->count, sizeof *h->row);
    for (; at > 0 && h->row[at - 1].begin > begin; at--)
        h->row[at] = h->row[at - 1];
    h->row[at] = (struct reusable_bytes){begin, begin + h->t->bytes[i], i, open_from};
}

/* Joins adjacent holes that every first use from op `now` on may take. Without this, a list with many units would leave
 * a hole for each of its buffers, and every search would pass all of them. */
static void join_holes(struct hole_list *h, uint32_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->count; i++) {
        struct reusable_bytes hole = h->row[i], *left = kept > 0 ? &h->row[kept - 1] : NULL;
        if (left != NULL && left->end == hole.begin && left->reusable_from_op <= now &&
            hole.reusable_from_op <= now)
            left->end = hole.end;
        else
            h->row[kept++] = hole;
    }
    h->count = kept;
    h->ranges_placed_since_join = 0;
}

static inline bool may_reuse_hole(const struct live_ranges *t, const struct reusable_bytes *hole,
                                  uint32_t i)
{
    return hole->reusable_from_op <= t->first_use[i] ||
           live_ranges_end_ops(t,
                               hole->last_live_range_with_bytes)[t->first_use_class_by_range[i]] <=
               t->first_use[i];
}

struct free_run {
    uint64_t begin, end;
    size_t first_hole; /* the first hole of the run */
};

/* Returns the run of free bytes that live range i is to use. If no run is large enough, it returns the free bytes just
 * below the top of the arena, which may be none; the arena then grows. */
static struct free_run find_free_run(const struct hole_list *h, uint32_t i, enum pack_fit fit)
{
    uint64_t size = h->t->bytes[i], least = UINT64_MAX;
    uint64_t enough = fit == PACK_FIRST_FIT ? UINT64_MAX - 1 : size;
    struct free_run best = {h->first_untouched_byte, h->first_untouched_byte, h->count};
    for (size_t at = 0, end; at < h->count && least > enough; at = end) {
        end = at + 1;
        if (!may_reuse_hole(h->t, &h->row[at], i))
            continue;
        struct free_run run = {h->row[at].begin, h->row[at].end, at};
        for (; end < h->count && h->row[end].begin == run.end &&
               may_reuse_hole(h->t, &h->row[end], i);
             end++)
            run.end = h->row[end].end;
        uint64_t bytes = run.end - run.begin;
        if (bytes >= size ? bytes < least
                          : run.end == h->first_untouched_byte && least == UINT64_MAX)
            best = run;
        least = bytes >= size && bytes < least ? bytes : least;
    }
    return best;
}

static void place_in_free_run(struct hole_list *h, uint64_t *offset, uint32_t i, enum pack_fit fit)
{
    struct free_run run = find_free_run(h, i, fit);
    uint64_t end = run.begin + h->t->bytes[i];
    size_t gone = run.first_hole;
    while (gone < h->count && h->row[gone].end <= end)
        gone++;
    if (gone < h->count && h->row[gone].begin < end)
        h->row[gone].begin = end;
    if (gone > run.first_hole)
        memmove(h->row + run.first_hole, h->row + gone, (h->count - gone) * sizeof *h->row);
    h->count -= gone - run.first_hole;
    h->first_untouched_byte = end > h->first_untouched_byte ? end : h->first_untouched_byte;
    offset[i] = run.begin;
    if (++h->ranges_placed_since_join > JOIN_EVERY + h->count / JOIN_PARTS)
        join_holes(h, h->t->first_use[i]);
}

uint64_t pack_in_order(struct live_ranges *t, enum pack_fit fit, uint64_t most)
{
    struct hole_list holes = {.t = t};
    /* [op] the head of the list of live ranges whose first end is the op, linked by next[]; IR_NONE: there is none */
    uint32_t *head = ir_new_empty_ids((size_t)t->op_count + 1);
    uint32_t *next = heap_alloc(t->range_count, sizeof *next);
    uint32_t now = t->first_op;
    for (uint32_t i = 0; i < t->range_count && holes.first_untouched_byte <= most; i++) {
        for (; now <= t->first_use[i]; now++)
            for (uint32_t k = head[now - t->first_op]; k != IR_NONE; k = next[k])
                add_hole_of_ended_range(&holes, k);
        place_in_free_run(&holes, t->offset_bytes, i, fit);
        if (t->earliest_end_op_by_range[i] == LIVE_RANGES_NEVER_REUSABLE)
            continue;
        uint32_t *list = &head[t->earliest_end_op_by_range[i] - t->first_op];
        next[i] = *list;
        *list = i;
    }
    free(holes.row);
    free(head);
    free(next);
    return holes.first_untouched_byte <= most ? holes.first_untouched_byte : UINT64_MAX;
}
