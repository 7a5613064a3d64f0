#include "predict/plan/split.h"

#include "base/arena.h"
#include "predict/progress.h"
#include "predict/workers.h"
#include "schedule/choices/profile.h"
#include "schedule/config/resolve_config.h"

#include <stdlib.h>

/* The seconds per sequence of a configuration with profile ideal; 0: not known. */
struct ideal_times {
    double ideal_s_with_common_kernels; /* with the attention kernels of profile ideal */
    double ideal_s_with_own_kernels;    /* with those of the configuration's profile */
};

struct ideal_times_job_input {
    struct setup *setup;
    const struct outcome *const *outcome;
};

static double ideal_sequence_s(struct setup *setup, const struct outcome *o, int attention_impl)
{
    struct request request = o->request;
    const struct prediction_question question = {.setup = setup,
                                                 .request = &request,
                                                 .skips_offsets = true,
                                                 .skips_cause_of_documents = true};
    struct prediction p = {0};
    double seconds = 0;
    request.profile = PROFILE_IDEAL;
    request.attention_impl = attention_impl;
    if (prediction_make(&p, &question, NULL) == STATUS_OK)
        seconds = p.sim.step_s / o->step_sequences;
    prediction_release(&p);
    return seconds;
}

/* Fills the result, a zeroed struct ideal_times, for one outcome; it is a workers_job_fn. What cannot be predicted
 * stays 0. */
static void find_ideal_times_of_outcome_job(void *context, size_t job, void *result)
{
    struct ideal_times_job_input *trial = context;
    struct ideal_times *out = result;
    struct setup *setup = trial->setup; /* this process' own */
    const struct outcome *o = trial->outcome[job];
    struct choices own, ideal;
    struct request request;
    if (o == NULL)
        return;
    if (setup->cluster.gpus != o->request.ranks &&
        cluster_resize(&setup->cluster, &setup->arena, 0, o->request.ranks, NULL) != STATUS_OK)
        return;
    request = o->request;
    request.profile = PROFILE_IDEAL;
    if (resolve_choices(&own, &o->request, NULL, NULL) != STATUS_OK ||
        resolve_choices(&ideal, &request, NULL, NULL) != STATUS_OK)
        return;
    out->ideal_s_with_common_kernels = ideal_sequence_s(setup, o, ideal.attention_impl);
    out->ideal_s_with_own_kernels = own.attention_impl == ideal.attention_impl
                                        ? out->ideal_s_with_common_kernels
                                        : ideal_sequence_s(setup, o, own.attention_impl);
}

static struct lag_by_cause lag_by_cause_of_loser(const struct outcome *o,
                                                 const struct ideal_times *t,
                                                 const struct outcome *winner,
                                                 const struct ideal_times *best)
{
    struct lag_by_cause split = {0};
    double all_s = o->step_s / o->step_sequences - winner->step_s / winner->step_sequences;
    split.is_known = t->ideal_s_with_common_kernels > 0 && t->ideal_s_with_own_kernels > 0 &&
                     best->ideal_s_with_common_kernels > 0 && best->ideal_s_with_own_kernels > 0;
    split.layout_s = t->ideal_s_with_common_kernels - best->ideal_s_with_common_kernels;
    split.kernels_s = (t->ideal_s_with_own_kernels - t->ideal_s_with_common_kernels) -
                      (best->ideal_s_with_own_kernels - best->ideal_s_with_common_kernels);
    split.framework_s = all_s - split.layout_s - split.kernels_s;
    return split;
}

enum status splits_find_lag_by_cause(struct lag_by_cause *split, const struct outcome *const *loser,
                                     size_t count, const struct outcome *winner,
                                     struct setup *setup, struct diag *diag)
{
    const struct outcome **outcome = heap_zalloc(count + 1, sizeof(const struct outcome *));
    struct ideal_times *times = heap_zalloc(count + 1, sizeof *times);
    struct ideal_times_job_input trial = {setup, outcome};
    struct progress progress;
    for (size_t i = 0; i < count; i++)
        outcome[i] = loser[i];
    outcome[count] = winner;
    progress_begin(&progress, count + 1, 0);
    enum status status = workers_run(count + 1, sizeof *times, find_ideal_times_of_outcome_job,
                                     &trial, times, &progress, diag);
    progress_end();
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        if (loser[i] != NULL)
            split[i] = lag_by_cause_of_loser(loser[i], &times[i], winner, &times[count]);
    free(times);
    free(outcome);
    return status;
}
