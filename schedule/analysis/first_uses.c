#include "schedule/analysis/first_uses.h"

#include <stdlib.h>
#include <string.h>

void first_uses_release(struct first_uses *first_uses)
{
    free(first_uses->first_op_by_buffer);
    free(first_uses->own_clock_row_by_buffer);
    free(first_uses->own_clocks_of_first_uses);
    free(first_uses->buffers_by_first_use);
    *first_uses = (struct first_uses){0};
}

void first_uses_add_unordered_touch(struct first_uses *b, const struct order *order,
                                    uint32_t buffer, uint32_t op)
{
    size_t size = b->clock_column_count * sizeof *b->own_clocks_of_first_uses;
    if (b->own_clock_row_by_buffer[buffer] == IR_NONE) {
        b->own_clock_row_by_buffer[buffer] = b->own_clock_count++;
        b->own_clocks_of_first_uses =
            heap_grow(b->own_clocks_of_first_uses, &b->capacity, b->own_clock_count, size);
        memcpy(b->own_clocks_of_first_uses +
                   (size_t)b->own_clock_row_by_buffer[buffer] * b->clock_column_count,
               order_clock_of(order, b->first_op_by_buffer[buffer]), size);
    }
    first_uses_lower_clock(b->own_clocks_of_first_uses +
                               (size_t)b->own_clock_row_by_buffer[buffer] * b->clock_column_count,
                           order_clock_of(order, op), b->clock_column_count);
}

void first_uses_begin(struct first_uses *b, const struct order *order, uint32_t buffers)
{
    b->first_op_by_buffer =
        heap_realloc(b->first_op_by_buffer, buffers, sizeof *b->first_op_by_buffer);
    b->own_clock_row_by_buffer =
        heap_realloc(b->own_clock_row_by_buffer, buffers, sizeof *b->own_clock_row_by_buffer);
    b->buffers_by_first_use =
        heap_realloc(b->buffers_by_first_use, buffers, sizeof *b->buffers_by_first_use);
    b->used_buffer_count = 0;
    memset(b->first_op_by_buffer, 0xff, buffers * sizeof *b->first_op_by_buffer);
    memset(b->own_clock_row_by_buffer, 0xff, buffers * sizeof *b->own_clock_row_by_buffer);
    if (b->clock_column_count != order->clock_column_count)
        b->capacity = 0;
    b->clock_column_count = order->clock_column_count;
    b->own_clock_count = 0;
}

void first_uses_of_role(struct first_uses *b, const struct ir *ir, const struct order *order)
{
    first_uses_begin(b, order, ir->buffer.count);
    for (uint32_t op = order->first_op; op < order->first_op + order->op_count; op++)
        for (uint32_t k = 0; k < ir_operand_count(ir, op); k++)
            first_uses_add_touch(b, order, ir_touched_buffer(ir, op, k), op);
}

bool first_uses_starts_after_free_set(const struct first_uses *first_uses,
                                      const struct order *order, uint32_t buffer, const op_id *set,
                                      uint32_t count)
{
    const uint32_t *clock = first_uses_clock(first_uses, order, buffer);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t op = set[k].i;
        if (op < order->first_op || op - order->first_op >= order->op_count)
            return false;
        uint8_t stream = order->stream_of_op[op - order->first_op];
        if (stream == ORDER_NO_STREAM ? op >= first_uses->first_op_by_buffer[buffer]
                                      : clock[stream] <= op)
            return false;
    }
    return true;
}
