/* Offsets, one arena per role and memory. Persistent buffers lie at its start; the others are
 * packed behind them by the cheapest rule that wastes next to nothing, else by the best. Of several
 * roles only the one with the largest arena has to be packed well: the others are packed quickly. Long
 * lists whose layers were left out are packed by periods. */
#include "schedule/passes/births.h"
#include "schedule/passes/lifetimes.h"
#include "schedule/passes/pack.h"
#include "schedule/stretch/arena.h"
#include "schedule/stretch/tenants.h"
#include "schedule/stretch/units_tenants.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    WASTE_PARTS = 128,   /* up to 1 part in so many of what is held may be wasted */
    MUCH_PARTS = 32,     /* more than 1 part in so many is much */
    BY_SIZE_MAX = 10000, /* tenants; more of them are not packed by size, which is quadratic */
    TIGHT_LOOKS = 1000,  /* at holes, for each tenant; who needs more is not packed by tightness */
    ROUNDS_MAX = 15,     /* of packing by size, as long as they look at few pairs: */
    PAIRS_MAX = 20000000,
    LARGE_PARTS = 16,   /* what is placed first by life: more than 1 part in so many */
    PERIODS_PARTS = 64, /* up to 1 part in so many may be wasted by packing periods, */
    LONG_PARTS = 16,    /* and 1 in so many where there are */
    LONG_MIN = 50000,   /* tenants, which are not packed that well one by one either */
};

struct plan {
    struct ir *ir;
    uint64_t alignment;
    const struct order *order;
    const struct births *births;
    struct tenants tenants;
    uint32_t stand_for; /* how many tenants these stand for; 0: for themselves */
    uint64_t beat;      /* only a packing that takes fewer bytes counts; UINT64_MAX: any */
    uint64_t *best;     /* offsets of the best packing so far */
    uint64_t best_top;
    uint32_t best_capacity;
    bool tight;
};

/* Remembers the offsets of a packing that takes less than all before, or no more. */
static void prefer(struct plan *p, uint64_t top)
{
    struct tenants *t = &p->tenants;
    if (top > p->best_top)
        return;
    if (p->best_capacity < t->capacity) {
        p->best_capacity = t->capacity;
        p->best = heap_realloc(p->best, t->capacity, sizeof *p->best);
    }
    p->best_top = top;
    uint64_t *swap = p->best;
    p->best = t->offset;
    t->offset = swap;
}

static void settle_for(struct plan *p, uint64_t top)
{
    if (top < p->best_top)
        prefer(p, top);
}

/* The largest first; then again and again, those first that stuck out of the room there was. */
static void pack_by_size(struct plan *p, uint64_t enough)
{
    struct tenants *t = &p->tenants;
    double *weight = heap_alloc(t->count, sizeof *weight);
    uint64_t pairs = (uint64_t)t->count * t->count;
    for (uint32_t i = 0; i < t->count; i++)
        weight[i] = (double)t->size[i];
    bool last = false;
    for (uint32_t round = 0; !last; round++) {
        last = round == ROUNDS_MAX || (round + 2) * pairs > PAIRS_MAX;
        uint64_t top = pack_by_weight(t, weight, last ? p->best_top : UINT64_MAX);
        for (uint32_t i = 0; !last && i < t->count; i++)
            if (t->offset[i] + t->size[i] > enough)
                weight[i] *= 2;
        settle_for(p, top);
        last |= top <= enough;
    }
    free(weight);
}

/* Bytes up to which a packing is not looked at again. Once more is much for a large schedule, unless it may
 * help much. held: tenants_held(). */
static uint64_t enough_of(const struct plan *p, uint64_t base, uint64_t held)
{
    uint32_t count = p->stand_for > 0 ? p->stand_for : p->tenants.count;
    return held + (base + held) / (count <= BY_SIZE_MAX ? WASTE_PARTS : MUCH_PARTS);
}

/* Fills p->best with offsets behind the persistent buffers, whose bytes are `base`; where no packing beats
 * p->beat, p->best_top is no less. held: tenants_held(). */
