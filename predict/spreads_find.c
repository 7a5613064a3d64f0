#include "predict/spreads.h"

#include "predict/prediction.h"
#include "predict/shape_costs.h"
#include "predict/workers.h"
#include "schedule/step/build.h"
#include "sim/uniform/uniform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* To find the share of the step that depends on numbers that were not measured, these numbers are made slower by this
 * factor. */
static const double SLOWER = 1.1;

double spreads_unmeasured_share(const struct spreads *spreads)
{
    double sum = 0;
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        sum += spreads->share_of_unmeasured_by_part[part];
    return fmin(sum, 1);
}

bool spreads_are_needed(const struct setup *setup)
{
    return !setup->cost.calibration[COST_MATMUL].is_calibrated ||
           spread_has_measured_number(&setup->cost, &setup->cluster);
}

struct spread_job_input {
    const struct prediction *prediction;
    bool is_exact;
    uint32_t uniform_above_ranks;
    double step_s; /* the step on the unchanged machine, simulated like the trials */
};

/* Sets *step_s to the seconds of the prediction's step on another machine, that of `setup`. */
static enum status simulate_step_on_machine(double *step_s, const struct spread_job_input *trial,
                                            const struct setup *setup)
{
    const struct prediction *p = trial->prediction;
    struct prediction other = *p;
    struct sim_result sim = {0};
    struct shape_costs costs = {0};
    struct sim_options options = {.simulates_every_rank_and_op = trial->is_exact,
                                  .uniform_above_ranks = trial->uniform_above_ranks,
                                  .skip_memory = true,
                                  .slow_factor = p->question.slow_factor,
                                  .slow_rank = p->question.slow_rank};
    other.setup = setup;
    shape_costs_make(&costs, &other);
    enum status status =
        sim_run(&p->ir, &setup->cluster, &costs.sim_costs, &options, "schedule", &sim, NULL);
    bool again = status == STATUS_OK && sim.has_unsteady_repeats;
    *step_s = sim.step_s + p->jitter_s;
    shape_costs_release(&costs);
    sim_result_release(&sim);
    if (!again)
        return status;
    /* the short list does not represent the whole list on this machine, so the whole list is built */
    other.ir = (struct ir){0};
    status = step_build(&other.ir, &p->choices, NULL);
    struct spread_job_input whole = *trial;
    whole.prediction = &other;
    if (status == STATUS_OK)
        status = simulate_step_on_machine(step_s, &whole, setup);
    ir_release(&other.ir);
    return status;
}

/* Chooses how trials are simulated. If there are long rings, all their ranks get the same work (sim/uniform/uniform.h),
 * which is faster and suffices for ratios of steps; the step on the unchanged machine is then simulated in that way,
 * too, unless it already was. If there are no long rings, if documents are packed, or if a rank is slowed, trials are
 * simulated as the prediction was. */
static enum status choose_how_to_simulate(struct spread_job_input *trial,
                                          const struct prediction *p)
{
    *trial = (struct spread_job_input){
        .prediction = p, .is_exact = p->question.is_exact, .step_s = p->sim.step_s};
    trial->uniform_above_ranks = p->setup->uniform_above_ranks;
    if (p->question.slow_factor != 0) /* every rank has to be simulated */
        return STATUS_OK;
    uint32_t *even = uniform_mark_guards(&p->ir, EVEN_ABOVE_RANKS_MIN);
    bool makes_uniform = uniform_rank_count(&p->ir, even) > 0 && p->sim.uniform_rank_count == 0 &&
                         !uniform_takes_ranks_as_fullest(&p->ir, EVEN_ABOVE_RANKS_MIN);
    free(even);
    if (!makes_uniform)
        return STATUS_OK;
    trial->is_exact = false;
    trial->uniform_above_ranks = EVEN_ABOVE_RANKS_MIN;
    return simulate_step_on_machine(&trial->step_s, trial, p->setup);
}

bool spreads_has_measured_numbers(const struct spreads *spreads)
{
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spreads->largest_relative_spread_by_part[part] > 0)
            return true;
    return false;
}

static bool are_equal_times(const double *a, const double *b, uint32_t count)
{
    return memcmp(a, b, count * sizeof *a) == 0;
}

/* Returns whether all work of the schedule costs the same with the setup `moved`. Links are not compared. False if
 * there is attention over packed documents, whose times by place are not compared. */
