#include "schedule/reserved/replay.h"

#include "base/arena.h"
#include "schedule/passes/lifetimes.h"

#include <stdlib.h>
#include <string.h>

/* ---- who is there throughout ---- */

static uint32_t operands_of(const struct ir *ir, uint32_t op)
{
    return (uint32_t)ir->op.reads[op] + ir->op.writes[op];
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

/* Buffers among which all that persist lie, and which of them are touched. */
struct touched {
    uint32_t begin, end;
    bool *is;
};

static void touch_ops(struct touched *t, const struct ir *ir, uint32_t begin, uint32_t end)
{
    for (uint32_t op = begin; op < end; op++)
        for (uint32_t k = 0, count = operands_of(ir, op); k < count; k++) {
            uint32_t buffer = ir_touched(ir, op, k) - t->begin;
            if (buffer < t->end - t->begin)
                t->is[buffer] = true;
        }
}

/* What a period of a repeat touches is touched, or followed by another, in the next. */
static void touch_periods(struct touched *t, const struct ir *ir, const struct ir_repeat *repeat)
{
    for (uint32_t op = repeat->op; op < repeat->op + repeat->ops; op++)
        for (uint32_t k = 0; k < operands_of(ir, op); k++) {
            uint32_t buffer = ir_touched(ir, op, k) - t->begin;
            if (buffer >= t->end - t->begin)
                continue;
            uint32_t by = ir_touched(ir, op + repeat->ops, k) - t->begin - buffer;
            for (uint32_t p = 1; by != 0 && p < repeat->periods; p++)
                if (buffer + p * by < t->end - t->begin)
                    t->is[buffer + p * by] = true;
        }
}

static void touch_all(struct touched *t, const struct ir *ir, const struct role *role)
{
    uint32_t op = role->op_begin, end = op + role->op_count;
    for (uint32_t i = 0; i < ir->repeat_count; i++) {
        const struct ir_repeat *repeat = &ir->repeat[i];
        if (&ir->role[repeat->role] != role || repeat->periods < 2)
            continue;
        touch_ops(t, ir, op, repeat->op + repeat->ops);
        touch_periods(t, ir, repeat);
        op = repeat->op + repeat->ops * repeat->periods;
    }
    touch_ops(t, ir, op, end);
}

static void find_held(struct replay *r)
{
    const struct ir *ir = r->ir;
    uint32_t count = 0;
    struct touched t = {.begin = r->end, .end = r->begin};
    for (uint32_t b = r->begin; b < r->end; b++)
        if (lifetimes_persistent(ir, b)) {
            t.begin = b < t.begin ? b : t.begin;
            t.end = b + 1;
            count++;
        }
    r->held = heap_alloc(count + 1u, sizeof *r->held);
    if (count == 0)
        return;
    t.is = heap_zalloc(t.end - t.begin, sizeof *t.is);
    touch_all(&t, ir, r->role);
    for (uint32_t b = t.begin; b < t.end; b++)
        if (t.is[b - t.begin] && lifetimes_held(ir, b))
            r->held[r->held_count++] = b;
    free(t.is);
}

void replay_init(struct replay *r, const struct ir *ir, const struct role *role)
{
    *r = (struct replay){.ir = ir, .role = role};
    find_range(r);
    find_held(r);
}

void replay_release(struct replay *r)
{
    free(r->held);
    *r = (struct replay){0};
}

/* The op that a buffer goes with, which comes with `first`. */
static uint32_t last_of(const struct replay *r, uint32_t buffer, uint32_t first)
{
    const op_id *set = ir_free_set(r->ir, buffer);
    uint32_t last = first;
    for (uint32_t k = 0; k < r->ir->buffer.free_count[buffer]; k++)
        if (set[k].i > last && set[k].i - r->role->op_begin < r->role->op_count)
            last = set[k].i;
    return last;
}

static void add_stay(struct replay_stays *stays, struct replay_stay stay)
{
    if (stays->count == stays->capacity) {
        stays->capacity = (uint32_t)heap_next_capacity(stays->capacity, (size_t)stays->count + 1);
        stays->row = heap_realloc(stays->row, stays->capacity, sizeof *stays->row);
    }
    stays->row[stays->count++] = stay;
}

/* ---- is the allocator as it was a period or two before? ---- */

/* Weights that are gathered a layer ahead take turns in two blocks. */
enum { LAG_MAX = 2, LOOKS = LAG_MAX + 1 };

/* A block of the allocator, as its behaviour depends on it: rows may be others. */
struct state {
    uint64_t address, size;
    uint32_t owner, last, row; /* owner: the buffer, or IR_NONE; last: the op that it goes with */
    bool used, begins;         /* begins: a segment */
};

/* What the allocator is like where a period begins. */
struct look {
    struct state *state;
    uint32_t count, capacity;
    uint64_t next_address, used, reserved;
    bool sorted; /* blocks by address; only those that may be compared are */
};

/* Of a block in use. */
struct owner {
    uint32_t buffer, last; /* IR_NONE; the op that it goes with, IR_NONE if it stays */
};

#define BORN_ELSEWHERE UINT32_MAX
#define GONE (UINT32_MAX - 1)

struct run {
    const struct replay *r;
    enum memory memory;
    struct caching_allocator *a;
    uint32_t
        *block; /* per buffer, from r->begin on: 1 + its row; 0: it has not come; or as above */
    uint32_t *dying,
        *dying_next;     /* per op of the role, per buffer: 1 + the next that goes with it; 0 */
    struct owner *owner; /* per block */
    uint32_t owner_capacity;
    struct replay_stays *stays;     /* of another memory; NULL: nobody asks */
    uint32_t stays_begin;           /* of the last period */
    const struct ir_repeat *repeat; /* that the ops are in, or come to next; NULL: none */
    uint32_t period;                /* of it that begins next */
    struct look look[LOOKS];        /* of the last periods: of period p in [p % LOOKS] */
};

static void set_owner(struct run *run, uint32_t row, struct owner owner)
{
    if (row >= run->owner_capacity) {
        uint32_t old = run->owner_capacity;
        run->owner_capacity = (uint32_t)heap_next_capacity(old, (size_t)row + 1);
        run->owner = heap_realloc(run->owner, run->owner_capacity, sizeof *run->owner);
        memset(run->owner + old, 0xff, (run->owner_capacity - old) * sizeof *run->owner);
    }
    run->owner[row] = owner;
}

/* A buffer has a block until an op has ended; IR_NONE: throughout. */
static void hold(struct run *run, uint32_t buffer, uint32_t row, uint32_t last)
{
    uint32_t at = buffer - run->r->begin;
    run->block[at] = row + 1;
    set_owner(run, row, (struct owner){buffer, last});
    if (last == IR_NONE)
        return;
    last -= run->r->role->op_begin;
    run->dying_next[at] = run->dying[last];
    run->dying[last] = at + 1;
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
                               .owner = b->used ? run->owner[row].buffer : IR_NONE,
                               .last = b->used ? run->owner[row].last : IR_NONE,
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
        bool stays = y->last >= repeat->op + repeat->ops * repeat->periods; /* or is nobody's */
        bool follows = y->owner - x->owner == lag * repeat->buffers &&
                       x->owner - repeat->buffer < buffers && y->owner - repeat->buffer < buffers;
        if (x->owner == y->owner ? !stays : !follows)
            return false;
    }
    return true;
}

