/* Births and ends are moved to the two periods that stand for a run: those of its first block to the first
 * of them, of its last one to the second. What ends in between has met all of a period by then. */
#include "schedule/stretch/spans.h"

#include "base/arena.h"

#include <stdlib.h>

void spans_release(struct stretch_spans *p)
{
    free(p->first);
    free(p->span);
    free(p->alike_tenants);
    free(p->alike_ops);
    *p = (struct stretch_spans){0};
}

static void find_first(struct stretch_spans *p)
{
    const struct stretch *s = p->s;
    uint32_t at = 0;
    p->first = heap_realloc(p->first, (size_t)s->block_count + 1, sizeof *p->first);
    for (uint32_t b = 0; b < s->block_count; b++) {
        p->first[b] = at;
        while (at < p->in->count && p->in->birth[at] < s->block[b].op + s->block[b].ops)
            at++;
    }
    p->first[s->block_count] = at;
}

/* How far a block begins as block `with` does. */
static void compare_blocks(struct stretch_spans *p, uint32_t block, uint32_t with)
{
    const struct tenants *in = p->in;
    const struct stretch_block *x = &p->s->block[block], *y = &p->s->block[with];
    uint32_t count = spans_tenants(p, block), others = spans_tenants(p, with), same = 0;
    uint32_t i = p->first[block], j = p->first[with];
    while (same < count && same < others && in->class_of[i + same] == in->class_of[j + same] &&
           in->size[i + same] == in->size[j + same] &&
           in->birth[i + same] - x->op == in->birth[j + same] - y->op)
        same++;
    p->alike_tenants[block] = same;
    p->alike_ops[block] = x->ops < y->ops ? x->ops : y->ops;
    if (same < count && in->birth[i + same] - x->op < p->alike_ops[block])
        p->alike_ops[block] = in->birth[i + same] - x->op;
    if (same < others && in->birth[j + same] - y->op < p->alike_ops[block])
        p->alike_ops[block] = in->birth[j + same] - y->op;
}

/* Most of a block's tenants must be those of the period. */
static bool begins_alike(struct stretch_spans *p, uint32_t block, uint32_t with)
{
    compare_blocks(p, block, with);
    return p->alike_tenants[block] >= spans_tenants(p, with) - spans_tenants(p, with) / 8;
}

static bool find_span(struct stretch_spans *p, uint32_t run)
{
    const struct stretch_run *r = &p->s->run[run];
    struct stretch_span *span = &p->span[run];
    *span = (struct stretch_span){.run = run, .a = r->begin + r->cut - 1, .b = r->begin + r->cut};
    span->tenants = spans_tenants(p, span->a);
    span->between = p->s->block[span->b].op;
    span->behind = p->s->block[span->b].op + p->s->block[span->b].ops;
    span->low = span->a;
    span->high = span->b + 1;
    compare_blocks(p, span->a, span->a);
    if (!begins_alike(p, span->b, span->a) || p->alike_tenants[span->b] != span->tenants)
        return false;
    while (span->low > r->begin && begins_alike(p, span->low - 1, span->a))
        span->low--;
    while (span->high < r->begin + r->blocks && begins_alike(p, span->high, span->a))
        span->high++;
    return true;
}

/* ---- when: moved to the two periods ---- */

/* An end that lies in some block: no sooner than where it is moved to. */
static uint32_t moved_end(const struct stretch_spans *p, uint32_t block, uint32_t slot)
{
    const struct stretch_block *of = &p->s->block[block];
    if (of->run == IR_NONE || !spans_alike(&p->span[of->run], block))
        return of->op + slot;
    const struct stretch_span *span = &p->span[of->run];
    bool known = slot <= p->alike_ops[block];
    if (block + 1 == span->high)
        return known ? p->s->block[span->b].op + slot : of->op + slot;
    if (block == span->low)
        return known ? p->s->block[span->a].op + slot : span->between;
    return span->between;
}

/* The end of a tenant that is born in block `from`. In another run it may lie in a copy, or behind the
 * copies, though it does not in the short list. */
uint32_t spans_end(const struct stretch_spans *p, uint32_t from, uint32_t end)
{
    const struct stretch *s = p->s;
    if (end >= s->in->op.count)
        return end;
    uint32_t block = s->block_of_op[end], slot = end - s->block[block].op;
    uint32_t moved = moved_end(p, block, slot), run = s->block[block].run;
    if (run == IR_NONE || s->block[from].run == IR_NONE || run == s->block[from].run)
        return moved;
    const struct stretch_run *r = &s->run[run];
    uint32_t at = block - r->begin, more = s->left_out.storeys;
    uint32_t up = stretch_rise(s, (struct stretch_from){from, 0, true});
    uint32_t kept = at < r->cut ? at : at + more, seen = r->up ? at + up : at + more - up;
    if (seen == kept || seen < r->cut)
        return moved;
    moved = spans_later(moved, p->span[run].between);
    if (seen < r->cut + more)
        return moved;
    if (seen - more >= r->blocks)
        return s->in->op.count;
    block = r->begin + seen - more;
    return spans_later(moved, spans_alike(&p->span[run], block)
                                  ? moved_end(p, block, slot)
                                  : s->block[block].op + s->block[block].ops);
}

/* An op of the long list: where its block is in the short one, and whether it is a copy's. */
bool spans_is_copied(const struct stretch *s, uint32_t op, uint32_t *block, uint32_t *slot)
{
    uint32_t low = 0, high = s->block_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (s->block[middle].to_op <= op)
            low = middle;
        else
            high = middle;
    }
    *block = low;
    *slot = op - s->block[low].to_op;
    return *slot >= s->block[low].ops;
}

uint32_t spans_end_of_copy(const struct stretch_spans *p, uint32_t op)
{
    uint32_t block, slot;
    if (op >= p->s->first_op + p->s->op_count)
        return op == TENANTS_NEVER ? op : p->s->in->op.count;
    return spans_is_copied(p->s, op, &block, &slot) ? p->span[p->s->block[block].run].between
                                                    : moved_end(p, block, slot);
}

struct lie spans_lie_apart(const struct stretch_spans *p, const struct stretch_span *span,
                           uint32_t from, uint32_t end)
{
    struct lie apart = {SPANS_APART, 0};
    if (end >= p->s->in->op.count)
        return apart;
    uint32_t block = p->s->block_of_op[end];
    if (block < from || block >= span->high)
        return apart;
    uint32_t slot = end - p->s->block[block].op;
    if (slot <= p->alike_ops[block])
        return (struct lie){(int32_t)(block - from), slot};
    return block + 1 == span->high ? apart : (struct lie){(int32_t)(block - from) + 1, 0};
}

/* Where a block's tenants are, when they take turns: the period in the long list. */
uint32_t spans_period(const struct stretch_spans *p, const struct stretch_span *span,
                      uint32_t block)
{
    const struct stretch_run *run = &p->s->run[span->run];
    uint32_t at = block - run->begin;
    return at < run->cut ? at : at + p->s->left_out.storeys;
}

bool spans_find(struct stretch_spans *p, const struct tenants *in, const struct stretch *s)
{
    bool right = true;
    *p = (struct stretch_spans){.s = s, .in = in};
    find_first(p);
    p->span = heap_alloc((size_t)s->run_count + 1, sizeof *p->span);
    p->alike_tenants = heap_zalloc(s->block_count, sizeof *p->alike_tenants);
    p->alike_ops = heap_zalloc(s->block_count, sizeof *p->alike_ops);
    for (uint32_t r = 0; right && r < s->run_count; r++)
        right = find_span(p, r);
    return right;
}
