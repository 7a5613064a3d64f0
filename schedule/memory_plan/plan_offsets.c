/* Offsets, one arena per role and memory. Persistent buffers lie at its start; the others are
 * packed behind them by the cheapest rule that wastes next to nothing, else by the best. Of several
 * roles only the one with the largest arena has to be packed well: the others are packed quickly. */
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/analysis/find_repeats.h"
#include "schedule/analysis/first_uses.h"
#include "schedule/analysis/liveness.h"
#include "schedule/memory_plan/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    WASTE_PARTS = 128,   /* up to 1 part in so many of what is held may be wasted */
    MUCH_PARTS = 32,     /* more than 1 part in so many is much */
    BY_SIZE_MAX = 10000, /* live ranges; more of them are not packed by size, which is quadratic */
    TIGHT_LOOKS =
        1000,        /* at holes, for each live range; who needs more is not packed by tightness */
    ROUNDS_MAX = 15, /* of packing by size, as long as they look at few pairs: */
    PAIRS_MAX = 20000000,
};

struct plan {
    struct ir *ir;
    uint64_t alignment;
    const struct order *order;
    const struct first_uses *first_uses;
    struct live_ranges live_ranges;
    uint64_t *best; /* offsets of the best packing so far */
    uint64_t best_top;
    uint32_t best_capacity;
    bool tight;
};

/* Remembers the offsets of a packing that takes less than all before, or no more. */
static void prefer(struct plan *p, uint64_t top)
{
    struct live_ranges *t = &p->live_ranges;
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
    struct live_ranges *t = &p->live_ranges;
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
 * help much. held: live_ranges_held(). */
static uint64_t enough_of(const struct plan *p, uint64_t base, uint64_t held)
{
    uint32_t count = p->live_ranges.count;
    return held + (base + held) / (count <= BY_SIZE_MAX ? WASTE_PARTS : MUCH_PARTS);
}

/* Fills p->best with offsets behind the persistent buffers, whose bytes are `base`. held: live_ranges_held(). */
static void pack(struct plan *p, uint64_t base, uint64_t held)
{
    struct live_ranges *t = &p->live_ranges;
    uint32_t count = t->count;
    uint64_t enough = held + (base + held) / WASTE_PARTS;
    uint64_t much = enough_of(p, base, held);
    uint64_t lowest = pack_in_order(t, PACK_LOWEST, p->tight ? much : UINT64_MAX, NULL);
    p->best_top = UINT64_MAX;
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

/* Gives offsets to the live ranges in p->live_ranges. */
static void plan_arena(struct plan *p, uint8_t memory, uint64_t base,
                       struct lifetimes_figures *figures)
{
    struct live_ranges *t = &p->live_ranges;
    uint64_t held = t->count > 0 ? live_ranges_held(t) : 0;
    if (t->count > 0)
        pack(p, base, held);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->buffer[i] != IR_NONE)
            p->ir->buffer.offset[t->buffer[i]] = base + p->best[i];
    figures->arena[memory] = base + (t->count > 0 ? p->best_top : 0);
    figures->live[memory] = base + t->live;
    figures->held[memory] = base + held;
    figures->enough[memory] = base + enough_of(p, base, held);
}

/* A buffer that is row `of` of *ir; `to` in the list that is planned. */
static void place_behind(struct plan *p, const struct ir *ir, uint32_t of, uint32_t to,
                         uint64_t base[MEMORY_COUNT])
{
    uint64_t *end = &base[ir->buffer.memory[of]], bytes = ir_buffer_bytes(ir, (buffer_id){of});
    p->ir->buffer.offset[to] = *end;
    *end += repeats_of_state(ir, of) * ((bytes + p->alignment - 1) & ~(p->alignment - 1));
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

/* ---- roles ---- */

static bool plan_role(struct plan *p, uint32_t role, struct lifetimes_figures *figures)
{
    uint64_t base[MEMORY_COUNT];
    place_persistent(p, role, base);
    if (role >= p->ir->role_count) { /* a schedule without ops: buffers and no role yet */
        for (int m = 0; m < MEMORY_COUNT; m++)
            figures->arena[m] = figures->live[m] = figures->held[m] = figures->enough[m] = base[m];
        return true;
    }
    for (int m = 0; m < MEMORY_COUNT; m++) {
        live_ranges_of(&p->live_ranges, p->ir, p->order, p->first_uses, (uint8_t)m, p->alignment);
        if (p->ir->repeats.copies > 0 && p->live_ranges.count > 0 &&
            !live_ranges_repeat(&p->live_ranges, &p->ir->repeats, role))
            return false;
        plan_arena(p, (uint8_t)m, base[m], figures);
    }
    return true;
}

static void plan_release(struct plan *p)
{
    live_ranges_release(&p->live_ranges);
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

bool lifetimes_plan_role(struct ir *ir, uint32_t role, const struct order *order,
                         const struct first_uses *first_uses, uint64_t alignment, bool tight,
                         struct lifetimes_figures *figures)
{
    struct order own_order = {0};
    struct first_uses own_first_uses = {0};
    struct plan p = {.ir = ir,
                     .alignment = alignment,
                     .tight = tight,
                     .order = order ? order : &own_order,
                     .first_uses = first_uses ? first_uses : &own_first_uses};
    if (!order && role < ir->role_count) {
        order_role(&own_order, ir, role);
        first_uses_of_role(&own_first_uses, ir, &own_order);
    }
    bool stands = plan_role(&p, role, figures);
    plan_release(&p);
    first_uses_release(&own_first_uses);
    order_release(&own_order);
    return stands;
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
