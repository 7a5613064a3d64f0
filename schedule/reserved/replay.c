#include "schedule/reserved/replay.h"

#include "base/arena.h"
#include "schedule/analysis/find_repeats.h"
#include "schedule/analysis/liveness.h"

#include <stdlib.h>
#include <string.h>

/* A role's buffers in the order of their first ops. */
struct coming {
    const struct ir *ir;
    const struct role *role;
    uint32_t begin, end; /* its buffers lie among these */
    uint32_t *first;     /* per buffer: the first op that touches it; IR_NONE */
    uint32_t *buffer,
        *op; /* those that do not stay throughout, and their first ops, in their order */
    uint32_t count;
};

static void find_range(struct coming *c)
{
    const struct buffer_table *table = &c->ir->buffer;
    uint16_t role = (uint16_t)(c->role - c->ir->role);
    c->end = table->count;
    while (c->begin < c->end && table->role[c->begin] != role)
        c->begin++;
    while (c->end > c->begin && table->role[c->end - 1] != role)
        c->end--;
}

static void find_coming(struct coming *c)
{
    const struct ir *ir = c->ir;
    size_t buffers = (size_t)(c->end - c->begin) + 1;
    c->first = heap_alloc(buffers, sizeof *c->first);
    c->buffer = heap_alloc(buffers, sizeof *c->buffer);
    c->op = heap_alloc(buffers, sizeof *c->op);
    memset(c->first, 0xff, buffers * sizeof *c->first);
    for (uint32_t op = c->role->op_begin; op < c->role->op_begin + c->role->op_count; op++) {
        uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
        for (uint32_t k = 0; k < operands; k++) {
            uint32_t buffer = ir_touched(ir, op, k), at = buffer - c->begin;
            if (at >= c->end - c->begin || c->first[at] != IR_NONE)
                continue;
            c->first[at] = op;
            if (lifetimes_held(ir, buffer))
                continue;
            c->buffer[c->count] = buffer;
            c->op[c->count++] = op;
        }
    }
}

/* Returns the op after whose issue a buffer gives its memory back; `first` is the op that it comes with. */
static uint32_t last_of(const struct coming *c, uint32_t buffer, uint32_t first)
{
    const op_id *set = ir_free_set(c->ir, buffer);
    uint32_t last = first;
    for (uint32_t k = 0; k < c->ir->buffer.free_count[buffer]; k++)
        if (set[k].i > last && set[k].i - c->role->op_begin < c->role->op_count)
            last = set[k].i;
    return last;
}

static bool is_gather(const struct ir *ir, uint32_t op)
{
    return ir->op.kind[op] == WORK_ALL_GATHER && ir->op.region[op] == REGION_WEIGHTS;
}

/* Adds the persistent buffers that an op touches. If the whole list repeats the op's layer in copies that the sample
 * leaves out, the buffers of these copies are added too, layer by layer. */
static void add_held(struct replay *r, const struct coming *c)
{
    for (uint32_t b = c->begin, end; b < c->end; b = end) {
        uint32_t times = repeats_of_state(c->ir, b);
        end = b + 1;
        while (times > 1 && end < c->end && repeats_of_state(c->ir, end) > 1)
            end++;
        for (uint32_t copy = 0; copy < times; copy++)
            for (uint32_t i = b; i < end; i++)
                if (c->first[i - c->begin] != IR_NONE && lifetimes_held(c->ir, i))
                    r->row[r->count++] = (struct replay_stay){i, 0, IR_NONE, false};
    }
}

void replay_init(struct replay *r, const struct ir *ir, const struct role *role)
{
    struct coming c = {.ir = ir, .role = role};
    const struct repeats *repeats = &ir->repeats;
    uint32_t rows, begin = repeats_whole_id(repeats, role->op_begin);
    find_range(&c);
    find_coming(&c);
    struct repeat_row *row =
        repeats_rows(repeats, (uint32_t)(role - ir->role), c.op, c.count, &rows);
    *r = (struct replay){.ir = ir,
                         .ops = repeats_ops(repeats, (uint32_t)(role - ir->role), role->op_count)};
    size_t held = 0;
    for (uint32_t b = c.begin; b < c.end; b++)
        held += lifetimes_held(ir, b) ? repeats_of_state(ir, b) : 0;
    r->row = heap_alloc(held + rows + 1, sizeof *r->row);
    add_held(r, &c);
    for (uint32_t i = 0; i < rows; i++) {
        if (row[i].copy > 2) { /* from the second copy on, ops follow each other at one distance */
            const struct replay_stay *b = &r->row[r->count - row[i].back], *a = b - row[i].back;
            r->row[r->count++] = (struct replay_stay){b->buffer, 2 * b->first - a->first,
                                                      2 * b->last - a->last, b->gathered};
            continue;
        }
        uint32_t first = c.op[row[i].row], buffer = c.buffer[row[i].row];
        uint32_t last = last_of(&c, buffer, first);
        r->row[r->count++] = (struct replay_stay){
            buffer, repeats_seen_from(repeats, first, row[i].copy, first) - begin,
            repeats_seen_from(repeats, first, row[i].copy, last) - begin, is_gather(ir, first)};
    }
    free(row);
    free(c.first);
    free(c.buffer);
    free(c.op);
}

void replay_release(struct replay *r)
{
    free(r->row);
    *r = (struct replay){0};
}

/* Lists of rows by the op after which they give their memory back: dying[op] is 1 + the first such row, next[row] is
 * 1 + the next one, and 0 ends the list. block[row]: the allocator's block of the row. */
struct pass {
    uint32_t *dying, *next, *block;
    bool gathers_apart;
};

static void pass_step(const struct replay *r, enum memory memory, struct caching_allocator *a,
                      const struct pass *pass, bool first_step)
{
    uint32_t op = 0;
    memset(pass->dying, 0, ((size_t)r->ops + 1) * sizeof *pass->dying);
    for (uint32_t i = 0; i <= r->count; i++) {
        const struct replay_stay *row = i < r->count ? &r->row[i] : NULL;
        for (uint32_t end = row != NULL ? row->first : r->ops; op < end; op++)
            for (uint32_t k = pass->dying[op]; k != 0; k = pass->next[k - 1])
                caching_free(a, pass->block[k - 1]);
        if (row == NULL || r->ir->buffer.memory[row->buffer] != memory ||
            (row->last == IR_NONE && !first_step))
            continue;
        bool apart = pass->gathers_apart && row->gathered;
        pass->block[i] = caching_alloc_on(a, apart ? CACHING_GATHER : CACHING_COMPUTE,
                                          ir_buffer_bytes(r->ir, (buffer_id){row->buffer}));
        if (row->last == IR_NONE)
            continue;
        pass->next[i] = pass->dying[row->last];
        pass->dying[row->last] = i + 1;
    }
}

void replay_run(const struct replay *r, enum memory memory, bool gathers_apart,
                struct caching_allocator *a)
{
    struct pass pass = {.dying = heap_alloc((size_t)r->ops + 1, sizeof *pass.dying),
                        .next = heap_alloc((size_t)r->count + 1, sizeof *pass.next),
                        .block = heap_alloc((size_t)r->count + 1, sizeof *pass.block),
                        .gathers_apart = gathers_apart};
    for (int step = 0; step < REPLAY_STEPS && !a->exceeded; step++)
        pass_step(r, memory, a, &pass, step == 0);
    free(pass.dying);
    free(pass.next);
    free(pass.block);
}
