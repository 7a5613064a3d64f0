#include "predict/repeated_steps.h"

#include "predict/workers.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct step_spread step_spread_of(const double *step_s, size_t count)
{
    double *sorted = heap_alloc(count, sizeof *sorted);
    memcpy(sorted, step_s, count * sizeof *sorted);
    gsl_sort(sorted, 1, count);
    struct step_spread spread = {
        .step_count = count,
        .median_s = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 0.5),
        .percentile_90_s = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 0.9),
        .longest_s = sorted[count - 1],
    };
    free(sorted);
    return spread;
}

/* Predicts step i of a struct repeated_steps. The result is a struct repeated_step_answer. */
static void predict_step(void *context, size_t i, void *result)
{
    const struct repeated_steps *steps = context;
    const struct prediction *first = steps->first;
    struct repeated_step_answer *answer = result;
    struct request request =
        *(first->question.request != NULL ? first->question.request : &first->setup->request);
    struct arena arena = {0};
    /* the prediction begins with the length of the short list that represented the first step, which most likely
     * represents this one, too */
    const struct prediction_question question = {
        .setup = first->setup,
        .request = &request,
        .is_exact = first->question.is_exact,
        .wants_step_time_only = true,
        .layer_count = steps->layer_count,
        .builds_whole_list = first->ir.repeats.copies_per_gap == 0,
        .short_list_length_index = first->short_list_length_index,
        .slow_rank = first->question.slow_rank,
        .slow_factor = first->question.slow_factor};
    struct prediction p = {0};
    struct diag diag = {0};
    steps->change_request(&request, &arena, steps->context, i);
    answer->status = prediction_make(&p, &question, &diag);
    answer->step_s = p.sim.step_s;
    answer->lateness = p.lateness;
    snprintf(answer->message, sizeof answer->message, "%s", diag.text != NULL ? diag.text : "");
    answer->message[strcspn(answer->message, "\n")] = '\0';
    prediction_release(&p);
    diag_release(&diag);
    arena_release(&arena);
}

enum status repeated_steps_predict(const struct repeated_steps *steps, size_t count,
                                   struct repeated_step_answer *answer, struct diag *diag)
{
    struct repeated_steps job = *steps;
    struct progress progress = {0};
    progress_begin(&progress, count, 0);
    enum status status =
        workers_run(count, sizeof *answer, predict_step, &job, answer, &progress, diag);
    progress_end();
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = answer[i].status;
        if (status != STATUS_OK)
            diag_error(diag, (struct loc){.name = steps->option}, status, "%s %zu: %s",
                       steps->step_name, steps->number_of_first_step_in_message + i,
                       answer[i].message);
    }
    return status;
}
