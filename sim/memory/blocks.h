/* sim/memory/blocks.h: buffers in a row, of which those that repeat (ir.repeat) stand in blocks: one for each
 * period, of as many buffers, the i-th of which are alike but for when they come and go.
 *
 *     for (struct blocks b = blocks_begin(ir); blocks_next(&b);)
 *         buffers b.buffer + p * b.buffers + i, p < b.times, i < b.buffers */
#ifndef SIM_BLOCKS_H
#define SIM_BLOCKS_H

#include "schedule/ir/ir.h"

enum { BLOCK_MAX = 1 << 12 }; /* buffers of one, where nothing repeats */

struct blocks {
    const struct ir *ir;
    uint32_t repeat, at;             /* the next row of ir.repeat, and buffer */
    uint32_t buffer, buffers, times; /* of a block; so many in a row */
};

static inline struct blocks blocks_begin(const struct ir *ir)
{
    return (struct blocks){.ir = ir};
}

/* The next ones; false: there are none. */
static inline bool blocks_next(struct blocks *b)
{
    const struct ir_repeat *repeat = b->ir->repeat, *end = repeat + b->ir->repeat_count;
    for (repeat += b->repeat; repeat < end && (repeat->buffers == 0 || repeat->buffer < b->at);
         repeat++)
        b->repeat++;
    uint32_t until = repeat < end ? repeat->buffer : b->ir->buffer.count;
    bool repeats = repeat < end && b->at == until;
    b->buffer = b->at;
    b->buffers = repeats ? repeat->buffers : until - b->at;
    b->times = repeats ? repeat->periods : 1;
    if (!repeats && b->buffers > BLOCK_MAX)
        b->buffers = BLOCK_MAX;
    b->at += b->buffers * b->times;
    return b->buffers > 0;
}

/* Buffers of the largest. */
static inline uint32_t blocks_largest(const struct ir *ir)
{
    uint32_t most = BLOCK_MAX;
    for (uint32_t i = 0; i < ir->repeat_count; i++)
        most = ir->repeat[i].buffers > most ? ir->repeat[i].buffers : most;
    return most;
}

#endif
