#include "models/hf_proxy.h"

#include "base/text.h"
#include "models/hf_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    unsigned part;
    const char *name, *what;
} parts[] = {
    {HF_PART_EXPERTS, "experts", "those of some other families are read"},
    {HF_PART_LATENT_ATTENTION, "latent-attention",
     "keys and values that are made of a narrow common vector"},
    {HF_PART_LINEAR_ATTENTION, "linear-attention",
     "layers of which the work does not grow with the square of the length"},
    {HF_PART_ALIBI, "ALiBi", "a bias on attention scores"},
    {HF_PART_PARALLEL_BRANCHES, "parallel-layers", "attention and feed-forward part side by side"},
    {HF_PART_SOFT_CAPS, "soft-caps", "a tanh of attention scores, and one of logits"},
    {HF_PART_UNROTATED_LAYERS, "layers-without-rotary-positions", "some layers rotate nothing"},
    {HF_PART_CHUNKED_ATTENTION, "chunked-attention",
     "layers of which a token sees its own chunk only; the dense model has windows of a chunk "
     "there"},
    {HF_PART_ATTENTION_SINKS, "attention-sinks",
     "a learned score of each head in the sum of a softmax"},
    {HF_PART_OTHER_ENCODERS, "other-inputs", "encoders of pictures or sound before the text model"},
};

/* The properties of a family, and the defaults of keys that a file may lack, from Transformers' configuration classes.
 * The members from default_experts_per_token on are such defaults, for families with experts. */
