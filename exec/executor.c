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

/* Default limits of time without progress: of one process, and of several, between which a collective may be at work
 * that nobody sees progress. */
enum { STALL_S = 10, STALL_TOGETHER_S = 60 };

struct rank_thread {
    struct executor *executor;
    uint32_t rank;
    pthread_t thread;
};

struct executor {
    struct exec_run *run;
    struct rank_thread *host;
    uint32_t started_threads; /* threads */
};

/* ---- the host of one rank ---- */

/* Waits until the run has failed. */
static void stand_still(struct exec_run *run)
{
    pthread_mutex_lock(&run->lock);
    while (!run_stopped(run) && !run->must_quit)
        pthread_cond_wait(&run->state_changed, &run->lock);
    pthread_mutex_unlock(&run->lock);
}

/* Blocks the host until the waits of a SYNC op have ended, since such an op is on no stream that could wait. */
static bool await_start(struct exec_run *run, uint32_t rank, uint32_t op)
{
    const struct ir *ir = run->ir;
    for (uint32_t k = 0; k < ir->op.wait_count[op]; k++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + k].i;
        if (work_kind_info(ir->op.kind[wait])->stream != STREAM_SYNC) {
            if (!run->backend->wait_op(run, rank, wait))
                return false;
        } else if (wait >= op) { /* earlier ones have been passed */
            stand_still(run);
            return false;
        }
    }
    return true;
}

static bool sync_op(struct exec_run *run, uint32_t rank, uint32_t op)
{
    struct op_time *time = run_time(run, rank, op);
    bool going = true;
    if (!await_start(run, rank, op))
        return false;
    time->start_s = run_now() - run->epoch_s;
    if (assignment_works(&run->assignment, rank, op))
        going = run->ir->op.kind[op] == WORK_BARRIER
                    ? run->backend->barrier(run, rank, op)
                    : run->backend->wait_stream(run, rank, run->ir->op.stream[op]);
    time->end_s = run_now() - run->epoch_s;
    if (going) {
        run->backend->sync_passed(run, rank, op);
        atomic_fetch_add(&run->progress, 1);
    }
    return going;
}

static bool issue_op(struct exec_run *run, uint32_t rank, uint32_t op)
{
    const struct exec_fault *fault = &run->options->fault;
    if (fault->kind != EXEC_FAULT_NONE && fault->rank == rank && fault->op == op) {
        if (fault->kind == EXEC_FAULT_FAIL)
            run_failed(run, rank, op, "fails on purpose, as a test requested");
        else
            stand_still(run);
        return false;
    }
    if (work_kind_info(run->ir->op.kind[op])->stream == STREAM_SYNC)
        return sync_op(run, rank, op);
    if (!run->backend->enqueue(run, rank, op))
        return false;
    return !ir_blocks_host(run->ir, op) || run->backend->wait_op(run, rank, op);
}

static void walk(struct exec_run *run, uint32_t rank)
{
    uint32_t first = assignment_first(&run->assignment, rank),
             count = assignment_ops(&run->assignment, rank);
    for (uint32_t k = 0; k < count; k++) {
        atomic_store_explicit(&run->host[rank], first + k, memory_order_relaxed);
        if (!issue_op(run, rank, first + k))
            return;
    }
    atomic_store_explicit(&run->host[rank], first + count, memory_order_relaxed);
    run->backend->finish(run, rank);
}

static void *host_main(void *argument)
{
    const struct rank_thread *host = argument;
    struct exec_run *run = host->executor->run;
    for (uint32_t step = 0;; step++) {
        pthread_mutex_lock(&run->lock);
        while (run->released_steps <= step && !run->must_quit)
            pthread_cond_wait(&run->state_changed, &run->lock);
        bool quit = run->must_quit;
        pthread_mutex_unlock(&run->lock);
        if (quit)
            return NULL;
        walk(run, host->rank);
        pthread_mutex_lock(&run->lock);
        run->ranks_done++;
        pthread_cond_broadcast(&run->state_changed);
        pthread_mutex_unlock(&run->lock);
    }
}

/* ---- all ranks ---- */

