/* Blocks, runs, and what of them is steady. */
#include "schedule/passes/births.h"
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
    const uint16_t *micro = ir->op.micro;
    uint16_t units = 1;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        uint16_t behind = (uint16_t)(micro[op] + 1); /* of IR_NONE16: 0 */
        units = behind > units ? behind : units;
    }
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

/* Has an op that has a layer the same storey, direction and unit as the one before it? Most have. */
static bool goes_on(const struct ir *ir, uint32_t op)
{
    const struct op_table *t = &ir->op;
    return op > 0 && t->layer[op] != IR_NONE16 && t->layer[op] == t->layer[op - 1] &&
           t->phase[op] != PHASE_OPTIMIZER && t->phase[op] == t->phase[op - 1] &&
           t->micro[op] == t->micro[op - 1] && !comes_along(ir, op - 1);
}

/* How many ops and buffers the last block has, now that all of them are known. */
static void end_block(struct stretch *s, uint32_t op, uint32_t buffer)
{
    struct stretch_block *block = &s->block[s->block_count - 1];
    block->ops = op - block->op;
    block->buffers = buffer - block->buffer;
    for (uint32_t i = block->op; i < op; i++)
        s->block_of_op[i] = s->block_count - 1;
    for (uint32_t i = block->buffer; i < buffer; i++)
        s->block_of_buffer[i] = s->block_count - 1;
}

/* A block begins with the first op of its storey and direction in its unit that does not just come along,
 * and goes on until the next does. Blocks of one kind in a row are a run. */
static void find_blocks(struct stretch *s, const struct births *births)
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
        if (!comes_along(ir, op) && !goes_on(ir, op) && storey_of(s, op, &v, &storey)) {
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
                while (born < ir->buffer.count && births->first[born] < op)
                    born++;
                end_block(s, op, born);
                s->block[s->block_count++] = (struct stretch_block){
                    .op = op, .buffer = born, .run = s->run_count - 1, .storey = storey};
                last_kind = kind;
            }
        }
    }
    end_block(s, ir->op.count, ir->buffer.count);
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

/* ---- columns of a block and of the next, which are the same but for layers ---- */

#define SAME(table, column, a, b, rows)                                                            \
    (memcmp(s->in->table.column + (a), s->in->table.column + (b),                                  \
            (rows) * sizeof *s->in->table.column) == 0)

static bool like_layers(const struct stretch *s, uint32_t block, const uint16_t *a,
                        const uint16_t *b, uint32_t rows)
{
    uint16_t by = (uint16_t)s->left_out.storey, unlike = 0;
    if (!s->run[s->block[block].run].up)
        by = (uint16_t)-by;
    for (uint32_t i = 0; i < rows; i++) {
        bool none = a[i] == IR_NONE16;
        unlike |= (uint16_t)(b[i] != (none ? IR_NONE16 : (uint16_t)(a[i] + by)));
        unlike |= (uint16_t)(none != (b[i] == IR_NONE16));
    }
    return unlike == 0;
}

/* Rows of the same shapes in the same places, whatever they refer to. */
static bool same_work(const struct stretch *s, uint32_t block)
{
    const uint16_t *layer = s->in->op.layer;
    uint32_t a = s->block[block].op, b = s->block[block + 1].op, rows = s->block[block].ops;
    return SAME(op, shape, a, b, rows) && SAME(op, stream, a, b, rows) &&
           SAME(op, phase, a, b, rows) && SAME(op, region, a, b, rows) &&
           SAME(op, reads, a, b, rows) && SAME(op, writes, a, b, rows) &&
           SAME(op, chunk, a, b, rows) && SAME(op, step, a, b, rows) &&
           SAME(op, micro, a, b, rows) && SAME(op, guard, a, b, rows) &&
           like_layers(s, block, layer + a, layer + b, rows);
}

static bool same_space(const struct stretch *s, uint32_t block)
{
    const uint16_t *layer = s->in->buffer.layer;
    uint32_t a = s->block[block].buffer, b = s->block[block + 1].buffer;
    uint32_t rows = s->block[block].buffers;
    return SAME(buffer, memory, a, b, rows) && SAME(buffer, dtype, a, b, rows) &&
           SAME(buffer, category, a, b, rows) && SAME(buffer, flags, a, b, rows) &&
           SAME(buffer, dims, a, b, rows) && SAME(buffer, stem, a, b, rows) &&
           like_layers(s, block, layer + a, layer + b, rows);
}

