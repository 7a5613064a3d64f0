/* schedule/passes/tenants.h: the buffers of one arena, and for how long each keeps its bytes.
 *
 * A tenant is a buffer that is placed: born with an op, gone when its free set has completed. The
 * bytes of a tenant may go to a later one when the later one's birth is ordered behind the whole
 * free set, and births on different streams learn of that at different times. Tenants are
 * therefore put into classes by the stream of their birth, and a tenant has one end per class:
 * the first op of the list from which on every birth of that class may take its bytes. Two
 * tenants then conflict when intervals of op numbers overlap, and planners ask for no clocks. */
#ifndef SCHEDULE_TENANTS_H
#define SCHEDULE_TENANTS_H

#include "schedule/passes/births.h"

#include <stdbool.h>
#include <stdint.h>

#define TENANTS_NEVER UINT32_MAX /* an end: no birth of the class may ever */

/* All-zero is empty. Rows are in the order of births. */
struct tenants {
    uint32_t begin, ops; /* of the list: ops begin .. begin + ops */
    uint32_t count, capacity;
    uint32_t classes;
    uint32_t *buffer;
    uint32_t *birth; /* op */
    uint8_t *class_of;
    uint32_t *end;                  /* (count, classes); the op behind the last one is an end too */
    uint32_t *first_end, *last_end; /* least and greatest of them: from where on some births may
                                       take the bytes, and from where on all may */
    uint64_t *size;
    uint64_t *offset; /* what a planner fills in */

    uint64_t live; /* most bytes live when ops run one after the other in list order */
};

void tenants_release(struct tenants *tenants);

/* Makes room for so many rows, of which ends are not part; there is never less than there was. */
void tenants_reserve(struct tenants *tenants, uint32_t rows);

/* The buffers of a role and memory that are touched and not persistent; sizes are multiples of
 * alignment. */
void tenants_of(struct tenants *tenants, const struct ir *ir, const struct order *order,
                const struct births *births, uint8_t memory, uint64_t alignment);

/* Fills first_end and last_end from the other columns; ops of the role: begin .. begin + ops. */
void tenants_settle(struct tenants *tenants, uint32_t begin, uint32_t ops);

/* As `live`, a tenant being live until some birth may take its bytes: no plan is smaller. Of tenants that are
 * settled. */
uint64_t tenants_held(const struct tenants *tenants);

static inline const uint32_t *tenants_ends(const struct tenants *t, uint32_t i)
{
    return t->end + (size_t)i * t->classes;
}

/* Must two tenants have bytes of their own? */
static inline bool tenants_conflict(const struct tenants *t, uint32_t a, uint32_t b)
{
    return tenants_ends(t, a)[t->class_of[b]] > t->birth[b] &&
           tenants_ends(t, b)[t->class_of[a]] > t->birth[a];
}

#endif
