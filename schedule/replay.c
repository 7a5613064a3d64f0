#include "schedule/replay.h"

#include "base/arena.h"
#include "schedule/lifetimes.h"

#include <stdlib.h>
#include <string.h>

/* ---- who comes and goes when ---- */

static void note_touch(struct replay *r, uint32_t buffer, uint32_t op)
{
    if (buffer - r->begin >= r->end - r->begin || r->first[buffer] != IR_NONE)
        return;
    r->first[buffer] = op;
    if (!lifetimes_persistent(r->ir, buffer))
        r->born[r->born_count++] = buffer;
}

static uint32_t operands_of(const struct ir *ir, uint32_t op)
{
    return (uint32_t)ir->op.reads[op] + ir->op.writes[op];
}

static void touch_ops(struct replay *r, uint32_t begin, uint32_t end)
{
    for (uint32_t op = begin; op < end; op++)
        for (uint32_t k = 0; k < operands_of(r->ir, op); k++)
            note_touch(r, ir_touched(r->ir, op, k), op);
}

/* Of a repeat: what is born in its first period, `born` on, is born in each; and persistent buffers
 * that it touches are followed by others. */
static void touch_periods(struct replay *r, const struct ir_repeat *repeat, uint32_t born)
{
    const struct ir *ir = r->ir;
    uint32_t count = r->born_count - born;
    for (uint32_t p = 1; p < repeat->periods; p++)
        for (uint32_t i = born; i < born + count; i++) {
            uint32_t buffer = r->born[i] + p * repeat->buffers;
            r->first[buffer] = r->first[r->born[i]] + p * repeat->ops;
            r->born[r->born_count++] = buffer;
        }
    for (uint32_t op = repeat->op; op < repeat->op + repeat->ops; op++)
        for (uint32_t k = 0; k < operands_of(ir, op); k++) {
            uint32_t buffer = ir_touched(ir, op, k);
            if (!lifetimes_persistent(ir, buffer))
                continue;
            uint32_t by = ir_touched(ir, op + repeat->ops, k) - buffer;
            for (uint32_t p = 1; by != 0 && p < repeat->periods; p++)
                note_touch(r, buffer + p * by, op + p * repeat->ops);
        }
}

/* All that is born in the first period of a repeat, and in no other way. */
static bool is_born_whole(const struct replay *r, const struct ir_repeat *repeat, uint32_t born)
{
    for (uint32_t i = born; i < r->born_count; i++)
        if (r->born[i] - repeat->buffer >= repeat->buffers)
            return false;
    return r->born_count - born == repeat->buffers;
}

static void find_births(struct replay *r)
{
    const struct ir *ir = r->ir;
    uint32_t op = r->role->op_begin, end = op + r->role->op_count;
    for (uint32_t i = 0; i < ir->repeat_count; i++) {
        const struct ir_repeat *repeat = &ir->repeat[i];
        if (&ir->role[repeat->role] != r->role || repeat->periods < 2)
            continue;
        touch_ops(r, op, repeat->op);
        uint32_t born = r->born_count;
        op = repeat->op + repeat->ops;
        touch_ops(r, repeat->op, op);
        if (!is_born_whole(r, repeat, born))
            continue;
        touch_periods(r, repeat, born);
        op = repeat->op + repeat->ops * repeat->periods;
    }
    touch_ops(r, op, end);
}

static void find_deaths(struct replay *r)
{
    const struct ir *ir = r->ir;
    for (uint32_t b = r->end; b-- > r->begin;) {
        r->last[b] = IR_NONE;
        if (r->first[b] == IR_NONE || lifetimes_persistent(ir, b))
            continue;
        uint32_t last = r->first[b];
        const op_id *set = ir_free_set(ir, b);
        for (uint32_t k = 0; k < ir->buffer.free_count[b]; k++) {
            uint32_t op = set[k].i;
            if (op > last && op - r->role->op_begin < r->role->op_count)
                last = op;
        }
        r->last[b] = last;
        r->dying_next[b] = r->dying[last - r->role->op_begin];
        r->dying[last - r->role->op_begin] = b;
    }
}

static void find_range(struct replay *r)
{
    const struct buffer_table *table = &r->ir->buffer;
    uint16_t role = (uint16_t)(r->role - r->ir->role);
    r->end = table->count;
    while (r->begin < r->end && table->role[r->begin] != role)
        r->begin++;
    while (r->end > r->begin && table->role[r->end - 1] != role)
        r->end--;
}