/* ---- what they refer to ---- */

/* Are two operands the same elements of their buffers? Sizes and extents are interned. */
static bool same_elements(const struct ir *ir, uint32_t a, uint32_t b)
{
    if ((a ^ b) & IR_RANGE)
        return false; /* all of a buffer has no range */
    return a & IR_RANGE ? ir->range[a & ~IR_RANGE].extent == ir->range[b & ~IR_RANGE].extent
                        : ir->buffer.dims[a] == ir->buffer.dims[b];
}

/* Where operands of a block begin; they lie in the order of its ops, as waits do. */
static const uint32_t *operands_of(const struct ir *ir, const struct stretch_block *block)
{
    return ir_operands(ir, block->op);
}

/* Do they refer to the same things, as seen from their blocks? Their rows are the same. */
static bool same_operands(const struct stretch *s, uint32_t block)
{
    const struct ir *ir = s->in;
    const struct stretch_block *a = &s->block[block], *b = a + 1;
    const uint32_t *x = operands_of(ir, a), *y = operands_of(ir, b);
    uint32_t last = a->op + a->ops - 1;
    const uint32_t *end =
        ir_operands(ir, last) + (uint32_t)ir->op.reads[last] + ir->op.writes[last];
    for (; x < end; x++, y++) {
        if (*x - a->buffer < a->buffers && *y - *x == a->buffers)
            continue; /* most are the block's own, of the same size */
        if (!same_elements(ir, *x, *y) ||
            !like_buffers(s, block, ir_buffer_of(ir, *x), ir_buffer_of(ir, *y)))
            return false;
    }
    return true;
}

static bool same_waits(const struct stretch *s, uint32_t block)
{
    const struct ir *ir = s->in;
    const struct stretch_block *a = &s->block[block], *b = a + 1;
    if (!SAME(op, wait_count, a->op, b->op, a->ops))
        return false;
    const op_id *x = ir_waits(ir, a->op), *y = ir_waits(ir, b->op);
    uint32_t last = a->op + a->ops - 1;
    const op_id *end = ir_waits(ir, last) + ir->op.wait_count[last];
    for (; x < end; x++, y++)
        if (!like_ops(s, block, x->i, y->i))
            return false;
    return true;
}

static bool same_free_sets(const struct stretch *s, uint32_t block)
{
    const struct buffer_table *t = &s->in->buffer;
    const struct stretch_block *a = &s->block[block], *b = a + 1;
    if (!SAME(buffer, free_count, a->buffer, b->buffer, a->buffers))
        return false;
    for (uint32_t i = 0; i < a->buffers; i++) {
        const op_id *x = ir_free_set(s->in, a->buffer + i), *y = ir_free_set(s->in, b->buffer + i);
        for (uint32_t k = 0; k < t->free_count[a->buffer + i]; k++)
            if (!like_ops(s, block, x[k].i, y[k].i))
                return false;
    }
    return true;
}

/* Has the next block the same rows; and do they refer to the same things? */
static bool same_rows(const struct stretch *s, uint32_t block)
{
    const struct stretch_block *a = &s->block[block], *b = a + 1;
    return a->ops == b->ops && a->buffers == b->buffers && same_work(s, block) &&
           same_space(s, block);
}

static bool same_block(const struct stretch *s, uint32_t block)
{
    return same_rows(s, block) && same_operands(s, block) && same_waits(s, block) &&
           same_free_sets(s, block);
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
    const struct ir *ir = s->in;
    uint32_t reach = 0, farthest = 0; /* of steady blocks, and of all */
    for (uint32_t b = 0; b < s->block_count; b++) {
        const struct stretch_block *block = &s->block[b];
        const struct stretch_run *run = block->run != IR_NONE ? &s->run[block->run] : NULL;
        bool steady = run && b - run->begin >= run->low && b - run->begin < run->high;
        for (uint32_t op = block->op; op < block->op + block->ops; op++) {
            uint32_t v, storey;
            bool told = op > block->op && ir->op.layer[op] != IR_NONE16 &&
                        ir->op.layer[op] == ir->op.layer[op - 1];
            if (told || !storey_of(s, op, &v, &storey))
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

bool stretch_survey(struct stretch *s, const struct ir *in, const struct births *births,
                    struct ir *out, uint16_t role, struct depth_left_out left_out,
                    const struct stretch_chunk *chunk, uint32_t chunk_count)
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
    find_blocks(s, births);
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
