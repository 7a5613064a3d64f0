#include "sim/plan/depth.h"

#include "base/arena.h"
#include "schedule/ir/id_map.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 8,  /* of a period */
    PERIODS_MIN = 9, /* that are worth leaving some out */
};

void depth_cut_release(struct depth_cut *cut)
{
    free(cut->ir.op.stream);
    free(cut->ir.op.kind);
    free(cut->ir.op.reads);
    free(cut->ir.op.writes);
    free(cut->ir.op.layer);
    free(cut->ir.op.micro);
    free(cut->ir.op.phase);
    free(cut->ir.op.guard);
    free(cut->ir.op.shape);
    free(cut->ir.op.operand_begin);
    free(cut->ir.op.wait_begin);
    free(cut->ir.op.wait_count);
    free(cut->ir.wait);
    free(cut->ir.role);
    free(cut->run);
    *cut = (struct depth_cut){0};
}

/* ---- blocks: a layer's forward or backward in a micro-batch, or a micro-batch ---- */

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

static uint64_t hash_ops(const struct ir *ir, uint64_t hash, uint32_t begin, uint32_t ops)
{
    for (uint32_t op = begin; op < begin + ops; op++)
        hash = hash_word(hash, (uint64_t)ir->op.shape[op] << 32 | (uint64_t)ir->op.guard[op] << 16 |
                                   (uint64_t)ir->op.stream[op] << 8 | memories(ir, op));
    return hash;
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

/* Finding blocks. */
struct finder {
    const struct ir *ir;
    enum depth_level level;
    uint32_t layers;
    bool *seen; /* per layer, direction and micro-batch: it has begun */
    struct blocks blocks;
    uint32_t *change; /* ops of a period whose labels may be others than those of the op before */
    uint32_t change_count;
};

static uint32_t after_label(const uint16_t *label, uint32_t begin, uint32_t end, uint32_t after)
{
    for (uint32_t i = begin; i < end; i++)
        if (label[i] != IR_NONE16 && label[i] >= after)
            after = label[i] + 1u;
    return after;
}

/* Of a repeat the first period or the last has the highest label. */
static uint32_t after_highest(const struct ir *ir, const uint16_t *label)
{
    uint32_t after = 1, at = 0;
    for (uint32_t i = 0; i < ir->repeat_count; i++) {
        const struct ir_repeat *repeat = &ir->repeat[i];
        uint32_t last = repeat->op + repeat->ops * (repeat->periods - 1);
        after = after_label(label, at, repeat->op + repeat->ops, after);
        after = after_label(label, last, last + repeat->ops, after);
        at = last + repeat->ops;
    }
    return after_label(label, at, ir->op.count, after);
}

static void begin_block_at(struct finder *f, uint32_t op)
{
    const struct op_table *t = &f->ir->op;
    bool layers = f->level == DEPTH_LAYER;
    uint32_t key = t->micro[op] != IR_NONE16 ? t->micro[op] : 0;
    if ((layers ? t->layer[op] : t->micro[op]) == IR_NONE16)
        return;
    if (layers)
        key = (key * f->layers + t->layer[op]) * 2 + (t->phase[op] != PHASE_FORWARD);
    if (f->seen[key])
        return;
    f->seen[key] = true;
    f->blocks.row[f->blocks.count++] = (struct block){.begin = op};
}

/* Ops with the labels of the one before begin nothing that it did not. */
static void look_for_blocks(struct finder *f, uint32_t begin, uint32_t end)
{
    const struct op_table *t = &f->ir->op;
    for (uint32_t op = begin; op < end; op++) {
        if (op > 0 && t->layer[op] == t->layer[op - 1] && t->micro[op] == t->micro[op - 1] &&
            t->phase[op] == t->phase[op - 1])
            continue;
        f->change[f->change_count++] = op;
        begin_block_at(f, op);
    }
}

/* Labels go on from one period to the next as from the second to the third: ops that have those of the op
 * before in these two have them in all behind. */
static void look_at_repeat(struct finder *f, const struct ir_repeat *repeat)
{
    uint32_t third = repeat->op + 2 * repeat->ops;
    look_for_blocks(f, repeat->op, repeat->op + repeat->ops);
    f->change_count = 0;
    look_for_blocks(f, repeat->op + repeat->ops, third);
    if (repeat->periods < 3)
        return;
    uint32_t of_second = f->change_count;
    look_for_blocks(f, third, third + repeat->ops);
    for (uint32_t p = 3; p < repeat->periods; p++)
        for (uint32_t i = 0, k = of_second; i < of_second || k < f->change_count;) {
            uint32_t a = i < of_second ? f->change[i] + repeat->ops : UINT32_MAX;
            uint32_t b = k < f->change_count ? f->change[k] : UINT32_MAX;
            begin_block_at(f, (a < b ? a : b) + (p - 2) * repeat->ops);
            i += a <= b;
            k += b <= a;
        }
}

/* A block begins with the first op of a layer and direction (of a micro-batch), and goes on until
 * the next does: gathers of the layer ahead, which stand between, are part of it. Fewer than `least` blocks
 * are not looked for. */
static struct blocks find_blocks(const struct ir *ir, enum depth_level level, uint32_t least)
{
    struct finder f = {.ir = ir, .level = level, .layers = 1};
    uint32_t keys = after_highest(ir, ir->op.micro), at = 0;
    if (level == DEPTH_LAYER) {
        f.layers = after_highest(ir, ir->op.layer);
        keys *= 2 * f.layers;
    }
    if (keys + 1 < least)
        return f.blocks;
    f.seen = heap_zalloc(keys, sizeof *f.seen);
    f.change = heap_alloc(ir->op.count, sizeof *f.change);
    f.blocks.row = heap_alloc((size_t)keys + 1, sizeof *f.blocks.row);
    f.blocks.row[f.blocks.count++] = (struct block){0};
    for (uint32_t i = 0; i < ir->repeat_count; i++) {
        f.change_count = 0;
        look_for_blocks(&f, at, ir->repeat[i].op);
        look_at_repeat(&f, &ir->repeat[i]);
        at = ir->repeat[i].op + ir->repeat[i].ops * ir->repeat[i].periods;
    }
    look_for_blocks(&f, at, ir->op.count);
    for (uint32_t i = 0; i < f.blocks.count; i++) {
        struct block *block = &f.blocks.row[i];
        block->ops = (i + 1 < f.blocks.count ? block[1].begin : ir->op.count) - block->begin;
    }
    free(f.seen);
    free(f.change);
    return f.blocks;
}

/* ---- runs ---- */

/* Are they as far on in periods of one repeat? */
static bool repeat_each_other(const struct ir *ir, uint32_t a, uint32_t b, uint32_t ops)
{
    for (uint32_t i = 0; i < ir->repeat_count; i++) {
        const struct ir_repeat *r = &ir->repeat[i];
        if (a >= r->op && b + ops <= r->op + r->ops * r->periods)
            return (b - a) % r->ops == 0;
    }
    return false;
}

static bool same_block(const struct ir *ir, const struct block *a, const struct block *b)
{
    return a->ops == b->ops && (repeat_each_other(ir, a->begin, b->begin, a->ops) ||
                                same_ops(ir, a->begin, b->begin, a->ops));
}

/* Periods to keep by the number of tries that failed. Transients of symmetric ranks are over after one,
 * two or three; those of rings, whose ranks drift against each other, may take many, and another try
 * is worth its while only where it leaves out most. 0: all. */
static uint32_t kept_after(uint32_t tries, uint32_t periods)
{
    static const struct {
        uint32_t kept, periods_min;
    } of[] = {{3, PERIODS_MIN}, {6, PERIODS_MIN}, {18, 48}};
    return tries < ARRAY_LEN(of) && periods >= of[tries].periods_min ? of[tries].kept : 0;
}

static uint32_t tries_of(const struct depth_patience *patience, uint64_t run)
{
    for (uint32_t i = 0; i < patience->count; i++)
        if (patience->row[i].run == run)
            return patience->row[i].tries;
    return 0;
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
        if (kept_after(0, run.periods) == 0)
            continue;
        for (uint32_t i = 0; i < length; i++)
            run.ops += b->row[at + i].ops;
        run.hash = hash_ops(ir, 0, run.begin, run.ops);
        return run;
    }
    return (struct depth_run){0};
}

