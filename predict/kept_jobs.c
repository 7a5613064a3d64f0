#include "predict/kept_jobs.h"

#include "base/arena.h"
#include "base/digest.h"
#include "base/interrupt.h"

#include <stdlib.h>
#include <string.h>

/* The jobs whose results are not known yet. */
struct unfinished_jobs {
    workers_job_fn *function;
    void *context;
    size_t *index_of_each_unfinished_job; /* [job_count] on the heap */
    size_t job_count;
};

static void do_unfinished_job(void *context, size_t number, void *result)
{
    const struct unfinished_jobs *unfinished = context;
    unfinished->function(unfinished->context, unfinished->index_of_each_unfinished_job[number],
                         result);
}

static bool is_all_zero(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* Keeps a new result, unless an interrupt may have ended its job early. If the result cannot be written,
 * kept->write_error gets an error, and the other jobs go on. */
static void keep_result(const struct kept_jobs *kept, uint64_t key, const char *result, size_t size)
{
    if (!is_all_zero(result, size) && interrupt_caught_signal_number() == 0)
        answer_file_add(kept->answer_file, key, result, size, kept->write_error);
}

enum status kept_jobs_run(const struct kept_jobs *kept, const uint64_t *key, size_t count,
                          size_t result_size, workers_job_fn *function, void *context,
                          void *results, struct progress *progress, struct diag *diag)
{
    if (kept->answer_file == NULL)
        return workers_run(count, result_size, function, context, results, progress, diag);
    struct unfinished_jobs unfinished = {function, context, heap_alloc(count + 1, sizeof(size_t)),
                                         0};
    char *result = results, *made;
    memset(results, 0, count * result_size);
    for (size_t i = 0; i < count; i++)
        if (!answer_file_find(kept->answer_file,
                              digest_add(kept->question_digest, &key[i], sizeof key[i]),
                              result + i * result_size, result_size))
            unfinished.index_of_each_unfinished_job[unfinished.job_count++] = i;
    made = heap_zalloc(unfinished.job_count + 1, result_size);
    enum status status = workers_run(unfinished.job_count, result_size, do_unfinished_job,
                                     &unfinished, made, progress, diag);
    for (size_t i = 0; i < unfinished.job_count; i++) {
        const size_t job = unfinished.index_of_each_unfinished_job[i];
        memcpy(result + job * result_size, made + i * result_size, result_size);
        keep_result(kept, digest_add(kept->question_digest, &key[job], sizeof key[job]),
                    result + job * result_size, result_size);
    }
    free(made);
    free(unfinished.index_of_each_unfinished_job);
    return status;
}
