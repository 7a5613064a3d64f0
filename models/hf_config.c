#include "models/hf_config.h"

#include "base/text.h"
#include "models/hf_keys.h"
#include "models/hf_proxy.h"
#include "models/hf_reader.h"
#include "models/transformer_fields.h"

#include <inttypes.h>
#include <string.h>

static enum status read_bool_or(const struct hf_reader *r, const char *key, bool absent, bool *out)
{
    *out = absent;
    return hf_has_value(r, key) ? json_get_bool(r->root, key, out, r->diag) : STATUS_OK;
}

/* Fails if the file has a switch whose value is not `required`. Passes if the switch is absent, null or ignored by the
 * caller. meaning: what the other value means, in words. */
static enum status check_switch_has_value(const struct hf_reader *r, const char *key, bool required,
                                          const char *meaning)
{
    bool value;
    if (!hf_has_value_to_read(r, key))
        return STATUS_OK;
    enum status status = json_get_bool(r->root, key, &value, r->diag);
    if (status == STATUS_OK && value != required)
        return json_error(json_find_member(r->root, key), r->diag,
                          "%s, which is not modelled: only %s is", meaning,
                          required ? "true" : "false");
    return status;
}

/* ---- which keys the file has ---- */

/* Returns true and adds a note if a quantization_config only says in which format the published weights are stored.
 * Weights that are published in MXFP4 (gpt-oss) or FP8 (DeepSeek-V3) are converted to a wider format for training. */
static bool says_storage_of_published_weights(const struct hf_reader *r, struct json_node config)
{
    static const char *const methods[] = {"mxfp4", "fp8"};
    const char *method = NULL;
    if (!json_is_object(config) || json_find_member(config, "quant_method").value == NULL ||
        json_get_string(config, "quant_method", &method, NULL) != STATUS_OK)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (strcmp(method, methods[i]) != 0)
            continue;
        diag_note(r->diag, json_loc(config),
                  "quantization_config: the published weights are stored in %s; training is "
                  "predicted with weights in the dtype of --dtype, and products by --products",
                  method);
        return true;
    }
    return false;
}

static enum status check_config_key_is_read(const struct hf_reader *r, struct json_node node,
                                            const char *name)
{
    const struct hf_key *key = hf_key_find(name, strlen(name), r->family->bit);
    if (key == NULL && hf_is_ignored(r, name))
        return STATUS_OK;
    if (key == NULL) {
        const char *nearest = hf_key_nearest(name, r->family->bit);
        if (nearest != NULL)
            return json_error(node, r->diag,
                              "unknown key of a '%s' model: did you mean '%s'? (--ignore %s leaves "
                              "it unread)",
                              r->family->model_type, nearest, name);
        return json_error(node, r->diag,
                          "unknown key of a '%s' model; if it does not change the work of a "
                          "training step, --ignore %s leaves it unread",
                          r->family->model_type, name);
    }
    if (node.value == NULL) /* a key that is null is not set */
        return STATUS_OK;
    if (key->use == HF_KEY_OF_EXPERTS)
        return json_error(node, r->diag,
                          "a mixture of experts is not modelled: only dense models are");
    if (strcmp(name, "quantization_config") == 0 && !hf_is_ignored(r, name) &&
        says_storage_of_published_weights(r, node))
        return STATUS_OK;
    if (key->use == HF_KEY_REFUSED && !hf_is_ignored(r, name))
        return json_error(node, r->diag,
                          "not modelled: remove it, or --ignore %s models the step without it",
                          name);
    return STATUS_OK;
}

static enum status check_keys_may_be_ignored(const struct hf_reader *r)
{
    const char *list = r->ignored_keys, *word;
    size_t size;
    while ((word = hf_next_ignored_key(&list, &size)) != NULL) {
        const struct hf_key *key = hf_key_find(word, size, r->family->bit);
        if (key != NULL && !key->may_be_ignored)
            return json_error(r->root, r->diag, "'%.*s' cannot be ignored: the work depends on it",
                              (int)size, word);
        /* a known key may be ignored that the file does not have, so that one list serves several models */
        bool found = key != NULL;
        const char *name;
        for (size_t i = 0; i < json_member_count(r->root) && !found; i++) {
            json_member_at(r->root, i, &name);
            found = strlen(name) == size && memcmp(word, name, size) == 0;
        }
        if (!found)
            return json_error(r->root, r->diag, "no key '%.*s' to ignore", (int)size, word);
    }
    return STATUS_OK;
}

