/* predict/kept_jobs.h: jobs of child processes (predict/workers.h) whose results are kept on disk, so that a later run
 * does not do them again (base/answer_file.h). */
#ifndef PREDICT_KEPT_JOBS_H
#define PREDICT_KEPT_JOBS_H

#include "base/answer_file.h"
#include "predict/workers.h"

/* The results of earlier jobs. All-zero: there are none, and new results are not kept. */
struct kept_jobs {
    struct answer_file *answer_file; /* NULL: none */
    uint64_t question_digest; /* digest of everything on which the results of all jobs depend */
    struct diag *write_error; /* gets an error when results can no longer be written */
};

/* Does what workers_run() does, but takes from the file the results that it has, and adds the others to it. key[count]:
 * for each job, a digest of what its result depends on besides kept->question_digest. A result that is all zero is not
 * kept, since its job was not done. If results hold pointers, the caller must replace them, since pointers of another
 * process mean nothing. */
enum status kept_jobs_run(const struct kept_jobs *kept, const uint64_t *key, size_t count,
                          size_t result_size, workers_job_fn *function, void *context,
                          void *results, struct progress *progress, struct diag *diag);

#endif
