#include "schedule/analysis/find_repeats.h"

#include "schedule/analysis/liveness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 16, /* of an iteration */
    EQUAL_MIN = 5,   /* iterations of a run */
    BEFORE_MIN = 2   /* of them in front of a gap */
};

/* A layer's forward or backward in a unit, or (of_units) a unit's forward or backward. */
struct block {
    uint32_t begin, ops;
    int32_t label; /* layer or unit; -1: none */
    bool forward;
};

struct finder {
    struct ir *ir;
    const struct role *role;
    uint32_t index; /* of the role */
    struct block *block;
    uint32_t block_count;
    uint32_t *first_op; /* per buffer: the first op that touches it; IR_NONE */
    uint8_t *slot;      /* per buffer: as which operand */
    uint32_t first_run; /* of this role */
};

/* ---- blocks ---- */

static int32_t layer_of_bundle(const struct ir *ir, uint16_t bundle)
{
    int layer;
    return sscanf(ir->bundle[bundle].name, "layers.%d", &layer) == 1 ? layer : -1;
}

/* The layer whose states an op of the optimizer touches. */
static int32_t layer_of_states(const struct ir *ir, uint32_t op)
{
    uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
    for (uint32_t k = 0; k < operands; k++) {
        uint16_t binding = ir->buffer.binding[ir_touched(ir, op, k)];
        if (binding != IR_NONE16 && ir->binding[binding].bundle != IR_NONE16)
            return layer_of_bundle(ir, ir->binding[binding].bundle);
    }
    return -1;
}

static int32_t label_of(const struct ir *ir, uint32_t op)
{
    if (ir->repeats.of_units)
        return ir->op.micro[op] != IR_NONE16 ? ir->op.micro[op] : -1;
    if (ir->op.layer[op] != IR_NONE16)
        return ir->op.layer[op];
    return ir->op.phase[op] == PHASE_OPTIMIZER ? layer_of_states(ir, op) : -1;
}

/* Which block an op is of; those of the optimizer are told apart by their neighbours. */
static uint64_t key_of(const struct ir *ir, uint32_t op, int32_t label)
{
    uint64_t forward = ir->op.phase[op] == PHASE_FORWARD, micro = ir->op.micro[op];
    return ((ir->repeats.of_units ? 0 : micro) << 32 | (uint32_t)label) << 1 | forward;
}

static void add_block(struct finder *f, uint32_t op, int32_t label)
{
    f->block[f->block_count++] = (struct block){
        .begin = op, .label = label, .forward = f->ir->op.phase[op] == PHASE_FORWARD};
}

/* A block begins with the first op of its key, and goes on until the next does: gathers of the layer ahead,
 * which stand between, are part of it. */
static void find_blocks(struct finder *f)
{
    const struct ir *ir = f->ir;
    uint32_t begin = f->role->op_begin, end = begin + f->role->op_count;
    uint64_t *seen = heap_alloc((size_t)f->role->op_count + 1, sizeof *seen), seen_count = 0;
    uint64_t last_key = UINT64_MAX;
    int32_t last = -1;
    f->block = heap_alloc((size_t)f->role->op_count + 1, sizeof *f->block);
    for (uint32_t op = begin; op < end; op++) {
        int32_t label = label_of(ir, op);
        bool optimizer = ir->op.phase[op] == PHASE_OPTIMIZER;
        uint64_t key = key_of(ir, op, label);
        if (optimizer && label != last && !ir->repeats.of_units)
            add_block(f, op, label);
        last = optimizer ? label : -2;
        if (optimizer || label < 0 || key == last_key)
            continue;
        last_key = key;
        bool known = false;
        for (uint64_t i = seen_count; i > 0 && !known; i--)
            known = seen[i - 1] == key;
        if (!known) {
            seen[seen_count++] = key;
            add_block(f, op, label);
        }
    }
    for (uint32_t i = 0; i < f->block_count; i++)
        f->block[i].ops =
            (i + 1 < f->block_count ? f->block[i + 1].begin : end) - f->block[i].begin;
    free(seen);
}

/* ---- runs ---- */

/* What is done is the same: shape, and so kind; stream, guard, phase and counts. */
static bool same_ops(const struct ir *ir, uint32_t a, uint32_t b, uint32_t ops)
{
    const struct op_table *t = &ir->op;
    return memcmp(t->shape + a, t->shape + b, ops * sizeof *t->shape) == 0 &&
           memcmp(t->stream + a, t->stream + b, ops * sizeof *t->stream) == 0 &&
           memcmp(t->guard + a, t->guard + b, ops * sizeof *t->guard) == 0 &&
           memcmp(t->phase + a, t->phase + b, ops * sizeof *t->phase) == 0 &&
           memcmp(t->region + a, t->region + b, ops * sizeof *t->region) == 0 &&
           memcmp(t->reads + a, t->reads + b, ops * sizeof *t->reads) == 0 &&
           memcmp(t->writes + a, t->writes + b, ops * sizeof *t->writes) == 0 &&
           memcmp(t->wait_count + a, t->wait_count + b, ops * sizeof *t->wait_count) == 0;
}

