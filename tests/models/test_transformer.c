/* tests/models/test_transformer.c: a model lists its tensors, parameters and flops; presets, files and overrides of
 * fields are read, or refused with a message. */
#include "models/transformer.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const struct transformer llama2_7b = {
    .name = "m",
    .layers = 32,
    .hidden = 4096,
    .heads = 32,
    .kv_heads = 32,
    .head_dim = 128,
    .ffn = 11008,
    .vocab = 32000,
    .rope_theta = 10000,
    .norm_eps = 1e-5,
};

/* A model with biases, LayerNorm, learned positions, norms of q and k, and fewer K/V heads than
 * heads. */
static const struct transformer gpt = {
    .name = "m",
    .layers = 2,
    .hidden = 6,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 2,
    .ffn = 10,
    .vocab = 11,
    .max_positions = 7,
    .activation = ACTIVATION_GELU,
    .norm = NORM_LAYERNORM,
    .positions = POSITIONS_LEARNED,
    .bias_qkv = true,
    .bias_o = true,
    .bias_ffn = true,
    .qk_norm = true,
    .norm_eps = 1e-5,
};

/* ---- tensors and parameters ---- */

static void print_tensors(char *out, size_t size, const struct tensor_spec *tensors, size_t count)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s %lldx%lld\n", tensors[i].name,
                                 (long long)tensors[i].rows, (long long)tensors[i].cols);
}

static void a_layer_lists_its_tensors_in_order(void)
{
    struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
    char text[1024];
    size_t count = transformer_list_layer_tensors(&llama2_7b, 0, tensors, ARRAY_LEN(tensors));
    print_tensors(text, sizeof text, tensors, count);
    CHECK_TEXT("llama", text,
               "norm1.weight 4096x1\nwqkv.weight 12288x4096\nwo.weight 4096x4096\n"
               "norm2.weight 4096x1\nw13.weight 22016x4096\nw2.weight 4096x11008\n");
    struct transformer olmo = llama2_7b;
    olmo.norm_place = NORM_AFTER;
    olmo.qk_norm = olmo.qk_norm_wide = true;
    olmo.kv_heads = 8;
    count = transformer_list_layer_tensors(&olmo, 0, tensors, ARRAY_LEN(tensors));
    print_tensors(text, sizeof text, tensors, count);
    CHECK_TEXT("olmo", text,
               "wqkv.weight 6144x4096\nq_norm.weight 4096x1\nk_norm.weight 1024x1\n"
               "wo.weight 4096x4096\nnorm1_after.weight 4096x1\nw13.weight 22016x4096\n"
               "w2.weight 4096x11008\nnorm2_after.weight 4096x1\n");
    struct transformer gemma = llama2_7b;
    gemma.norm_place = NORM_BOTH;
    gemma.activation = ACTIVATION_GEGLU;
    count = transformer_list_layer_tensors(&gemma, 0, tensors, ARRAY_LEN(tensors));
    print_tensors(text, sizeof text, tensors, count);
    CHECK_TEXT("gemma", text,
               "norm1.weight 4096x1\nwqkv.weight 12288x4096\nwo.weight 4096x4096\n"
               "norm1_after.weight 4096x1\nnorm2.weight 4096x1\nw13.weight 22016x4096\n"
               "w2.weight 4096x11008\nnorm2_after.weight 4096x1\n");
    count = transformer_list_layer_tensors(&gpt, 0, tensors, ARRAY_LEN(tensors));
    print_tensors(text, sizeof text, tensors, count);
    CHECK_TEXT("gpt", text,
               "norm1.weight 6x1\nnorm1.bias 6x1\nwqkv.weight 16x6\nwqkv.bias 16x1\n"
               "q_norm.weight 2x1\nk_norm.weight 2x1\nwo.weight 6x8\nwo.bias 6x1\n"
               "norm2.weight 6x1\nnorm2.bias 6x1\nw1.weight 10x6\nw1.bias 10x1\n"
               "w2.weight 6x10\nw2.bias 6x1\n");
}

