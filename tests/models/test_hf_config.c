/* tests/models/test_hf_config.c: config.json files of Hugging Face are read with the published parameters; what is not
 * modelled is named. Whole files are those of tests/data/configs/. Small ones are texts here
 * (check_json_from_single_quotes()). */
#include "models/hf_config.h"

#include "tests/check.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Reads a file of tests/data/configs/. */
static enum status read_text(struct text *text, const char *file, struct diag *diag)
{
    char path[96];
    snprintf(path, sizeof path, "data/configs/%s", file);
    return text_read(text, check_path(path), diag);
}

/* Reads the model of a file. ignore: the keys of --ignore, or NULL. */
static enum status load_config(struct transformer *t, struct arena *arena, const char *file,
                               const char *ignore, struct diag *diag)
{
    struct text text = {0};
    enum status status = read_text(&text, file, diag);
    if (status == STATUS_OK)
        status = hf_config_parse(t, arena, file, text.data, text.size, ignore, diag);
    text_release(&text);
    return status;
}

/* Reads the dense model that --as-dense takes in place of the model of a file, and checks it. */
static enum status load_dense_proxy(struct transformer *t, struct arena *arena, const char *file)
{
    struct text text = {0};
    struct json json = {0};
    enum status status = read_text(&text, file, NULL);
    if (status == STATUS_OK)
        status = json_parse(&json, file, text.data, text.size, NULL);
    if (status == STATUS_OK)
        status = hf_config_read(t, arena, file, json_root(&json), NULL, true, NULL);
    if (status == STATUS_OK)
        status = transformer_check(t, (struct loc){file, 0, 0}, NULL);
    json_release(&json);
    text_release(&text);
    return status;
}

/* Reads the model of a small config, as if it were the file at `path`. */
static enum status parse_config(struct transformer *t, struct arena *arena, const char *path,
                                const char *config, const char *ignore, struct diag *diag)
{
    const char *text = check_json_from_single_quotes(config);
    return hf_config_parse(t, arena, path, text, strlen(text), ignore, diag);
}

/* The numbers of parameters that the publishers state. */
static const struct {
    const char *file;
    int64_t parameters;
} published[] = {
    {"llama-2-7b.json", INT64_C(6738415616)},      {"llama-2-70b.json", INT64_C(68976648192)},
    {"llama-3-8b.json", INT64_C(8030261248)},      {"llama-3.1-8b.json", INT64_C(8030261248)},
    {"llama-3.2-1b.json", INT64_C(1235814400)},    {"qwen2-7b.json", INT64_C(7615616512)},
    {"qwen2-0.5b.json", INT64_C(494032768)},       {"qwen3-8b.json", INT64_C(8190735360)},
    {"qwen3-4b-2507.json", INT64_C(4022468096)},   {"qwen3-0.6b.json", INT64_C(596049920)},
    {"mistral-7b-v0.1.json", INT64_C(7241732096)}, {"mistral-7b-v0.3.json", INT64_C(7248023552)},
    {"mistral-nemo.json", INT64_C(12247782400)},   {"gpt2.json", INT64_C(124439808)},
    {"llama-mqa.json", INT64_C(5698228224)},       {"gemma-7b.json", INT64_C(8537680896)},
    {"gemma-3-1b.json", INT64_C(999885952)},       {"phi-3-mini-4k.json", INT64_C(3821079552)},
    {"phi-4.json", INT64_C(14659507200)},          {"phi-4-mini.json", INT64_C(3836021760)},
    {"olmo-2-7b.json", INT64_C(7298617344)},       {"olmo-3-7b.json", INT64_C(7298011136)},
    {"olmo-3-32b.json", INT64_C(32233522176)},     {"minitron-4b.json", INT64_C(4190509056)},
    {"starcoder2-7b.json", INT64_C(7173923840)},   {"ministral-8b.json", INT64_C(8019808256)},
    {"seed-oss-36b.json", INT64_C(36151104512)},   {"granite-3.1-8b.json", INT64_C(8170835968)},
    {"glm4-defaults.json", INT64_C(9400279040)},   {"smollm3-3b.json", INT64_C(3075098624)},
    {"exaone-4.0-32b.json", INT64_C(32003216384)},
};

static void public_models_have_the_published_parameters(void)
{
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct transformer t;
        CHECK_INT(published[i].file, load_config(&t, &arena, published[i].file, NULL, &diag),
                  STATUS_OK);
        CHECK(published[i].file, diag.text == NULL || strstr(diag.text, "error:") == NULL);
        CHECK_INT(published[i].file, transformer_parameters(&t), published[i].parameters);
        CHECK_TEXT(published[i].file, t.name, published[i].file);
        diag_release(&diag);
        arena_release(&arena);
    }
}

/* Files with parts that are not modelled are refused. Their dense proxies have the published
 * parameters of the text model; that of Cohere 2 has a second norm in each layer. */
