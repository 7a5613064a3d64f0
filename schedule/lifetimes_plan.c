/* Offsets, one arena per role and memory. Persistent buffers lie at its start; the others are
 * packed behind them by the cheapest rule that wastes next to nothing, else by the best. */
#include "schedule/births.h"
#include "schedule/lifetimes.h"
#include "schedule/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    WASTE_PARTS = 128,   /* up to 1 part in so many of what is held may be wasted */
    MUCH_PARTS = 32,     /* more than 1 part in so many is much */
    BY_SIZE_MAX = 10000, /* tenants; more of them are not packed by size, which is quadratic */
    ROUNDS_MAX = 15,     /* of packing by size, as long as they look at few pairs: */
    PAIRS_MAX = 20000000,
};

struct plan {
    struct ir *ir;
    uint64_t alignment;
    const struct order *order;
    struct births births;
    struct tenants tenants;
    uint64_t *best; /* offsets of the best packing so far */
    uint64_t best_top;
    uint32_t best_capacity;
};

static uint64_t rounded(const struct plan *p, uint32_t buffer)
{
    uint64_t bytes = ir_buffer_bytes(p->ir, (buffer_id){buffer});
    return (bytes + p->alignment - 1) & ~(p->alignment - 1);
}

/* Remembers the offsets of a packing that takes less than all before. */
static void settle_for(struct plan *p, uint64_t top)
{
    struct tenants *t = &p->tenants;
    if (top >= p->best_top)
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

/* The largest first; then again and again, those first that stuck out of the room there was. */
static void pack_by_size(struct plan *p, uint64_t enough)
{
    struct tenants *t = &p->tenants;
    double *weight = heap_alloc(t->count, sizeof *weight);
    uint64_t pairs = (uint64_t)t->count * t->count;
    for (uint32_t i = 0; i < t->count; i++)
        weight[i] = (double)t->size[i];
    for (uint32_t round = 0; round == 0 || (round + 1) * pairs <= PAIRS_MAX; round++) {
        uint64_t top = pack_by_weight(t, weight);
        for (uint32_t i = 0; i < t->count; i++)
            if (t->offset[i] + t->size[i] > enough)
                weight[i] *= 2;
        settle_for(p, top);
        if (top <= enough || round == ROUNDS_MAX)
            break;
    }
    free(weight);
}

/* Fills p->best with offsets behind the persistent buffers, whose bytes are `base`. */
static void pack(struct plan *p, uint64_t base)
{
    struct tenants *t = &p->tenants;
    uint64_t enough = t->held + (base + t->held) / WASTE_PARTS;
    p->best_top = UINT64_MAX;
    settle_for(p, pack_in_order(t, p->order, PACK_LOWEST));
    /* Once more is much for a large schedule, unless it may help much. */
    uint64_t much = t->count <= BY_SIZE_MAX ? enough : t->held + (base + t->held) / MUCH_PARTS;
    if (p->best_top > much)
        settle_for(p, pack_in_order(t, p->order, PACK_TIGHTEST));
    if (p->best_top > enough && t->count <= BY_SIZE_MAX)
        pack_by_size(p, enough);
}

/* One arena; its figures when it is the largest of its memory. */
static void plan_arena(struct plan *p, uint8_t memory, uint64_t base,
                       struct lifetimes_figures *most)
{
    struct tenants *t = &p->tenants;
    tenants_of(t, p->ir, p->order, &p->births, memory, p->alignment);
    if (t->count > 0)
        pack(p, base);
    for (uint32_t i = 0; i < t->count; i++)
        p->ir->buffer.offset[t->buffer[i]] = base + p->best[i];
    uint64_t top = t->count > 0 ? p->best_top : 0;
    if (base + top <= most->arena[memory])
        return;
    most->arena[memory] = base + top;
    most->live[memory] = base + t->live;
    most->held[memory] = base + t->held;
}

/* Persistent buffers of one role, or of all (IR_NONE); base[role * MEMORY_COUNT + memory] is where
 * they end. */
static void place_persistent(struct plan *p, uint32_t role, uint64_t *base)
{
    struct ir *ir = p->ir;
    for (uint32_t buffer = 0; buffer < ir->buffer.count; buffer++) {
        if (role != IR_NONE && ir->buffer.role[buffer] != role)
            continue;
        ir->buffer.offset[buffer] = UINT64_MAX;
        if (!lifetimes_persistent(ir, buffer))
            continue;
        uint64_t *end =
            &base[(uint32_t)ir->buffer.role[buffer] * MEMORY_COUNT + ir->buffer.memory[buffer]];
        ir->buffer.offset[buffer] = *end;
        *end += rounded(p, buffer);
    }
}

static void plan_role(struct plan *p, uint32_t role, const uint64_t *base,
                      struct lifetimes_figures *most)
{
    births_of_role(&p->births, p->ir, p->order);
    for (int m = 0; m < MEMORY_COUNT; m++)
        plan_arena(p, (uint8_t)m, base[role * MEMORY_COUNT + m], most);
}

/* `only` with its order, or (IR_NONE) all roles, whose orders are made here. */
static void plan(struct ir *ir, uint32_t only, const struct order *known, uint64_t alignment,
                 struct lifetimes_figures *figures)
{
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    struct lifetimes_figures most = {0};
    struct order made = {0};
    struct plan p = {.ir = ir, .alignment = alignment, .order = known ? known : &made};
    /* A schedule without ops may have buffers and no role yet: they are of role 0. */
    uint64_t *base = heap_zalloc(((size_t)ir->role_count + 1) * MEMORY_COUNT, sizeof *base);
    place_persistent(&p, only, base);
    for (uint32_t role = 0; role <= ir->role_count; role++)
        for (int m = 0; m < MEMORY_COUNT; m++)
            if (base[role * MEMORY_COUNT + m] > most.arena[m])
                most.arena[m] = most.live[m] = most.held[m] = base[role * MEMORY_COUNT + m];
    for (uint32_t role = 0; only == IR_NONE && role < ir->role_count; role++) {
        order_role(&made, ir, role);
        plan_role(&p, role, base, &most);
    }
    if (only != IR_NONE && ir->role_count > 0)
        plan_role(&p, only, base, &most);
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (only == IR_NONE || most.arena[m] > ir->arena_bytes[m])
            ir->arena_bytes[m] = most.arena[m];
    if (figures)
        *figures = most;
    order_release(&made);
    births_release(&p.births);
    tenants_release(&p.tenants);
    free(p.best);
    free(base);
}

void lifetimes_plan(struct ir *ir, uint64_t alignment, struct lifetimes_figures *figures)
{
    plan(ir, IR_NONE, NULL, alignment, figures);
}

void lifetimes_plan_ordered(struct ir *ir, uint32_t role, const struct order *order,
                            uint64_t alignment, struct lifetimes_figures *figures)
{
    plan(ir, role, order, alignment, figures);
}
