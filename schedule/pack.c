#include "schedule/pack.h"

#include <stdlib.h>
#include <string.h>

/* ---- in the order of births ---- */

enum { SETTLE_EVERY = 32 }; /* births between two looks at which holes are open to all */

#define ANYBODY UINT32_MAX

/* Bytes that nobody has. Until all births to come may take them, they are open to those that the
 * ends of their last tenant allow. */
struct hole {
    uint64_t begin, end;
    uint32_t last;  /* the tenant that had them; ANYBODY: open to all */
    uint32_t until; /* from this op on they are open to all */
};

struct floor_plan {
    struct tenants *t;
    struct hole *hole; /* by address; neighbours that are open to all are one */
    uint32_t count, capacity;
    uint64_t top; /* the bytes from here on were never taken */
};

/* Opens to all what every birth from now on may take, and joins neighbours. */
static void settle(struct floor_plan *p, uint32_t now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        struct hole hole = p->hole[i];
        if (hole.until <= now)
            hole.last = ANYBODY;
        struct hole *left = kept > 0 ? &p->hole[kept - 1] : NULL;
        if (left && hole.last == ANYBODY && left->last == ANYBODY && left->end == hole.begin)
            left->end = hole.end;
        else
            p->hole[kept++] = hole;
    }
    p->count = kept;
}

static void give(struct floor_plan *p, uint32_t tenant)
{
    if (p->count == p->capacity) {
        p->capacity = (uint32_t)heap_next_capacity(p->capacity, (size_t)p->count + 1);
        p->hole = heap_realloc(p->hole, p->capacity, sizeof *p->hole);
    }
    uint64_t begin = p->t->offset[tenant];
    uint32_t low = 0, high = p->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->hole[middle].begin < begin)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(p->hole + low + 1, p->hole + low, (p->count - low) * sizeof *p->hole);
    p->hole[low] = (struct hole){begin, begin + p->t->size[tenant], tenant, p->t->last_end[tenant]};
    p->count++;
}

/* Neighbouring holes first .. end that are open to a birth. */
struct run {
    uint32_t first, end;
    uint64_t bytes;
};

/* Takes `size` bytes from the start of a run; what is missing is taken from the top. */
static uint64_t take_run(struct floor_plan *p, struct run run, uint64_t size)
{
    uint64_t begin = run.first < run.end ? p->hole[run.first].begin : p->top;
    uint64_t end = begin + size;
    uint32_t from = run.first;
    while (from < run.end && p->hole[from].end <= end)
        from++;
    if (from < run.end && p->hole[from].begin < end)
        p->hole[from].begin = end;
    if (from > run.first) {
        memmove(p->hole + run.first, p->hole + from, (p->count - from) * sizeof *p->hole);
        p->count -= from - run.first;
    }
    p->top = end > p->top ? end : p->top;
    return begin;
}

/* The births of a class from an op on: which holes are open to them? */
struct asker {
    const uint32_t *end; /* of the class: end[tenant * classes] */
    uint32_t classes, birth;
};

static inline bool is_open(struct asker a, const struct hole *hole)
{
    return hole->until <= a.birth || a.end[(size_t)hole->last * a.classes] <= a.birth;
}

/* The lowest run of `size` bytes that are open, or the one of fewest bytes. Inlined once for each fit. */
static inline struct run find_run(const struct floor_plan *p, struct asker a, uint64_t size,
                                  enum pack_fit fit)
{
    const struct hole *hole = p->hole;
    uint32_t count = p->count, i = 0;
    struct run best = {count, count, UINT64_MAX};
    while (i < count) {
        uint32_t first = i++;
        if (!is_open(a, &hole[first]))
            continue;
        uint64_t begin = hole[first].begin, end = hole[first].end;
        for (; i < count && hole[i].begin == end && (fit == PACK_TIGHTEST || end - begin < size) &&
               is_open(a, &hole[i]);
             i++)
            end = hole[i].end;
        if (end - begin < size || end - begin >= best.bytes)
            continue;
        best = (struct run){first, i, end - begin};
        if (fit == PACK_LOWEST)
            break;
    }
    return best;
}

static void take(struct floor_plan *p, uint32_t tenant, enum pack_fit fit)
{
    struct tenants *t = p->t;
    uint64_t size = t->size[tenant];
    struct asker a = {t->end + t->class_of[tenant], t->classes, t->birth[tenant]};
    struct run best = fit == PACK_LOWEST ? find_run(p, a, size, PACK_LOWEST)
                                         : find_run(p, a, size, PACK_TIGHTEST);
    if (best.bytes == UINT64_MAX) { /* from the top, and what is open below it */
        uint64_t begin = p->top;
        while (best.first > 0 && p->hole[best.first - 1].end == begin &&
               is_open(a, &p->hole[best.first - 1]))
            begin = p->hole[--best.first].begin;
    }
    t->offset[tenant] = take_run(p, best, size);
}