/* Adds one note that names the keys which change numbers but no work. */
static void note_keys_that_change_no_work(const struct hf_reader *r)
{
    struct text names = {0};
    struct json_node first = r->root;
    for (size_t i = 0; i < json_member_count(r->root); i++) {
        const char *name;
        struct json_node node = json_member_at(r->root, i, &name);
        const struct hf_key *key = hf_key_find(name, strlen(name), r->family->bit);
        if (key == NULL || key->use != HF_KEY_CHANGES_NO_WORK || node.value == NULL ||
            hf_is_ignored(r, name))
            continue;
        if (names.size == 0)
            first = node;
        text_printf(&names, "%s%s", names.size > 0 ? ", " : "", name);
    }
    if (names.size > 0)
        diag_note(r->diag, json_loc(first),
                  "keys that scale or rotate numbers, which does not change the work: %s; "
                  "predictions hold, but `run` and the reference of its check ignore them",
                  names.data);
    text_release(&names);
}

static enum status check_keys(const struct hf_reader *r)
{
    enum status status = check_keys_may_be_ignored(r);
    for (size_t i = 0; i < json_member_count(r->root) && status == STATUS_OK; i++) {
        const char *name;
        struct json_node node = json_member_at(r->root, i, &name);
        status = check_config_key_is_read(r, node, name);
    }
    if (status == STATUS_OK)
        note_keys_that_change_no_work(r);
    return status;
}

/* ---- rotary positions ---- */

/* Reads partial_rotary_factor: only this share of the columns of every head, the first ones, is rotated. It is not
 * stored: a kernel that copies the other columns takes as long as one that rotates all. If it is below 1, a note says
 * that `run` and its reference rotate all columns. */
static enum status read_rotary_share(const struct hf_reader *r, struct json_node holder)
{
    static const char key[] = "partial_rotary_factor";
    double share = r->family->rotary_share > 0 ? r->family->rotary_share : 1;
    struct json_node from = json_find_member(holder, key).value != NULL ? holder : r->root;
    struct json_node at = json_find_member(from, key);
    if (hf_is_ignored(r, key))
        return STATUS_OK;
    if (at.value != NULL) {
        enum status status = json_get_double(from, key, 0, 1, &share, r->diag);
        if (status != STATUS_OK)
            return status;
    }
    if (share < 1)
        diag_note(r->diag, json_loc(at.value != NULL ? at : r->root),
                  "%s: only %g of the columns of each head are rotated, and the others are "
                  "copied, at the same cost: predictions hold, but `run` and the reference of "
                  "its check rotate all columns",
                  key, share);
    return STATUS_OK;
}

/* True if RoPE scaling of this type also multiplies the scores of attention. Transformers multiplies cosines and sines
 * by an attention factor (modeling_rope_utils.py); DeepSeek's code multiplies the scores by the square of mscale. */
static bool rope_type_scales_scores(const char *type)
{
    return strcmp(type, "yarn") == 0 || strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0;
}

/* Sets rope_scaled from RoPE scaling of type yarn: whether cosines and sines are multiplied by a factor other than 1.
 * The factor is attention_factor if the file has it; else it follows from mscale and mscale_all_dim if the file has
 * both; else it is above 1 if `factor`, by which the context is lengthened, is (modeling_rope_utils.py,
 * _compute_yarn_parameters()). */
