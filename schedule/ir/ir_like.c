/* Adds rows that are equal to existing ones except for a few columns, so that nothing need be looked up; gives operands
 * other buffers. */
#include "schedule/ir/ir_columns.h"
#include "schedule/ir/ir_index.h"

#include <assert.h>

uint32_t ir_copy_buffer(struct buffer_table *out, const struct buffer_table *in, uint32_t from)
{
    uint32_t row = out->count++;
    out->memory[row] = in->memory[from];
    out->dtype[row] = in->dtype[from];
    out->category[row] = in->category[from];
    out->flags[row] = in->flags[from];
    out->role[row] = in->role[from];
    out->layer[row] = in->layer[from];
    out->binding[row] = in->binding[from];
    out->dims[row] = in->dims[from];
    out->stem[row] = in->stem[from];
    out->free_op[row].i = 0;
    out->free_count[row] = 0;
    out->offset[row] = UINT64_MAX;
    return row;
}

buffer_id ir_add_buffer_like(struct ir *ir, buffer_id buffer)
{
    struct buffer_table *t = &ir->buffer;
    assert(t->count < IR_OPERAND_IS_RANGE_ROW && buffer.i < t->count);
    ir_grow_buffers(t, 1);
    uint32_t row = ir_copy_buffer(t, t, buffer.i);
    t->binding[row] = IR_NONE16;
    t->number[row] = ir_index(ir)->next_buffer_number_by_stem[t->stem[row]]++;
    return (buffer_id){row};
}

void ir_redirect_operand(struct ir *ir, uint32_t op, uint32_t k, buffer_id buffer)
{
    uint32_t *operand = &ir_operands(ir, op)[k];
    if (!(*operand & IR_OPERAND_IS_RANGE_ROW)) {
        *operand = buffer.i;
    } else if (ir_buffer_of_operand(ir, *operand) != buffer.i) {
        uint32_t extent = ir->range[*operand & ~IR_OPERAND_IS_RANGE_ROW].extent_row;
        *operand = IR_OPERAND_IS_RANGE_ROW | ir_add_range(ir, (struct ir_range){buffer, extent});
    }
}

op_id ir_add_op_like(struct ir *ir, uint32_t op, uint8_t phase, const buffer_id *buffer,
                     const op_id *wait, uint16_t wait_count)
{
    struct op_table *t = &ir->op;
    assert(op < t->count);
    uint32_t operands = ir_operand_count(ir, op);
    RESERVE(ir, operand, operands);
    RESERVE(ir, wait, wait_count);

    ir_grow_ops(t, 1);
    uint32_t row = t->count++;
    ir_copy_ops(t, row, t, op, 1);
    t->phase[row] = phase;
    t->operand_begin[row] = ir->operand_count;
    for (uint32_t k = 0; k < operands; k++) {
        ir->operand[ir->operand_count++] = ir_operands(ir, op)[k];
        ir_redirect_operand(ir, row, k, buffer[k]);
    }
    t->wait_begin[row] = ir->wait_count;
    t->wait_count[row] = wait_count;
    for (uint32_t i = 0; i < wait_count; i++)
        ir->wait[ir->wait_count++] = wait[i];
    ir->role[ir_index(ir)->role_that_gets_new_ops].op_count++;
    return (op_id){row};
}
