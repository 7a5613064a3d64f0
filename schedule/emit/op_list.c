#include "schedule/emit/op_list.h"

#include <stdlib.h>
#include <string.h>

void op_list_release(struct op_list *list)
{
    free(list->op);
    *list = (struct op_list){0};
}

void op_list_grow(struct op_list *list)
{
    list->capacity = (uint32_t)heap_next_capacity(list->capacity, (size_t)list->count + 1);
    list->op = heap_realloc(list->op, list->capacity, sizeof *list->op);
}

void op_list_push_all(struct op_list *list, const uint32_t *op, uint32_t count)
{
    if (count > list->capacity - list->count) {
        list->capacity = (uint32_t)heap_next_capacity(list->capacity, (size_t)list->count + count);
        list->op = heap_realloc(list->op, list->capacity, sizeof *list->op);
    }
    if (count > 0)
        memcpy(list->op + list->count, op, count * sizeof *op);
    list->count += count;
}

void op_list_init(struct op_list *list, const struct ir *ir)
{
    *list = (struct op_list){.count = ir->op.count, .capacity = ir->op.count};
    list->op = heap_alloc(ir->op.count, sizeof *list->op);
    for (uint32_t i = 0; i < ir->op.count; i++)
        list->op[i] = i;
}

uint32_t op_list_isomorphic_run(const struct ir *ir, const uint32_t *op, uint32_t count)
{
    const struct op_table *t = &ir->op;
    uint32_t ops = 1;
    uint16_t layer = t->layer[op[0]], micro = t->micro[op[0]];
    uint8_t phase = t->phase[op[0]];
    while (ops < count && t->layer[op[ops]] == layer && t->phase[op[ops]] == phase &&
           t->micro[op[ops]] == micro)
        ops++;
    return ops;
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