static bool same_block(const struct ir *ir, const struct block *a, const struct block *b)
{
    return a->ops == b->ops && same_ops(ir, a->begin, b->begin, a->ops);
}

/* The block whose label tells the value of an iteration: of units the backward, which ends it. */
static const struct block *labelled(const struct finder *f, uint32_t at, uint32_t length)
{
    for (uint32_t i = 0; f->ir->repeats.of_units && i < length; i++)
        if (!f->block[at + i].forward)
            return &f->block[at + i];
    return &f->block[at];
}

/* Fills in the values. Returns false unless they change by one from iteration to iteration. */
static bool find_values(const struct finder *f, uint32_t at, uint32_t length,
                        struct repeat_run *run)
{
    int32_t layers = f->ir->repeats.layers;
    for (uint32_t i = 0; i < run->iterations; i++) {
        int32_t label = labelled(f, at + i * length, length)->label, value = label / layers;
        if (label < 0)
            return false;
        if (i == 0)
            run->first = value;
        else if (i == 1)
            run->step = value - run->first;
        else if (value != run->first + run->step * (int32_t)i)
            return false;
    }
    return run->step == 1 || run->step == -1;
}

/* The run that begins with block `at`, of the shortest iteration that comes often enough. *length: its blocks. */
static bool find_run(const struct finder *f, uint32_t at, struct repeat_run *run, uint32_t *length)
{
    for (*length = 1; *length <= BLOCKS_MAX; ++*length) {
        uint32_t equal = 0;
        while (at + equal + *length < f->block_count &&
               same_block(f->ir, &f->block[at + equal], &f->block[at + equal + *length]))
            equal++;
        *run = (struct repeat_run){
            .role = f->index, .begin = f->block[at].begin, .iterations = equal / *length + 1};
        if (run->iterations < EQUAL_MIN)
            continue;
        for (uint32_t i = 0; i < *length; i++)
            run->ops += f->block[at + i].ops;
        return find_values(f, at, *length, run);
    }
    return false;
}

static void add_run(struct finder *f, struct repeat_run run)
{
    struct repeats *r = &f->ir->repeats;
    struct repeat_run *rows = arena_array(&f->ir->arena, r->run_count + 1u, sizeof *rows);
    if (r->run_count > 0)
        memcpy(rows, r->run, r->run_count * sizeof *rows);
    run.gap = (uint32_t)(run.step > 0 ? r->turn - run.first : run.first - r->turn + 1);
    run.left_out = repeats_ops(r, IR_NONE, 0);
    rows[r->run_count++] = run;
    r->run = rows;
}

/* An iteration of several layers begins with the first of them, or backwards with the last. */
static bool is_aligned(const struct finder *f, uint32_t at, const struct repeat_run *run)
{
    int32_t layers = f->ir->repeats.layers, label = f->block[at].label % layers;
    return run->ops == 0 || layers == 1 || label == (run->step > 0 ? 0 : layers - 1);
}

static bool find_runs(struct finder *f)
{
    const struct repeats *r = &f->ir->repeats;
    for (uint32_t at = 0; at < f->block_count;) {
        struct repeat_run run;
        uint32_t length;
        if (!find_run(f, at, &run, &length) || !is_aligned(f, at, &run)) {
            at++;
            continue;
        }
        int32_t gap = run.step > 0 ? r->turn - run.first : run.first - r->turn + 1;
        if (gap < BEFORE_MIN || gap >= (int32_t)run.iterations)
            return false;
        add_run(f, run);
        at += run.iterations * length;
    }
    return r->run_count > f->first_run;
}

/* Whether all ops of the iterations at the gap are of runs. */
static bool covers(const struct finder *f)
{
    const struct repeats *r = &f->ir->repeats;
    for (uint32_t op = f->role->op_begin; op < f->role->op_begin + f->role->op_count; op++) {
        int32_t label = label_of(f->ir, op), value = label / r->layers;
        if (label >= 0 && (value == r->turn || value == r->turn - 1) &&
            repeats_place(r, op).run == NULL)
            return false;
    }
    return true;
}

/* ---- are iterations alike? ---- */