static bool are_equal_costs(const struct prediction *p, const struct setup *moved)
{
    struct prediction other = *p;
    struct shape_costs is, would_be;
    other.setup = moved;
    is = would_be = (struct shape_costs){0};
    shape_costs_make(&is, p);
    shape_costs_make(&would_be, &other);
    uint32_t count = p->ir.shape_count;
    bool same = is.work_s_by_place == NULL && are_equal_times(is.work_s, would_be.work_s, count) &&
                are_equal_times(is.host_work_s, would_be.host_work_s, count) &&
                are_equal_times(is.issue_s, would_be.issue_s, count) &&
                are_equal_times(is.host_return_s, would_be.host_return_s, count) &&
                is.sim_costs.collective_launch_s == would_be.sim_costs.collective_launch_s;
    shape_costs_release(&is);
    shape_costs_release(&would_be);
    return same;
}

static bool has_host_device_copies(const struct ir *ir)
{
    for (uint32_t i = 0; i < ir->shape_count; i++)
        if (ir->shape[i].kind == WORK_H2D || ir->shape[i].kind == WORK_D2H)
            return true;
    return false;
}

/* Returns whether the step cannot depend on the numbers of `part`. In the setup `moved` these differ from the
 * prediction's. */
static bool step_ignores_part(const struct prediction *p, const struct setup *moved,
                              enum spread_machine_part part)
{
    const struct cluster *cluster = &p->setup->cluster;
    bool alone = mesh_rank_count(&p->ir.mesh) == 1;
    switch (part) {
    case SPREAD_HOST_COPIES: /* messages between ranks may use the same PCIe lanes as copies */
        return alone && !has_host_device_copies(&p->ir);
    case SPREAD_NODE_LINKS:
        return alone;
    case SPREAD_NETWORK_LINKS:
        return alone || cluster->nodes == 1;
    default:
        return are_equal_costs(p, moved);
    }
}

/* The result of a job. log_step_growth: log(step / step on the unchanged machine). has_failed: the step could not be
 * simulated. */
struct step_growth_of_trial {
    double log_step_growth;
    bool has_failed;
};

/* Predicts the step with some numbers of a device slower: job 2 * i slows the measured numbers of part i, job 2 * i + 1
 * those numbers of part i that are not measured. The result is a struct step_growth_of_trial. */
static void simulate_step_with_slower_part(void *context, size_t job, void *result)
{
    const struct spread_job_input *trial = context;
    const struct prediction *p = trial->prediction;
    enum spread_machine_part part = (enum spread_machine_part)(job / 2);
    struct step_growth_of_trial *change = result;
    double step_s = trial->step_s;
    /* a shallow copy is enough, since nothing writes through its pointers */
    struct setup moved = *p->setup;
    struct arena arena = {0};
    bool measured = spread_largest_of_part(&moved.cost, &moved.cluster, part) > 0;
    if (job % 2 == 1)
        spread_slow_down_unmeasured_numbers(&moved.cost, &moved.cluster, &arena, part, SLOWER);
    else if (measured)
        spread_slow_down_measured_numbers(&moved.cost, &moved.cluster, &arena, part);
    if ((job % 2 == 1 || measured) && !step_ignores_part(p, &moved, part))
        change->has_failed = simulate_step_on_machine(&step_s, trial, &moved) != STATUS_OK;
    change->log_step_growth = change->has_failed ? 0 : log(step_s / trial->step_s);
    arena_release(&arena);
}

enum status spreads_find(struct spreads *spreads, const struct prediction *p, struct diag *diag)
{
    struct step_growth_of_trial change[2 * SPREAD_PART_COUNT] = {{0}};
    struct spread_job_input trial;
    *spreads = (struct spreads){0};
    if (p->setup->cost.is_ideal || p->setup->cluster.is_ideal || !(p->sim.step_s > 0) ||
        !spreads_are_needed(p->setup))
        return STATUS_OK;
    enum status status = choose_how_to_simulate(&trial, p);
    if (status == STATUS_OK)
        status = workers_run(ARRAY_LEN(change), sizeof change[0], simulate_step_with_slower_part,
                             &trial, change, NULL, diag);
    for (size_t i = 0; i < ARRAY_LEN(change) && status == STATUS_OK; i++)
        if (change[i].has_failed)
            status = diag_error(diag, (struct loc){.name = "--costs"}, STATUS_NO,
                                "the interval is not known: the step could not be simulated with "
                                "the numbers of %s changed",
                                spread_part_name((enum spread_machine_part)(i / 2)));
    for (int part = 0; part < SPREAD_PART_COUNT && status == STATUS_OK; part++) {
        spreads->is_known = true;
        spreads->largest_relative_spread_by_part[part] = spread_largest_of_part(
            &p->setup->cost, &p->setup->cluster, (enum spread_machine_part)part);
        spreads->estimate_error[part] =
            spread_error_of_estimates(&p->setup->cost, (enum spread_machine_part)part);
        spreads->log_step_growth_by_measured_part[part] = change[2 * part].log_step_growth;
        spreads->share_of_unmeasured_by_part[part] =
            fmax(change[2 * part + 1].log_step_growth, 0) / log(SLOWER);
    }
    return status;
}
