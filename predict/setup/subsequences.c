#include "predict/setup/subsequences.h"

#include "models/cost.h"
#include "predict/setup/offload_estimate.h"
#include "predict/setup/partition_option.h"
#include "predict/setup/unit_rates.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/pipeline/partition.h"
#include "schedule/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

void filled_request_release(struct filled_request *filled)
{
    free(filled->length);
    free(filled->hidden);
    *filled = (struct filled_request){0};
}

static bool cuts_by_itself(const char *strategy)
{
    size_t count;
    const struct strategy *table = compose_strategies(&count);
    for (size_t i = 0; strategy != NULL && i < count; i++)
        if (strcmp(table[i].name, strategy) == 0)
            return table[i].subsequences;
    return false;
}

void subsequences_open(struct request *r, const struct setup *setup)
{
    if (!cuts_by_itself(r->strategy))
        return;
    if (!setup->partition_given)
        r->partition = PARTITION_OPTION_FLOPS_FULL;
    if (!setup->offload_given && r->activations < 0)
        r->offload_adaptive = true;
}

static double seconds(const void *context, double begin, double end)
{
    const struct unit_rates *rates = context;
    return rates->token_s * (end - begin) + rates->pair_s * (end * end - begin * begin) / 2;
}

static enum status make_lengths(struct filled_request *filled, const struct setup *setup,
                                const struct choices *c, struct diag *diag)
{
    enum partition_option option = (enum partition_option)filled->request.partition;
    struct unit_rates rates = {0};
    if (option == PARTITION_OPTION_TIME)
        rates = unit_rates_of(setup, c);
    const struct partition partition = {
        .rule = option == PARTITION_OPTION_TIME ? PARTITION_TIME : PARTITION_FLOPS,
        .tokens = c->seq,
        .pieces = c->subsequences,
        .unit = (int64_t)c->tp * c->hp,
        .model = filled->request.model,
        .full_attention = option == PARTITION_OPTION_FLOPS_FULL,
        .seconds = seconds,
        .context = &rates,
    };
    filled->length = heap_alloc(c->subsequences, sizeof *filled->length);
    filled->request.subsequences = c->subsequences;
    filled->request.lengths = filled->length;
    return partition_make(filled->length, &partition, diag);
}

static enum status choose_shared(struct filled_request *filled, const struct setup *setup,
                                 struct diag *diag)
{
    struct request *r = &filled->request;
    struct choices c;
    enum status status = compose_resolve(&c, r, NULL, diag); /* with its lengths */
    if (status == STATUS_OK)
        status =
            cost_check_attention(&setup->cost, (enum attention_impl)c.attention_impl,
                                 setup->model.head_dim, (struct loc){.name = "--attention"}, diag);
    if (status != STATUS_OK)
        return status;
    filled->shared = shared_units_rank(setup, &c);
    r->shared = &filled->shared.best[0];
    r->shared_open = false;
    return STATUS_OK;
}

enum status subsequences_fill(struct filled_request *filled, const struct setup *setup,
                              const struct request *request, struct diag *diag)
{
    struct choices c;
    *filled = (struct filled_request){.request = *request};
    struct request *r = &filled->request;
    bool cuts = r->partition != PARTITION_OPTION_LENGTH && r->lengths == NULL;
    bool hides = r->offload_adaptive && r->offload_hidden <= 0;
    bool shares = r->shared_open && pipeline_row((enum pipeline_choice)r->pipeline)->multiplexed;
    if (!cuts && !hides && !shares)
        return STATUS_OK;
    enum status status = compose_resolve(&c, request, NULL, diag); /* for its degrees */
    if (status == STATUS_OK && cuts && c.subsequences > 1)
        status = make_lengths(filled, setup, &c, diag);
    if (status == STATUS_OK && hides && c.activations == CHOICE_ACTIVATIONS_RATIO)
        status = offload_hidden_bytes(&filled->hidden, r, setup, diag);
    if (status == STATUS_OK && shares)
        status = choose_shared(filled, setup, diag);
    return status;
}
