#include "models/hf_proxy.h"

#include "models/hf_keys.h"
#include "models/transformer_fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    unsigned part;
    const char *name, *what;
} parts[] = {
    {PART_EXPERTS, "experts", "which rank has which expert, and the all-to-alls between them"},
    {PART_LATENT, "latent-attention", "keys and values that are made of a narrow common vector"},
    {PART_LINEAR, "linear-attention",
     "layers of which the work does not grow with the square of the length"},
    {PART_ALIBI, "ALiBi", "a bias on attention scores"},
    {PART_PARALLEL, "parallel-layers", "attention and feed-forward part side by side"},
    {PART_SOFTCAP, "soft-caps", "a tanh of attention scores, and one of logits"},
    {PART_NOPE, "layers-without-rotary-positions", "some layers rotate nothing"},
    {PART_VISION, "other-inputs", "encoders of pictures or sound before the text model"},
};

/* Transformers' configuration classes: what each has beside sizes. */
static const struct family {
    const char *model_type;
    unsigned parts;
    enum activation activation;
    enum norm norm;
    enum positions positions;
    bool tied, bias_qkv, bias_o, bias_ffn, qk_norm;
} families[] = {
    /* clang-format off */
    {"mixtral",      PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, false},
    {"qwen2_moe",    PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, true,  false, false, false},
    {"qwen3_moe",    PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, true},
    {"olmoe",        PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, true},
    {"granitemoe",   PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, true,  false, false, false, false},
    {"phimoe",       PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, true,  true,  false, false},
    {"gpt_oss",      PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, true,  true,  true,  false},
    {"llama4",       PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, false},
    {"llama4_text",  PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, false},
    {"glm4_moe",     PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, true,  false, false, true},
    {"dbrx",         PART_EXPERTS,               ACTIVATION_SWIGLU, NORM_LAYERNORM, POSITIONS_ROPE, false, false, false, false, false},
    {"deepseek_v2",  PART_EXPERTS | PART_LATENT, ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, false},
    {"deepseek_v3",  PART_EXPERTS | PART_LATENT, ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, false},
    {"kimi_k2",      PART_EXPERTS | PART_LATENT, ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, false},
    {"minicpm3",     PART_LATENT,                ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, true,  false, false, false, false},
    {"qwen3_next",   PART_EXPERTS | PART_LINEAR, ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, true},
    {"jamba",        PART_EXPERTS | PART_LINEAR, ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"minimax",      PART_EXPERTS | PART_LINEAR, ACTIVATION_SWIGLU, NORM_RMSNORM, POSITIONS_ROPE, false, false, false, false, false},
    {"bloom",        PART_ALIBI,                 ACTIVATION_GELU,   NORM_LAYERNORM, POSITIONS_NONE, true, true, true,  true,  false},
    {"mpt",          PART_ALIBI,                 ACTIVATION_GELU,   NORM_LAYERNORM, POSITIONS_NONE, true, false, false, false, false},
    {"falcon",       PART_PARALLEL,              ACTIVATION_GELU,   NORM_LAYERNORM, POSITIONS_ROPE, true, false, false, false, false},
    {"gpt_neox",     PART_PARALLEL,              ACTIVATION_GELU,   NORM_LAYERNORM, POSITIONS_ROPE, false, true, true, true,  false},
    {"gptj",         PART_PARALLEL,              ACTIVATION_GELU,   NORM_LAYERNORM, POSITIONS_ROPE, false, false, false, true, false},
    {"phi",          PART_PARALLEL,              ACTIVATION_GELU,   NORM_LAYERNORM, POSITIONS_ROPE, false, true, true, true,  false},
    {"cohere",       PART_PARALLEL,              ACTIVATION_SWIGLU, NORM_LAYERNORM, POSITIONS_ROPE, true, false, false, false, false},
    /* With few layers of attention, or none, there is no nearest dense model. */
    {"nemotron_h",   PART_LINEAR,                ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"bamba",        PART_LINEAR,                ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"zamba2",       PART_LINEAR,                ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"falcon_h1",    PART_LINEAR,                ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"recurrent_gemma", PART_LINEAR,             ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"mamba",        PART_LINEAR,                ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"mamba2",       PART_LINEAR,                ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"falcon_mamba", PART_LINEAR,                ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    {"rwkv",         PART_LINEAR,                ACTIVATION_COUNT,  NORM_RMSNORM, POSITIONS_NONE, false, false, false, false, false},
    /* clang-format on */
};

static const struct family *find_family(const char *model_type)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (strcmp(families[i].model_type, model_type) == 0)
            return &families[i];
    return NULL;
}

bool hf_proxy_has(const char *model_type)
{
    return find_family(model_type) != NULL;
}

