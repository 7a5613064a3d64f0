#include "cli/subsequences.h"

#include "cli/offload_estimate.h"
#include "cli/partition_option.h"
#include "models/cost.h"
#include "schedule/pipeline/partition.h"

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

/* Seconds that one rank of a stage needs per token in products, and per pair of tokens in attention,
 * at the rates of large work. */
struct rates {
    double token_s, pair_s;
};

static struct rates rates_of(const struct setup *setup, const struct choices *c)
{
    enum { ROWS = 8192 };
    const struct transformer *m = c->model;
    const struct device_cost *cost = &setup->cost;
    double peak = setup->cluster.device.peak_flop_per_s;
    struct work product = {.kind = WORK_MATMUL,
                           .in = c->dtype,
                           .out = c->dtype,
                           .matmul = {ROWS, m->ffn / c->tp, m->hidden, MATMUL_NT, 0, 0}};
    struct work tile = {.kind = WORK_ATTENTION,
                        .in = c->dtype,
                        .out = c->dtype,
                        .attention = {ROWS, ROWS, m->heads / c->tp, m->heads / c->tp, m->head_dim,
                                      MASK_FULL, 0, 0}};
    enum attention_impl impl = (enum attention_impl)c->attention_impl;
    double product_s =
        cost->ideal ? cost_ideal_s(peak, &product) : cost_work_s(cost, impl, &product);
    double tile_s = cost->ideal ? cost_ideal_s(peak, &tile) : cost_work_s(cost, impl, &tile);
    double linear = (double)transformer_linear_flops_per_token(m) / c->tp;
    return (struct rates){linear * product_s / work_flops(&product),
                          tile_s * c->profile->attention_slowdown / ((double)ROWS * ROWS)};
}

static double seconds(const void *context, double begin, double end)
{
    const struct rates *rates = context;
    return rates->token_s * (end - begin) + rates->pair_s * (end * end - begin * begin) / 2;
}

static enum status make_lengths(struct filled_request *filled, const struct setup *setup,
                                const struct choices *c, struct diag *diag)
{
    enum partition_option option = (enum partition_option)filled->request.partition;
    struct rates rates = {0};
    if (option == PARTITION_OPTION_TIME)
        rates = rates_of(setup, c);
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

enum status subsequences_fill(struct filled_request *filled, const struct setup *setup,
                              const struct request *request, struct diag *diag)
{
    struct choices c;
    *filled = (struct filled_request){.request = *request};
    struct request *r = &filled->request;
    bool cuts = r->partition != PARTITION_OPTION_LENGTH && r->lengths == NULL;
    bool hides = r->offload_adaptive && r->offload_hidden <= 0;
    if (!cuts && !hides)
        return STATUS_OK;
    enum status status = compose_resolve(&c, request, NULL, diag); /* for its degrees */
    if (status == STATUS_OK && cuts && c.subsequences > 1)
        status = make_lengths(filled, setup, &c, diag);
    if (status == STATUS_OK && hides && c.activations == CHOICE_ACTIVATIONS_RATIO)
        status = offload_hidden_bytes(&filled->hidden, r, setup, diag);
    return status;
}
