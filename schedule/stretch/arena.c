/* Who stands for whom, and in which rows. */
#include "schedule/stretch/arena.h"

#include "base/arena.h"
#include "schedule/stretch/arena_held.h"
#include "schedule/stretch/tenants.h"

#include <stdlib.h>
#include <string.h>

enum { TURNS_MAX = 4, GUESTS_MAX = 64, GUEST_HALVES = 6 };

struct condense {
    struct stretch_arena *arena;
    const struct stretch *s;
    const struct tenants *in;
    struct tenants *list;
    const struct stretch_spans *spans;
    uint32_t classes;
    int64_t *change; /* bytes that are held, per op */
    struct lie *lie; /* per class: those of the family looked at */
    uint32_t *apart;
};

/* ---- a tenant of a period, and those like it ---- */

struct family {
    const struct stretch_span *span;
    uint32_t i; /* tenant of each block */
    uint32_t x; /* of block span->a */
    uint32_t slot;
    uint32_t places;
    uint32_t count;  /* like x, in the short list */
    uint32_t last;   /* that of the last block; IR_NONE: it is not like them */
    uint32_t pool;   /* the first family that it takes turns with */
    uint32_t host;   /* spot of those in whose room it stays; IR_NONE: it has its own */
    uint64_t inner;  /* and where in it */
    struct lie *lie; /* per class */
    uint32_t *apart; /* the latest of the ends that are elsewhere, moved */
    bool here;       /* it keeps to itself: all ends of x are in its block, at slots up to */
    uint32_t far;
};

/* Ends of copies that do not go along with them: the latest. */
static bool ends_of_copies(const struct condense *c, struct family *f, uint32_t class)
{
    const struct stretch *s = c->s;
    uint32_t more = s->left_out.storeys, to[3];
    const uint32_t copy[3] = {1, 2, more};
    uint32_t y = c->spans->first[f->span->b] + f->i;
    uint32_t end = tenants_ends(c->in, f->x)[class], like = tenants_ends(c->in, y)[class];
    for (int k = 0; k < 3; k++) {
        if (copy[k] > more)
            continue;
        if (!stretch_end(s, (struct stretch_from){f->span->a, copy[k], true}, end, &like, &to[k]))
            return false;
        f->apart[class] = spans_later(f->apart[class], spans_end_of_copy(c->spans, to[k]));
    }
    return more < 3 || to[2] - to[0] == (to[1] - to[0]) * (more - 1); /* one by one, all the way */
}

/* By how many periods a place can be given again; UINT32_MAX: by none. */
static uint32_t places_of(struct lie own, uint32_t slot)
{
    if (own.periods == SPANS_APART || own.periods >= TURNS_MAX)
        return UINT32_MAX;
    uint32_t places = (uint32_t)own.periods + (own.slot > slot);
    return places > 1 ? places : 1;
}

static bool look_at(const struct condense *c, struct family *f)
{
    const struct tenants *in = c->in;
    uint32_t y = c->spans->first[f->span->b] + f->i, own = in->class_of[f->x];
    if (own != in->class_of[y] || in->size[f->x] != in->size[y])
        return false;
    f->slot = in->birth[f->x] - c->s->block[f->span->a].op;
    f->here = true;
    f->far = 0;
    for (uint32_t k = 0; k < c->classes; k++) {
        struct lie lie = spans_lie(c->spans, f->span, f->span->a, tenants_ends(in, f->x)[k]);
        struct lie next = spans_lie(c->spans, f->span, f->span->b, tenants_ends(in, y)[k]);
        bool along =
            lie.periods != SPANS_APART && lie.periods == next.periods && lie.slot == next.slot;
        f->lie[k] = along ? lie : (struct lie){SPANS_APART, 0};
        f->apart[k] = 0;
        f->here &= f->lie[k].periods == 0;
        f->far = spans_later(f->far, lie.slot);
        if (!along && !ends_of_copies(c, f, k))
            return false;
    }
    f->places = places_of(f->lie[own], f->slot);
    return true;
}