/* ---- sizes ---- */

struct reader {
    struct json_node root; /* or its text_config */
    struct diag *diag;
    enum status status; /* the first fault */
};

/* Returns the whole number at the first key of "a|b.c" that is present. If none is, returns `otherwise`, or, if that
 * is -1, reports that a key is required. */
static int64_t size_of(struct reader *r, const char *keys, int64_t otherwise)
{
    char key[64];
    int64_t value = otherwise;
    const char *first = keys;
    while (*keys != '\0' && r->status == STATUS_OK) {
        struct json_node holder = r->root;
        size_t size = strcspn(keys, ".|");
        memcpy(key, keys, size);
        key[size] = '\0';
        keys += size;
        if (*keys == '.') {
            holder = json_find(holder, key);
            size = strcspn(++keys, "|");
            memcpy(key, keys, size);
            key[size] = '\0';
            keys += size;
        }
        keys += *keys == '|';
        if (holder.value != NULL && json_find(holder, key).value != NULL) {
            r->status = json_get_i64(holder, key, 0, 1 << 26, &value, r->diag);
            return value;
        }
    }
    if (otherwise < 0 && r->status == STATUS_OK) {
        size_t size = strcspn(first, "|");
        r->status = json_error(r->root, r->diag, "%.*s is missing", (int)size, first);
    }
    return value;
}

static bool switch_of(struct reader *r, const char *key, bool otherwise)
{
    bool value = otherwise;
    if (r->status == STATUS_OK && json_find(r->root, key).value != NULL)
        r->status = json_get_bool(r->root, key, &value, r->diag);
    return value;
}

/* Returns the feed-forward width that one token passes, on average over the layers. */
static int64_t active_width(struct reader *r, int64_t layers, int64_t whole)
{
    int64_t width = size_of(r, "moe_intermediate_size|ffn_config.ffn_hidden_size", whole);
    int64_t routed = size_of(r, "num_experts_per_tok|experts_per_token|ffn_config.moe_top_k", 1);
    int64_t shared = size_of(r, "shared_expert_intermediate_size|shared_intermediate_size",
                             size_of(r, "n_shared_experts", 0) * width);
    int64_t dense = size_of(r, "first_k_dense_replace", 0);
    int64_t period =
        size_of(r, "decoder_sparse_step|expert_layer_period|interleave_moe_layer_step", 1);
    int64_t dense_width = size_of(r, "intermediate_size_mlp", whole);
    int64_t sparse = period > 1 ? layers / period : layers - (dense < layers ? dense : layers);
    double sum = (double)sparse * (double)(routed * width + shared) +
                 (double)(layers - sparse) * (double)dense_width;
    int64_t active = layers > 0 ? (int64_t)(sum / (double)layers + 0.5) : 0;
    return (active + 63) / 64 * 64; /* as any published width */
}

/* Replaces latent attention by heads as wide as its values, with the number of K/V heads whose parameters come
 * nearest to the model's. */
static void fit_latent(struct reader *r, struct transformer *t)
{
    double h = (double)t->hidden, heads = (double)t->heads;
    double q = (double)size_of(r, "q_lora_rank", 0), kv = (double)size_of(r, "kv_lora_rank", -1);
    double nope = (double)size_of(r, "qk_nope_head_dim", -1);
    double rope = (double)size_of(r, "qk_rope_head_dim", -1);
    double v = (double)size_of(r, "v_head_dim", (int64_t)nope);
    double query = q > 0 ? h * q + q * heads * (nope + rope) : h * heads * (nope + rope);
    double latent = query + h * (kv + rope) + kv * heads * (nope + v) + heads * v * h;
    double nearest = -1;
    t->head_dim = (int64_t)v;
    for (int64_t n = 1; n <= t->heads && n <= 1 << 14 && v > 0; n++) {
        double distance = 2 * h * v * (heads + (double)n) - latent;
        distance = distance < 0 ? -distance : distance;
        if (t->heads % n == 0 && (nearest < 0 || distance < nearest)) {
            nearest = distance;
            t->kv_heads = n;
        }
    }
}

static void read_sizes(struct reader *r, const struct family *f, struct transformer *t)
{
    t->layers = size_of(r, "num_hidden_layers|n_layer|n_layers", -1);
    t->hidden = size_of(r, "hidden_size|n_embd|n_embed|d_model", -1);
    t->heads = size_of(r, "num_attention_heads|n_head|n_heads", -1);
    t->vocab = size_of(r, "vocab_size", -1);
    t->kv_heads = size_of(r, "num_key_value_heads|num_kv_heads|attn_config.kv_n_heads", t->heads);
    if (switch_of(r, "multi_query", false) && !switch_of(r, "new_decoder_architecture", false))
        t->kv_heads = 1;
    t->head_dim = size_of(r, "head_dim", t->heads > 0 ? t->hidden / t->heads : 0);
    int64_t whole = size_of(r, "intermediate_size|n_inner|ffn_hidden_size",
                            size_of(r, "expansion_ratio", 4) * t->hidden);
    t->ffn = (f->parts & PART_EXPERTS) != 0 ? active_width(r, t->layers, whole) : whole;
    if ((f->parts & PART_LATENT) != 0)
        fit_latent(r, t);
}