/* Does every buffer of the memory go with the op one period behind that of its like? That op is the last of
 * several, each of which goes on by a constant: so periods between two of which it goes on by one period's
 * ops do as these do. */
static bool deaths_repeat(const struct run *run)
{
    const struct ir_repeat *repeat = run->repeat;
    const struct buffer_table *t = &run->r->ir->buffer;
    uint32_t at_end = repeat->buffers * (repeat->periods - 2);
    for (uint32_t b = repeat->buffer; b < repeat->buffer + repeat->buffers; b++) {
        if (t->memory[b] != run->memory || t->free_count[b] == 0)
            continue;
        for (uint32_t from = b; from <= b + at_end; from += at_end > 0 ? at_end : 1)
            if (last_of(run->r, from + repeat->buffers, 0) - last_of(run->r, from, 0) !=
                repeat->ops)
                return false;
    }
    return true;
}

/* What came in the last period in the other memory comes in each that is left out. */
static void repeat_stays(struct run *run, uint32_t periods)
{
    const struct ir_repeat *repeat = run->repeat;
    struct replay_stays *stays = run->stays;
    uint32_t begin = run->stays_begin, end = stays->count;
    for (uint32_t p = 1; p <= periods; p++)
        for (uint32_t i = begin; i < end; i++) {
            struct replay_stay stay = stays->row[i];
            stay.buffer += p * repeat->buffers;
            stay.first += p * repeat->ops;
            stay.last = last_of(run->r, stay.buffer, stay.first);
            run->block[stay.buffer - run->r->begin] = BORN_ELSEWHERE;
            add_stay(stays, stay);
        }
}

/* Blocks go over to those that follow their buffers so many periods on, and go with these. Such a one may
 * be there already, where buffers live for longer than what is left out: then it is to go where it was. */
