/* base/pool.h: worker processes that each run one job after another.
 *
 * A worker is forked once, takes jobs by number and answers with bytes. If a worker dies during a
 * job, the job is lost, the death is reported with its reason, and the worker is replaced. Workers
 * end when the pool is released or its process ends, in whatever way. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does one job in a worker process, and appends its answer. Other memory that it changes stays changed for that worker
 * only. */
typedef void pool_function(void *context, uint64_t job, struct text *answer);

struct pool {
    struct pool_worker *workers;
    size_t worker_count, busy_workers;
    pool_function *function;
    void *context;
};

enum pool_event_kind {
    POOL_NO_EVENT, /* the time was over, or a signal was handled */
    POOL_ANSWER,   /* a job was done */
    POOL_DEATH     /* the worker that did the job died */
};

struct pool_event {
    enum pool_event_kind kind;
    uint64_t job;
    /* POOL_ANSWER: the worker's answer; POOL_DEATH: how the worker died, such as "its process ended with code 3". Valid
     * until the next call of pool_wait(). POOL_NO_EVENT: NULL */
    struct text *answer;
};

/* Returns the number of cores that this process may use. */
size_t pool_count_usable_cores(void);

/* Fills *pool and forks its workers, each of which calls `function` for its jobs. Release *pool even after an error.
 * `context` must live longer than *pool. */
enum status pool_start(struct pool *pool, size_t workers, pool_function *function, void *context,
                       struct diag *diag);
void pool_release(struct pool *pool); /* ends workers at once, even in the middle of a job */

/* Sends a job to an idle worker; there must be one: busy_workers < worker_count. */
enum status pool_submit_job(struct pool *pool, uint64_t job, struct diag *diag);

/* Sets *event to the next answer or death of a worker. Waits for it for at most timeout_ms (-1: for ever), or until a
 * signal was handled; the event is then POOL_NO_EVENT. */
enum status pool_wait(struct pool *pool, int timeout_ms, struct pool_event *event,
                      struct diag *diag);

#endif
