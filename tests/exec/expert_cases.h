/* tests/exec/expert_cases.h: layers with experts compute exact gradients, in every strategy that has them, with even
 * and uneven routing. The reference loops over the copies of tokens in double. On the backend `matrix_backend`
 * (tests/exec/matrix.h); on a device that is emulated, a seventh of the cases each day. */
#ifndef TESTS_EXEC_EXPERT_CASES_H
#define TESTS_EXEC_EXPERT_CASES_H

#include "tests/exec/request_rows.h"

static const struct transformer expert_base = {.name = "experts",
                                               .layers = 2,
                                               .hidden = 32,
                                               .heads = 4,
                                               .kv_heads = 4,
                                               .head_dim = 8,
                                               .ffn = 48,
                                               .vocab = 61,
                                               .rope_theta = 1e4,
                                               .norm_eps = 1e-5,
                                               .experts = 6,
                                               .experts_per_token = 4,
                                               .expert_ffn = 20};

static void check_expert_request_row(const struct request_row *row, const struct transformer *model)
{
    check_request_row(row, model, matrix_backend != NULL ? 7 : 1);
}

/* If a rank's 63 tokens are cut into two pieces, the copies of a piece do not divide by 6 experts: the first ones
 * have a row more. */
static void routers_compute_the_reference(void)
{
    for (int router = 0; router < ROUTER_COUNT; router++)
        for (int i = 0; i < 4; i++) {
            struct transformer model = expert_base;
            model.router = (enum router)router;
            model.router_norm = i % 2 == 1;
            model.router_scale = i < 2 ? 0 : 2.5;
            model.shared_ffn = i == 3 ? 24 : 0;
            model.dense_layers = i == 2;
            const struct request_row row = {{.strategy = "local",
                                             .ranks = 1 + i % 2,
                                             .seq = 63,
                                             .micro_batch = 1 + i / 2,
                                             .ffn_chunks = 1 + i % 3},
                                            i % CHOICE_WEIGHTS_COUNT,
                                            (router * 4 + i) % CHOICE_ACTIVATIONS_COUNT,
                                            NULL};
            check_expert_request_row(&row, &model);
        }
}

static const struct request expert_requests[] = {
    {.strategy = "ulysses", .ranks = 4, .hp = 2, .seq = 32, .micro_batch = 2},
    {.strategy = "ring", .ranks = 4, .seq = 32, .ring_layout = RING_STRIPED},
    {.strategy = "ring", .ranks = 2, .seq = 32, .micro_batch = 2},
    {.strategy = "2d", .ranks = 4, .hp = 2, .cp = 2, .seq = 32},
    {.strategy = "fpdt", .ranks = 2, .seq = 48, .chunk_tokens = 20},
    {.strategy = "upipe", .ranks = 2, .seq = 32, .ffn_chunks = 2},
    {.strategy = "ulysses", .ranks = 4, .hp = 2, .pp = 2, .seq = 32, .global_batch = 4},
    {.strategy = "local",
     .ranks = 2,
     .pp = 2,
     .seq = 32,
     .global_batch = 4,
     .pipeline = CHOICE_PIPELINE_ZB_1P},
};

/* Every rank routes the rows that it has, in whatever order its strategy leaves them. */
static void strategies_with_experts_compute_the_reference(void)
{
    for (size_t i = 0; i < ARRAY_LEN(expert_requests); i++) {
        struct transformer model = expert_base;
        model.router_norm = true;
        model.shared_ffn = i % 2 == 1 ? 24 : 0;
        const int activations = (int)i % CHOICE_ACTIVATIONS_COUNT;
        check_expert_request_row(&(struct request_row){expert_requests[i], CHOICE_WEIGHTS_ZERO1,
                                                       activations == CHOICE_ACTIVATIONS_RATIO
                                                           ? CHOICE_ACTIVATIONS_FULL
                                                           : activations,
                                                       NULL},
                                 &model);
    }
}

/* Modules of a dense layer and of layers with experts drop their results and compute them again; in every second case
 * attention's core is one of these modules. */
