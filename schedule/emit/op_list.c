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

void op_list_fill_from_ir(struct op_list *list, const struct ir *ir)
{
    *list = (struct op_list){.count = ir->op.count, .capacity = ir->op.count};
    list->op = heap_alloc(ir->op.count, sizeof *list->op);
    for (uint32_t i = 0; i < ir->op.count; i++)
        list->op[i] = i;
}

op_id op_list_last_on_stream(const struct op_list *list, uint32_t count, const struct ir *ir,
                             uint8_t stream)
{
    while (count > 0 && ir->op.stream[list->op[count - 1]] != stream)
        count--;
    return (op_id){count > 0 ? list->op[count - 1] : IR_NONE};
}