/* Does a tenant of a block end where one of another does, and in its own block as that does? Most do. */
static bool ends_alike(const struct condense *c, const struct family *f, uint32_t block,
                       const uint32_t *end)
{
    const struct stretch_block *own = &c->s->block[block];
    const uint32_t *ends = tenants_ends(c->in, f->x);
    uint32_t further = own->op - c->s->block[f->span->a].op, unlike = 0;
    if (!f->here || f->far >= own->ops || f->far > c->spans->alike_ops[block])
        return false;
    for (uint32_t k = 0; k < c->classes; k++)
        unlike |= end[k] - ends[k] - further;
    return unlike == 0;
}

/* Does it keep to what the tenant of span->a does? */
static bool is_like(const struct condense *c, const struct family *f, uint32_t block, uint32_t w)
{
    const struct tenants *in = c->in;
    if (in->class_of[w] != in->class_of[f->x] || in->size[w] != in->size[f->x] ||
        in->birth[w] - c->s->block[block].op != f->slot)
        return false;
    const uint32_t *end = tenants_ends(in, w);
    if (ends_alike(c, f, block, end))
        return true;
    if (f->places > 1) {
        struct lie own = spans_lie(c->spans, f->span, block, end[in->class_of[w]]);
        if (f->places == UINT32_MAX)
            return own.periods == SPANS_APART;
        /* their places are taken all the time: it is their own turns that count */
        return block + 1 == f->span->high || lie_no_later(own, f->lie[in->class_of[w]]);
    }
    for (uint32_t k = 0; k < c->classes; k++) {
        struct lie lie = spans_lie(c->spans, f->span, block, end[k]);
        bool leaves =
            block + 1 == f->span->high && lie.periods == SPANS_APART && f->lie[k].periods >= 1;
        if (!leaves && !lie_no_later(lie, f->lie[k]))
            return false;
    }
    return true;
}

/* ---- rows ---- */

static uint32_t add_row(struct condense *c, uint32_t of, uint32_t birth, uint64_t size)
{
    struct tenants *list = c->list;
    uint32_t row = list->count++;
    list->birth[row] = birth;
    list->class_of[row] = c->in->class_of[of];
    list->size[row] = size;
    c->arena->twin[row] = TENANTS_NEVER;
    return row;
}

static uint32_t add_spot(struct condense *c, uint32_t row, uint64_t step)
{
    uint32_t spot = c->arena->spot_count++;
    c->arena->spots[spot] = (struct stretch_place){
        .row = row, .other = row, .half = UINT32_MAX, .turns = 1, .step = step};
    return spot;
}

/* Whom they meet in the period of their births, and in the next. */
static uint32_t add_shared(struct condense *c, const struct family *f)
{
    const struct stretch *s = c->s;
    const struct stretch_block *a = &s->block[f->span->a], *b = &s->block[f->span->b];
    uint32_t row = add_row(c, f->x, a->op + f->slot, c->in->size[f->x]);
    uint32_t next = add_row(c, f->x, b->op + f->slot, c->in->size[f->x]);
    uint32_t *end = c->list->end + (size_t)row * c->classes;
    uint32_t *next_end = c->list->end + (size_t)next * c->classes;
    for (uint32_t k = 0; k < c->classes; k++) {
        struct lie lie = f->lie[k];
        if (lie.periods == SPANS_APART) {
            end[k] = next_end[k] = spans_later(f->apart[k], f->span->behind);
        } else if (lie.periods == 0) {
            end[k] = a->op + lie.slot;
            next_end[k] = b->op + lie.slot;
        } else {
            end[k] = lie.periods == 1 ? b->op + lie.slot : f->span->behind;
            next_end[k] = f->span->behind;
            if (f->last != IR_NONE)
                next_end[k] = spans_later(next_end[k], spans_end(c->spans, f->span->high - 1,
                                                                 tenants_ends(c->in, f->last)[k]));
        }
    }
    c->arena->twin[row] = next;
    c->arena->twin[next] = row;
    return row;
}

static void raise_ends(const struct condense *c, uint32_t row, const struct family *f, bool last)
{
    uint32_t *end = c->list->end + (size_t)row * c->classes;
    for (uint32_t k = 0; k < c->classes; k++) {
        end[k] = spans_later(end[k], f->apart[k]);
        if (last && f->last != IR_NONE)
            end[k] = spans_later(
                end[k], spans_end(c->spans, f->span->high - 1, tenants_ends(c->in, f->last)[k]));
    }
}