static void hand_on(struct run *run, const struct look *before, const struct look *now,
                    uint32_t periods)
{
    const struct ir_repeat *repeat = run->repeat;
    for (uint32_t i = 0; i < now->count; i++)
        if (before->state[i].owner != now->state[i].owner)
            run->block[now->state[i].owner - run->r->begin] = GONE;
    for (uint32_t i = 0; i < now->count; i++) {
        const struct state *state = &now->state[i];
        if (before->state[i].owner == state->owner)
            continue;
        uint32_t owner = state->owner + periods * repeat->buffers;
        uint32_t last = state->last + periods * repeat->ops;
        if (run->block[owner - run->r->begin] == 0) {
            hold(run, owner, state->row, last);
        } else {
            run->block[owner - run->r->begin] = state->row + 1;
            set_owner(run, state->row, (struct owner){owner, last});
        }
    }
}

/* As many of the periods that are left as are whole lags do as those before did. Returns how many. */
static uint32_t leave_out(struct run *run, uint32_t lag)
{
    const struct ir_repeat *repeat = run->repeat;
    const struct look *before = &run->look[(run->period - lag) % LOOKS];
    const struct look *now = &run->look[run->period % LOOKS];
    uint32_t periods = (repeat->periods - run->period) / lag * lag;
    hand_on(run, before, now, periods);
    if (run->stays)
        repeat_stays(run, periods);
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

/* The op in front of which the allocator is looked at next; the end: none. */
static uint32_t next_look(const struct run *run, uint32_t end)
{
    return run->repeat ? run->repeat->op + run->period * run->repeat->ops : end;
}

/* Looks at the allocator where a period begins. Returns the op to go on with: this one, or one behind
 * periods that can be left out, where another repeat may begin. */
static uint32_t look_before(struct run *run, uint32_t op)
{
    const struct ir_repeat *repeat = run->repeat;
    if (op != next_look(run, UINT32_MAX))
        return op;
    uint32_t left_out = 0;
    look_at(&run->look[run->period % LOOKS], run);
    for (uint32_t lag = 1; left_out == 0 && lag <= LAG_MAX && lag <= run->period; lag++)
        if (same_look(run, lag) && deaths_repeat(run))
            left_out = leave_out(run, lag);
    run->stays_begin = run->stays ? run->stays->count : 0;
    run->period++;
    if (left_out > 0 || run->period == repeat->periods) {
        run->repeat = next_repeat(run->r, (uint32_t)(repeat - run->r->ir->repeat) + 1);
        run->period = 0;
    }
    return left_out > 0 ? look_before(run, op + left_out * repeat->ops) : op;
}

/* ---- the run ---- */

static inline void take(struct run *run, uint32_t buffer, uint32_t first, uint32_t last)
{
    const struct ir *ir = run->r->ir;
    if (ir->buffer.memory[buffer] == run->memory) {
        hold(run, buffer, caching_alloc(run->a, ir_buffer_bytes(ir, (buffer_id){buffer})), last);
        return;
    }
    run->block[buffer - run->r->begin] = BORN_ELSEWHERE;
    if (run->stays && ir->buffer.memory[buffer] == run->stays->memory)
        add_stay(run->stays, (struct replay_stay){buffer, first, last});
}

/* What an op touches comes, unless it has; then what goes with the op goes. */
static void step(struct run *run, uint32_t op)
{
    const struct replay *r = run->r;
    for (uint32_t k = 0, count = operands_of(r->ir, op); k < count; k++) {
        uint32_t buffer = ir_touched(r->ir, op, k);
        if (buffer - r->begin < r->end - r->begin && run->block[buffer - r->begin] == 0)
            take(run, buffer, op, last_of(r, buffer, op));
    }
    for (uint32_t b = run->dying[op - r->role->op_begin]; b != 0; b = run->dying_next[b - 1])
        if (run->block[b - 1] != GONE)
            caching_free(run->a, run->block[b - 1] - 1);
}

void replay_run(const struct replay *r, enum memory memory, struct caching_allocator *a,
                struct replay_stays *stays)
{
    uint32_t begin = r->role->op_begin, end = begin + r->role->op_count;
    size_t buffers = (size_t)(r->end - r->begin) + 1;
    struct run run = {
        .r = r,
        .memory = memory,
        .a = a,
        .block = heap_zalloc(buffers, sizeof *run.block),
        .dying = heap_zalloc((size_t)r->role->op_count + 1, sizeof *run.dying),
        .dying_next = heap_alloc(buffers, sizeof *run.dying_next),
        .stays = stays,
        .repeat = next_repeat(r, 0),
    };
    if (a->count > 0) /* what is held beside the buffers is nobody's */
        set_owner(&run, a->count - 1, (struct owner){IR_NONE, IR_NONE});
    for (uint32_t i = 0; i < r->held_count; i++)
        take(&run, r->held[i], begin, IR_NONE);
    for (uint32_t op = begin; op < end;) {
        op = look_before(&run, op);
        for (uint32_t until = next_look(&run, end); op < until; op++)
            step(&run, op);
    }
    free(run.block);
    free(run.dying);
    free(run.dying_next);
    free(run.owner);
    for (int i = 0; i < LOOKS; i++)
        free(run.look[i].state);
}
