#include "predict/spreads.h"

#include "predict/prediction.h"
#include "predict/shape_costs.h"
#include "predict/workers.h"
#include "schedule/step/build.h"

#include <math.h>

/* By what numbers that were not measured are slowed to find the share of the step that goes with them. */
static const double SLOWER = 1.1;

double spreads_unmeasured(const struct spreads *spreads)
{
    double sum = 0;
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        sum += spreads->others[part];
    return fmin(sum, 1);
}

bool spreads_matter(const struct setup *setup)
{
    return !setup->cost.calibration[COST_MATMUL].known ||
           spread_is_known(&setup->cost, &setup->cluster);
}

/* Simulates the schedule of a prediction on a machine whose numbers are other ones. */
static enum status step_on(double *step_s, const struct prediction *p, const struct setup *setup,
                           bool exact)
{
    struct prediction other = *p;
    struct sim_result sim = {0};
    struct shape_costs costs = {0};
    struct sim_options options = {.exact = exact,
                                  .even_above = setup->even_above,
                                  .slow_factor = p->slow_factor,
                                  .slow_rank = p->slow_rank};
    other.setup = setup;
    shape_costs_make(&costs, &other);
    enum status status =
        sim_run(&p->ir, &setup->cluster, &costs.sim, &options, "schedule", &sim, NULL);
    bool again = status == STATUS_OK && sim.unsteady;
    *step_s = sim.step_s + p->jitter_s;
    shape_costs_release(&costs);
    sim_result_release(&sim);
    if (!again)
        return status;
    other.ir = (struct ir){0}; /* the sample does not stand for the whole list on this machine */
    status = compose_build(&other.ir, &p->choices, NULL);
    if (status == STATUS_OK)
        status = step_on(step_s, &other, setup, exact);
    ir_release(&other.ir);
    return status;
}

bool spreads_measured(const struct spreads *spreads)
{
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spreads->spread[part] > 0)
            return true;
    return false;
}

struct trial {
    const struct prediction *prediction;
    bool exact;
};

/* Job 2 part slows the measured numbers of a part, the next one its others. *result gets log(step / step as it is). */
static void try_part(void *context, size_t job, void *result)
{
    const struct trial *trial = context;
    const struct prediction *p = trial->prediction;
    enum spread_part part = (enum spread_part)(job / 2);
    double *change = result, step_s;
    /* a copy may be simulated on: its pointers into the setup are read only */
    struct setup moved = *p->setup;
    struct arena arena = {0};
    if (job % 2 == 1)
        spread_slow_others(&moved.cost, &moved.cluster, &arena, part, SLOWER);
    else if (spread_of(&moved.cost, &moved.cluster, part) > 0)
        spread_slow_measured(&moved.cost, &moved.cluster, &arena, part);
    else
        return;
    if (step_on(&step_s, p, &moved, trial->exact) == STATUS_OK)
        *change = log(step_s / p->sim.step_s);
    arena_release(&arena);
}

enum status spreads_find(struct spreads *spreads, const struct prediction *p, bool exact,
                         struct diag *diag)
{
    double change[2 * SPREAD_PART_COUNT] = {0};
    struct trial trial = {p, exact};
    *spreads = (struct spreads){0};
    if (p->setup->cost.ideal || p->setup->cluster.ideal || !(p->sim.step_s > 0) ||
        !spreads_matter(p->setup))
        return STATUS_OK;
    enum status status =
        workers_run(ARRAY_LEN(change), sizeof change[0], try_part, &trial, change, NULL, diag);
    for (int part = 0; part < SPREAD_PART_COUNT && status == STATUS_OK; part++) {
        spreads->known = true;
        spreads->spread[part] =
            spread_of(&p->setup->cost, &p->setup->cluster, (enum spread_part)part);
        spreads->estimated[part] = spread_of_estimate(&p->setup->cost, (enum spread_part)part);
        spreads->measured[part] = change[2 * part];
        spreads->others[part] = fmax(change[2 * part + 1], 0) / log(SLOWER);
    }
    return status;
}