/* All of them in one; or (not last) all but that of the last block. */
static uint32_t add_together(struct condense *c, const struct family *f, uint64_t places, bool last)
{
    const struct stretch_block *a = &c->s->block[f->span->a];
    uint32_t row = add_row(c, f->x, a->op + f->slot, places * c->in->size[f->x]);
    uint32_t *end = c->list->end + (size_t)row * c->classes;
    for (uint32_t k = 0; k < c->classes; k++)
        end[k] = f->span->behind;
    raise_ends(c, row, f, last);
    return row;
}

/* One that nobody stands for, in the first alike block, in the last one, or in none: then and there. */
static void add_there(struct condense *c, uint32_t block, uint32_t w, uint32_t slot)
{
    const struct stretch *s = c->s;
    const struct stretch_block *of = &s->block[block];
    const struct stretch_span *span = of->run != IR_NONE ? &c->spans->span[of->run] : NULL;
    bool first = span && block == span->low, last = span && block + 1 == span->high;
    uint32_t birth = c->in->birth[w];
    if (first)
        birth = s->block[span->a].op + slot;
    else if (last && slot == birth - of->op)
        birth = s->block[span->b].op + slot;
    uint32_t row = add_row(c, w, birth, c->in->size[w]);
    uint32_t *to = c->list->end + (size_t)row * c->classes;
    const uint32_t *end = tenants_ends(c->in, w);
    for (uint32_t k = 0; k < c->classes; k++) {
        to[k] = spans_end(c->spans, block, end[k]);
        if (!first)
            continue;
        struct lie lie = spans_lie(c->spans, span, block, end[k]);
        if (lie.periods == 1)
            to[k] = s->block[span->b].op + lie.slot;
        else if (lie.periods > 1 || lie.periods == SPANS_APART) /* it meets all of a period */
            to[k] = spans_later(to[k], s->block[span->b].op + slot);
    }
    c->arena->spot[w] = add_spot(c, row, c->in->size[w]);
}

/* And those of blocks in between, which may be any of a run's, at some time of them. */
static void add_alone(struct condense *c, uint32_t block, uint32_t w)
{
    const struct stretch_block *of = &c->s->block[block];
    const struct stretch_span *span = of->run != IR_NONE ? &c->spans->span[of->run] : NULL;
    bool alike = span && spans_alike(span, block);
    uint32_t slot = c->in->birth[w] - of->op;
    if (alike && slot > c->spans->alike_ops[block])
        slot = c->spans->alike_ops[block];
    c->arena->place[w] = 0;
    if (!alike || block == span->low || block + 1 == span->high) {
        add_there(c, block, w, slot);
        return;
    }
    struct family f = {
        .span = span, .x = w, .slot = slot, .last = IR_NONE, .lie = c->lie, .apart = c->apart};
    f.places = 1;
    for (uint32_t k = 0; k < c->classes; k++) {
        uint32_t end = tenants_ends(c->in, w)[k], places;
        f.lie[k] = spans_lie(c->spans, span, block, end);
        f.apart[k] = f.lie[k].periods == SPANS_APART ? spans_end(c->spans, block, end) : 0;
        places = places_of(f.lie[k], slot);
        f.places = k == c->in->class_of[w] ? places : f.places;
    }
    uint32_t row = f.places == 1 ? add_shared(c, &f) : add_together(c, &f, 1, true);
    c->arena->spot[w] = add_spot(c, row, c->in->size[w]);
}

/* ---- the families of a run ---- */

