/* schedule/emit/op_list.h: the list of ops while passes rewrite it.
 *
 * Emission appends ops to the tables of an ir; passes append more and decide the order in which the finished schedule
 * lists them. So a pass never moves a row: it makes a new list of op ids, and edits the operands of ops that now read
 * or write other buffers. schedule/step/finalize.h writes the rows out in list order. */
#ifndef SCHEDULE_EMIT_OP_LIST_H
#define SCHEDULE_EMIT_OP_LIST_H

#include "schedule/analysis/liveness.h"
#include "schedule/emit/emit.h"

#include <stdint.h>

struct op_list {
    uint32_t *op; /* ids in list order */
    uint32_t count, capacity;
};

void op_list_release(struct op_list *list);
void op_list_grow(struct op_list *list);
static inline void op_list_push(struct op_list *list, op_id op)
{
    if (list->count == list->capacity)
        op_list_grow(list);
    list->op[list->count++] = op.i;
}
/* Appends `count` ops. */
void op_list_push_all(struct op_list *list, const uint32_t *op, uint32_t count);

/* Fills the list with the ops of the ir in the order in which they were emitted. */
void op_list_init(struct op_list *list, const struct ir *ir);

/* Returns how many of the `count` listed ops, counted from the first, have the same layer, phase and micro-batch as
 * the first one. Most ops share these with the op before them, so callers handle such ops together. */
uint32_t op_list_isomorphic_run(const struct ir *ir, const uint32_t *op, uint32_t count);

/* Makes operand k of the op (reads first, then writes) name another buffer, same range. */
void op_list_redirect(struct ir *ir, uint32_t op, uint32_t k, buffer_id buffer);
/* Returns the buffer that operand k names. */
static inline uint32_t op_list_operand(const struct ir *ir, uint32_t op, uint32_t k)
{
    uint32_t operand = ir->operand[ir->op.operand_begin[op] + k];
    return operand & IR_RANGE ? ir->range[operand & ~IR_RANGE].buffer.i : operand;
}

#endif
