#include "exec/executor.h"

#include "base/c_locale.h"
#include "exec/bootstrap.h"
#include "exec/poison.h"
#include "exec/stall.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Default limits in seconds of the time without progress, for one process and for several. With several processes the
 * limit is longer, because a long collective may end no op on any of them for a while. */
enum { STALL_S = 10, STALL_TOGETHER_S = 60 };

struct rank_thread {
    struct executor *executor;
    uint32_t rank;
    pthread_t thread;
};

struct executor {
    struct exec_run *run;
    struct rank_thread *host_threads;
    uint32_t started_count; /* threads that were started */
};

/* ---- the host thread of one rank ---- */

/* Waits until the run has failed or ends. */
static void wait_until_run_fails(struct exec_run *run)
{
    pthread_mutex_lock(&run->lock);
    while (!run_must_stop(run) && !run->must_quit)
        pthread_cond_wait(&run->state_changed, &run->lock);
    pthread_mutex_unlock(&run->lock);
}

/* Blocks the host until the ops for which a SYNC op waits have ended, since a SYNC op is on no stream that would wait
 * for them. Returns false if the run has failed. A wait for a later SYNC op can never end, so the run then stalls. */
static bool wait_for_dependencies(struct exec_run *run, uint32_t rank, uint32_t op)
{
    const struct ir *ir = run->ir;
    for (uint32_t k = 0; k < ir->op.wait_count[op]; k++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + k].i;
        if (work_kind_info(ir->op.kind[wait])->stream != STREAM_SYNC) {
            if (!run->backend->wait_op(run, rank, wait))
                return false;
        } else if (wait >= op) { /* the host has passed earlier SYNC ops */
            wait_until_run_fails(run);
            return false;
        }
    }
    return true;
}

static bool run_sync_op(struct exec_run *run, uint32_t rank, uint32_t op)
{
    struct op_time *time = run_op_time(run, rank, op);
    bool may_continue = true;
    if (!wait_for_dependencies(run, rank, op))
        return false;
    time->start_s = run_now_s() - run->step_release_time_s;
    if (assignment_op_works_on_rank(&run->assignment, rank, op))
        may_continue = run->ir->op.kind[op] == WORK_BARRIER
                           ? run->backend->barrier(run, rank, op)
                           : run->backend->wait_stream(run, rank, run->ir->op.stream[op]);
    time->end_s = run_now_s() - run->step_release_time_s;
    if (may_continue) {
        run->backend->record_passed_sync(run, rank, op);
        atomic_fetch_add(&run->ended_ops, 1);
    }
    return may_continue;
}

static bool issue_op(struct exec_run *run, uint32_t rank, uint32_t op)
{
    const struct exec_fault *fault = &run->options->fault;
    if (fault->kind != EXEC_FAULT_NONE && fault->rank == rank && fault->op == op) {
        if (fault->kind == EXEC_FAULT_FAIL)
            run_record_failure(run, rank, op, "fails on purpose, as a test requested");
        else
            wait_until_run_fails(run);
        return false;
    }
    if (work_kind_info(run->ir->op.kind[op])->stream == STREAM_SYNC)
        return run_sync_op(run, rank, op);
    if (!run->backend->enqueue(run, rank, op))
        return false;
    return !ir_blocks_host(run->ir, op) || run->backend->wait_op(run, rank, op);
}

static void issue_all_ops(struct exec_run *run, uint32_t rank)
{
    uint32_t first = assignment_first_op(&run->assignment, rank),
             count = assignment_op_count(&run->assignment, rank);
    for (uint32_t k = 0; k < count; k++) {
        atomic_store_explicit(&run->host_op[rank], first + k, memory_order_relaxed);
        if (!issue_op(run, rank, first + k))
            return;
    }
    atomic_store_explicit(&run->host_op[rank], first + count, memory_order_relaxed);
    run->backend->finish(run, rank);
}

static void *host_thread_main(void *argument)
{
    const struct rank_thread *host = argument;
    struct exec_run *run = host->executor->run;
    for (uint32_t step = 0;; step++) {
        pthread_mutex_lock(&run->lock);
        while (run->released_step_count <= step && !run->must_quit)
            pthread_cond_wait(&run->state_changed, &run->lock);
        bool quit = run->must_quit;
        pthread_mutex_unlock(&run->lock);
        if (quit)
            return NULL;
        issue_all_ops(run, host->rank);
        pthread_mutex_lock(&run->lock);
        run->finished_rank_count++;
        pthread_cond_broadcast(&run->state_changed);
        pthread_mutex_unlock(&run->lock);
    }
}

/* ---- steps of all ranks ---- */

struct executor *executor_new(struct exec_run *run, struct diag *diag)
{
    struct executor *executor = heap_zalloc(1, sizeof *executor);
    executor->run = run;
    executor->host_threads = heap_zalloc(run->rank_count, sizeof *executor->host_threads);
    for (uint32_t rank = run->first_rank; rank < run->first_rank + run->rank_count; rank++) {
        struct rank_thread *host = &executor->host_threads[rank - run->first_rank];
        host->executor = executor;
        host->rank = rank;
        int error = pthread_create(&host->thread, NULL, host_thread_main, host);
        if (error != 0) {
            diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_SYSTEM,
                       "cannot start a thread for rank %" PRIu32 ": %s", rank, strerror(error));
            executor_free(executor);
            return NULL;
        }
        executor->started_count++;
    }
    return executor;
}

