#include "schedule/analysis/free_sets.h"

#include <assert.h>
#include <stdlib.h>

void free_sets_init(struct free_sets *s, uint32_t buffers)
{
    *s = (struct free_sets){.spare_member = IR_NONE,
                            .newest_free_set_member_of_buffers = ir_new_empty_ids(buffers)};
}

void free_sets_release(struct free_sets *s)
{
    free(s->member);
    free(s->newest_free_set_member_of_buffers);
    *s = (struct free_sets){0};
}

static uint32_t new_free_set_member(struct free_sets *s)
{
    uint32_t m = s->spare_member;
    if (m != IR_NONE) {
        s->spare_member = s->member[m].next;
        return m;
    }
    s->member = heap_grow(s->member, &s->capacity, (size_t)s->count + 1, sizeof *s->member);
    return s->count++;
}

void free_sets_add_touch(struct free_sets *s, const struct order *order, uint32_t buffer,
                         uint32_t op)
{
    uint32_t *link = &s->newest_free_set_member_of_buffers[buffer];
    if (*link != IR_NONE && s->member[*link].op == op)
        return;
    while (*link != IR_NONE) {
        struct free_sets_member *m = &s->member[*link];
        if (m->op >= order->first_op && order_is_before(order, m->op, op)) {
            uint32_t gone = *link;
            *link = m->next;
            m->next = s->spare_member;
            s->spare_member = gone;
        } else {
            link = &m->next;
        }
    }
    uint32_t m = new_free_set_member(s);
    s->member[m] =
        (struct free_sets_member){.op = op, .next = s->newest_free_set_member_of_buffers[buffer]};
    s->newest_free_set_member_of_buffers[buffer] = m;
}

static void store_free_set_of_buffer(const struct free_sets *s, struct ir *ir, uint32_t buffer)
{
    uint32_t count = 0;
    for (uint32_t m = s->newest_free_set_member_of_buffers[buffer]; m != IR_NONE;
         m = s->member[m].next)
        count++;
    assert(count <= UINT16_MAX); /* there is at most one for each stream */
    ir_open_free_set(ir, buffer, (uint16_t)count);
    op_id *set = ir_free_set(ir, buffer);
    for (uint32_t m = s->newest_free_set_member_of_buffers[buffer]; m != IR_NONE;
         m = s->member[m].next)
        set[--count] = (op_id){s->member[m].op};
}

void free_sets_store(const struct free_sets *s, struct ir *ir, uint32_t from)
{
    for (uint32_t buffer = from; buffer < ir->buffer.count; buffer++)
        store_free_set_of_buffer(s, ir, buffer);
}