static void pack(struct plan *p, uint64_t base, uint64_t held)
{
    struct tenants *t = &p->tenants;
    uint32_t count = p->stand_for > 0 ? p->stand_for : t->count;
    uint64_t enough = held + (base + held) / WASTE_PARTS;
    uint64_t much = enough_of(p, base, held);
    uint64_t lowest = pack_in_order(t, PACK_LOWEST, p->tight ? much : UINT64_MAX, NULL);
    p->best_top = p->beat;
    if (!p->tight || lowest <= much) {
        settle_for(p, lowest);
    } else {
        uint64_t looks = (uint64_t)TIGHT_LOOKS * t->count;
        settle_for(p, pack_in_order(t, PACK_TIGHTEST, p->best_top, &looks));
        if (p->best_top >= lowest) /* then what was given up may take less, or as little */
            prefer(p, pack_in_order(t, PACK_LOWEST, p->best_top, NULL));
    }
    if (p->tight && p->best_top > enough && count <= BY_SIZE_MAX)
        pack_by_size(p, enough);
}

/* Of the tenants that p->tenants holds. False: it would not beat p->beat. */
static bool plan_arena(struct plan *p, uint8_t memory, uint64_t base,
                       struct lifetimes_figures *figures)
{
    struct tenants *t = &p->tenants;
    uint64_t held = t->count > 0 ? tenants_held(t) : 0;
    if (t->count > 0)
        pack(p, base, held);
    if (t->count > 0 && p->beat != UINT64_MAX && p->best_top >= p->beat)
        return false;
    for (uint32_t i = 0; p->stand_for == 0 && i < t->count; i++)
        p->ir->buffer.offset[t->buffer[i]] = base + p->best[i];
    figures->arena[memory] = base + (t->count > 0 ? p->best_top : 0);
    figures->live[memory] = base + t->live;
    figures->held[memory] = base + held;
    figures->enough[memory] = base + enough_of(p, base, held);
    return true;
}

/* A buffer that is row `of` of *ir; `to` in the list that is planned. */
static void place_behind(struct plan *p, const struct ir *ir, uint32_t of, uint32_t to,
                         uint64_t base[MEMORY_COUNT])
{
    uint64_t *end = &base[ir->buffer.memory[of]], bytes = ir_buffer_bytes(ir, (buffer_id){of});
    p->ir->buffer.offset[to] = *end;
    *end += (bytes + p->alignment - 1) & ~(p->alignment - 1);
}

/* Where the persistent buffers of a role end, which lie first. */
static void place_persistent(struct plan *p, uint32_t role, uint64_t base[MEMORY_COUNT])
{
    struct ir *ir = p->ir;
    memset(base, 0, MEMORY_COUNT * sizeof *base);
    for (uint32_t buffer = 0; buffer < ir->buffer.count; buffer++) {
        if (ir->buffer.role[buffer] != role)
            continue;
        ir->buffer.offset[buffer] = UINT64_MAX;
        if (lifetimes_persistent(ir, buffer))
            place_behind(p, ir, buffer, buffer, base);
    }
}

/* The same of one memory of a role that is being stretched: its states come first, and nothing has an offset yet. */
static uint64_t place_states(struct plan *p, const struct stretch *s, uint8_t memory)
{
    uint64_t base[MEMORY_COUNT] = {0};
    for (uint32_t i = 0; i < s->states; i++)
        if (s->in->buffer.memory[i] == memory)
            place_behind(p, s->in, i, s->to_states + i, base);
    return base[memory];
}

/* ---- a role that was stretched ---- */

/* Once more, those first that stuck out, if that takes less. Returns the bytes taken. */
static uint64_t pack_periods_again(struct stretch_arena *a, bool *first, uint64_t enough,
                                   uint64_t top)
{
    struct tenants *t = &a->list;
    size_t bytes = t->count * sizeof *t->offset;
    uint64_t *offset = heap_alloc(t->count, sizeof *offset);
    memcpy(offset, t->offset, bytes);
    for (uint32_t i = 0; i < t->count; i++)
        first[i] |= t->offset[i] + t->size[i] > enough;
    uint64_t again = pack_by_life(t, a->twin, first, PACK_COARSE, top);
    if (again >= top)
        memcpy(t->offset, offset, bytes);
    free(offset);
    return again < top ? again : top;
}

/* Places the list of an arena by periods, what is large first. Where that wastes much, these by life too, which
 * counts if it takes no more than `little`; else again, while too much is wasted. Returns the bytes taken;
 * UINT64_MAX: much is wasted whatever the order. */
