/* tests/exec/latent_cases.h: latent attention computes exact gradients, in every strategy that has it. The reference
 * projects, rotates and attends in double. On the backend `matrix_backend` (tests/exec/matrix.h); on a device that is
 * emulated, a ninth of the cases each day. */
#ifndef TESTS_EXEC_LATENT_CASES_H
#define TESTS_EXEC_LATENT_CASES_H

#include "tests/exec/request_rows.h"

/* Heads of v are narrower than those of q and k, and neither is a power of two. */
static const struct transformer latent_base = {.name = "latent",
                                               .layers = 2,
                                               .hidden = 32,
                                               .heads = 4,
                                               .kv_heads = 4,
                                               .head_dim = 10,
                                               .ffn = 48,
                                               .vocab = 61,
                                               .rope_theta = 1e4,
                                               .norm_eps = 1e-5,
                                               .q_latent = 12,
                                               .kv_latent = 8,
                                               .rope_dim = 4,
                                               .v_dim = 7};

static void check_latent_request_row(const struct request_row *row, const struct transformer *model)
{
    check_request_row(row, model, matrix_backend != NULL ? 9 : 1);
}

/* A row of requests has: request, weights, activations, profile (tests/exec/request_rows.h). */
static const struct request_row latent_rows[] = {
    {{.strategy = "local", .ranks = 1, .seq = 31}, 0, CHOICE_ACTIVATIONS_KEEP, NULL},
    {{.strategy = "local", .ranks = 2, .seq = 31, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_FULL,
     "torchtitan"},
    {{.strategy = "ulysses", .ranks = 4, .hp = 2, .seq = 32, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_SELECTIVE,
     NULL},
    {{.strategy = "ulysses", .ranks = 4, .hp = 4, .seq = 32},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_SELECTIVE_OP,
     "published"},
    {{.strategy = "ulysses", .ranks = 2, .hp = 2, .seq = 32},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_SELECTIVE_CORE,
     "megatron-te"},
    {{.strategy = "ring", .ranks = 4, .seq = 32, .ring_layout = RING_STRIPED},
     CHOICE_WEIGHTS_ZERO2,
     CHOICE_ACTIVATIONS_KEEP,
     NULL},
    {{.strategy = "ring", .ranks = 2, .seq = 32, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_FULL,
     "megatron-te"},
    {{.strategy = "ring", .ranks = 4, .seq = 32, .rotation = ROTATE_ALL_GATHER},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_KEEP,
     NULL},
    {{.strategy = "ring", .ranks = 4, .seq = 32, .rotation = ROTATE_ALL_GATHER},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_SELECTIVE,
     "torchtitan"},
    {{.strategy = "2d", .ranks = 4, .hp = 2, .cp = 2, .seq = 32},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_SELECTIVE,
     NULL},
    {{.strategy = "2d", .ranks = 8, .hp = 2, .cp = 4, .ring_window = 2, .seq = 64},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_FULL,
     NULL},
    {{.strategy = "fpdt", .ranks = 2, .hp = 2, .seq = 48, .chunk_tokens = 20},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_FULL,
     NULL},
    {{.strategy = "fpdt", .ranks = 2, .hp = 2, .seq = 48, .chunk_tokens = 16},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_OFFLOAD,
     "published"},
    {{.strategy = "fpdt",
      .ranks = 1,
      .seq = 48,
      .chunk_tokens = 16,
      .chunk_order = ORDER_QUERY_OUTER},
     CHOICE_WEIGHTS_REPLICATED,
     CHOICE_ACTIVATIONS_KEEP,
     NULL},
    {{.strategy = "fpdt",
      .ranks = 4,
      .hp = 4,
      .seq = 48,
      .chunk_tokens = 20,
      .chunk_order = ORDER_QUERY_OUTER},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_KEEP,
     NULL},
    {{.strategy = "fpdt",
      .ranks = 2,
      .hp = 2,
      .seq = 48,
      .chunk_tokens = 20,
      .chunk_fetch = FETCH_ONE},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_FULL,
     NULL},
    {{.strategy = "megatron-sp", .ranks = 2, .tp = 2, .seq = 32},
     CHOICE_WEIGHTS_REPLICATED,
     CHOICE_ACTIVATIONS_KEEP,
     NULL},
    {{.strategy = "megatron-sp", .ranks = 4, .tp = 2, .seq = 32, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_SELECTIVE_CORE,
     "megatron"},
    {{.strategy = "megatron-sp",
      .ranks = 2,
      .tp = 2,
      .seq = 32,
      .micro_batch = 2,
      .tensor_plan = TENSOR_PLAN_GATHER_PER_LINEAR},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_KEEP,
     "torchtitan"},
    {{.strategy = "megatron-sp",
      .ranks = 4,
      .tp = 4,
      .seq = 32,
      .tensor_plan = TENSOR_PLAN_REPLICATED},
     CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_KEEP,
     NULL},
    {{.strategy = "ulysses", .ranks = 4, .hp = 2, .tp = 2, .seq = 32},
     CHOICE_WEIGHTS_ZERO2,
     CHOICE_ACTIVATIONS_FULL,
     NULL},
    {{.strategy = "ulysses", .ranks = 4, .hp = 2, .pp = 2, .seq = 32, .global_batch = 4},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_KEEP,
     NULL},
    {{.strategy = "local",
      .ranks = 2,
      .pp = 2,
      .seq = 32,
      .global_batch = 4,
      .pipeline = CHOICE_PIPELINE_ZB_1P},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_KEEP,
     NULL},
    {{.strategy = "ulysses",
      .ranks = 4,
      .hp = 2,
      .pp = 2,
      .seq = 48,
      .subsequences = 3,
      .pipeline = CHOICE_PIPELINE_SEQ1F1B},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_FULL,
     NULL},
    {{.strategy = "sppo", .ranks = 4, .pp = 2, .seq = 48, .subsequences = 3}, -1, -1, NULL},
};

/* Expanded queries, keys and values are computed again, in the rows that otherwise keep all activations. */
static void expanded_latents_are_recomputed(void)
{
    for (size_t i = 0; i < ARRAY_LEN(latent_rows); i++) {
        struct request_row row = latent_rows[i];
        row.request.up_projection = UP_PROJECTION_RECOMPUTE;
        if (row.activations == CHOICE_ACTIVATIONS_KEEP)
            check_latent_request_row(&row, &latent_base);
    }
}

/* Norms, MLPs and the up-projections of latent attention are computed again, in rows that keep all other activations
 * and in rows that also drop those of attention's core. */
static void modules_of_latents_are_computed_again(void)
{
    for (size_t i = 0; i < ARRAY_LEN(latent_rows); i++) {
        struct request_row row = latent_rows[i];
        row.request.recompute_modules =
            1 << RECOMPUTE_MLA_UP_PROJ | 1 << RECOMPUTE_LAYERNORM | 1 << RECOMPUTE_MLP;
        if (row.activations == CHOICE_ACTIVATIONS_KEEP ||
            row.activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE)
            check_latent_request_row(&row, &latent_base);
    }
}

/* Head ranks send latents instead of keys and values, and chunks store them on the host, in every row that has
 * either. */
static void latents_are_exchanged(void)
{
    int checked = 0;
    for (size_t i = 0; i < ARRAY_LEN(latent_rows); i++)
        for (int again = 0; again < 2; again++) {
            struct request_row row = latent_rows[i];
            row.request.mla_exchange = MLA_EXCHANGE_LATENT;
            row.request.up_projection = again ? UP_PROJECTION_RECOMPUTE : UP_PROJECTION_KEEP;
            if ((row.request.hp < 2 && row.request.chunk_tokens == 0) ||
                (again && row.activations != CHOICE_ACTIVATIONS_KEEP))
                continue;
            checked++;
            check_latent_request_row(&row, &latent_base);
        }
    CHECK_INT("latent_rows", checked > 10, 1);
}

static void strategies_with_latents_compute_the_reference(void)
{
    for (size_t i = 0; i < ARRAY_LEN(latent_rows); i++)
        check_latent_request_row(&latent_rows[i], &latent_base);
}

/* Checks models without a latent vector of queries, with v wider than k, with a window, and with experts: the first in
 * all rows, the others in at most every fourth row. */
static void shapes_of_latents_compute_the_reference(void)
{
    for (int i = 0; i < 4; i++) {
        struct transformer model = latent_base;
        if (i == 0)
            model.q_latent = 0;
        if (i == 1)
            model.v_dim = 13;
        if (i == 2)
            model.attention_window = 9;
        if (i == 3) {
            model.experts = 6;
            model.experts_per_token = 4;
            model.expert_ffn = model.shared_ffn = 20;
            model.dense_layers = 1;
            model.router = ROUTER_SIGMOID;
            model.router_norm = true;
            model.router_scale = 2.5;
        }
        for (size_t k = 0; k < ARRAY_LEN(latent_rows); k += i == 0 ? 1 : 4)
            if (i != 3 ||
                (latent_rows[k].request.tp < 2 && latent_rows[k].request.subsequences == 0))
                check_latent_request_row(&latent_rows[k], &model);
    }
}

#define LATENT_CASES                                                                               \
    {"every strategy computes the reference", strategies_with_latents_compute_the_reference},      \
        {"every shape computes the reference", shapes_of_latents_compute_the_reference},           \
        {"latents are exchanged", latents_are_exchanged},                                          \
        {"modules are computed again", modules_of_latents_are_computed_again},                     \
    {                                                                                              \
        "expanded tensors are computed again", expanded_latents_are_recomputed                     \
    }

#endif
