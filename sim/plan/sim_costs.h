/* sim/plan/sim_costs.h: the inputs of a simulation beside schedule and cluster: seconds of every shape, and
 * options. */
#ifndef SIM_PLAN_SIM_COSTS_H
#define SIM_PLAN_SIM_COSTS_H

#include <stdbool.h>
#include <stdint.h>

/* Seconds per shape of the schedule, worked out by the caller (rows as in ir->shape). */
struct sim_costs {
    /* Of shapes whose duration depends on the rank (attention over documents): [shape_count] seconds by place
       (schedule/ir/visible.h), NULL for the others; NULL: there are none. work_s has any of them. */
    const double *const *place_work_s;
    const double *work_s;      /* [shape_count] on the device; not used for communication, copies
                                  and SYNC kinds, whose time comes from the cluster */
    const double *host_work_s; /* [shape_count] for ops on streams of class HOST; NULL: work_s */
    const double *issue_s;     /* [shape_count] host time of issuing one; an op can start when the
                                  host has issued it and everything before it; NULL: no time */
    const double
        *return_s; /* [shape_count] host time between the end of an op that holds it and what
                                  it issues next; NULL: none */
    const double *host_bytes; /* [shape_count] what those move through host memory, which they then
                                 share with copies; NULL: nothing */
    double collective_launch_s; /* added before the bytes of every communication op move */
};

struct sim_options {
    bool exact;     /* simulate every rank and every op: no folding */
    bool no_memory; /* leave out the memory timelines: peaks stay zero */
    /* Where guards of rings tell more ranks apart than this, all ranks of a ring are taken to run the same work
       (sim/even/even.h); 0: 64. Not used with exact. */
    uint32_t even_above;
    /* The kernels of rank slow_rank take slow_factor times the seconds of the costs, which shows how one late rank
       delays the others. 0: no rank is slowed. Only with exact, where every rank is simulated. */
    double slow_factor;
    uint32_t slow_rank;
};

#endif
