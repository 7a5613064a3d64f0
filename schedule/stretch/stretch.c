/* Blocks, runs, and what of them is steady. */
#include "schedule/stretch/spot.h"

#include <stdlib.h>
#include <string.h>

enum { STEADY_MIN = 3 }; /* blocks in a row that must be the same */

void stretch_release(struct stretch *s)
{
    free(s->block);
    free(s->run);
    free(s->block_of_op);
    free(s->block_of_buffer);
    free(s->state_begin);
    free(s->state_count);
    free(s->layer);
    *s = (struct stretch){0};
}

/* ---- states: the buffers of bundles, storey by storey ---- */

static uint32_t bundle_of(const struct ir *ir, uint32_t buffer)
{
    uint16_t binding = ir->buffer.binding[buffer];
    return binding == IR_NONE16 || ir->binding[binding].bundle == IR_NONE16
               ? IR_NONE
               : ir->binding[binding].bundle;
}

static bool find_states(struct stretch *s)
{
    const struct ir *ir = s->in;
    while (s->states < ir->buffer.count && lifetimes_persistent(ir, s->states))
        s->states++;
    s->state_begin = heap_alloc(s->chunk_count, sizeof *s->state_begin);
    s->state_count = heap_zalloc(s->chunk_count, sizeof *s->state_count);
    for (uint32_t v = 0; v < s->chunk_count; v++) {
        const struct stretch_chunk *chunk = &s->chunk[v];
        uint32_t begin = 0, count = 0;
        while (begin < s->states && bundle_of(ir, begin) != chunk->bundle)
            begin++;
        while (begin + count < s->states && bundle_of(ir, begin + count) == chunk->bundle)
            count++;
        if (count == 0 || begin + count * chunk->whole_storeys > s->states)
            return false;
        for (uint32_t i = 0; i < count * chunk->whole_storeys; i++)
            if (bundle_of(ir, begin + i) != chunk->bundle + i / count ||
                ir->buffer.stem[begin + i] != ir->buffer.stem[begin + i % count])
                return false;
        s->state_begin[v] = begin;
        s->state_count[v] = count;
    }
    return true;
}

/* ---- blocks ---- */

/* Where each layer of the short list is: it is asked of every op. */
static void find_storeys(struct stretch *s)
{
    for (uint32_t v = 0; v < s->chunk_count; v++)
        if (s->chunk[v].first + s->chunk[v].layers > s->layers)
            s->layers = s->chunk[v].first + s->chunk[v].layers;
    s->layer = heap_alloc((size_t)s->layers + 1, sizeof *s->layer);
    memset(s->layer, 0xff, s->layers * sizeof *s->layer); /* of no chunk */
    for (uint32_t v = 0; v < s->chunk_count; v++)
        for (uint32_t i = 0; i < s->chunk[v].layers; i++)
            s->layer[s->chunk[v].first + i] = (struct stretch_layer){v, i / s->left_out.storey};
}

/* What an op says about its block: chunk and storey; false: nothing. Updates have no layer: their
 * states tell. */
static bool storey_of(const struct stretch *s, uint32_t op, uint32_t *v, uint32_t *storey)
{
    const struct ir *ir = s->in;
    if (ir->op.layer[op] != IR_NONE16) {
        if (ir->op.layer[op] >= s->layers)
            return false;
        struct stretch_layer layer = s->layer[ir->op.layer[op]];
        *v = layer.chunk;
        *storey = layer.storey;
        return *v != IR_NONE;
    }
    if (ir->op.phase[op] != PHASE_OPTIMIZER)
        return false;
    uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
    for (uint32_t k = 0; k < operands; k++) {
        uint32_t buffer = ir_touched(ir, op, k);
        struct spot spot = spot_of_state(s, buffer);
        if (spot.of == IR_NONE)
            continue;
        *v = spot.of - s->run_count;
        *storey = spot.at;
        return true;
    }
    return false;
}

static uint32_t units_of(const struct ir *ir)
{
    uint32_t units = 1;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.micro[op] != IR_NONE16 && ir->op.micro[op] >= units)
            units = ir->op.micro[op] + 1u;
    return units;
}

/* Gathers, reductions and copies of a storey stand before or behind its other ops. */
static bool comes_along(const struct ir *ir, uint32_t op)
{
    return ir->op.region[op] == REGION_WEIGHTS || ir->op.region[op] == REGION_OFFLOAD;
}

/* Passes over the states at the end of a step: the norm, clipping, and the updates. */
enum { PASSES_OVER_STATES = 3 };

