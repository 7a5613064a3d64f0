/* tests/exec/test_gradients.c: every strategy computes exact gradients. Schedules that cover the legal pairs of choices
 * (matrix.h) have the loss, gradients, parameters and moments of the reference; each day checks a sample of these
 * schedules. test_gradients_nightly.c has every legal product of most choices. */
#include "schedule/config/resolve_config.h"
#include "tests/exec/matrix.h"

static void every_pair_of_choices_computes_the_reference(void)
{
    const struct factor_level_counts factors = factors_with_all_levels();
    struct matrix_rows *rows = rows_covering_pairs(&factors, 1);
    rows_check_all_pairs_covered(rows, &factors);
    check_rows(rows, true, 24);
    rows_free(rows);
}

static struct choices resolved(const struct request *request)
{
    struct choices choices;
    struct diag diag = {0};
    CHECK_INT("resolve", resolve_choices(&choices, request, NULL, &diag), STATUS_OK);
    if (diag.text != NULL)
        fputs(diag.text, stderr);
    diag_release(&diag);
    return choices;
}

static void sixty_four_ranks_compute_the_reference(void)
{
    static const struct transformer tiny = {.name = "tiny",
                                            .layers = 1,
                                            .hidden = 16,
                                            .heads = 8,
                                            .kv_heads = 2,
                                            .head_dim = 4,
                                            .ffn = 12,
                                            .vocab = 19,
                                            .activation = ACTIVATION_SWIGLU,
                                            .norm = NORM_RMSNORM,
                                            .positions = POSITIONS_ROPE,
                                            .rope_theta = 1e4,
                                            .norm_eps = 1e-5};
    const struct request request = {.model = &tiny,
                                    .weights = CHOICE_WEIGHTS_ZERO3,
                                    .activations = CHOICE_ACTIVATIONS_FULL,
                                    .optimizer = -1,
                                    .attention_impl = ATTENTION_CPU,
                                    .dtype = DTYPE_F32,
                                    .ranks = 64,
                                    .hp = 8,
                                    .seq = 16,
                                    .gpus_per_node = 8,
                                    .sm = 80};
    struct choices choices = resolved(&request);
    check_choices(&choices, false);
}

/* Some keys of a chunk are hidden from other chunks; the reference has the same mask. */
static void sparse_chunks_compute_the_reference(void)
{
    static const char *const profiles[] = {"deepspeed", "ideal"};
    for (int i = 0; i < 8; i++) {
        struct transformer model = shapes[i % 2];
        model.attention_chunk = 16;
        model.attention_kept = 5 + i;
        struct request request = {.model = &model,
                                  .strategy = "fpdt",
                                  .profile = profiles[i / 4],
                                  .weights = CHOICE_WEIGHTS_ZERO3,
                                  .activations = i % CHOICE_ACTIVATIONS_COUNT,
                                  .optimizer = -1,
                                  .attention_impl = ATTENTION_CPU,
                                  .dtype = DTYPE_F32,
                                  .ranks = 2,
                                  .hp = 2,
                                  .seq = 56,
                                  .chunk_tokens = 16,
                                  .kv_offload = i % 4 == 3,
                                  .chunk_order = i / 2 % 2,
                                  .gpus_per_node = 2,
                                  .sm = 80};
        struct choices choices = resolved(&request);
        check_choices(&choices, true);
    }
}

/* Checks layers with sliding windows in every strategy without rings or chunks (test_documents.c has those); the
 * reference has the same mask. A window of 5 ends within a subsequence, one of 21 spans two. */
static void layers_with_windows_compute_the_reference(void)
{
    static const struct {
        const char *strategy;
        int64_t hp, tp, pp, subsequences;
    } uses[] = {
        {"local", 0, 0, 0, 0},       {"ulysses", 2, 0, 0, 0}, {"upipe", 2, 0, 0, 0},
        {"megatron-sp", 0, 2, 0, 0}, {"ulysses", 2, 0, 2, 0}, {"sppo", 0, 0, 2, 4},
        {"sppo", 0, 2, 0, 3},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(uses); i++) {
        struct transformer model = shapes[1 - i % 2];
        const size_t u = i / 2;
        model.attention_window = i % 2 == 0 ? 5 : 21;
        model.window_from_layer = i % 3 == 1;
        model.full_attention_every = i % 3 == 2 ? 2 : 0;
        struct request request = {.model = &model,
                                  .strategy = uses[u].strategy,
                                  .weights = CHOICE_WEIGHTS_ZERO1,
                                  .activations = (int)i % CHOICE_ACTIVATIONS_COUNT,
                                  .optimizer = -1,
                                  .attention_impl = ATTENTION_CPU,
                                  .dtype = DTYPE_F32,
                                  .ranks = 4,
                                  .hp = uses[u].hp,
                                  .tp = uses[u].tp,
                                  .pp = uses[u].pp,
                                  .subsequences = uses[u].subsequences,
                                  .seq = 48,
                                  .gpus_per_node = 4,
                                  .sm = 80};
        struct choices choices = resolved(&request);
        CHECK_INT(uses[u].strategy, transformer_count_windowed_layers(&model) > 0, true);
        check_choices(&choices, true);
    }
}

/* Layers like those of Gemma 3 (norms at both ends of a branch, GEGLU, norms of q and k, two of three layers with
 * windows), OLMo 2 (norms at the ends only, norms of q and k over all heads) and Nemotron (squared ReLU, LayerNorm), in
 * every strategy that supports them: with tensor ranks and upipe not norms over all heads, and with upipe not a single
 * K/V head. */
