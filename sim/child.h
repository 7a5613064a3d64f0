/* sim/child.h: binds a list of ops to the cluster, folds ranks, and simulates it in a child process.
 *
 * SimGrid keeps its state for as long as a process lives; so each run has a child of its own, which
 * writes the times into memory that both share. */
#ifndef SIM_CHILD_H
#define SIM_CHILD_H

#include "sim/scheduler/scheduler.h"
#include "sim/traffic/fold.h"
#include "sim/traffic/prune.h"
#include "sim/traffic/traffic.h"

enum { CHILD_REASON_SIZE = 2048 };

/* The head of the memory that parent and child share; arrays follow it. The parent sets the
 * pointers of `times`, the child writes the rest, and the parent reads it once the child has ended. */
struct child_shared_results {
    int has_finished; /* set last: a child that dies leaves 0 */
    enum status status;
    double event_loop_cpu_s; /* processor seconds of the event loop, as in struct sim_counts */
    struct schedule_times times;
    char reason[CHILD_REASON_SIZE];
};

/* A list of ops, bound to the cluster, and its times. All-zero is empty. */
struct child_run {
    struct traffic traffic;
    struct pruned pruned;
    struct fold fold;
    struct child_shared_results *shared_memory;
    size_t shared_bytes; /* the size of shared_memory, with the arrays after it */
};

/* Simulates the list `ir` once and fills *run. uniform_rank_plus_1_by_guard: the array of uniform_mark_guards()
 * (sim/uniform/uniform.h). Release *run in either case. */
enum status child_run_make(struct child_run *run, const struct ir *ir,
                           const struct cluster *cluster, const struct sim_costs *costs,
                           const uint32_t *uniform_rank_plus_1_by_guard,
                           const struct sim_options *options, const char *name, struct diag *diag);
void child_run_release(struct child_run *run);

#endif