static uint64_t pack_periods(struct stretch_arena *a, uint64_t enough, uint64_t much,
                             uint64_t little)
{
    struct tenants *t = &a->list;
    bool finely = a->least <= little;
    if (a->least > much)
        return UINT64_MAX;
    bool *first = heap_alloc(t->count, sizeof *first);
    for (uint32_t i = 0; i < t->count; i++)
        first[i] = t->size[i] > a->held / LARGE_PARTS;
    uint64_t top = pack_by_life(t, a->twin, first, PACK_COARSE, finely ? much : UINT64_MAX);
    if (finely && top > much) {
        top = pack_by_life(t, a->twin, first, PACK_FINE, little);
        if (top <= little)
            goto out;
        top = pack_by_life(t, a->twin, first, PACK_COARSE, UINT64_MAX);
    }
    if (top > enough)
        top = pack_periods_again(a, first, enough, top);
out:
    free(first);
    return top;
}

/* How many tenants the long list has. */
static uint64_t long_count(const struct stretch *s, const struct tenants *brief)
{
    uint64_t count = brief->count;
    uint32_t at = 0;
    for (uint32_t r = 0; r < s->run_count; r++) {
        const struct stretch_block *block = &s->block[s->run[r].begin + s->run[r].cut - 1];
        while (at < brief->count && brief->birth[at] < block->op)
            at++;
        for (; at < brief->count && brief->birth[at] < block->op + block->ops; at++)
            count += s->left_out.storeys;
    }
    return count;
}

/* One memory's arena. Long lists are packed by periods; where that wastes much, tenant by tenant too. */
static bool plan_stretched(struct plan *p, const struct stretch *s, const struct tenants *brief,
                           uint8_t memory, uint64_t base, struct lifetimes_figures *figures)
{
    struct stretch_arena by_periods = {0};
    uint64_t top = UINT64_MAX, much = 0, count = long_count(s, brief);
    if (p->tight && count > BY_SIZE_MAX && stretch_arena_make(&by_periods, brief, s)) {
        uint64_t held = by_periods.held;
        much = held + (base + held) / (count < LONG_MIN ? PERIODS_PARTS : LONG_PARTS);
        uint64_t enough = held + (base + held) / WASTE_PARTS;
        uint64_t little = held + (base + held) / MUCH_PARTS; /* one by one no more is looked for */
        top = pack_periods(&by_periods, count < LONG_MIN ? enough : much, much,
                           little < much ? little : much);
    }
    bool known = true, periods = top != UINT64_MAX;
    if (!periods || top > much) {
        known = stretch_tenants(&p->tenants, brief, s);
        p->beat = top;
        periods = known && !plan_arena(p, memory, base, figures);
        p->beat = UINT64_MAX;
    }
    if (periods) {
        stretch_arena_write(&by_periods, base);
        figures->arena[memory] = base + top;
        figures->held[memory] = base + by_periods.held;
        figures->enough[memory] = base + much;
    }
    stretch_arena_release(&by_periods);
    return known;
}

/* ---- roles ---- */

static void plan_role(struct plan *p, uint32_t role, struct lifetimes_figures *figures)
{
    uint64_t base[MEMORY_COUNT];
    place_persistent(p, role, base);
    if (role >= p->ir->role_count) { /* a schedule without ops: buffers and no role yet */
        for (int m = 0; m < MEMORY_COUNT; m++)
            figures->arena[m] = figures->live[m] = figures->held[m] = figures->enough[m] = base[m];
        return;
    }
    for (int m = 0; m < MEMORY_COUNT; m++) {
        tenants_of(&p->tenants, p->ir, p->order, p->births, (uint8_t)m, p->alignment);
        plan_arena(p, (uint8_t)m, base[m], figures);
    }
}

static void plan_release(struct plan *p)
{
    tenants_release(&p->tenants);
    free(p->best);
}

/* ---- one role after the other ---- */

static uint32_t largest(const struct lifetimes_figures *of, uint32_t roles, int memory)
{
    uint32_t most = 0;
    for (uint32_t role = 1; role < roles; role++)
        if (of[role].arena[memory] > of[most].arena[memory])
            most = role;
    return most;
}