/* Finds a family, and those of it in the short list: their place tells how many come before. */
static bool find_family(struct condense *c, struct family *f)
{
    struct stretch_arena *arena = c->arena;
    const struct stretch_span *span = f->span;
    f->last = IR_NONE;
    if (!look_at(c, f))
        return false;
    for (uint32_t block = span->low; block < span->high; block++) {
        uint32_t w = c->spans->first[block] + f->i;
        if (f->i >= c->spans->alike_tenants[block])
            continue;
        arena->spot[w] = IR_NONE;
        if (block != span->a && !is_like(c, f, block, w))
            continue;
        arena->spot[w] = f->x;
        arena->place[w] = f->count++;
        if (block + 1 == span->high)
            f->last = w;
        if (block + 1 == span->high && f->places > 1)
            break; /* where it ends is asked by itself */
        for (uint32_t k = 0; !f->here && k < c->classes; k++)
            if (f->lie[k].periods == SPANS_APART || f->places > 1)
                f->apart[k] =
                    spans_later(f->apart[k], spans_end(c->spans, block, tenants_ends(c->in, w)[k]));
    }
    return true;
}

/* Families whose tenants live for little more than a period: all those of one size take turns at one
 * more place than there are of them, or a few. The k-th birth of all takes place k modulo the places. */
struct pool {
    uint32_t families, places;
};

static bool goes_with(const struct condense *c, const struct family *f, const struct family *g)
{
    return g->places > 1 && g->places != UINT32_MAX && c->in->size[f->x] == c->in->size[g->x] &&
           c->in->class_of[f->x] == c->in->class_of[g->x];
}

static struct pool find_pool(const struct condense *c, struct family *family, uint32_t first,
                             const struct family **member)
{
    struct pool pool = {0};
    for (uint32_t i = first; i < family[first].span->tenants; i++)
        if (goes_with(c, &family[first], &family[i]) && family[i].pool == IR_NONE) {
            family[i].pool = first;
            member[pool.families++] = &family[i];
        }
    bool free_again = false;
    for (pool.places = pool.families + 1; !free_again; pool.places += !free_again) {
        free_again = true;
        for (uint32_t i = 0; i < pool.families; i++) {
            uint32_t then = i + pool.places, slot = member[then % pool.families]->slot;
            struct lie end = member[i]->lie[c->in->class_of[member[i]->x]];
            struct lie birth = {(int32_t)(then / pool.families), slot};
            free_again &= lie_no_later(end, birth);
        }
    }
    return pool;
}

/* Two halves are rows of their own: the one of the last block's may stay much longer. */
static void add_pool(struct condense *c, const struct family **member, struct pool pool)
{
    const struct family *f = member[0];
    struct stretch_arena *arena = c->arena;
    bool halves = pool.places == 2 * pool.families;
    uint32_t last = spans_period(c->spans, f->span, f->span->high - 1) % 2, row[2];
    row[0] = row[1] =
        add_together(c, f, halves ? pool.families : pool.places, !halves || last == 0);
    if (halves)
        row[1] = add_together(c, f, pool.families, last == 1);
    uint32_t spot = add_spot(c, row[0], c->in->size[f->x]);
    arena->spots[spot].other = row[1];
    arena->spots[spot].half = halves ? pool.families : UINT32_MAX;
    arena->spots[spot].turns = pool.places;
    arena->spots[spot].each = pool.families;
    for (uint32_t i = 0; i < pool.families; i++) {
        raise_ends(c, row[0], member[i], !halves || last == 0);
        raise_ends(c, row[1], member[i], !halves || last == 1);
        for (uint32_t block = f->span->low; block < f->span->high; block++) {
            uint32_t w = c->spans->first[block] + member[i]->i;
            if (member[i]->i >= c->spans->alike_tenants[block] || arena->spot[w] == IR_NONE)
                continue;
            arena->spot[w] = spot;
            arena->place[w] =
                (spans_period(c->spans, f->span, block) * pool.families + i) % pool.places;
        }
    }
}

/* When families of a pool live for nearly two periods, all of them have one half of its room, and the
 * other half is free from the last end of those of the period before to the first birth of the next. Who
 * lives no longer than that may stay there, and changes halves with them. */
struct lodging {
    const struct family *host; /* the first born */
    struct lie free;           /* from here on, to the host's birth in the next period */
    uint64_t size;
    uint32_t guests;
    struct family *guest[GUESTS_MAX];
};

static bool may_stay(const struct condense *c, const struct lodging *l, const struct family *f)
{
    uint32_t class = c->in->class_of[l->host->x];
    struct lie birth = {1, f->slot}, next = {1, l->host->slot};
    return f->places == 1 && f->host == IR_NONE && c->in->class_of[f->x] == class &&
           c->in->size[f->x] <= l->size && lie_no_later(l->free, birth) &&
           f->slot > l->host->slot && lie_no_later(f->lie[class], next);
}

