#include "schedule/analysis/free_sets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void free_sets_init(struct free_sets *s, uint32_t buffers)
{
    *s = (struct free_sets){.spare = IR_NONE};
    s->newest = heap_alloc(buffers, sizeof *s->newest);
    s->before = heap_alloc(buffers, sizeof *s->before);
    memset(s->newest, 0xff, buffers * sizeof *s->newest);
    memset(s->before, 0xff, buffers * sizeof *s->before);
}

void free_sets_release(struct free_sets *s)
{
    free(s->member);
    free(s->newest);
    free(s->before);
    *s = (struct free_sets){0};
}

static uint32_t new_member(struct free_sets *s)
{
    uint32_t m = s->spare;
    if (m != IR_NONE) {
        s->spare = s->member[m].next;
        return m;
    }
    if (s->count == s->capacity) {
        s->capacity = (uint32_t)heap_next_capacity(s->capacity, (size_t)s->count + 1);
        s->member = heap_realloc(s->member, s->capacity, sizeof *s->member);
    }
    return s->count++;
}

/* True if a candidate has ended before an op starts. */
static bool has_ended(const struct order *order, uint32_t candidate, uint32_t op)
{
    return candidate >= order->begin && order_before(order, candidate, op);
}

/* Keeps the candidates beside `op`, the newest among them, except those that have ended before it starts. */
void free_sets_touch_beside(struct free_sets *s, const struct order *order, uint32_t buffer,
                            uint32_t op)
{
    uint32_t *link = &s->before[buffer], newest = s->newest[buffer];
    while (*link != IR_NONE) {
        struct free_sets_member *m = &s->member[*link];
        if (has_ended(order, m->op, op)) {
            uint32_t gone = *link;
            *link = m->next;
            m->next = s->spare;
            s->spare = gone;
        } else {
            link = &m->next;
        }
    }
    if (has_ended(order, newest, op))
        return;
    uint32_t m = new_member(s);
    s->member[m] = (struct free_sets_member){.op = newest, .next = s->before[buffer]};
    s->before[buffer] = m;
}

static void store_set(const struct free_sets *s, struct ir *ir, uint32_t buffer)
{
    uint32_t count = s->newest[buffer] != IR_NONE;
    if (count == 1 && s->before[buffer] == IR_NONE) { /* nearly all */
        ir->buffer.free_count[buffer] = 1;
        ir->buffer.free_op[buffer].i = s->newest[buffer];
        return;
    }
    for (uint32_t m = s->before[buffer]; m != IR_NONE; m = s->member[m].next)
        count++;
    assert(count <= UINT16_MAX); /* one per stream at most */
    ir_open_free_set(ir, buffer, (uint16_t)count);
    if (count == 0)
        return;
    op_id *end = ir_free_set(ir, buffer) + count;
    *--end = (op_id){s->newest[buffer]};
    for (uint32_t m = s->before[buffer]; m != IR_NONE; m = s->member[m].next)
        *--end = (op_id){s->member[m].op};
}

void free_sets_store(const struct free_sets *s, struct ir *ir, uint32_t from)
{
    for (uint32_t buffer = from; buffer < ir->buffer.count; buffer++)
        store_set(s, ir, buffer);
}