static void proxies_have_the_published_parameters(void)
{
    static const struct {
        const char *file, *proxy;
        int64_t parameters, head_dim, window, windowed_layers;
    } files[] = {
        /* file, proxy, parameters, head_dim, window, windowed_layers */
        {"gemma-2-2b.json", "soft-caps", INT64_C(2614341888), 256, 4096, 13},
        {"gemma-2-9b.json", "soft-caps", INT64_C(9241705984), 256, 4096, 21},
        {"gemma-2-27b.json", "soft-caps", INT64_C(27227128320), 128, 4096, 23},
        {"gemma-3-12b.json", "other-inputs", INT64_C(11766034176), 256, 1024, 40},
        {"gemma-3-27b.json", "other-inputs", INT64_C(27009346304), 128, 1024, 52},
        {"command-r7b.json", "parallel-layers", INT64_C(8028033024) + 32 * 4096, 128, 4096, 24},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct arena arena = {0};
        struct transformer t;
        const char *file = files[i].file;
        CHECK_INT(file, load_config(&t, &arena, file, NULL, NULL), STATUS_BAD_INPUT);
        CHECK_INT(file, load_dense_proxy(&t, &arena, file), STATUS_OK);
        CHECK_TEXT(file, t.proxy_lacks, files[i].proxy);
        CHECK_INT(file, transformer_parameters(&t), files[i].parameters);
        CHECK_INT(file, t.head_dim, files[i].head_dim);
        CHECK_INT(file, t.attention_window, files[i].window);
        CHECK_INT(file, transformer_count_windowed_layers(&t), files[i].windowed_layers);
        arena_release(&arena);
    }
}

/* The dense proxies of mixtures of experts, and of Falcon, keep what a dense model can have of them: the width of
 * all experts of a token as ffn, windows, norms and biases, by the classes of Transformers 4.57.
 * `note` is a part of the message, NULL: there is none. */