static enum status set_rope_scaled_from_yarn(const struct hf_reader *r, struct json_node scaling)
{
    double factor = 1, attention = 0, mscale = 0, mscale_all = 0;
    const struct {
        const char *key;
        double *value;
    } numbers[] = {{"factor", &factor},
                   {"attention_factor", &attention},
                   {"mscale", &mscale},
                   {"mscale_all_dim", &mscale_all}};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        const struct json_node node = json_find_member(scaling, numbers[i].key);
        if (node.value == NULL)
            continue;
        const enum status status =
            json_get_double(scaling, numbers[i].key, 0, 1e6, numbers[i].value, r->diag);
        if (status != STATUS_OK)
            return status;
    }
    r->t->rope_scaled = attention > 0                  ? attention != 1
                        : mscale > 0 && mscale_all > 0 ? factor > 1 && mscale != mscale_all
                                                       : factor > 1;
    return STATUS_OK;
}

/* Reads RoPE scaling for longer contexts from the object at `key`. Known types change angles, and some multiply scores;
 * the work is the same, so `run` and its reference compute without them, and a note says so. Unknown types may change
 * more and are refused. */
static enum status read_rope_type(const struct hf_reader *r, const char *key)
{
    struct json_node scaling, type_node;
    const char *type;
    if (!hf_has_value_to_read(r, key))
        return STATUS_OK;
    enum status status = json_get_object(r->root, key, &scaling, r->diag);
    if (status != STATUS_OK)
        return status;
    scaling = hf_rope_parameters_of_full_layers(scaling);
    const char *name = json_find_member(scaling, "rope_type").value != NULL ? "rope_type" : "type";
    type_node = json_find_member(scaling, name);
    if (type_node.value == NULL && json_find_member(scaling, "factor").value == NULL)
        return STATUS_OK; /* rope_parameters that have only a base */
    status = json_get_string(scaling, name, &type, r->diag);
    if (status != STATUS_OK || strcmp(type, "default") == 0)
        return status;
    struct json_node at = json_find_member(r->root, key);
    static const char *const known[] = {"llama3", "yarn", "linear", "longrope", "su"};
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        found = found || strcmp(type, known[i]) == 0;
    if (!found)
        return json_error(at, r->diag,
                          "RoPE scaling of type '%s' is not known: llama3, yarn, linear, longrope "
                          "and su change angles and no work; --ignore %s models the step without "
                          "it",
                          type, key);
    diag_note(
        r->diag, json_loc(at),
        "%s: RoPE scaling of type '%s' changes angles%s and not the work: predictions hold, but "
        "`run` and the reference of its check ignore it",
        key, type, rope_type_scales_scores(type) ? " and the scale of scores," : "");
    return strcmp(type, "yarn") == 0 ? set_rope_scaled_from_yarn(r, scaling) : STATUS_OK;
}

static enum status read_rope(const struct hf_reader *r)
{
    struct json_node holder;
    enum status status = read_rope_type(r, "rope_scaling");
    if (status == STATUS_OK)
        status = read_rope_type(r, "rope_parameters");
    r->t->positions = POSITIONS_ROPE;
    if (status == STATUS_OK)
        status = hf_find_rope_theta_holder(r, &holder);
    if (status == STATUS_OK)
        status = read_rotary_share(r, holder);
    return status == STATUS_OK ? hf_read_rope_theta(r) : status;
}

/* ---- sizes, activations, biases and norms ---- */

static enum status set_head_dim_from_hidden(const struct hf_reader *r, const char *hidden_key)
{
    struct transformer *t = r->t;
    if (t->hidden % t->heads != 0)
        return json_error(json_find_member(r->root, hidden_key), r->diag,
                          "%" PRId64 " does not divide by %" PRId64
                          " heads, and there is no head_dim: %" PRId64 " would do",
                          t->hidden, t->heads, (t->hidden / t->heads + 1) * t->heads);
    t->head_dim = t->hidden / t->heads;
    return STATUS_OK;
}

/* Reads the size at `key` into the field `name`. otherwise: the value if the key is absent; 0: the key is required. */
static enum status read_size_or_default(const struct hf_reader *r, const char *key,
                                        const char *name, int64_t otherwise)
{
    if (otherwise > 0 && !hf_has_value(r, key)) {
        *transformer_field_integer_pointer(r->t, transformer_field_find(name)) = otherwise;
        return STATUS_OK;
    }
    return hf_read_size(r, key, name);
}