static uint32_t pass_over_states(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_SQUARE_SUM ? 0 : ir->op.kind[op] == WORK_CLIP ? 1 : 2;
}

/* A block begins with the first op of its storey and direction in its unit that does not just come along,
 * and goes on until the next does. Blocks of one kind in a row are a run. */
static void find_blocks(struct stretch *s)
{
    const struct ir *ir = s->in;
    uint32_t storeys = 0, units = units_of(ir), last_kind = IR_NONE, born = s->states;
    for (uint32_t v = 0; v < s->chunk_count; v++)
        storeys = s->chunk[v].storeys > storeys ? s->chunk[v].storeys : storeys;
    uint32_t kinds = (2 * units + PASSES_OVER_STATES) * s->chunk_count;
    bool *seen = heap_zalloc((size_t)kinds * storeys, sizeof *seen);
    s->block = heap_alloc((size_t)kinds * storeys + 1, sizeof *s->block);
    s->run = heap_alloc((size_t)kinds * storeys + 1, sizeof *s->run);
    s->block[s->block_count++] = (struct stretch_block){.buffer = born, .run = IR_NONE};
    for (uint32_t op = 0; op < ir->op.count; op++) {
        uint32_t v, storey, unit = ir->op.micro[op] != IR_NONE16 ? ir->op.micro[op] : 0;
        if (!comes_along(ir, op) && storey_of(s, op, &v, &storey)) {
            uint32_t way = ir->op.phase[op] == PHASE_OPTIMIZER
                               ? 2 * units + pass_over_states(ir, op)
                           : ir->op.phase[op] == PHASE_FORWARD ? 2 * unit
                                                               : 2 * unit + 1;
            uint32_t kind = way * s->chunk_count + v;
            if (!seen[kind * storeys + storey]) {
                struct stretch_run *run = s->run_count > 0 ? &s->run[s->run_count - 1] : NULL;
                struct stretch_block *before = &s->block[s->block_count - 1];
                bool joins =
                    run && kind == last_kind && before->run == s->run_count - 1 &&
                    (run->blocks == 1 ? storey + 1 == before->storey || storey == before->storey + 1
                                      : run->up == (storey > before->storey));
                seen[kind * storeys + storey] = true;
                if (joins && run->blocks == 1)
                    run->up = storey > before->storey;
                if (!joins)
                    s->run[s->run_count++] = (struct stretch_run){.begin = s->block_count};
                s->run[s->run_count - 1].blocks++;
                s->block[s->block_count++] = (struct stretch_block){
                    .op = op, .buffer = born, .run = s->run_count - 1, .storey = storey};
                last_kind = kind;
            }
        }
        struct stretch_block *block = &s->block[s->block_count - 1];
        const uint32_t *operand = ir->operand + ir->op.operand_begin[op];
        uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
        s->block_of_op[op] = s->block_count - 1;
        block->ops++;
        for (uint32_t k = 0; k < operands; k++) /* rows of buffers stand in the order of births */
            if (ir_buffer_of(ir, operand[k]) == born) {
                s->block_of_buffer[born++] = s->block_count - 1;
                block->buffers++;
            }
    }
    free(seen);
}

/* ---- what is steady ---- */

static bool alike(const struct stretch *s, const struct stretch_run *run, struct spot a,
                  struct spot b)
{
    if (a.of == IR_NONE || a.of != b.of || a.slot != b.slot)
        return false;
    return spot_is_up(s, a.of) == run->up ? b.at == a.at + 1 : a.at == b.at + 1;
}

/* Most of what a block refers to is its own, and the next one's the same of that. */
static bool like_ops(const struct stretch *s, uint32_t block, uint32_t a, uint32_t b)
{
    const struct stretch_block *own = &s->block[block];
    if (a - own->op < own->ops && b - a == own->ops)
        return true;
    return a == b || alike(s, &s->run[own->run], spot_of_op(s, a), spot_of_op(s, b));
}

static bool like_buffers(const struct stretch *s, uint32_t block, uint32_t a, uint32_t b)
{
    const struct stretch_block *own = &s->block[block];
    if (a - own->buffer < own->buffers && b - a == own->buffers)
        return true;
    return a == b ||
           alike(s, &s->run[s->block[block].run], spot_of_buffer(s, a), spot_of_buffer(s, b));
}

