/* predict/shape_costs.h: the costs of each shape of work in a prediction's schedule, before anything is simulated:
 * seconds by the device's costs, and what the profile adds to them. */
#ifndef PREDICT_SHAPE_COSTS_H
#define PREDICT_SHAPE_COSTS_H

#include "predict/prediction.h"
#include "sim/traffic/sim_costs.h"

/* Costs as arrays, with an element for each shape of the schedule (struct ir, shape). What each array means stands at
 * struct sim_costs. All-zero is empty. */
struct shape_costs {
    double **work_s_by_place; /* as in struct sim_costs; NULL: none */
    double *work_s, *host_work_s, *host_memory_bytes, *issue_s, *host_return_s;
    uint32_t shape_count;
    /* If all ranks are taken as the fullest context rank (sim/uniform/uniform.h), the visible pairs of that rank,
     * divided by the mean over ranks; else 0. */
    double fullest_pairs_over_mean;
    /* the profile's host_per_checkpoint_copy_s is part of host_return_s */
    bool has_checkpoint_costs;
    struct sim_costs sim_costs; /* the arrays above, as the simulator takes them */
};

/* Fills *costs for the schedule, the cluster and the profile of p; shape_costs_release() frees what it allocates. */
void shape_costs_make(struct shape_costs *costs, const struct prediction *p);
/* The power limit in watts and the clocks in MHz that the costs assume for this step; 0: not known, or not limited. */
struct assumed_clock {
    double power_limit_w, highest_mhz, product_mhz, attention_mhz;
};
struct assumed_clock assumed_clock(const struct prediction *p);

void shape_costs_release(struct shape_costs *costs);

#endif
