/* Reads mixtures of experts, and latent attention, from a Hugging Face config.json. */
#include "models/hf_reader.h"

#include <inttypes.h>
#include <string.h>

/* The experts of each family as its class in Transformers has them, with its defaults for keys that a file may lack. */
static const struct expert_family {
    const char *model_type;
    /* default of num_experts_per_tok; 0: the file must give it */
    int64_t default_experts_per_token;
    /* intermediate_size is the width of an expert, and not that of dense layers */
    bool is_intermediate_size_of_expert;
    bool has_shared_expert;         /* the layer has one shared expert, though no key says so */
    int64_t default_shared_experts; /* default of n_shared_experts */
    int64_t default_dense_layers;   /* default of first_k_dense_replace */
    /* values of the members router, router_norm, router_bias, ... of struct transformer, unless a key says otherwise */
    enum router router;
    bool norm, bias, correction, on_input;
    bool uses_latent_attention; /* the family has latent attention */
    bool qk_norm_wide;          /* one norm over all heads of q, and one over those of k */
    double scale;               /* router_scale */
} families[] = {
    /* clang-format off */
    {"qwen3_moe", 8, .router = ROUTER_SOFTMAX},
    {"mixtral", 2, .is_intermediate_size_of_expert = true, .norm = true},
    {"gpt_oss", 4, .is_intermediate_size_of_expert = true, .router = ROUTER_SOFTMAX_OF_CHOSEN, .bias = true},
    {"llama4_text", 1, .is_intermediate_size_of_expert = true, .has_shared_expert = true, .router = ROUTER_SIGMOID, .on_input = true},
    {"minimax_m2", 8, .is_intermediate_size_of_expert = true, .router = ROUTER_SIGMOID, .norm = true, .qk_norm_wide = true},
    {"glm4_moe", 8, .default_shared_experts = 1, .default_dense_layers = 1, .router = ROUTER_SIGMOID, .norm = true, .correction = true},
    {"deepseek_v2", 0, .default_shared_experts = 2, .uses_latent_attention = true},
    {"deepseek_v3", 8, .default_shared_experts = 1, .default_dense_layers = 3, .router = ROUTER_SIGMOID, .norm = true, .uses_latent_attention = true,
     .scale = 2.5},
    {"kimi_k2", 8, .default_shared_experts = 1, .default_dense_layers = 3, .router = ROUTER_SIGMOID, .norm = true, .uses_latent_attention = true,
     .scale = 2.5},
    /* clang-format on */
};

/* ---- keys ---- */

/* Sets *out to the whole number of the first of several keys that is present; if none is, *out does not change. */
static enum status read_first_present_size(const struct hf_reader *r, const char *const *keys,
                                           size_t count, int64_t *out)
{
    for (size_t i = 0; i < count; i++)
        if (hf_has_value(r, keys[i]))
            return json_get_i64(r->root, keys[i], 0, 1 << 24, out, r->diag);
    return STATUS_OK;
}

static enum status read_size(const struct hf_reader *r, const char *key, int64_t *out)
{
    return read_first_present_size(r, &key, 1, out);
}

static enum status read_switch(const struct hf_reader *r, const char *key, bool *out)
{
    return hf_has_value(r, key) ? json_get_bool(r->root, key, out, r->diag) : STATUS_OK;
}

/* ---- sizes ---- */

static enum status read_expert_counts(const struct hf_reader *r, const struct expert_family *f)
{
    static const char *const counts[] = {"num_experts", "n_routed_experts", "num_local_experts"};
    static const char *const chosen[] = {"num_experts_per_tok", "experts_per_token"};
    struct transformer *t = r->t;
    t->experts_per_token = f->default_experts_per_token;
    enum status status = read_first_present_size(r, counts, ARRAY_LEN(counts), &t->experts);
    if (status == STATUS_OK)
        status = read_first_present_size(r, chosen, ARRAY_LEN(chosen), &t->experts_per_token);
    if (status == STATUS_OK && (t->experts == 0 || t->experts_per_token == 0))
        return json_error(r->root, r->diag, "%s is missing: a '%s' model has experts",
                          t->experts == 0 ? "the number of experts (num_experts, n_routed_experts "
                                            "or num_local_experts)"
                                          : "num_experts_per_tok",
                          f->model_type);
    return status;
}

static enum status read_expert_widths(const struct hf_reader *r, const struct expert_family *f)
{
    static const char *const shared_widths[] = {"shared_expert_intermediate_size",
                                                "shared_intermediate_size"};
    struct transformer *t = r->t;
    enum status status = STATUS_OK;
    int64_t count = f->default_shared_experts;
    if (f->is_intermediate_size_of_expert)
        t->expert_ffn = t->ffn;
    else
        status = hf_read_size(r, "moe_intermediate_size", "expert_ffn");
    if (status == STATUS_OK)
        status = read_size(r, "n_shared_experts", &count);
    t->shared_ffn = f->has_shared_expert ? t->expert_ffn : count * t->expert_ffn;
    if (status == STATUS_OK)
        status =
            read_first_present_size(r, shared_widths, ARRAY_LEN(shared_widths), &t->shared_ffn);
    if (status == STATUS_OK)
        status = read_size(r, "intermediate_size_mlp", &t->ffn);
    return status;
}

