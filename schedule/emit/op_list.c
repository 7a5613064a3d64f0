#include "schedule/emit/op_list.h"

#include <stdlib.h>
#include <string.h>

void program_release(struct program *program)
{
    free(program->op);
    *program = (struct program){0};
}

void program_grow(struct program *program)
{
    program->capacity = (uint32_t)heap_next_capacity(program->capacity, (size_t)program->count + 1);
    program->op = heap_realloc(program->op, program->capacity, sizeof *program->op);
}

void program_push_all(struct program *program, const uint32_t *op, uint32_t count)
{
    if (count > program->capacity - program->count) {
        program->capacity =
            (uint32_t)heap_next_capacity(program->capacity, (size_t)program->count + count);
        program->op = heap_realloc(program->op, program->capacity, sizeof *program->op);
    }
    if (count > 0)
        memcpy(program->op + program->count, op, count * sizeof *op);
    program->count += count;
}

void program_init(struct program *program, const struct ir *ir)
{
    *program = (struct program){.count = ir->op.count, .capacity = ir->op.count};
    program->op = heap_alloc(ir->op.count, sizeof *program->op);
    for (uint32_t i = 0; i < ir->op.count; i++)
        program->op[i] = i;
}

uint32_t program_alike(const struct ir *ir, const uint32_t *op, uint32_t count)
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

void program_redirect(struct ir *ir, uint32_t op, uint32_t k, buffer_id buffer)
{
    uint32_t *operand = &ir->operand[ir->op.operand_begin[op] + k];
    if (!(*operand & IR_RANGE)) {
        *operand = buffer.i;
        return;
    }
    uint32_t extent = ir->range[*operand & ~IR_RANGE].extent;
    *operand = IR_RANGE | ir_add_range(ir, (struct ir_range){buffer, extent});
}