static enum status read_heads(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    const struct hf_family *f = r->family;
    enum status status = read_size_or_default(r, "num_attention_heads", "heads", f->heads);
    if (status != STATUS_OK)
        return status;
    /* a key that is null, or absent in a family where it is optional, means "as many as heads" */
    if (hf_has_value(r, "num_key_value_heads") ||
        !(f->kv_heads_optional || hf_is_present_or_null(r, "num_key_value_heads")))
        status = read_size_or_default(r, "num_key_value_heads", "kv_heads", f->kv_heads);
    else
        t->kv_heads = t->heads;
    if (status != STATUS_OK)
        return status;
    const bool older =
        !hf_has_value(r, "head_dim") && f->bit == HF_NEMOTRON && hf_has_value(r, "kv_channels");
    if (older || hf_has_value(r, "head_dim") || f->head_dim_required || f->head_dim > 0)
        return read_size_or_default(r, older ? "kv_channels" : "head_dim", "head_dim", f->head_dim);
    return set_head_dim_from_hidden(r, "hidden_size");
}

/* Reads the activation: with a gate it must be silu or gelu's tanh form; without a gate, gelu's tanh form or the square
 * of ReLU. */
static enum status read_activation(const struct hf_reader *r)
{
    static const struct {
        const char *name;
        bool gated;
        enum activation activation;
    } known[] = {
        {"silu", true, ACTIVATION_SWIGLU},
        {"swish", true, ACTIVATION_SWIGLU},
        {"gelu_pytorch_tanh", true, ACTIVATION_GEGLU},
        {"gelu_new", true, ACTIVATION_GEGLU},
        {"gelu_pytorch_tanh", false, ACTIVATION_GELU},
        {"gelu_new", false, ACTIVATION_GELU},
        {"relu2", false, ACTIVATION_RELU2},
    };
    const char *key = r->family->activation_key != NULL ? r->family->activation_key : "hidden_act",
               *act;
    const bool gated =
        transformer_has_gate(&(struct transformer){.activation = r->family->activation});
    r->t->activation = r->family->activation;
    if (!hf_has_value(r, key))
        return STATUS_OK;
    enum status status = json_get_string(r->root, key, &act, r->diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].gated != gated || strcmp(act, known[i].name) != 0)
            continue;
        r->t->activation = known[i].activation;
        return STATUS_OK;
    }
    return json_error(json_find_member(r->root, key), r->diag,
                      gated ? "activation '%s' is not modelled in a gated FFN: silu and "
                              "gelu_pytorch_tanh are"
                            : "activation '%s' is not modelled in an FFN without a gate: "
                              "gelu_pytorch_tanh and relu2 are",
                      act);
}

static enum status read_biases(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    bool bias = false, out = false;
    enum status status = read_bool_or(r, "attention_bias", r->family->attention_bias, &bias);
    if (status == STATUS_OK)
        status = read_bool_or(r, "attention_out_bias",
                              bias && !r->family->attention_bias_is_qkv_only, &out);
    t->bias_qkv = bias || r->family->bias_qkv;
    t->bias_o = out;
    t->fused_products = r->family->bit == HF_PHI3;
    /* Phi-4-mini has mlp_bias, but no class reads it */
    if (status == STATUS_OK && r->family->bit != HF_PHI3)
        status = read_bool_or(r, "mlp_bias", false, &t->bias_ffn);
    if (status == STATUS_OK && r->family->bit == HF_STARCODER2) {
        status = read_bool_or(r, "use_bias", true, &bias);
        t->bias_qkv = t->bias_o = t->bias_ffn = bias;
    }
    return status;
}

static enum status read_norms(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    const struct hf_family *f = r->family;
    const char *key = f->eps_key != NULL ? f->eps_key : "rms_norm_eps";
    t->norm = f->norm;
    t->norm_place = f->norm_place;
    t->qk_norm = f->qk_norm;
    t->qk_norm_wide = f->qk_norm_wide;
    t->norm_eps = f->norm_eps > 0 ? f->norm_eps : 1e-6;
    return hf_has_value(r, key) ? json_get_double(r->root, key, 0, 1, &t->norm_eps, r->diag)
                                : STATUS_OK;
}

