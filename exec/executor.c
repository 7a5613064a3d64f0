#include "exec/executor.h"

#include "base/c_locale.h"
#include "exec/bootstrap.h"
#include "exec/poison.h"
#include "exec/stall.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
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
    uint32_t started; /* threads */
};

/* ---- what all parts of a run share ---- */

double run_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void run_op_text(const struct ir *ir, uint32_t op, char *text, size_t size)
{
    char layer[32] = "";
    if (ir->op.layer[op] != IR_NONE16)
        snprintf(layer, sizeof layer, ", layer %" PRIu16, ir->op.layer[op]);
    snprintf(text, size, "op %" PRIu32 " (%s, stream %s%s)", op,
             work_kind_info(ir->op.kind[op])->name, ir->stream[ir->op.stream[op]].name, layer);
}

static void fail(struct exec_run *run, enum status status, const char *words)
{
    pthread_mutex_lock(&run->lock);
    bool first = run->status == STATUS_OK;
    if (first) {
        run->status = status;
        snprintf(run->failure, sizeof run->failure, "%s", words);
        atomic_store(&run->stop, true);
        pthread_cond_broadcast(&run->changed);
    }
    pthread_mutex_unlock(&run->lock);
    if (first)
        run->backend->stop(run);
}

void run_failed(struct exec_run *run, uint32_t rank, uint32_t op, const char *format, ...)
{
    char what[640], where[96] = "", words[sizeof run->failure];
    va_list args;
    va_start(args, format);
    c_vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (op != IR_NONE)
        run_op_text(run->ir, op, where, sizeof where);
    if (rank == IR_NONE)
        snprintf(words, sizeof words, "%s", what);
    else
        snprintf(words, sizeof words, "rank %" PRIu32 ": %s%s%s", rank, where,
                 op == IR_NONE ? "" : " ", what);
    fail(run, STATUS_NO, words);
}

void run_refused(struct exec_run *run, const char *format, ...)
{
    char words[640];
    va_list args;
    va_start(args, format);
    c_vsnprintf(words, sizeof words, format, args);
    va_end(args);
    fail(run, STATUS_SYSTEM, words);
}

bool run_ended(struct exec_run *run)
{
    const char *by = run->options->ended_by != NULL ? run->options->ended_by() : NULL;
    if (by != NULL)
        run_refused(run, "ended by %s", by);
    return by != NULL;
}

static struct operand operand_of(struct exec_run *run, uint32_t rank, struct view view)
{
    const struct buffer_table *table = &run->ir->buffer;
    uint32_t buffer = view.buffer.i;
    char *base = run->backend->memory(run, rank, table->memory[buffer]);
    return (struct operand){base + table->offset[buffer] +
                                view.begin * dtype_bytes(table->dtype[buffer]),
                            view.count, table->dtype[buffer]};
}

void run_call(struct exec_run *run, uint32_t rank, uint32_t op, struct call *call)
{
    const struct ir *ir = run->ir;
    call->work = ir_work(ir, op);
    call->rank = rank;
    call->op = op;
    call->softmax = run->assignment.softmax[op];
    int64_t part = work_part(call->work);
    call->part = part < 0 ? 0 : assignment_index(&run->assignment, rank, (uint32_t)part);
    call->share = NULL;
    call->share_count = 0;
    if (run->assignment.share_row[op] != IR_NONE) {
        const struct assignment_shares *shares =
            &run->assignment
                 .shares[(size_t)run->assignment.share_row[op] * run->assignment.ranks + rank];
        call->share = shares->share;
        call->share_count = shares->count;
    }
    call->piece = NULL;
    call->pieces = 0;
    if (run->assignment.pieces_row[ir->op.shape[op]] != IR_NONE) {
        const struct assignment_pieces *pieces =
            &run->assignment.pieces[(size_t)run->assignment.pieces_row[ir->op.shape[op]] *
                                        run->assignment.ranks +
                                    rank];
        call->piece = pieces->piece;
        call->pieces = pieces->count;
    }
    call->model = run->options->model;
    call->adamw = run->options->adamw;
    call->adamw.step = (call->adamw.step > 0 ? call->adamw.step : 1) + run->step;
    call->reads = ir->op.reads[op];
    call->writes = ir->op.writes[op];
    for (uint32_t k = 0; k < call->reads; k++)
        call->read[k] = operand_of(run, rank, ir_read(ir, op, k));
    for (uint32_t k = 0; k < call->writes; k++)
        call->write[k] = operand_of(run, rank, ir_write(ir, op, k));
}

/* ---- the host of one rank ---- */

/* Waits until the run has failed. */
static void stand_still(struct exec_run *run)
{
    pthread_mutex_lock(&run->lock);
    while (!run_stopped(run) && !run->quit)
        pthread_cond_wait(&run->changed, &run->lock);
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
        run->backend->pass(run, rank, op);
        atomic_fetch_add(&run->progress, 1);
    }
    return going;
}

static bool issue(struct exec_run *run, uint32_t rank, uint32_t op)
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
        if (!issue(run, rank, first + k))
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
        while (run->released <= step && !run->quit)
            pthread_cond_wait(&run->changed, &run->lock);
        bool quit = run->quit;
        pthread_mutex_unlock(&run->lock);
        if (quit)
            return NULL;
        walk(run, host->rank);
        pthread_mutex_lock(&run->lock);
        run->ranks_done++;
        pthread_cond_broadcast(&run->changed);
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
        executor->started++;
    }
    return executor;
}

void executor_free(struct executor *executor)
{
    if (executor == NULL)
        return;
    struct exec_run *run = executor->run;
    pthread_mutex_lock(&run->lock);
    run->quit = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    for (uint32_t i = 0; i < executor->started; i++)
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
struct watch {
    double begin_s, still_since_s, stall_s, limit_s;
    uint64_t progress;
};

/* Fails the run when nothing ends and nothing works, or when the step takes too long. */
static void check_progress(struct exec_run *run, struct watch *watch)
{
    char why[640];
    if (run_ended(run))
        return;
    if (run->backend->watch != NULL)
        run->backend->watch(run);
    double now = run_now();
    uint64_t progress = atomic_load(&run->progress);
    bool busy = atomic_load(&run->busy) > 0;
    struct bootstrap_progress all = {progress, busy, 0};
    if (run->world != NULL) /* an op that waits for another process is at work if that process is */
        all = bootstrap_report(run->world, progress, busy, false);
    if (all.ended != watch->progress || busy || all.busy > 0) {
        watch->progress = all.ended;
        watch->still_since_s = now;
    }
    if (all.failed != 0) {
        stall_explain(run, why, sizeof why);
        run_failed(run, IR_NONE, IR_NONE,
                   "rank %" PRIu32 " has failed or ended, and its own message says why; here %s",
                   all.failed - 1, why);
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

    struct watch watch = {.stall_s = run->options->stall_s > 0 ? run->options->stall_s
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
    run->released++;
    pthread_cond_broadcast(&run->changed);
    double next_s = run->epoch_s + check_every_s;
    while (run->ranks_done < run->count) {
        struct timespec until = clock_time(next_s);
        int waited = pthread_cond_timedwait(&run->changed, &run->lock, &until);
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