static bool like_layers(const struct stretch *s, uint32_t block, uint16_t a, uint16_t b)
{
    uint32_t by = s->left_out.storey;
    if (a == IR_NONE16 || b == IR_NONE16)
        return a == b;
    return s->run[s->block[block].run].up ? a + by == b : b + by == a;
}

/* Rows of the same shapes in the same places, whatever they refer to. */
static bool same_work(const struct stretch *s, uint32_t block, uint32_t a, uint32_t b)
{
    const struct op_table *t = &s->in->op;
    return t->shape[a] == t->shape[b] && t->stream[a] == t->stream[b] &&
           t->phase[a] == t->phase[b] && t->region[a] == t->region[b] &&
           t->reads[a] == t->reads[b] && t->writes[a] == t->writes[b] &&
           t->chunk[a] == t->chunk[b] && t->step[a] == t->step[b] && t->micro[a] == t->micro[b] &&
           t->guard[a] == t->guard[b] && like_layers(s, block, t->layer[a], t->layer[b]);
}

static bool same_space(const struct stretch *s, uint32_t block, uint32_t a, uint32_t b)
{
    const struct buffer_table *t = &s->in->buffer;
    return t->memory[a] == t->memory[b] && t->dtype[a] == t->dtype[b] &&
           t->category[a] == t->category[b] && t->flags[a] == t->flags[b] &&
           t->dims[a] == t->dims[b] && t->stem[a] == t->stem[b] &&
           like_layers(s, block, t->layer[a], t->layer[b]);
}

/* Are two operands the same elements of their buffers? Sizes and extents are interned. */
static bool same_elements(const struct ir *ir, uint32_t a, uint32_t b)
{
    if ((a ^ b) & IR_RANGE)
        return false; /* all of a buffer has no range */
    return a & IR_RANGE ? ir->range[a & ~IR_RANGE].extent == ir->range[b & ~IR_RANGE].extent
                        : ir->buffer.dims[a] == ir->buffer.dims[b];
}

/* Do they refer to the same things, as seen from their blocks? */
static bool same_operands(const struct stretch *s, uint32_t block, uint32_t a, uint32_t b)
{
    const struct ir *ir = s->in;
    const struct op_table *t = &ir->op;
    if (t->wait_count[a] != t->wait_count[b])
        return false;
    const uint32_t *x = ir->operand + t->operand_begin[a], *y = ir->operand + t->operand_begin[b];
    for (uint32_t k = 0; k < (uint32_t)t->reads[a] + t->writes[a]; k++)
        if (!same_elements(ir, x[k], y[k]) ||
            !like_buffers(s, block, ir_buffer_of(ir, x[k]), ir_buffer_of(ir, y[k])))
            return false;
    for (uint32_t k = 0; k < t->wait_count[a]; k++)
        if (!like_ops(s, block, ir->wait[t->wait_begin[a] + k].i, ir->wait[t->wait_begin[b] + k].i))
            return false;
    return true;
}

static bool same_free_set(const struct stretch *s, uint32_t block, uint32_t a, uint32_t b)
{
    const struct buffer_table *t = &s->in->buffer;
    if (t->free_count[a] != t->free_count[b])
        return false;
    for (uint32_t k = 0; k < t->free_count[a]; k++)
        if (!like_ops(s, block, ir_free_set(s->in, a)[k].i, ir_free_set(s->in, b)[k].i))
            return false;
    return true;
}

/* Has the next block the same rows; and do they refer to the same things? */
static bool same_rows(const struct stretch *s, uint32_t block)
{
    const struct stretch_block *a = &s->block[block], *b = a + 1;
    bool same = a->ops == b->ops && a->buffers == b->buffers;
    for (uint32_t i = 0; same && i < a->ops; i++)
        same = same_work(s, block, a->op + i, b->op + i);
    for (uint32_t i = 0; same && i < a->buffers; i++)
        same = same_space(s, block, a->buffer + i, b->buffer + i);
    return same;
}

static bool same_block(const struct stretch *s, uint32_t block)
{
    const struct stretch_block *a = &s->block[block], *b = a + 1;
    bool same = same_rows(s, block);
    for (uint32_t i = 0; same && i < a->ops; i++)
        same = same_operands(s, block, a->op + i, b->op + i);
    for (uint32_t i = 0; same && i < a->buffers; i++)
        same = same_free_set(s, block, a->buffer + i, b->buffer + i);
    return same;
}

/* The cut goes through the middle, which is as far as can be from both ends: what depends on how far
 * away they are (parameters that are kept because they are soon read again) is as in any other depth
 * there (left_out_of() in build.c). */
