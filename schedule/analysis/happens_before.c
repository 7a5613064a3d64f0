#include "schedule/analysis/happens_before.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* the width of rows is a multiple of this, so that a maximum takes few vector instructions */
enum { LANES = 4 };

void order_release(struct order *order)
{
    free(order->row);
    free(order->stream);
    free(order->stream_tail);
    free(order->host);
    *order = (struct order){0};
}

static void reserve_rows(struct order *order, uint32_t rows)
{
    if (rows <= order->capacity)
        return;
    size_t capacity = heap_next_capacity(order->capacity, rows);
    assert(capacity <= UINT32_MAX);
    order->row = heap_realloc(order->row, capacity, order->width * sizeof *order->row);
    order->stream = heap_realloc(order->stream, capacity, sizeof *order->stream);
    order->capacity = (uint32_t)capacity;
}

void order_begin(struct order *order, uint32_t streams, uint32_t first_op)
{
    assert(streams <= ORDER_ON_HOST);
    uint32_t width = (streams + LANES - 1) / LANES * LANES;
    if (width == 0)
        width = LANES;
    if (width != order->width) { /* rows of another width cannot use the old memory */
        order_release(order);
        order->width = width;
    }
    order->begin = first_op;
    order->count = 0;
    order->streams = streams;
    order->stream_tail = heap_realloc(order->stream_tail, width, sizeof *order->stream_tail);
    order->host = heap_realloc(order->host, width, sizeof *order->host);
    memset(order->stream_tail, 0, width * sizeof *order->stream_tail);
    memset(order->host, 0, width * sizeof *order->host);
    reserve_rows(order, 1);
}

static inline void raise_to(uint32_t *restrict row, const uint32_t *restrict other, uint32_t width)
{
    for (uint32_t i = 0; i < width; i += LANES)
        for (uint32_t j = 0; j < LANES; j++)
            row[i + j] = row[i + j] > other[i + j] ? row[i + j] : other[i + j];
}

static inline uint32_t *open_row(struct order *order)
{
    return order->row + (size_t)order->count * order->width;
}

const uint32_t *order_start(struct order *order, enum order_place place, uint32_t stream)
{
    reserve_rows(order, order->count + 1);
    uint32_t *row = open_row(order), tail = 0;
    order->op_place = (uint8_t)place;
    order->stream[order->count] = ORDER_ON_HOST;
    if (place != ORDER_HOST) {
        assert(stream < order->streams);
        tail = order->stream_tail[stream];
        if (place != ORDER_SYNC)
            order->stream[order->count] = (uint8_t)stream;
    }
    memcpy(row, order->host, order->width * sizeof *row);
    if (tail != 0) {
        raise_to(row, order_row(order, tail - 1), order->width);
        row[stream] = tail;
    }
    return row;
}

void order_join(struct order *order, uint32_t op)
{
    if (op < order->begin || op - order->begin >= order->count)
        return;
    uint32_t *row = open_row(order);
    uint8_t stream = order->stream[op - order->begin];
    /* Everything that had to end before an op started has ended when the op has ended. */
    if (stream != ORDER_ON_HOST && row[stream] > op)
        return;
    raise_to(row, order_row(order, op), order->width);
    if (stream != ORDER_ON_HOST)
        row[stream] = op + 1;
}

void order_finish(struct order *order)
{
    uint32_t op = order->begin + order->count;
    uint8_t stream = order->stream[order->count];
    if (stream != ORDER_ON_HOST)
        order->stream_tail[stream] = op + 1;
    if (order->op_place != ORDER_STREAM) {
        memcpy(order->host, open_row(order), order->width * sizeof *order->host);
        if (stream != ORDER_ON_HOST)
            order->host[stream] = op + 1;
    }
    order->count++;
}

enum order_place order_place_of(const struct ir *ir, uint32_t op)
{
    if (ir->op.kind[op] == WORK_HOST_SYNC)
        return ORDER_SYNC;
    if (ir->op.kind[op] == WORK_BARRIER)
        return ORDER_HOST;
    return ir_blocks_host(ir, op) ? ORDER_BLOCKING : ORDER_STREAM;
}

void order_role(struct order *order, const struct ir *ir, uint32_t role)
{
    const struct role *r = &ir->role[role];
    order_begin(order, ir->stream_count, r->op_begin);
    reserve_rows(order, r->op_count + 1);
    for (uint32_t op = r->op_begin; op < r->op_begin + r->op_count; op++) {
        order_start(order, order_place_of(ir, op), ir->op.stream[op]);
        const op_id *wait = ir_waits(ir, op);
        for (uint32_t i = 0; i < ir->op.wait_count[op]; i++)
            order_join(order, wait[i].i);
        order_finish(order);
    }
}