static void embedding_head_tensors_are_listed(void)
{
    struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
    char text[256];
    struct transformer tied = gpt;
    print_tensors(text, sizeof text, tensors,
                  transformer_list_embedding_tensors(&gpt, tensors, ARRAY_LEN(tensors)));
    CHECK_TEXT("before", text, "embedding.weight 11x6\npositions.weight 7x6\n");
    print_tensors(text, sizeof text, tensors,
                  transformer_list_head_tensors(&gpt, tensors, ARRAY_LEN(tensors)));
    CHECK_TEXT("after", text, "norm.weight 6x1\nnorm.bias 6x1\nhead.weight 11x6\n");
    tied.tied_head = true;
    print_tensors(text, sizeof text, tensors,
                  transformer_list_head_tensors(&tied, tensors, ARRAY_LEN(tensors)));
    CHECK_TEXT("tied", text, "norm.weight 6x1\nnorm.bias 6x1\n");
    print_tensors(text, sizeof text, tensors,
                  transformer_list_embedding_tensors(&llama2_7b, tensors, ARRAY_LEN(tensors)));
    CHECK_TEXT("rope", text, "embedding.weight 32000x4096\n");
}

static void a_short_array_is_not_overrun(void)
{
    struct tensor_spec tensors[2] = {{"kept", 1, 1}, {"kept", 1, 1}};
    CHECK_INT("count", (int64_t)transformer_list_layer_tensors(&gpt, 0, tensors, 1), 14);
    CHECK_TEXT("second", tensors[1].name, "kept");
}

static void parameters_are_exact(void)
{
    CHECK_INT("llama-2-7b", transformer_parameters(&llama2_7b), INT64_C(6738415616));
    CHECK_INT("a layer", transformer_largest_layer_parameters(&llama2_7b),
              4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096);
    /* parameters by hand, from the list above: 6+6 +96+16 +2+2 +48+6 +6+6 +60+10 +60+6 */
    CHECK_INT("gpt layer", transformer_largest_layer_parameters(&gpt), 330);
    CHECK_INT("gpt", transformer_parameters(&gpt), 2 * 330 + 66 + 42 + 12 + 66);
}

/* ---- flops ---- */

/* One layer: multi-head attention, GELU, f = 4 h. */
static const struct transformer one_layer = {.layers = 1,
                                             .hidden = 64,
                                             .heads = 4,
                                             .kv_heads = 4,
                                             .head_dim = 16,
                                             .ffn = 256,
                                             .vocab = 10,
                                             .activation = ACTIVATION_GELU};

static void flops_follow_from_shapes(void)
{
    CHECK_INT("24 h^2", transformer_layer_linear_flops_per_token(&one_layer), 24 * 64 * 64);
    CHECK_INT("head", transformer_head_flops_per_token(&one_layer), 2 * 64 * 10);
    CHECK_CLOSE("full: 4 s^2 h", transformer_layer_attention_flops(&one_layer, 1000, false),
                4e6 * 64, 1e-15);
    CHECK_CLOSE("causal: 2 s^2 h", transformer_layer_attention_flops(&one_layer, 1000, true),
                2e6 * 64, 1e-15);
    CHECK_CLOSE("dense", transformer_visible_attention_flops(&one_layer, 1000), 2e6 * 64, 1e-15);
    /* MQA, SwiGLU: 2 h^2 for q, 2 h^2 for o, 4 h 16 for k and v, 6 h f */
    struct transformer mqa = one_layer;
    mqa.activation = ACTIVATION_SWIGLU;
    mqa.kv_heads = 1;
    CHECK_INT("MQA", transformer_layer_linear_flops_per_token(&mqa),
              4 * 4096 + 4 * 64 * 16 + 6 * 64 * 256);
}