static void proxies_keep_what_a_dense_model_can_have(void)
{
#define LLAMA4(TEXT)                                                                               \
    "{'model_type': 'llama4', 'vision_config': {}, 'text_config': {'hidden_size': "                \
    "5120, "                                                                                       \
    "'intermediate_size': 8192, 'intermediate_size_mlp': 16384, 'num_attention_heads': 40, "       \
    "'num_hidden_layers': 48, 'num_experts_per_tok': 1, 'vocab_size': 202048, " TEXT "}}"
#define GPT_OSS(KEYS)                                                                              \
    "{'model_type': 'gpt_oss', 'hidden_size': 2880, 'intermediate_size': 2880, "                   \
    "'num_attention_heads': 64, 'head_dim': 64, 'num_experts_per_tok': 4, "                        \
    "'vocab_size': 201088, " KEYS "}"
#define GLM4(KEYS)                                                                                 \
    "{'model_type': 'glm4_moe', 'hidden_size': 5120, 'intermediate_size': 12288, "                 \
    "'head_dim': 128, 'num_attention_heads': 96, 'num_hidden_layers': 92, "                        \
    "'moe_intermediate_size': 1536, 'n_shared_experts': 1, 'num_experts_per_tok': 8, "             \
    "'first_k_dense_replace': 3, 'vocab_size': 151552, " KEYS "}"
#define QWEN2_MOE(KEYS)                                                                            \
    "{'model_type': 'qwen2_moe', 'hidden_size': 64, 'intermediate_size': 640, "                    \
    "'num_attention_heads': 8, 'num_key_value_heads': 8, 'moe_intermediate_size': 64, "            \
    "'shared_expert_intermediate_size': 64, 'num_experts_per_tok': 3, "                            \
    "'num_hidden_layers': 4, 'vocab_size': 99, " KEYS "}"
    static const char llama4[] =
        "experts+layers-without-rotary-positions+chunked-attention+other-inputs";
    static const struct {
        const char *label, *text, *proxy, *note;
        int64_t ffn, window, windowed_layers;
        double billions; /* of parameters; 0: not compared */
        bool qk_norm, bias_qkv, bias_o;
    } rows[] = {
        /* label, text, proxy, note, ffn, window, windowed_layers, billions, qk_norm, bias_qkv, bias_o */
        {"Scout", LLAMA4("'interleave_moe_layer_step': 1"), llama4, NULL, 16384, 8192, 36, 17.17,
         true, false, false},
        {"Maverick", LLAMA4("'interleave_moe_layer_step': 2, 'use_qk_norm': false"), llama4, NULL,
         16384, 8192, 36, 17.17, false, false, false},
        {"narrow layers between",
         LLAMA4("'moe_layers': [1, 3], 'no_rope_layers': [], 'attention_chunk_size': 512, "
                "'no_rope_layer_interval': 2"),
         llama4, NULL, 16384, 512, 24, 0, true, false, false},
        {"chunks in a list",
         "{'model_type': 'llama4_text', 'hidden_size': 64, 'intermediate_size': 64, "
         "'intermediate_size_mlp': 256, 'moe_layers': [0, 2], 'num_attention_heads': 8, "
         "'num_hidden_layers': 3, 'vocab_size': 99, 'no_rope_layers': [1, 1, 0]}",
         "experts+layers-without-rotary-positions+chunked-attention", NULL, 192, 8192, 2, 0, true,
         false, false},
        {"gpt-oss-20b",
         GPT_OSS("'num_hidden_layers': 24, 'sliding_window': 128, 'quantization_config': {}"),
         "experts+attention-sinks", "these keys: quantization_config;", 11520, 128, 12, 4.185,
         false, true, true},
        {"layer_types",
         GPT_OSS("'num_hidden_layers': 3, 'layer_types': ['full_attention', 'sliding_attention', "
                 "'sliding_attention']"),
         "experts+attention-sinks", NULL, 11520, 128, 2, 0, false, true, true},
        {"GLM-4.5", GLM4("'use_qk_norm': true, 'attention_bias': true"), "experts", NULL, 13824, 0,
         0, 33.63, true, true, false},
        {"GLM-4.5-Air's switches", GLM4("'num_nextn_predict_layers': 1"), "experts",
         "these keys: num_nextn_predict_layers;", 13824, 0, 0, 33.63, false, false, false},
        {"Mixtral with a window",
         "{'model_type': 'mixtral', 'hidden_size': 64, 'intermediate_size': 128, "
         "'num_attention_heads': 8, 'num_hidden_layers': 2, 'vocab_size': 99, 'sliding_window': "
         "4096}",
         "experts", NULL, 256, 4096, 2, 0, false, false, false},
        {"Qwen", QWEN2_MOE("'decoder_sparse_step': 1"), "experts", NULL, 256, 0, 0, 0, false, true,
         false},
        {"Qwen with dense layers", QWEN2_MOE("'decoder_sparse_step': 1, 'mlp_only_layers': [0, 1]"),
         "experts", NULL, 448, 0, 0, 0, false, true, false},
        {"every second layer, and one less",
         QWEN2_MOE("'decoder_sparse_step': 2, 'mlp_only_layers': [0, 3]"), "experts", NULL, 576, 0,
         0, 0, false, true, false},
        {"layers of linear attention",
         "{'model_type': 'qwen3_next', 'hidden_size': 64, 'intermediate_size': 64, "
         "'num_attention_heads': 8, 'num_hidden_layers': 2, 'vocab_size': 99, 'layer_types': "
         "['linear_attention', 'full_attention']}",
         "experts+linear-attention", NULL, 5632, 0, 0, 0, true, false, false},
        {"clipped",
         "{'model_type': 'dbrx', 'd_model': 64, 'n_heads': 8, 'n_layers': 2, 'vocab_size': 99, "
         "'attn_config': {'clip_qkv': 8, 'kv_n_heads': 2}, 'ffn_config': {'ffn_hidden_size': 128, "
         "'moe_num_experts': 16, 'moe_top_k': 4}}",
         "experts", "these keys: clip_qkv;", 512, 0, 0, 0, false, false, false},
        {"Falcon with ALiBi",
         "{'model_type': 'falcon', 'hidden_size': 64, 'num_attention_heads': 8, "
         "'num_hidden_layers': 2, 'vocab_size': 99, 'alibi': true, 'bias': true}",
         "ALiBi+parallel-layers", NULL, 256, 0, 0, 0, false, true, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct json json = {0};
        struct transformer t;
        const char *label = rows[i].label;
        const char *text = check_json_from_single_quotes(rows[i].text);
        CHECK_INT(label, json_parse(&json, "c.json", text, strlen(text), NULL), STATUS_OK);
        CHECK_INT(label, hf_config_read(&t, &arena, "c.json", json_root(&json), NULL, true, &diag),
                  STATUS_OK);
        CHECK_INT(label, transformer_check(&t, (struct loc){"c.json", 0, 0}, &diag), STATUS_OK);
        CHECK_TEXT(label, t.proxy_lacks, rows[i].proxy);
        CHECK_INT(label, t.ffn, rows[i].ffn);
        CHECK_INT(label, t.attention_window, rows[i].window);
        CHECK_INT(label, transformer_count_windowed_layers(&t), rows[i].windowed_layers);
        CHECK_INT(label, t.qk_norm, rows[i].qk_norm);
        CHECK_INT(label, t.bias_qkv, rows[i].bias_qkv);
        CHECK_INT(label, t.bias_o, rows[i].bias_o);
        if (rows[i].billions > 0)
            CHECK_CLOSE(label, (double)transformer_parameters(&t) / 1e9, rows[i].billions, 1e-3);
        CHECK(label, rows[i].note == NULL
                         ? diag.text == NULL
                         : diag.text != NULL && strstr(diag.text, rows[i].note) != NULL);
        json_release(&json);
        diag_release(&diag);
        arena_release(&arena);
    }
}

/* Scaled RoPE angles do not change the work: the model is the same as without scaling, and a note says so. */
static void scaled_angles_are_read_with_a_note(void)
{
    struct arena arena = {0};
    struct diag diag = {0};
    struct transformer scaled, ignored;
    CHECK_INT("scaled", load_config(&scaled, &arena, "llama-3.1-8b.json", NULL, &diag), STATUS_OK);
    CHECK_TEXT(
        "note", diag.text,
        "llama-3.1-8b.json:21: note: rope_scaling: RoPE scaling of type 'llama3' changes "
        "angles and not the work: predictions hold, but `run` and the reference of its check "
        "ignore it\n");
    CHECK_INT("ignored", load_config(&ignored, &arena, "llama-3.1-8b.json", "rope_scaling", NULL),
              STATUS_OK);
    CHECK_CLOSE("base", scaled.rope_theta, ignored.rope_theta, 0);
    CHECK_INT("parameters", transformer_parameters(&scaled), transformer_parameters(&ignored));
    diag_release(&diag);
    arena_release(&arena);
}

static void families_differ_in_what_they_leave_out(void)
{
    struct arena arena = {0};
    struct transformer t;
    CHECK_INT("llama-2", load_config(&t, &arena, "llama-2-7b.json", NULL, NULL), STATUS_OK);
    CHECK_CLOSE("llama-2: base by default", t.rope_theta, 10000, 0);
    CHECK_INT("llama-2: head_dim from heads", t.head_dim, 128);
    CHECK_INT("llama-2: lengths", t.max_positions, 4096);
    CHECK("llama-2", !t.tied_head && !t.bias_qkv && !t.bias_o && !t.bias_ffn && !t.qk_norm);
    CHECK_CLOSE("llama-2", t.norm_eps, 1e-5, 0);

    CHECK_INT("qwen2", load_config(&t, &arena, "qwen2-0.5b.json", NULL, NULL), STATUS_OK);
    CHECK("qwen2: biases", t.bias_qkv && !t.bias_o && !t.bias_ffn);
    CHECK("qwen2: tied", t.tied_head);
    CHECK_INT("qwen2: head_dim", t.head_dim, 64);

    CHECK_INT("qwen3", load_config(&t, &arena, "qwen3-0.6b.json", NULL, NULL), STATUS_OK);
    CHECK("qwen3: norms", t.qk_norm && !t.bias_qkv);
    CHECK_INT("qwen3: q is wider than hidden", transformer_q_columns(&t), 2 * t.hidden);
    CHECK_CLOSE("qwen3", t.rope_theta, 1e6, 0);

    CHECK_INT("gpt2", load_config(&t, &arena, "gpt2.json", NULL, NULL), STATUS_OK);
    CHECK("gpt2", t.tied_head && t.bias_qkv && t.bias_o && t.bias_ffn);
    CHECK_INT("gpt2", t.positions, POSITIONS_LEARNED);
    CHECK_INT("gpt2", t.norm, NORM_LAYERNORM);
    CHECK_INT("gpt2", t.activation, ACTIVATION_GELU);
    CHECK_INT("gpt2: n_inner is 4 n_embd", t.ffn, 3072);

    CHECK_INT("gemma3", load_config(&t, &arena, "gemma-3-1b.json", NULL, NULL), STATUS_OK);
    CHECK_INT("gemma3", t.activation, ACTIVATION_GEGLU);
    CHECK_INT("gemma3", t.norm_place, NORM_BOTH);
    CHECK("gemma3: norms of heads", t.qk_norm && !t.qk_norm_wide);
    CHECK("gemma3: tied", t.tied_head);
    CHECK_CLOSE("gemma3: the base of layers without a window", t.rope_theta, 1e6, 0);
    CHECK_INT("gemma3: the first layers", transformer_layer_window(&t, 4), 512);
    CHECK_INT("gemma3: the sixth layer", transformer_layer_window(&t, 5), 0);
    CHECK_INT("gemma3: windows", transformer_count_windowed_layers(&t), 22);

    CHECK_INT("olmo3", load_config(&t, &arena, "olmo-3-7b.json", NULL, NULL), STATUS_OK);
    CHECK_INT("olmo3", t.norm_place, NORM_AFTER);
    CHECK("olmo3: norms over all heads", t.qk_norm && t.qk_norm_wide);
    CHECK_INT("olmo3: windows", transformer_count_windowed_layers(&t), 24);

    CHECK_INT("nemotron", load_config(&t, &arena, "minitron-4b.json", NULL, NULL), STATUS_OK);
    CHECK_INT("nemotron", t.activation, ACTIVATION_RELU2);
    CHECK_INT("nemotron", t.norm, NORM_LAYERNORM);
    CHECK_INT("nemotron: heads of kv_channels", t.head_dim, 128);

    CHECK_INT("phi3", load_config(&t, &arena, "phi-3-mini-4k.json", NULL, NULL), STATUS_OK);
    CHECK_INT("phi3: all layers", transformer_count_windowed_layers(&t), 32);
    CHECK_INT("phi3", t.attention_window, 2047);
    CHECK_INT("ministral", load_config(&t, &arena, "ministral-8b.json", NULL, NULL), STATUS_OK);
    CHECK_INT("ministral", t.attention_window, 32768);

    CHECK_INT("starcoder2", load_config(&t, &arena, "starcoder2-7b.json", NULL, NULL), STATUS_OK);
    CHECK("starcoder2: biases by default", t.bias_qkv && t.bias_o && t.bias_ffn && t.tied_head);
    CHECK_INT("seed_oss", load_config(&t, &arena, "seed-oss-36b.json", NULL, NULL), STATUS_OK);
    CHECK("seed_oss: biases of q, k, v", t.bias_qkv && !t.bias_o && !t.bias_ffn);

    CHECK_INT("mqa", load_config(&t, &arena, "llama-mqa.json", NULL, NULL), STATUS_OK);
    CHECK_INT("mqa", t.kv_heads, 1);
    arena_release(&arena);
}

/* Keys of small configs of some families; the cases add further keys. */
#define LLAMA                                                                                      \
    "'model_type': 'llama', 'hidden_size': 8, 'intermediate_size': 16, "                           \
    "'num_hidden_layers': 1, 'num_attention_heads': 4, 'vocab_size': 9"
#define MISTRAL                                                                                    \
    "'model_type': 'mistral', 'hidden_size': 8, 'intermediate_size': 16, "                         \
    "'num_hidden_layers': 1, 'num_attention_heads': 4, 'vocab_size': 9"
#define QWEN                                                                                       \
    "'hidden_size': 8, 'intermediate_size': 16, 'num_hidden_layers': 1, "                          \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'vocab_size': 9"
#define GPT2                                                                                       \
    "'model_type': 'gpt2', 'n_embd': 8, 'n_head': 4, 'n_layer': 1, "                               \
    "'n_positions': 16, 'vocab_size': 9"

static const struct {
    const char *label, *text, *ignore;
} right[] = {
    {"MHA by default", "{" LLAMA "}", NULL},
    {"null: as many as heads", "{" MISTRAL ", 'num_key_value_heads': null, 'sliding_window': null}",
     NULL},
    {"swish is silu", "{" LLAMA ", 'hidden_act': 'swish'}", NULL},
    {"default angles", "{" LLAMA ", 'rope_scaling': {'type': 'default'}}", NULL},
    {"angles of version 5",
     "{" LLAMA ", 'rope_parameters': {'rope_type': 'default', 'rope_theta': 5e5}}", NULL},
    {"scaled, ignored",
     "{" LLAMA ", 'rope_parameters': {'rope_type': 'yarn', 'rope_theta': 5e5, 'factor': 4}}",
     "rope_parameters"},
    {"ignored among others", "{" LLAMA ", 'a': 1, 'rope_scaling': {'type': 'linear', 'factor': 2}}",
     " a , rope_scaling,"},
    {"ignored though absent", "{" LLAMA "}", "rope_scaling"},
    {"full layers", "{'model_type': 'qwen2', " QWEN ", 'layer_types': ['full_attention']}", NULL},
    {"window off",
     "{'model_type': 'qwen2', " QWEN ", 'use_sliding_window': false, 'sliding_window': 4}", NULL},
    {"window ignored",
     "{'model_type': 'qwen2', " QWEN ", 'use_sliding_window': true, 'sliding_window': 4}",
     "use_sliding_window"},
    {"experts null", "{" LLAMA ", 'num_local_experts': null}", NULL},
    {"gelu's gate", "{" LLAMA ", 'hidden_act': 'gelu_pytorch_tanh'}", NULL},
    {"no caps",
     "{'model_type': 'gemma2', " QWEN
     ", 'attn_logit_softcapping': null, 'final_logit_softcapping': null}",
     NULL},
    {"caps ignored", "{'model_type': 'gemma2', " QWEN "}",
     "attn_logit_softcapping,final_logit_softcapping"},
    {"tanh form", "{" GPT2 ", 'activation_function': 'gelu_pytorch_tanh'}", NULL},
    {"quantised, ignored", "{" LLAMA ", 'quantization_config': {'bits': 4}}",
     "quantization_config"},
};

static void small_configs_are_read(void)
{
    for (size_t i = 0; i < ARRAY_LEN(right); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct transformer t;
        CHECK_INT(right[i].label,
                  parse_config(&t, &arena, "c.json", right[i].text, right[i].ignore, &diag),
                  STATUS_OK);
        CHECK_TEXT(right[i].label, diag.text, "");
        diag_release(&diag);
        arena_release(&arena);
    }
}

/* A file "config.json" is named by its "_name_or_path", else by its folder, else by its type.
 * Another file is named by its path. */
static void a_config_names_its_model(void)
{
    static const char *const start =
        "{'model_type':'llama','hidden_size':8,'num_attention_heads':2,'num_hidden_layers':1,'"
        "intermediate_size':8,'vocab_size':16";
    static const struct {
        const char *path, *said, *name;
    } rows[] = {
        {"models/Llama-3.1-8B/config.json", "", "Llama-3.1-8B"},
        {"snapshots/0e9e/config.json", ",'_name_or_path':'meta-llama/Llama-3.1-8B'",
         "Llama-3.1-8B"},
        {"config.json", ",'_name_or_path':'/home/me/Llama-3.1-8B/'", "Llama-3.1-8B"},
        {"config.json", "", "llama of config.json"},
        {"./config.json", "", "llama of config.json"},
        {"models/small.json", ",'_name_or_path':'other'", "models/small.json"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct transformer t;
        struct text text = {0};
        text_printf(&text, "%s%s}", start, rows[i].said);
        CHECK_INT(rows[i].path, parse_config(&t, &arena, rows[i].path, text.data, NULL, &diag),
                  STATUS_OK);
        CHECK_TEXT(rows[i].path, t.name, rows[i].name);
        text_release(&text);
        diag_release(&diag);
        arena_release(&arena);
    }
}

/* Layers have a sliding window, or none, as Transformers' configuration classes decide. */
static void windows_are_read_per_layer(void)
{
#define LAYERS(rest)                                                                               \
    "'hidden_size': 8, 'intermediate_size': 16, 'num_hidden_layers': 6, "                          \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'vocab_size': 9" rest "}"
#define S "'sliding_attention'"
#define F "'full_attention'"
    static const struct {
        const char *label, *text, *ignore, *layers; /* w: a window, f: full */
        int64_t window;
    } files[] = {
        /* label, text, ignore, layers, window */
        {"by default", "{'model_type': 'mistral', " LAYERS(""), NULL, "wwwwww", 4096},
        {"given", "{'model_type': 'mistral', " LAYERS(", 'sliding_window': 7"), NULL, "wwwwww", 7},
        {"null", "{'model_type': 'mistral', " LAYERS(", 'sliding_window': null"), NULL, "ffffff",
         0},
        {"ignored", "{'model_type': 'mistral', " LAYERS(""), "sliding_window", "ffffff", 0},
        {"switch off", "{'model_type': 'qwen2', " LAYERS(", 'sliding_window': 7"), NULL, "ffffff",
         0},
        {"switch on, 28 full layers",
         "{'model_type': 'qwen2', " LAYERS(", 'use_sliding_window': true"), NULL, "ffffff", 0},
        {"from a layer on",
         "{'model_type': 'qwen3', 'head_dim': 2, " LAYERS(
             ", 'use_sliding_window': true, 'sliding_window': 7, 'max_window_layers': 2"),
         NULL, "ffwwww", 7},
        {"every third is full",
         "{'model_type': 'mistral', " LAYERS(", 'layer_types': [" S "," S "," F "," S "," S "," F
                                             "]"),
         NULL, "wwfwwf", 4096},
        {"a list of windows later",
         "{'model_type': 'mistral', " LAYERS(", 'layer_types': [" F "," F "," F "," S "," F "," S
                                             "]"),
         NULL, "fffwfw", 4096},
        {"a list that begins late",
         "{'model_type': 'mistral', " LAYERS(", 'layer_types': [" F "," F "," F "," S "," S "," F
                                             "]"),
         NULL, "fffwwf", 4096},
        {"every second of gemma2",
         "{'model_type': 'gemma2', 'attn_logit_softcapping': null, 'final_logit_softcapping': "
         "null, " LAYERS(", 'sliding_window': 7"),
         NULL, "wfwfwf", 7},
        {"a pattern",
         "{'model_type': 'gemma3_text', " LAYERS(
             ", 'sliding_window': 7, 'sliding_window_pattern': 3"),
         NULL, "wwfwwf", 7},
        {"a list before a pattern",
         "{'model_type': 'olmo3', " LAYERS(", 'layer_types': [" S "," F "," S "," F "," S "," F
                                           "]"),
         NULL, "wfwfwf", 4096},
        {"none by default", "{'model_type': 'phi3', " LAYERS(""), NULL, "ffffff", 0},
        {"none in a list",
         "{'model_type': 'exaone4', " LAYERS(", 'layer_types': [" F "," F "," F "," F "," F "," F
                                             "]"),
         NULL, "ffffff", 0},
        {"all full",
         "{'model_type': 'mistral', " LAYERS(", 'layer_types': [" F "," F "," F "," F "," F "," F
                                             "]"),
         NULL, "ffffff", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct arena arena = {0};
        struct transformer t;
        enum status status =
            parse_config(&t, &arena, "c.json", files[i].text, files[i].ignore, NULL);
        CHECK_INT(files[i].label, status, STATUS_OK);
        for (size_t l = 0; files[i].layers[l] != '\0'; l++)
            CHECK_INT(files[i].label, transformer_layer_window(&t, (int64_t)l),
                      files[i].layers[l] == 'w' ? files[i].window : 0);
        arena_release(&arena);
    }
}

static void layers_that_rotate_are_read(void)
{
    static const struct {
        const char *label, *text, *layers; /* r: rotates, n: does not; NULL: message */
        const char *message;
    } files[] = {
        {"all", "{'model_type': 'llama', " LAYERS(""), "rrrrrr", NULL},
        {"every fourth by default", "{'model_type': 'smollm3', " LAYERS(""), "rrrnrr", NULL},
        {"an interval", "{'model_type': 'smollm3', " LAYERS(", 'no_rope_layer_interval': 3"),
         "rrnrrn", NULL},
        {"a list before an interval",
         "{'model_type': 'smollm3', " LAYERS(
             ", 'no_rope_layer_interval': 3, 'no_rope_layers': [1, 0, 1, 0, 1, 0]"),
         "rnrnrn", NULL},
        {"a list without a 0",
         "{'model_type': 'smollm3', " LAYERS(", 'no_rope_layers': [1, 1, 1, 1, 1, 1]"), "rrrrrr",
         NULL},
        {"a list without a period",
         "{'model_type': 'smollm3', " LAYERS(", 'no_rope_layers': [1, 1, 0, 1, 0, 1]"), NULL,
         "layer 4 does not rotate: modelled is every N-th layer"},
        {"a short list", "{'model_type': 'smollm3', " LAYERS(", 'no_rope_layers': [1, 1, 0]"), NULL,
         "no_rope_layers: it lists 3 layers, and the model has 6"},
        {"windows where nothing rotates",
         "{'model_type': 'smollm3', " LAYERS(
             ", 'use_sliding_window': true, 'sliding_window': 7, 'max_window_layers': 0"),
         NULL, "sliding_window: windows in the layers that do not rotate"},
        {"layers with windows", "{'model_type': 'exaone4', " LAYERS(""), "rrrnrr", NULL},
        {"layers with windows, by a word",
         "{'model_type': 'exaone4', " LAYERS(", 'sliding_window_pattern': 'LG'"), "rnrnrn", NULL},
        {"no window at all", "{'model_type': 'exaone4', " LAYERS(", 'sliding_window': null"),
         "rrrrrr", NULL},
        {"a window that no layer has",
         "{'model_type': 'exaone4', " LAYERS(", 'layer_types': [" F "," F "," F "," F "," F "," F
                                             "]"),
         "nnnnnn", NULL},
        {"windows from a layer on",
         "{'model_type': 'exaone4', " LAYERS(", 'layer_types': [" F "," F "," F "," S "," S "," S
                                             "]"),
         NULL, "layer 0 sees all keys and does not rotate: modelled is every N-th layer"},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct arena arena = {0};
        struct transformer t;
        struct diag diag = {0};
        enum status status = parse_config(&t, &arena, "c.json", files[i].text, NULL, &diag);
        CHECK_INT(files[i].label, status, files[i].layers != NULL ? STATUS_OK : STATUS_BAD_INPUT);
        for (size_t l = 0; files[i].layers != NULL && files[i].layers[l] != '\0'; l++)
            CHECK_INT(files[i].label, transformer_layer_rotates(&t, (int64_t)l),
                      files[i].layers[l] == 'r');
        CHECK(files[i].label,
              files[i].message == NULL ||
                  (diag.text != NULL && strstr(diag.text, files[i].message) != NULL));
        diag_release(&diag);
        arena_release(&arena);
    }
}

static void version_5_gives_the_base_of_the_angles(void)
{
    struct arena arena = {0};
    struct transformer t;
    for (size_t i = 0; i < ARRAY_LEN(right); i++) {
        if (strstr(right[i].text, "rope_parameters") == NULL)
            continue;
        CHECK_INT(right[i].label,
                  parse_config(&t, &arena, "c.json", right[i].text, right[i].ignore, NULL),
                  STATUS_OK);
        CHECK_CLOSE(right[i].label, t.rope_theta, 5e5, 0);
    }
    arena_release(&arena);
}

static const struct {
    const char *label, *text, *ignore, *message;
} wrong[] = {
    {"family", "{'model_type': 'blenderbot'}", NULL,
     "c.json:1: error: model_type: family 'blenderbot' is not modelled: llama, mistral, ministral, "
     "qwen2, qwen3, gpt2, phi3, gemma, gemma2, gemma3_text, olmo2, olmo3, nemotron, starcoder2, "
     "seed_oss, "
     "granite, glm4, arcee, cohere2, exaone4, smollm3, qwen3_moe, mixtral, gpt_oss, llama4_text, "
     "minimax_m2, glm4_moe, deepseek_v2, deepseek_v3 and kimi_k2 are\n"},
    {"misspelt family", "{'model_type': 'lama'}", NULL,
     "c.json:1: error: model_type: family 'lama' is not modelled: llama, mistral, ministral, "
     "qwen2, qwen3, gpt2, phi3, gemma, gemma2, gemma3_text, olmo2, olmo3, nemotron, starcoder2, "
     "seed_oss, "
     "granite, glm4, arcee, cohere2, exaone4, smollm3, qwen3_moe, mixtral, gpt_oss, llama4_text, "
     "minimax_m2, glm4_moe, deepseek_v2, deepseek_v3 and kimi_k2 are; did you mean 'llama'?\n"},
    {"experts by family", "{'model_type': 'qwen2_moe'}", NULL,
     "c.json:1: error: model_type: 'qwen2_moe' has parts that are not modelled: experts (those "
     "of some other families are read); --as-dense takes the nearest dense "
     "model\n"},
    {"unknown experts", "{'model_type': 'some_moe'}", NULL,
     "c.json:1: error: model_type: 'some_moe' is a mixture of experts, which is not modelled: "
     "only dense models are\n"},
    {"experts by key", "{" LLAMA ",\n'num_local_experts': 8}", NULL,
     "c.json:2: error: num_local_experts: a mixture of experts is not modelled: only dense models "
     "are\n"},
    {"experts cannot be ignored", "{" LLAMA ", 'num_experts': 8}", "num_experts",
     "c.json:1: error: 'num_experts' cannot be ignored: the work depends on it\n"},
    {"misspelt key", "{" LLAMA ", 'head_dims': 2}", NULL,
     "c.json:1: error: head_dims: unknown key of a 'llama' model: did you mean 'head_dim'? "
     "(--ignore head_dims leaves it unread)\n"},
    {"unknown key", "{" LLAMA ", 'frobnicate': 2}", NULL,
     "c.json:1: error: frobnicate: unknown key of a 'llama' model; if it does not change the work "
     "of a training step, --ignore frobnicate leaves it unread\n"},
    {"a key of another family", "{" GPT2 ", 'hidden_act': 'silu'}", NULL,
     "c.json:1: error: hidden_act: unknown key of a 'gpt2' model; if it does not change the work "
     "of a training step, --ignore hidden_act leaves it unread\n"},
    {"ignored what is needed", "{" LLAMA "}", "vocab_size",
     "c.json:1: error: 'vocab_size' cannot be ignored: the work depends on it\n"},
    {"ignored what is not there", "{" LLAMA "}", "frobnicate",
     "c.json:1: error: no key 'frobnicate' to ignore\n"},
    {"window of Llama", "{" LLAMA ", 'sliding_window': 4}", NULL,
     "c.json:1: error: sliding_window: Transformers' Llama has no windows: remove it (or --ignore "
     "sliding_window) to "
     "model full attention, or write \"model_type\": \"mistral\" for windows in all layers\n"},
    {"a window of nothing", "{" MISTRAL ", 'num_key_value_heads': 2, 'sliding_window': 0}", NULL,
     "c.json:1: error: sliding_window: 0 is out of range: expected 1 to 1099511627776\n"},
    {"a sliding layer without a window",
     "{'model_type': 'qwen2', " QWEN ", 'layer_types': ['sliding_attention']}", NULL,
     "c.json:1: error: layer_types: has layers of 'sliding_attention', and no window is set: give "
     "sliding_window and \"use_sliding_window\": true, or --ignore layer_types for full "
     "attention\n"},
    {"a layer of another kind",
     "{'model_type': 'qwen2', " QWEN ", 'layer_types': ['linear_attention']}", NULL,
     "c.json:1: error: layer_types[0]: layers of 'linear_attention' are not modelled: "
     "full_attention and "
     "sliding_attention are; --ignore layer_types models the layers as without this key\n"},
    {"too many layers",
     "{'model_type': 'qwen2', " QWEN ", 'layer_types': ['full_attention', 'full_attention']}", NULL,
     "c.json:1: error: layer_types: it lists 2 layers, and the model has 1\n"},
    {"layers without a period",
     "{'model_type': 'mistral', 'hidden_size': 8, 'intermediate_size': 16, 'num_hidden_layers': 4, "
     "'num_attention_heads': 4, 'vocab_size': 9, 'num_key_value_heads': 2, 'layer_types': "
     "['sliding_attention', 'full_attention', 'full_attention', 'sliding_attention']}",
     NULL,
     "c.json:1: error: layer_types: this order of layers is not modelled: from some layer on all "
     "must have a window, or "
     "all but every N-th; --ignore layer_types models the layers as without this key\n"},
    {"scaled angles", "{" LLAMA ", 'rope_scaling': {'type': 'dynamic', 'factor': 2}}", NULL,
     "c.json:1: error: rope_scaling: RoPE scaling of type 'dynamic' is not known: llama3, yarn, "
     "linear, longrope and su change angles and no work; --ignore rope_scaling models the step "
     "without "
     "it\n"},
    {"activation", "{" LLAMA ", 'hidden_act': 'gelu'}", NULL,
     "c.json:1: error: hidden_act: activation 'gelu' is not modelled in a gated FFN: silu and "
     "gelu_pytorch_tanh are\n"},
    {"activation of gpt2", "{" GPT2 ", 'activation_function': 'relu'}", NULL,
     "c.json:1: error: activation_function: activation 'relu' is not modelled: gelu_new and "
     "gelu_pytorch_tanh are\n"},
    {"attention by layer", "{" GPT2 ", 'scale_attn_by_inverse_layer_idx': true}", NULL,
     "c.json:1: error: scale_attn_by_inverse_layer_idx: attention scaled by layer, which is not "
     "modelled: only false is\n"},
    {"quantised", "{" LLAMA ", 'quantization_config': {'bits': 4}}", NULL,
     "c.json:1: error: quantization_config: not modelled: remove it, or --ignore "
     "quantization_config models the step without it\n"},
    {"a word that is no pattern",
     "{'model_type': 'exaone4', " QWEN ", 'sliding_window_pattern': 'LGL'}", NULL,
     "c.json:1: error: sliding_window_pattern: 'LGL' is not modelled: some letters L and a last G "
     "are\n"},
    {"caps by default", "{'model_type': 'gemma2', " QWEN "}", NULL,
     "c.json:1: error: model_type: 'gemma2' has parts that are not modelled: soft-caps (a tanh of "
     "attention scores, and one of logits). --as-dense takes the nearest dense model, of 2.51e-05 "
     "B parameters, as a proxy: layers=1,hidden=8,heads=4,kv_heads=2,head_dim=256,ffn=16,vocab=9,"
     "attention_window=4096,full_attention_every=2,activation=geglu,norm_place=both,tied_head=true,"
     "norm_eps=1e-06,proxy=soft-caps\n"},
    {"later tokens", "{'model_type': 'gemma3_text', " QWEN ", 'use_bidirectional_attention': true}",
     NULL,
     "c.json:1: error: use_bidirectional_attention: attention to later tokens, which is not "
     "modelled: only false is\n"},
    {"a hybrid", "{'model_type': 'nemotron_h', " QWEN "}", NULL,
     "c.json:1: error: model_type: 'nemotron_h' has parts that are not modelled: linear-attention "
     "(layers of which the work does not grow with the square of the length); no dense model is "
     "near it\n"},
    {"heads that do not divide",
     "{'model_type': 'llama', 'hidden_size': 10, 'intermediate_size': 16, 'num_hidden_layers': 1, "
     "'num_attention_heads': 4, 'vocab_size': 9}",
     NULL,
     "c.json:1: error: hidden_size: 10 does not divide by 4 heads, and there is no head_dim: 12 "
     "would do\n"},
    {"groups that do not divide", "{" LLAMA ", 'num_key_value_heads': 3}", NULL,
     "c.json: error: kv_heads 3 does not divide heads 4: the nearest that do are 2 and 4\n"},
};

static void what_is_not_modelled_is_named(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct transformer t;
        CHECK_INT(wrong[i].label,
                  parse_config(&t, &arena, "c.json", wrong[i].text, wrong[i].ignore, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text, wrong[i].message);
        diag_release(&diag);
        arena_release(&arena);
    }
}

static const struct {
    const char *label, *text;
} hostile[] = {
    {"empty", ""},
    {"not an object", "[]"},
    {"cut", "{'model_type': 'llama', 'hidden_si"},
    {"no family", "{'hidden_size': 8}"},
    {"family of another type", "{'model_type': 8}"},
    {"zero", "{'model_type': 'qwen3', " QWEN ", 'head_dim': 0}"},
    {"negative", "{'model_type': 'qwen3', " QWEN ", 'head_dim': -2}"},
    {"overflow", "{'model_type': 'qwen3', " QWEN ", 'head_dim': 99999999999999999999}"},
    {"fraction", "{'model_type': 'qwen3', " QWEN ", 'head_dim': 2.5}"},
    {"text for a number", "{'model_type': 'qwen3', " QWEN ", 'head_dim': '2'}"},
    {"odd head", "{'model_type': 'qwen3', " QWEN ", 'head_dim': 3}"},
    {"no head_dim", "{'model_type': 'qwen3', " QWEN "}"},
    {"no groups", "{" MISTRAL ", 'sliding_window': null}"},
    {"a window of another type", "{" MISTRAL ", 'num_key_value_heads': 2, 'sliding_window': '4'}"},
    {"twice", "{" LLAMA ", 'vocab_size': 10}"},
    {"scaling of another type", "{" LLAMA ", 'rope_scaling': 2}"},
    {"scaling without a type", "{" LLAMA ", 'rope_scaling': {'factor': 2}}"},
    {"layers of another type", "{" LLAMA ", 'layer_types': [1]}"},
    {"tied of another type", "{" LLAMA ", 'tie_word_embeddings': 1}"},
};

static void hostile_files_get_one_message(void)
{
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct transformer t;
        CHECK_INT(hostile[i].label,
                  parse_config(&t, &arena, "c.json", hostile[i].text, NULL, &diag),
                  STATUS_BAD_INPUT);
        CHECK_INT(hostile[i].label, (int64_t)diag.error_count, 1);
        diag_release(&diag);
        arena_release(&arena);
    }
}

static const struct check_case cases[] = {
    {"public models have the published parameters", public_models_have_the_published_parameters},
    {"proxies have the published parameters", proxies_have_the_published_parameters},
    {"proxies keep what a dense model can have", proxies_keep_what_a_dense_model_can_have},
    {"scaled angles are read with a note", scaled_angles_are_read_with_a_note},
    {"families differ in what they leave out", families_differ_in_what_they_leave_out},
    {"small configs are read", small_configs_are_read},
    {"a config names its model", a_config_names_its_model},
    {"version 5 gives the base of the angles", version_5_gives_the_base_of_the_angles},
    {"windows are read per layer", windows_are_read_per_layer},
    {"layers that rotate are read", layers_that_rotate_are_read},
    {"what is not modelled is named", what_is_not_modelled_is_named},
    {"hostile files get one message", hostile_files_get_one_message},
};

CHECK_MAIN("hf_config", cases)
