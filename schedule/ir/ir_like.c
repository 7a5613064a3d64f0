/* Rows that are like others, of which nothing need be looked up. */
#include "schedule/ir/ir_columns.h"
#include "schedule/ir/ir_index.h"

#include <assert.h>

buffer_id ir_add_buffer_like(struct ir *ir, buffer_id buffer)
{
    struct buffer_table *t = &ir->buffer;
    assert(t->count < IR_RANGE && buffer.i < t->count);
    ir_grow_buffers(t, 1);
    uint32_t row = t->count++, from = buffer.i;
    t->memory[row] = t->memory[from];
    t->dtype[row] = t->dtype[from];
    t->category[row] = t->category[from];
    t->flags[row] = t->flags[from];
    t->role[row] = t->role[from];
    t->layer[row] = t->layer[from];
    t->dims[row] = t->dims[from];
    t->stem[row] = t->stem[from];
    t->binding[row] = IR_NONE16;
    t->number[row] = ir_index(ir)->next_number[t->stem[row]]++;
    t->free_op[row].i = 0;
    t->free_count[row] = 0;
    t->offset[row] = UINT64_MAX;
    return (buffer_id){row};
}

op_id ir_add_op_like(struct ir *ir, uint32_t op, uint8_t phase, const buffer_id *buffer,
                     const op_id *wait, uint16_t wait_count)
{
    struct op_table *t = &ir->op;
    assert(op < t->count);
    uint32_t operands = (uint32_t)t->reads[op] + t->writes[op];
    RESERVE(ir, operand, operands);
    RESERVE(ir, wait, wait_count);

    ir_grow_ops(t, 1);
    uint32_t row = t->count++;
    t->kind[row] = t->kind[op];
    t->stream[row] = t->stream[op];
    t->region[row] = t->region[op];
    t->reads[row] = t->reads[op];
    t->writes[row] = t->writes[op];
    t->layer[row] = t->layer[op];
    t->chunk[row] = t->chunk[op];
    t->step[row] = t->step[op];
    t->micro[row] = t->micro[op];
    t->guard[row] = t->guard[op];
    t->shape[row] = t->shape[op];
    t->phase[row] = phase;
    t->operand_begin[row] = ir->operand_count;
    for (uint32_t k = 0; k < operands; k++) {
        uint32_t from = ir->operand[t->operand_begin[op] + k];
        if (!(from & IR_RANGE)) {
            from = buffer[k].i;
        } else if (ir_buffer_of(ir, from) != buffer[k].i) {
            uint32_t extent = ir->range[from & ~IR_RANGE].extent;
            from = IR_RANGE | ir_add_range(ir, (struct ir_range){buffer[k], extent});
        }
        ir->operand[ir->operand_count++] = from;
    }
    t->wait_begin[row] = ir->wait_count;
    t->wait_count[row] = wait_count;
    for (uint32_t i = 0; i < wait_count; i++)
        ir->wait[ir->wait_count++] = wait[i];
    ir->role[ir_index(ir)->open_role].op_count++;
    return (op_id){row};
}
