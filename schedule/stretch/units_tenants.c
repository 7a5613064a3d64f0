/* Tenants of the copies: the period's, later by strides, as units_write.c makes its rows. */
#include "schedule/stretch/units_tenants.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    const struct units *u;
    const struct tenants *in;
    struct tenants *out;
    uint32_t *at; /* per period, and behind the last: its first tenant */
    uint32_t ops, buffers, up_ops;
    uint32_t copies;
};

static void find_rows(struct writer *w)
{
    uint32_t row = 0;
    for (uint32_t p = 0; p <= w->u->periods; p++) {
        while (row < w->in->count && w->in->birth[row] < w->u->op_at[p])
            row++;
        w->at[p] = row;
    }
}

static uint32_t rows_at(const struct writer *w, uint32_t p)
{
    return w->at[p + 1] - w->at[p];
}

/* Does the next period of tenants go on from this one? as: the period from which they go on as from it. */
static bool goes_on(const struct writer *w, uint32_t p, uint32_t as)
{
    const struct tenants *t = w->in;
    uint32_t count = rows_at(w, p), a = w->at[p], b = w->at[p + 1], classes = t->classes;
    if (rows_at(w, p + 1) != count || rows_at(w, as) != count ||
        memcmp(t->class_of + a, t->class_of + b, count * sizeof *t->class_of) != 0 ||
        memcmp(t->size + a, t->size + b, count * sizeof *t->size) != 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (t->birth[b + i] - t->birth[a + i] != w->ops ||
            t->buffer[b + i] - t->buffer[a + i] != w->buffers)
            return false;
    const uint32_t *x = tenants_ends(t, a), *y = tenants_ends(t, b);
    const uint32_t *of = tenants_ends(t, w->at[as]), *next = tenants_ends(t, w->at[as + 1]);
    for (size_t i = 0; i < (size_t)count * classes; i++)
        if (y[i] - x[i] != next[i] - of[i] || (y[i] != x[i] && y[i] - x[i] != w->ops))
            return false;
    return true;
}

static bool is_behind(const struct writer *w, uint32_t end)
{
    return end >= w->u->op_at[w->u->back.high];
}

/* An end behind the steady periods moves up with them. Nobody can tell where one in front of the copies ends
 * that is among those behind them. */
static bool end_in_front(const struct writer *w, uint32_t end, uint32_t *to)
{
    *to = is_behind(w, end) && end != TENANTS_NEVER ? end + w->up_ops : end;
    return end < w->u->op_at[w->u->back.cut + 1] || is_behind(w, end);
}

static void copy_rows(struct writer *w, uint32_t from, uint32_t count)
{
    struct tenants *out = w->out;
    uint32_t to = out->count;
    memcpy(out->class_of + to, w->in->class_of + from, count * sizeof *out->class_of);
    memcpy(out->size + to, w->in->size + from, count * sizeof *out->size);
    out->count += count;
}

/* Tenants born before the copies. by: what ends of those from row `low` on go on by. */
static bool write_front(struct writer *w, uint32_t low, const uint32_t *by)
{
    struct tenants *out = w->out;
    uint32_t count = w->at[w->u->ahead.cut + 1], classes = w->in->classes;
    size_t period = (size_t)rows_at(w, w->u->ahead.cut) * classes;
    copy_rows(w, 0, count);
    memcpy(out->buffer, w->in->buffer, count * sizeof *out->buffer);
    memcpy(out->birth, w->in->birth, count * sizeof *out->birth);
    for (size_t i = 0; i < (size_t)count * classes; i++) {
        bool steady = i >= (size_t)low * classes;
        if (steady && by[(i - (size_t)low * classes) % period] != 0)
            out->end[i] = w->in->end[i];
        else if (!end_in_front(w, w->in->end[i], &out->end[i]))
            return false;
    }
    return true;
}

static void write_copies(struct writer *w, const uint32_t *by)
{
    struct tenants *out = w->out;
    uint32_t count = rows_at(w, w->u->ahead.cut), classes = w->in->classes;
    for (uint32_t copy = 0; copy < w->copies; copy++) {
        uint32_t to = out->count, from = to - count;
        copy_rows(w, w->at[w->u->ahead.cut], count);
        for (uint32_t i = 0; i < count; i++) {
            out->buffer[to + i] = out->buffer[from + i] + w->buffers;
            out->birth[to + i] = out->birth[from + i] + w->ops;
        }
        uint32_t *end = out->end + (size_t)to * classes;
        const uint32_t *before = out->end + (size_t)from * classes;
        for (size_t i = 0; i < (size_t)count * classes; i++)
            end[i] = before[i] + by[i];
    }
}

static void write_behind(struct writer *w)
{
    struct tenants *out = w->out;
    uint32_t from = w->at[w->u->ahead.cut + 1], to = out->count, classes = w->in->classes;
    copy_rows(w, from, w->in->count - from);
    for (uint32_t i = to; i < out->count; i++) {
        out->buffer[i] = w->in->buffer[from + i - to] + w->copies * w->buffers;
        out->birth[i] = w->in->birth[from + i - to] + w->up_ops;
    }
    const uint32_t *before = w->in->end + (size_t)from * classes;
    uint32_t *end = out->end + (size_t)to * classes;
    for (size_t i = 0; i < (size_t)(out->count - to) * classes; i++)
        end[i] = before[i] == TENANTS_NEVER ? TENANTS_NEVER : before[i] + w->up_ops;
}

static uint32_t reach_of(const struct writer *w, const uint32_t *by)
{
    const uint32_t *end = tenants_ends(w->in, w->at[w->u->ahead.cut]);
    uint32_t last = 0, begin = w->u->op_at[w->u->ahead.cut];
    for (size_t i = 0; i < (size_t)rows_at(w, w->u->ahead.cut) * w->in->classes; i++)
        if (by[i] != 0 && end[i] - begin > last)
            last = end[i] - begin;
    return (last + w->ops - 1) / w->ops;
}

/* By how much the ends of the period go on, when they do and in the one before as well. */
static uint32_t *strides_of(struct writer *w, struct units_tenancy *of)
{
    uint32_t cut = w->u->ahead.cut, classes = w->in->classes;
    if (cut == w->u->ahead.low || !goes_on(w, cut, cut) || !goes_on(w, cut - 1, cut))
        return NULL;
    of->low = cut - 1;
    while (of->low > w->u->ahead.low && goes_on(w, of->low - 1, cut))
        of->low--;
    size_t ends = (size_t)rows_at(w, cut) * classes;
    uint32_t *by = heap_alloc(ends + 1, sizeof *by);
    const uint32_t *x = tenants_ends(w->in, w->at[cut]), *y = tenants_ends(w->in, w->at[cut + 1]);
    for (size_t i = 0; i < ends; i++) {
        by[i] = y[i] - x[i];
        if (by[i] != 0 || is_behind(w, x[i]))
            continue;
        free(by);
        return NULL;
    }
    return by;
}

static void reserve(struct writer *w)
{
    struct tenants *out = w->out;
    uint32_t count = w->in->count + w->copies * rows_at(w, w->u->ahead.cut);
    out->classes = w->in->classes;
    out->end = heap_realloc(out->end, (size_t)count * out->classes, sizeof *out->end);
    tenants_reserve(out, count);
}

bool units_tenants(struct tenants *out, const struct tenants *in, const struct units *u,
                   uint32_t copies, struct units_tenancy *of)
{
    struct writer w = {.u = u,
                       .in = in,
                       .out = out,
                       .ops = units_ops(u),
                       .buffers = units_buffers(u),
                       .up_ops = copies * units_ops(u),
                       .copies = copies};
    *of = (struct units_tenancy){.low = u->ahead.low};
    out->count = 0;
    out->live = 0;
    if (in->count == 0)
        return true;
    w.at = heap_alloc((size_t)u->periods + 1, sizeof *w.at);
    find_rows(&w);
    uint32_t *by = strides_of(&w, of);
    bool told = by != NULL;
    if (told) {
        reserve(&w);
        told = write_front(&w, w.at[of->low], by);
    }
    if (told) {
        of->first = w.at[of->low];
        of->count = rows_at(&w, u->ahead.cut);
        of->reach = reach_of(&w, by);
        write_copies(&w, by);
        write_behind(&w);
        tenants_settle(out, in->begin, in->ops + w.up_ops);
        out->live = in->live;
    }
    free(by);
    free(w.at);
    return told;
}