static bool find_steady(const struct stretch *s, struct stretch_run *run)
{
    uint32_t middle = run->blocks / 2;
    run->low = middle;
    run->high = middle + 1;
    while (run->low > 0 && same_block(s, run->begin + run->low - 1))
        run->low--;
    while (run->high < run->blocks && same_block(s, run->begin + run->high - 1))
        run->high++;
    run->cut = run->low < middle ? middle : middle + 1;
    run->alike_low = run->low;
    run->alike_high = run->high;
    while (run->alike_low > 0 && same_rows(s, run->begin + run->alike_low - 1))
        run->alike_low--;
    while (run->alike_high < run->blocks && same_rows(s, run->begin + run->alike_high - 1))
        run->alike_high++;
    return run->high - run->low >= STEADY_MIN && run->cut < run->high;
}

static uint32_t distance(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

/* Ops of storeys that are far from their block's (or, before the first, from the next one's) would belong
 * to blocks that nobody copies. */
static bool all_near(const struct stretch *s)
{
    uint32_t reach = 0, farthest = 0; /* of steady blocks, and of all */
    for (uint32_t b = 0; b < s->block_count; b++) {
        const struct stretch_block *block = &s->block[b];
        const struct stretch_run *run = block->run != IR_NONE ? &s->run[block->run] : NULL;
        bool steady = run && b - run->begin >= run->low && b - run->begin < run->high;
        for (uint32_t op = block->op; op < block->op + block->ops; op++) {
            uint32_t v, storey;
            if (!storey_of(s, op, &v, &storey))
                continue;
            uint32_t far = distance(storey, run ? block->storey : s->block[b + 1].storey);
            farthest = far > farthest ? far : farthest;
            reach = steady && far > reach ? far : reach;
        }
    }
    return farthest <= reach;
}

/* ---- places in the long list ---- */

static uint32_t like_of(const struct stretch *s, uint32_t block)
{
    const struct stretch_block *b = &s->block[block];
    const struct stretch_run *run = b->run != IR_NONE ? &s->run[b->run] : NULL;
    uint32_t at = run ? block - run->begin : 0;
    if (!run || at < run->alike_low || at >= run->alike_high)
        return IR_NONE;
    if (at < run->low)
        return run->begin + run->low;
    return at + 1 < run->high ? block + 1 : run->begin + run->high - (at < run->high ? 2 : 1);
}

static void lay_out(struct stretch *s)
{
    uint32_t op = s->first_op, buffer = s->to_states + s->states;
    for (uint32_t b = 0; b < s->block_count; b++) {
        struct stretch_block *block = &s->block[b];
        const struct stretch_run *run = block->run != IR_NONE ? &s->run[block->run] : NULL;
        bool copied = run && b - run->begin + 1 == run->cut;
        uint32_t times = copied ? s->left_out.storeys + 1 : 1;
        block->to_op = op;
        block->to_buffer = buffer;
        block->like = like_of(s, b);
        op += times * block->ops;
        buffer += times * block->buffers;
    }
    s->op_count = op - s->first_op;
    s->buffer_count = buffer - s->to_states;
}

bool stretch_survey(struct stretch *s, const struct ir *in, struct ir *out, uint16_t role,
                    struct depth_left_out left_out, const struct stretch_chunk *chunk,
                    uint32_t chunk_count)
{
    *s = (struct stretch){.in = in,
                          .out = out,
                          .role = role,
                          .left_out = left_out,
                          .chunk = chunk,
                          .chunk_count = chunk_count,
                          .to_states = out->buffer.count,
                          .first_op = out->op.count};
    if (!find_states(s))
        return false;
    find_storeys(s);
    s->block_of_op = heap_alloc((size_t)in->op.count + 1, sizeof *s->block_of_op);
    s->block_of_buffer = heap_alloc((size_t)in->buffer.count + 1, sizeof *s->block_of_buffer);
    memset(s->block_of_buffer, 0xff, in->buffer.count * sizeof *s->block_of_buffer);
    find_blocks(s);
    for (uint32_t r = 0; r < s->run_count; r++) {
        struct stretch_run *run = &s->run[r];
        uint32_t v, storey;
        if (!storey_of(s, s->block[run->begin].op, &v, &storey) ||
            run->blocks != s->chunk[v].storeys || !find_steady(s, run))
            return false;
    }
    if (s->run_count == 0 || !all_near(s))
        return false;
    lay_out(s);
    return true;
}