static void flops_of_windows_are_those_of_visible_pairs(void)
{
    /* A window of 4 in 10 tokens leaves 10 x 4 - 4^2 / 2 = 32 pairs. */
    struct transformer all = one_layer;
    all.attention_window = 4;
    CHECK_CLOSE("window", transformer_visible_attention_flops(&all, 10), 4.0 * 32 * 64, 1e-15);
    CHECK_CLOSE("window of all", transformer_visible_attention_flops(&all, 4), 4.0 * 8 * 64, 1e-15);
    /* If only every second layer has the window, the other layers have 50 pairs. */
    struct transformer half = all;
    half.layers = 4;
    half.full_attention_every = 2;
    CHECK_INT("windowed layers", transformer_count_windowed_layers(&half), 2);
    CHECK_CLOSE("every second layer", transformer_visible_attention_flops(&half, 10), 4.0 * 41 * 64,
                1e-12);
    /* in half of the layers, chunks of 3, 3 and 2 tokens */
    struct transformer chunked = half;
    chunked.attention_window = 3;
    chunked.window_chunks = true;
    CHECK_CLOSE("chunks", transformer_visible_attention_flops(&chunked, 8),
                transformer_layer_attention_flops(&chunked, 8, true) * (1 + 22.0 / 64) / 2, 1e-12);
}

static void flops_of_sparse_attention_are_those_of_kept_keys(void)
{
    /* Chunks of 4, 4 and 2 tokens, each of which sees one token of every chunk before it, too: 8, 8
     * + 4 x 1 and 2 + 2 x 2 x 1 pairs. */
    struct transformer sparse = one_layer;
    sparse.attention_chunk = 4;
    sparse.attention_kept = 1;
    CHECK_CLOSE("sparse", transformer_visible_attention_flops(&sparse, 10), 4.0 * 26 * 64, 1e-15);
    sparse.attention_kept = 4;
    CHECK_CLOSE("all is kept", transformer_visible_attention_flops(&sparse, 1000), 2e6 * 64, 1e-15);
}

/* ---- fields ---- */

static const struct {
    const char *label, *field, *value, *message;
} wrong_overrides[] = {
    {"no such field", "vocabulary", "5",
     "m: error: a model has no field 'vocabulary'; its fields are layers, hidden, heads, kv_heads, "
     "head_dim, ffn, vocab, max_positions, attention_window, window_from_layer, "
     "full_attention_every, window_chunks, unrotated_every, activation, norm, norm_place, "
     "positions, bias_qkv, bias_o, bias_ffn, "
     "qk_norm, qk_norm_wide, qk_norm_bare, fused_products, tied_head, rope_theta, norm_eps, "
     "attention_dropout, "
     "experts, "
     "experts_per_token, expert_ffn, shared_ffn, dense_layers, experts_every, router, router_norm, "
     "router_scale, router_bias, router_correction, router_on_input, router_groups, "
     "router_groups_kept, q_latent, kv_latent, rope_dim, v_dim, rope_scaled, attention_sinks, "
     "adapter_rank, adapter_targets\n"},
    {"misspelt", "head", "5", "m: error: a model has no field 'head': did you mean 'heads'?\n"},
    {"no number", "vocab", "50257x",
     "m: error: vocab cannot be '50257x': it is a whole number from 1 to 67108864\n"},
    {"empty", "vocab", "",
     "m: error: vocab cannot be '': it is a whole number from 1 to 67108864\n"},
    {"zero", "layers", "0",
     "m: error: layers cannot be '0': it is a whole number from 1 to 16384\n"},
    {"negative", "ffn", "-1",
     "m: error: ffn cannot be '-1': it is a whole number from 1 to 16777216\n"},
    {"overflow", "hidden", "99999999999999999999",
     "m: error: hidden cannot be '99999999999999999999': it is a whole number from 1 to 1048576\n"},
    {"choice", "norm", "batch",
     "m: error: norm cannot be 'batch': it is one of rmsnorm, layernorm\n"},
    {"switch", "tied_head", "yes", "m: error: tied_head cannot be 'yes': it is true or false\n"},
    {"real", "norm_eps", "2", "m: error: norm_eps cannot be '2': it is a number from 0 to 1\n"},
    {"not a number", "rope_theta", "nan",
     "m: error: rope_theta cannot be 'nan': it is a number from 0 to 1e+15\n"},
};

