#include "models/hf_config.h"

#include "models/hf_keys.h"
#include "models/hf_proxy.h"
#include "models/transformer_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- one file being read ---- */

struct reader {
    struct transformer *t;
    struct json_node root;
    const struct hf_family *family;
    const char *ignore;
    struct diag *diag;
};

/* Returns the next word of a list separated by commas, without blanks around it; NULL at the end. */
static const char *next_ignored(const char **list, size_t *size)
{
    const char *at = *list;
    while (at != NULL && (*at == ',' || *at == ' '))
        at++;
    if (at == NULL || *at == '\0')
        return NULL;
    *size = strcspn(at, ",");
    *list = at + *size;
    while (*size > 0 && at[*size - 1] == ' ')
        (*size)--;
    return at;
}

static bool ignored(const struct reader *r, const char *key)
{
    const char *list = r->ignore, *word;
    size_t size;
    while ((word = next_ignored(&list, &size)) != NULL)
        if (strlen(key) == size && memcmp(word, key, size) == 0)
            return true;
    return false;
}

/* json_find() takes null for absent; a few keys mean different things by the two. */
static bool is_written(const struct reader *r, const char *key)
{
    const char *name;
    for (size_t i = 0; i < json_members(r->root); i++) {
        json_member(r->root, i, &name);
        if (strcmp(name, key) == 0)
            return true;
    }
    return false;
}

static bool has(const struct reader *r, const char *key)
{
    return json_find(r->root, key).value != NULL;
}

/* True if a key is present and not ignored by the caller. */
static bool counts(const struct reader *r, const char *key)
{
    return has(r, key) && !ignored(r, key);
}

/* Reads the size that the field of that name holds, within the field's limits. */
static enum status get_size(const struct reader *r, const char *key, const char *name)
{
    const struct transformer_field *field = transformer_field_find(name);
    assert(field != NULL);
    return json_get_i64(r->root, key, 1, (int64_t)field->high, transformer_field_size(r->t, field),
                        r->diag);
}

static enum status get_bool(const struct reader *r, const char *key, bool absent, bool *out)
{
    *out = absent;
    return has(r, key) ? json_get_bool(r->root, key, out, r->diag) : STATUS_OK;
}

/* Fails unless a switch has the value `required`, or is absent, which means the same. */
static enum status require_switch(const struct reader *r, const char *key, bool required,
                                  const char *meaning)
{
    bool value;
    if (!counts(r, key))
        return STATUS_OK;
    enum status status = json_get_bool(r->root, key, &value, r->diag);
    if (status == STATUS_OK && value != required)
        return json_error(json_find(r->root, key), r->diag, "%s, which is not modelled: only %s is",
                          meaning, required ? "true" : "false");
    return status;
}

/* ---- the keys as a whole ---- */

static enum status check_key(const struct reader *r, struct json_node node, const char *name)
{
    const struct hf_key *key = hf_key_find(name, strlen(name), r->family->bit);
    if (key == NULL && ignored(r, name))
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
    if (node.value == NULL) /* null: not set */
        return STATUS_OK;
    if (key->use == HF_KEY_EXPERTS)
        return json_error(node, r->diag,
                          "a mixture of experts is not modelled: only dense models are");
    if (key->use == HF_KEY_REFUSED && !ignored(r, name))
        return json_error(node, r->diag,
                          "not modelled: remove it, or --ignore %s models the step without it",
                          name);
    return STATUS_OK;
}

static enum status check_ignored(const struct reader *r)
{
    const char *list = r->ignore, *word;
    size_t size;
    while ((word = next_ignored(&list, &size)) != NULL) {
        const struct hf_key *key = hf_key_find(word, size, r->family->bit);
        if (key != NULL && !key->ignorable)
            return json_error(r->root, r->diag, "'%.*s' cannot be ignored: the work depends on it",
                              (int)size, word);
        bool found = key != NULL; /* a known key may be absent: one list for several models */
        const char *name;
        for (size_t i = 0; i < json_members(r->root) && !found; i++) {
            json_member(r->root, i, &name);
            found = strlen(name) == size && memcmp(word, name, size) == 0;
        }
        if (!found)
            return json_error(r->root, r->diag, "no key '%.*s' to ignore", (int)size, word);
    }
    return STATUS_OK;
}

