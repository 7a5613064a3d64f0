/* tests/exec/test_pipelines.c: every pipeline computes exact gradients, over stages, units, models (tied
 * embeddings, grouped queries), weights and recomputation. */
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/pipeline/pipeline.h"
#include "tests/exec/matrix.h"

enum { DAYS = 4 }; /* in which every row is checked once */

static const struct transformer deep_models[] = {
    {.name = "gqa",
     .layers = 8,
     .hidden = 16,
     .heads = 4,
     .kv_heads = 2,
     .head_dim = 4,
     .ffn = 12,
     .vocab = 19,
     .activation = ACTIVATION_SWIGLU,
     .norm = NORM_RMSNORM,
     .positions = POSITIONS_ROPE,
     .rope_theta = 1e4,
     .norm_eps = 1e-5},
    {.name = "tied gpt",
     .layers = 9,
     .hidden = 16,
     .heads = 4,
     .kv_heads = 4,
     .head_dim = 4,
     .ffn = 20,
     .vocab = 23,
     .activation = ACTIVATION_GELU,
     .norm = NORM_LAYERNORM,
     .positions = POSITIONS_LEARNED,
     .max_positions = 64,
     .norm_eps = 1e-5,
     .bias_qkv = true,
     .bias_o = true,
     .bias_ffn = true,
     .tied_head = true},
};

struct pipeline_row {
    int pipeline, weights, activations;
    int64_t pp, dp, hp, units, subsequences;
    int model;
    const char *profile;
};

static struct request request_of(const struct pipeline_row *row)
{
    return (struct request){
        .model = &deep_models[row->model],
        .strategy = row->hp > 1 ? "ulysses" : "local",
        .profile = row->profile,
        .weights = row->weights,
        .activations = row->activations,
        .optimizer = -1,
        .attention_impl = ATTENTION_CPU,
        .dtype = DTYPE_F32,
        .ranks = row->pp * row->dp * row->hp,
        .dp = row->dp,
        .hp = row->hp,
        .pp = row->pp,
        .pipeline = row->pipeline,
        .subsequences = row->subsequences,
        .seq = 16 * row->hp,
        .global_batch = row->dp * row->units,
        .gpus_per_node = 2,
        .sm = 80,
    };
}

static void check_pipeline_row(const struct pipeline_row *row)
{
    struct request request = request_of(row);
    check_request_if_sampled_today(&request, DAYS);
}

static void every_pipeline_computes_the_reference(void)
{
    for (int p = CHOICE_PIPELINE_GPIPE; p < CHOICE_PIPELINE_MSP; p++) {
        bool pieces = pipeline_of_choice((enum pipeline_choice)p)->has_subsequences;
        for (int model = 0; model < 2; model++)
            for (int64_t pp = 2; pp <= 4; pp += 2)
                check_pipeline_row(&(struct pipeline_row){
                    .pipeline = p,
                    .weights = CHOICE_WEIGHTS_REPLICATED,
                    .activations = pp == 2 ? CHOICE_ACTIVATIONS_KEEP : CHOICE_ACTIVATIONS_FULL,
                    .pp = pp,
                    .dp = 1,
                    .hp = 1,
                    .units = pieces ? 2 : 4,
                    .subsequences = pieces ? 2 : 1,
                    .model = model,
                    .profile = pp == 2 ? "ideal" : "deepspeed"});
    }
}

/* With every choice of weights, the two data-parallel ranks of each stage compute the reference. */
static void weights_choices_of_stages_compute_reference(void)
{
    for (int p = CHOICE_PIPELINE_1F1B; p < CHOICE_PIPELINE_MSP; p++) {
        bool pieces = pipeline_of_choice((enum pipeline_choice)p)->has_subsequences;
        for (int weights = 0; weights < CHOICE_WEIGHTS_COUNT; weights++)
            check_pipeline_row(
                &(struct pipeline_row){.pipeline = p,
                                       .weights = weights,
                                       .activations = (p + weights) % CHOICE_ACTIVATIONS_COUNT,
                                       .pp = 2,
                                       .dp = 2,
                                       .hp = 1 + p % 2,
                                       .units = 2,
                                       .subsequences = pieces ? 4 : 1,
                                       .model = (p + weights) % 2,
                                       .profile = weights % 2 == 0 ? "ideal" : "deepspeed"});
    }
}