uint64_t pack_in_order(struct tenants *t, enum pack_fit fit, uint64_t most)
{
    struct floor_plan p = {.t = t};
    uint32_t ops = t->ops + 1;                      /* the end of the list is an end too */
    uint32_t *head = heap_alloc(ops, sizeof *head); /* op -> tenant that ends there */
    uint32_t *next = heap_alloc(t->count, sizeof *next);
    memset(head, 0xff, ops * sizeof *head);
    uint32_t now = t->begin;
    for (uint32_t i = 0; i < t->count && p.top <= most; i++) {
        for (; now <= t->birth[i]; now++)
            for (uint32_t k = head[now - t->begin]; k != ANYBODY; k = next[k])
                give(&p, k);
        if (i % SETTLE_EVERY == 0)
            settle(&p, t->birth[i]);
        take(&p, i, fit);
        uint32_t end = t->first_end[i];
        if (end == TENANTS_NEVER)
            continue;
        next[i] = head[end - t->begin];
        head[end - t->begin] = i;
    }
    free(head);
    free(next);
    free(p.hole);
    return p.top;
}

/* ---- the heaviest first ---- */

struct weighed {
    double weight;
    uint32_t tenant;
};

static int heavier_first(const void *a, const void *b)
{
    const struct weighed *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->tenant < y->tenant ? -1 : 1;
}

/* Who is placed already and lives within some part of the list, by address. */
struct placed {
    uint32_t count, capacity;
    struct placed_row {
        uint32_t tenant, birth, last_end;
    } * row;
};

/* All of them, and once more window by window: window i has those that live during the ops
 * i * stride .. (i + 2) * stride of the role. Who lives within a window, as most do, need be compared
 * with those in it alone. */
enum { WINDOWS = 16 };

struct all_placed {
    struct placed whole, window[WINDOWS];
    uint32_t stride; /* WINDOWS of them are the list, whose end is an end too */
};

static void insert(struct placed *p, const struct tenants *t, uint32_t tenant)
{
    uint32_t low = 0, high = p->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->offset[p->row[middle].tenant] < t->offset[tenant])
            low = middle + 1;
        else
            high = middle;
    }
    if (p->count == p->capacity) {
        p->capacity = (uint32_t)heap_next_capacity(p->capacity, (size_t)p->count + 1);
        p->row = heap_realloc(p->row, p->capacity, sizeof *p->row);
    }
    memmove(p->row + low + 1, p->row + low, (p->count - low) * sizeof *p->row);
    p->row[low] = (struct placed_row){tenant, t->birth[tenant], t->last_end[tenant]};
    p->count++;
}

/* The strides that a tenant lives in: the first and the last. */
static uint32_t first_stride(const struct all_placed *all, const struct tenants *t, uint32_t tenant)
{
    return (t->birth[tenant] - t->begin) / all->stride;
}

static uint32_t last_stride(const struct all_placed *all, const struct tenants *t, uint32_t tenant)
{
    return (t->last_end[tenant] - 1 - t->begin) / all->stride;
}

static void insert_all(struct all_placed *all, const struct tenants *t, uint32_t tenant)
{
    uint32_t first = first_stride(all, t, tenant), last = last_stride(all, t, tenant);
    insert(&all->whole, t, tenant);
    for (uint32_t i = first > 0 ? first - 1 : 0; i < WINDOWS && i <= last; i++)
        insert(&all->window[i], t, tenant);
}

/* The lowest place that no tenant has who conflicts. */
static uint64_t lowest(const struct all_placed *all, const struct tenants *t, uint32_t tenant)
{
    uint32_t first = first_stride(all, t, tenant), last = last_stride(all, t, tenant);
    const struct placed *p = last <= first + 1 ? &all->window[first] : &all->whole;
    uint32_t birth = t->birth[tenant], last_end = t->last_end[tenant];
    uint64_t at = 0, size = t->size[tenant];
    for (uint32_t i = 0; i < p->count; i++) {
        const struct placed_row *other = &p->row[i];
        if (other->last_end <= birth || other->birth >= last_end)
            continue;
        uint64_t begin = t->offset[other->tenant], end = begin + t->size[other->tenant];
        if (begin >= at + size)
            break; /* as are all that follow */
        if (end > at && tenants_conflict(t, tenant, other->tenant))
            at = end;
    }
    return at;
}

uint64_t pack_by_weight(struct tenants *t, const double *weight)
{
    struct weighed *row = heap_alloc(t->count, sizeof *row);
    struct all_placed all = {.stride = t->ops / WINDOWS + 1};
    for (uint32_t i = 0; i < t->count; i++)
        row[i] = (struct weighed){weight[i], i};
    qsort(row, t->count, sizeof *row, heavier_first);
    uint64_t top = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t tenant = row[i].tenant;
        t->offset[tenant] = lowest(&all, t, tenant);
        uint64_t end = t->offset[tenant] + t->size[tenant];
        top = end > top ? end : top;
        insert_all(&all, t, tenant);
    }
    free(row);
    free(all.whole.row);
    for (int i = 0; i < WINDOWS; i++)
        free(all.window[i].row);
    return top;
}
