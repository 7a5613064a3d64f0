#include "sim/uniform/uniform.h"

#include "base/arena.h"
#include "schedule/ir/visible.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The work of all ops that one guard guards. */
struct work_under_guard {
    double flops;
    bool has_noncompute_op; /* the guard has an op that is no computation */
};

static struct work_under_guard *sum_work_by_guard(const struct ir *ir)
{
    struct work_under_guard *work_by_guard =
        heap_zalloc(ir->guard_count + 1u, sizeof *work_by_guard);
    double *flops = ir_flops_by_shape_on_rank(ir, 0);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        uint16_t guard = ir->op.guard[op];
        if (guard == IR_NONE16)
            continue;
        work_by_guard[guard].flops += flops[ir->op.shape[op]];
        work_by_guard[guard].has_noncompute_op |=
            work_kind_info((enum work_kind)ir->op.kind[op])->stream != STREAM_COMPUTE;
    }
    free(flops);
    return work_by_guard;
}

/* True if guard g guards only computation, some other guard passes exactly the ranks that g stops, and the flops of the
 * ops under the two guards differ by at most EVEN_FLOPS_TOLERANCE. */
static bool guard_has_complement(const struct ir *ir, const struct work_under_guard *work_by_guard,
                                 uint32_t g)
{
    const struct guard *guard = &ir->guard[g];
    if (guard->comparison_kind == GUARD_EQ || work_by_guard[g].has_noncompute_op)
        return false;
    for (uint32_t h = 0; h < ir->guard_count; h++) {
        const struct guard *with = &ir->guard[h];
        double most = fmax(work_by_guard[g].flops, work_by_guard[h].flops);
        if (with->group == guard->group && with->value == guard->value &&
            with->comparison_kind == (guard->comparison_kind == GUARD_LT ? GUARD_GE : GUARD_LT))
            return fabs(work_by_guard[g].flops - work_by_guard[h].flops) <=
                   EVEN_FLOPS_TOLERANCE * most;
    }
    return false;
}

/* Returns the number of ranks that the groups of marked guards distinguish: the product of the
 * sizes of these groups; 1 if no guard is marked. */
static uint64_t distinguished_rank_count(const struct ir *ir,
                                         const uint32_t *uniform_rank_plus_1_by_guard)
{
    bool *seen = heap_zalloc(ir->group_count + 1u, sizeof *seen);
    uint64_t ranks = 1;
    for (uint32_t g = 0; g < ir->guard_count; g++) {
        uint16_t group = ir->guard[g].group;
        if (uniform_rank_plus_1_by_guard[g] > 0 && !seen[group])
            ranks *= group_rank_count(&ir->mesh, &ir->group[group]);
        seen[group] |= uniform_rank_plus_1_by_guard[g] > 0;
    }
    free(seen);
    return ranks;
}

/* True if the schedule has attention over packed documents, by which some ranks compute more than others whatever the
 * guards. */
static bool has_documents(const struct ir *ir)
{
    for (uint32_t s = 0; s < ir->shape_count; s++)
        if (work_pairs_depend_on_rank(&ir->shape[s]))
            return true;
    return false;
}

bool uniform_takes_ranks_as_fullest(const struct ir *ir, uint32_t above)
{
    return ir->layout.cp > (above > 0 ? above : EVEN_ABOVE_RANKS) && has_documents(ir) &&
           visible_why_schedule_unfit(ir) == NULL;
}

/* For a schedule with documents: sets uniform_rank_plus_1_by_guard[g] to 1 + the index of the fullest rank in the group
 * of guard g. It stays 0 for groups without that rank, and for those whose guards also guard communication or name one
 * rank. */
