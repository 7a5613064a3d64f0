/* schedule/reserved/replay.h: passes the buffers of a role through a caching allocator, in list order.
 *
 * A buffer takes memory when the host issues the first op that touches it, and gives it back when the host has issued
 * the last op of its free set. Persistent buffers are allocated first and stay. */
#ifndef SCHEDULE_REPLAY_H
#define SCHEDULE_REPLAY_H

#include "schedule/ir/ir.h"
#include "schedule/reserved/caching_allocator.h"

/* The ops with which buffers come and go, counted from the role's first op; for a sample, counted in the whole list.
 * All-zero is empty. */
struct replay {
    const struct ir *ir;
    uint32_t ops, count;
    struct replay_stay {
        uint32_t buffer, first, last; /* last: IR_NONE if the buffer stays */
    } * row;                          /* in the order in which buffers come */
};

void replay_init(struct replay *replay, const struct ir *ir, const struct role *role);
void replay_release(struct replay *replay);

/* A run has many steps. The second finds segments that the first has cut for other sizes, so that a large tensor may
 * need a segment of its own beside them; a third changed nothing in what was tried. */
enum { REPLAY_STEPS = 2 };

/* Passes the buffers of one memory through the allocator, step after step; it ends with a step that exceeds the
 * allocator's limit. Persistent buffers come with the first step only. */
void replay_run(const struct replay *replay, enum memory memory,
                struct caching_allocator *allocator);

#endif
