#include "sim/memory/writers.h"

#include "base/arena.h"
#include "schedule/passes/lifetimes.h"

#include <stdlib.h>
#include <string.h>

static inline void note(uint32_t *first, uint32_t buffer, uint32_t op)
{
    if (op < first[buffer])
        first[buffer] = op;
}

static void note_ops(uint32_t *first, const struct ir *ir, uint32_t begin, uint32_t end)
{
    for (uint32_t op = begin; op < end; op++) {
        uint32_t reads = ir->op.reads[op];
        for (uint32_t k = reads; k < reads + ir->op.writes[op]; k++)
            note(first, ir_touched(ir, op, k), op);
    }
}

/* Most of what a period writes is born in it, and its like in the next stand as many on: these are noted in
 * rows. own: room for their writers in the first period. */
static void note_periods(uint32_t *first, const struct ir *ir, const struct ir_repeat *r,
                         uint32_t *own)
{
    memset(own, 0xff, r->buffers * sizeof *own);
    for (uint32_t op = r->op; op < r->op + r->ops; op++) {
        uint32_t reads = ir->op.reads[op];
        for (uint32_t k = reads; k < reads + ir->op.writes[op]; k++) {
            uint32_t buffer = ir_touched(ir, op, k), by = ir_touched(ir, op + r->ops, k) - buffer;
            if (by == r->buffers && buffer - r->buffer < r->buffers)
                note(own, buffer - r->buffer, op);
            else
                for (uint32_t p = 0; p < (by != 0 ? r->periods : 1); p++)
                    note(first, buffer + p * by, op + p * r->ops);
        }
    }
    for (uint32_t p = 0; p < r->periods; p++)
        for (uint32_t i = 0; i < r->buffers; i++)
            if (own[i] != IR_NONE)
                note(first, r->buffer + p * r->buffers + i, own[i] + p * r->ops);
}

static void find_persistent(struct writers *w, const struct ir *ir)
{
    size_t capacity = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        if (!lifetimes_persistent(ir, b))
            continue;
        w->first[b] = IR_NONE;
        if (!lifetimes_held(ir, b))
            continue;
        if (w->persistent_count == capacity) {
            capacity = heap_next_capacity(capacity, capacity + 1);
            w->persistent = heap_realloc(w->persistent, capacity, sizeof *w->persistent);
        }
        w->persistent[w->persistent_count++] = b;
    }
}

void writers_init(struct writers *w, const struct ir *ir)
{
    uint32_t most = 0, op = 0;
    for (uint32_t i = 0; i < ir->repeat_count; i++)
        most = ir->repeat[i].buffers > most ? ir->repeat[i].buffers : most;
    *w = (struct writers){.first = heap_alloc(ir->buffer.count + 1u, sizeof *w->first)};
    memset(w->first, 0xff, (ir->buffer.count + 1u) * sizeof *w->first);
    uint32_t *own = heap_alloc(most + 1u, sizeof *own);
    for (uint32_t i = 0; i < ir->repeat_count; i++) {
        const struct ir_repeat *r = &ir->repeat[i];
        if (r->periods < 2)
            continue;
        note_ops(w->first, ir, op, r->op);
        note_periods(w->first, ir, r, own);
        op = r->op + r->ops * r->periods;
    }
    note_ops(w->first, ir, op, ir->op.count);
    free(own);
    find_persistent(w, ir);
}

void writers_release(struct writers *w)
{
    free(w->first);
    free(w->persistent);
    *w = (struct writers){0};
}
