#include "sim/traffic/traffic.h"
#include "sim/traffic/traffic_parts.h"

#include "base/arena.h"
#include "schedule/ir/visible.h"
#include "sim/traffic/replicas.h"
#include "sim/uniform/uniform.h"

#include <assert.h>
#include <stdlib.h>

void traffic_release(struct traffic *traffic)
{
    for (uint32_t c = 0; c < traffic->comm_class_count; c++)
        if (traffic->comm[c].kind !=
            COMM_P2P) /* all P2P comm classes share the list of traffic->shared_variants_of_p2p_classes */
            free(traffic->comm[c].distinct_shapes);
    free(traffic->shared_variants_of_p2p_classes.distinct_shapes);
    free(traffic->comm);
    free(traffic->channel);
    free(traffic->participant);
    platform_release(&traffic->platform);
    flow_table_release(&traffic->flows);
    arena_release(&traffic->arena);
    *traffic = (struct traffic){0};
}

/* The largest number of ops for which an op may wait: struct scheduler's unended_dependencies_by_op[] counts them in 16
 * bits, and values from OP_ARRIVED on mean something else. */
enum { WAITS_MAX = 32000 };

/* Fills, for each rank of traffic->mesh, the schedule's rank that it is, and that rank's role. */
static void find_roles(struct traffic *traffic)
{
    const struct ir *ir = traffic->ir;
    traffic->schedule_rank_by_planned_rank = arena_array(
        &traffic->arena, traffic->rank_count, sizeof *traffic->schedule_rank_by_planned_rank);
    traffic->role_of_rank =
        arena_array(&traffic->arena, traffic->rank_count, sizeof *traffic->role_of_rank);
    for (uint32_t r = 0; r < traffic->rank_count; r++) {
        uint32_t rank = replicas_rank_in_full_mesh(&ir->mesh, &traffic->mesh, r);
        traffic->schedule_rank_by_planned_rank[r] = rank;
        traffic->role_of_rank[r] = IR_NONE;
        for (uint32_t k = 0; k < ir->role_count; k++)
            if (role_has_rank(&ir->mesh, &ir->role[k], rank)) {
                traffic->role_of_rank[r] = k;
                break;
            }
    }
}

/* Fills which guards let each rank pass. */
static void evaluate_guards(struct traffic *traffic, const uint32_t *uniform_rank_plus_1_by_guard)
{
    const struct ir *ir = traffic->ir;
    traffic->guard_passes_by_rank =
        arena_array(&traffic->arena, traffic->rank_count, ir->guard_count);
    for (uint32_t r = 0; r < traffic->rank_count; r++)
        for (uint32_t g = 0; g < ir->guard_count; g++)
            traffic->guard_passes_by_rank[(size_t)r * ir->guard_count + g] =
                uniform_does_guard_pass(ir, uniform_rank_plus_1_by_guard, g,
                                        traffic->schedule_rank_by_planned_rank[r]);
}

/* Fills the places of the ranks in packed sequences, if times depend on them. */
static void find_document_places(struct traffic *traffic)
{
    if (traffic->costs->work_s_by_place == NULL)
        return;
    traffic->place_of_rank =
        arena_array(&traffic->arena, traffic->rank_count, sizeof *traffic->place_of_rank);
    for (uint32_t r = 0; r < traffic->rank_count; r++)
        traffic->place_of_rank[r] =
            ir_place_of_rank(traffic->ir, traffic->schedule_rank_by_planned_rank[r]);
}

static void read_costs(struct traffic *traffic)
{
    const struct sim_costs *costs = traffic->costs;
    traffic->duration_s = costs->work_s;
    traffic->host_duration_s = costs->host_work_s ? costs->host_work_s : costs->work_s;
    for (uint32_t s = 0; s < traffic->ir->shape_count; s++)
        assert(traffic->duration_s[s] >= 0 && traffic->host_duration_s[s] >= 0);
}

/* Fails if an op waits for more than WAITS_MAX ops, or for an op that does not come earlier in its role. The scheduler
 * assumes that neither happens; the verifier explains the second fault better. */
static enum status check_waits(const struct traffic *traffic, const char *name, struct diag *diag)
{
    const struct ir *ir = traffic->ir;
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

enum status traffic_make(struct traffic *traffic, const struct ir *ir,
                         const struct cluster *cluster, const struct sim_costs *costs,
                         const uint32_t *uniform_rank_plus_1_by_guard,
                         const struct sim_options *options, const char *name, struct diag *diag)
{
    uint32_t ranks = mesh_rank_count(&ir->mesh);
    *traffic = (struct traffic){.ir = ir,
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
    enum status status = check_waits(traffic, name, diag);
    if (status != STATUS_OK)
        return status;
    if (!options->simulates_every_rank_and_op)
        traffic->mesh = replicas_planned_mesh(ir, cluster);
    traffic->rank_count = mesh_rank_count(&traffic->mesh);
    find_roles(traffic);
    traffic->context_ranks_count_as_fullest = uniform_rank_plus_1_by_guard[ir->guard_count] > 0;
    evaluate_guards(traffic, uniform_rank_plus_1_by_guard);
    find_document_places(traffic);
    read_costs(traffic);
    traffic_add_comm_classes(traffic);
    status = traffic_check_groups(traffic, name, diag);
    if (status == STATUS_OK)
        status = traffic_add_channels(traffic, name, diag);
    if (status == STATUS_OK)
        traffic_add_transfers(traffic);
    return status;
}