static enum status check_keys(const struct reader *r)
{
    enum status status = check_ignored(r);
    for (size_t i = 0; i < json_members(r->root) && status == STATUS_OK; i++) {
        const char *name;
        struct json_node node = json_member(r->root, i, &name);
        status = check_key(r, node, name);
    }
    return status;
}

/* ---- what attention sees ---- */

#define DEFAULT_WINDOW 4096    /* sliding_window of MistralConfig, Qwen2Config and Qwen3Config */
#define DEFAULT_FULL_LAYERS 28 /* max_window_layers of Qwen2Config and Qwen3Config */

/* Whether the layers of the file may have windows at all. */
static enum status read_window_switch(const struct reader *r, bool *on)
{
    *on = !r->family->window_needs_switch;
    if (!counts(r, "use_sliding_window"))
        return STATUS_OK;
    return json_get_bool(r->root, "use_sliding_window", on, r->diag);
}

/* Reads the window, and the number of layers before the first one that has it. */
static enum status read_window(const struct reader *r)
{
    bool on;
    enum status status = read_window_switch(r, &on);
    if (status != STATUS_OK || !on || ignored(r, "sliding_window"))
        return status;
    if (has(r, "sliding_window")) {
        if (!r->family->has_windows)
            return json_error(
                json_find(r->root, "sliding_window"), r->diag,
                "Transformers' Llama has no windows: remove it (or --ignore sliding_window) to "
                "model "
                "full attention, or write \"model_type\": \"mistral\" for windows in all layers");
        status = get_size(r, "sliding_window", "attention_window");
    } else if (!is_written(r, "sliding_window") && r->family->has_windows) {
        r->t->attention_window = DEFAULT_WINDOW;
    }
    if (status != STATUS_OK || !r->family->window_needs_switch)
        return status;
    r->t->window_from_layer = DEFAULT_FULL_LAYERS;
    if (counts(r, "max_window_layers"))
        return json_get_i64(r->root, "max_window_layers", 0, INT32_MAX, &r->t->window_from_layer,
                            r->diag);
    return STATUS_OK;
}

/* Reads layer_types as slides[layer]: "sliding_attention" or not. */
static enum status read_slides(const struct reader *r, struct json_node types, bool *slides)
{
    for (size_t i = 0; i < json_count(types); i++) {
        const char *type;
        enum status status = json_as_string(json_at(types, i), &type, r->diag);
        if (status != STATUS_OK)
            return status;
        slides[i] = strcmp(type, "sliding_attention") == 0;
        if (!slides[i] && strcmp(type, "full_attention") != 0)
            return json_error(json_at(types, i), r->diag,
                              "layers of '%s' are not modelled: full_attention and "
                              "sliding_attention are; --ignore "
                              "layer_types models the layers as without this key",
                              type);
    }
    return STATUS_OK;
}

static bool windows_are(const struct transformer *t, const bool *slides)
{
    for (int64_t l = 0; l < t->layers; l++)
        if ((transformer_window(t, l) > 0) != slides[l])
            return false;
    return true;
}

/* Sets the first layer with a window and the period of the full ones so that they make this list. */
static bool find_period(struct transformer *t, const bool *slides)
{
    int64_t first = 0, full;
    while (first < t->layers && !slides[first])
        first++;
    for (full = first; full < t->layers && slides[full];)
        full++;
    for (int64_t every = full < t->layers ? full + 1 : 0; every != 1;
         every = every == 0 ? 1 : every - 1) {
        t->full_attention_every = every;
        for (int from_first = 0; from_first < 2; from_first++) {
            t->window_from_layer = from_first ? first : 0;
            if ((every == 0 || (full + 1) % every == 0) && windows_are(t, slides))
                return true;
        }
    }
    return false;
}

