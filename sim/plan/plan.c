#include "sim/plan/plan.h"
#include "sim/plan/plan_parts.h"

#include "base/arena.h"
#include "schedule/ir/visible.h"
#include "sim/even/even.h"
#include "sim/plan/replicas.h"

#include <assert.h>
#include <stdlib.h>

void sim_plan_release(struct sim_plan *plan)
{
    for (uint32_t l = 0; l < plan->line_count; l++)
        if (plan->line[l].kind != LINE_P2P)
            free(plan->line[l].variant);
    free(plan->p2p.variant);
    free(plan->line);
    free(plan->channel);
    free(plan->participant);
    platform_release(&plan->platform);
    flow_table_release(&plan->flows);
    arena_release(&plan->arena);
    *plan = (struct sim_plan){0};
}

/* Counters of the scheduler are 16 bits wide, and their upper half has a meaning of its own. */
enum { WAITS_MAX = 32000 };

static void place_ranks(struct sim_plan *plan, const uint8_t *even)
{
    const struct ir *ir = plan->ir;
    plan->rank = arena_array(&plan->arena, plan->rank_count, sizeof *plan->rank);
    plan->role_of_rank = arena_array(&plan->arena, plan->rank_count, sizeof *plan->role_of_rank);
    plan->passes = arena_array(&plan->arena, plan->rank_count, ir->guard_count);
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        uint32_t rank = replicas_rank(&ir->mesh, &plan->mesh, r);
        plan->rank[r] = rank;
        plan->role_of_rank[r] = IR_NONE;
        for (uint32_t k = 0; k < ir->role_count; k++)
            if (role_has(&ir->mesh, &ir->role[k], rank)) {
                plan->role_of_rank[r] = k;
                break;
            }
        for (uint32_t g = 0; g < ir->guard_count; g++)
            plan->passes[(size_t)r * ir->guard_count + g] = even_passes(ir, even, g, rank);
    }
    if (plan->costs->place_work_s == NULL)
        return;
    plan->place_of_rank = arena_array(&plan->arena, plan->rank_count, sizeof *plan->place_of_rank);
    for (uint32_t r = 0; r < plan->rank_count; r++)
        plan->place_of_rank[r] = ir_place_of(ir, plan->rank[r]);
}

static void read_costs(struct sim_plan *plan)
{
    const struct sim_costs *costs = plan->costs;
    plan->duration_s = costs->work_s;
    plan->host_s = costs->host_work_s ? costs->host_work_s : costs->work_s;
    for (uint32_t s = 0; s < plan->ir->shape_count; s++)
        assert(plan->duration_s[s] >= 0 && plan->host_s[s] >= 0);
}

/* Fails if an op waits for more than WAITS_MAX ops, or for an op that is not an earlier one of its role, on which the
 * scheduler relies; the verifier's message says more. */
static enum status check_waits(const struct sim_plan *plan, const char *name, struct diag *diag)
{
    const struct ir *ir = plan->ir;
    for (uint32_t r = 0; r < ir->role_count; r++)
        for (uint32_t i = 0; i < ir->role[r].op_count; i++) {
            uint32_t op = ir->role[r].op_begin + i, waits = ir->op.wait_count[op];
            if (waits > WAITS_MAX)
                return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                  "op %u waits for %u ops; the most is %d", op, waits, WAITS_MAX);
            for (uint32_t w = 0; w < waits; w++) {
                uint32_t other = ir->wait[ir->op.wait_begin[op] + w].i;
                if (other >= op || other < ir->role[r].op_begin)
                    return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                      "op %u waits for op %u, which is not an earlier op of its "
                                      "role",
                                      op, other);
            }
        }
    return STATUS_OK;
}

enum status plan_make(struct sim_plan *plan, const struct ir *ir, const struct cluster *cluster,
                      const struct sim_costs *costs, const uint8_t *even,
                      const struct sim_options *options, const char *name, struct diag *diag)
{
    uint32_t ranks = mesh_ranks(&ir->mesh);
    *plan = (struct sim_plan){.ir = ir,
                              .cluster = cluster,
                              .platform.cluster = cluster,
                              .costs = costs,
                              .mesh = ir->mesh,
                              .slow_factor = options->slow_factor,
                              .slow_rank = options->slow_rank};
    if (ranks > cluster->gpus)
        return diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                          "the mesh has %u ranks, and cluster %s has %lld GPUs", ranks,
                          cluster->name, (long long)cluster->gpus);
    enum status status = check_waits(plan, name, diag);
    if (status != STATUS_OK)
        return status;
    if (!options->exact)
        plan->mesh = replicas_mesh(ir, cluster);
    plan->rank_count = mesh_ranks(&plan->mesh);
    place_ranks(plan, even);
    read_costs(plan);
    plan_add_lines(plan);
    status = plan_check_groups(plan, name, diag);
    if (status == STATUS_OK)
        status = plan_add_channels(plan, name, diag);
    if (status == STATUS_OK)
        plan_add_transfers(plan);
    return status;
}
