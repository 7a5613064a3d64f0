/* Offsets, with one arena per role and memory. Persistent buffers lie at the start of an arena, and the others are
 * packed after them. The role with the largest arena decides how much memory is needed, so only that role is packed
 * well, and the others quickly. */
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/analysis/find_repeats.h"
#include "schedule/analysis/first_uses.h"
#include "schedule/analysis/liveness.h"
#include "schedule/memory_plan/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WASTE_PARTS = 128 }; /* an arena may waste 1 in 128 parts of what is held */

struct offsets_job {
    struct ir *ir;
    uint64_t alignment;
    const struct order *order;
    const struct first_uses *first_uses;
    struct live_ranges live_ranges;
    struct plan_scope scope;
};

/* Ways to pack, in the order in which they are tried. Each of them wastes least in some schedules (docs/ir.md,
 * "Lifetimes"). */
enum way { WAY_FIRST_FIT, WAY_BEST_FIT, WAY_BY_SIZE, WAY_COUNT };

/* Gives offsets to the live ranges in p->live_ranges, after `base` bytes of persistent buffers. */
static void plan_arena(struct offsets_job *p, uint8_t memory, uint64_t base,
                       struct lifetimes_figures *figures)
{
    struct live_ranges *t = &p->live_ranges;
    uint64_t held = t->count > 0 ? live_ranges_held(t) : 0;
    uint64_t enough = held + (base + held) / WASTE_PARTS, least = t->count > 0 ? UINT64_MAX : 0;
    int ways = p->scope.tight ? WAY_COUNT : WAY_FIRST_FIT + 1;
    for (int way = 0; way < ways && least > enough; way++) {
        enum pack_fit fit = way == WAY_BEST_FIT ? PACK_BEST_FIT : PACK_FIRST_FIT;
        uint64_t top = way == WAY_BY_SIZE ? pack_by_size(t, enough) : pack_in_order(t, fit, least);
        for (uint32_t i = 0; top < least && i < t->count; i++)
            if (t->buffer[i] != IR_NONE)
                p->ir->buffer.offset[t->buffer[i]] = base + t->offset[i];
        least = top < least ? top : least;
    }
    figures->arena[memory] = base + least;
    figures->live[memory] = base + t->live;
    figures->held[memory] = base + held;
}

static bool is_planned(const struct offsets_job *p, uint8_t memory)
{
    return (p->scope.memories >> memory & 1) != 0;
}

/* Places the persistent buffers of a role, which lie first; base: where they end. */
static void place_persistent(struct offsets_job *p, uint32_t role, uint64_t base[MEMORY_COUNT])
{
    struct ir *ir = p->ir;
    memset(base, 0, MEMORY_COUNT * sizeof *base);
    for (uint32_t buffer = 0; buffer < ir->buffer.count; buffer++) {
        if (ir->buffer.role[buffer] != role)
            continue;
        ir->buffer.offset[buffer] = UINT64_MAX;
        if (!lifetimes_persistent(ir, buffer) || !is_planned(p, ir->buffer.memory[buffer]))
            continue;
        uint64_t *end = &base[ir->buffer.memory[buffer]];
        uint64_t bytes = ir_buffer_bytes(ir, (buffer_id){buffer});
        ir->buffer.offset[buffer] = *end;
        *end += repeats_of_state(ir, buffer) * ((bytes + p->alignment - 1) & ~(p->alignment - 1));
    }
}

/* ---- roles ---- */

static bool plan_role(struct offsets_job *p, uint32_t role, struct lifetimes_figures *figures)
{
    uint64_t base[MEMORY_COUNT];
    place_persistent(p, role, base);
    if (role >= p->ir->role_count) { /* a schedule without ops: buffers and no role yet */
        for (int m = 0; m < MEMORY_COUNT; m++)
            figures->arena[m] = figures->live[m] = figures->held[m] = base[m];
        return true;
    }
    for (int m = 0; m < MEMORY_COUNT; m++) {
        if (!is_planned(p, (uint8_t)m))
            continue;
        live_ranges_of(&p->live_ranges, p->ir, p->order, p->first_uses, (uint8_t)m, p->alignment);
        if (p->ir->repeats.copies > 0 && p->live_ranges.count > 0 &&
            !live_ranges_repeat(&p->live_ranges, &p->ir->repeats, role))
            return false;
        plan_arena(p, (uint8_t)m, base[m], figures);
    }
    return true;
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
        lifetimes_plan_role(ir, role, NULL, NULL, alignment,
                            (struct plan_scope){PLAN_ALL_MEMORIES, .tight = roles == 1}, &of[role]);
    if (roles > 1)
        lifetimes_tighten(ir, alignment, PLAN_ALL_MEMORIES, of);
    for (int m = 0; m < MEMORY_COUNT; m++) {
        const struct lifetimes_figures *most = &of[largest(of, roles, m)];
        ir->arena_bytes[m] = most->arena[m];
        if (figures == NULL)
            continue;
        figures->arena[m] = most->arena[m];
        figures->live[m] = most->live[m];
        figures->held[m] = most->held[m];
    }
    free(of);
}

bool lifetimes_plan_role(struct ir *ir, uint32_t role, const struct order *order,
                         const struct first_uses *first_uses, uint64_t alignment,
                         struct plan_scope scope, struct lifetimes_figures *figures)
{
    struct order own_order = {0};
    struct first_uses own_first_uses = {0};
    struct offsets_job p = {.ir = ir,
                            .alignment = alignment,
                            .scope = scope,
                            .order = order ? order : &own_order,
                            .first_uses = first_uses ? first_uses : &own_first_uses};
    if (!order && role < ir->role_count) {
        order_role(&own_order, ir, role);
        first_uses_of_role(&own_first_uses, ir, &own_order);
    }
    bool stands = plan_role(&p, role, figures);
    live_ranges_release(&p.live_ranges);
    first_uses_release(&own_first_uses);
    order_release(&own_order);
    return stands;
}

void lifetimes_tighten(struct ir *ir, uint64_t alignment, unsigned memories,
                       struct lifetimes_figures *of)
{
    bool *tight = heap_zalloc(ir->role_count, sizeof *tight);
    for (int m = 0; m < MEMORY_COUNT; m++)
        for (;;) {
            uint32_t role = largest(of, ir->role_count, m);
            const struct lifetimes_figures *most = &of[role];
            if (tight[role] || most->arena[m] <= most->held[m] + most->held[m] / WASTE_PARTS)
                break;
            lifetimes_plan_role(ir, role, NULL, NULL, alignment,
                                (struct plan_scope){memories, .tight = true}, &of[role]);
            tight[role] = true;
        }
    for (int m = 0; m < MEMORY_COUNT; m++)
        ir->arena_bytes[m] = of[largest(of, ir->role_count, m)].arena[m];
    free(tight);
}