static void wrong_overrides_name_what_would_fit(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong_overrides); i++) {
        struct transformer t = llama2_7b;
        struct diag diag = {0};
        CHECK_INT(
            wrong_overrides[i].label,
            transformer_set_field(&t, wrong_overrides[i].field, wrong_overrides[i].value, &diag),
            STATUS_BAD_INPUT);
        CHECK_TEXT(wrong_overrides[i].label, diag.text, wrong_overrides[i].message);
        CHECK(wrong_overrides[i].label, t.vocab == llama2_7b.vocab && t.norm == llama2_7b.norm);
        diag_release(&diag);
    }
}

static void overrides_set_fields(void)
{
    struct transformer t = llama2_7b;
    struct diag diag = {0};
    CHECK_INT("vocab", transformer_set_field(&t, "vocab", "50257", &diag), STATUS_OK);
    CHECK_INT("vocab", t.vocab, 50257);
    CHECK_INT("act", transformer_set_field(&t, "activation", "gelu", &diag), STATUS_OK);
    CHECK_INT("act", t.activation, ACTIVATION_GELU);
    CHECK_INT("norm", transformer_set_field(&t, "norm", "layernorm", &diag), STATUS_OK);
    CHECK_INT("norm", t.norm, NORM_LAYERNORM);
    CHECK_INT("pos", transformer_set_field(&t, "positions", "none", &diag), STATUS_OK);
    CHECK_INT("pos", t.positions, POSITIONS_NONE);
    CHECK_INT("tied", transformer_set_field(&t, "tied_head", "true", &diag), STATUS_OK);
    CHECK("tied", t.tied_head);
    CHECK_INT("theta", transformer_set_field(&t, "rope_theta", "5e5", &diag), STATUS_OK);
    CHECK_CLOSE("theta", t.rope_theta, 5e5, 0);
    diag_release(&diag);
}

static const struct {
    const char *label, *field, *value, *message;
} unfit[] = {
    {"groups", "kv_heads", "5",
     "m: error: kv_heads 5 does not divide heads 32: the nearest that do are 4 and 8\n"},
    {"too many", "kv_heads", "33",
     "m: error: kv_heads 33 does not divide heads 32: the most it can be is 32\n"},
    {"odd head", "head_dim", "127",
     "m: error: head_dim 127 is odd, but RoPE rotates pairs of columns: 128 would do\n"},
    {"no base", "rope_theta", "0",
     "m: error: rope_theta is 0: RoPE needs a base above 0, 10000 for instance\n"},
    {"norms of nothing", "qk_norm_wide", "true",
     "m: error: qk_norm_wide is true and qk_norm is false: it says over what the norms of q and k "
     "go, so qk_norm=true is needed\n"},
    {"no table", "positions", "learned",
     "m: error: max_positions is 0: learned positions need the number of their rows, 1 or more\n"},
};

