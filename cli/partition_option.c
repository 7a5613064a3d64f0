#include "cli/partition_option.h"

#include "models/cost.h"
#include "schedule/pipeline/partition.h"

#include <string.h>

const char *const partition_option_names[PARTITION_OPTION_COUNT] = {"length", "flops", "flops-full",
                                                                    "time"};

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

enum status partition_option(struct setup *setup, enum partition_option option, struct diag *diag)
{
    struct request *r = &setup->request;
    struct choices choices;
    struct request whole = *r;
    whole.subsequences = 1;
    whole.pipeline = CHOICE_PIPELINE_NONE; /* which may be one of subsequences alone */
    if (r->subsequences <= 1 || option == PARTITION_OPTION_LENGTH)
        return STATUS_OK;
    enum status status = compose_resolve(&choices, &whole, NULL, diag); /* for its degrees */
    if (status != STATUS_OK)
        return status;
    struct rates rates = {0};
    if (option == PARTITION_OPTION_TIME)
        rates = rates_of(setup, &choices);
    const struct partition partition = {
        .rule = option == PARTITION_OPTION_TIME ? PARTITION_TIME : PARTITION_FLOPS,
        .tokens = r->seq,
        .pieces = r->subsequences,
        .unit = (int64_t)choices.tp * choices.hp,
        .model = &setup->model,
        .full_attention = option == PARTITION_OPTION_FLOPS_FULL,
        .seconds = seconds,
        .context = &rates,
    };
    int64_t *length = arena_array(&setup->arena, (size_t)r->subsequences, sizeof *length);
    r->lengths = length;
    return partition_make(length, &partition, diag);
}
