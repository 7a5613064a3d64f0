/* schedule/stretch/arena.h: the arena of a stretched role, planned from one period of each of its runs.
 *
 * Blocks of a run that are alike have the same tenants, and nobody need place them block by block. One
 * tenant of a period stands for all that are like it, whether in blocks of the short list or in copies:
 *
 *   - who has gone when the next one is born shares its place with all of them;
 *   - who lives longer takes turns with those of its size: at as many places as they need, one after the
 *     other; what is free of these for most of a period, others may have in turn;
 *   - who stays (saved activations, until a backward run comes to them) has a place of its own, and all
 *     of them together are one tenant, from the first birth to the last end.
 *
 * What is left is a list about as long as two periods and what is unlike them. Two periods, because a
 * tenant may meet those of the next one: whatever two tenants of the long list do to each other, two
 * of these do in the same places, or in what was put between them. */
#ifndef SCHEDULE_STRETCH_ARENA_H
#define SCHEDULE_STRETCH_ARENA_H

#include "schedule/stretch/spans.h"

/* Where a tenant is in all periods: in one place, or in one of several of a row. */
struct stretch_place {
    uint32_t row;         /* of the list */
    uint32_t other, half; /* and that of the places from half on */
    uint32_t turns, each; /* from one period to the next, so many places further, modulo turns */
    uint64_t step;        /* bytes from place to place */
    uint64_t inner;       /* and from where a place begins to the tenant */
};

/* All-zero is empty. */
struct stretch_arena {
    const struct stretch *s;
    const struct tenants *in; /* of the short list */
    struct stretch_spans spans;
    struct tenants list; /* to be placed: list.offset. `live` is not looked for; buffers, first
                            and last ends are left out. Not by birth. */
    uint64_t held;       /* of the long list: tenants_held() */
    uint32_t *twin;      /* per row of list, as pack_by_life() asks */
    uint64_t least;      /* bytes that the list takes wherever its rows are placed */
    uint32_t *spot;      /* per tenant of the short list: where it and those like it are */
    uint32_t *place;     /* and which place of these it has */
    struct stretch_place *spots;
    uint32_t spot_count;
};

void stretch_arena_release(struct stretch_arena *arena);

/* Makes *arena, whatever was in it, for some tenants of the short list; both are held on to. False: nobody
 * can tell when tenants of copies end. */
bool stretch_arena_make(struct stretch_arena *arena, const struct tenants *in,
                        const struct stretch *s);

/* Writes the offsets of the long list's buffers, when the list has been placed. */
void stretch_arena_write(const struct stretch_arena *arena, uint64_t base);

#endif