static void unfit_sizes_name_values_that_fit(void)
{
    for (size_t i = 0; i < ARRAY_LEN(unfit); i++) {
        struct transformer t = llama2_7b;
        struct diag diag = {0};
        CHECK_INT(unfit[i].label, transformer_set_field(&t, unfit[i].field, unfit[i].value, &diag),
                  STATUS_OK);
        CHECK_INT(unfit[i].label, transformer_check(&t, (struct loc){"m", 0, 0}, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(unfit[i].label, diag.text, unfit[i].message);
        diag_release(&diag);
    }
}

static void a_bias_before_the_last_norm_is_refused(void)
{
    struct transformer t = gpt;
    struct diag diag = {0};
    t.norm_place = NORM_AFTER;
    CHECK_INT("bias", transformer_check(&t, (struct loc){"m", 0, 0}, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("bias", diag.text,
               "m: error: norm_place is after and bias_o is true: a bias before the norm that ends "
               "a branch is not modelled; false would do\n");
    diag_release(&diag);
}

static void sizes_out_of_range_are_refused(void)
{
    struct diag diag = {0};
    const struct transformer zero = {0};
    CHECK_INT("zero", transformer_check(&zero, (struct loc){"z", 0, 0}, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("zero", diag.text, "z: error: layers is 0: it must be from 1 to 16384\n");
    diag_clear(&diag);
    /* the largest sizes: nothing may overflow on the way to the message */
    const struct transformer huge = {
        .layers = 1 << 14,
        .hidden = 1 << 20,
        .heads = 1 << 14,
        .kv_heads = 1 << 14,
        .head_dim = 1 << 12,
        .ffn = 1 << 24,
        .vocab = 1 << 26,
        .max_positions = INT64_C(1) << 40,
        .positions = POSITIONS_LEARNED,
        .norm = NORM_LAYERNORM,
        .bias_qkv = true,
        .bias_o = true,
        .bias_ffn = true,
        .qk_norm = true,
        .norm_eps = 1,
    };
    CHECK_INT("huge", transformer_check(&huge, (struct loc){"h", 0, 0}, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("huge", diag.text,
               "h: error: the model has 6.63e+18 parameters: at most 10^15 are supported, so fewer "
               "layers or smaller sizes are needed\n");
    diag_release(&diag);
}

/* ---- presets ---- */

static void every_preset_loads_and_carries_its_name(void)
{
    struct arena arena = {0};
    struct diag diag = {0};
    const char *const *names;
    size_t count;
    CHECK_INT("list", transformer_presets(&names, &count, &arena, &diag), STATUS_OK);
    CHECK("all are there", count >= 16);
    for (size_t i = 0; i < count; i++) {
        struct transformer t;
        if (!CHECK_INT(names[i], transformer_load(&t, &arena, names[i], NULL, &diag), STATUS_OK)) {
            CHECK_TEXT(names[i], diag.text, "");
            diag_clear(&diag);
            continue;
        }
        CHECK_TEXT(names[i], t.name, names[i]);
        CHECK(names[i], t.source != NULL && t.source[0] != '\0');
    }
    diag_release(&diag);
    arena_release(&arena);
}

/* Parameters as the publishers count them; of models whose publishers give only sizes, by hand. */
static const struct {
    const char *name;
    int64_t parameters;
} published[] = {
    {"llama2-7b", INT64_C(6738415616)},
    {"llama2-70b", INT64_C(68976648192)},
    {"llama3-8b", INT64_C(8030261248)},
    {"llama3-70b", INT64_C(70553706496)},
    {"llama-70b", INT64_C(70553706496)},
    {"qwen2-7b", INT64_C(7615616512)},
    {"mistral-7b", INT64_C(7248023552)},
    {"gpt2", INT64_C(124439808)},
    {"qwen3-0.6b", 596049920},
    {"qwen3-1.7b", 1720574976},
    {"qwen3-4b", 4022468096},
    {"qwen3-8b", 8190735360},
    {"qwen3-14b", 14768307200},
    {"qwen3-32b", 32762123264},
    {"qwen2.5-0.5b", 494032768},
    {"qwen2.5-1.5b", 1543714304},
    {"qwen2.5-3b", 3085938688},
    {"qwen2.5-14b", 14770033664},
    {"qwen2.5-32b", 32763876352},
    {"qwen2.5-72b", 72706203648},
    {"mistral-nemo-12b", 12247782400},
    {"mistral-small-24b", 23572403200},
    {"mistral-large-123b", 122610069504},
    {"olmo2-1b", 1484916736},
    {"olmo2-7b", 7298617344},
    {"olmo2-13b", 13716198400},
    {"olmo2-32b", 32234279936},
    {"gemma3-1b", 999885952},
    {"gemma3-4b", 3880263168},
    {"llama3.1-405b", 405853388800},
    {"llama3.2-1b", 1235814400},
    {"llama3.2-3b", 3212749824},
    {"smollm2-1.7b", 1711376384},
    /* by hand */
    {"internlm-7b-mha", 32 * (INT64_C(4) * 4096 * 4096 + 3 * 4096 * 14336 + 2 * 4096) +
                            2 * INT64_C(50257) * 4096 + 4096},
    /* 12 h^2 + 9 h biases + 4 h norms a layer; the embedding; the last norm */
    {"gpt-6.7b", 32 * (INT64_C(12) * 4096 * 4096 + 13 * 4096) + INT64_C(50257) * 4096 + 2 * 4096},
    {"gpt-30b", 64 * (INT64_C(12) * 6144 * 6144 + 13 * 6144) + INT64_C(50257) * 6144 + 2 * 6144},
};

static void presets_have_the_published_parameters(void)
{
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        struct arena arena = {0};
        struct transformer t;
        CHECK_INT(published[i].name, transformer_load(&t, &arena, published[i].name, NULL, NULL),
                  STATUS_OK);
        CHECK_INT(published[i].name, transformer_parameters(&t), published[i].parameters);
        arena_release(&arena);
    }
}

static void a_preset_equals_the_config_it_is_from(void)
{
    static const struct {
        const char *preset, *config;
    } pairs[] = {
        {"llama2-7b", "data/configs/llama-2-7b.json"},
        {"llama2-70b", "data/configs/llama-2-70b.json"},
        {"llama3-8b", "data/configs/llama-3-8b.json"},
        {"qwen2-7b", "data/configs/qwen2-7b.json"},
        {"mistral-7b", "data/configs/mistral-7b-v0.3.json"},
        {"qwen3-0.6b", "data/configs/qwen3-0.6b.json"},
        {"qwen3-8b", "data/configs/qwen3-8b.json"},
        {"llama3.2-1b", "data/configs/llama-3.2-1b.json"},
        {"olmo2-7b", "data/configs/olmo-2-7b.json"},
        {"gpt2", "data/configs/gpt2.json"},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct arena arena = {0};
        struct transformer a, b;
        CHECK_INT(pairs[i].preset, transformer_load(&a, &arena, pairs[i].preset, NULL, NULL),
                  STATUS_OK);
        CHECK_INT(pairs[i].preset,
                  transformer_load(&b, &arena, check_path(pairs[i].config), NULL, NULL), STATUS_OK);
        CHECK_TEXT(pairs[i].preset, b.name, check_path(pairs[i].config));
        a.name = b.name = a.source = b.source = a.note = b.note = NULL;
        CHECK(pairs[i].preset, a.layers == b.layers && a.hidden == b.hidden && a.heads == b.heads);
        CHECK(pairs[i].preset, a.kv_heads == b.kv_heads && a.head_dim == b.head_dim);
        CHECK(pairs[i].preset, a.ffn == b.ffn && a.vocab == b.vocab);
        CHECK(pairs[i].preset, a.max_positions == b.max_positions && a.positions == b.positions);
        CHECK(pairs[i].preset, a.activation == b.activation && a.norm == b.norm);
        CHECK(pairs[i].preset, a.bias_qkv == b.bias_qkv && a.bias_o == b.bias_o);
        CHECK(pairs[i].preset, a.bias_ffn == b.bias_ffn && a.qk_norm == b.qk_norm);
        CHECK(pairs[i].preset, a.tied_head == b.tied_head);
        CHECK_CLOSE(pairs[i].preset, a.rope_theta, b.rope_theta, 0);
        CHECK_CLOSE(pairs[i].preset, a.norm_eps, b.norm_eps, 0);
        arena_release(&arena);
    }
}

/* Each preset has the fields of the dense proxy that is read from a file of its family, but for the
 * two that are set below. */
static void presets_equal_the_proxies_of_public_configs(void)
{
    static const struct {
        const char *preset, *config;
    } pairs[] = {
        {"gemma2-9b", "data/configs/gemma-2-9b.json"},
        {"gemma3-1b", "data/configs/gemma-3-1b.json"},
        {"gemma3-12b", "data/configs/gemma-3-12b.json"},
        {"gemma3-27b", "data/configs/gemma-3-27b.json"},
        {"olmo3-7b", "data/configs/olmo-3-7b.json"},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct arena arena = {0};
        struct transformer a, b;
        struct text preset = {0}, config = {0};
        CHECK_INT(pairs[i].preset, transformer_load(&a, &arena, pairs[i].preset, NULL, NULL),
                  STATUS_OK);
        CHECK_INT(pairs[i].preset,
                  transformer_load_dense(&b, &arena, check_path(pairs[i].config), NULL, NULL),
                  STATUS_OK);
        b.proxy_lacks = NULL;
        b.max_positions = a.max_positions; /* text_config leaves it out */
        transformer_put_line(&preset, &a, true);
        transformer_put_line(&config, &b, true);
        CHECK_TEXT(pairs[i].preset, preset.data, config.data);
        text_release(&preset);
        text_release(&config);
        arena_release(&arena);
    }
}

/* ---- files ---- */

#define SIZES                                                                                      \
    "\"longhaul_transformer\": 1, \"name\": \"t\", \"layers\": 2, \"hidden\": 8, \"heads\": 2, "   \
    "\"kv_heads\": 1, \"head_dim\": 4, \"ffn\": 16, \"activation\": \"gelu\", "                    \
    "\"norm\": \"layernorm\", \"norm_eps\": 1e-5, "

static const struct {
    const char *label, *text, *message; /* NULL: the text is correct */
} files[] = {
    {"whole", "{" SIZES "\"vocab\": 9, \"positions\": \"none\", \"sources\": {\"*\": \"me\"}}",
     NULL},
    {"a source for each",
     "{" SIZES "\"vocab\": 9, \"positions\": \"none\", \"sources\": {\"vocab\": \"me\"}}",
     "t.json:1: error: sources: no source for layers: give \"layers\", or \"*\" for all the "
     "rest\n"},
    {"no vocabulary", "{" SIZES "\"positions\": \"none\", \"sources\": {\"*\": \"me\"}}",
     "t.json:1: error: vocab: "},
    {"unknown word",
     "{" SIZES "\"vocab\": 9, \"positions\": \"alibi\", \"sources\": {\"*\": \"me\"}}",
     "t.json:1: error: positions: unknown value 'alibi': it is one of rope, learned, none\n"},
    {"no base", "{" SIZES "\"vocab\": 9, \"positions\": \"rope\", \"sources\": {\"*\": \"me\"}}",
     "t.json:1: error: rope_theta: "},
    {"no sources", "{" SIZES "\"vocab\": 9, \"positions\": \"none\"}",
     "t.json:1: error: sources: "},
    {"unknown key", "{" SIZES "\"vocabulary\": 9}", "t.json:1: error: vocabulary: "},
    {"another version", "{\"longhaul_transformer\": 2}", "t.json:1: error: longhaul_transformer: "},
    {"no rows", "{" SIZES "\"vocab\": 9, \"positions\": \"learned\", \"sources\": {\"*\": \"me\"}}",
     "t.json: error: max_positions is 0: learned positions need the number of their rows, 1 or "
     "more\n"},
    {"neither", "{\"layers\": 2}",
     "t.json:1: error: neither \"model_type\" (a Hugging Face config.json) nor "
     "\"longhaul_transformer\": 1 (our own schema) is there\n"},
    {"a list", "[1]",
     "t.json:1: error: expected an object: a Hugging Face config.json, or a model with "
     "\"longhaul_transformer\": 1\n"},
    {"truncated", "{\"longhaul_transformer\": 1, \"na", "t.json:1:"},
    {"empty", "", "t.json:1"},
};

static void files_are_read_or_refused_with_their_place(void)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct transformer t;
        enum status status =
            transformer_parse(&t, &arena, "t.json", files[i].text, strlen(files[i].text), &diag);
        if (files[i].message == NULL) {
            CHECK_INT(files[i].label, status, STATUS_OK);
            CHECK_TEXT(files[i].label, diag.text != NULL ? diag.text : "", "");
        } else {
            /* messages of the JSON reader are tested with it; here only the beginning is compared */
            CHECK_INT(files[i].label, status, STATUS_BAD_INPUT);
            CHECK_INT(files[i].label, (int64_t)diag.error_count, 1);
            const size_t size = strlen(files[i].message);
            if (diag.text == NULL || strncmp(diag.text, files[i].message, size) != 0)
                CHECK_TEXT(files[i].label, diag.text, files[i].message);
        }
        diag_release(&diag);
        arena_release(&arena);
    }
}

static void an_unknown_model_gets_the_nearest_name(void)
{
    struct arena arena = {0};
    struct diag diag = {0};
    struct transformer t;
    CHECK_INT("near", transformer_load(&t, &arena, "llama3-8B", NULL, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("near", diag.text, "error: no model 'llama3-8B'; did you mean 'llama3-8b'?\n");
    diag_clear(&diag);
    CHECK_INT("far", transformer_load(&t, &arena, "frobnicate", NULL, &diag), STATUS_BAD_INPUT);
    CHECK("says where", diag.text != NULL && strstr(diag.text, "transformers") != NULL);
    diag_clear(&diag);
    CHECK("no file", transformer_load(&t, &arena, "no/such.json", NULL, &diag) != STATUS_OK);
    CHECK("no file", diag.text != NULL && strncmp(diag.text, "no/such.json: error: ", 21) == 0);
    diag_clear(&diag);
    CHECK_INT("ignore", transformer_load(&t, &arena, "llama3-8b", "rope_scaling", &diag),
              STATUS_BAD_INPUT);
    diag_release(&diag);
    arena_release(&arena);
}

static const struct check_case cases[] = {
    {"a layer lists its tensors in order", a_layer_lists_its_tensors_in_order},
    {"the ends list their tensors", embedding_head_tensors_are_listed},
    {"a short array is not overrun", a_short_array_is_not_overrun},
    {"parameters are exact", parameters_are_exact},
    {"flops follow from shapes", flops_follow_from_shapes},
    {"flops of windows are those of visible pairs", flops_of_windows_are_those_of_visible_pairs},
    {"flops of sparse attention are those of kept keys",
     flops_of_sparse_attention_are_those_of_kept_keys},
    {"overrides say what would do", wrong_overrides_name_what_would_fit},
    {"overrides set fields", overrides_set_fields},
    {"checks name the values that fit", unfit_sizes_name_values_that_fit},
    {"a bias before the last norm is refused", a_bias_before_the_last_norm_is_refused},
    {"sizes out of range are refused", sizes_out_of_range_are_refused},
    {"every preset loads and carries its name", every_preset_loads_and_carries_its_name},
    {"presets have the published parameters", presets_have_the_published_parameters},
    {"a preset equals the config it is from", a_preset_equals_the_config_it_is_from},
    {"presets equal the proxies of public configs", presets_equal_the_proxies_of_public_configs},
    {"files are read or refused with their place", files_are_read_or_refused_with_their_place},
    {"an unknown model gets the nearest name", an_unknown_model_gets_the_nearest_name},
};

CHECK_MAIN("transformer", cases)