static void modules_recompute_what_they_dropped(void)
{
    static const unsigned sets[] = {
        1u << RECOMPUTE_MOE_ACT,
        1u << RECOMPUTE_MOE | 1u << RECOMPUTE_LAYERNORM,
        1u << RECOMPUTE_LAYERNORM | 1u << RECOMPUTE_MLP | 1u << RECOMPUTE_SHARED_EXPERTS,
        1u << RECOMPUTE_MLP | 1u << RECOMPUTE_MOE | 1u << RECOMPUTE_SHARED_EXPERTS,
        (1u << RECOMPUTE_MODULE_COUNT) - 1,
    };
    for (size_t i = 0; i < ARRAY_LEN(expert_requests) * ARRAY_LEN(sets); i++) {
        struct transformer model = expert_base;
        struct request_row row = {
            .request = expert_requests[i / ARRAY_LEN(sets)],
            .weights = i % 3 == 0 ? CHOICE_WEIGHTS_ZERO3 : CHOICE_WEIGHTS_ZERO1,
            .activations = i % 2 == 0 ? CHOICE_ACTIVATIONS_KEEP : CHOICE_ACTIVATIONS_SELECTIVE_CORE,
            .profile = i % 4 < 2 ? NULL : "megatron"};
        row.request.recompute_modules = (int)sets[i % ARRAY_LEN(sets)];
        model.shared_ffn = 24;
        model.dense_layers = 1;
        check_expert_request_row(&row, &model);
    }
}

