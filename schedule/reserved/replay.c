#include "schedule/reserved/replay.h"

#include "base/arena.h"
#include "schedule/analysis/liveness.h"

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

/* Persistent buffers that an op of the role touches. */
static void find_held(struct replay *r)
{
    const struct ir *ir = r->ir;
    bool *touched = heap_zalloc((size_t)(r->end - r->begin) + 1, sizeof *touched);
    for (uint32_t op = r->role->op_begin; op < r->role->op_begin + r->role->op_count; op++)
        for (uint32_t k = 0, count = operands_of(ir, op); k < count; k++) {
            uint32_t buffer = ir_touched(ir, op, k) - r->begin;
            if (buffer < r->end - r->begin)
                touched[buffer] = true;
        }
    r->held = heap_alloc((size_t)(r->end - r->begin) + 1, sizeof *r->held);
    for (uint32_t b = r->begin; b < r->end; b++)
        if (touched[b - r->begin] && lifetimes_persistent(ir, b) && lifetimes_held(ir, b))
            r->held[r->held_count++] = b;
    free(touched);
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

/* ---- the run ---- */

#define BORN_ELSEWHERE UINT32_MAX

struct replay_run {
    const struct replay *r;
    enum memory memory;
    struct caching_allocator *a;
    uint32_t
        *block; /* per buffer, from r->begin on: 1 + its row; 0: it has not come; or as above */
    uint32_t *dying,
        *dying_next; /* per op of the role, per buffer: 1 + the next that goes with it; 0: none */
    struct replay_stays *stays; /* of another memory; NULL: nobody asks */
};

/* A buffer comes, to go with its last op; IR_NONE: it stays. */
static void take(struct replay_run *run, uint32_t buffer, uint32_t first, uint32_t last)
{
    const struct ir *ir = run->r->ir;
    uint32_t at = buffer - run->r->begin;
    if (ir->buffer.memory[buffer] != run->memory) {
        run->block[at] = BORN_ELSEWHERE;
        if (run->stays && ir->buffer.memory[buffer] == run->stays->memory)
            add_stay(run->stays, (struct replay_stay){buffer, first, last});
        return;
    }
    run->block[at] = caching_alloc(run->a, ir_buffer_bytes(ir, (buffer_id){buffer})) + 1;
    if (last == IR_NONE)
        return;
    last -= run->r->role->op_begin;
    run->dying_next[at] = run->dying[last];
    run->dying[last] = at + 1;
}

/* What an op touches comes, unless it has; then what goes with the op goes. */
static void step(struct replay_run *run, uint32_t op)
{
    const struct replay *r = run->r;
    for (uint32_t k = 0, count = operands_of(r->ir, op); k < count; k++) {
        uint32_t buffer = ir_touched(r->ir, op, k);
        if (buffer - r->begin < r->end - r->begin && run->block[buffer - r->begin] == 0)
            take(run, buffer, op, last_of(r, buffer, op));
    }
    for (uint32_t b = run->dying[op - r->role->op_begin]; b != 0; b = run->dying_next[b - 1])
        caching_free(run->a, run->block[b - 1] - 1);
}

void replay_run(const struct replay *r, enum memory memory, struct caching_allocator *a,
                struct replay_stays *stays)
{
    uint32_t begin = r->role->op_begin, end = begin + r->role->op_count;
    size_t buffers = (size_t)(r->end - r->begin) + 1;
    struct replay_run run = {
        .r = r,
        .memory = memory,
        .a = a,
        .block = heap_zalloc(buffers, sizeof *run.block),
        .dying = heap_zalloc((size_t)r->role->op_count + 1, sizeof *run.dying),
        .dying_next = heap_alloc(buffers, sizeof *run.dying_next),
        .stays = stays,
    };
    for (uint32_t i = 0; i < r->held_count; i++)
        take(&run, r->held[i], begin, IR_NONE);
    for (uint32_t op = begin; op < end; op++)
        step(&run, op);
    free(run.block);
    free(run.dying);
    free(run.dying_next);
}
