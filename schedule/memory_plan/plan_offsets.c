/* Plans offsets in one arena for each role and memory. Persistent buffers lie at the start of an arena, and the others
 * are packed after them. The role with the largest arena decides how much memory is needed, so only that role is packed
 * carefully, and the others quickly. */
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/analysis/find_repeats.h"
#include "schedule/analysis/first_uses.h"
#include "schedule/analysis/liveness.h"
#include "schedule/memory_plan/pack.h"

#include <stdlib.h>

enum { WASTE_PARTS = 128 }; /* an arena may waste 1 part in 128 of the lower bound */

/* Ways to pack, in the order in which they are tried. Each of them wastes least in some schedules (docs/ir.md,
 * "Lifetimes"). */
enum packing_method { WAY_FIRST_FIT, WAY_BEST_FIT, WAY_BY_SIZE, WAY_COUNT };

/* Gives offsets to the live ranges of one memory, after `base` bytes of persistent buffers, and sets the figures of
 * this memory. tight: tries the ways to pack until one wastes little, and takes the best; false: uses only the
 * first. */
static void plan_offsets_of_memory(struct ir *ir, struct live_ranges *t, bool tight, int memory,
                                   uint64_t base, struct offsets_memory_figures *figures)
{
    uint64_t held = t->range_count > 0 ? live_ranges_max_live_bytes(t) : 0;
    uint64_t enough = held + (base + held) / WASTE_PARTS,
             least = t->range_count > 0 ? UINT64_MAX : 0;
    int ways = tight ? WAY_COUNT : WAY_FIRST_FIT + 1;
    for (int way = 0; way < ways && least > enough; way++) {
        enum pack_fit fit = way == WAY_BEST_FIT ? PACK_BEST_FIT : PACK_FIRST_FIT;
        uint64_t top = way == WAY_BY_SIZE ? pack_by_size(t, enough) : pack_in_order(t, fit, least);
        for (uint32_t i = 0; top < least && i < t->range_count; i++)
            if (t->buffer[i] != IR_NONE)
                ir->buffer.offset[t->buffer[i]] = base + t->offset_bytes[i];
        least = top < least ? top : least;
    }
    figures->planned_bytes[memory] = base + least;
    figures->live_bytes[memory] = base + t->peak_live_bytes;
    figures->max_live_bytes[memory] = base + held;
}

/* Places the persistent buffers of a role at the start of the memories that are planned, and adds their bytes to base.
 * The other buffers of the role get offset UINT64_MAX. */
static void place_persistent(struct ir *ir, uint32_t role, unsigned memories,
                             uint64_t base[MEMORY_COUNT])
{
    for (uint32_t buffer = 0; buffer < ir->buffer.count; buffer++) {
        if (ir->buffer.role[buffer] != role)
            continue;
        ir->buffer.offset[buffer] = UINT64_MAX;
        if (!liveness_is_persistent(ir, buffer) || !(memories >> ir->buffer.memory[buffer] & 1))
            continue;
        uint64_t *end = &base[ir->buffer.memory[buffer]];
        ir->buffer.offset[buffer] = *end;
        *end += repeats_count_buffer_instances(ir, buffer) * live_ranges_aligned_bytes(ir, buffer);
    }
}

bool offsets_plan_role(struct ir *ir, uint32_t role, const struct order *order,
                       const struct first_uses *first_uses, struct offsets_scope scope,
                       struct offsets_memory_figures *figures)
{
    struct order own_order = {0};
    struct first_uses own_first_uses = {0};
    struct live_ranges live_ranges = {0};
    uint64_t base[MEMORY_COUNT] = {0};
    bool is_planned = true;
    place_persistent(ir, role, scope.memory_mask, base);
    if (role >= ir->role_count) { /* a schedule without ops may have buffers and no role */
        for (int m = 0; m < MEMORY_COUNT; m++)
            figures->planned_bytes[m] = figures->live_bytes[m] = figures->max_live_bytes[m] =
                base[m];
        return true;
    }
    if (!order) {
        order_compute_clocks_of_role(&own_order, ir, role);
        first_uses_of_role(&own_first_uses, ir, &own_order);
        order = &own_order;
        first_uses = &own_first_uses;
    }
    for (int m = 0; m < MEMORY_COUNT && is_planned; m++) {
        if (!(scope.memory_mask >> m & 1))
            continue;
        live_ranges_of(&live_ranges, ir, order, first_uses, (uint8_t)m);
        is_planned = ir->repeats.copies_per_gap == 0 || live_ranges.range_count == 0 ||
                     live_ranges_expand_repeats(&live_ranges, &ir->repeats, role);
        if (is_planned)
            plan_offsets_of_memory(ir, &live_ranges, scope.is_tight, m, base[m], figures);
    }
    live_ranges_release(&live_ranges);
    first_uses_release(&own_first_uses);
    order_release(&own_order);
    return is_planned;
}

/* ---- roles, one after another ---- */

static uint32_t role_with_largest_arena(const struct offsets_memory_figures *of, uint32_t roles,
                                        int memory)
{
    uint32_t most = 0;
    for (uint32_t role = 1; role < roles; role++)
        if (of[role].planned_bytes[memory] > of[most].planned_bytes[memory])
            most = role;
    return most;
}

void offsets_plan(struct ir *ir, struct offsets_memory_figures *figures)
{
    uint32_t roles = ir->role_count > 0 ? ir->role_count : 1;
    struct offsets_memory_figures *of = heap_zalloc(roles, sizeof *of);
    for (uint32_t role = 0; role < roles; role++)
        offsets_plan_role(ir, role, NULL, NULL,
                          (struct offsets_scope){OFFSETS_ALL_MEMORIES, .is_tight = roles == 1},
                          &of[role]);
    if (roles > 1)
        offsets_replan_largest(ir, OFFSETS_ALL_MEMORIES, of);
    for (int m = 0; m < MEMORY_COUNT; m++) {
        const struct offsets_memory_figures *most = &of[role_with_largest_arena(of, roles, m)];
        ir->planned_bytes[m] = most->planned_bytes[m];
        if (figures == NULL)
            continue;
        figures->planned_bytes[m] = most->planned_bytes[m];
        figures->live_bytes[m] = most->live_bytes[m];
        figures->max_live_bytes[m] = most->max_live_bytes[m];
    }
    free(of);
}

void offsets_replan_largest(struct ir *ir, unsigned memories, struct offsets_memory_figures *of)
{
    bool *tight = heap_zalloc(ir->role_count, sizeof *tight);
    for (int m = 0; m < MEMORY_COUNT; m++)
        for (;;) {
            uint32_t role = role_with_largest_arena(of, ir->role_count, m);
            const struct offsets_memory_figures *most = &of[role];
            if (tight[role] || most->planned_bytes[m] <=
                                   most->max_live_bytes[m] + most->max_live_bytes[m] / WASTE_PARTS)
                break;
            offsets_plan_role(ir, role, NULL, NULL,
                              (struct offsets_scope){memories, .is_tight = true}, &of[role]);
            tight[role] = true;
        }
    for (int m = 0; m < MEMORY_COUNT; m++)
        ir->planned_bytes[m] = of[role_with_largest_arena(of, ir->role_count, m)].planned_bytes[m];
    free(tight);
}
