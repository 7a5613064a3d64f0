/* schedule/emit/op_list.h: the list of ops while passes rewrite it.
 *
 * Emission appends ops to the tables of an ir; passes append more and decide the order in which the finished schedule
 * lists them. So a pass never moves a row: it makes a new list of op ids, and edits the operands of ops that now read
 * or write other buffers. schedule/step/finalize.h writes the rows out in list order. */
#ifndef SCHEDULE_EMIT_OP_LIST_H
#define SCHEDULE_EMIT_OP_LIST_H

#include "schedule/emit/emit.h"

#include <stdint.h>

struct op_list {
    uint32_t *op; /* ids in list order */
    uint32_t count;
    size_t capacity;
};

void op_list_release(struct op_list *list);
void op_list_push(struct op_list *list, op_id op);

/* Fills the list with the ops of the ir in the order in which they were emitted. */
void op_list_fill_from_ir(struct op_list *list, const struct ir *ir);

/* Returns the last op of a stream among the first `count` of the list; IR_NONE: there is none. */
op_id op_list_last_on_stream(const struct op_list *list, uint32_t count, const struct ir *ir,
                             uint8_t stream);

#endif
