/* schedule/memory_plan/pack.h: offsets for the live ranges of one arena.
 *
 * Both functions place one live range after the other and fill live_ranges->offset_bytes, so that live ranges that
 * conflict share no byte. They return the bytes of the arena. pack_in_order() takes live ranges in order of first use,
 * which is fast. pack_by_size() takes the largest first and compares each with all that are live at the same time,
 * which wastes less where sizes differ much. */
#ifndef SCHEDULE_MEMORY_PLAN_PACK_H
#define SCHEDULE_MEMORY_PLAN_PACK_H

#include "schedule/memory_plan/live_ranges.h"

#include <stdint.h>

enum pack_fit {
    PACK_FIRST_FIT, /* takes the free run at the lowest offset */
    PACK_BEST_FIT,  /* takes the smallest free run that is large enough; of several, the lowest */
};

/* Places live ranges in order of first use, each in a run of bytes that is free at that time. Returns UINT64_MAX as
 * soon as the arena exceeds `most` bytes. */
uint64_t pack_in_order(struct live_ranges *live_ranges, enum pack_fit fit, uint64_t most);

enum {
    /* number of live ranges above which pack_by_size() gives up */
    PACK_BY_SIZE_RANGES_MAX = 200000,
    /* number of pairs of live ranges that one round by size may compare; beyond it, the round gives up */
    PACK_FIRST_ROUND_COMPARISONS_MAX = 10000000,
    /* about how many pairs of live ranges all rounds together may compare, if there is more than one round */
    PACK_ALL_ROUNDS_COMPARISONS_MAX = 1000000,
};

/* Places the largest live ranges first, each at the lowest offset that is free during its life. While the arena exceeds
 * `enough` bytes it tries another round, in which the live ranges whose bytes reached above offset `enough` come
 * earlier: at most 16 rounds, within PACK_ALL_ROUNDS_COMPARISONS_MAX. Leaves the offsets of the round with the smallest
 * arena, and returns that arena's bytes. Returns UINT64_MAX, with undefined offsets, if there are too many live ranges
 * to compare. */
uint64_t pack_by_size(struct live_ranges *live_ranges, uint64_t enough);

#endif
