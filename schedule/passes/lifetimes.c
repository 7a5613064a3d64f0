#include "schedule/passes/lifetimes.h"

#include "schedule/passes/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The candidates of one buffer's free set: nearly all have one. Those before it are a linked list. */
struct member {
    uint32_t op, next;
};

struct candidates {
    struct member *member;
    uint32_t count, capacity, spare; /* spare: list of unused members */
    uint32_t *newest;                /* per buffer: the op; IR_NONE: there is none */
    uint32_t *before;                /* and the list of the others, newest first */
};

static uint32_t new_member(struct candidates *c)
{
    uint32_t m = c->spare;
    if (m != IR_NONE) {
        c->spare = c->member[m].next;
        return m;
    }
    if (c->count == c->capacity) {
        c->capacity = (uint32_t)heap_next_capacity(c->capacity, (size_t)c->count + 1);
        c->member = heap_realloc(c->member, c->capacity, sizeof *c->member);
    }
    return c->count++;
}

/* Has a candidate ended before an op starts? */
static inline bool has_ended(const struct order *order, uint32_t candidate, uint32_t op)
{
    return candidate >= order->begin && order_before(order, candidate, op);
}

/* The newest and others stay beside `op`, but for those that have ended before it starts. */
static void touch_beside(struct candidates *c, const struct order *order, uint32_t buffer,
                         uint32_t op)
{
    uint32_t *link = &c->before[buffer], newest = c->newest[buffer];
    while (*link != IR_NONE) {
        struct member *m = &c->member[*link];
        if (has_ended(order, m->op, op)) {
            uint32_t gone = *link;
            *link = m->next;
            m->next = c->spare;
            c->spare = gone;
        } else {
            link = &m->next;
        }
    }
    if (has_ended(order, newest, op))
        return;
    uint32_t m = new_member(c);
    c->member[m] = (struct member){.op = newest, .next = c->before[buffer]};
    c->before[buffer] = m;
}

/* `op` touches the buffer: it replaces the candidates that have ended before it starts. */
static inline void touch(struct candidates *c, const struct order *order, uint32_t buffer,
                         uint32_t op)
{
    uint32_t newest = c->newest[buffer];
    if (newest == op)
        return;
    if (newest != IR_NONE && (c->before[buffer] != IR_NONE || !has_ended(order, newest, op)))
        touch_beside(c, order, buffer, op);
    c->newest[buffer] = op;
}

/* A free set is in list order. */
static void store_set(struct ir *ir, const struct candidates *c, uint32_t buffer)
{
    uint32_t count = c->newest[buffer] != IR_NONE;
    if (count == 1 && c->before[buffer] == IR_NONE) { /* nearly all */
        ir->buffer.free_count[buffer] = 1;
        ir->buffer.free_op[buffer].i = c->newest[buffer];
        return;
    }
    for (uint32_t m = c->before[buffer]; m != IR_NONE; m = c->member[m].next)
        count++;
    assert(count <= UINT16_MAX); /* one per stream at most */
    ir_open_free_set(ir, buffer, (uint16_t)count);
    if (count == 0)
        return;
    op_id *end = ir_free_set(ir, buffer) + count;
    *--end = (op_id){c->newest[buffer]};
    for (uint32_t m = c->before[buffer]; m != IR_NONE; m = c->member[m].next)
        *--end = (op_id){c->member[m].op};
}

static void touch_role(struct candidates *c, const struct ir *ir, const struct order *order)
{
    for (uint32_t op = order->begin; op < order->begin + order->count; op++) {
        const uint32_t *operand = ir->operand + ir->op.operand_begin[op];
        const uint32_t *end = operand + ir->op.reads[op] + ir->op.writes[op];
        for (; operand < end; operand++) {
            uint32_t buffer = ir_buffer_of(ir, *operand);
            if (!lifetimes_persistent(ir, buffer))
                touch(c, order, buffer, op);
        }
    }
}

static struct candidates candidates_of(const struct ir *ir)
{
    struct candidates c = {.spare = IR_NONE};
    c.newest = heap_alloc(ir->buffer.count, sizeof *c.newest);
    c.before = heap_alloc(ir->buffer.count, sizeof *c.before);
    memset(c.newest, 0xff, ir->buffer.count * sizeof *c.newest);
    memset(c.before, 0xff, ir->buffer.count * sizeof *c.before);
    return c;
}

/* Of one role, or of all (IR_NONE). */
static void store_sets(struct ir *ir, uint32_t role, struct candidates *c)
{
    for (uint32_t buffer = 0; buffer < ir->buffer.count; buffer++)
        if (role == IR_NONE || ir->buffer.role[buffer] == role)
            store_set(ir, c, buffer);
    free(c->newest);
    free(c->before);
    free(c->member);
}

void lifetimes_free_sets(struct ir *ir)
{
    struct candidates c = candidates_of(ir);
    struct order order = {0};
    for (uint32_t role = 0; role < ir->role_count; role++) {
        order_role(&order, ir, role);
        touch_role(&c, ir, &order);
    }
    order_release(&order);
    ir->free_op_count = 0;
    store_sets(ir, IR_NONE, &c);
}

void lifetimes_free_sets_ordered(struct ir *ir, uint32_t role, const struct order *order)
{
    struct candidates c = candidates_of(ir);
    touch_role(&c, ir, order);
    store_sets(ir, role, &c);
}