/* Reads a model of any family but gpt2. */
static enum status read_family_but_gpt2(const struct hf_reader *r)
{
    static const struct {
        const char *key, *field;
    } sizes[] = {
        {"hidden_size", "hidden"},
        {"num_hidden_layers", "layers"},
        {"intermediate_size", "ffn"},
    };
    static enum status (*const readers[])(const struct hf_reader *) = {
        read_heads, read_activation, hf_read_windows, read_rope, hf_read_rotating_layers,
        read_norms, read_biases,
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(sizes) && status == STATUS_OK; i++)
        status = hf_read_size(r, sizes[i].key, sizes[i].field);
    if (status == STATUS_OK)
        status = read_size_or_default(r, "vocab_size", "vocab", r->family->vocab);
    for (size_t i = 0; i < ARRAY_LEN(readers) && status == STATUS_OK; i++)
        status = readers[i](r);
    if (status == STATUS_OK && hf_has_value(r, "max_position_embeddings"))
        status = hf_read_size(r, "max_position_embeddings", "max_positions");
    if (status == STATUS_OK && r->family->bit == HF_EXPERTS)
        status = hf_read_experts(r);
    return status;
}

static enum status read_gpt2(const struct hf_reader *r)
{
    struct transformer *t = r->t;
    static const struct {
        const char *key, *field;
    } sizes[] = {
        {"n_embd", "hidden"},    {"n_layer", "layers"},
        {"n_head", "heads"},     {"n_positions", "max_positions"},
        {"vocab_size", "vocab"},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(sizes) && status == STATUS_OK; i++)
        status = hf_read_size(r, sizes[i].key, sizes[i].field);
    if (status != STATUS_OK)
        return status;
    t->kv_heads = t->heads;
    t->positions = POSITIONS_LEARNED;
    t->norm = NORM_LAYERNORM;
    t->bias_qkv = t->bias_o = t->bias_ffn = true;
    t->ffn = 4 * t->hidden;
    if (hf_has_value(r, "n_inner"))
        status = hf_read_size(r, "n_inner", "ffn");
    if (status == STATUS_OK)
        status = set_head_dim_from_hidden(r, "n_embd");
    t->norm_eps = 1e-5;
    if (status == STATUS_OK && hf_has_value(r, "layer_norm_epsilon"))
        status = json_get_double(r->root, "layer_norm_epsilon", 0, 1, &t->norm_eps, r->diag);
    const char *act = "gelu_new";
    if (status == STATUS_OK && hf_has_value(r, "activation_function"))
        status = json_get_string(r->root, "activation_function", &act, r->diag);
    if (status == STATUS_OK && strcmp(act, "gelu_new") != 0 &&
        strcmp(act, "gelu_pytorch_tanh") != 0)
        return json_error(json_find_member(r->root, "activation_function"), r->diag,
                          "activation '%s' is not modelled: gelu_new and gelu_pytorch_tanh are",
                          act);
    t->activation = ACTIVATION_GELU;
    if (status == STATUS_OK)
        status =
            check_switch_has_value(r, "scale_attn_weights", true, "attention without 1/sqrt(d)");
    if (status == STATUS_OK)
        status = check_switch_has_value(r, "scale_attn_by_inverse_layer_idx", false,
                                        "attention scaled by layer");
    return status;
}

/* ---- the whole file ---- */

static const struct hf_family *family_of_type(const char *type)
{
    for (size_t i = 0; i < HF_FAMILY_COUNT; i++)
        if (strcmp(type, hf_families[i].model_type) == 0)
            return &hf_families[i];
    return NULL;
}

/* Returns the member text_config if the file describes a larger model around a text model of a known family; else the
 * root. */
