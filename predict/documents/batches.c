#include "predict/documents/batches.h"

#include "predict/prediction.h"
#include "predict/workers.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct setup *setup;
    const struct packed_batch *batch;
    bool exact;
};

struct answer {
    enum status status;
    double step_s;
    char message[400];
};

static void predict_one(void *context, size_t i, void *result)
{
    const struct job *job = context;
    struct answer *answer = result;
    struct request request = job->setup->request;
    struct documents documents;
    struct arena arena = {0};
    struct prediction p = {0};
    struct diag diag = {0};
    packed_batch_documents(&job->batch[i], request.seq, &documents, &arena);
    request.documents = &documents;
    answer->status = prediction_make(&p, job->setup, &request, job->exact, &diag);
    answer->step_s = p.sim.step_s;
    snprintf(answer->message, sizeof answer->message, "%s", diag.text != NULL ? diag.text : "");
    answer->message[strcspn(answer->message, "\n")] = '\0';
    prediction_release(&p);
    diag_release(&diag);
    arena_release(&arena);
}

static void summarise(struct batch_times *times, const struct packed_batch *batch)
{
    double *sorted = heap_alloc(times->count, sizeof *sorted), all_s = 0, tokens = 0, padding = 0;
    memcpy(sorted, times->step_s, times->count * sizeof *sorted);
    gsl_sort(sorted, 1, times->count);
    times->median_s = gsl_stats_quantile_from_sorted_data(sorted, 1, times->count, 0.5);
    times->high_s = gsl_stats_quantile_from_sorted_data(sorted, 1, times->count, 0.9);
    times->worst_s = sorted[times->count - 1];
    free(sorted);
    for (size_t i = times->count; i-- > 0;) {
        all_s += times->step_s[i];
        tokens += (double)batch[i].tokens;
        padding += (double)batch[i].padding;
        if (times->step_s[i] == times->worst_s)
            times->worst = i;
    }
    times->tokens_per_s = all_s > 0 ? tokens / all_s : 0;
    times->padding_share = padding / (tokens + padding);
}

enum status batch_times_make(struct batch_times *times, const struct setup *setup,
                             const struct packed_batch *batch, size_t count, bool exact,
                             struct diag *diag)
{
    struct job job = {setup, batch, exact};
    struct answer *answer = heap_zalloc(count, sizeof *answer);
    struct progress progress = {0};
    progress_begin(&progress, count, 0);
    enum status status =
        workers_run(count, sizeof *answer, predict_one, &job, answer, &progress, diag);
    progress_end();
    times->count = count;
    times->step_s = heap_zalloc(count, sizeof *times->step_s);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        times->step_s[i] = answer[i].step_s;
        status = answer[i].status;
        if (status != STATUS_OK)
            diag_error(diag, (struct loc){.name = "--batches"}, status, "batch %zu: %s", i,
                       answer[i].message);
    }
    if (status == STATUS_OK)
        summarise(times, batch);
    free(answer);
    return status;
}

void batch_times_release(struct batch_times *times)
{
    free(times->step_s);
    *times = (struct batch_times){0};
}
