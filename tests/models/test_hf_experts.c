/* tests/models/test_hf_experts.c: config.json files of models with experts are read with the published parameters;
 * forms that are not modelled are refused. */
#include "models/hf_config.h"
#include "models/mfu.h"
#include "models/transformer.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

/* Parameters that sizes give exactly, all and those that a token passes, and flops of a training
 * step per token at 4K tokens. The publishers' counts of Qwen3, DeepSeek-V3 and GLM-4.5-Air are
 * exact, and equal to these. The model card of gpt-oss has 116.8 and 20.9 billion, of which 5.1 and
 * 3.6 billion are active without the input embedding (579,133,440 here). Those of Llama 4 are the
 * tensors of Transformers' Llama4ForCausalLM. Flops: 6 times the active parameters without the
 * input embedding, plus 3 s heads (dim of q + dim of v) layers; Megatron-Bridge's performance
 * tables imply 23.02 (Qwen3-30B), 148.0 (Qwen3-235B), 249.7 (DeepSeek-V3), 204.5 (Kimi K2) and 32.6
 * (gpt-oss-120b) GFLOP a token. */
static const struct {
    const char *name;
    int64_t parameters, active;
    double gflop_per_token;
} models[] = {
    {"qwen3-30b-a3b", INT64_C(30532122624), INT64_C(3353032704), 23.08},
    {"qwen3-235b-a22b", INT64_C(235093634560), INT64_C(22190763520), 148.3},
    {"mixtral-8x7b", INT64_C(46702792704), INT64_C(12879925248), 0},
    {"gpt-oss-20b", INT64_C(20914757184), INT64_C(4187440704), 0},
    {"gpt-oss-120b", INT64_C(116829156672), INT64_C(5711982912), 32.71},
    {"llama4-scout", INT64_C(107769861120), INT64_C(17172894720), 0},
    {"llama4-maverick", INT64_C(400711848960), INT64_C(17184691200), 0},
    {"deepseek-v3", INT64_C(671026419200), INT64_C(37552282624), 250.5},
    {"kimi-k2", INT64_C(1026408232448), INT64_C(32861477888), 205.5},
    {"deepseek-v2", INT64_C(235741434880), INT64_C(21375800320), 0},
    {"glm-4.5", INT64_C(352797829024), INT64_C(33632251904), 0},
    {"glm-4.5-air", INT64_C(106852251264), INT64_C(13424123904), 0},
};

static struct transformer load_model(struct arena *arena, const char *name)
{
    struct transformer t;
    struct diag diag = {0};
    CHECK_INT(name, transformer_load(&t, arena, name, NULL, &diag), STATUS_OK);
    CHECK_TEXT(name, diag.text != NULL ? diag.text : "", "");
    diag_release(&diag);
    return t;
}

static void presets_have_the_published_parameters(void)
{
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct arena arena = {0};
        const struct transformer t = load_model(&arena, models[i].name);
        CHECK_INT(models[i].name, transformer_parameters(&t), models[i].parameters);
        CHECK_INT(models[i].name, transformer_active_parameters(&t), models[i].active);
        arena_release(&arena);
    }
}

static void flops_are_those_of_active_parameters(void)
{
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct arena arena = {0};
        const struct transformer t = load_model(&arena, models[i].name);
        const double gflop_per_token =
            mfu_model_flops(MFU_LONGHAUL, &t, 4096, 1, false) / 4096 / 1e9;
        if (models[i].gflop_per_token > 0)
            CHECK_CLOSE(models[i].name, gflop_per_token, models[i].gflop_per_token, 5e-4);
        const int64_t v = t.kv_latent > 0 ? t.v_dim : t.head_dim;
        const double counted =
            6 * (double)(transformer_active_parameters(&t) - t.vocab * t.hidden) +
            3.0 * 4096 * (double)(t.heads * (t.head_dim + v) * t.layers);
        if (t.attention_window == 0) /* within 5e-4: `counted` has norms and biases, too */
            CHECK_CLOSE(models[i].name, gflop_per_token, counted / 1e9, 5e-4);
        arena_release(&arena);
    }
    struct arena arena = {0};
    const struct transformer t = load_model(&arena, "qwen3-30b-a3b");
    const double s = 1 << 20;
    CHECK_CLOSE("Qwen3-30B, 1M", mfu_model_flops(MFU_LONGHAUL, &t, 1 << 20, 1, false) / s / 1e9,
                1255, 1e-3);
    CHECK_CLOSE("attention",
                3 * 48 * transformer_layer_attention_flops(&t, 1 << 20, true) / s / 1e9,
                0.985 * 1255, 1e-3);
    arena_release(&arena);
}