static void layers_of_other_families_compute_the_reference(void)
{
    struct transformer gemma = shapes[4], olmo = shapes[1], nemotron = shapes[2];
    gemma.layers = 3;
    gemma.activation = ACTIVATION_GEGLU;
    gemma.norm_place = NORM_BOTH;
    gemma.attention_window = 11;
    gemma.full_attention_every = 3;
    olmo.norm_place = NORM_AFTER;
    olmo.qk_norm = olmo.qk_norm_wide = true;
    nemotron.layers = 2;
    nemotron.activation = ACTIVATION_RELU2;
    nemotron.norm_place = NORM_BOTH;
    nemotron.bias_ffn = false;
    const struct transformer *const models[] = {&gemma, &olmo, &nemotron};
    static const struct {
        const char *strategy;
        int64_t hp, cp, tp, pp, subsequences;
    } uses[] = {
        {"local", 0, 0, 0, 0, 0},       {"ulysses", 2, 0, 0, 0, 0}, {"ring", 0, 2, 0, 0, 0},
        {"2d", 2, 2, 0, 0, 0},          {"fpdt", 2, 0, 0, 0, 0},    {"upipe", 2, 0, 0, 0, 0},
        {"megatron-sp", 0, 0, 2, 0, 0}, {"ulysses", 2, 0, 0, 2, 0}, {"sppo", 0, 0, 2, 2, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(models) * ARRAY_LEN(uses); i++) {
        const struct transformer *model = models[i % 3];
        const size_t u = i / 3;
        const bool whole = uses[u].tp > 0 || strcmp(uses[u].strategy, "upipe") == 0;
        if ((model->qk_norm_wide && whole) ||
            (uses[u].hp > 1 && model->kv_heads < 2 && strcmp(uses[u].strategy, "upipe") == 0))
            continue;
        struct request request = {.model = model,
                                  .strategy = uses[u].strategy,
                                  .weights = (int)i % CHOICE_WEIGHTS_COUNT,
                                  .activations = (int)u % CHOICE_ACTIVATIONS_COUNT,
                                  .optimizer = -1,
                                  .attention_impl = ATTENTION_CPU,
                                  .dtype = DTYPE_F32,
                                  .ranks = 4,
                                  .hp = uses[u].hp,
                                  .cp = uses[u].cp,
                                  .tp = uses[u].tp,
                                  .pp = uses[u].pp,
                                  .subsequences = uses[u].subsequences,
                                  .seq = 48,
                                  .gpus_per_node = 4,
                                  .sm = 80};
        struct choices choices = resolved(&request);
        check_choices(&choices, true);
    }
}

/* With a 16-bit dtype every result is rounded; the tolerance is that of the dtype. */
static void sixteen_bits_stay_within_their_tolerance(void)
{
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16};
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++)
        for (int m = 0; m < SHAPE_COUNT; m++) {
            struct request request = {.model = &shapes[m],
                                      .profile = m % 2 == 0 ? "ideal" : NULL,
                                      .weights = m % CHOICE_WEIGHTS_COUNT,
                                      .activations = m % CHOICE_ACTIVATIONS_COUNT,
                                      .optimizer = -1,
                                      .attention_impl = ATTENTION_CPU,
                                      .dtype = (int)dtypes[d],
                                      .ranks = 4,
                                      .hp = 2,
                                      .seq = 32,
                                      .gpus_per_node = 2,
                                      .sm = 80};
            struct choices choices = resolved(&request);
            check_choices(&choices, true);
        }
}

/* Checks training whose parameters, gradients and moments are all kept in bf16; the reference rounds its own in the
 * same way. */
static void bf16_states_compute_the_reference(void)
{
    static const char *const profiles[] = {"neutral", "megatron", "torchtitan", "deepspeed"};
    for (int i = 0; i < 2 * CHOICE_WEIGHTS_COUNT; i++) {
        struct request request = {.model = &shapes[i % SHAPE_COUNT],
                                  .profile = profiles[i % 4],
                                  .weights = i % CHOICE_WEIGHTS_COUNT,
                                  .activations = CHOICE_ACTIVATIONS_FULL,
                                  .optimizer =
                                      i >= CHOICE_WEIGHTS_COUNT && i % CHOICE_WEIGHTS_COUNT != 0,
                                  .states = STATES_BF16,
                                  .attention_impl = ATTENTION_CPU,
                                  .dtype = DTYPE_BF16,
                                  .ranks = 4,
                                  .hp = 2,
                                  .seq = 32,
                                  .gpus_per_node = 2,
                                  .sm = 80};
        struct choices choices = resolved(&request);
        check_choices(&choices, true);
    }
}

static const struct check_case cases[] = {
    {"every pair of choices computes the reference", every_pair_of_choices_computes_the_reference},
    {"64 ranks compute the reference", sixty_four_ranks_compute_the_reference},
    {"sparse chunks compute the reference", sparse_chunks_compute_the_reference},
    {"layers with windows compute the reference", layers_with_windows_compute_the_reference},
    {"layers of other families compute the reference",
     layers_of_other_families_compute_the_reference},
    {"16 bits stay within their tolerance", sixteen_bits_stay_within_their_tolerance},
    {"bf16 states compute the reference", bf16_states_compute_the_reference},
};
CHECK_MAIN("gradients", cases)
