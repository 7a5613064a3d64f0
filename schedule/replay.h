/* schedule/replay.h: the buffers of a role pass through a caching allocator, in list order.
 *
 * A buffer takes memory when the host issues the first op that touches it and gives it back when the
 * host has issued the last op of its free set; persistent ones take theirs first, and keep it. Where
 * the list repeats itself (ir.repeat) and the allocator is found as it was a period before, with the
 * same buffers one period on in the same blocks, the periods to come do the same, and are left out. */
#ifndef SCHEDULE_REPLAY_H
#define SCHEDULE_REPLAY_H

#include "schedule/caching_allocator.h"
#include "schedule/ir.h"

/* When the buffers of a role come and go. Lists are by op of the role. */
struct replay {
    const struct ir *ir;
    const struct role *role;
    uint32_t begin, end; /* its buffers lie among these; the lists per buffer are of them alone */
    uint32_t *first;     /* per buffer: the op that touches it first; IR_NONE: none */
    uint32_t *last;      /* per buffer: the op that it goes with, or IR_NONE if it stays */
    uint32_t *born;      /* those that do not persist, in the order of their coming */
    uint32_t born_count;
    uint32_t *dying, *dying_next; /* per op: the first that goes; per buffer: the next. IR_NONE */
    uint32_t *block;              /* per buffer */
};

void replay_init(struct replay *replay, const struct ir *ir, const struct role *role);
void replay_release(struct replay *replay);

/* The buffers of one memory. */
void replay_run(struct replay *replay, enum memory memory, struct caching_allocator *allocator);

#endif