/* The lowest room that no guest has at the same time. */
static bool take_in(const struct condense *c, struct lodging *l, struct family *f)
{
    uint32_t class = c->in->class_of[f->x];
    uint64_t at = 0, size = c->in->size[f->x];
    for (uint32_t i = 0; i < l->guests;) {
        const struct family *g = l->guest[i++];
        struct lie mine = {0, f->slot}, its = {0, g->slot};
        bool apart = lie_no_later(f->lie[class], its) || lie_no_later(g->lie[class], mine);
        if (apart || at + size <= g->inner || g->inner + c->in->size[g->x] <= at)
            continue;
        at = g->inner + c->in->size[g->x];
        i = 0;
    }
    if (at + size > l->size)
        return false;
    f->inner = at;
    l->guest[l->guests++] = f;
    return true;
}

/* The large ones first, by halves of the room. */
static void find_guests(const struct condense *c, struct family *family,
                        const struct family **member, struct pool pool)
{
    const struct family *host = member[0];
    uint32_t class = c->in->class_of[host->x];
    struct lodging l = {.host = host, .size = pool.families * c->in->size[host->x]};
    if (pool.places != 2 * pool.families)
        return;
    for (uint32_t i = 0; i < pool.families; i++)
        if (i == 0 || lie_no_later(l.free, member[i]->lie[class]))
            l.free = member[i]->lie[class];
    if (l.free.periods != 1)
        return;
    uint64_t least = l.size;
    for (int half = 0; half < GUEST_HALVES; half++, least /= 2)
        for (uint32_t i = 0; i < host->span->tenants && l.guests < GUESTS_MAX; i++)
            if (c->in->size[family[i].x] > least / 2 && may_stay(c, &l, &family[i]) &&
                take_in(c, &l, &family[i]))
                family[i].host = c->arena->spot_count - 1;
}

static uint32_t add_guest(struct condense *c, const struct family *f)
{
    struct stretch_place host = c->arena->spots[f->host];
    uint32_t spot = add_spot(c, host.row, 0);
    c->arena->spots[spot].other = host.other;
    c->arena->spots[spot].half = 1;
    c->arena->spots[spot].inner = f->inner;
    raise_ends(c, host.row, f, true);
    raise_ends(c, host.other, f, true);
    for (uint32_t block = f->span->low; block < f->span->high; block++)
        if (f->i < c->spans->alike_tenants[block])
            c->arena->place[c->spans->first[block] + f->i] =
                (spans_period(c->spans, f->span, block) + 1) % 2;
    return spot;
}

static void add_family(struct condense *c, const struct family *f)
{
    struct stretch_arena *arena = c->arena;
    uint32_t more = c->s->left_out.storeys;
    bool stay = f->places == UINT32_MAX, guest = f->host != IR_NONE;
    uint32_t spot;
    if (guest)
        spot = add_guest(c, f);
    else if (stay)
        spot = add_spot(c, add_together(c, f, f->count + more, true), c->in->size[f->x]);
    else
        spot = add_spot(c, add_shared(c, f), c->in->size[f->x]);
    arena->spots[spot].turns = guest ? 2 : stay ? UINT32_MAX : 1;
    arena->spots[spot].each = 1;
    for (uint32_t block = f->span->low; block < f->span->high; block++) {
        uint32_t w = c->spans->first[block] + f->i;
        if (f->i >= c->spans->alike_tenants[block] || arena->spot[w] == IR_NONE)
            continue;
        arena->spot[w] = spot;
        if (stay)
            arena->place[w] += block > f->span->a ? more : 0;
        else if (!guest)
            arena->place[w] = 0;
    }
}

