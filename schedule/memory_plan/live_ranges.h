/* schedule/memory_plan/live_ranges.h: the buffers of one arena, and for how long each keeps its bytes.
 *
 * A live range is a buffer that needs an offset. It starts with the buffer's first use and ends when the ops of its
 * free set have completed. Its bytes may be reused by a later live range whose first use is ordered after the whole
 * free set.
 *
 * When the free set has completed, other streams learn of it at different times, by their waits. So live ranges are
 * divided into classes by the stream of their first use, and a live range has one end for each class: the first op of
 * the list from which on every first use of that class may reuse its bytes. Whether two live ranges conflict is then a
 * comparison of op numbers, and planners need no clocks.
 *
 * The folder schedule/memory_plan/ gives every buffer an offset in the memory of its rank. */
#ifndef SCHEDULE_MEMORY_PLAN_LIVE_RANGES_H
#define SCHEDULE_MEMORY_PLAN_LIVE_RANGES_H

#include "schedule/analysis/first_uses.h"

#include <stdbool.h>
#include <stdint.h>

#define LIVE_RANGES_ALIGNMENT 512u /* bytes; what cudaMalloc and caching allocators round to */

/* an element of end_ops_by_range_and_class: no first use of the class may reuse the bytes */
#define LIVE_RANGES_NEVER_REUSABLE UINT32_MAX

/* All-zero is empty. Rows are in the order of first uses. */
struct live_ranges {
    uint32_t first_op, op_count; /* the ops of the list that are planned */
    uint32_t range_count, capacity;
    /* Classes of first uses: one for each stream on which a range is used first, and one for ranges whose first use has
     * a clock of its own, if there are any. */
    uint32_t class_count;
    uint32_t *buffer;
    uint32_t *first_use; /* the op of the first use */
    uint8_t *first_use_class_by_range;
    /* (range_count, class_count) the op from which on every first use of the class may reuse the live range's bytes;
     * LIVE_RANGES_NEVER_REUSABLE: none may. If the free set has the last op, it may be the number after that op. */
    uint32_t *end_ops_by_range_and_class;
    /* the least of a live range's ends: from this op on, some first uses may reuse the bytes */
    uint32_t *earliest_end_op_by_range;
    uint64_t *bytes;
    uint64_t *offset_bytes; /* where a planner places the live range */

    /* the most bytes that are live at once if ops run one after the other in list order */
    uint64_t peak_live_bytes;
};

void live_ranges_release(struct live_ranges *live_ranges);

/* Makes room for `rows` rows in all columns except end_ops_by_range_and_class. Does nothing if there is enough room. */
void live_ranges_reserve(struct live_ranges *live_ranges, uint32_t rows);

/* Fills the rows with the buffers of one role in one memory that are not persistent and that some op uses. order,
 * first_uses: those of the role. live_ranges_aligned_bytes() gives the sizes. */
void live_ranges_of(struct live_ranges *live_ranges, const struct ir *ir, const struct order *order,
                    const struct first_uses *first_uses, uint8_t memory);

/* Returns the bytes that a buffer takes in an arena: its size, rounded up to a multiple of LIVE_RANGES_ALIGNMENT. */
uint64_t live_ranges_aligned_bytes(const struct ir *ir, uint32_t buffer);

/* Replaces the rows of a short list's role by those of the whole list. Rows for copies have buffer IR_NONE. Returns
 * false and changes nothing if the rows of the two iterations at the gap of a run do not correspond, or if rows are not
 * in the order of first uses. `peak_live_bytes` becomes 0, since it is not known for the whole list. */
bool live_ranges_expand_repeats(struct live_ranges *live_ranges, const struct repeats *repeats,
                                uint32_t role);

/* Fills earliest_end_op_by_range from end_ops_by_range_and_class, and sets first_op and op_count: the ops of the role
 * are begin .. begin + ops - 1. */
void live_ranges_fill_earliest_ends(struct live_ranges *live_ranges, uint32_t begin, uint32_t ops);

/* Returns the most bytes live at once if each live range lives until the first use that may reuse its bytes. No plan
 * can take fewer bytes. earliest_end_op_by_range must be filled, which live_ranges_of() and
 * live_ranges_expand_repeats() do. */
uint64_t live_ranges_max_live_bytes(const struct live_ranges *live_ranges);

static inline const uint32_t *live_ranges_end_ops(const struct live_ranges *t, uint32_t i)
{
    return t->end_ops_by_range_and_class + (size_t)i * t->class_count;
}

/* True if live ranges a and b must not share bytes: neither has ended when the other starts. */
static inline bool live_ranges_conflict(const struct live_ranges *t, uint32_t a, uint32_t b)
{
    return live_ranges_end_ops(t, a)[t->first_use_class_by_range[b]] > t->first_use[b] &&
           live_ranges_end_ops(t, b)[t->first_use_class_by_range[a]] > t->first_use[a];
}

#endif
