/* sim/traffic/sim_costs.h: the inputs of a simulation other than schedule and cluster: seconds of every shape,
 * and options. */
#ifndef SIM_TRAFFIC_SIM_COSTS_H
#define SIM_TRAFFIC_SIM_COSTS_H

#include <stdbool.h>
#include <stdint.h>

/* Seconds per shape of the schedule, computed by the caller (rows as in ir->shape). */
struct sim_costs {
    /* [shape_count] for each shape whose duration depends on the rank (attention over documents), an array of seconds
     * by place (schedule/ir/visible.h), while work_s has the seconds of one place. NULL for other shapes. The member
     * itself is NULL if there are no such shapes */
    const double *const *work_s_by_place;
    /* [shape_count] seconds of the work on the device. It is not used for communication and copies, whose time follows
     * from the cluster, nor for kinds of STREAM_SYNC, whose time is in issue_s. */
    const double *work_s;
    const double *host_work_s; /* [shape_count] for ops on streams of class HOST; NULL: work_s */
    /* [shape_count] seconds for which the host issues an op. An op can start once the host has issued it and everything
     * before it. NULL: no time */
    const double *issue_s;
    /* [shape_count] seconds from the end of an op that blocks the host until the host issues the next op; NULL: none */
    const double *host_return_s_by_shape;
    /* [shape_count] bytes that an op on a host stream moves through host memory, whose bandwidth it shares with copies;
     * NULL: none */
    const double *host_memory_bytes_by_shape;
    /* seconds before the first bytes of a communication between ranks move, in addition to the latency of links */
    double collective_launch_s;
};

struct sim_options {
    bool simulates_every_rank_and_op; /* simulate every rank and every op: no folding */
    bool skip_memory;                 /* leave out the memory timelines: peaks stay zero */
    /* If the guards of rings distinguish more ranks than this or, with packed documents, if there are more context
     * ranks, all ranks of a ring are taken to run the same work (sim/uniform/uniform.h); 0: 64. Not used with exact. */
    uint32_t uniform_above_ranks;
    /* The kernels of rank slow_rank take slow_factor times the seconds of the costs, which shows by how much one late
     * rank delays the others. 0: no rank is slowed. Only with exact, where every rank is simulated. */
    double slow_factor;
    uint32_t slow_rank;
};

#endif