/* Each of several micro-batches has two sequences, which are cut into the same subsequences. */
static void micro_batch_sequences_share_lengths(void)
{
    static const int pipelines[] = {CHOICE_PIPELINE_NONE,        CHOICE_PIPELINE_TERAPIPE,
                                    CHOICE_PIPELINE_SEQ1F1B,     CHOICE_PIPELINE_ZB_1P,
                                    CHOICE_PIPELINE_INTERLEAVED, CHOICE_PIPELINE_ZB_V};
    for (size_t i = 0; i < ARRAY_LEN(pipelines); i++)
        for (int model = 0; model < 2; model++) {
            struct pipeline_row row = {
                .pipeline = pipelines[i],
                .weights = model == 0 ? CHOICE_WEIGHTS_ZERO1 : CHOICE_WEIGHTS_ZERO3,
                .activations = i % 2 == 0 ? CHOICE_ACTIVATIONS_FULL : CHOICE_ACTIVATIONS_RATIO,
                .pp = i == 0 ? 1 : 2,
                .dp = 1,
                .hp = 1 + (int64_t)(i + (size_t)model) % 2,
                .subsequences = 2 + 2 * model,
                .units = 6,
                .model = model,
                .profile = model == 0 ? "megatron" : "ideal"};
            struct request request = request_of(&row);
            struct choices choices;
            struct diag diag = {0};
            request.micro_batch = 2;
            request.loss_chunks = 1 + (int64_t)i;
            CHECK_INT("resolve", resolve_choices(&choices, &request, NULL, &diag), STATUS_OK);
            CHECK_INT("micro-batches", choices.accumulation, 3);
            check_choices_if_sampled_today(&choices, true, DAYS);
            diag_release(&diag);
        }
}

/* Checks subsequences, with stages and without, in fp32 and in bf16, where gradients of keys are summed in fp32. */
static void subsequences_compute_the_reference(void)
{
    for (int64_t pieces = 2; pieces <= 8; pieces *= 2)
        for (int wide = 0; wide < 2; wide++) {
            struct pipeline_row row = {
                .pipeline = pieces == 8 ? CHOICE_PIPELINE_SEQ1F1B : CHOICE_PIPELINE_NONE,
                .weights = CHOICE_WEIGHTS_ZERO2,
                .activations = (int)(pieces / 2 + wide) % CHOICE_ACTIVATIONS_COUNT,
                .pp = pieces == 8 ? 2 : 1,
                .dp = 1,
                .hp = 2,
                .units = 2,
                .subsequences = pieces,
                .profile = "ideal"};
            struct request request = request_of(&row);
            if (wide) {
                request.dtype = DTYPE_BF16;
                request.model = &shapes[1]; /* the check has a tolerance for its rounding */
            }
            check_request_if_sampled_today(&request, DAYS);
        }
}

/* Stages of tensor ranks compute the reference, on whole sequences and on subsequences. */
static void stages_of_tensor_ranks_compute_the_reference(void)
{
    for (int p = CHOICE_PIPELINE_1F1B; p < CHOICE_PIPELINE_MSP; p++) {
        bool pieces = pipeline_of_choice((enum pipeline_choice)p)->has_subsequences;
        struct pipeline_row row = {.pipeline = p,
                                   .weights = p % CHOICE_WEIGHTS_COUNT,
                                   .activations = p % CHOICE_ACTIVATIONS_COUNT,
                                   .pp = 2,
                                   .dp = 1 + p % 2,
                                   .hp = 1,
                                   .units = 2,
                                   .subsequences = pieces ? 4 : 1,
                                   .model = p % 2,
                                   .profile = "megatron"};
        struct request request = request_of(&row);
        request.strategy = "megatron-sp";
        request.tp = 2;
        request.ranks *= 2;
        check_request_if_sampled_today(&request, DAYS);
    }
}

/* Subsequences of one sequence may have different lengths, over head ranks and over tensor ranks. */
static void subsequence_lengths_may_differ(void)
{
    static const int64_t lengths[] = {10, 2, 14, 6};
    for (int tensor = 0; tensor < 2; tensor++) {
        struct pipeline_row row = {.pipeline = CHOICE_PIPELINE_SEQ1F1B,
                                   .weights = CHOICE_WEIGHTS_ZERO1,
                                   .activations = CHOICE_ACTIVATIONS_FULL,
                                   .pp = 2,
                                   .dp = 1,
                                   .hp = 2,
                                   .units = 2,
                                   .subsequences = 4,
                                   .model = tensor,
                                   .profile = tensor ? "megatron" : "deepspeed"};
        struct request request = request_of(&row);
        request.subsequence_tokens = lengths;
        if (tensor) {
            request.strategy = "megatron-sp";
            request.hp = 1;
            request.tp = 2;
        }
        check_request_if_sampled_today(&request, DAYS);
    }
}

/* Numbers of first and last subsequences that are shared: all of both, all of the first, one of the first and two of
 * the last, one of the last. */
static const struct shared_units shared_unit_counts[] = {
    {SHARED_UNITS_UP_TO_IDLE_STAGES, SHARED_UNITS_UP_TO_IDLE_STAGES},
    {SHARED_UNITS_UP_TO_IDLE_STAGES, 0},
    {1, 2},
    {0, 1}};

