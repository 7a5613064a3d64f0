#include "predict/routing/routing_draws.h"

#include "predict/setup/routing_load.h"
#include "predict/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct routing_draw_job {
    const struct prediction *first;
    double alpha;
};

struct routing_draw_answer {
    enum status status;
    double step_s;
    char message[400];
};

/* Predicts the step with the shares that a seed draws; seed 0: with even routing. The result is a struct
 * routing_draw_answer. */
static void predict_step_of_seed(void *context, size_t seed, void *result)
{
    const struct routing_draw_job *job = context;
    const struct prediction *first = job->first;
    struct routing_draw_answer *answer = result;
    struct request request =
        *(first->question.request != NULL ? first->question.request : &first->setup->request);
    struct routing routing = {0};
    struct arena arena = {0};
    const struct prediction_question question = {.setup = first->setup,
                                                 .request = &request,
                                                 .is_exact = first->question.is_exact,
                                                 .wants_step_time_only = true,
                                                 .builds_whole_list =
                                                     first->ir.repeats.copies_per_gap == 0,
                                                 .short_list_index = first->short_list_index,
                                                 .slow_rank = first->question.slow_rank,
                                                 .slow_factor = first->question.slow_factor};
    struct prediction p = {0};
    struct diag diag = {0};
    if (seed > 0)
        routing_draw(&routing, &arena, &first->setup->model, job->alpha, seed);
    request.routing = seed > 0 ? &routing : NULL;
    answer->status = prediction_make(&p, &question, &diag);
    answer->step_s = p.sim.step_s;
    snprintf(answer->message, sizeof answer->message, "%s", diag.text != NULL ? diag.text : "");
    answer->message[strcspn(answer->message, "\n")] = '\0';
    prediction_release(&p);
    diag_release(&diag);
    arena_release(&arena);
}

/* Finds the rank that is the fullest in the largest number of layers, and fills the members of *draws about it. */
static void find_fullest_rank(struct routing_draws *draws, const struct choices *c)
{
    struct routing drawn = *c->routing;
    const struct routing *r = &drawn;
    drawn.capacity = c->expert_capacity;
    const int64_t rows = c->seq / c->cp / c->hp / c->sequence_parallel_ranks * c->micro_batch;
    uint32_t *times = heap_zalloc(c->ep, sizeof *times);
    struct routing_fullest_rank *of = heap_zalloc(r->list_count, sizeof *of);
    for (uint32_t l = 0; l < r->list_count; l++)
        of[l] = routing_find_fullest_rank(r, l, rows, c->ep);
    for (int64_t l = 0; l < c->model->layers; l++)
        if (transformer_layer_has_experts(c->model, l)) {
            const struct routing_fullest_rank *fullest = &of[r->share_list_by_layer[l]];
            times[fullest->rank]++;
            draws->fullest_over_mean +=
                (double)fullest->copies * c->ep /
                (double)routing_kept_rows(r, r->share_list_by_layer[l], rows);
            draws->layers++;
        }
    for (uint32_t k = 0; k < c->ep; k++)
        draws->fullest_rank = times[k] > times[draws->fullest_rank] ? k : draws->fullest_rank;
    draws->late_layers = times[draws->fullest_rank];
    draws->fullest_over_mean /= draws->layers;
    free(times);
    free(of);
}

enum status routing_draws_make(struct routing_draws *draws, const struct prediction *first,
                               struct diag *diag)
{
    const struct routing *routing = first->choices.routing;
    uint64_t seed;
    struct routing_draw_job job = {.first = first};
    if (routing == NULL || !first->has_choices)
        return STATUS_OK;
    const bool drawn = routing->name != NULL && routing_is_drawn(routing->name, &job.alpha, &seed);
    const size_t count = drawn ? 1 + ROUTING_DRAWS : 1;
    struct routing_draw_answer *answer = heap_zalloc(count, sizeof *answer);
    double step_s[ROUTING_DRAWS] = {0};
    struct progress progress = {0};
    progress_begin(&progress, count, 0);
    enum status status =
        workers_run(count, sizeof *answer, predict_step_of_seed, &job, answer, &progress, diag);
    progress_end();
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = answer[i].status;
        if (status != STATUS_OK)
            diag_error(diag, (struct loc){.name = "--routing"}, status, "seed %zu: %s", i,
                       answer[i].message);
        else if (i > 0)
            step_s[i - 1] = answer[i].step_s;
    }
    if (status == STATUS_OK) {
        draws->is_uneven = true;
        draws->even_step_s = answer[0].step_s;
        find_fullest_rank(draws, &first->choices);
        if (drawn)
            draws->spread = step_spread_of(step_s, ROUTING_DRAWS);
        for (uint32_t i = ROUTING_DRAWS; drawn && i-- > 0;)
            if (step_s[i] == draws->spread.longest_s)
                draws->worst_seed = i + 1;
    }
    free(answer);
    return status;
}
