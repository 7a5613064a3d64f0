#include "schedule/passes/pack.h"

#include "schedule/passes/op_marks.h"
#include "schedule/passes/pack_holes.h"

#include <stdlib.h>
#include <string.h>

/* ---- in the order of births ---- */

enum { SETTLE_EVERY = 32 }; /* births between two times that a block of holes is settled */

#define NOBODY UINT32_MAX

uint64_t pack_in_order(struct tenants *t, enum pack_fit fit, uint64_t most, uint64_t *looks)
{
    struct holes holes = {.t = t};
    uint64_t enough = looks ? *looks : UINT64_MAX;
    struct op_marks ends = op_marks_none(t->begin, t->ops);
    uint32_t *head = heap_alloc((size_t)t->ops + 1, sizeof *head); /* who ends with a marked op */
    uint32_t *next = heap_alloc(t->count, sizeof *next);
    uint32_t now = UINT32_MAX; /* the first of the ends to come */
    for (uint32_t i = 0; i < t->count && holes.top <= most && holes.looked <= enough; i++) {
        for (; now <= t->birth[i]; now = op_marks_next(&ends, now + 1))
            for (uint32_t k = head[now - t->begin]; k != NOBODY; k = next[k])
                holes_give(&holes, k);
        if (i % SETTLE_EVERY == 0)
            holes_settle(&holes, t->birth[i]);
        holes_take(&holes, i, fit);
        uint32_t end = t->first_end[i];
        if (end == TENANTS_NEVER)
            continue;
        next[i] = op_marks_add(&ends, end) ? NOBODY : head[end - t->begin];
        head[end - t->begin] = i;
        now = end < now ? end : now;
    }
    uint64_t top = holes.looked <= enough ? holes.top : UINT64_MAX;
    if (looks)
        *looks = holes.looked;
    holes_release(&holes);
    free(ends.bit);
    free(head);
    free(next);
    return top;
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
        uint32_t tenant;
        struct life life;
    } * row;
};

/* All of them, and once more window by window: window i has those that live during the ops
 * i * stride .. (i + 2) * stride of the role. Who lives within a window need be compared with those in it
 * alone; most do within a small one. */
enum { LEVELS = 2, TENANTS_PER_WINDOW = 32, WINDOWS_MIN = 16, WINDOWS_MAX = 256 };

struct all_placed {
    const struct life *life; /* per tenant */
    struct placed whole;
    struct level {
        struct placed *window;
        uint32_t windows, stride; /* so many strides are the list, whose end is an end too */
    } level[LEVELS];              /* small windows first */
};

static void insert(struct placed *p, const struct tenants *t, uint32_t tenant, struct life life)
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
    p->row[low] = (struct placed_row){tenant, life};
    p->count++;
}

/* The strides that a tenant lives in. */
struct strides {
    uint32_t first, last;
};

static struct strides strides_of(const struct level *level, const struct tenants *t,
                                 struct life life)
{
    return (struct strides){(life.from - t->begin) / level->stride,
                            (life.until - 1 - t->begin) / level->stride};
}

static void insert_all(struct all_placed *all, const struct tenants *t, uint32_t tenant)
{
    struct life life = all->life[tenant];
    insert(&all->whole, t, tenant, life);
    for (int l = 0; l < LEVELS; l++) {
        struct level *level = &all->level[l];
        struct strides in = strides_of(level, t, life);
        for (uint32_t i = in.first > 0 ? in.first - 1 : 0; i < level->windows && i <= in.last; i++)
            insert(&level->window[i], t, tenant, life);
    }
}

/* All whom it may conflict with, and some more. */
static const struct placed *placed_beside(const struct all_placed *all, const struct tenants *t,
                                          struct life life)
{
    for (int l = 0; l < LEVELS; l++) {
        struct strides in = strides_of(&all->level[l], t, life);
        if (in.last <= in.first + 1)
            return &all->level[l].window[in.first];
    }
    return &all->whole;
}

/* The lowest place that no tenant has who conflicts. */
static uint64_t lowest(const struct all_placed *all, const struct tenants *t, uint32_t tenant)
{
    struct life life = all->life[tenant];
    const struct placed *p = placed_beside(all, t, life);
    uint64_t at = 0, size = t->size[tenant];
    for (uint32_t i = 0; i < p->count; i++) {
        const struct placed_row *other = &p->row[i];
        if (other->life.until <= life.from || other->life.from >= life.until)
            continue;
        uint64_t begin = t->offset[other->tenant], end = begin + t->size[other->tenant];
        if (begin >= at + size)
            break; /* as are all that follow */
        if (end > at && tenants_conflict(t, tenant, other->tenant))
            at = end;
    }
    return at;
}

static struct level level_of(const struct tenants *t, uint32_t windows)
{
    return (struct level){heap_zalloc(windows, sizeof(struct placed)), windows,
                          t->ops / windows + 1};
}

static void all_placed_release(struct all_placed *all)
{
    free(all->whole.row);
    for (int l = 0; l < LEVELS; l++) {
        for (uint32_t i = 0; i < all->level[l].windows; i++)
            free(all->level[l].window[i].row);
        free(all->level[l].window);
    }
}

uint64_t pack_by_weight(struct tenants *t, const double *weight)
{
    struct weighed *row = heap_alloc(t->count, sizeof *row);
    uint32_t small = t->count / TENANTS_PER_WINDOW;
    small = small < WINDOWS_MIN ? WINDOWS_MIN : small > WINDOWS_MAX ? WINDOWS_MAX : small;
    struct life *life = pack_lives_of(t);
    struct all_placed all = {.life = life, .level = {level_of(t, small), level_of(t, WINDOWS_MIN)}};
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
    free(life);
    all_placed_release(&all);
    return top;
}
