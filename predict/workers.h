/* predict/workers.h: runs one function for many jobs, in child processes, as many at once as there are
 * cores. Results come back as plain bytes, in the order of the jobs whatever order they end in. */
#ifndef PREDICT_WORKERS_H
#define PREDICT_WORKERS_H

#include "base/diag.h"
#include "predict/progress.h"

#include <stddef.h>

/* Does one job and fills its result, result_size zeroed bytes that must not hold pointers. It runs in a child process,
 * which does several jobs: the parent sees only the result, and other data that a job changes stay changed for that
 * child's later jobs. */
typedef void workers_job_fn(void *context, size_t job, void *result);

/* Runs jobs 0 to count - 1 in child processes; results has count * result_size bytes. progress: NULL, or a search that
 * progress_begin() has begun; the first job that ends is reported as number progress->jobs_done_before_run + 1. If a
 * child dies, an error names its job, and STATUS_SYSTEM is returned once all other jobs are done. After a signal that
 * base/interrupt.h has noted, children are ended, and the results of jobs that were not done stay zero. */
enum status workers_run(size_t count, size_t result_size, workers_job_fn *function, void *context,
                        void *results, struct progress *progress, struct diag *diag);

#endif
