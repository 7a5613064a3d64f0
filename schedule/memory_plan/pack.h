/* schedule/memory_plan/pack.h: offsets for the live ranges of one arena.
 *
 * Both functions place one live range after the other, fill live_ranges->offset so that live ranges that conflict
 * share no byte, and return the bytes taken. They differ in the order. In order of first use is near-linear. By size
 * looks at everything that is live beside the one to be placed, and wastes less where sizes differ much. */
#ifndef SCHEDULE_MEMORY_PLAN_PACK_H
#define SCHEDULE_MEMORY_PLAN_PACK_H

#include "schedule/memory_plan/live_ranges.h"

#include <stdint.h>

enum pack_fit {
    PACK_FIRST_FIT, /* the free run at the lowest offset */
    PACK_BEST_FIT,  /* the smallest free run; of these, the lowest */
};

/* Places live ranges in order of first use, each in a run that is free at that time. Gives up when it takes more
 * than `most` bytes, and returns UINT64_MAX. */
uint64_t pack_in_order(struct live_ranges *live_ranges, enum pack_fit fit, uint64_t most);

enum {
    PACK_BY_SIZE_MAX = 200000,   /* live ranges */
    PACK_FIRST_LOOKS = 10000000, /* pairs that the first round by size may compare */
    PACK_ROUNDS_LOOKS = 1000000, /* pairs that all rounds may compare when there are several */
};

/* Places the largest live ranges first, each at the lowest offset that is free during its life. Those that end above
 * `enough` bytes are placed earlier in the next round, until a round takes no more than that. Leaves the offsets
 * of the best round. Returns UINT64_MAX, and leaves any offsets, when there is too much to compare. */
uint64_t pack_by_size(struct live_ranges *live_ranges, uint64_t enough);

#endif
