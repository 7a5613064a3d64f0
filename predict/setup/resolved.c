#include "predict/setup/resolved.h"

#include "models/cost.h"
#include "predict/setup/offload_estimate.h"
#include "predict/setup/partition_option.h"
#include "predict/setup/unit_rates.h"
#include "schedule/config/resolve_config.h"
#include "schedule/pipeline/partition.h"
#include "schedule/pipeline/pipeline.h"

#include <stdlib.h>

void resolved_release(struct resolved *resolved)
{
    free(resolved->subsequence_tokens);
    free(resolved->offload_hidden_bytes);
    *resolved = (struct resolved){0};
}

/* The model and costs decide up to three parts of a request: how sequences are cut, how much is offloaded while a
 * subsequence is computed, and which units stages share. Each of the next functions returns whether its part is
 * open. */
static bool is_cut_of_sequences_open(const struct request *r)
{
    return r->length_rule != SUBSEQUENCES_OF_EQUAL_LENGTH && r->subsequence_tokens == NULL;
}

static bool is_offload_hidden_bytes_open(const struct request *r)
{
    return r->must_compute_offload_hidden_bytes && r->offload_hidden_bytes <= 0;
}

static bool is_choice_of_shared_units_open(const struct request *r)
{
    return r->must_compute_shared_units &&
           pipeline_of_choice((enum pipeline_choice)r->pipeline)->is_multiplexed;
}

bool resolved_needs_costs(const struct request *request)
{
    return is_cut_of_sequences_open(request) || is_offload_hidden_bytes_open(request) ||
           is_choice_of_shared_units_open(request);
}

static double seconds_of_token_span(const void *context, double begin, double end)
{
    const struct unit_rates *rates = context;
    return rates->products_s_per_token * (end - begin) +
           rates->attention_s_per_pair * (end * end - begin * begin) / 2;
}

static enum status find_subsequence_lengths(struct resolved *resolved, const struct setup *setup,
                                            struct diag *diag)
{
    const struct choices *c = &resolved->choices;
    enum partition_option option = (enum partition_option)resolved->request.length_rule;
    struct unit_rates rates = {0};
    if (option == SUBSEQUENCES_OF_EQUAL_TIME)
        rates = unit_rates_of(setup, c);
    const struct partition partition = {
        .rule = option == SUBSEQUENCES_OF_EQUAL_TIME ? PARTITION_TIME : PARTITION_FLOPS,
        .tokens = c->seq,
        .piece_count = c->subsequences,
        .token_unit = (int64_t)c->tp * c->hp,
        .model = resolved->request.model,
        .assumes_full_attention = option == SUBSEQUENCES_OF_EQUAL_FULL_FLOPS,
        .seconds = seconds_of_token_span,
        .context = &rates,
    };
    resolved->subsequence_tokens =
        heap_alloc(c->subsequences, sizeof *resolved->subsequence_tokens);
    resolved->request.subsequences = c->subsequences;
    resolved->request.subsequence_tokens = resolved->subsequence_tokens;
    return partition_find_lengths(resolved->subsequence_tokens, &partition, diag);
}

enum status resolved_use_ranked_shared_units(struct resolved *resolved, uint32_t rank,
                                             struct diag *diag)
{
    resolved->request.shared_units = &resolved->shared_units_worth_trying.fastest_first[rank];
    resolved->request.must_compute_shared_units = false;
    return resolve_choices(&resolved->choices, &resolved->request, NULL, diag);
}

enum status resolved_make(struct resolved *resolved, const struct setup *setup,
                          const struct request *request, struct diag *note, struct diag *diag)
{
    *resolved = (struct resolved){.request = *request};
    struct request *r = &resolved->request;
    struct choices *c = &resolved->choices;
    /* this finds the degrees, which the costs depend on */
    enum status status = resolve_choices(c, r, note, diag);
    if (status != STATUS_OK || !resolved_needs_costs(request))
        return status;
    bool cut = is_cut_of_sequences_open(request) && c->subsequences > 1;
    bool hides_offload =
        is_offload_hidden_bytes_open(request) && c->activations == CHOICE_ACTIVATIONS_RATIO;
    bool time = cut && r->length_rule == SUBSEQUENCES_OF_EQUAL_TIME;
    /* only these parts need costs of attention; `longhaul run`, which has no costs, leaves none of them open */
    if (time || hides_offload || is_choice_of_shared_units_open(request))
        status = cost_check_attention(&setup->cost, (enum attention_impl)c->attention_impl,
                                      transformer_wider_head_dim(&setup->model),
                                      (struct loc){.name = "--attention"}, diag);
    if (status == STATUS_OK && cut)
        status = find_subsequence_lengths(resolved, setup, diag);
    if (status == STATUS_OK && hides_offload)
        status = offload_find_hidden_bytes(&resolved->offload_hidden_bytes, r, c, setup, diag);
    if (status == STATUS_OK)
        status = resolve_choices(c, r, NULL, diag);
    if (status == STATUS_OK && is_choice_of_shared_units_open(request)) {
        resolved->shared_units_worth_trying = shared_units_rank_by_step_time(setup, c);
        status = resolved_use_ranked_shared_units(resolved, 0, diag);
    }
    return status;
}
