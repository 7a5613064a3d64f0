/* exec/run.h: the state of a run that the parts of exec/ share. Private to exec/. */
#ifndef EXEC_RUN_H
#define EXEC_RUN_H

#include "exec/assignment.h"
#include "exec/backend.h"
#include "exec/exec_options.h"

#include <pthread.h>
#include <stdatomic.h>

struct bootstrap;
struct poison;

struct op_time {
    double start_s, end_s; /* seconds from run.step_release_time_s; NaN: unknown */
};

struct exec_run {
    const struct ir *ir;
    const char *schedule_name; /* of the schedule, for messages */
    const struct exec_options *options;
    struct assignment assignment;
    const struct backend *backend;
    void *backend_state; /* belongs to the backend */
    struct poison *poison;
    struct bootstrap *world; /* the other processes; NULL: every rank is a thread of this one */
    uint32_t first_rank, rank_count; /* the ranks of this process */
    /* processor threads that each rank of this process may use for work on the host */
    uint32_t threads_per_rank;

    double step_release_time_s; /* time at which the current step was released */
    uint32_t step_number;       /* of the run, from 0 */
    struct op_time *op_times;   /* (ranks, assignment.max_op_count_of_role) of the current step */
    /* (buffers) bound gradients and losses that must be zero before every step */
    bool *must_zero_before_step;
    /* (ranks) the op that the host is issuing; the end of the role's ops: the host has issued all */
    _Atomic uint32_t *host_op;

    atomic_bool must_stop;          /* the run has failed: everything that waits gives up */
    atomic_uint_fast64_t ended_ops; /* ops that have ended */
    /* ops that are running and do not wait for another rank; on a GPU, ranks that have such an op */
    atomic_int running_op_count;

    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t state_changed;
    uint32_t released_step_count; /* steps that hosts may run */
    uint32_t finished_rank_count; /* ranks that have finished the current step */
    bool must_quit;               /* the host threads must end */
    enum status failure_status;
    char failure_text[1024]; /* message of the first failure */
};

/* Returns the seconds of the monotonic clock. */
double run_now_s(void);
/* Stops the run and, if this is its first failure, records the message: "rank R: op N (kind, stream S, layer L) ...".
 * If op is IR_NONE, the message lacks the op; if rank is IR_NONE, it lacks both. Any thread may call it. */
void run_record_failure(struct exec_run *run, uint32_t rank, uint32_t op, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Records a failure of the machine, not of the schedule or its kernels: the run ends with STATUS_SYSTEM. */
void run_record_system_failure(struct exec_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Asks options.ended_by(). If it ends the run, records this as the run's failure and returns true. */
bool run_is_ended_by_caller(struct exec_run *run);
static inline bool run_must_stop(const struct exec_run *run)
{
    return atomic_load_explicit(&run->must_stop, memory_order_relaxed);
}
static inline bool run_has_rank(const struct exec_run *run, uint32_t rank)
{
    return rank >= run->first_rank && rank - run->first_rank < run->rank_count;
}
static inline struct op_time *run_op_time(struct exec_run *run, uint32_t rank, uint32_t op)
{
    return &run->op_times[(size_t)rank * run->assignment.max_op_count_of_role +
                          (op - assignment_first_op(&run->assignment, rank))];
}
/* Fills *call with an op, the addresses of its operands on a rank, and what the assignment has for it there. */
void run_fill_call(struct exec_run *run, uint32_t rank, uint32_t op, struct call *call);
/* Writes "op 12 (all_reduce, stream comm.reduce, layer 3)" into text. */
void run_op_to_text(const struct ir *ir, uint32_t op, char *text, size_t size);

#endif