void lifetimes_plan(struct ir *ir, uint64_t alignment, struct lifetimes_figures *figures)
{
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    uint32_t roles = ir->role_count > 0 ? ir->role_count : 1;
    struct lifetimes_figures *of = heap_zalloc(roles, sizeof *of);
    for (uint32_t role = 0; role < roles; role++)
        lifetimes_plan_role(ir, role, NULL, NULL, alignment, roles == 1, &of[role]);
    if (roles > 1)
        lifetimes_tighten(ir, alignment, of);
    for (int m = 0; m < MEMORY_COUNT; m++) {
        const struct lifetimes_figures *most = &of[largest(of, roles, m)];
        ir->arena_bytes[m] = most->arena[m];
        if (figures == NULL)
            continue;
        figures->arena[m] = most->arena[m];
        figures->live[m] = most->live[m];
        figures->held[m] = most->held[m];
        figures->enough[m] = most->enough[m];
    }
    free(of);
}

void lifetimes_plan_role(struct ir *ir, uint32_t role, const struct order *order,
                         const struct births *births, uint64_t alignment, bool tight,
                         struct lifetimes_figures *figures)
{
    struct order own_order = {0};
    struct births own_births = {0};
    struct plan p = {.ir = ir,
                     .alignment = alignment,
                     .tight = tight,
                     .beat = UINT64_MAX,
                     .order = order ? order : &own_order,
                     .births = births ? births : &own_births};
    if (!order && role < ir->role_count) {
        order_role(&own_order, ir, role);
        births_of_role(&own_births, ir, &own_order);
    }
    plan_role(&p, role, figures);
    plan_release(&p);
    births_release(&own_births);
    order_release(&own_order);
}

bool lifetimes_plan_stretched(const struct stretch *s, const struct order *order,
                              const struct births *births, uint8_t memory, uint64_t alignment,
                              bool tight, struct lifetimes_figures *figures)
{
    struct plan p = {
        .ir = s->out, .alignment = alignment, .tight = tight, .beat = UINT64_MAX, .order = order};
    struct tenants brief = {0};
    tenants_of(&brief, s->in, order, births, memory, alignment);
    bool known = plan_stretched(&p, s, &brief, memory, place_states(&p, s, memory), figures);
    tenants_release(&brief);
    plan_release(&p);
    return known;
}

/* ---- of many micro-batches ---- */

static bool tenants_of_stretched(struct tenants *of, const struct order *order,
                                 const struct births *births, const struct stretch *s,
                                 uint64_t alignment)
{
    struct tenants brief = {0};
    bool known = true;
    for (int m = 0; known && m < MEMORY_COUNT; m++) {
        tenants_of(&brief, s->in, order, births, (uint8_t)m, alignment);
        known = stretch_tenants(&of[m], &brief, s);
    }
    tenants_release(&brief);
    return known;
}

void lifetimes_tenants(struct tenants *of, const struct ir *ir, uint32_t role,
                       const struct order *order, const struct births *births,
                       const struct stretch *stretch, uint64_t alignment)
{
    struct births own_births = {0};
    struct order own_order = {0};
    if (stretch && tenants_of_stretched(of, order, births, stretch, alignment))
        return;
    if (stretch) {
        order_role(&own_order, ir, role);
        births_of_role(&own_births, ir, &own_order);
        order = &own_order;
        births = &own_births;
    }
    for (int m = 0; m < MEMORY_COUNT; m++)
        tenants_of(&of[m], ir, order, births, (uint8_t)m, alignment);
    births_release(&own_births);
    order_release(&own_order);
}

enum {
    COPIES_FIRST = 16,    /* of a period that are packed when there are many more, */
    COPIES_PER_REACH = 6, /* and these for every period that tenants reach over */
    CYCLE_MAX = 64,
};

/* After how many periods tenants lie where they lay: within so many copies before the last, and as long as
 * the first of these and the last still meet tenants of others; 0: never. Who places one tenant after the
 * other goes on so, and what lies anywhere in a longer list lies beside the same as here. */
