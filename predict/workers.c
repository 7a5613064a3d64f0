#include "predict/workers.h"

#include "base/arena.h"
#include "base/interrupt.h"
#include "base/pool.h"
#include "sim/scheduler/engine.h"

#include <stdlib.h>
#include <string.h>

static const struct loc nowhere = {.name = "longhaul"};

struct workers_run_state {
    size_t result_size;
    workers_job_fn *function;
    void *context;
    char *results;
};

/* Does one job in a child process, and appends the bytes of its result to *answer. */
static void do_job_in_child(void *context, uint64_t job, struct text *answer)
{
    const struct workers_run_state *w = context;
    char *result = heap_zalloc(1, w->result_size);
    w->function(w->context, (size_t)job, result);
    text_append(answer, result, w->result_size);
    free(result);
}

/* Stores the result of the job that ended, or reports that its child process died. The other jobs go on in either case.
 * Does nothing if no job ended. */
static enum status store_job_result(struct workers_run_state *w, const struct pool_event *event,
                                    struct diag *diag)
{
    if (event->kind == POOL_DEATH)
        return diag_error(diag, nowhere, STATUS_SYSTEM, "job %llu: %s",
                          (unsigned long long)event->job + 1, event->answer->data);
    if (event->kind == POOL_ANSWER)
        memcpy(w->results + event->job * w->result_size, event->answer->data, w->result_size);
    return STATUS_OK;
}

enum status workers_run(size_t count, size_t result_size, workers_job_fn *function, void *context,
                        void *results, struct progress *progress, struct diag *diag)
{
    struct workers_run_state w = {result_size, function, context, results};
    struct pool pool = {0};
    size_t cores = pool_count_usable_cores(), next = 0, ended = 0;
    enum status lost = STATUS_OK; /* STATUS_SYSTEM if a job's process died */
    if (count == 0)
        return STATUS_OK;
    memset(results, 0, count * result_size);
    enum status status = engine_load(diag); /* jobs may simulate */
    if (status == STATUS_OK)
        status = pool_start(&pool, cores < count ? cores : count, do_job_in_child, &w, diag);
    while (status == STATUS_OK && ended < count && interrupt_caught_signal_number() == 0) {
        struct pool_event event;
        while (status == STATUS_OK && next < count && pool.busy_workers < pool.worker_count)
            status = pool_submit_job(&pool, next++, diag);
        /* when a signal interrupts it, pool_wait() returns without an event */
        if (status == STATUS_OK)
            status = pool_wait(&pool, 1000, &event, diag);
        if (status != STATUS_OK)
            break;
        enum status one = store_job_result(&w, &event, diag);
        lost = one != STATUS_OK ? one : lost;
        ended += event.kind != POOL_NO_EVENT;
        if (progress != NULL)
            progress_update(progress, progress->jobs_done_before_run + ended,
                            progress->note != NULL ? progress->note : "");
    }
    pool_release(&pool);
    return status != STATUS_OK ? status : lost;
}