struct depth_run *depth_find_runs(const struct ir *whole, enum depth_level level, uint32_t *count)
{
    struct depth_run *runs = NULL;
    uint32_t capacity = 0;
    *count = 0;
    if (whole->role_count != 1 || whole->op.count == 0 || whole->role[0].op_begin != 0)
        return NULL;
    struct blocks b = find_blocks(whole, level, PERIODS_MIN);
    for (uint32_t at = 0; at < b.count;) {
        struct depth_run run = find_run(whole, &b, at);
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

/* ---- the short list ---- */

static bool is_kept(const struct depth_run *run, uint32_t period)
{
    return period < run->first_kept || period >= run->periods - run->kept + run->first_kept;
}

static const struct depth_run *run_of(const struct depth_cut *cut, uint32_t op)
{
    for (uint32_t r = 0; r < cut->run_count; r++)
        if (op >= cut->run[r].begin &&
            op - cut->run[r].begin < cut->run[r].ops * cut->run[r].periods)
            return &cut->run[r];
    return NULL;
}

/* Where an op that is kept lies in the short list. */
static uint32_t place_of(const struct depth_cut *cut, uint32_t op)
{
    uint32_t left_out = 0;
    for (uint32_t r = 0; r < cut->run_count; r++) {
        const struct depth_run *run = &cut->run[r];
        if (op >= run->begin + (run->periods - run->kept + run->first_kept) * run->ops)
            left_out += (run->periods - run->kept) * run->ops;
    }
    return op - left_out;
}

uint32_t depth_image(const struct depth_cut *cut, uint32_t op)
{
    const struct depth_run *run = run_of(cut, op);
    if (!run || is_kept(run, (op - run->begin) / run->ops))
        return place_of(cut, op);
    return run->cut_begin + (run->first_kept - 1) * run->ops + (op - run->begin) % run->ops;
}

uint32_t *depth_count_images(const struct depth_cut *cut, const uint32_t *times)
{
    uint32_t *count = heap_zalloc(cut->ir.op.count + 1u, sizeof *count);
    if (times) {
        for (uint32_t op = 0; op < cut->whole->op.count; op++)
            count[depth_image(cut, op)] += times[op];
        return count;
    }
    for (uint32_t op = 0; op < cut->ir.op.count; op++)
        count[op] = 1;
    for (uint32_t r = 0; r < cut->run_count; r++) {
        const struct depth_run *run = &cut->run[r];
        uint32_t *of_run = count + run->cut_begin + (run->first_kept - 1) * run->ops;
        for (uint32_t i = 0; i < run->ops; i++)
            of_run[i] += run->periods - run->kept;
    }
    return count;
}

/* The op of the short list to wait for, where the long one waits for `op`: of a period left out,
 * the one that lies as far back from the last. */
static uint32_t wait_in_short(const struct depth_cut *cut, uint32_t op)
{
    const struct depth_run *run = run_of(cut, op);
    if (!run)
        return place_of(cut, op);
    uint32_t period = (op - run->begin) / run->ops, out = run->periods - run->kept;
    if (is_kept(run, period))
        return place_of(cut, op);
    uint32_t back = period > out ? period - out : 0;
    return run->cut_begin + back * run->ops + (op - run->begin) % run->ops;
}

/* Ops that are kept, from one run's gap to the next. */
struct part {
    uint32_t begin, ops; /* in the long list */
};

/* All parts, one more than there are runs; returns how many ops they have. */
static uint32_t find_parts(const struct depth_cut *cut, struct part *part)
{
    uint32_t begin = 0, ops = 0;
    for (uint32_t r = 0; r <= cut->run_count; r++) {
        const struct depth_run *run = r < cut->run_count ? &cut->run[r] : NULL;
        uint32_t end = run ? run->begin + run->first_kept * run->ops : cut->whole->op.count;
        part[r] = (struct part){begin, end - begin};
        ops += end - begin;
        begin = run ? end + (run->periods - run->kept) * run->ops : end;
    }
    return ops;
}

#define TAKE(column)                                                                               \
    do {                                                                                           \
        out->op.column = heap_alloc(ops, sizeof *out->op.column);                                  \
        for (uint32_t p = 0, at = 0; p < parts; at += part[p++].ops)                               \
            memcpy(out->op.column + at, in->op.column + part[p].begin,                             \
                   part[p].ops * sizeof *out->op.column);                                          \
    } while (0)

static void write_short(struct depth_cut *cut, const struct part *part, uint32_t ops)
{
    const struct ir *in = cut->whole;
    struct ir *out = &cut->ir;
    uint32_t waits = 0, parts = cut->run_count + 1;
    *out = *in;
    out->repeat = NULL;
    out->repeat_count = out->repeat_capacity = 0;
    out->op = (struct op_table){.count = ops, .capacity = ops};
    TAKE(kind);
    TAKE(stream);
    TAKE(phase);
    TAKE(reads);
    TAKE(writes);
    TAKE(layer);
    TAKE(micro);
    TAKE(guard);
    TAKE(wait_count);
    TAKE(shape);
    TAKE(operand_begin);
    TAKE(wait_begin);
    for (uint32_t i = 0; i < ops; i++)
        waits += out->op.wait_count[i];
    out->wait = heap_alloc(waits + 1, sizeof *out->wait);
    out->wait_count = 0;
    for (uint32_t i = 0; i < ops; i++) {
        const op_id *wait = in->wait + out->op.wait_begin[i];
        out->op.wait_begin[i] = out->wait_count;
        for (uint32_t w = 0; w < out->op.wait_count[i]; w++)
            out->wait[out->wait_count++].i = wait_in_short(cut, wait[w].i);
    }
    out->role = heap_alloc(1, sizeof *out->role);
    out->role[0] = in->role[0];
    out->role[0].op_count = ops;
}

bool depth_cut_runs(struct depth_cut *cut, const struct ir *whole, enum depth_level level,
                    const struct depth_run *run, uint32_t count)
{
    uint32_t left_out = 0;
    *cut = (struct depth_cut){.whole = whole, .level = level};
    cut->run = heap_alloc(count + 1u, sizeof *cut->run);
    for (uint32_t r = 0; r < count; r++) {
        if (run[r].kept == run[r].periods) {
            cut->given_up += run[r].periods * run[r].blocks;
            continue;
        }
        cut->run[cut->run_count] = run[r];
        cut->run[cut->run_count++].cut_begin = run[r].begin - left_out;
        left_out += (run[r].periods - run[r].kept) * run[r].ops;
    }
    if (cut->run_count == 0) {
        depth_cut_release(cut);
        return false;
    }
    struct part *part = heap_alloc(cut->run_count + 1u, sizeof *part);
    write_short(cut, part, find_parts(cut, part));
    free(part);
    return true;
}

bool depth_cut(struct depth_cut *cut, const struct ir *whole, enum depth_level level,
               const struct depth_patience *patience)
{
    uint32_t count;
    struct depth_run *run = depth_find_runs(whole, level, &count);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t kept = kept_after(tries_of(patience, run[r].hash), run[r].periods);
        if (kept == 0)
            continue;
        /* Two thirds: what comes before a period weighs more than what comes after it. */
        run[r].kept = kept;
        run[r].first_kept = kept - (kept + 2) / 3;
    }
    bool any = depth_cut_runs(cut, whole, level, run, count);
    free(run);
    return any;
}

double *depth_keep_rows(const struct depth_cut *cut, const double *row, uint32_t classes)
{
    struct part *part = heap_alloc(cut->run_count + 1u, sizeof *part);
    uint32_t ops = find_parts(cut, part);
    double *kept = heap_alloc((size_t)classes * ops + 1, sizeof *kept), *next = kept;
    for (uint32_t c = 0; c < classes; c++, row += cut->whole->op.count)
        for (uint32_t p = 0; p <= cut->run_count; next += part[p++].ops)
            memcpy(next, row + part[p].begin, part[p].ops * sizeof *next);
    free(part);
    return kept;
}

uint8_t *depth_keep_classes(const struct depth_cut *cut, const uint8_t *op_class)
{
    struct part *part = heap_alloc(cut->run_count + 1u, sizeof *part);
    uint8_t *kept = heap_alloc(find_parts(cut, part) + 1u, sizeof *kept), *next = kept;
    for (uint32_t p = 0; p <= cut->run_count; next += part[p++].ops)
        memcpy(next, op_class + part[p].begin, part[p].ops);
    free(part);
    return kept;
}