void replay_init(struct replay *r, const struct ir *ir, const struct role *role)
{
    size_t buffers = (size_t)ir->buffer.count + 1, ops = (size_t)role->op_count + 1;
    *r = (struct replay){
        .ir = ir,
        .role = role,
        .first = heap_alloc(buffers, sizeof *r->first),
        .last = heap_alloc(buffers, sizeof *r->last),
        .born = heap_alloc(buffers, sizeof *r->born),
        .dying = heap_alloc(ops, sizeof *r->dying),
        .dying_next = heap_alloc(buffers, sizeof *r->dying_next),
        .block = heap_alloc(buffers, sizeof *r->block),
    };
    find_range(r);
    memset(r->first + r->begin, 0xff, (r->end - r->begin) * sizeof *r->first);
    memset(r->dying, 0xff, ops * sizeof *r->dying);
    find_births(r);
    find_deaths(r);
}

void replay_release(struct replay *r)
{
    free(r->first);
    free(r->last);
    free(r->born);
    free(r->dying);
    free(r->dying_next);
    free(r->block);
    *r = (struct replay){0};
}

/* ---- is the allocator as it was a period or two before? ---- */

/* Weights that are gathered a layer ahead take turns in two blocks. */
enum { LAG_MAX = 2, LOOKS = LAG_MAX + 1 };

/* A block of the allocator, as its behaviour depends on it: rows may be others. */
struct state {
    uint64_t address, size;
    uint32_t owner, row; /* owner: the buffer, or IR_NONE */
    bool used, begins;   /* begins: a segment */
};

/* What the allocator is like where a period begins. */
struct look {
    struct state *state;
    uint32_t count, capacity;
    uint64_t next_address, used, reserved;
    bool sorted; /* blocks by address; only those that may be compared are */
};

struct run {
    struct replay *r;
    enum memory memory;
    struct caching_allocator *a;
    uint32_t born;   /* row of r->born that comes next */
    uint32_t *owner; /* per block */
    uint32_t owner_capacity;
    const struct ir_repeat *repeat; /* that the ops are in, or come to next; NULL: none */
    uint32_t period;                /* of it that begins next */
    struct look look[LOOKS];        /* of the last periods: of period p in [p % LOOKS] */
};

static void set_owner(struct run *run, uint32_t row, uint32_t owner)
{
    if (row >= run->owner_capacity) {
        uint32_t old = run->owner_capacity;
        run->owner_capacity = (uint32_t)heap_next_capacity(old, (size_t)row + 1);
        run->owner = heap_realloc(run->owner, run->owner_capacity, sizeof *run->owner);
        memset(run->owner + old, 0xff, (run->owner_capacity - old) * sizeof *run->owner);
    }
    run->owner[row] = owner;
}

