/* schedule/analysis/free_sets.h: the free set of each buffer of a role (schedule/analysis/liveness.h), found while
 * ops are visited in list order:
 *
 *     free_sets_init(&sets, buffers);
 *     for each op, when its clock is known:
 *         for each buffer it touches:
 *             free_sets_touch(&sets, order, buffer, op);
 *     free_sets_store(&sets, ir, first_buffer); */
#ifndef SCHEDULE_ANALYSIS_FREE_SETS_H
#define SCHEDULE_ANALYSIS_FREE_SETS_H

#include "schedule/analysis/happens_before.h"

/* The candidates of each buffer's set: nearly all have one. Those before it are a linked list. */
struct free_sets {
    struct free_sets_member {
        uint32_t op, next;
    } * member;
    uint32_t count, capacity, spare; /* spare: list of unused members */
    uint32_t *newest;                /* per buffer: the op; IR_NONE: there is none */
    uint32_t *before; /* per buffer: the list of the other candidates, newest first */
};

/* Starts sets for buffers 0 .. buffers, none of which has been touched. */
void free_sets_init(struct free_sets *sets, uint32_t buffers);
void free_sets_release(struct free_sets *sets);

/* As free_sets_touch(), for a buffer that has candidates before the newest, or whose newest has not ended. */
void free_sets_touch_beside(struct free_sets *sets, const struct order *order, uint32_t buffer,
                            uint32_t op);

/* Records that `op`, whose clock is in `order`, touches the buffer: it replaces those members of the buffer's free
 * set that have ended before it starts. */
static inline void free_sets_touch(struct free_sets *sets, const struct order *order,
                                   uint32_t buffer, uint32_t op)
{
    uint32_t newest = sets->newest[buffer];
    if (newest == op)
        return;
    if (newest != IR_NONE && (sets->before[buffer] != IR_NONE || newest < order->begin ||
                              !order_before(order, newest, op)))
        free_sets_touch_beside(sets, order, buffer, op);
    sets->newest[buffer] = op;
}

/* Stores the free sets in the rows of an ir's buffers, from row `from` on, members in list order. A buffer that
 * no op touched gets an empty set. */
void free_sets_store(const struct free_sets *sets, struct ir *ir, uint32_t from);

#endif
