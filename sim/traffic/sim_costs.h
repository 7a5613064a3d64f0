/* sim/traffic/sim_costs.h: the inputs of a simulation other than schedule and cluster: seconds of every shape,
 * and options. */
#ifndef SIM_TRAFFIC_SIM_COSTS_H
#define SIM_TRAFFIC_SIM_COSTS_H

#include <stdbool.h>
#include <stdint.h>

/* Seconds per shape of the schedule, computed by the caller (rows as in ir->shape). */
struct sim_costs {
    /* For shapes whose duration depends on the rank (attention over documents): [shape_count] arrays of seconds,
     * indexed by place (schedule/ir/visible.h), NULL for other shapes; NULL: there are no such shapes. work_s has the
     * seconds of one place. */
    const double *const *work_s_by_place;
    /* [shape_count] seconds on the device. Communication and copies do not use it, since their time comes from the
     * cluster, nor do SYNC kinds, whose time is in issue_s. */
    const double *work_s;
    const double *host_work_s; /* [shape_count] for ops on streams of class HOST; NULL: work_s */
    /* [shape_count] seconds of the host to issue an op; an op can start when the host has issued it and everything
     * before it; NULL: no time */
    const double *issue_s;
    /* [shape_count] seconds of the host between the end of an op that holds the host and the next op that it
     * issues; NULL: none */
    const double *host_return_s;
    /* [shape_count] bytes that ops on host streams move through host memory, shared with copies; NULL: none */
    const double *host_memory_bytes;
    /* seconds between the start of a communication op and its first bytes */
    double collective_launch_s;
};

struct sim_options {
    bool exact;       /* simulate every rank and every op: no folding */
    bool skip_memory; /* leave out the memory timelines: peaks stay zero */
    /* If the guards of rings distinguish more ranks than this, all ranks of a ring are taken to run the same work
     * (sim/uniform/uniform.h); 0: 64. Not used with exact. */
    uint32_t uniform_above_ranks;
    /* The kernels of rank slow_rank take slow_factor times the seconds of the costs, which shows how one late rank
       delays the others. 0: no rank is slowed. Only with exact, where every rank is simulated. */
    double slow_factor;
    uint32_t slow_rank;
};

#endif
