#include "schedule/analysis/first_uses.h"

#include <stdlib.h>
#include <string.h>

void first_uses_release(struct first_uses *first_uses)
{
    free(first_uses->first);
    free(first_uses->early_clock);
    free(first_uses->clock);
    free(first_uses->by_first_use);
    *first_uses = (struct first_uses){0};
}

void first_uses_touch_early(struct first_uses *b, const struct order *order, uint32_t buffer,
                            uint32_t op)
{
    size_t size = b->width * sizeof *b->clock;
    if (b->early_clock[buffer] == IR_NONE) {
        b->early_clock[buffer] = b->count++;
        b->clock = heap_grow(b->clock, &b->capacity, b->count, size);
        memcpy(b->clock + (size_t)b->early_clock[buffer] * b->width,
               order_row(order, b->first[buffer]), size);
    }
    first_uses_lower(b->clock + (size_t)b->early_clock[buffer] * b->width, order_row(order, op),
                     b->width);
}

void first_uses_begin(struct first_uses *b, const struct order *order, uint32_t buffers)
{
    b->first = heap_realloc(b->first, buffers, sizeof *b->first);
    b->early_clock = heap_realloc(b->early_clock, buffers, sizeof *b->early_clock);
    b->by_first_use = heap_realloc(b->by_first_use, buffers, sizeof *b->by_first_use);
    b->used_count = 0;
    memset(b->first, 0xff, buffers * sizeof *b->first);
    memset(b->early_clock, 0xff, buffers * sizeof *b->early_clock);
    if (b->width != order->width)
        b->capacity = 0;
    b->width = order->width;
    b->count = 0;
}

void first_uses_of_role(struct first_uses *b, const struct ir *ir, const struct order *order)
{
    first_uses_begin(b, order, ir->buffer.count);
    for (uint32_t op = order->begin; op < order->begin + order->count; op++)
        for (uint32_t k = 0; k < ir_operand_count(ir, op); k++)
            first_uses_touch(b, order, ir_touched(ir, op, k), op);
}

bool first_uses_after(const struct first_uses *first_uses, const struct order *order,
                      uint32_t buffer, const op_id *set, uint32_t count)
{
    const uint32_t *clock = first_uses_clock(first_uses, order, buffer);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t op = set[k].i;
        if (op < order->begin || op - order->begin >= order->count)
            return false;
        uint8_t stream = order->stream[op - order->begin];
        if (stream == ORDER_ON_HOST ? op >= first_uses->first[buffer] : clock[stream] <= op)
            return false;
    }
    return true;
}
