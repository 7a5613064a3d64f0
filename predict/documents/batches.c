#include "predict/documents/batches.h"

#include "predict/workers.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct prediction *first;
    const struct packed_batch *batch; /* that of the first job */
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
    struct request request = job->first->setup->request;
    struct documents documents;
    struct arena arena = {0};
    struct prediction p = {.skip_arenas = true,
                           .skip_documents = true,
                           .slow_rank = job->first->slow_rank,
                           .slow_factor = job->first->slow_factor};
    struct diag diag = {0};
    packed_batch_documents(&job->batch[i], request.seq, &documents, &arena);
    request.documents = &documents;
    answer->status = prediction_make(&p, job->first->setup, &request, job->exact, &diag);
    answer->step_s = p.sim.step_s;
    snprintf(answer->message, sizeof answer->message, "%s", diag.text != NULL ? diag.text : "");
    answer->message[strcspn(answer->message, "\n")] = '\0';
    prediction_release(&p);
    diag_release(&diag);
    arena_release(&arena);
}

struct step_spread step_spread_of(const double *step_s, size_t count)
{
    double *sorted = heap_alloc(count, sizeof *sorted);
    memcpy(sorted, step_s, count * sizeof *sorted);
    gsl_sort(sorted, 1, count);
    struct step_spread spread = {
        .steps = count,
        .median_s = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 0.5),
        .high_s = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 0.9),
        .worst_s = sorted[count - 1],
    };
    free(sorted);
    return spread;
}

static void summarise(struct batch_times *times, const struct packed_batch *batch)
{
    double all_s = 0, tokens = 0, padding = 0;
    times->spread = step_spread_of(times->step_s, times->count);
    for (size_t i = times->count; i-- > 0;) {
        all_s += times->step_s[i];
        tokens += (double)batch[i].tokens;
        padding += (double)batch[i].padding;
        if (times->step_s[i] == times->spread.worst_s)
            times->worst = i;
    }
    times->tokens_per_s = all_s > 0 ? tokens / all_s : 0;
    times->padding_share = padding / (tokens + padding);
}

enum status batch_times_make(struct batch_times *times, const struct prediction *first,
                             const struct packed_batch *batch, size_t count, bool exact,
                             struct diag *diag)
{
    struct job job = {first, batch + 1, exact};
    struct answer *answer = heap_zalloc(count, sizeof *answer);
    struct progress progress = {0};
    progress_begin(&progress, count - 1, 0);
    enum status status =
        workers_run(count - 1, sizeof *answer, predict_one, &job, answer, &progress, diag);
    progress_end();
    times->count = count;
    times->step_s = heap_zalloc(count, sizeof *times->step_s);
    times->step_s[0] = first->sim.step_s;
    for (size_t i = 1; i < count && status == STATUS_OK; i++) {
        times->step_s[i] = answer[i - 1].step_s;
        status = answer[i - 1].status;
        if (status != STATUS_OK)
            diag_error(diag, (struct loc){.name = "--batches"}, status, "batch %zu: %s", i,
                       answer[i - 1].message);
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