static const struct proxy_family {
    struct hf_family base; /* with the bit HF_READ_AS_DENSE_PROXY */
    bool has_no_rotary_positions;
    bool bias_o, bias_ffn;        /* the layers have these biases, whatever attention_bias says */
    bool has_no_near_dense_model; /* no dense model is near: few layers, or none, have attention */
    /* default of the number of routed experts that a token passes; -1: the file must give it */
    int64_t default_experts_per_token;
    int64_t expert_width; /* default of the width of a routed expert; 0: intermediate_size */
    /* default of the number of shared experts, which are as wide as routed ones */
    int64_t default_shared_expert_count;
    /* default of the width of all shared experts together; 0: it follows from their number */
    int64_t shared_width;
    /* default of the number of first layers without experts */
    int64_t default_first_dense_layer_count;
    /* default of the period, in layers, in which one layer has experts; 0: all layers have */
    int64_t default_expert_layer_period;
} families[] = {
    /* clang-format off */
    {{"mixtral", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS, .kv_heads = 8, .rope_theta = 1e6, .has_windows = true}, .default_experts_per_token = 2},
    {{"qwen2_moe", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS, .kv_heads = 16, .bias_qkv = true, .has_windows = true, .window = 4096,
      .is_window_off_without_switch = true}, .default_experts_per_token = 4, .expert_width = 1408, .shared_width = 5632},
    {{"qwen3_moe", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS, .kv_heads = 4, .qk_norm = true, .has_windows = true, .window = 4096,
      .is_window_off_without_switch = true}, .default_experts_per_token = 8, .expert_width = 768},
    {{"olmoe", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS, .qk_norm = true, .qk_norm_wide = true}, .default_experts_per_token = 8},
    {{"granitemoe", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS}, .default_experts_per_token = 2},
    {{"phimoe", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS, .norm = NORM_LAYERNORM, .kv_heads = 8, .rope_theta = 1e6,
      .has_windows = true}, .default_experts_per_token = 2},
    {{"gpt_oss", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_ATTENTION_SINKS, .kv_heads = 8, .head_dim = 64, .bias_qkv = true,
      .rope_theta = 150000, .has_windows = true, .window = 128, .full_attention_every = 2},
     .bias_o = true, .bias_ffn = true, .default_experts_per_token = 4},
    {{"llama4", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_UNROTATED_LAYERS | HF_PART_CHUNKED_ATTENTION, .kv_heads = 8, .head_dim = 128, .qk_norm = true,
      .rope_theta = 5e5, .has_windows = true, .window = 8192, .full_attention_every = 4, .window_key = "attention_chunk_size"},
     .default_experts_per_token = 1, .default_shared_expert_count = 1},
    {{"llama4_text", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_UNROTATED_LAYERS | HF_PART_CHUNKED_ATTENTION, .kv_heads = 8, .head_dim = 128, .qk_norm = true,
      .rope_theta = 5e5, .has_windows = true, .window = 8192, .full_attention_every = 4, .window_key = "attention_chunk_size"},
     .default_experts_per_token = 1, .default_shared_expert_count = 1},
    {{"glm4_moe", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS, .kv_heads = 8, .attention_bias_is_qkv_only = true},
     .default_experts_per_token = 8, .expert_width = 1408, .default_shared_expert_count = 1, .default_first_dense_layer_count = 1},
    {{"dbrx", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS, .norm = NORM_LAYERNORM}, .default_experts_per_token = 1},
    {{"deepseek_v2", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_LATENT_ATTENTION}, .default_experts_per_token = -1, .expert_width = 1407, .default_shared_expert_count = 2},
    {{"deepseek_v3", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_LATENT_ATTENTION},
     .default_experts_per_token = 8, .expert_width = 2048, .default_shared_expert_count = 1, .default_first_dense_layer_count = 3},
    {{"kimi_k2", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_LATENT_ATTENTION},
     .default_experts_per_token = 8, .expert_width = 2048, .default_shared_expert_count = 1, .default_first_dense_layer_count = 3},
    {{"minicpm3", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LATENT_ATTENTION, .tied_by_default = true}, .default_experts_per_token = 0},
    {{"qwen3_next", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_LINEAR_ATTENTION, .kv_heads = 2, .head_dim = 256, .qk_norm = true},
     .default_experts_per_token = 10, .expert_width = 512, .shared_width = 512},
    {{"jamba", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_LINEAR_ATTENTION, .kv_heads = 8, .has_windows = true},
     .has_no_rotary_positions = true, .default_experts_per_token = 2, .default_expert_layer_period = 2},
    {{"minimax", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_EXPERTS | HF_PART_LINEAR_ATTENTION, .kv_heads = 8, .rope_theta = 1e6, .has_windows = true},
     .default_experts_per_token = 2},
    {{"bloom", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_ALIBI, .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .tied_by_default = true, .bias_qkv = true},
     .has_no_rotary_positions = true, .bias_o = true, .bias_ffn = true},
    {{"mpt", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_ALIBI, .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .tied_by_default = true}, .has_no_rotary_positions = true},
    {{"falcon", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_PARALLEL_BRANCHES, .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .tied_by_default = true}, .default_experts_per_token = 0},
    {{"gpt_neox", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_PARALLEL_BRANCHES, .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .attention_bias = true}, .bias_ffn = true},
    {{"gptj", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_PARALLEL_BRANCHES, .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM}, .bias_ffn = true},
    {{"phi", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_PARALLEL_BRANCHES, .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .bias_qkv = true},
     .bias_o = true, .bias_ffn = true},
    {{"cohere", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_PARALLEL_BRANCHES, .norm = NORM_LAYERNORM, .tied_by_default = true}, .default_experts_per_token = 0},
    {{"nemotron_h", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    {{"bamba", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    {{"zamba2", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    {{"falcon_h1", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    {{"recurrent_gemma", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    {{"mamba", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    {{"mamba2", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    {{"falcon_mamba", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    {{"rwkv", HF_READ_AS_DENSE_PROXY, .parts = HF_PART_LINEAR_ATTENTION}, .has_no_near_dense_model = true},
    /* clang-format on */
};

static const struct proxy_family *find_family(const char *model_type)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (strcmp(families[i].base.model_type, model_type) == 0)
            return &families[i];
    return NULL;
}

bool hf_proxy_has_family(const char *model_type)
{
    return find_family(model_type) != NULL;
}

/* ---- sizes and switches ---- */

struct reader {
    struct json_node root; /* the file's root, or its text_config */
    struct diag *diag;
    enum status status; /* the first fault */
};

/* Returns the whole number at the first of several keys that is present. keys: "a|b.c" are the key a and the key c of
 * the object b. Returns `otherwise` if none is present; if `otherwise` is -1, it also reports that the first key is
 * missing. */
static int64_t read_first_size_or_default(struct reader *r, const char *keys, int64_t otherwise)
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
            holder = json_find_member(holder, key);
            size = strcspn(++keys, "|");
            memcpy(key, keys, size);
            key[size] = '\0';
            keys += size;
        }
        keys += *keys == '|';
        if (holder.value != NULL && json_find_member(holder, key).value != NULL) {
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

/* Returns the switch at the first of several keys, "a|b", that is present; `otherwise` if none is. */
static bool read_first_switch_or_default(struct reader *r, const char *keys, bool otherwise)
{
    char key[64];
    bool value = otherwise;
    while (*keys != '\0' && r->status == STATUS_OK) {
        const size_t size = strcspn(keys, "|");
        memcpy(key, keys, size);
        key[size] = '\0';
        keys += size + (keys[size] == '|');
        if (json_find_member(r->root, key).value == NULL)
            continue;
        r->status = json_get_bool(r->root, key, &value, r->diag);
        break;
    }
    return value;
}

/* Sets *list to the list of layers at a key, and to an empty one if the key is absent. */
static void read_layer_list(struct reader *r, const char *key, struct json_node *list)
{
    *list = (struct json_node){0};
    if (r->status == STATUS_OK && json_find_member(r->root, key).value != NULL)
        r->status = json_get_array(r->root, key, list, r->diag);
}

/* Returns the number of layers that have experts. A file says which layers these are in one of four ways: a list of
 * them (Llama 4); a list of the other layers (Qwen); the number of first layers without experts (DeepSeek); a period,
 * of which the last layer has experts, or the layer at an offset (Jamba). */
static int64_t count_expert_layers(struct reader *r, const struct proxy_family *f, int64_t layers)
{
    struct json_node sparse, dense;
    read_layer_list(r, "moe_layers", &sparse);
    read_layer_list(r, "mlp_only_layers", &dense);
    const int64_t first =
        read_first_size_or_default(r, "first_k_dense_replace", f->default_first_dense_layer_count);
    int64_t period = read_first_size_or_default(
        r, "decoder_sparse_step|expert_layer_period|interleave_moe_layer_step",
        f->default_expert_layer_period);
    period = period < 1 ? 1 : period;
    const int64_t offset =
        read_first_size_or_default(r, "expert_layer_offset", period - 1) % period;
    if (r->status == STATUS_OK && json_element_count(sparse) > 0)
        return (int64_t)json_element_count(sparse) < layers ? (int64_t)json_element_count(sparse)
                                                            : layers;
    int64_t count = 0;
    for (int64_t l = first - first % period + offset; l < layers; l += period)
        count += l >= first;
    for (size_t i = 0; i < json_element_count(dense) && r->status == STATUS_OK; i++) {
        int64_t l = 0;
        r->status = json_as_i64(json_element_at(dense, i), 0, INT32_MAX, &l, r->diag);
        count -= count > 0 && l >= first && l < layers && l % period == offset;
    }
    return count;
}

/* Returns the mean over the layers of the width of feed-forward part that one token passes, rounded up to a multiple of
 * 64. sparse: the number of layers with experts, in which it is sparse_width; in the others it is dense_width. */
static int64_t mean_ffn_width(int64_t layers, int64_t sparse, int64_t sparse_width,
                              int64_t dense_width)
{
    double sum =
        (double)sparse * (double)sparse_width + (double)(layers - sparse) * (double)dense_width;
    int64_t active = layers > 0 ? (int64_t)(sum / (double)layers + 0.5) : 0;
    return (active + 63) / 64 * 64; /* published widths are multiples of 64, too */
}

static int64_t active_ffn_width(struct reader *r, const struct proxy_family *f, int64_t layers,
                                int64_t whole)
{
    int64_t width =
        read_first_size_or_default(r, "moe_intermediate_size|ffn_config.ffn_hidden_size",
                                   f->expert_width > 0 ? f->expert_width : whole);
    int64_t routed =
        read_first_size_or_default(r, "num_experts_per_tok|experts_per_token|ffn_config.moe_top_k",
                                   f->default_experts_per_token);
    int64_t shared = read_first_size_or_default(
        r, "shared_expert_intermediate_size|shared_intermediate_size",
        f->shared_width > 0
            ? f->shared_width
            : read_first_size_or_default(r, "n_shared_experts", f->default_shared_expert_count) *
                  width);
    int64_t dense_width = read_first_size_or_default(r, "intermediate_size_mlp", whole);
    return mean_ffn_width(layers, count_expert_layers(r, f, layers), routed * width + shared,
                          dense_width);
}

/* The sizes of latent attention. q_rank 0: q is projected by one matrix. */
struct latent_sizes {
    int64_t q_rank, kv_rank, nope_dim, rope_dim, v_dim;
};

/* Sets head_dim and kv_heads of the dense model: heads are as wide as the values of latent attention, and the number of
 * K/V heads is the divisor of `heads` with which attention has most nearly as many parameters as the real model's. */
static void replace_latent_attention(struct transformer *t, const struct latent_sizes *latent)
{
    double h = (double)t->hidden, heads = (double)t->heads;
    double q = (double)latent->q_rank, kv = (double)latent->kv_rank, v = (double)latent->v_dim;
    double nope = (double)latent->nope_dim, rope = (double)latent->rope_dim;
    double query = q > 0 ? h * q + q * heads * (nope + rope) : h * heads * (nope + rope);
    double whole = query + h * (kv + rope) + kv * heads * (nope + v) + heads * v * h;
    double nearest = -1;
    t->head_dim = latent->v_dim;
    for (int64_t n = 1; n <= t->heads && n <= 1 << 14 && v > 0; n++) {
        double distance = 2 * h * v * (heads + (double)n) - whole;
        distance = distance < 0 ? -distance : distance;
        if (t->heads % n == 0 && (nearest < 0 || distance < nearest)) {
            nearest = distance;
            t->kv_heads = n;
        }
    }
}

static void read_latent(struct reader *r, struct transformer *t)
{
    const int64_t nope = read_first_size_or_default(r, "qk_nope_head_dim", -1);
    replace_latent_attention(
        t, &(struct latent_sizes){.q_rank = read_first_size_or_default(r, "q_lora_rank", 0),
                                  .kv_rank = read_first_size_or_default(r, "kv_lora_rank", -1),
                                  .nope_dim = nope,
                                  .rope_dim = read_first_size_or_default(r, "qk_rope_head_dim", -1),
                                  .v_dim = read_first_size_or_default(r, "v_head_dim", nope)});
}

static void read_sizes(struct reader *r, const struct proxy_family *f, struct transformer *t)
{
    t->layers = read_first_size_or_default(r, "num_hidden_layers|n_layer|n_layers", -1);
    t->hidden = read_first_size_or_default(r, "hidden_size|n_embd|n_embed|d_model", -1);
    t->heads = read_first_size_or_default(r, "num_attention_heads|n_head|n_heads", -1);
    t->vocab = read_first_size_or_default(r, "vocab_size", -1);
    t->kv_heads =
        read_first_size_or_default(r, "num_key_value_heads|num_kv_heads|attn_config.kv_n_heads",
                                   f->base.kv_heads > 0 ? f->base.kv_heads : t->heads);
    if (read_first_switch_or_default(r, "multi_query", false) &&
        !read_first_switch_or_default(r, "new_decoder_architecture", false))
        t->kv_heads = 1;
    t->head_dim = read_first_size_or_default(r, "head_dim",
                                             f->base.head_dim > 0 ? f->base.head_dim
                                             : t->heads > 0       ? t->hidden / t->heads
                                                                  : 0);
    int64_t whole =
        read_first_size_or_default(r, "intermediate_size|n_inner|ffn_hidden_size",
                                   read_first_size_or_default(r, "expansion_ratio", 4) * t->hidden);
    t->ffn =
        (f->base.parts & HF_PART_EXPERTS) != 0 ? active_ffn_width(r, f, t->layers, whole) : whole;
    if ((f->base.parts & HF_PART_LATENT_ATTENTION) != 0)
        read_latent(r, t);
}

static void read_switches(struct reader *r, const struct proxy_family *f, struct transformer *t)
{
    const bool all =
        read_first_switch_or_default(r, "bias", false); /* Falcon's key for all biases */
    const bool bias =
        read_first_switch_or_default(r, "attention_bias", f->base.attention_bias) || all;
    t->bias_qkv = read_first_switch_or_default(r, "qkv_bias", f->base.bias_qkv) || bias;
    t->bias_o = f->bias_o || all || (bias && !f->base.attention_bias_is_qkv_only);
    t->bias_ffn = read_first_switch_or_default(r, "mlp_bias", f->bias_ffn) || all;
    t->qk_norm = read_first_switch_or_default(r, "use_qk_norm|qk_layernorm", f->base.qk_norm);
    t->qk_norm_wide = f->base.qk_norm_wide;
    t->tied_head = read_first_switch_or_default(r, "tie_word_embeddings", f->base.tied_by_default);
}

/* ---- the dense proxy ---- */

/* Adds one note that names those keys of the file that models/hf_keys.c does not have or refuses. Keys that are null or
 * ignored by the caller are not named. */
static void note_unread_keys(const struct hf_reader *r)
{
    struct text names = {0};
    const struct json_node nodes[] = {r->root, json_find_member(r->root, "attn_config"),
                                      json_find_member(r->root, "ffn_config")};
    for (size_t n = 0; n < ARRAY_LEN(nodes); n++)
        for (size_t i = 0; json_is_object(nodes[n]) && i < json_member_count(nodes[n]); i++) {
            const char *name;
            const struct json_node node = json_member_at(nodes[n], i, &name);
            const struct hf_key *key = hf_key_find(name, strlen(name), HF_READ_AS_DENSE_PROXY);
            if ((key == NULL || key->use == HF_KEY_REFUSED) && node.value != NULL &&
                !hf_is_ignored(r, name))
                text_printf(&names, "%s%s", names.size > 0 ? ", " : "", name);
        }
    if (names.size > 0)
        diag_note(r->diag, json_loc(r->root),
                  "the dense proxy is read without these keys: %s; what they change of the work "
                  "is missing (--ignore KEYS says that it is known)",
                  names.data);
    text_release(&names);
}

static void put_part_names(struct text *out, unsigned missing)
{
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if ((missing & parts[i].part) != 0)
            text_printf(out, "%s%s (%s)", out->size > 0 ? " and " : "", parts[i].name,
                        parts[i].what);
}

/* Returns the names of the missing parts: "experts+latent-attention". */
static const char *missing_parts_text(struct arena *arena, unsigned missing)
{
    const char *names = "";
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if ((missing & parts[i].part) != 0)
            names =
                arena_printf(arena, "%s%s%s", names, names[0] != '\0' ? "+" : "", parts[i].name);
    return names;
}

void hf_proxy_mark_as_dense_proxy(struct transformer *t, struct arena *arena, const char *name,
                                  unsigned missing)
{
    t->proxy_lacks = missing_parts_text(arena, missing);
    t->name = arena_printf(arena, "%s (dense proxy)", name);
    t->source = arena_printf(arena, "Hugging Face config (%s), without %s", name, t->proxy_lacks);
}

void hf_proxy_make_dense(struct transformer *t, struct arena *arena)
{
    unsigned missing = 0;
    if (t->kv_latent > 0) {
        missing |= HF_PART_LATENT_ATTENTION;
        replace_latent_attention(t, &(struct latent_sizes){t->q_latent, t->kv_latent,
                                                           t->head_dim - t->rope_dim, t->rope_dim,
                                                           t->v_dim});
        t->q_latent = t->kv_latent = t->rope_dim = t->v_dim = 0;
    }
    if (t->experts > 0) {
        missing |= HF_PART_EXPERTS;
        t->ffn = mean_ffn_width(t->layers, transformer_count_expert_layers(t),
                                t->experts_per_token * t->expert_ffn + t->shared_ffn, t->ffn);
        t->experts = t->experts_per_token = t->expert_ffn = t->shared_ffn = 0;
        t->dense_layers = t->experts_every = t->router_groups = t->router_groups_kept = 0;
        t->router = ROUTER_SOFTMAX;
        t->router_norm = t->router_bias = t->router_correction = t->router_on_input = false;
        t->router_scale = 0;
    }
    if (t->unrotated_every > 0)
        missing |= HF_PART_UNROTATED_LAYERS;
    if (t->window_chunks)
        missing |= HF_PART_CHUNKED_ATTENTION;
    t->unrotated_every = 0;
    t->window_chunks = t->qk_norm_bare = false;
    if (t->attention_sinks)
        missing |= HF_PART_ATTENTION_SINKS;
    t->attention_sinks = false;
    hf_proxy_mark_as_dense_proxy(t, arena, t->name, missing);
}

/* Returns, as bits of enum hf_unmodelled_part, the parts of the file's model that are not modelled: those of its
 * family, encoders if the file has text_config, and ALiBi if the file switches it on. */
static unsigned parts_missing_in_proxy(const struct proxy_family *f, struct json_node root)
{
    bool alibi = false; /* a key of Falcon */
    unsigned missing = f->base.parts;
    if (json_is_object(json_find_member(root, "text_config")))
        missing |= HF_PART_OTHER_ENCODERS;
    if (json_get_bool(root, "alibi", &alibi, NULL) == STATUS_OK && alibi)
        missing |= HF_PART_ALIBI;
    return missing;
}

enum status hf_proxy_read(struct transformer *t, struct arena *arena, const char *name,
                          struct json_node root, const char *model_type, const char *ignore,
                          struct diag *diag)
{
    const struct proxy_family *f = find_family(model_type);
    struct json_node inner = json_find_member(root, "text_config");
    struct reader r = {.root = json_is_object(inner) ? inner : root, .diag = diag};
    if (f->has_no_near_dense_model)
        return json_error(
            root, diag, "'%s' has few layers of attention, or none, and no dense model is near it",
            model_type);
    *t = (struct transformer){
        .activation = f->base.activation,
        .norm = f->base.norm,
        .positions = f->has_no_rotary_positions ? POSITIONS_NONE : POSITIONS_ROPE,
        .norm_eps = 1e-5,
    };
    const unsigned missing = parts_missing_in_proxy(f, root);
    if ((missing & HF_PART_ALIBI) != 0)
        t->positions = POSITIONS_NONE;
    read_sizes(&r, f, t);
    read_switches(&r, f, t);
    const struct hf_reader reader = {
        .t = t, .root = r.root, .family = &f->base, .ignored_keys = ignore, .diag = diag};
    if (r.status == STATUS_OK)
        r.status = hf_read_windows(&reader);
    if (r.status == STATUS_OK && t->positions == POSITIONS_ROPE)
        r.status = hf_read_rope_theta(&reader);
    if (r.status == STATUS_OK)
        note_unread_keys(&reader);
    hf_proxy_mark_as_dense_proxy(t, arena, name, missing);
    return r.status;
}

const char *hf_proxy_describe_missing_parts(struct arena *arena, unsigned missing)
{
    struct text what = {0};
    put_part_names(&what, missing);
    const char *described = what.size > 0 ? arena_text(arena, what.data, what.size) : NULL;
    text_release(&what);
    return described;
}

/* ---- refusals ---- */

/* Reports the parts that are missing. t: the nearest dense model, which the message proposes; NULL: it could not be
 * read. has_no_near_dense_model: the message says that no dense model is near. */
static enum status refuse_model(struct json_node at, const char *model_type, unsigned missing,
                                const struct transformer *t, bool has_no_near_dense_model,
                                struct diag *diag)
{
    struct text what = {0}, line = {0};
    put_part_names(&what, missing);
    if (t != NULL) {
        transformer_put_line(&line, t, true);
        json_error(at, diag,
                   "'%s' has parts that are not modelled: %s. --as-dense takes the nearest dense "
                   "model, of %.3g B parameters, as a proxy: %s",
                   model_type, what.data, (double)transformer_parameters(t) / 1e9, line.data);
    } else {
        json_error(at, diag, "'%s' has parts that are not modelled: %s%s", model_type, what.data,
                   has_no_near_dense_model ? "; no dense model is near it"
                                           : "; --as-dense takes the nearest dense model");
    }
    text_release(&what);
    text_release(&line);
    return STATUS_BAD_INPUT;
}

enum status hf_proxy_refuse_family(struct json_node root, const char *model_type,
                                   const char *ignore, struct diag *diag)
{
    const struct proxy_family *f = find_family(model_type);
    struct transformer t;
    struct arena arena = {0};
    bool near = hf_proxy_read(&t, &arena, "", root, model_type, ignore, NULL) == STATUS_OK &&
                transformer_check(&t, (struct loc){0}, NULL) == STATUS_OK;
    refuse_model(json_find_member(root, "model_type"), model_type, parts_missing_in_proxy(f, root),
                 near ? &t : NULL, f->has_no_near_dense_model, diag);
    arena_release(&arena);
    return STATUS_BAD_INPUT;
}

enum status hf_proxy_refuse_unmodelled_parts(struct json_node at, unsigned missing,
                                             const struct transformer *t, struct diag *diag)
{
    const char *type;
    enum status status = json_as_string(at, &type, diag);
    if (status != STATUS_OK)
        return status;
    status = transformer_check(t, json_loc(at), diag);
    return status != STATUS_OK ? status : refuse_model(at, type, missing, t, false, diag);
}