static enum status set_layer_types(const struct reader *r, struct json_node types,
                                   const bool *slides)
{
    struct transformer *t = r->t;
    bool any = false;
    for (int64_t l = 0; l < t->layers; l++)
        any = any || slides[l];
    if (!any) {
        t->attention_window = t->window_from_layer = 0;
        return STATUS_OK;
    }
    if (t->attention_window == 0)
        return json_error(types, r->diag,
                          "has layers of 'sliding_attention', and no window is set: give "
                          "sliding_window%s, or --ignore "
                          "layer_types for full attention",
                          r->family->window_needs_switch ? " and \"use_sliding_window\": true"
                                                         : "");
    if (!find_period(t, slides))
        return json_error(types, r->diag,
                          "this order of layers is not modelled: from some layer on all must have "
                          "a window, or all but "
                          "every N-th; --ignore layer_types models the layers as without this key");
    return STATUS_OK;
}

static enum status read_layer_types(const struct reader *r)
{
    struct json_node types;
    if (!counts(r, "layer_types"))
        return STATUS_OK;
    enum status status = json_get_array(r->root, "layer_types", &types, r->diag);
    if (status != STATUS_OK)
        return status;
    if (json_count(types) != (size_t)r->t->layers)
        return json_error(types, r->diag, "it lists %zu layers, and the model has %" PRId64,
                          json_count(types), r->t->layers);
    bool *slides = heap_zalloc((size_t)r->t->layers, sizeof *slides);
    status = read_slides(r, types, slides);
    if (status == STATUS_OK)
        status = set_layer_types(r, types, slides);
    free(slides);
    return status;
}

/* Reads the windows of the layers; a window that no layer has is dropped. */
static enum status read_windows(const struct reader *r)
{
    struct transformer *t = r->t;
    enum status status = read_window(r);
    if (status == STATUS_OK)
        status = read_layer_types(r);
    if (status == STATUS_OK && transformer_windowed_layers(t) == 0)
        t->attention_window = t->window_from_layer = t->full_attention_every = 0;
    return status;
}

/* Angles scaled for longer contexts change no shape and no work. A run computes without them, and so does
 * the reference that it is checked against: a note says so. Types that we do not know may change more. */
static enum status read_rope_type(const struct reader *r, const char *key)
{
    struct json_node scaling, type_node;
    const char *type;
    if (!counts(r, key))
        return STATUS_OK;
    enum status status = json_get_object(r->root, key, &scaling, r->diag);
    if (status != STATUS_OK)
        return status;
    const char *name = json_find(scaling, "rope_type").value != NULL ? "rope_type" : "type";
    type_node = json_find(scaling, name);
    if (type_node.value == NULL && json_find(scaling, "factor").value == NULL)
        return STATUS_OK; /* rope_parameters with only a base */
    status = json_get_string(scaling, name, &type, r->diag);
    if (status != STATUS_OK || strcmp(type, "default") == 0)
        return status;
    struct json_node at = json_find(r->root, key);
    if (strcmp(type, "llama3") != 0 && strcmp(type, "yarn") != 0 && strcmp(type, "linear") != 0)
        return json_error(at, r->diag,
                          "RoPE scaling of type '%s' is not known: llama3, yarn and linear change "
                          "angles and no work; --ignore %s models the step without it",
                          type, key);
    diag_note(
        r->diag, json_loc(at),
        "%s: RoPE scaling of type '%s' changes angles and not the amount of work: predictions "
        "hold, and `run` and the reference of its check both leave it out",
        key, type);
    return STATUS_OK;
}

static enum status read_rope(const struct reader *r)
{
    enum status status = read_rope_type(r, "rope_scaling");
    if (status == STATUS_OK)
        status = read_rope_type(r, "rope_parameters");
    if (status != STATUS_OK)
        return status;
    r->t->positions = POSITIONS_ROPE;
    r->t->rope_theta = 10000; /* of all four classes */
    struct json_node holder = r->root;
    if (!has(r, "rope_theta") && has(r, "rope_parameters")) {
        status = json_get_object(r->root, "rope_parameters", &holder, r->diag);
        if (status != STATUS_OK)
            return status;
    }
    if (json_find(holder, "rope_theta").value != NULL)
        status = json_get_double(holder, "rope_theta", 1e-3, 1e15, &r->t->rope_theta, r->diag);
    return status;
}