/* ---- layers ---- */

/* Fails unless the list at `key` names exactly the layers that have experts or, if `dense` is true, the layers without.
 * An absent or empty list passes. */
static enum status check_expert_layer_list(const struct hf_reader *r, const char *key, bool dense)
{
    struct json_node list;
    if (!hf_has_value(r, key))
        return STATUS_OK;
    enum status status = json_get_array(r->root, key, &list, r->diag);
    if (status != STATUS_OK || (json_element_count(list) == 0))
        return status;
    int64_t sparse = transformer_count_expert_layers(r->t),
            of = dense ? r->t->layers - sparse : sparse;
    bool same = (int64_t)json_element_count(list) == of;
    for (size_t i = 0; i < json_element_count(list) && status == STATUS_OK; i++) {
        int64_t layer = 0;
        status = json_as_i64(json_element_at(list, i), 0, INT32_MAX, &layer, r->diag);
        same = same && layer < r->t->layers && transformer_layer_has_experts(r->t, layer) != dense;
    }
    if (status == STATUS_OK && !same)
        return json_error(list, r->diag,
                          "this choice of layers is not modelled: from some layer on every N-th "
                          "layer has experts");
    return status;
}

static enum status read_expert_layers(const struct hf_reader *r, const struct expert_family *f)
{
    static const char *const periods[] = {"decoder_sparse_step", "interleave_moe_layer_step"};
    struct transformer *t = r->t;
    int64_t frequency = 1;
    t->dense_layers = f->default_dense_layers;
    enum status status = read_size(r, "first_k_dense_replace", &t->dense_layers);
    if (status == STATUS_OK)
        status = read_first_present_size(r, periods, ARRAY_LEN(periods), &t->experts_every);
    if (status == STATUS_OK)
        status = read_size(r, "moe_layer_freq", &frequency);
    if (status == STATUS_OK && frequency != 1)
        return json_error(json_find_member(r->root, "moe_layer_freq"), r->diag,
                          "%" PRId64 " is not modelled: 1 is, experts in every layer after the "
                          "first dense ones",
                          frequency);
    t->experts_every = t->experts_every == 1 ? 0 : t->experts_every;
    if (status == STATUS_OK)
        status = check_expert_layer_list(r, "moe_layers", false);
    return status == STATUS_OK ? check_expert_layer_list(r, "mlp_only_layers", true) : status;
}

/* ---- the router ---- */

static enum status read_router_scores(const struct hf_reader *r)
{
    const char *word;
    if (!hf_has_value_to_read(r, "scoring_func"))
        return STATUS_OK;
    enum status status = json_get_string(r->root, "scoring_func", &word, r->diag);
    if (status != STATUS_OK)
        return status;
    if (strcmp(word, "sigmoid") != 0 && strcmp(word, "softmax") != 0)
        return json_error(json_find_member(r->root, "scoring_func"), r->diag,
                          "scores by '%s' are not modelled: softmax and sigmoid are", word);
    r->t->router = word[1] == 'i' ? ROUTER_SIGMOID : ROUTER_SOFTMAX;
    return STATUS_OK;
}

static enum status read_topk_method(const struct hf_reader *r)
{
    static const char *const known[] = {"greedy", "group_limited_greedy", "noaux_tc"};
    const char *word;
    if (!hf_has_value_to_read(r, "topk_method"))
        return STATUS_OK;
    enum status status = json_get_string(r->root, "topk_method", &word, r->diag);
    size_t i = 0;
    while (status == STATUS_OK && i < ARRAY_LEN(known) && strcmp(word, known[i]) != 0)
        i++;
    if (status == STATUS_OK && i == ARRAY_LEN(known))
        return json_error(json_find_member(r->root, "topk_method"), r->diag,
                          "a choice by '%s' is not modelled: greedy, group_limited_greedy and "
                          "noaux_tc are",
                          word);
    if (status == STATUS_OK)
        r->t->router_correction = i == 2;
    return status;
}

static enum status read_router_groups(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    enum status status = read_size(r, "n_group", &t->router_groups);
    if (status == STATUS_OK)
        status = read_size(r, "topk_group", &t->router_groups_kept);
    if (t->router_groups <= 1) /* a single group restricts nothing */
        t->router_groups = t->router_groups_kept = 0;
    return status;
}

static enum status read_router(const struct hf_reader *r, const struct expert_family *f)
{
    struct transformer *t = r->t;
    t->router = f->router;
    t->router_norm = f->norm;
    t->router_bias = f->bias;
    t->router_correction = f->correction;
    t->router_on_input = f->on_input;
    t->router_scale = f->scale;
    enum status status = read_router_scores(r);
    if (status == STATUS_OK)
        status = read_topk_method(r);
    if (status == STATUS_OK)
        status = read_router_groups(r);
    if (status == STATUS_OK)
        status = read_switch(r, "norm_topk_prob", &t->router_norm);
    if (status == STATUS_OK)
        status = read_switch(r, "use_routing_bias", &t->router_correction);
    if (status == STATUS_OK && hf_has_value(r, "routed_scaling_factor"))
        status =
            json_get_double(r->root, "routed_scaling_factor", 0, 1e6, &t->router_scale, r->diag);
    return status;
}