struct executor *executor_new(struct exec_run *run, struct diag *diag)
{
    struct executor *executor = heap_zalloc(1, sizeof *executor);
    executor->run = run;
    executor->host = heap_zalloc(run->count, sizeof *executor->host);
    for (uint32_t rank = run->first; rank < run->first + run->count; rank++) {
        struct rank_thread *host = &executor->host[rank - run->first];
        host->executor = executor;
        host->rank = rank;
        int error = pthread_create(&host->thread, NULL, host_main, host);
        if (error != 0) {
            diag_error(diag, (struct loc){run->name, 0, 0}, STATUS_SYSTEM,
                       "cannot start a thread for rank %" PRIu32 ": %s", rank, strerror(error));
            executor_free(executor);
            return NULL;
        }
        executor->started_threads++;
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
    for (uint32_t i = 0; i < executor->started_threads; i++)
        pthread_join(executor->host[i].thread, NULL);
    free(executor->host);
    free(executor);
}

static struct timespec clock_time(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    return t;
}

/* The state of the watcher between two looks. */
struct executor_watcher {
    double begin_s, still_since_s, stall_s, limit_s;
    uint64_t progress;
};

/* Fails the run when nothing ends and nothing works, or when the step takes too long. */
static void check_progress(struct exec_run *run, struct executor_watcher *watch)
{
    char why[640];
    if (run_ended(run))
        return;
    if (run->backend->watch != NULL)
        run->backend->watch(run);
    double now = run_now();
    uint64_t progress = atomic_load(&run->progress);
    bool busy = atomic_load(&run->running_ops) > 0;
    struct bootstrap_progress all = {progress, busy, 0};
    if (run->world != NULL) /* an op that waits for another process is at work if that process is */
        all = bootstrap_report(run->world, progress, busy, false);
    if (all.ended_ops != watch->progress || busy || all.busy_processes > 0) {
        watch->progress = all.ended_ops;
        watch->still_since_s = now;
    }
    if (all.failed_rank != 0) {
        stall_explain(run, why, sizeof why);
        run_failed(run, IR_NONE, IR_NONE,
                   "rank %" PRIu32 " has failed or ended, and its own message says why; here %s",
                   all.failed_rank - 1, why);
    } else if (now - watch->still_since_s >= watch->stall_s) {
        stall_explain(run, why, sizeof why);
        run_failed(run, IR_NONE, IR_NONE, "the step has stalled: %s", why);
    } else if (watch->limit_s > 0 && now - watch->begin_s >= watch->limit_s) {
        stall_explain(run, why, sizeof why);
        run_failed(run, IR_NONE, IR_NONE, "the step takes longer than the limit of %g s: %s",
                   watch->limit_s, why);
    }
}

double executor_step(struct executor *executor)
{
    struct exec_run *run = executor->run;
    uint32_t ranks = run->assignment.ranks;
    run->backend->begin_step(run);
    if (run->poison != NULL)
        poison_begin_step(run);
    for (uint32_t rank = 0; rank < ranks; rank++)
        atomic_store(&run->host[rank], assignment_first(&run->assignment, rank));

    struct executor_watcher watch = {.stall_s = run->options->stall_s > 0 ? run->options->stall_s
                                                : run->world != NULL      ? STALL_TOGETHER_S
                                                                          : STALL_S,
                                     .limit_s = run->options->limit_s,
                                     .progress = atomic_load(&run->progress)};
    double check_every_s = watch.stall_s / 8;
    if (watch.limit_s > 0 && watch.limit_s / 8 < check_every_s)
        check_every_s = watch.limit_s / 8;
    if ((run->options->ended_by != NULL || run->world != NULL) && check_every_s > 0.1)
        check_every_s = 0.1;
    pthread_mutex_lock(&run->lock);
    run->ranks_done = 0;
    run->epoch_s = watch.begin_s = watch.still_since_s = run_now();
    run->released_steps++;
    pthread_cond_broadcast(&run->state_changed);
    double next_s = run->epoch_s + check_every_s;
    while (run->ranks_done < run->count) {
        struct timespec until = clock_time(next_s);
        int waited = pthread_cond_timedwait(&run->state_changed, &run->lock, &until);
        if (waited != ETIMEDOUT)
            continue;
        next_s = run_now() + check_every_s;
        if (run->ranks_done == run->count || run_stopped(run))
            continue;
        pthread_mutex_unlock(&run->lock);
        check_progress(run, &watch);
        pthread_mutex_lock(&run->lock);
    }
    double seconds = run_now() - run->epoch_s;
    bool failed = run->status != STATUS_OK;
    pthread_mutex_unlock(&run->lock);
    if (!failed && run->backend->end_step != NULL) {
        run->backend->end_step(run);
        failed = run_stopped(run);
    }
    if (run->world != NULL)
        (void)bootstrap_report(run->world, atomic_load(&run->progress), false, failed);
    return failed ? -1 : seconds;
}
