#include "sim/sim.h"

#include "sim/child.h"
#include "sim/link_loads.h"
#include "sim/memory/memory.h"
#include "sim/traffic/replicas.h"
#include "sim/traffic/steady.h"
#include "sim/uniform/uniform.h"

/* ---- the result ---- */

/* Gives every rank of the schedule the class of the planned rank that it is a replica of, and counts the ranks of each
 * class. */
static void fill_rank_classes(struct sim_result *result, const struct ir *ir,
                              const struct child_run *run)
{
    const struct traffic *traffic = &run->traffic;
    int64_t per_node = traffic->cluster->gpus_per_node;
    uint32_t ranks = mesh_rank_count(&ir->mesh);
    result->rank_count = ranks;
    result->node_count = (uint32_t)((ranks + per_node - 1) / per_node);
    result->equal_replica_count = ranks / traffic->rank_count;
    result->class_of_rank = arena_array(&result->arena, ranks, sizeof *result->class_of_rank);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        result->class_of_rank[rank] =
            run->fold.class_of_rank[replicas_rank_in_planned_mesh(&ir->mesh, &traffic->mesh, rank)];
        result->classes[result->class_of_rank[rank]].rank_count++;
    }
}

static void fill_classes(struct sim_result *result, const struct ir *ir,
                         const struct child_run *run)
{
    const struct traffic *traffic = &run->traffic;
    const struct fold *fold = &run->fold;
    result->class_count = fold->class_count;
    result->row_count = fold->first_op_row_by_class[fold->class_count];
    result->classes = arena_array(&result->arena, fold->class_count, sizeof *result->classes);
    result->peak = arena_array(&result->arena, fold->class_count, sizeof *result->peak);
    fill_rank_classes(result, ir, run);
    for (uint32_t c = 0; c < fold->class_count; c++) {
        uint32_t row = fold->lowest_rank_by_class[c], role = traffic->role_of_rank[row];
        struct sim_class *class = &result->classes[c];
        class->lowest_rank = traffic->schedule_rank_by_planned_rank[row];
        class->role = role;
        class->first_row = fold->first_op_row_by_class[c];
        if (role == IR_NONE)
            continue;
        class->op_begin = ir->role[role].op_begin;
        class->op_count = ir->role[role].op_count;
        result->counts.simulated_op_instances += class->op_count;
        result->counts.schedule_op_instances +=
            (uint64_t)repeats_whole_op_count(&ir->repeats, role, class->op_count) *
            class->rank_count;
    }
}

/* Finds the periods and the step of the whole list from the times of a short list, or marks the result as unsteady. */
static void find_periods(struct sim_result *result, const struct ir *ir,
                         const struct child_run *run)
{
    struct steady_times times = {run->shared_memory->times.start_s,
                                 run->shared_memory->times.end_s};
    result->period_s_by_run =
        arena_array(&result->arena, ir->repeats.run_count, sizeof *result->period_s_by_run);
    result->has_unsteady_repeats = !steady_find_periods_and_step(
        &run->traffic, &run->fold, times, result->period_s_by_run, &result->step_s);
}

/* Fills the result from a simulation, and takes over its times. */
static void fill_result_from_child_run(struct sim_result *result, const struct ir *ir,
                                       struct child_run *run)
{
    const struct schedule_times *times = &run->shared_memory->times;
    fill_classes(result, ir, run);
    result->step_s = result->simulated_end_s = times->step_s;
    if (ir->repeats.copies_per_gap > 0)
        find_periods(result, ir, run);
    link_loads_fill(result, run);
    result->counts.flows_started = times->flows_started;
    result->counts.timer_set_count = times->timer_set_count;
    result->counts.event_loop_cpu_s = run->shared_memory->event_loop_cpu_s;
    result->start_s = times->start_s;
    result->end_s = times->end_s;
    result->times_mapping = run->shared_memory;
    result->times_mapping_bytes = run->shared_bytes;
    run->shared_memory = NULL;
}

enum status sim_run(const struct ir *ir, const struct cluster *cluster,
                    const struct sim_costs *costs, const struct sim_options *options,
                    const char *name, struct sim_result *result, struct diag *diag)
{
    result->uniform_rank_plus_1_by_guard = uniform_mark_guards(
        ir, options->simulates_every_rank_and_op ? EVEN_ABOVE_RANKS_NEVER
                                                 : options->uniform_above_ranks);
    result->uniform_rank_count = uniform_rank_count(ir, result->uniform_rank_plus_1_by_guard);
    struct child_run run;
    enum status status = child_run_make(&run, ir, cluster, costs,
                                        result->uniform_rank_plus_1_by_guard, options, name, diag);
    if (status == STATUS_OK)
        fill_result_from_child_run(result, ir, &run);
    child_run_release(&run);
    if (status == STATUS_OK && !options->skip_memory && !result->has_unsteady_repeats)
        result->has_unsteady_repeats = !memory_fill_peaks(ir, cluster, result);
    return status;
}
