/* schedule/memory_plan/pack.h: offsets for the live ranges of one arena, by different rules.
 *
 * Each fills live_ranges->offset so that live ranges that conflict share no byte, and returns the bytes
 * taken. Which rule wastes least depends on the schedule: lifetimes_plan() tries them. */
#ifndef SCHEDULE_MEMORY_PLAN_PACK_H
#define SCHEDULE_MEMORY_PLAN_PACK_H

#include "schedule/memory_plan/live_ranges.h"

#include <stdint.h>

enum pack_fit { PACK_LOWEST, PACK_TIGHTEST };

/* In the order of first uses, each where there is room now: the lowest place, or the one that leaves
 * least. Near-linear for the lowest; for the least it looks at all holes that are large enough. Gives up
 * as soon as it takes more than `most` bytes: what it has taken by then is returned, which all of them
 * would not be less than. *looks: gives up too, and returns UINT64_MAX, when it looks at more holes, or would by
 * what it has looked at so far; set to how many it looked at. NULL: at any number. */
uint64_t pack_in_order(struct live_ranges *live_ranges, enum pack_fit fit, uint64_t most,
                       uint64_t *looks);

/* The heaviest first (no weight is negative), each at the lowest place that is free for all of its life.
 * With bytes for weights it seldom wastes much; it takes time in the square of their number. Gives up as soon
 * as it takes more than `most` bytes, as pack_in_order() does. */
uint64_t pack_by_weight(struct live_ranges *live_ranges, const double *weight, uint64_t most);

/* The part of the list in which a live range is in others' way: who conflict live at the same time. */
struct life {
    uint32_t from, until;
};

/* Those of all live ranges, for the caller to free. For schedule/passes/pack*.c. */
struct life *pack_lives_of(const struct live_ranges *live_ranges);

#endif