/* Idle stages share the first and the last subsequences, or some of them, and compute the reference. */
static void shared_subsequences_compute_the_reference(void)
{
    static const struct {
        int64_t pp, subsequences;
    } rows[] = {{2, 2}, {2, 4}, {3, 5}, {4, 4}, {4, 6}};
    for (size_t k = 0; k < ARRAY_LEN(shared_unit_counts) * MSP_WEIGHTS_COUNT * ARRAY_LEN(rows);
         k++) {
        size_t i = k % ARRAY_LEN(rows), j = k / ARRAY_LEN(rows);
        int helpers = (int)(j % MSP_WEIGHTS_COUNT);
        struct pipeline_row row = {.pipeline = CHOICE_PIPELINE_MSP,
                                   .weights =
                                       i % 2 ? CHOICE_WEIGHTS_ZERO1 : CHOICE_WEIGHTS_REPLICATED,
                                   .activations = (int)(i + 1) % CHOICE_ACTIVATIONS_COUNT,
                                   .pp = rows[i].pp,
                                   .dp = 1 + (int64_t)(i % 2),
                                   .hp = 1,
                                   .units = 1 + (int64_t)(i % 3 == 1),
                                   .subsequences = rows[i].subsequences,
                                   .model = (int)i % 2,
                                   .profile = i % 2 ? "megatron" : "ideal"};
        struct request request = request_of(&row);
        request.seq = (rows[i].pp == 2 ? 4 : 12) * rows[i].subsequences;
        request.helpers = helpers;
        request.shared_units = &shared_unit_counts[j / MSP_WEIGHTS_COUNT];
        check_request_if_sampled_today(&request, DAYS);
    }
}

/* Checks that stages of tensor ranks share subsequences, too: even pieces, a shorter last one, learned positions, as
 * many tensor ranks as heads, and more of them than key and value heads. */
static void stages_of_tensor_ranks_share_subsequences(void)
{
    static const int64_t uneven[] = {10, 14, 6, 6, 10}, uneven4[] = {28, 12, 4, 12, 12};
    static const struct {
        int64_t pp, tp, dp, subsequences, seq;
        const int64_t *lengths;
        int model, weights, activations;
        const char *profile;
    } rows[] = {
        /* pp, tp, dp, subsequences, seq, lengths, model, weights, activations, profile */
        {2, 2, 1, 2, 16, NULL, 0, CHOICE_WEIGHTS_ZERO1, CHOICE_ACTIVATIONS_KEEP, "megatron"},
        {2, 2, 2, 4, 32, NULL, 1, CHOICE_WEIGHTS_REPLICATED, CHOICE_ACTIVATIONS_FULL, "megatron"},
        {3, 2, 1, 5, 46, uneven, 1, CHOICE_WEIGHTS_ZERO1, CHOICE_ACTIVATIONS_RATIO, "ideal"},
        {2, 4, 1, 5, 68, uneven4, 0, CHOICE_WEIGHTS_REPLICATED, CHOICE_ACTIVATIONS_RATIO,
         "megatron"},
    };
    for (size_t k = 0; k < ARRAY_LEN(shared_unit_counts) * MSP_WEIGHTS_COUNT * ARRAY_LEN(rows);
         k++) {
        size_t i = k % ARRAY_LEN(rows), j = k / ARRAY_LEN(rows);
        struct pipeline_row row = {.pipeline = CHOICE_PIPELINE_MSP,
                                   .weights = rows[i].weights,
                                   .activations = rows[i].activations,
                                   .pp = rows[i].pp,
                                   .dp = rows[i].dp,
                                   .hp = 1,
                                   .units = 1 + (int64_t)(i == 1),
                                   .subsequences = rows[i].subsequences,
                                   .model = rows[i].model,
                                   .profile = rows[i].profile};
        struct request request = request_of(&row);
        request.strategy = "megatron-sp";
        request.tp = rows[i].tp;
        request.ranks *= rows[i].tp;
        request.seq = rows[i].seq;
        request.subsequence_tokens = rows[i].lengths;
        request.helpers = (int)(j % MSP_WEIGHTS_COUNT);
        request.shared_units = &shared_unit_counts[j / MSP_WEIGHTS_COUNT];
        check_request_if_sampled_today(&request, DAYS);
    }
}

static const struct check_case cases[] = {
    {"every pipeline computes the reference", every_pipeline_computes_the_reference},
    {"lengths may differ", subsequence_lengths_may_differ},
    {"shared subsequences compute the reference", shared_subsequences_compute_the_reference},
    {"stages of tensor ranks compute the reference", stages_of_tensor_ranks_compute_the_reference},
    {"stages of tensor ranks share subsequences", stages_of_tensor_ranks_share_subsequences},
    {"subsequences compute the reference", subsequences_compute_the_reference},
    {"sequences of a micro-batch are cut alike", micro_batch_sequences_share_lengths},
    {"stages share their weights as one rank would", weights_choices_of_stages_compute_reference},
};
CHECK_MAIN("pipelines", cases)