/* Returns the names of the missing parts: "experts+latent-attention". */
static const char *name_parts(struct arena *arena, unsigned missing)
{
    const char *names = "";
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if ((missing & parts[i].part) != 0)
            names =
                arena_printf(arena, "%s%s%s", names, names[0] != '\0' ? "+" : "", parts[i].name);
    return names;
}

void hf_proxy_name(struct transformer *t, struct arena *arena, const char *name, unsigned missing)
{
    t->proxy = name_parts(arena, missing);
    t->name = arena_printf(arena, "%s (dense proxy)", name);
    t->source = arena_printf(arena, "Hugging Face config (%s), without %s", name, t->proxy);
}

enum status hf_proxy_read(struct transformer *t, struct arena *arena, const char *name,
                          struct json_node root, const char *model_type, struct diag *diag)
{
    const struct family *f = find_family(model_type);
    struct json_node inner = json_find(root, "text_config");
    struct reader r = {.root = json_is_object(inner) ? inner : root, .diag = diag};
    if (f->activation == ACTIVATION_COUNT)
        return json_error(
            root, diag, "'%s' has few layers of attention, or none, and no dense model is near it",
            model_type);
    *t = (struct transformer){
        .activation = f->activation,
        .norm = f->norm,
        .positions = f->positions,
        .bias_qkv = f->bias_qkv,
        .bias_o = f->bias_o,
        .bias_ffn = f->bias_ffn,
        .qk_norm = f->qk_norm,
        .norm_eps = 1e-5,
        .rope_theta = f->positions == POSITIONS_ROPE ? 10000 : 0,
    };
    read_sizes(&r, f, t);
    t->tied_head = switch_of(&r, "tie_word_embeddings", f->tied);
    if (r.status == STATUS_OK && json_find(r.root, "rope_theta").value != NULL && t->rope_theta > 0)
        r.status = json_get_double(r.root, "rope_theta", 1e-3, 1e15, &t->rope_theta, diag);
    hf_proxy_name(t, arena, name, f->parts);
    return r.status;
}

/* Reports parts that are missing; t: the nearest dense model, or NULL. */
static enum status refuse(struct json_node at, const char *model_type, unsigned missing,
                          const struct transformer *t, bool none_is_near, struct diag *diag)
{
    struct text what = {0}, line = {0};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if ((missing & parts[i].part) != 0)
            text_printf(&what, "%s%s (%s)", what.size > 0 ? " and " : "", parts[i].name,
                        parts[i].what);
    if (t != NULL) {
        transformer_put_line(&line, t, true);
        json_error(at, diag,
                   "'%s' has parts that are not modelled: %s. --as-dense takes the nearest dense "
                   "model, of %.3g B parameters, as a proxy: %s",
                   model_type, what.data, (double)transformer_parameters(t) / 1e9, line.data);
    } else {
        json_error(at, diag, "'%s' has parts that are not modelled: %s%s", model_type, what.data,
                   none_is_near ? "; no dense model is near it"
                                : "; --as-dense takes the nearest dense model");
    }
    text_release(&what);
    text_release(&line);
    return STATUS_BAD_INPUT;
}

enum status hf_proxy_refuse(struct json_node root, const char *model_type, struct diag *diag)
{
    const struct family *f = find_family(model_type);
    struct transformer t;
    struct arena arena = {0};
    bool near = hf_proxy_read(&t, &arena, "", root, model_type, NULL) == STATUS_OK &&
                transformer_check(&t, (struct loc){0}, NULL) == STATUS_OK;
    refuse(json_find(root, "model_type"), model_type, f->parts, near ? &t : NULL,
           f->activation == ACTIVATION_COUNT, diag);
    arena_release(&arena);
    return STATUS_BAD_INPUT;
}

enum status hf_proxy_refuse_parts(struct json_node at, unsigned missing,
                                  const struct transformer *t, struct diag *diag)
{
    const char *type;
    enum status status = json_as_string(at, &type, diag);
    if (status != STATUS_OK)
        return status;
    status = transformer_check(t, json_loc(at), diag);
    return status != STATUS_OK ? status : refuse(at, type, missing, t, false, diag);
}