static bool alike_free_sets(const struct ir *ir, uint32_t a, int32_t value, uint32_t b,
                            int32_t step)
{
    uint32_t count = ir->buffer.free_count[a];
    const op_id *of_a = ir_free_set(ir, a), *of_b = ir_free_set(ir, b);
    if (count != ir->buffer.free_count[b])
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!repeats_alike(&ir->repeats, of_a[i].i, value, of_b[i].i, step))
            return false;
    return true;
}

static bool alike_buffers(const struct finder *f, uint32_t op, int32_t value, uint32_t a,
                          uint32_t b, int32_t step)
{
    const struct ir *ir = f->ir;
    const struct buffer_table *t = &ir->buffer;
    if (t->memory[a] != t->memory[b] || t->dtype[a] != t->dtype[b] ||
        t->category[a] != t->category[b] || t->flags[a] != t->flags[b] || t->dims[a] != t->dims[b])
        return false;
    if (lifetimes_persistent(ir, a))
        return true;
    return f->slot[a] == f->slot[b] &&
           repeats_alike(&ir->repeats, f->first_op[a], value, f->first_op[b], step) &&
           (f->first_op[a] != op || alike_free_sets(ir, a, value, b, step));
}

static bool alike_operands(const struct finder *f, uint32_t op, int32_t value, uint32_t other,
                           int32_t step)
{
    const struct ir *ir = f->ir;
    uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
    const uint32_t *a = ir_operands(ir, op), *b = ir_operands(ir, other);
    for (uint32_t k = 0; k < operands; k++) {
        if ((a[k] & IR_RANGE) != (b[k] & IR_RANGE))
            return false;
        if (!alike_buffers(f, op, value, ir_buffer_of(ir, a[k]), ir_buffer_of(ir, b[k]), step))
            return false;
    }
    return true;
}

static bool alike_waits(const struct ir *ir, uint32_t op, int32_t value, uint32_t other,
                        int32_t step)
{
    for (uint32_t w = 0; w < ir->op.wait_count[op]; w++)
        if (!repeats_alike(&ir->repeats, ir_waits(ir, op)[w].i, value, ir_waits(ir, other)[w].i,
                           step))
            return false;
    return true;
}

/* The three iterations around the gap: one, its image's, and the one after. */
static bool alike_iterations(const struct finder *f, const struct repeat_run *run)
{
    uint32_t begin = run->begin + (run->gap - 2) * run->ops;
    for (uint32_t op = begin; op < begin + 2 * run->ops; op++) {
        int32_t value = repeats_place(&f->ir->repeats, op).value;
        if (!alike_operands(f, op, value, op + run->ops, run->step) ||
            !alike_waits(f->ir, op, value, op + run->ops, run->step))
            return false;
    }
    return true;
}

static void find_first_ops(struct finder *f)
{
    const struct ir *ir = f->ir;
    f->first_op = heap_alloc((size_t)ir->buffer.count + 1, sizeof *f->first_op);
    f->slot = heap_alloc((size_t)ir->buffer.count + 1, sizeof *f->slot);
    memset(f->first_op, 0xff, ((size_t)ir->buffer.count + 1) * sizeof *f->first_op);
    for (uint32_t op = f->role->op_begin; op < f->role->op_begin + f->role->op_count; op++) {
        uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
        for (uint32_t k = 0; k < operands; k++) {
            uint32_t buffer = ir_touched(ir, op, k);
            if (f->first_op[buffer] != IR_NONE)
                continue;
            f->first_op[buffer] = op;
            f->slot[buffer] = (uint8_t)k;
        }
    }
}

bool find_repeats(struct ir *ir, uint32_t role)
{
    struct finder f = {
        .ir = ir, .role = &ir->role[role], .index = role, .first_run = ir->repeats.run_count};
    if (role >= ir->role_count)
        return false;
    find_blocks(&f);
    bool found = find_runs(&f) && covers(&f);
    if (found)
        find_first_ops(&f);
    for (uint32_t i = f.first_run; found && i < ir->repeats.run_count; i++)
        found = alike_iterations(&f, &ir->repeats.run[i]);
    free(f.block);
    free(f.first_op);
    free(f.slot);
    return found;
}

uint32_t repeats_of_state(const struct ir *ir, uint32_t buffer)
{
    const struct repeats *r = &ir->repeats;
    uint16_t binding = ir->buffer.binding[buffer];
    if (r->copies == 0 || r->of_units || binding == IR_NONE16 ||
        ir->binding[binding].bundle == IR_NONE16)
        return 1;
    int32_t layer = layer_of_bundle(ir, ir->binding[binding].bundle);
    return layer >= 0 && layer / r->layers == r->turn - 1 ? 1 + r->copies : 1;
}
