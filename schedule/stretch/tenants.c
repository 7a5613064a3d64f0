/* Tenants of the long list from those of the short one, as write.c makes its rows. */
#include "schedule/stretch/tenants.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    const struct stretch *s;
    const struct tenants *in;
    struct tenants *out;
    uint32_t *first; /* per block, and behind the last: its first tenant */
};

static void find_first(struct writer *w)
{
    uint32_t at = 0;
    for (uint32_t b = 0; b < w->s->block_count; b++) {
        const struct stretch_block *block = &w->s->block[b];
        w->first[b] = at;
        while (at < w->in->count && w->in->birth[at] < block->op + block->ops)
            at++;
    }
    w->first[w->s->block_count] = at;
}

static uint32_t tenants_at(const struct writer *w, uint32_t block)
{
    return w->first[block + 1] - w->first[block];
}

bool stretch_end(const struct stretch *s, struct stretch_from from, uint32_t end,
                 const uint32_t *like, uint32_t *to)
{
    uint32_t ops = s->in->op.count;
    if (end >= ops || (like && *like >= ops)) { /* never, or behind the last op */
        *to = end == TENANTS_NEVER ? end : s->first_op + s->op_count;
        return from.copy == 0 || !like || *like == end;
    }
    *to = stretch_op(s, from, end, like ? *like : IR_NONE);
    return *to != IR_NONE;
}

/* Ends of a block's tenants that have been told, for many end alike: rows by the end. */
enum { TOLD_ENDS = 64 };

struct told_end {
    uint32_t end, like, to; /* to = IR_NONE: not told yet, or never */
};

static bool tell_end(const struct writer *w, struct stretch_from from, struct told_end *told,
                     uint32_t end, const uint32_t *like, uint32_t *to)
{
    struct told_end *known = &told[end % TOLD_ENDS];
    uint32_t likes = like ? *like : IR_NONE;
    if (known->to == IR_NONE || known->end != end || known->like != likes) {
        if (!stretch_end(w->s, from, end, like, to))
            return false;
        *known = (struct told_end){end, likes, *to};
    }
    *to = known->to;
    return true;
}

static bool write_block(struct writer *w, struct stretch_from from)
{
    const struct stretch *s = w->s;
    const struct stretch_block *block = &s->block[from.block];
    uint32_t classes = w->in->classes, like = block->like;
    uint32_t first = w->first[from.block], count = tenants_at(w, from.block);
    if (like != IR_NONE && tenants_at(w, like) != count) /* buffers are alike, and so tenants are */
        return false;
    struct told_end told[TOLD_ENDS];
    memset(told, 0xff, sizeof told);
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t to = w->out->count++;
        const uint32_t *end = tenants_ends(w->in, i);
        const uint32_t *likes =
            like != IR_NONE ? tenants_ends(w->in, w->first[like] + (i - first)) : NULL;
        w->out->buffer[to] =
            block->to_buffer + from.copy * block->buffers + (w->in->buffer[i] - block->buffer);
        w->out->birth[to] = block->to_op + from.copy * block->ops + (w->in->birth[i] - block->op);
        w->out->class_of[to] = w->in->class_of[i];
        w->out->size[to] = w->in->size[i];
        uint32_t *out = w->out->end + (size_t)to * classes;
        for (uint32_t c = 0; c < classes; c++)
            if (!tell_end(w, from, told, end[c], likes ? &likes[c] : NULL, &out[c]))
                return false;
    }
    return true;
}

/* The copies behind the second go on as from the first to it. */
static void copy_block(struct writer *w, uint32_t count)
{
    struct tenants *t = w->out;
    uint32_t to = t->count, b = to - count, a = b - count, classes = t->classes;
    for (uint32_t i = 0; i < count; i++) {
        t->buffer[to + i] = 2 * t->buffer[b + i] - t->buffer[a + i];
        t->birth[to + i] = 2 * t->birth[b + i] - t->birth[a + i];
    }
    memcpy(t->class_of + to, t->class_of + b, count * sizeof *t->class_of);
    memcpy(t->size + to, t->size + b, count * sizeof *t->size);
    uint32_t *end = t->end + (size_t)to * classes;
    const uint32_t *end_b = t->end + (size_t)b * classes, *end_a = t->end + (size_t)a * classes;
    for (size_t i = 0; i < (size_t)count * classes; i++)
        end[i] = 2 * end_b[i] - end_a[i];
    t->count += count;
}

static bool write_copies(struct writer *w, uint32_t block)
{
    uint32_t count = tenants_at(w, block), classes = w->in->classes, more = w->s->left_out.storeys;
    for (uint32_t copy = 1; copy <= more; copy++)
        if (copy > 2)
            copy_block(w, count);
        else if (!write_block(w, (struct stretch_from){block, copy, true}))
            return false;
    uint32_t end = w->out->count; /* the last one again, by itself */
    if (!write_block(w, (struct stretch_from){block, more, true}))
        return false;
    w->out->count = end;
    return memcmp(w->out->end + (size_t)(end - count) * classes,
                  w->out->end + (size_t)end * classes,
                  (size_t)count * classes * sizeof *w->out->end) == 0;
}

/* Room for all, and for one block that is written twice. */
static void reserve(struct writer *w)
{
    const struct stretch *s = w->s;
    struct tenants *out = w->out;
    uint32_t count = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        const struct stretch_run *run =
            s->block[b].run != IR_NONE ? &s->run[s->block[b].run] : NULL;
        bool copied = run && b - run->begin + 1 == run->cut;
        count += tenants_at(w, b) * (copied ? s->left_out.storeys + 2 : 1);
    }
    out->classes = w->in->classes;
    out->count = 0;
    tenants_reserve(out, count);
    out->end = heap_realloc(out->end, (size_t)count * out->classes, sizeof *out->end);
}

bool stretch_tenants(struct tenants *out, const struct tenants *in, const struct stretch *s)
{
    struct writer w = {.s = s, .in = in, .out = out};
    bool right = true;
    out->count = 0;
    out->live = 0;
    if (in->count == 0)
        return true;
    w.first = heap_alloc((size_t)s->block_count + 1, sizeof *w.first);
    find_first(&w);
    reserve(&w);
    for (uint32_t b = 0; right && b < s->block_count; b++) {
        const struct stretch_run *run =
            s->block[b].run != IR_NONE ? &s->run[s->block[b].run] : NULL;
        right = write_block(&w, (struct stretch_from){b, 0, true});
        if (right && run && b - run->begin + 1 == run->cut)
            right = write_copies(&w, b);
    }
    free(w.first);
    if (right)
        tenants_settle(out, s->first_op, s->op_count);
    return right;
}