static void a_config_is_its_preset(void)
{
    static const struct {
        const char *preset, *config, *note;
    } pairs[] = {
        {"qwen3-30b-a3b", "data/configs/qwen3-30b-a3b.json", ""},
        {"mixtral-8x7b", "data/configs/mixtral-8x7b.json", ""},
        {"gpt-oss-120b", "data/configs/gpt-oss-120b.json",
         "rope_scaling: RoPE scaling of type 'yarn'"},
        {"deepseek-v3", "data/configs/deepseek-v3.json", "num_nextn_predict_layers: the 1 layers"},
        {"kimi-k2", "data/configs/kimi-k2.json", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct transformer config;
        struct text a = {0}, b = {0};
        const struct transformer preset = load_model(&arena, pairs[i].preset);
        CHECK_INT(pairs[i].preset,
                  transformer_load(&config, &arena, check_path(pairs[i].config), NULL, &diag),
                  STATUS_OK);
        CHECK(pairs[i].preset, (diag.text == NULL) == (pairs[i].note[0] == '\0'));
        CHECK(pairs[i].preset, diag.text == NULL || strstr(diag.text, pairs[i].note) != NULL);
        transformer_put_line(&a, &preset, true);
        transformer_put_line(&b, &config, true);
        CHECK_TEXT(pairs[i].preset, b.data, a.data);
        text_release(&a);
        text_release(&b);
        diag_release(&diag);
        arena_release(&arena);
    }
}

/* Each family has names of its own for the keys, and defaults for keys that its files leave out. */
static void families_are_read_by_their_keys(void)
{
#define SIZES                                                                                      \
    "\"hidden_size\": 64, \"num_attention_heads\": 8, \"num_hidden_layers\": 8, \"vocab_size\": "  \
    "99, "
    static const struct {
        const char *label, *text, *line;
    } rows[] = {
        {"Llama 4",
         "{\"model_type\": \"llama4\", \"vision_config\": {}, \"text_config\": {\"model_type\": "
         "\"llama4_text\", " SIZES
         "\"num_local_experts\": 16, \"intermediate_size\": 32, \"intermediate_size_mlp\": 128, "
         "\"interleave_moe_layer_step\": 2, \"use_qk_norm\": true, \"moe_layers\": [1, 3, 5, 7]}}",
         "layers=8,hidden=64,heads=8,head_dim=128,ffn=128,vocab=99,attention_window=8192,"
         "full_attention_every=4,window_chunks=true,unrotated_every=4,qk_norm=true,"
         "qk_norm_bare=true,rope_theta=500000,experts=16,experts_per_token=1,expert_ffn=32,"
         "shared_ffn=32,experts_every=2,router=sigmoid,router_on_input=true"},
        {"MiniMax-M2",
         "{\"model_type\": \"minimax_m2\", " SIZES
         "\"num_local_experts\": 16, \"intermediate_size\": 32, \"num_key_value_heads\": 2, "
         "\"num_experts_per_tok\": 4, \"use_routing_bias\": true, \"scoring_func\": \"sigmoid\"}",
         "layers=8,hidden=64,heads=8,kv_heads=2,head_dim=128,ffn=32,vocab=99,qk_norm=true,"
         "qk_norm_wide=true,rope_theta=5000000,norm_eps=1e-06,experts=16,experts_per_token=4,"
         "expert_ffn=32,router=sigmoid,router_norm=true,router_correction=true"},
        {"GLM-4.5",
         "{\"model_type\": \"glm4_moe\", " SIZES
         "\"n_routed_experts\": 16, \"intermediate_size\": 128, \"moe_intermediate_size\": 32, "
         "\"num_key_value_heads\": 2, \"attention_bias\": true, \"use_qk_norm\": true, "
         "\"n_shared_experts\": 1, \"routed_scaling_factor\": 2.5, \"first_k_dense_replace\": 3, "
         "\"partial_rotary_factor\": 1}",
         "layers=8,hidden=64,heads=8,kv_heads=2,ffn=128,vocab=99,bias_qkv=true,qk_norm=true,"
         "experts=16,experts_per_token=8,expert_ffn=32,shared_ffn=32,dense_layers=3,"
         "router=sigmoid,router_norm=true,router_scale=2.5,router_correction=true"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena = {0};
        struct transformer t;
        struct text line = {0}, path = {0};
        FILE *file = tmpfile(); /* read through its descriptor, as a name with a slash */
        CHECK(rows[i].label, file != NULL && fputs(rows[i].text, file) >= 0 && fflush(file) == 0);
        text_printf(&path, "/dev/fd/%d", fileno(file));
        CHECK_INT(rows[i].label, transformer_load(&t, &arena, path.data, NULL, NULL), STATUS_OK);
        transformer_put_line(&line, &t, true);
        CHECK_TEXT(rows[i].label, line.data, rows[i].line);
        CHECK(rows[i].label, t.unmodelled_parts_text == NULL);
        (void)fclose(file);
        text_release(&line);
        text_release(&path);
        arena_release(&arena);
    }
}

/* Checks that a file of the family with SIZES and `keys` is read (message NULL), or refused with a
 * message that contains `message`. */
static void check_keys(const char *family, const char *keys, const char *message)
{
    struct text text = {0};
    struct transformer t;
    struct arena arena = {0};
    struct diag diag = {0};
    text_printf(&text, "{\"model_type\": \"%s\", " SIZES "%s}", family, keys);
    const enum status status =
        hf_config_parse(&t, &arena, "config.json", text.data, text.size, NULL, &diag);
    CHECK_INT(keys, status, message == NULL ? STATUS_OK : STATUS_BAD_INPUT);
    CHECK(keys, message == NULL || (diag.text != NULL && strstr(diag.text, message) != NULL));
    text_release(&text);
    diag_release(&diag);
    arena_release(&arena);
}

/* Some properties are modelled in one form only, and refused in another: Llama 4's layers with
 * chunks rotate, and gpt-oss's clamped activation has the published numbers. */
static void unmodelled_expert_forms_are_refused(void)
{
#define LLAMA4_KEYS                                                                                \
    "\"num_local_experts\": 16, \"intermediate_size\": 32, \"intermediate_size_mlp\": 128, "
#define GPT_OSS_KEYS "\"num_local_experts\": 16, \"intermediate_size\": 32, "
    static const struct {
        const char *family, *keys, *message;
    } rows[] = {
        {"llama4_text", LLAMA4_KEYS "\"no_rope_layers\": [1, 1, 1, 0, 1, 1, 1, 0]", NULL},
        {"llama4_text", LLAMA4_KEYS "\"no_rope_layers\": [1, 0, 1, 0, 1, 0, 1, 0]", NULL},
        {"llama4_text", LLAMA4_KEYS "\"no_rope_layers\": [1, 1, 1, 1, 1, 1, 1, 1]", NULL},
        {"llama4_text", LLAMA4_KEYS "\"no_rope_layers\": [0, 1, 1, 1, 1, 1, 1, 1]",
         "layer 0 does not rotate"},
        {"gpt_oss", GPT_OSS_KEYS "\"swiglu_limit\": 7.0, \"swiglu_alpha\": 1.702", NULL},
        {"gpt_oss", GPT_OSS_KEYS "\"swiglu_limit\": 10",
         "10 is not modelled: 7 is; --ignore swiglu_limit"},
        {"gpt_oss", GPT_OSS_KEYS "\"swiglu_alpha\": 1",
         "1 is not modelled: 1.702 is; --ignore swiglu_alpha"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_keys(rows[i].family, rows[i].keys, rows[i].message);
}

static void wrong_sizes_get_a_message(void)
{
    static const char base[] = "layers=2,hidden=64,heads=4,ffn=64,vocab=99";
    static const struct {
        const char *fields, *message;
    } wrong[] = {
        {"experts=8", "experts_per_token is 0: it must be from 1 to experts, 8"},
        {"experts_per_token=2", "experts_per_token is above 0 and experts is 0"},
        {"experts=8,experts_per_token=2", "expert_ffn is 0: experts times expert_ffn"},
        {"experts=8,experts_per_token=9,expert_ffn=8", "it must be from 1 to experts, 8"},
        {"experts=8,experts_per_token=2,expert_ffn=8,activation=gelu", "experts have a gate"},
        {"experts=8,experts_per_token=2,expert_ffn=8,dense_layers=2", "no layer has experts"},
        {"experts=8,experts_per_token=2,expert_ffn=8,router_groups=3", "the first must divide"},
        {"experts=8,experts_per_token=2,expert_ffn=8,router_on_input=true", "only 1 is modelled"},
        {"window_chunks=true", "chunks need a size"},
        {"qk_norm_bare=true", "qk_norm=true and qk_norm_wide=false are needed"},
        {"unrotated_every=4,positions=none", "positions=rope and no latent attention"},
        {"v_dim=16", "v_dim is above 0 and kv_latent is 0"},
        {"kv_latent=16,v_dim=16,rope_dim=16", "rope_dim is 16 and v_dim is 16"},
        {"kv_latent=16,v_dim=16,rope_dim=8,kv_heads=2", "kv_heads must equal heads"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct transformer t;
        struct text line = {0};
        text_printf(&line, "%s,%s", base, wrong[i].fields);
        CHECK_INT(wrong[i].fields, transformer_load(&t, &arena, line.data, NULL, &diag),
                  STATUS_BAD_INPUT);
        CHECK(wrong[i].fields, diag.text != NULL && strstr(diag.text, wrong[i].message) != NULL);
        text_release(&line);
        diag_release(&diag);
        arena_release(&arena);
    }
}

static void a_dense_proxy_has_no_experts_left(void)
{
    struct arena arena = {0};
    struct transformer t;
    CHECK_INT("load", transformer_load_dense(&t, &arena, "deepseek-v3", NULL, NULL), STATUS_OK);
    CHECK_TEXT("name", t.name, "deepseek-v3 (dense proxy)");
    CHECK_TEXT("proxy", t.proxy_lacks, "experts+latent-attention");
    struct text line = {0};
    transformer_put_line(&line, &t, true);
    CHECK_TEXT("line", line.data,
               "layers=61,hidden=7168,heads=128,kv_heads=1,head_dim=128,ffn=18432,vocab=129280,"
               "max_positions=163840,norm_eps=1e-06,proxy=experts+latent-attention");
    text_release(&line);
    CHECK_CLOSE("as of its config.json", (double)transformer_parameters(&t), 40.47e9, 1e-3);
    arena_release(&arena);
}

static const struct check_case cases[] = {
    {"presets have the published parameters", presets_have_the_published_parameters},
    {"flops are those of active parameters", flops_are_those_of_active_parameters},
    {"a config is its preset", a_config_is_its_preset},
    {"families are read by their keys", families_are_read_by_their_keys},
    {"other forms are refused", unmodelled_expert_forms_are_refused},
    {"wrong sizes get a message", wrong_sizes_get_a_message},
    {"a dense proxy has no experts left", a_dense_proxy_has_no_experts_left},
};

CHECK_MAIN("hf_experts", cases)