static uint32_t cycle_of(const struct plan *p, const struct units_tenancy *of, uint32_t periods)
{
    const uint64_t *offset = p->best + of->first;
    for (uint32_t q = 1; q <= CYCLE_MAX && 2 * q + of->reach < periods; q++) {
        uint32_t same = q + of->reach + 1; /* periods that must lie as those q before them do */
        size_t rows = (size_t)same * of->count, to = (size_t)periods * of->count - rows;
        if (memcmp(offset + to, offset + to - (size_t)q * of->count, rows * sizeof *offset) == 0)
            return q;
    }
    return 0;
}

/* Of `copies` copies that were packed `more` are to be told, cycle by cycle. */
static void spread(struct plan *p, const struct units *u, const struct units_tenancy *of,
                   uint32_t periods, uint32_t cycle, uint32_t more, uint64_t base)
{
    const struct tenants *t = &p->tenants;
    uint64_t *offset = p->ir->buffer.offset;
    uint32_t end = of->first + periods * of->count, buffers = units_buffers(u);
    for (uint32_t i = 0; i < t->count; i++)
        offset[t->buffer[i] + (i < end ? 0 : more * buffers)] = base + p->best[i];
    for (uint32_t i = 0; i < more * of->count; i++) {
        uint32_t row = end - cycle * of->count + i % (cycle * of->count);
        uint32_t further = cycle * (i / (cycle * of->count) + 1) * buffers;
        offset[t->buffer[row] + further] = base + p->best[row];
    }
}

static bool plan_units(struct plan *p, const struct units *u, const struct tenants *brief,
                       uint8_t memory, uint64_t base, struct lifetimes_figures *figures)
{
    struct units_tenancy of;
    uint32_t copies = u->more;
    if (!units_tenants(&p->tenants, brief, u, 0, &of))
        return false;
    uint32_t all = brief->count + u->more * of.count;
    if (all > BY_SIZE_MAX && COPIES_FIRST + COPIES_PER_REACH * of.reach < u->more)
        copies = COPIES_FIRST + COPIES_PER_REACH * of.reach;
    for (;;) {
        p->stand_for = copies < u->more ? all : 0;
        if (!units_tenants(&p->tenants, brief, u, copies, &of))
            return false;
        plan_arena(p, memory, base, figures);
        if (copies == u->more)
            return true;
        uint32_t periods = u->ahead.cut + 1 - of.low + copies, cycle = cycle_of(p, &of, periods);
        uint32_t rest = cycle > 0 ? (u->more - copies) % cycle : 0;
        if (cycle > 0 && rest == 0) {
            spread(p, u, &of, periods, cycle, u->more - copies, base);
            return true;
        }
        copies = cycle > 0 ? copies + rest : u->more;
    }
}

bool lifetimes_plan_units(const struct units *u, const struct tenants *of, uint64_t alignment,
                          bool tight, struct lifetimes_figures *figures)
{
    struct plan p = {.ir = u->ir, .alignment = alignment, .tight = tight, .beat = UINT64_MAX};
    uint64_t base[MEMORY_COUNT];
    bool known = true;
    place_persistent(&p, u->role, base);
    for (int m = 0; known && m < MEMORY_COUNT; m++)
        known = plan_units(&p, u, &of[m], (uint8_t)m, base[m], figures);
    plan_release(&p);
    return known;
}

/* Would a role's arenas be the same if it were planned well? */
static bool is_well(const struct lifetimes_figures *of)
{
    bool well = true;
    for (int m = 0; m < MEMORY_COUNT; m++)
        well &= of->arena[m] <= of->enough[m];
    return well;
}

void lifetimes_tighten(struct ir *ir, uint64_t alignment, struct lifetimes_figures *of)
{
    bool *tight = heap_zalloc(ir->role_count, sizeof *tight);
    for (int m = 0; m < MEMORY_COUNT; m++)
        for (;;) {
            uint32_t role = largest(of, ir->role_count, m);
            const struct lifetimes_figures *most = &of[role];
            if (tight[role] || most->arena[m] <= most->held[m] + most->held[m] / WASTE_PARTS)
                break; /* packed well, or to be packed by the quick rule once more */
            if (!is_well(most))
                lifetimes_plan_role(ir, role, NULL, NULL, alignment, true, &of[role]);
            tight[role] = true;
        }
    for (int m = 0; m < MEMORY_COUNT; m++)
        ir->arena_bytes[m] = of[largest(of, ir->role_count, m)].arena[m];
    free(tight);
}
