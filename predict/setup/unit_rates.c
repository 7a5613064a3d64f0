#include "predict/setup/unit_rates.h"

#include "models/cost.h"
#include "schedule/step/build.h"

/* The rows of a kernel that represents large work: so many that the last wave of its blocks, which does not fill the
 * device, takes a small part of its time. */
enum { ROWS = 65536 };

static double device_seconds_of_work(const struct setup *setup, const struct choices *c,
                                     const struct work *work)
{
    const struct device_cost *cost = &setup->cost;
    if (cost->is_ideal)
        return cost_ideal_s(setup->cluster.device.peak_bf16_flop_per_s, work);
    return cost_work_s(cost, (enum attention_impl)c->attention_impl, work);
}

static double attention_seconds_per_pair(const struct setup *setup, const struct choices *c,
                                         enum work_kind kind)
{
    const struct transformer *m = c->model;
    struct work tile = {.kind = (uint8_t)kind,
                        .in = c->dtype,
                        .out = c->dtype,
                        .attention = {ROWS, ROWS, m->heads / c->tp, m->heads / c->tp, m->head_dim,
                                      MASK_FULL, 0, 0}};
    if (transformer_v_head_dim(m) != m->head_dim)
        tile.attention.vdim = transformer_v_head_dim(m);
    return device_seconds_of_work(setup, c, &tile) * step_attention_slowdown(c) /
           ((double)ROWS * ROWS);
}

struct unit_rates unit_rates_of(const struct setup *setup, const struct choices *c)
{
    const struct transformer *m = c->model;
    struct work product = {.kind = WORK_MATMUL,
                           .in = c->dtype,
                           .out = c->dtype,
                           .matmul = {ROWS, m->ffn / c->tp, m->hidden, MATMUL_NT, 0, 0}};
    double linear = (double)transformer_layer_linear_flops_per_token(m) / c->tp;
    return (struct unit_rates){
        .products_s_per_token =
            linear * device_seconds_of_work(setup, c, &product) / work_flops(&product),
        .attention_s_per_pair = attention_seconds_per_pair(setup, c, WORK_ATTENTION),
        .backward_attention_s_per_pair =
            attention_seconds_per_pair(setup, c, WORK_ATTENTION_BACKWARD),
    };
}