/* ---- sizes ---- */

static enum status divide_heads(const struct reader *r, const char *hidden_key)
{
    struct transformer *t = r->t;
    if (t->hidden % t->heads != 0)
        return json_error(json_find(r->root, hidden_key), r->diag,
                          "%" PRId64 " does not divide by %" PRId64
                          " heads, and there is no head_dim: %" PRId64 " would do",
                          t->hidden, t->heads, (t->hidden / t->heads + 1) * t->heads);
    t->head_dim = t->hidden / t->heads;
    return STATUS_OK;
}

static enum status read_gated_heads(const struct reader *r)
{
    struct transformer *t = r->t;
    enum status status = get_size(r, "num_attention_heads", "heads");
    if (status != STATUS_OK)
        return status;
    /* a written null is how files say "as many as heads" */
    if (has(r, "num_key_value_heads") ||
        !(r->family->kv_heads_optional || is_written(r, "num_key_value_heads")))
        status = get_size(r, "num_key_value_heads", "kv_heads");
    else
        t->kv_heads = t->heads;
    if (status != STATUS_OK)
        return status;
    if (has(r, "head_dim") || !r->family->head_dim_optional)
        return get_size(r, "head_dim", "head_dim");
    return divide_heads(r, "hidden_size");
}

static enum status read_gated_activation(const struct reader *r)
{
    const char *act = "silu"; /* of all four classes */
    enum status status = STATUS_OK;
    if (has(r, "hidden_act"))
        status = json_get_string(r->root, "hidden_act", &act, r->diag);
    if (status == STATUS_OK && strcmp(act, "silu") != 0 && strcmp(act, "swish") != 0)
        return json_error(json_find(r->root, "hidden_act"), r->diag,
                          "activation '%s' is not modelled in a gated FFN: only silu is", act);
    r->t->activation = ACTIVATION_SWIGLU;
    return status;
}

/* llama, mistral, qwen2, qwen3 */
static enum status read_gated(const struct reader *r)
{
    struct transformer *t = r->t;
    static const struct {
        const char *key, *field;
    } sizes[] = {
        {"hidden_size", "hidden"},
        {"num_hidden_layers", "layers"},
        {"intermediate_size", "ffn"},
        {"vocab_size", "vocab"},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(sizes) && status == STATUS_OK; i++)
        status = get_size(r, sizes[i].key, sizes[i].field);
    if (status == STATUS_OK)
        status = read_gated_heads(r);
    if (status == STATUS_OK)
        status = read_gated_activation(r);
    if (status == STATUS_OK)
        status = read_windows(r);
    if (status == STATUS_OK)
        status = read_rope(r);
    if (status == STATUS_OK && has(r, "max_position_embeddings"))
        status = get_size(r, "max_position_embeddings", "max_positions");
    t->norm = NORM_RMSNORM;
    t->norm_eps = 1e-6; /* of all four classes */
    if (status == STATUS_OK && has(r, "rms_norm_eps"))
        status = json_get_double(r->root, "rms_norm_eps", 0, 1, &t->norm_eps, r->diag);
    bool bias = false;
    if (status == STATUS_OK)
        status = get_bool(r, "attention_bias", false, &bias);
    t->bias_qkv = bias || r->family->bias_qkv;
    t->bias_o = bias;
    if (status == STATUS_OK)
        status = get_bool(r, "mlp_bias", false, &t->bias_ffn);
    t->qk_norm = r->family->qk_norm;
    return status;
}

