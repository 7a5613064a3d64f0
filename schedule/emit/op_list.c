#include "schedule/emit/op_list.h"

#include <stdlib.h>

void op_list_release(struct op_list *list)
{
    free(list->op);
    *list = (struct op_list){0};
}

void op_list_push(struct op_list *list, op_id op)
{
    list->op = heap_grow(list->op, &list->capacity, list->count + 1u, sizeof *list->op);
    list->op[list->count++] = op.i;
}

void op_list_init(struct op_list *list, const struct ir *ir)
{
    *list = (struct op_list){.count = ir->op.count, .capacity = ir->op.count};
    list->op = heap_alloc(ir->op.count, sizeof *list->op);
    for (uint32_t i = 0; i < ir->op.count; i++)
        list->op[i] = i;
}

void op_list_redirect(struct ir *ir, uint32_t op, uint32_t k, buffer_id buffer)
{
    uint32_t *operand = &ir->operand[ir->op.operand_begin[op] + k];
    if (!(*operand & IR_RANGE)) {
        *operand = buffer.i;
        return;
    }
    uint32_t extent = ir->range[*operand & ~IR_RANGE].extent;
    *operand = IR_RANGE | ir_add_range(ir, (struct ir_range){buffer, extent});
}
