/* schedule/reserved/replay.h: the buffers of a role pass through a caching allocator, in list order.
 *
 * A buffer takes memory when the host issues the first op that touches it and gives it back when the
 * host has issued the last op of its free set; persistent ones take theirs first, and keep it. */
#ifndef SCHEDULE_REPLAY_H
#define SCHEDULE_REPLAY_H

#include "schedule/ir/ir.h"
#include "schedule/reserved/caching_allocator.h"

/* All-zero is empty. */
struct replay {
    const struct ir *ir;
    const struct role *role;
    uint32_t begin, end; /* its buffers lie among these */
    uint32_t *held;      /* those that persist and are touched */
    uint32_t held_count;
};

void replay_init(struct replay *replay, const struct ir *ir, const struct role *role);
void replay_release(struct replay *replay);

/* When buffers of a memory come and go: with which ops. Those that persist come with the role's first. */
struct replay_stays {
    enum memory memory;
    uint32_t count, capacity;
    struct replay_stay {
        uint32_t buffer, first, last; /* last: IR_NONE if it stays */
    } * row;                          /* in the order of their coming; the caller frees them */
};

/* The buffers of one memory; those of another are put into *stays, unless it is NULL. */
void replay_run(const struct replay *replay, enum memory memory,
                struct caching_allocator *allocator, struct replay_stays *stays);

#endif