void executor_free(struct executor *executor)
{
    if (executor == NULL)
        return;
    struct exec_run *run = executor->run;
    pthread_mutex_lock(&run->lock);
    run->must_quit = true;
    pthread_cond_broadcast(&run->state_changed);
    pthread_mutex_unlock(&run->lock);
    for (uint32_t i = 0; i < executor->started_count; i++)
        pthread_join(executor->host_threads[i].thread, NULL);
    free(executor->host_threads);
    free(executor);
}

static struct timespec timespec_from_seconds(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    return t;
}

/* The watcher's state from one check for progress to the next. */
struct executor_stall_watcher {
    double begin_s, still_since_s, stall_limit_s, step_limit_s;
    uint64_t ended_ops_at_last_check;
};

/* Called from time to time during a step. Fails the run if another process has failed, if for stall_limit_s no op has
 * ended and none has been running, or if the step exceeds step_limit_s. Ends it if the caller asks for this. */
static void check_progress(struct exec_run *run, struct executor_stall_watcher *watch)
{
    char why[640];
    if (run_is_ended_by_caller(run))
        return;
    if (run->backend->watch != NULL)
        run->backend->watch(run);
    double now = run_now_s();
    uint64_t progress = atomic_load(&run->ended_ops);
    bool busy = atomic_load(&run->running_op_count) > 0;
    struct bootstrap_progress all = {progress, busy, 0};
    /* an op that waits for another process counts as running while that process makes progress */
    if (run->world != NULL)
        all = bootstrap_report_progress(run->world, progress, busy, false);
    if (all.ended_ops != watch->ended_ops_at_last_check || busy || all.busy_processes > 0) {
        watch->ended_ops_at_last_check = all.ended_ops;
        watch->still_since_s = now;
    }
    if (all.failed_rank_plus_1 != 0) {
        stall_explain(run, why, sizeof why);
        run_record_failure(run, IR_NONE, IR_NONE,
                           "rank %" PRIu32
                           " has failed or ended, and its own message says why; here %s",
                           all.failed_rank_plus_1 - 1, why);
    } else if (now - watch->still_since_s >= watch->stall_limit_s) {
        stall_explain(run, why, sizeof why);
        run_record_failure(run, IR_NONE, IR_NONE, "the step has stalled: %s", why);
    } else if (watch->step_limit_s > 0 && now - watch->begin_s >= watch->step_limit_s) {
        stall_explain(run, why, sizeof why);
        run_record_failure(run, IR_NONE, IR_NONE,
                           "the step takes longer than the limit of %g s: %s", watch->step_limit_s,
                           why);
    }
}

double executor_run_step(struct executor *executor)
{
    struct exec_run *run = executor->run;
    uint32_t ranks = run->assignment.ranks;
    run->backend->begin_step(run);
    if (run->poison != NULL)
        poison_begin_step(run);
    for (uint32_t rank = 0; rank < ranks; rank++)
        atomic_store(&run->host_op[rank], assignment_first_op(&run->assignment, rank));

    struct executor_stall_watcher watch = {.stall_limit_s = run->options->stall_limit_s > 0
                                                                ? run->options->stall_limit_s
                                                            : run->world != NULL ? STALL_TOGETHER_S
                                                                                 : STALL_S,
                                           .step_limit_s = run->options->step_limit_s,
                                           .ended_ops_at_last_check = atomic_load(&run->ended_ops)};
    double check_every_s = watch.stall_limit_s / 8;
    if (watch.step_limit_s > 0 && watch.step_limit_s / 8 < check_every_s)
        check_every_s = watch.step_limit_s / 8;
    if ((run->options->ended_by != NULL || run->world != NULL) && check_every_s > 0.1)
        check_every_s = 0.1;
    pthread_mutex_lock(&run->lock);
    run->finished_rank_count = 0;
    run->step_release_time_s = watch.begin_s = watch.still_since_s = run_now_s();
    run->released_step_count++;
    pthread_cond_broadcast(&run->state_changed);
    double next_s = run->step_release_time_s + check_every_s;
    while (run->finished_rank_count < run->rank_count) {
        struct timespec until = timespec_from_seconds(next_s);
        int waited = pthread_cond_timedwait(&run->state_changed, &run->lock, &until);
        if (waited != ETIMEDOUT)
            continue;
        next_s = run_now_s() + check_every_s;
        if (run->finished_rank_count == run->rank_count || run_must_stop(run))
            continue;
        pthread_mutex_unlock(&run->lock);
        check_progress(run, &watch);
        pthread_mutex_lock(&run->lock);
    }
    double seconds = run_now_s() - run->step_release_time_s;
    bool failed = run->failure_status != STATUS_OK;
    pthread_mutex_unlock(&run->lock);
    if (!failed && run->backend->end_step != NULL) {
        run->backend->end_step(run);
        failed = run_must_stop(run);
    }
    if (run->world != NULL)
        (void)bootstrap_report_progress(run->world, atomic_load(&run->ended_ops), false, failed);
    return failed ? -1 : seconds;
}
