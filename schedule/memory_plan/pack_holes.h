/* schedule/memory_plan/pack_holes.h: the bytes that no live range has, while live ranges are placed in the order of first uses.
 *
 * A hole is what is left of a live range that has gone for some: it is open to a first use that its ends allow.
 * Neighbouring holes are a run, where those are open that one first use may take together. Holes are kept in
 * blocks by address. A tree over these tells how many bytes lie together in them, open or not, so that
 * nobody looks at the many holes that are too small: they come with long lists, whose runs would
 * otherwise be sought in the square of their number. Most blocks are all open to a first use, and what lies
 * together in them is a run. */
#ifndef SCHEDULE_MEMORY_PLAN_PACK_HOLES_H
#define SCHEDULE_MEMORY_PLAN_PACK_HOLES_H

#include "schedule/memory_plan/pack.h"

/* All-zero but for `t` is one without holes, whose top is 0. */
struct holes {
    struct live_ranges *t;
    uint64_t top;              /* the bytes from here on were never taken */
    uint64_t looked;           /* at so many holes so far */
    struct hole_block **block; /* by address, none of them empty */
    uint32_t blocks, capacity;
    struct chains *tree; /* (2 * leaves), of several blocks: block i is leaf i */
    uint32_t leaves;
    uint32_t settled; /* how many blocks have been settled */
};

void holes_release(struct holes *holes);

/* A live range, which has an offset, has gone for first uses of some class. Its bytes are a hole. */
void holes_give(struct holes *holes, uint32_t live_range);

/* Sets a live range's offset: to the lowest run of its size that its first use may take, or to the smallest;
 * where there is none, below the top as far as that is open. */
void holes_take(struct holes *holes, uint32_t live_range, enum pack_fit fit);

/* Joins holes of one block, of another one each time, that every first use from op `now` on may take. */
void holes_settle(struct holes *holes, uint32_t now);

#endif
