#include "predict/routing/routing_draws.h"

#include "predict/setup/routing_load.h"

#include <stdlib.h>

struct drawn_shares {
    const struct transformer *model;
    double alpha; /* of the Dirichlet distribution from which the shares are drawn */
};

/* Puts the shares that seed i draws, by a struct drawn_shares, into the request; even routing if i is 0. */
static void set_routing_of_seed(struct request *request, struct arena *arena, const void *shares,
                                size_t i)
{
    const struct drawn_shares *drawn = shares;
    struct routing *routing = arena_alloc(arena, sizeof *routing);
    *routing = (struct routing){0};
    if (i > 0)
        routing_draw(routing, arena, drawn->model, drawn->alpha, i);
    request->routing = i > 0 ? routing : NULL;
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
    struct drawn_shares shares = {.model = &first->setup->model};
    if (routing == NULL || !first->has_choices)
        return STATUS_OK;
    const bool drawn =
        routing->name != NULL && routing_is_drawn(routing->name, &shares.alpha, &seed);
    const size_t count = drawn ? 1 + ROUTING_DRAWS : 1;
    const struct repeated_steps steps = {.first = first,
                                         .change_request = set_routing_of_seed,
                                         .context = &shares,
                                         .option = "--routing",
                                         .step_name = "seed"};
    struct repeated_step_answer *answer = heap_zalloc(count, sizeof *answer);
    double step_s[ROUTING_DRAWS] = {0};
    enum status status = repeated_steps_predict(&steps, count, answer, diag);
    for (size_t i = 1; i < count && status == STATUS_OK; i++)
        step_s[i - 1] = answer[i].step_s;
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