static void mark_guards_as_fullest_rank(const struct ir *ir, uint32_t *uniform_rank_plus_1_by_guard)
{
    struct work_under_guard *work_by_guard = sum_work_by_guard(ir);
    bool *other = heap_zalloc(ir->group_count + 1u, sizeof *other);
    uint32_t rank = visible_find_fullest_place(ir).rank, instance, index;
    for (uint32_t g = 0; g < ir->guard_count; g++)
        other[ir->guard[g].group] |=
            work_by_guard[g].has_noncompute_op || ir->guard[g].comparison_kind == GUARD_EQ;
    for (uint32_t g = 0; g < ir->guard_count; g++)
        if (!other[ir->guard[g].group] &&
            group_find_member(&ir->mesh, &ir->group[ir->guard[g].group], rank, &instance, &index))
            uniform_rank_plus_1_by_guard[g] = index + 1;
    free(other);
    free(work_by_guard);
}

/* Sets uniform_rank_plus_1_by_guard[g] to 1 + the index of the last rank of guard g's group if every rank of the group
 * computes nearly the same. All stay 0 if guards then distinguish at most `above` ranks. */
static void mark_guards_as_last_rank(const struct ir *ir, uint32_t above,
                                     uint32_t *uniform_rank_plus_1_by_guard)
{
    bool *uneven = heap_zalloc(ir->group_count + 1u, sizeof *uneven);
    struct work_under_guard *work_by_guard = sum_work_by_guard(ir);
    for (uint32_t g = 0; g < ir->guard_count; g++)
        if (!uneven[ir->guard[g].group])
            uneven[ir->guard[g].group] = !guard_has_complement(ir, work_by_guard, g);
    for (uint32_t g = 0; g < ir->guard_count; g++)
        if (!uneven[ir->guard[g].group])
            uniform_rank_plus_1_by_guard[g] =
                group_rank_count(&ir->mesh, &ir->group[ir->guard[g].group]);
    if (distinguished_rank_count(ir, uniform_rank_plus_1_by_guard) <= above)
        memset(uniform_rank_plus_1_by_guard, 0,
               ir->guard_count * sizeof *uniform_rank_plus_1_by_guard);
    free(work_by_guard);
    free(uneven);
}

uint32_t *uniform_mark_guards(const struct ir *ir, uint32_t above)
{
    uint32_t *uniform_rank_plus_1_by_guard =
        heap_zalloc(ir->guard_count + 1u, sizeof *uniform_rank_plus_1_by_guard);
    if (above == 0)
        above = EVEN_ABOVE_RANKS;
    if (uniform_takes_ranks_as_fullest(ir, above)) {
        uniform_rank_plus_1_by_guard[ir->guard_count] = 1;
        mark_guards_as_fullest_rank(ir, uniform_rank_plus_1_by_guard);
    } else if (mesh_rank_count(&ir->mesh) > above && ir->guard_count > 0 && !has_documents(ir))
        mark_guards_as_last_rank(ir, above, uniform_rank_plus_1_by_guard);
    return uniform_rank_plus_1_by_guard;
}

uint32_t uniform_rank_count(const struct ir *ir, const uint32_t *uniform_rank_plus_1_by_guard)
{
    uint64_t ranks = distinguished_rank_count(ir, uniform_rank_plus_1_by_guard);
    if (uniform_rank_plus_1_by_guard[ir->guard_count] > 0)
        return ir->layout.cp;
    return ranks > 1 ? (uint32_t)ranks : 0;
}

bool uniform_does_guard_pass(const struct ir *ir, const uint32_t *uniform_rank_plus_1_by_guard,
                             uint32_t g, uint32_t rank)
{
    const struct guard *guard = &ir->guard[g];
    const struct group *group = &ir->group[guard->group];
    uint32_t instance, index;
    if (uniform_rank_plus_1_by_guard[g] == 0)
        return guard_passes(&ir->mesh, ir->group, guard, rank);
    assert(guard->comparison_kind != GUARD_EQ);
    if (!group_find_member(&ir->mesh, group, rank, &instance, &index))
        return false;
    uint32_t as = uniform_rank_plus_1_by_guard[g] - 1;
    return guard->comparison_kind == GUARD_LT ? as < guard->value : as >= guard->value;
}