static enum status read_gpt2(const struct reader *r)
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
        status = get_size(r, sizes[i].key, sizes[i].field);
    if (status != STATUS_OK)
        return status;
    t->kv_heads = t->heads;
    t->positions = POSITIONS_LEARNED;
    t->norm = NORM_LAYERNORM;
    t->bias_qkv = t->bias_o = t->bias_ffn = true;
    t->ffn = 4 * t->hidden;
    if (has(r, "n_inner"))
        status = get_size(r, "n_inner", "ffn");
    if (status == STATUS_OK)
        status = divide_heads(r, "n_embd");
    t->norm_eps = 1e-5;
    if (status == STATUS_OK && has(r, "layer_norm_epsilon"))
        status = json_get_double(r->root, "layer_norm_epsilon", 0, 1, &t->norm_eps, r->diag);
    const char *act = "gelu_new";
    if (status == STATUS_OK && has(r, "activation_function"))
        status = json_get_string(r->root, "activation_function", &act, r->diag);
    if (status == STATUS_OK && strcmp(act, "gelu_new") != 0 &&
        strcmp(act, "gelu_pytorch_tanh") != 0)
        return json_error(json_find(r->root, "activation_function"), r->diag,
                          "activation '%s' is not modelled: gelu_new and gelu_pytorch_tanh are",
                          act);
    t->activation = ACTIVATION_GELU;
    if (status == STATUS_OK)
        status = require_switch(r, "scale_attn_weights", true, "attention without 1/sqrt(d)");
    if (status == STATUS_OK)
        status = require_switch(r, "scale_attn_by_inverse_layer_idx", false,
                                "attention scaled by layer");
    return status;
}

/* ---- the whole file ---- */

static enum status find_family(struct json_node root, const struct hf_family **family,
                               struct diag *diag)
{
    const char *type;
    enum status status = json_get_string(root, "model_type", &type, diag);
    if (status != STATUS_OK)
        return status;
    const char *names[HF_FAMILIES];
    for (size_t i = 0; i < HF_FAMILIES; i++) {
        names[i] = hf_families[i].model_type;
        if (strcmp(type, hf_families[i].model_type) == 0) {
            *family = &hf_families[i];
            return STATUS_OK;
        }
    }
    struct json_node at = json_find(root, "model_type");
    if (hf_proxy_has(type))
        return hf_proxy_refuse(root, type, diag);
    if (strstr(type, "moe") != NULL)
        return json_error(at, diag,
                          "'%s' is a mixture of experts, which is not modelled: only dense models "
                          "are",
                          type);
    const char *nearest = diag_nearest(type, names, HF_FAMILIES);
    return json_error(at, diag,
                      "family '%s' is not modelled: llama, mistral, qwen2, qwen3 and gpt2 "
                      "are%s%s%s",
                      type, nearest != NULL ? "; did you mean '" : "",
                      nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

enum status hf_config_read(struct transformer *t, struct arena *arena, const char *name,
                           struct json_node root, const char *ignore, bool dense, struct diag *diag)
{
    *t = (struct transformer){0};
    t->name = arena_text(arena, name, strlen(name));
    struct reader r = {.t = t, .root = root, .ignore = ignore, .diag = diag};
    if (!json_is_object(root))
        return json_error(root, diag, "expected an object: a Hugging Face config.json");
    const char *type = NULL;
    if (dense && json_get_string(root, "model_type", &type, NULL) == STATUS_OK &&
        hf_proxy_has(type))
        return hf_proxy_read(t, arena, name, root, type, diag);
    enum status status = find_family(root, &r.family, diag);
    if (status == STATUS_OK)
        status = check_keys(&r);
    if (status == STATUS_OK)
        status = require_switch(&r, "add_cross_attention", false, "cross-attention");
    if (status == STATUS_OK)
        status = require_switch(&r, "is_encoder_decoder", false, "an encoder");
    if (status == STATUS_OK)
        status = get_bool(&r, "tie_word_embeddings", r.family->tied_by_default, &t->tied_head);
    if (status == STATUS_OK)
        status = r.family->bit == HF_GPT2 ? read_gpt2(&r) : read_gated(&r);
    t->source = arena_printf(arena, "Hugging Face config (%s)", name);
    return status;
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
