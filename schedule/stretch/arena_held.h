/* schedule/stretch/arena_held.h: what a long list holds at most, told from the short one. For arena.c. */
#ifndef SCHEDULE_STRETCH_ARENA_HELD_H
#define SCHEDULE_STRETCH_ARENA_HELD_H

#include "schedule/stretch/spans.h"

/* Adds what the copies of a period's i-th tenant hold to what changes per op of the short list. Copies that
 * stay hold what they have from the time between the two periods on; until the time between those of the
 * run where they end, or until they all end. */
void arena_hold_copies(int64_t *change, const struct stretch_spans *spans,
                       const struct stretch_span *span, uint32_t i);

/* The most bytes at once, when those of some tenants are added to what changes already. first_end: theirs;
 * NULL: they are not told yet. */
uint64_t arena_most_held(const struct tenants *tenants, const uint32_t *first_end, int64_t *change);

#endif