static struct json_node text_model_of(struct json_node root)
{
    struct json_node inner = json_find_member(root, "text_config");
    const char *outer_type, *type;
    if (json_get_string(root, "model_type", &outer_type, NULL) != STATUS_OK ||
        !json_is_object(inner) || json_get_string(inner, "model_type", &type, NULL) != STATUS_OK ||
        family_of_type(outer_type) != NULL || family_of_type(type) == NULL)
        return root;
    return inner;
}

static enum status find_family(struct json_node root, const struct hf_family **family,
                               const char *ignore, struct diag *diag)
{
    const char *type;
    enum status status = json_get_string(root, "model_type", &type, diag);
    if (status != STATUS_OK)
        return status;
    *family = family_of_type(type);
    if (*family != NULL)
        return STATUS_OK;
    struct json_node at = json_find_member(root, "model_type");
    if (hf_proxy_has_family(type))
        return hf_proxy_refuse_family(root, type, ignore, diag);
    if (strstr(type, "moe") != NULL)
        return json_error(at, diag,
                          "'%s' is a mixture of experts, which is not modelled: only dense models "
                          "are",
                          type);
    const char *names[HF_FAMILY_COUNT];
    struct text all = {0};
    for (size_t i = 0; i < HF_FAMILY_COUNT; i++) {
        names[i] = hf_families[i].model_type;
        text_printf(&all, "%s%s",
                    i == 0                     ? ""
                    : i + 1 == HF_FAMILY_COUNT ? " and "
                                               : ", ",
                    names[i]);
    }
    const char *nearest = diag_nearest(type, names, HF_FAMILY_COUNT);
    json_error(at, diag, "family '%s' is not modelled: %s are%s%s%s", type, all.data,
               nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
               nearest != NULL ? "'?" : "");
    text_release(&all);
    return STATUS_BAD_INPUT;
}

/* True if the key caps scores or logits, so that the model is not modelled. In Gemma 2 they are capped even if the key
 * is absent. False if the caller ignores the key. */
static bool is_key_of_logit_cap(const struct hf_reader *r, const char *key)
{
    bool absent = !hf_is_present_or_null(r, key) && (r->family->parts & HF_PART_SOFT_CAPS) != 0;
    return r->family->bit == HF_GEMMA && !hf_is_ignored(r, key) && (absent || hf_has_value(r, key));
}

/* Returns, as bits of enum hf_unmodelled_part, the parts of the model that are not modelled. inner: r->root is the text
 * model of a larger model, whose other parts are not modelled. */
static unsigned unmodelled_parts_of(const struct hf_reader *r, bool inner)
{
    unsigned parts = r->family->parts & ~(unsigned)HF_PART_SOFT_CAPS;
    if (is_key_of_logit_cap(r, "attn_logit_softcapping") ||
        is_key_of_logit_cap(r, "final_logit_softcapping"))
        parts |= HF_PART_SOFT_CAPS;
    /* Llama 4's layers without rotary positions and with chunks are modelled; other inputs get a note */
    if (r->family->bit == HF_EXPERTS)
        return parts & ~(unsigned)(HF_PART_UNROTATED_LAYERS | HF_PART_CHUNKED_ATTENTION);
    return inner ? parts | HF_PART_OTHER_ENCODERS : parts;
}

static enum status read_family(const struct hf_reader *r)
{
    enum status status = check_keys(r);
    if (status == STATUS_OK)
        status = check_switch_has_value(r, "add_cross_attention", false, "cross-attention");
    if (status == STATUS_OK)
        status = check_switch_has_value(r, "is_encoder_decoder", false, "an encoder");
    if (status == STATUS_OK)
        status = check_switch_has_value(r, "use_bidirectional_attention", false,
                                        "attention to later tokens");
    if (status == STATUS_OK)
        status =
            read_bool_or(r, "tie_word_embeddings", r->family->tied_by_default, &r->t->tied_head);
    const char *dropout = r->family->bit == HF_GPT2 ? "attn_pdrop" : "attention_dropout";
    if (status == STATUS_OK && hf_has_value(r, dropout))
        status = json_get_double(r->root, dropout, 0, 1, &r->t->attention_dropout, r->diag);
    if (status != STATUS_OK)
        return status;
    return r->family->bit == HF_GPT2 ? read_gpt2(r) : read_family_but_gpt2(r);
}