static int by_address(const void *a, const void *b)
{
    const struct state *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void look_at(struct look *look, const struct run *run)
{
    const struct caching_allocator *a = run->a;
    if (look->capacity < a->count) {
        look->capacity = a->count;
        look->state = heap_realloc(look->state, look->capacity, sizeof *look->state);
    }
    look->count = 0;
    look->next_address = a->next_address;
    look->used = a->used;
    look->reserved = a->reserved;
    look->sorted = false;
    for (uint32_t row = 0; row < a->count; row++) {
        const struct caching_block *b = &a->block[row];
        if (b->live)
            look->state[look->count++] =
                (struct state){.address = b->address,
                               .size = b->size,
                               .owner = b->used ? run->owner[row] : IR_NONE,
                               .row = row,
                               .used = b->used,
                               .begins = b->before == UINT32_MAX};
    }
}

static void sort_look(struct look *look)
{
    if (look->count > 0 && !look->sorted)
        qsort(look->state, look->count, sizeof *look->state, by_address);
    look->sorted = true;
}

/* Is it as it was so many periods before: the same blocks, of the same buffers, which stay till behind
 * the repeat, or of those as many periods on? */
static bool same_look(struct run *run, uint32_t lag)
{
    const struct ir_repeat *repeat = run->repeat;
    struct look *before = &run->look[(run->period - lag) % LOOKS];
    struct look *now = &run->look[run->period % LOOKS];
    uint32_t buffers = repeat->buffers * repeat->periods;
    if (now->count != before->count || now->next_address != before->next_address ||
        now->used != before->used || now->reserved != before->reserved)
        return false;
    sort_look(before);
    sort_look(now);
    for (uint32_t i = 0; i < now->count; i++) {
        const struct state *x = &before->state[i], *y = &now->state[i];
        if (x->address != y->address || x->size != y->size || x->used != y->used ||
            x->begins != y->begins)
            return false;
        bool stays = y->owner == IR_NONE ||
                     run->r->last[y->owner] >= repeat->op + repeat->ops * repeat->periods;
        bool follows = y->owner - x->owner == lag * repeat->buffers &&
                       x->owner - repeat->buffer < buffers && y->owner - repeat->buffer < buffers;
        if (x->owner == y->owner ? !stays : !follows)
            return false;
    }
    return true;
}

/* Does every buffer of the memory go with the op one period behind that of its like? */
static bool deaths_repeat(const struct run *run)
{
    const struct ir_repeat *repeat = run->repeat;
    const uint32_t *last = run->r->last;
    uint32_t end = repeat->buffer + repeat->buffers * repeat->periods;
    for (uint32_t b = repeat->buffer + repeat->buffers; b < end; b++)
        if (run->r->ir->buffer.memory[b] == run->memory &&
            last[b] - last[b - repeat->buffers] != repeat->ops)
            return false;
    return true;
}

/* As many of the periods that are left as are whole lags do as those before did. Returns how many. */
static uint32_t leave_out(struct run *run, uint32_t lag)
{
    const struct ir_repeat *repeat = run->repeat;
    const struct look *before = &run->look[(run->period - lag) % LOOKS];
    const struct look *now = &run->look[run->period % LOOKS];
    uint32_t periods = (repeat->periods - run->period) / lag * lag;
    for (uint32_t i = 0; i < now->count; i++) {
        uint32_t owner = now->state[i].owner + periods * repeat->buffers, row = now->state[i].row;
        if (before->state[i].owner == now->state[i].owner)
            continue;
        run->r->block[owner] = row;
        set_owner(run, row, owner);
    }
    run->born += periods * repeat->buffers;
    return periods;
}

/* Of the role, from a row on. */
static const struct ir_repeat *next_repeat(const struct replay *r, uint32_t at)
{
    const struct ir *ir = r->ir;
    while (at < ir->repeat_count &&
           (&ir->role[ir->repeat[at].role] != r->role || ir->repeat[at].buffers == 0))
        at++;
    return at < ir->repeat_count ? &ir->repeat[at] : NULL;
}

/* Looks at the allocator where a period begins. Returns the op to go on with: this one, or one behind
 * periods that can be left out, where another repeat may begin. */
static uint32_t look_before(struct run *run, uint32_t op)
{
    const struct ir_repeat *repeat = run->repeat;
    if (!repeat || op != repeat->op + run->period * repeat->ops)
        return op;
    uint32_t left_out = 0;
    look_at(&run->look[run->period % LOOKS], run);
    for (uint32_t lag = 1; left_out == 0 && lag <= LAG_MAX && lag <= run->period; lag++)
        if (same_look(run, lag) && deaths_repeat(run) && run->born < run->r->born_count &&
            run->r->born[run->born] == repeat->buffer + run->period * repeat->buffers)
            left_out = leave_out(run, lag);
    run->period++;
    if (left_out > 0 || run->period == repeat->periods) {
        run->repeat = next_repeat(run->r, (uint32_t)(repeat - run->r->ir->repeat) + 1);
        run->period = 0;
    }
    return left_out > 0 ? look_before(run, op + left_out * repeat->ops) : op;
}

/* ---- the run ---- */

static void take(struct run *run, uint32_t buffer)
{
    run->r->block[buffer] = caching_alloc(run->a, ir_buffer_bytes(run->r->ir, (buffer_id){buffer}));
    set_owner(run, run->r->block[buffer], buffer);
}

void replay_run(struct replay *r, enum memory memory, struct caching_allocator *a)
{
    const struct ir *ir = r->ir;
    const uint8_t *of = ir->buffer.memory;
    struct run run = {.r = r, .memory = memory, .a = a, .repeat = next_repeat(r, 0)};
    if (a->count > 0) /* what is held beside the buffers is nobody's */
        set_owner(&run, a->count - 1, IR_NONE);
    for (uint32_t b = r->begin; b < r->end; b++)
        if (of[b] == memory && r->first[b] != IR_NONE && lifetimes_persistent(ir, b))
            take(&run, b);
    uint32_t begin = r->role->op_begin, end = begin + r->role->op_count;
    for (uint32_t op = begin; op < end; op++) {
        op = look_before(&run, op);
        if (op == end)
            break;
        for (; run.born < r->born_count && r->first[r->born[run.born]] == op; run.born++)
            if (of[r->born[run.born]] == memory)
                take(&run, r->born[run.born]);
        for (uint32_t b = r->dying[op - begin]; b != IR_NONE; b = r->dying_next[b])
            if (of[b] == memory)
                caching_free(a, r->block[b]);
    }
    free(run.owner);
    for (int i = 0; i < LOOKS; i++)
        free(run.look[i].state);
}
