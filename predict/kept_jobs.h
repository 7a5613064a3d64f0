/* predict/kept_jobs.h: jobs of child processes (predict/workers.h) whose results are kept on disk, so that a later run
 * does not do them again (base/answer_file.h). */
#ifndef PREDICT_KEPT_JOBS_H
#define PREDICT_KEPT_JOBS_H

#include "base/answer_file.h"
#include "predict/workers.h"

/* Results of earlier jobs. All-zero: none, and none are kept. */
struct kept_jobs {
    struct answer_file *file; /* NULL: none */
    uint64_t question;        /* digest of all on which every job's result depends */
    size_t *taken;            /* counts the jobs that were not done again; NULL: nobody asks */
    struct diag *why;         /* gets an error where results are no longer written */
};

/* Does what workers_run() does, but takes results that are known. key[count] are digests of what, beside the question,
 * a job's result depends on. A result that is all zero is not kept: its job was not done. A result that holds pointers
 * must have them replaced by the caller, since those of another process mean nothing. */
enum status kept_jobs_run(const struct kept_jobs *kept, const uint64_t *key, size_t count,
                          size_t result_size, workers_function *function, void *context,
                          void *results, struct progress *progress, struct diag *diag);

#endif