/* Returns the last part of the path that ends before `end`: the text after its last '/'. */
static const char *last_path_part(struct arena *arena, const char *path, const char *end)
{
    const char *begin = end;
    while (begin > path && begin[-1] != '/')
        begin--;
    return arena_text(arena, begin, (size_t)(end - begin));
}

/* Returns the name for the model in a file. It is the file's path, unless the file is named config.json: then it is the
 * last part of the name that the file has (_name_or_path); without one, the name of the file's folder; without one,
 * "FAMILY of config.json". */
static const char *model_name_of(struct arena *arena, const char *path, struct json_node root)
{
    const char *end = path + strlen(path), *said = "", *family = "model";
    if (strcmp(last_path_part(arena, path, end), "config.json") != 0)
        return arena_text(arena, path, strlen(path));
    if (json_is_string(json_find_member(root, "_name_or_path")))
        json_get_string(root, "_name_or_path", &said, NULL);
    while (said[0] != '\0' && said[strlen(said) - 1] == '/')
        said = arena_text(arena, said, strlen(said) - 1);
    const char *name = last_path_part(arena, said, said + strlen(said));
    if (name[0] == '\0' && end - path > (ptrdiff_t)strlen("/config.json"))
        name = last_path_part(arena, path, end - strlen("/config.json"));
    if (name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return name;
    if (json_is_string(json_find_member(root, "model_type")))
        json_get_string(root, "model_type", &family, NULL);
    return arena_printf(arena, "%s of config.json", family);
}

enum status hf_config_read(struct transformer *t, struct arena *arena, const char *name,
                           struct json_node root, const char *ignore, bool dense, struct diag *diag)
{
    *t = (struct transformer){0};
    t->name = arena_text(arena, name, strlen(name));
    if (!json_is_object(root))
        return json_error(root, diag, "expected an object: a Hugging Face config.json");
    const char *type = NULL, *model = model_name_of(arena, name, root);
    t->name = model;
    if (dense && json_get_string(root, "model_type", &type, NULL) == STATUS_OK &&
        hf_proxy_has_family(type))
        return hf_proxy_read(t, arena, model, root, type, ignore, diag);
    struct hf_reader r = {
        .t = t, .root = text_model_of(root), .ignored_keys = ignore, .diag = diag};
    enum status status = find_family(r.root, &r.family, ignore, diag);
    if (status == STATUS_OK)
        status = read_family(&r);
    if (status != STATUS_OK)
        return status;
    t->source = arena_printf(arena, "Hugging Face config (%s)", name);
    const unsigned parts = unmodelled_parts_of(&r, r.root.value != root.value);
    /* A mixture of experts is not refused here: its missing parts are stored, and whoever makes a schedule of it
     * refuses them (transformer_put_unmodelled()). */
    if (r.family->bit == HF_EXPERTS) {
        if (r.root.value != root.value)
            diag_note(diag, json_loc(r.root),
                      "text_config: the text model alone is read, as in training on text; encoders "
                      "of pictures are left out");
        t->unmodelled_parts_text = hf_proxy_describe_missing_parts(arena, parts);
        return STATUS_OK;
    }
    if (parts != 0)
        hf_proxy_mark_as_dense_proxy(t, arena, model, parts);
    if (parts != 0 && !dense)
        return hf_proxy_refuse_unmodelled_parts(json_find_member(root, "model_type"), parts, t,
                                                diag);
    return STATUS_OK;
}

enum status hf_config_parse(struct transformer *t, struct arena *arena, const char *name,
                            const char *data, size_t size, const char *ignore, struct diag *diag)
{
    *t = (struct transformer){0};
    struct json json = {0};
    enum status status = json_parse(&json, name, data, size, diag);
    if (status == STATUS_OK)
        status = hf_config_read(t, arena, name, json_root(&json), ignore, false, diag);
    if (status == STATUS_OK)
        status = transformer_check(t, (struct loc){name, 0, 0}, diag);
    json_release(&json);
    return status;
}
