/* cli/sweep/pool.h: worker processes that do jobs one after the other, each as long as it lives.
 *
 * A worker is forked once, takes jobs by number and answers with bytes. One that dies takes its job
 * with it, is reported with the reason, and is replaced. Workers end when the pool is released or
 * its process goes away, however it goes. */
#ifndef CLI_SWEEP_POOL_H
#define CLI_SWEEP_POOL_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does one job in a worker, and appends its answer. What it changes elsewhere is the worker's own. */
typedef void pool_function(void *context, uint64_t job, struct text *answer);

struct pool {
    struct pool_worker *worker;
    size_t count, busy;
    pool_function *function;
    void *context;
};

enum pool_event_kind { POOL_NOTHING, POOL_ANSWER, POOL_DEATH };

struct pool_event {
    enum pool_event_kind kind;
    uint64_t job;
    struct text *answer; /* ANSWER; DEATH: why. Good until the next call. */
};

/* Cores that this process may use. */
size_t pool_cores(void);

/* *pool must be all-zero; release it in either case. context must outlive it. */
enum status pool_start(struct pool *pool, size_t workers, pool_function *function, void *context,
                       struct diag *diag);
void pool_release(struct pool *pool); /* ends workers at once, in the middle of what they do */

/* Gives a job to an idle worker; there must be one (busy < count). */
enum status pool_give(struct pool *pool, uint64_t job, struct diag *diag);

/* Waits for one event, at most timeout_ms (-1: for ever), or until a signal was handled. */
enum status pool_wait(struct pool *pool, int timeout_ms, struct pool_event *event,
                      struct diag *diag);

#endif
