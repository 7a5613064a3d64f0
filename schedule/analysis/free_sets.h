/* schedule/analysis/free_sets.h: the free set of each buffer of a role (schedule/analysis/liveness.h), found while
 * ops are visited in list order:
 *
 *     free_sets_init(&sets, buffers);
 *     for each op, when its clock is known:
 *         for each buffer it touches:
 *             free_sets_add_touch(&sets, order, buffer, op);
 *     free_sets_store(&sets, ir, first_buffer); */
#ifndef SCHEDULE_ANALYSIS_FREE_SETS_H
#define SCHEDULE_ANALYSIS_FREE_SETS_H

#include "schedule/analysis/happens_before.h"

/* The candidates of each buffer's free set, as linked lists of members. Nearly all lists have one member. */
struct free_sets {
    struct free_sets_member {
        uint32_t op, next;
    } * member;
    size_t capacity;
    uint32_t count, spare_member; /* spare_member: the list of unused members */
    /* [buffers] the member that was added last; IR_NONE: none */
    uint32_t *newest_free_set_member_of_buffers;
};

/* Starts empty sets for buffers 0 .. buffers - 1. */
void free_sets_init(struct free_sets *sets, uint32_t buffers);
void free_sets_release(struct free_sets *sets);

/* Records that `op`, whose clock is in `order`, reads or writes the buffer. The op joins the buffer's free set, and
 * those members that have ended before it starts leave the set. */
void free_sets_add_touch(struct free_sets *sets, const struct order *order, uint32_t buffer,
                         uint32_t op);

/* Stores the free sets in the ir's table of buffers, from row `from` on. Members are in list order. A buffer that no op
 * touched gets an empty set. */
void free_sets_store(const struct free_sets *sets, struct ir *ir, uint32_t from);

#endif