/* ---- attention, and what single families have ---- */

static enum status read_latent(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    int64_t nope = 0;
    enum status status = read_size(r, "q_lora_rank", &t->q_latent);
    if (status == STATUS_OK)
        status = hf_read_size(r, "kv_lora_rank", "kv_latent");
    if (status == STATUS_OK)
        status = json_get_i64(r->root, "qk_nope_head_dim", 1, 1 << 11, &nope, r->diag);
    if (status == STATUS_OK)
        status = hf_read_size(r, "qk_rope_head_dim", "rope_dim");
    if (status == STATUS_OK)
        status = hf_read_size(r, "v_head_dim", "v_dim");
    t->head_dim = nope + t->rope_dim;
    return status;
}

/* Reads the switch use_qk_norm; if the file lacks it, it is on for MiniMax and Llama 4. If it is on, GLM has a norm for
 * each head, MiniMax one norm over all heads, and Llama 4 norms without weights, only in layers that rotate. Qwen 3's
 * norms do not depend on it. */
static enum status read_head_norms(const struct hf_reader *r, const struct expert_family *f)
{
    bool on = f->qk_norm_wide || f->on_input;
    enum status status = read_switch(r, "use_qk_norm", &on);
    r->t->qk_norm = r->t->qk_norm || on;
    r->t->qk_norm_bare = on && f->on_input;
    r->t->qk_norm_wide = on && f->qk_norm_wide;
    return status;
}

/* Sets which layers of Llama 4 rotate queries and keys: those with chunks. If no layer has chunks, all layers do but
 * every N-th, where N is no_rope_layer_interval. A list no_rope_layers that says otherwise is refused. Call it after
 * hf_read_windows(), which finds the layers with chunks. */
static enum status read_rotating_layers_of_llama4(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    int64_t interval = 4;
    enum status status = read_size(r, "no_rope_layer_interval", &interval);
    t->window_chunks = t->attention_window > 0;
    t->unrotated_every = t->window_chunks ? t->full_attention_every : interval;
    if (status != STATUS_OK)
        return status;
    return hf_check_rotating_layers(r, "modelled are layers with chunks that rotate, and every "
                                       "N-th layer, which sees all keys and does not");
}

/* Sets what gpt-oss has: biases of experts, a clamped activation, and attention sinks. The two numbers of the
 * activation are constants here: a file with other values is refused unless the caller ignores the key. */
static enum status read_gpt_oss(const struct hf_reader *r)
{
    static const struct {
        const char *key;
        double value;
    } numbers[] = {{"swiglu_limit", 7}, {"swiglu_alpha", 1.702}};
    r->t->bias_ffn = r->t->attention_sinks = true;
    r->t->activation = ACTIVATION_SWIGLU_CLAMPED;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        double value = numbers[i].value;
        if (!hf_has_value_to_read(r, numbers[i].key))
            continue;
        enum status status = json_get_double(r->root, numbers[i].key, 0, 1e6, &value, r->diag);
        if (status != STATUS_OK)
            return status;
        if (value != numbers[i].value)
            return json_error(json_find_member(r->root, numbers[i].key), r->diag,
                              "%g is not modelled: %g is; --ignore %s models the step with that, "
                              "which changes no work",
                              value, numbers[i].value, numbers[i].key);
    }
    return STATUS_OK;
}

/* Adds a note if the file has layers that predict tokens after the next one, which no class of Transformers has. */
static void note_multi_token_prediction(const struct hf_reader *r)
{
    static const char *const keys[] = {"num_nextn_predict_layers", "num_mtp_modules"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        int64_t count = 0;
        if (hf_has_value_to_read(r, keys[i]) && read_size(r, keys[i], &count) == STATUS_OK &&
            count > 0)
            diag_note(r->diag, json_loc(json_find_member(r->root, keys[i])),
                      "%s: the %" PRId64 " layers that predict tokens after the next one are left "
                      "out, as Transformers leaves them out",
                      keys[i], count);
    }
}

enum status hf_read_experts(const struct hf_reader *r)
{
    static enum status (*const readers[])(const struct hf_reader *,
                                          const struct expert_family *) = {
        read_expert_counts, read_expert_widths, read_expert_layers, read_router, read_head_norms,
    };
    const struct expert_family *f = families;
    while (strcmp(f->model_type, r->family->model_type) != 0)
        f++;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(readers) && status == STATUS_OK; i++)
        status = readers[i](r, f);
    if (status == STATUS_OK && f->bias)
        status = read_gpt_oss(r);
    if (status == STATUS_OK && f->on_input)
        status = read_rotating_layers_of_llama4(r);
    if (status == STATUS_OK && f->uses_latent_attention)
        status = read_latent(r);
    if (status == STATUS_OK)
        note_multi_token_prediction(r);
    return status;
}
