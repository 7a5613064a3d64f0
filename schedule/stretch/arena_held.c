#include "schedule/stretch/arena_held.h"

#include "schedule/stretch/tenants.h"

void arena_hold_copies(int64_t *change, const struct stretch_spans *p,
                       const struct stretch_span *span, uint32_t i)
{
    const struct stretch *s = p->s;
    const struct tenants *in = p->in;
    uint32_t x = p->first[span->a] + i, y = p->first[span->b] + i;
    struct lie lie = spans_lie(p, span, span->a, in->first_end[x]);
    struct lie next = spans_lie(p, span, span->b, in->first_end[y]);
    if (lie.periods != SPANS_APART && lie.periods == next.periods && lie.slot == next.slot)
        return;
    int64_t bytes = (int64_t)(s->left_out.storeys * in->size[x]);
    uint32_t until = TENANTS_NEVER, block, slot;
    for (uint32_t k = 0; k < in->classes; k++) {
        uint32_t end = tenants_ends(in, x)[k], like = tenants_ends(in, y)[k], to;
        if (stretch_end(s, (struct stretch_from){span->a, 2, true}, end, &like, &to) && to < until)
            until = to;
    }
    change[s->block[span->b].op] += bytes;
    if (until >= s->first_op + s->op_count)
        return;
    if (spans_is_copied(s, until, &block, &slot))
        change[s->block[block + 1].op] -= bytes;
    else
        change[s->block[block].op + slot] -= bytes;
}

uint64_t arena_most_held(const struct tenants *t, const uint32_t *first_end, int64_t *change)
{
    int64_t held = 0, most = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t end = first_end ? first_end[i] : TENANTS_NEVER;
        for (uint32_t k = 0; !first_end && k < t->classes; k++)
            end = tenants_ends(t, i)[k] < end ? tenants_ends(t, i)[k] : end;
        change[t->birth[i] - t->begin] += (int64_t)t->size[i];
        if (end != TENANTS_NEVER)
            change[end - t->begin] -= (int64_t)t->size[i];
    }
    for (uint32_t op = 0; op < t->ops; op++) {
        held += change[op];
        most = held > most ? held : most;
    }
    return (uint64_t)most;
}
