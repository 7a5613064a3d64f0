#include "sim/plan/depth.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 8,  /* of a period */
    PERIODS_MIN = 9, /* that are worth leaving some out */
};

/* ---- blocks: a layer's forward or backward in a micro-batch ---- */

struct block {
    uint32_t begin, ops;
};

struct blocks {
    struct block *row;
    uint32_t count;
};

static bool is_copy(uint8_t kind)
{
    return kind == WORK_H2D || kind == WORK_D2H;
}

/* Copies from and to pageable memory take other links than those of pinned memory. */
static uint64_t memories(const struct ir *ir, uint32_t op)
{
    if (!is_copy(ir->op.kind[op]))
        return 0;
    return 1u + ir->buffer.memory[ir_touched(ir, op, 0)] * 4u +
           ir->buffer.memory[ir_touched(ir, op, ir->op.reads[op])];
}

/* What runs is the same: shape, and so kind, stream, guard, memories. */
static bool same_ops(const struct ir *ir, uint32_t a, uint32_t b, uint32_t ops)
{
    const struct op_table *t = &ir->op;
    if (memcmp(t->shape + a, t->shape + b, ops * sizeof *t->shape) != 0 ||
        memcmp(t->stream + a, t->stream + b, ops * sizeof *t->stream) != 0 ||
        memcmp(t->guard + a, t->guard + b, ops * sizeof *t->guard) != 0)
        return false;
    for (uint32_t i = 0; i < ops; i++) /* of one kind, as of one shape */
        if (is_copy(t->kind[a + i]) && memories(ir, a + i) != memories(ir, b + i))
            return false;
    return true;
}

/* One more than the highest label; 1 without any. */
static uint32_t after_highest(const struct ir *ir, const uint16_t *label)
{
    uint32_t after = 1;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (label[op] != IR_NONE16 && label[op] >= after)
            after = label[op] + 1u;
    return after;
}

/* A block begins with the first op of a layer, direction and micro-batch, and goes on until the next does:
 * gathers of the layer ahead, which stand between, are part of it. */
static struct blocks find_blocks(const struct ir *ir)
{
    const struct op_table *t = &ir->op;
    uint32_t layers = after_highest(ir, t->layer);
    uint32_t keys = after_highest(ir, t->micro) * layers * 2;
    bool *seen = heap_zalloc(keys, sizeof *seen);
    struct blocks blocks = {.row = heap_alloc((size_t)keys + 1, sizeof *blocks.row)};
    blocks.row[blocks.count++] = (struct block){0};
    for (uint32_t op = 0; op < t->count; op++) {
        uint32_t micro = t->micro[op] != IR_NONE16 ? t->micro[op] : 0;
        if (t->layer[op] == IR_NONE16)
            continue;
        uint32_t key = (micro * layers + t->layer[op]) * 2 + (t->phase[op] != PHASE_FORWARD);
        if (!seen[key])
            blocks.row[blocks.count++] = (struct block){.begin = op};
        seen[key] = true;
    }
    for (uint32_t i = 0; i < blocks.count; i++) {
        struct block *block = &blocks.row[i];
        block->ops = (i + 1 < blocks.count ? block[1].begin : t->count) - block->begin;
    }
    free(seen);
    return blocks;
}

/* ---- runs ---- */

static bool same_block(const struct ir *ir, const struct block *a, const struct block *b)
{
    return a->ops == b->ops && same_ops(ir, a->begin, b->begin, a->ops);
}

/* The run that begins with block `at`, of the shortest period that comes often enough. */
static struct depth_run find_run(const struct ir *ir, const struct blocks *b, uint32_t at)
{
    for (uint32_t length = 1; length <= BLOCKS_MAX; length++) {
        uint32_t equal = 0;
        while (at + equal + length < b->count &&
               same_block(ir, &b->row[at + equal], &b->row[at + equal + length]))
            equal++;
        struct depth_run run = {
            .begin = b->row[at].begin, .periods = equal / length + 1, .blocks = length};
        if (run.periods < PERIODS_MIN)
            continue;
        for (uint32_t i = 0; i < length; i++)
            run.ops += b->row[at + i].ops;
        return run;
    }
    return (struct depth_run){0};
}

struct depth_run *depth_find_runs(const struct ir *ir, uint32_t *count)
{
    struct depth_run *runs = NULL;
    uint32_t capacity = 0;
    *count = 0;
    if (ir->role_count != 1 || ir->op.count == 0 || ir->role[0].op_begin != 0)
        return NULL;
    struct blocks b = find_blocks(ir);
    for (uint32_t at = 0; at < b.count;) {
        struct depth_run run = find_run(ir, &b, at);
        at += run.blocks > 0 ? run.periods * run.blocks : 1;
        if (run.blocks == 0)
            continue;
        run.kept = run.periods;
        if (*count == capacity) {
            capacity = (uint32_t)heap_next_capacity(capacity, *count + 1);
            runs = heap_realloc(runs, capacity, sizeof *runs);
        }
        runs[(*count)++] = run;
    }
    free(b.row);
    return runs;
}