static bool add_families(struct condense *c, const struct stretch_span *span)
{
    uint32_t count = span->tenants;
    struct family *family = heap_zalloc(count, sizeof *family);
    struct lie *lie = heap_alloc((size_t)count * c->classes, sizeof *lie);
    uint32_t *apart = heap_alloc((size_t)count * c->classes, sizeof *apart);
    const struct family **member = heap_alloc(count, sizeof(struct family *));
    bool right = true;
    for (uint32_t i = 0; right && i < count; i++) {
        family[i] = (struct family){.span = span,
                                    .i = i,
                                    .x = c->spans->first[span->a] + i,
                                    .pool = IR_NONE,
                                    .host = IR_NONE,
                                    .lie = lie + (size_t)i * c->classes,
                                    .apart = apart + (size_t)i * c->classes};
        right = find_family(c, &family[i]);
        arena_hold_copies(c->change, c->spans, span, i);
    }
    for (uint32_t i = 0; right && i < count; i++)
        if (goes_with(c, &family[i], &family[i]) && family[i].pool == IR_NONE) {
            struct pool pool = find_pool(c, family, i, member);
            add_pool(c, member, pool);
            find_guests(c, family, member, pool);
        }
    for (uint32_t i = 0; right && i < count; i++)
        if (family[i].pool == IR_NONE)
            add_family(c, &family[i]);
    for (uint32_t block = span->low; right && block < span->high; block++)
        for (uint32_t i = 0; i < c->spans->alike_tenants[block]; i++)
            if (c->arena->spot[c->spans->first[block] + i] == IR_NONE)
                add_alone(c, block, c->spans->first[block] + i);
    free(family);
    free(lie);
    free(apart);
    free(member);
    return right;
}

/* ---- all of it ---- */

/* Every tenant has one row, or two; those like another none. */
static void reserve(struct stretch_arena *a)
{
    uint32_t rows = 2 * a->in->count;
    struct tenants *list = &a->list;
    list->classes = a->in->classes;
    list->begin = a->in->begin;
    list->ops = a->in->ops;
    list->count = 0;
    list->capacity = rows;
    list->birth = heap_realloc(list->birth, rows, sizeof *list->birth);
    list->class_of = heap_realloc(list->class_of, rows, sizeof *list->class_of);
    list->end = heap_realloc(list->end, (size_t)rows * list->classes, sizeof *list->end);
    list->size = heap_realloc(list->size, rows, sizeof *list->size);
    list->offset = heap_realloc(list->offset, rows, sizeof *list->offset);
    a->twin = heap_realloc(a->twin, rows, sizeof *a->twin);
    a->spot = heap_realloc(a->spot, a->in->count, sizeof *a->spot);
    a->place = heap_realloc(a->place, a->in->count, sizeof *a->place);
    a->spots = heap_realloc(a->spots, rows, sizeof *a->spots);
    a->spot_count = 0;
}

static bool add_block(struct condense *c, uint32_t block)
{
    uint32_t run = c->s->block[block].run, w = c->spans->first[block];
    const struct stretch_span *span = run != IR_NONE ? &c->spans->span[run] : NULL;
    bool right = true;
    if (span && block == span->a)
        right = add_families(c, span);
    if (span && spans_alike(span, block))
        w += c->spans->alike_tenants[block];
    for (; right && w < c->spans->first[block + 1]; w++)
        add_alone(c, block, w);
    return right;
}

bool stretch_arena_make(struct stretch_arena *a, const struct tenants *in, const struct stretch *s)
{
    struct condense c = {
        .arena = a, .s = s, .in = in, .list = &a->list, .spans = &a->spans, .classes = in->classes};
    a->s = s;
    a->in = in;
    a->list.count = 0;
    a->held = 0;
    if (in->count == 0)
        return true;
    spans_release(&a->spans);
    bool right = spans_find(&a->spans, in, s);
    c.change = heap_zalloc((size_t)s->in->op.count + 1, sizeof *c.change);
    c.lie = heap_alloc(c.classes, sizeof *c.lie);
    c.apart = heap_alloc(c.classes, sizeof *c.apart);
    reserve(a);
    for (uint32_t b = 0; right && b < s->block_count; b++)
        right = add_block(&c, b);
    if (right) {
        a->held = arena_most_held(in, in->first_end, c.change);
        memset(c.change, 0, ((size_t)in->ops + 1) * sizeof *c.change);
        a->least = arena_most_held(&a->list, NULL, c.change);
    }
    free(c.change);
    free(c.lie);
    free(c.apart);
    return right;
}
