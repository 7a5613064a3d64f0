/* Writes gradients over tensors that the forward saved, as Liger-Kernel does: the backward of SwiGLU stores the
 * gradients of gate and up in the two tensors that the forward saved (liger_kernel/ops/swiglu.py, swiglu_backward(),
 * which returns a and b), so that they need no memory of their own.
 *
 * The pass runs after recomputation, so the gradients of a repeated layer are written over the repeated product. */
#include "schedule/activations/passes.h"

#include <stdlib.h>
#include <string.h>

/* True if the gradient can be written over the saved tensor: the two are different buffers of the same dtype and
 * size. */
static bool can_be_written_over(const struct ir *ir, buffer_id read, buffer_id write)
{
    return read.i != write.i && ir->buffer.dtype[read.i] == ir->buffer.dtype[write.i] &&
           ir_buffer_elements(ir, read) == ir_buffer_elements(ir, write);
}

void pass_gradients_in_place(struct emit *e, struct op_list *list)
{
    struct ir *ir = e->ir;
    const uint32_t buffers = ir->buffer.count;
    /* [buffers] the saved buffer that replaces this gradient's buffer; IR_NONE: none does */
    uint32_t *over = heap_alloc((size_t)buffers + 1, sizeof *over);
    memset(over, 0xff, ((size_t)buffers + 1) * sizeof *over);
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t op = list->op[i], reads = ir->op.read_count[op];
        for (uint32_t k = 0; k < reads; k++) {
            const uint32_t buffer = ir_touched_buffer(ir, op, k);
            if (over[buffer] != IR_NONE)
                ir_redirect_operand(ir, op, k, (buffer_id){over[buffer]});
        }
        if (ir->op.kind[op] != WORK_SWIGLU_BACKWARD)
            continue;
        const uint32_t saved = ir_touched_buffer(ir, op, 1),
                       gradient = ir_touched_buffer(ir, op, reads);
        if (!can_be_written_over(ir, (buffer_id){saved}, (buffer_id){gradient}))
            continue;
        over[gradient] = saved;
        ir_redirect_operand(ir, op, reads, (buffer_id){saved});
    }
    free(over);
}
