#include "schedule/analysis/happens_before.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* the number of columns of a clock is a multiple of this, so that the compiler makes vector instructions of
 * raise_clock_to_max() */
enum { LANES = 4 };

void order_release(struct order *order)
{
    free(order->clocks);
    free(order->stream_of_op);
    free(order->last_op_of_stream_plus_1);
    free(order->host_clock);
    *order = (struct order){0};
}

static void reserve_clocks(struct order *order, uint32_t rows)
{
    if (rows <= order->capacity)
        return;
    size_t capacity = heap_next_capacity(order->capacity, rows);
    assert(capacity <= UINT32_MAX);
    order->clocks =
        heap_realloc(order->clocks, capacity, order->clock_column_count * sizeof *order->clocks);
    order->stream_of_op = heap_realloc(order->stream_of_op, capacity, sizeof *order->stream_of_op);
    order->capacity = (uint32_t)capacity;
}

void order_begin_list(struct order *order, uint32_t streams, uint32_t first_op)
{
    assert(streams <= ORDER_NO_STREAM);
    uint32_t width = (streams + LANES - 1) / LANES * LANES;
    if (width == 0)
        width = LANES;
    if (width != order->clock_column_count) { /* rows of another width cannot use the old memory */
        order_release(order);
        order->clock_column_count = width;
    }
    order->first_op = first_op;
    order->op_count = 0;
    order->stream_count = streams;
    order->last_op_of_stream_plus_1 = heap_realloc(order->last_op_of_stream_plus_1, width,
                                                   sizeof *order->last_op_of_stream_plus_1);
    order->host_clock = heap_realloc(order->host_clock, width, sizeof *order->host_clock);
    memset(order->last_op_of_stream_plus_1, 0, width * sizeof *order->last_op_of_stream_plus_1);
    memset(order->host_clock, 0, width * sizeof *order->host_clock);
    reserve_clocks(order, 1);
}

static inline void raise_clock_to_max(uint32_t *restrict row, const uint32_t *restrict other,
                                      uint32_t width)
{
    for (uint32_t i = 0; i < width; i += LANES)
        for (uint32_t j = 0; j < LANES; j++)
            row[i + j] = row[i + j] > other[i + j] ? row[i + j] : other[i + j];
}

static inline uint32_t *clock_of_open_op(struct order *order)
{
    return order->clocks + (size_t)order->op_count * order->clock_column_count;
}

const uint32_t *order_open_op(struct order *order, enum order_op_kind place, uint32_t stream)
{
    reserve_clocks(order, order->op_count + 1);
    uint32_t *row = clock_of_open_op(order), tail = 0;
    order->open_op_kind = (uint8_t)place;
    order->stream_of_op[order->op_count] = ORDER_NO_STREAM;
    if (place != ORDER_RUNS_ON_HOST_ONLY) {
        assert(stream < order->stream_count);
        tail = order->last_op_of_stream_plus_1[stream];
        if (place != ORDER_HOST_WAITS_FOR_STREAM)
            order->stream_of_op[order->op_count] = (uint8_t)stream;
    }
    memcpy(row, order->host_clock, order->clock_column_count * sizeof *row);
    if (tail != 0) {
        raise_clock_to_max(row, order_clock_of(order, tail - 1), order->clock_column_count);
        row[stream] = tail;
    }
    return row;
}

void order_add_wait(struct order *order, uint32_t op)
{
    if (op < order->first_op || op - order->first_op >= order->op_count)
        return;
    uint32_t *row = clock_of_open_op(order);
    uint8_t stream = order->stream_of_op[op - order->first_op];
    /* The open op starts after `op` already, and so after all that had to end before `op` started. */
    if (stream != ORDER_NO_STREAM && row[stream] > op)
        return;
    raise_clock_to_max(row, order_clock_of(order, op), order->clock_column_count);
    if (stream != ORDER_NO_STREAM)
        row[stream] = op + 1;
}

void order_close_op(struct order *order)
{
    uint32_t op = order->first_op + order->op_count;
    uint8_t stream = order->stream_of_op[order->op_count];
    if (stream != ORDER_NO_STREAM)
        order->last_op_of_stream_plus_1[stream] = op + 1;
    if (order->open_op_kind != ORDER_RUNS_ON_STREAM) {
        memcpy(order->host_clock, clock_of_open_op(order),
               order->clock_column_count * sizeof *order->host_clock);
        if (stream != ORDER_NO_STREAM)
            order->host_clock[stream] = op + 1;
    }
    order->op_count++;
}

enum order_op_kind order_kind_of_op(const struct ir *ir, uint32_t op)
{
    if (ir->op.kind[op] == WORK_HOST_SYNC)
        return ORDER_HOST_WAITS_FOR_STREAM;
    if (ir->op.kind[op] == WORK_BARRIER)
        return ORDER_RUNS_ON_HOST_ONLY;
    return ir_blocks_host(ir, op) ? ORDER_BLOCKS_HOST_UNTIL_DONE : ORDER_RUNS_ON_STREAM;
}

void order_compute_clocks_of_role(struct order *order, const struct ir *ir, uint32_t role)
{
    const struct role *r = &ir->role[role];
    order_begin_list(order, ir->stream_count, r->op_begin);
    reserve_clocks(order, r->op_count + 1);
    for (uint32_t op = r->op_begin; op < r->op_begin + r->op_count; op++) {
        order_open_op(order, order_kind_of_op(ir, op), ir->op.stream[op]);
        const op_id *wait = ir_waits(ir, op);
        for (uint32_t i = 0; i < ir->op.wait_count[op]; i++)
            order_add_wait(order, wait[i].i);
        order_close_op(order);
    }
}
