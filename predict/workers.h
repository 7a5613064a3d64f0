/* predict/workers.h: runs one function for many jobs, in child processes, as many at once as there are
 * cores. Results come back as plain bytes, in the order of the jobs whatever order they end in. */
#ifndef PREDICT_WORKERS_H
#define PREDICT_WORKERS_H

#include "base/diag.h"
#include "predict/progress.h"

#include <stddef.h>

/* Fills result (result_size zeroed bytes, no pointers in them) for one job. It runs in a child that does several
 * jobs: the parent sees only result, but other data that a job changes stay changed for the later jobs of that
 * child. */
typedef void workers_job_fn(void *context, size_t job, void *result);

/* Runs jobs 0 to count - 1. results holds count * result_size bytes. progress, if not NULL, has begun, and its
 * count goes on from progress->base. A child that dies leaves an error that names its job, and ends the run with
 * STATUS_SYSTEM when all other jobs are done. After a signal that base/interrupt.h has noted, children are ended
 * and results of jobs that were not done stay zero. */
enum status workers_run(size_t count, size_t result_size, workers_job_fn *function, void *context,
                        void *results, struct progress *progress, struct diag *diag);

#endif