/* A row of requests has: request, weights, activations, profile (tests/exec/request_rows.h). */
static const struct request_row spread_rows[] = {
    {{.strategy = "local", .ranks = 2, .ep = 2, .seq = 48}, CHOICE_WEIGHTS_REPLICATED, 0, NULL},
    {{.strategy = "local", .ranks = 4, .ep = 2, .seq = 24, .ffn_chunks = 4},
     CHOICE_WEIGHTS_ZERO3,
     0,
     NULL},
    {{.strategy = "local", .ranks = 3, .ep = 3, .seq = 24, .micro_batch = 2, .ffn_chunks = 2},
     CHOICE_WEIGHTS_ZERO3,
     2,
     NULL},
    {{.strategy = "local", .ranks = 4, .ep = 2, .seq = 24, .global_batch = 8},
     CHOICE_WEIGHTS_ZERO2,
     1,
     NULL},
    {{.strategy = "local", .ranks = 4, .ep = 2, .seq = 24, .global_batch = 8},
     CHOICE_WEIGHTS_ZERO3,
     2,
     "torchtitan"},
    {{.strategy = "local", .ranks = 8, .ep = 2, .shard = 4, .seq = 24},
     CHOICE_WEIGHTS_HSDP,
     0,
     "torchtitan"},
    {{.strategy = "local", .ranks = 2, .ep = 2, .seq = 24, .global_batch = 4},
     CHOICE_WEIGHTS_ZERO3,
     2,
     "torchtitan"},
    {{.strategy = "ulysses", .ranks = 4, .hp = 2, .ep = 2, .seq = 48, .global_batch = 4},
     CHOICE_WEIGHTS_ZERO3,
     2,
     NULL},
    {{.strategy = "ulysses", .ranks = 4, .hp = 4, .ep = 2, .seq = 48, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO1,
     3,
     "megatron-te"},
    {{.strategy = "ring", .ranks = 4, .ep = 2, .seq = 96, .ring_layout = RING_STRIPED},
     CHOICE_WEIGHTS_REPLICATED,
     1,
     "megatron-te"},
    {{.strategy = "2d", .ranks = 4, .hp = 2, .cp = 2, .ep = 2, .seq = 48},
     CHOICE_WEIGHTS_ZERO3,
     4,
     NULL},
    {{.strategy = "2d", .ranks = 12, .hp = 2, .cp = 3, .ep = 6, .seq = 144},
     CHOICE_WEIGHTS_ZERO1,
     0,
     NULL},
    {{.strategy = "fpdt", .ranks = 2, .hp = 2, .ep = 2, .seq = 48, .chunk_tokens = 24},
     CHOICE_WEIGHTS_ZERO3,
     2,
     NULL},
    {{.strategy = "upipe", .ranks = 2, .ep = 2, .seq = 24, .ffn_chunks = 2},
     CHOICE_WEIGHTS_ZERO3,
     2,
     NULL},
    {{.strategy = "ulysses", .ranks = 4, .hp = 2, .ep = 2, .pp = 2, .seq = 48, .global_batch = 4},
     CHOICE_WEIGHTS_ZERO1,
     0,
     NULL},
    {{.strategy = "local",
      .ranks = 4,
      .ep = 2,
      .pp = 2,
      .seq = 24,
      .global_batch = 8,
      .pipeline = CHOICE_PIPELINE_ZB_1P},
     CHOICE_WEIGHTS_ZERO2,
     0,
     NULL},
    {{.strategy = "local",
      .ranks = 4,
      .ep = 2,
      .pp = 2,
      .seq = 48,
      .subsequences = 2,
      .pipeline = CHOICE_PIPELINE_SEQ1F1B},
     CHOICE_WEIGHTS_ZERO1,
     2,
     NULL},
};

/* Experts over ranks: whole axes of the mesh, the inner part of one, and two parts of one, which a shard cuts, too.
 * Every way of sharing weights reduces their gradients over the other ranks only, and clips by the norm of all of
 * them. */
static void experts_over_ranks_compute_the_reference(void)
{
    for (size_t i = 0; i < ARRAY_LEN(spread_rows); i++) {
        struct transformer model = expert_base;
        model.router_norm = true;
        model.shared_ffn = i % 2 == 1 ? 24 : 0;
        model.dense_layers = i % 3 == 1;
        check_expert_request_row(&spread_rows[i], &model);
    }
}

static const struct request_row tensor_row_order[] = {
    {{.strategy = "megatron-sp", .ranks = 2, .tp = 2, .ep = 2, .seq = 48}, 0, 0, NULL},
    {{.strategy = "megatron-sp", .ranks = 4, .tp = 2, .ep = 2, .seq = 48, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO1,
     2,
     "megatron"},
    {{.strategy = "megatron-sp", .ranks = 12, .tp = 2, .ep = 6, .seq = 48, .global_batch = 12},
     CHOICE_WEIGHTS_ZERO3,
     1,
     NULL},
    {{.strategy = "ulysses", .ranks = 8, .tp = 2, .hp = 2, .ep = 2, .seq = 48},
     CHOICE_WEIGHTS_ZERO2,
     3,
     NULL},
    {{.strategy = "ring", .ranks = 4, .tp = 2, .ep = 2, .seq = 96, .ffn_chunks = 2},
     CHOICE_WEIGHTS_ZERO3,
     2,
     "torchtitan"},
    {{.strategy = "megatron-sp",
      .ranks = 4,
      .tp = 2,
      .pp = 2,
      .ep = 2,
      .seq = 48,
      .global_batch = 4},
     CHOICE_WEIGHTS_ZERO1,
     0,
     "megatron-te"},
    {{.strategy = "megatron-sp",
      .ranks = 4,
      .tp = 2,
      .pp = 2,
      .ep = 2,
      .seq = 96,
      .subsequences = 2,
      .pipeline = CHOICE_PIPELINE_SEQ1F1B},
     CHOICE_WEIGHTS_ZERO1,
     2,
     NULL},
};

/* Each tensor rank routes its own tokens and has experts that the others do not have. */
static void tensor_ranks_compute_the_reference(void)
{
    for (size_t i = 0; i < ARRAY_LEN(tensor_row_order); i++) {
        struct transformer model = expert_base;
        model.kv_heads = i % 2 == 1 ? 1 : 4;
        model.shared_ffn = i % 2 == 1 ? 24 : 0;
        model.dense_layers = i % 3 == 2;
        check_expert_request_row(&tensor_row_order[i], &model);
    }
}

static const struct request_row overlap_rows[] = {
    {{.strategy = "local", .ranks = 2, .ep = 2, .seq = 48, .global_batch = 2}, 0, 0, NULL},
    {{.strategy = "local", .ranks = 2, .ep = 2, .seq = 48, .global_batch = 8},
     CHOICE_WEIGHTS_ZERO1,
     0,
     "megatron-te"},
    {{.strategy = "ulysses", .ranks = 4, .hp = 2, .ep = 2, .seq = 48, .global_batch = 6},
     CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_SELECTIVE_CORE,
     "megatron"},
    {{.strategy = "ring", .ranks = 4, .ep = 2, .seq = 96, .global_batch = 3},
     CHOICE_WEIGHTS_ZERO1,
     0,
     NULL},
    {{.strategy = "local",
      .ranks = 4,
      .pp = 2,
      .virtual_stages = 2,
      .ep = 2,
      .seq = 24,
      .global_batch = 12,
      .pipeline = CHOICE_PIPELINE_INTERLEAVED},
     CHOICE_WEIGHTS_ZERO1,
     0,
     "megatron-te"},
    {{.strategy = "megatron-sp",
      .ranks = 8,
      .tp = 2,
      .pp = 4,
      .virtual_stages = 2,
      .ep = 2,
      .seq = 48,
      .global_batch = 8,
      .pipeline = CHOICE_PIPELINE_INTERLEAVED,
      .recompute_modules = 1 << RECOMPUTE_MOE_ACT | 1 << RECOMPUTE_LAYERNORM},
     CHOICE_WEIGHTS_REPLICATED,
     0,
     "megatron"},
};

/* The forward of one micro-batch is listed between the ops of the backward of another, with every dispatcher that the
 * backend has, and gradients of weights may be delayed. */
static void overlapped_exchanges_compute_the_reference(void)
{
    static const int dispatchers[] = {DISPATCHER_ALLTOALL, DISPATCHER_DEEPEP, DISPATCHER_HYBRIDEP};
    for (size_t i = 0; i < 6 * ARRAY_LEN(overlap_rows); i++) {
        struct transformer model = expert_base;
        struct request_row row = overlap_rows[i / 6];
        model.layers = row.request.pp > 1 ? 8 : 3;
        model.dense_layers = i % 4 == 1;
        model.shared_ffn = i / 2 % 2 == 1 ? 24 : 0;
        row.request.dispatcher = matrix_backend == NULL ? dispatchers[i % 3] : DISPATCHER_ALLTOALL;
        row.request.expert_overlap = 1 + (int)(i % 2);
        check_expert_request_row(&row, &model);
    }
}

/* Shares of six experts. An expert whose share is more copies than there are tokens gets one copy of each token. */
static const int64_t uneven[][6] = {
    {1, 2, 3, 5, 8, 13}, {7, 0, 1, 1, 4, 2}, {0, 0, 1, 0, 0, 90}, {1, 1, 1, 1, 1, 1}};

/* The copies of a rank's rows do not divide over 6 experts. */
static const struct request_row odd_rows[] = {
    {{.strategy = "local", .ranks = 1, .seq = 61, .ffn_chunks = 2}, 0, 0, NULL},
    {{.strategy = "local", .ranks = 3, .ep = 3, .seq = 25, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO3,
     2,
     NULL},
    {{.strategy = "local", .ranks = 4, .ep = 2, .seq = 23, .global_batch = 8},
     CHOICE_WEIGHTS_ZERO2,
     1,
     "megatron-te"},
    {{.strategy = "local", .ranks = 6, .ep = 6, .seq = 17}, CHOICE_WEIGHTS_ZERO1, 3, NULL},
    {{.strategy = "ulysses", .ranks = 4, .hp = 4, .ep = 2, .seq = 52, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO1,
     3,
     NULL},
    {{.strategy = "ring", .ranks = 4, .ep = 2, .seq = 88, .ring_layout = RING_STRIPED},
     CHOICE_WEIGHTS_REPLICATED,
     1,
     "torchtitan"},
    {{.strategy = "2d", .ranks = 12, .hp = 2, .cp = 3, .ep = 6, .seq = 132},
     CHOICE_WEIGHTS_ZERO1,
     0,
     NULL},
    {{.strategy = "fpdt", .ranks = 2, .hp = 2, .ep = 2, .seq = 48, .chunk_tokens = 20},
     CHOICE_WEIGHTS_ZERO3,
     2,
     NULL},
    {{.strategy = "megatron-sp", .ranks = 4, .tp = 2, .ep = 2, .seq = 46, .micro_batch = 2},
     CHOICE_WEIGHTS_ZERO1,
     2,
     NULL},
    {{.strategy = "local",
      .ranks = 4,
      .ep = 2,
      .pp = 2,
      .seq = 24,
      .global_batch = 8,
      .pipeline = CHOICE_PIPELINE_ZB_1P},
     CHOICE_WEIGHTS_ZERO2,
     0,
     NULL},
    {{.strategy = "local",
      .ranks = 4,
      .ep = 2,
      .pp = 2,
      .seq = 46,
      .subsequences = 2,
      .pipeline = CHOICE_PIPELINE_SEQ1F1B},
     CHOICE_WEIGHTS_ZERO1,
     2,
     NULL},
};

/* Ranks have unequal numbers of rows, or none, in layers with different shares or with the same. */
static void uneven_routing_computes_the_reference(void)
{
    for (size_t i = 0; i < ARRAY_LEN(odd_rows); i++) {
        struct transformer model = expert_base;
        struct request_row row = odd_rows[i];
        struct routing routing;
        struct arena arena = {0};
        model.router = (enum router)(i % ROUTER_COUNT);
        model.router_norm = i % 2 == 0;
        model.shared_ffn = i % 3 == 1 ? 24 : 0;
        routing_init(&routing, &arena, 6, 4, 2);
        routing_set_shares(&routing, &arena, 0, uneven[i % 3]);
        routing_set_shares(&routing, &arena, 1, uneven[i % 2 == 0 ? (i + 1) % 4 : i % 3]);
        row.request.routing = &routing;
        check_expert_request_row(&row, &model);
        arena_release(&arena);
    }
}

/* With even routing some experts get one row more than others. */
static void even_routing_has_remainders(void)
{
    for (size_t i = 0; i < ARRAY_LEN(odd_rows); i++) {
        struct transformer model = expert_base;
        model.router = (enum router)(i % ROUTER_COUNT);
        check_expert_request_row(&odd_rows[i], &model);
    }
}

/* gpt-oss: sinks of attention, windows in every second layer, biases of everything, a clamped activation, and a softmax
 * over the experts that are chosen. */
static const struct transformer expert_gpt_oss = {.name = "gpt-oss",
                                                  .layers = 2,
                                                  .hidden = 32,
                                                  .heads = 4,
                                                  .kv_heads = 2,
                                                  .head_dim = 8,
                                                  .ffn = 48,
                                                  .vocab = 61,
                                                  .activation = ACTIVATION_SWIGLU_CLAMPED,
                                                  .rope_theta = 1e4,
                                                  .norm_eps = 1e-5,
                                                  .attention_window = 7,
                                                  .full_attention_every = 2,
                                                  .bias_qkv = true,
                                                  .bias_o = true,
                                                  .bias_ffn = true,
                                                  .experts = 6,
                                                  .experts_per_token = 4,
                                                  .expert_ffn = 20,
                                                  .router = ROUTER_SOFTMAX_OF_CHOSEN,
                                                  .router_bias = true,
                                                  .attention_sinks = true};

/* Checks a family in all of the strategies above, without upipe if it has sinks, which upipe refuses. With the uneven
 * routing of odd_rows some experts have no rows, so that their biases have no gradient. */
static void check_model_family(const struct transformer *family)
{
    const struct {
        const struct request_row *row;
        size_t count;
    } tables[] = {{spread_rows, ARRAY_LEN(spread_rows)},
                  {tensor_row_order, ARRAY_LEN(tensor_row_order)},
                  {odd_rows, ARRAY_LEN(odd_rows)}};
    for (size_t i = 0; i < ARRAY_LEN(expert_requests); i++) {
        struct request_row row = {.request = expert_requests[i], .weights = CHOICE_WEIGHTS_ZERO1};
        row.activations = (int)(i + 2) % CHOICE_ACTIVATIONS_COUNT;
        if (row.activations == CHOICE_ACTIVATIONS_RATIO)
            row.activations = CHOICE_ACTIVATIONS_SELECTIVE;
        if (!family->attention_sinks || strcmp(row.request.strategy, "upipe") != 0)
            check_expert_request_row(&row, family);
    }
    for (size_t k = 0; k < ARRAY_LEN(tables); k++)
        for (size_t i = 0; i < tables[k].count; i++) {
            struct transformer model = *family;
            struct request_row row = tables[k].row[i];
            struct routing routing;
            struct arena arena = {0};
            if (family->attention_sinks && strcmp(row.request.strategy, "upipe") == 0)
                continue;
            routing_init(&routing, &arena, (uint32_t)model.experts,
                         (uint32_t)model.experts_per_token, (uint32_t)model.layers);
            for (uint32_t l = 0; l < (uint32_t)model.layers; l++)
                routing_set_shares(&routing, &arena, l, uneven[(i + l) % 3]);
            if (k == 2)
                row.request.routing = &routing;
            else
                model.dense_layers = i % 3 == 1;
            check_expert_request_row(&row, &model);
            arena_release(&arena);
        }
}

static void gpt_oss_computes_the_reference(void)
{
    check_model_family(&expert_gpt_oss);
}

/* Llama 4: one expert a token, whose weight multiplies what it reads, and a shared one, in every second layer; chunks
 * in the layers that rotate, and norms of heads without weights there. Four layers: the period of both. */
static const struct transformer expert_llama4 = {.name = "llama-4",
                                                 .layers = 4,
                                                 .hidden = 32,
                                                 .heads = 4,
                                                 .kv_heads = 2,
                                                 .head_dim = 8,
                                                 .ffn = 48,
                                                 .vocab = 61,
                                                 .rope_theta = 1e4,
                                                 .norm_eps = 1e-5,
                                                 .attention_window = 10,
                                                 .full_attention_every = 4,
                                                 .window_chunks = true,
                                                 .unrotated_every = 4,
                                                 .qk_norm = true,
                                                 .qk_norm_bare = true,
                                                 .experts = 6,
                                                 .experts_per_token = 1,
                                                 .expert_ffn = 20,
                                                 .shared_ffn = 24,
                                                 .experts_every = 2,
                                                 .router = ROUTER_SIGMOID,
                                                 .router_on_input = true};

/* The CUDA backend has no norms without weights, so the model has its norms of q and k only on the CPU. */
static void llama_4_computes_the_reference(void)
{
    struct transformer model = expert_llama4;
    model.qk_norm = model.qk_norm_bare = matrix_backend == NULL;
    check_model_family(&model);
}

#define EXPERT_CASES                                                                               \
    {"every router computes the reference", routers_compute_the_reference},                        \
        {"gpt-oss computes the reference", gpt_oss_computes_the_reference},                        \
        {"Llama 4 computes the reference", llama_4_computes_the_reference},                        \
        {"every strategy computes the reference", strategies_with_experts_compute_the_reference},  \
        {"modules make again what they dropped", modules_recompute_what_they_dropped},             \
        {"experts over ranks compute the reference", experts_over_ranks_compute_the_reference},    \
        {"uneven routing computes the reference", uneven_routing_computes_the_reference},          \
        {"even routing has remainders", even_routing_has_remainders},                              \
        {"overlapped exchanges compute the reference",                                             \
         overlapped_exchanges_compute_the_reference},                                              \
    {                                                                                              \
        "tensor ranks compute the reference", tensor_ranks_compute_the_reference                   \
    }

#endif
