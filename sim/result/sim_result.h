/* sim/result/sim_result.h: the result of a simulation: the times of ops, memory peaks, loads of links.
 *
 * The folder sim/result/ holds what a simulation returns. */
#ifndef SIM_RESULT_SIM_RESULT_H
#define SIM_RESULT_SIM_RESULT_H

#include "base/arena.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A class of ranks: they do the same ops at the same times, so one of them was simulated. */
struct sim_class {
    uint32_t lowest_rank;        /* the lowest rank of the class, the one that was simulated */
    uint32_t rank_count;         /* members */
    uint32_t role;               /* row of ir->role; IR_NONE: no role, no ops */
    uint32_t op_begin, op_count; /* its ops, ids of the schedule */
    size_t first_row;            /* op op_begin + k has row first_row + k of start_s and end_s */
};

enum { SIM_TOP_BUFFERS = 8 };

/* The moment at which a memory holds the most bytes. */
struct sim_peak {
    uint64_t bytes;
    double time_s;
    uint32_t op; /* the op at whose start the memory held the most; IR_NONE: before the first op */
    uint64_t category_bytes[CATEGORY_COUNT];
    uint32_t top_buffer_count;
    struct sim_live_buffer {
        uint32_t buffer; /* buffer_id */
        uint64_t bytes;
    } top_buffer[SIM_TOP_BUFFERS]; /* largest live buffers at that moment, largest first */
};

/* The most bytes that the ranks of one node hold together in one kind of host memory. */
struct sim_node_peak {
    uint64_t bytes;
    double time_s;
    uint32_t node;
};

/* The bytes that one link carried. */
struct sim_link_load {
    uint8_t kind;       /* enum link_kind of sim/platform/platform.h */
    double bytes_per_s; /* capacity */
    double bytes;       /* over the step, in units of the capacity: protocol overhead included */
    double busy_fraction_of_step; /* bytes / (capacity * step) */
};

struct sim_counts {
    /* number of ops of all ranks of the schedule: an op counts once for each rank of its role, even where a guard
     * leaves it out */
    uint64_t schedule_op_instances;
    uint64_t simulated_op_instances; /* how many of schedule_op_instances the simulation executed */
    /* number of flows that were simulated, in SimGrid or outside it (sim/scheduler/uncontended.h) */
    uint64_t flows_started;
    uint64_t timer_set_count; /* how many times flows had to wait for the date of their start */
    double event_loop_cpu_s;  /* processor seconds of the event loop */
};

struct sim_result {
    double step_s;
    /* For a short list (ir->repeats), start and end times are those of the short list, and step_s, loads,
     * schedule_op_instances and peaks those of the whole list. has_unsteady_repeats: the times of the whole list do not
     * follow from the short list's, and no number here is valid. */
    bool has_unsteady_repeats;
    double *period_s_by_run; /* [runs of ir->repeats] the time of each copy; NULL: no short list */
    /* when the simulated list ends; of a short list this is not the whole step */
    double simulated_end_s;
    uint32_t rank_count, class_count, node_count;
    /* ranks of even rings (sim/uniform/uniform.h); 0: there was none */
    uint32_t uniform_rank_count;
    uint32_t *uniform_rank_plus_1_by_guard; /* the array that uniform_mark_guards() returned */
    uint32_t *class_of_rank;                /* [rank_count] */
    struct sim_class *classes;
    size_t row_count;
    /* [row_count] an op that its guard leaves out starts and ends as soon as it may start */
    double *start_s, *end_s;

    struct sim_peak (*peak)[MEMORY_COUNT]; /* [class_count] */
    /* [memory] the highest peak of any node; the element of HBM, which is no host memory, stays all-zero */
    struct sim_node_peak highest_node_peak_by_memory[MEMORY_COUNT];

    /* the links of the simulated replica that carried something; those of the other replicas carried the same */
    struct sim_link_load *loads_by_link;
    size_t link_load_count, busiest_load_row; /* row of the busiest */
    /* number of parts of the machine that do the same as the simulated one, itself included (sim/traffic/replicas.h) */
    uint32_t equal_replica_count;
    const char *busiest_link_name; /* "node 0 gpu 3 fabric out"; NULL: no link carried anything */

    struct sim_counts counts;

    /* all arrays above except uniform_rank_plus_1_by_guard, start_s and end_s */
    struct arena arena;
    void *times_mapping; /* start_s and end_s, shared with the child that wrote them */
    size_t times_mapping_bytes;
};

void sim_result_release(struct sim_result *result);

/* sim_op_starts_of_rank_s() and sim_op_ends_of_rank_s() return the start and end times of one rank's ops, in seconds:
 * element k is op k of its role. They are the times of its class. */
const double *sim_op_starts_of_rank_s(const struct sim_result *result, uint32_t rank);
const double *sim_op_ends_of_rank_s(const struct sim_result *result, uint32_t rank);

/* True if a rank did the work of an op in the simulation: the op has no guard, or its guard passes. In even rings,
 * uniform_does_guard_pass() decides. */
bool sim_rank_runs_op(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                      uint32_t op);

/* Returns the flops that all ranks execute in the step. In even rings, too, each rank's own guards
 * decide what it executes, except for attention over documents: there sim_rank_runs_op() does. */
double sim_flops(const struct ir *ir, const struct sim_result *result);
/* Returns the flops of the step, where products in 8 or 4 bits count as the bf16 flops that take as long at the
 * device's peaks. */
double sim_bf16_equivalent_flops(const struct ir *ir, const struct sim_result *result);

#endif
