#include "models/transformer.h"

#include "base/text.h"
#include "models/transformer_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PARAMETERS INT64_C(1000000000000000) /* 16 bytes each still fit an int64_t */

/* ---- overrides and checks ---- */

enum status transformer_override(struct transformer *t, const char *name, const char *value,
                                 struct diag *diag)
{
    const struct loc at = {t->name, 0, 0};
    const struct transformer_field *field = transformer_field_find(name);
    if (field == NULL) {
        const char *names[TRANSFORMER_FIELDS];
        transformer_field_names(names);
        const char *nearest = diag_nearest(name, names, TRANSFORMER_FIELDS);
        if (nearest != NULL)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "a model has no field '%s': did you mean '%s'?", name, nearest);
        struct text fields = {0};
        for (size_t i = 0; i < TRANSFORMER_FIELDS; i++)
            text_printf(&fields, "%s%s", i > 0 ? ", " : "", names[i]);
        enum status status =
            diag_error(diag, at, STATUS_BAD_INPUT, "a model has no field '%s'; its fields are %s",
                       name, fields.data);
        text_release(&fields);
        return status;
    }
    char choices[64];
    int64_t size;
    double real;
    switch (field->kind) {
    case FIELD_SIZE:
        if (!parse_i64(value, strlen(value), &size) || (double)size < field->low ||
            (double)size > field->high)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s cannot be '%s': it is a whole number from %.0f to %.0f", name,
                              value, field->low, field->high);
        *transformer_field_size(t, field) = size;
        return STATUS_OK;
    case FIELD_REAL:
        if (!parse_double(value, strlen(value), &real) || !(real >= field->low) ||
            real > field->high)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s cannot be '%s': it is a number from %g to %g", name, value,
                              field->low, field->high);
        *transformer_field_real(t, field) = real;
        return STATUS_OK;
    case FIELD_CHOICE:
        if (!transformer_field_choose(t, field, value))
            return diag_error(diag, at, STATUS_BAD_INPUT, "%s cannot be '%s': it is one of %s",
                              name, value,
                              transformer_field_choices(field, choices, sizeof choices));
        return STATUS_OK;
    case FIELD_SWITCH:
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return diag_error(diag, at, STATUS_BAD_INPUT, "%s cannot be '%s': it is true or false",
                              name, value);
        *transformer_field_switch(t, field) = strcmp(value, "true") == 0;
        return STATUS_OK;
    case FIELD_KIND_COUNT:
        break;
    }
    assert(false && "a field of a kind that is not in the table");
    return STATUS_BAD_INPUT;
}

/* The next two functions return the divisor of n nearest to x, below and above. */
static int64_t divisor_below(int64_t n, int64_t x)
{
    int64_t d = x < n ? x : n;
    while (n % d != 0)
        d--;
    return d;
}

static int64_t divisor_above(int64_t n, int64_t x)
{
    int64_t d = x;
    while (d < n && n % d != 0)
        d++;
    return d < n ? d : n;
}

static enum status check_heads(const struct transformer *t, struct loc at, struct diag *diag)
{
    if (t->heads % t->kv_heads != 0) {
        int64_t below = divisor_below(t->heads, t->kv_heads);
        int64_t above = divisor_above(t->heads, t->kv_heads);
        if (below == above)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "kv_heads %" PRId64 " does not divide heads %" PRId64
                              ": the most it can be is %" PRId64,
                              t->kv_heads, t->heads, below);
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "kv_heads %" PRId64 " does not divide heads %" PRId64
                          ": the nearest that do are %" PRId64 " and %" PRId64,
                          t->kv_heads, t->heads, below, above);
    }
    if (t->positions == POSITIONS_ROPE && t->head_dim % 2 != 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "head_dim %" PRId64 " is odd, but RoPE rotates pairs of columns: %" PRId64
                          " would do",
                          t->head_dim, t->head_dim + 1);
    return STATUS_OK;
}

/* Checks the switches that only go with others. */
static enum status check_branches(const struct transformer *t, struct loc at, struct diag *diag)
{
    if (t->qk_norm_wide && !t->qk_norm)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "qk_norm_wide is true and qk_norm is false: it says over what the norms "
                          "of q and k go, so qk_norm=true is needed");
    if (t->norm_place != NORM_BEFORE && (t->bias_o || t->bias_ffn))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "norm_place is %s and %s is true: a bias before the norm that ends a "
                          "branch is not modelled; false would do",
                          norm_place_names[t->norm_place], t->bias_o ? "bias_o" : "bias_ffn");
    return STATUS_OK;
}

/* Fails unless a mixture of experts has its sizes, and a model without experts has none of them. */
static enum status check_experts(const struct transformer *t, struct loc at, struct diag *diag)
{
    const int64_t limit = 1 << 24; /* as of ffn */
    if (t->experts == 0) {
        if (t->experts_per_token > 0 || t->expert_ffn > 0 || t->shared_ffn > 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s is above 0 and experts is 0: a mixture of experts needs their "
                              "number, 128 for instance",
                              t->experts_per_token > 0 ? "experts_per_token"
                              : t->expert_ffn > 0      ? "expert_ffn"
                                                       : "shared_ffn");
        return STATUS_OK;
    }
    if (t->experts_per_token < 1 || t->experts_per_token > t->experts)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "experts_per_token is %" PRId64
                          ": it must be from 1 to experts, %" PRId64,
                          t->experts_per_token, t->experts);
    if (t->expert_ffn < 1 || t->expert_ffn * t->experts > limit || t->shared_ffn > limit)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "expert_ffn is %" PRId64 ": experts times expert_ffn must be from 1 to "
                          "%" PRId64,
                          t->expert_ffn, limit);
    if (!transformer_gated(t))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "activation is %s: experts have a gate, so swiglu or geglu is needed",
                          activation_names[t->activation]);
    if (t->router_groups > 0 && (t->experts % t->router_groups != 0 || t->router_groups_kept < 1 ||
                                 t->router_groups_kept > t->router_groups))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "router_groups is %" PRId64 " and router_groups_kept %" PRId64
                          ": the first must divide experts, %" PRId64 ", and the second be from 1 "
                          "to the first",
                          t->router_groups, t->router_groups_kept, t->experts);
    if (transformer_expert_layers(t) == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "no layer has experts: dense_layers is %" PRId64 " and experts_every is "
                          "%" PRId64 ", of %" PRId64 " layers",
                          t->dense_layers, t->experts_every, t->layers);
    return STATUS_OK;
}

static enum status check_latent(const struct transformer *t, struct loc at, struct diag *diag)
{
    if (t->kv_latent == 0) {
        if (t->q_latent > 0 || t->rope_dim > 0 || t->v_dim > 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "%s is above 0 and kv_latent is 0: latent attention needs kv_latent, "
                              "512 for instance",
                              t->q_latent > 0   ? "q_latent"
                              : t->rope_dim > 0 ? "rope_dim"
                                                : "v_dim");
        return STATUS_OK;
    }
    if (t->kv_heads != t->heads || t->qk_norm || t->bias_qkv)
        return diag_error(
            diag, at, STATUS_BAD_INPUT,
            "with kv_latent, kv_heads must equal heads, and qk_norm and bias_qkv must "
            "be false");
    if (t->rope_dim < 1 || t->rope_dim >= t->head_dim || t->rope_dim % 2 != 0 || t->v_dim < 1)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "rope_dim is %" PRId64 " and v_dim is %" PRId64
                          ": with kv_latent the first must be even and from 2 to head_dim - 1, and "
                          "the second at least 1",
                          t->rope_dim, t->v_dim);
    return STATUS_OK;
}

enum status transformer_check(const struct transformer *t, struct loc at, struct diag *diag)
{
    struct transformer copy = *t; /* the table's accessors give writable pointers */
    for (size_t i = 0; i < TRANSFORMER_FIELDS; i++) {
        const struct transformer_field *field = &transformer_fields[i];
        if (field->kind == FIELD_SIZE) {
            int64_t value = *transformer_field_size(&copy, field);
            if ((double)value < field->low || (double)value > field->high)
                return diag_error(diag, at, STATUS_BAD_INPUT,
                                  "%s is %" PRId64 ": it must be from %.0f to %.0f", field->name,
                                  value, field->low, field->high);
        } else if (field->kind == FIELD_REAL) {
            double value = *transformer_field_real(&copy, field);
            if (!(value >= field->low && value <= field->high))
                return diag_error(diag, at, STATUS_BAD_INPUT, "%s is %g: it must be from %g to %g",
                                  field->name, value, field->low, field->high);
        }
    }
    if (check_heads(t, at, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (t->positions == POSITIONS_ROPE && !(t->rope_theta > 0))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "rope_theta is %g: RoPE needs a base above 0, 10000 for instance",
                          t->rope_theta);
    if (t->positions == POSITIONS_LEARNED && t->max_positions < 1)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "max_positions is 0: learned positions need the number of their rows, "
                          "1 or more");
    if (t->attention_window == 0 && (t->window_from_layer > 0 || t->full_attention_every > 0))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "%s says which layers have no window, but attention_window is 0; set a "
                          "window, 4096 for instance",
                          t->window_from_layer > 0 ? "window_from_layer" : "full_attention_every");
    if (check_branches(t, at, diag) != STATUS_OK || check_experts(t, at, diag) != STATUS_OK ||
        check_latent(t, at, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    int64_t parameters = transformer_parameters(t);
    if (parameters > MAX_PARAMETERS)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the model has %.3g parameters: at most 10^15 are supported, so fewer "
                          "layers or smaller sizes are needed",
                          (double)parameters);
    return STATUS_OK;
}

/* ---- parameters ---- */

struct tensor_list {
    struct tensor_spec *out;
    size_t count, max;
};

static void add(struct tensor_list *list, bool present, const char *name, int64_t rows,
                int64_t cols)
{
    if (!present)
        return;
    if (list->count < list->max)
        list->out[list->count] = (struct tensor_spec){name, rows, cols};
    list->count++;
}

static void add_latent(struct tensor_list *list, const struct transformer *t)
{
    const int64_t q = transformer_q_width(t);
    const int64_t expanded = t->heads * (t->head_dim - t->rope_dim + t->v_dim);
    const bool low = t->q_latent > 0;
    add(list, low, "q_a.weight", t->q_latent, t->hidden);
    add(list, low, "q_a_norm.weight", t->q_latent, 1);
    add(list, low, "q_b.weight", q, t->q_latent);
    add(list, !low, "q.weight", q, t->hidden);
    add(list, true, "kv_a.weight", t->kv_latent + t->rope_dim, t->hidden);
    add(list, true, "kv_a_norm.weight", t->kv_latent, 1);
    add(list, true, "kv_b.weight", expanded, t->kv_latent);
}

static void add_attention(struct tensor_list *list, const struct transformer *t)
{
    const int64_t q = transformer_q_width(t), kv = transformer_kv_width(t);
    if (t->kv_latent > 0) {
        add_latent(list, t);
    } else {
        add(list, true, "wqkv.weight", q + 2 * kv, t->hidden);
        add(list, t->bias_qkv, "wqkv.bias", q + 2 * kv, 1);
        add(list, t->qk_norm, "q_norm.weight", t->qk_norm_wide ? q : t->head_dim, 1);
        add(list, t->qk_norm, "k_norm.weight", t->qk_norm_wide ? kv : t->head_dim, 1);
    }
    add(list, t->attention_sinks, "sinks", t->heads, 1);
    add(list, true, "wo.weight", t->hidden, t->kv_latent > 0 ? t->heads * t->v_dim : q);
    add(list, t->bias_o, "wo.bias", t->hidden, 1);
}

static void add_experts(struct tensor_list *list, const struct transformer *t)
{
    const int64_t up = t->experts * 2 * t->expert_ffn, down = t->experts * t->hidden;
    const bool shared = t->shared_ffn > 0;
    add(list, true, "router.weight", t->experts, t->hidden);
    add(list, t->router_bias, "router.bias", t->experts, 1);
    add(list, true, "experts.w13.weight", up, t->hidden);
    add(list, t->bias_ffn, "experts.w13.bias", up, 1);
    add(list, true, "experts.w2.weight", down, t->expert_ffn);
    add(list, t->bias_ffn, "experts.w2.bias", down, 1);
    add(list, shared, "shared.w13.weight", 2 * t->shared_ffn, t->hidden);
    add(list, shared, "shared.w2.weight", t->hidden, t->shared_ffn);
}

static void add_dense(struct tensor_list *list, const struct transformer *t)
{
    const bool gated = transformer_gated(t);
    add(list, gated, "w13.weight", 2 * t->ffn, t->hidden);
    add(list, gated && t->bias_ffn, "w13.bias", 2 * t->ffn, 1);
    add(list, !gated, "w1.weight", t->ffn, t->hidden);
    add(list, !gated && t->bias_ffn, "w1.bias", t->ffn, 1);
    add(list, true, "w2.weight", t->hidden, t->ffn);
    add(list, t->bias_ffn, "w2.bias", t->hidden, 1);
}

size_t transformer_layer_tensors(const struct transformer *t, int64_t layer,
                                 struct tensor_spec out[], size_t max)
{
    struct tensor_list list = {out, 0, max};
    const bool norm_bias = t->norm == NORM_LAYERNORM;
    const bool before = t->norm_place != NORM_AFTER, after = t->norm_place != NORM_BEFORE;
    add(&list, before, "norm1.weight", t->hidden, 1);
    add(&list, before && norm_bias, "norm1.bias", t->hidden, 1);
    add_attention(&list, t);
    add(&list, after, "norm1_after.weight", t->hidden, 1);
    add(&list, after && norm_bias, "norm1_after.bias", t->hidden, 1);
    add(&list, before, "norm2.weight", t->hidden, 1);
    add(&list, before && norm_bias, "norm2.bias", t->hidden, 1);
    if (transformer_has_experts(t, layer))
        add_experts(&list, t);
    else
        add_dense(&list, t);
    add(&list, after, "norm2_after.weight", t->hidden, 1);
    add(&list, after && norm_bias, "norm2_after.bias", t->hidden, 1);
    return list.count;
}

size_t transformer_embedding_tensors(const struct transformer *t, struct tensor_spec out[],
                                     size_t max)
{
    struct tensor_list list = {out, 0, max};
    add(&list, true, "embedding.weight", t->vocab, t->hidden);
    add(&list, t->positions == POSITIONS_LEARNED, "positions.weight", t->max_positions, t->hidden);
    return list.count;
}

size_t transformer_head_tensors(const struct transformer *t, struct tensor_spec out[], size_t max)
{
    struct tensor_list list = {out, 0, max};
    add(&list, true, "norm.weight", t->hidden, 1);
    add(&list, t->norm == NORM_LAYERNORM, "norm.bias", t->hidden, 1);
    add(&list, !t->tied_head, "head.weight", t->vocab, t->hidden);
    return list.count;
}

static int64_t elements(const struct tensor_spec tensors[], size_t count)
{
    assert(count <= TRANSFORMER_MAX_TENSORS);
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += tensors[i].rows * tensors[i].cols;
    return sum;
}

/* Returns the first layer that has experts, or that has none; -1: there is none. */
static int64_t layer_like(const struct transformer *t, bool experts)
{
    for (int64_t l = 0; l < t->layers; l++)
        if (transformer_has_experts(t, l) == experts)
            return l;
    return -1;
}

static int64_t parameters_of(const struct transformer *t, int64_t layer)
{
    struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
    if (layer < 0)
        return 0;
    return elements(tensors, transformer_layer_tensors(t, layer, tensors, ARRAY_LEN(tensors)));
}

int64_t transformer_layer_parameters(const struct transformer *t)
{
    const int64_t sparse = parameters_of(t, layer_like(t, true));
    const int64_t dense = parameters_of(t, layer_like(t, false));
    return sparse > dense ? sparse : dense;
}

int64_t transformer_embedding_parameters(const struct transformer *t)
{
    struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
    return elements(tensors, transformer_embedding_tensors(t, tensors, ARRAY_LEN(tensors)));
}

int64_t transformer_head_parameters(const struct transformer *t)
{
    struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
    return elements(tensors, transformer_head_tensors(t, tensors, ARRAY_LEN(tensors)));
}

int64_t transformer_parameters(const struct transformer *t)
{
    const int64_t sparse = transformer_expert_layers(t);
    return (t->layers - sparse) * parameters_of(t, layer_like(t, false)) +
           sparse *
               (parameters_of(t, layer_like(t, true)) + (t->router_correction ? t->experts : 0)) +
           transformer_embedding_parameters(t) + transformer_head_parameters(t);
}

int64_t transformer_active_parameters(const struct transformer *t)
{
    const int64_t expert =
        3 * t->hidden * t->expert_ffn + (t->bias_ffn ? 2 * t->expert_ffn + t->hidden : 0);
    const int64_t idle =
        (t->experts - t->experts_per_token) * expert + (t->router_correction ? t->experts : 0);
    return transformer_parameters(t) - transformer_expert_layers(t) * idle;
}

bool transformer_has_experts(const struct transformer *t, int64_t layer)
{
    return t->experts > 0 && layer >= t->dense_layers &&
           (t->experts_every < 2 || (layer + 1) % t->experts_every == 0);
}

int64_t transformer_expert_layers(const struct transformer *t)
{
    int64_t count = 0;
    for (int64_t l = 0; t->experts > 0 && l < t->layers; l++)
        count += transformer_has_experts(t, l);
    return count;
}

bool transformer_put_unmodelled(struct text *out, const struct transformer *t)
{
    const struct {
        bool present;
        const char *what;
    } parts[] = {
        {t->experts > 0 && t->bias_ffn, "biases of experts (a row added to the products of each)"},
        {t->router_bias, "a bias of the router (added to its logits)"},
        {t->router_on_input, "weights of what experts read (they multiply what experts write)"},
        {t->kv_latent > 0,
         "latent-attention (keys and values that are made of a narrow common vector)"},
        {t->attention_sinks,
         "attention-sinks (a learned score of each head in the sum of a softmax)"},
        {t->lacks != NULL, t->lacks},
    };
    const size_t before = out->size;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (parts[i].present)
            text_printf(out, "%s%s", out->size > before ? " and " : "", parts[i].what);
    return out->size > before;
}

/* ---- work ---- */

int64_t transformer_q_width(const struct transformer *t)
{
    return t->heads * t->head_dim;
}

int64_t transformer_kv_width(const struct transformer *t)
{
    return t->kv_heads * t->head_dim;
}

/* Elements of the matrices by which one layer's attention multiplies a token. */
static int64_t attention_matrices(const struct transformer *t)
{
    const int64_t q = transformer_q_width(t), kv = transformer_kv_width(t);
    if (t->kv_latent == 0)
        return t->hidden * (2 * q + 2 * kv);
    const int64_t query = t->q_latent > 0 ? t->q_latent * (t->hidden + q) : t->hidden * q;
    const int64_t values = t->heads * t->v_dim;
    const int64_t expanded = t->heads * (t->head_dim - t->rope_dim) + values;
    return query + t->hidden * (t->kv_latent + t->rope_dim) + t->kv_latent * expanded +
           values * t->hidden;
}

int64_t transformer_matmul_parameters(const struct transformer *t)
{
    const int64_t sparse = transformer_expert_layers(t);
    const int64_t dense_ffn = (transformer_gated(t) ? 3 : 2) * t->hidden * t->ffn;
    const int64_t sparse_ffn =
        t->hidden * (t->experts + 3 * (t->experts_per_token * t->expert_ffn + t->shared_ffn));
    return t->layers * attention_matrices(t) + (t->layers - sparse) * dense_ffn +
           sparse * sparse_ffn;
}

int64_t transformer_linear_flops_per_token(const struct transformer *t)
{
    return 2 * transformer_matmul_parameters(t) / t->layers;
}

int64_t transformer_head_flops_per_token(const struct transformer *t)
{
    return 2 * t->hidden * t->vocab;
}

/* Columns of q plus those of the attention's result, over all heads. */
static double scores_and_values(const struct transformer *t)
{
    const int64_t v = t->kv_latent > 0 ? t->v_dim : t->head_dim;
    return (double)(t->heads * (t->head_dim + v));
}

double transformer_attention_flops(const struct transformer *t, int64_t seq_len, bool causal)
{
    const double s = (double)seq_len;
    const double pairs = causal ? s * s / 2 : s * s;
    return 2 * pairs * scores_and_values(t);
}

int64_t transformer_window(const struct transformer *t, int64_t layer)
{
    bool full = layer < t->window_from_layer ||
                (t->full_attention_every > 0 && (layer + 1) % t->full_attention_every == 0);
    return full ? 0 : t->attention_window;
}

bool transformer_gated(const struct transformer *t)
{
    return t->activation == ACTIVATION_SWIGLU || t->activation == ACTIVATION_GEGLU;
}

int64_t transformer_windowed_layers(const struct transformer *t)
{
    int64_t count = 0;
    for (int64_t l = 0; l < t->layers; l++)
        count += transformer_window(t, l) > 0;
    return count;
}

double transformer_seen_flops(const struct transformer *t, int64_t seq_len)
{
    const double causal = transformer_attention_flops(t, seq_len, true);
    if (t->attention_window > 0 && t->attention_window < seq_len) {
        const double share = (double)transformer_windowed_layers(t) / (double)t->layers;
        const double s = (double)seq_len, w = (double)t->attention_window;
        return causal * (1 - share) + causal * share * (2 * s * w - w * w) / (s * s);
    }
    if (t->attention_chunk == 0)
        return causal;
    const double chunk = (double)t->attention_chunk, kept = (double)t->attention_kept;
    const int64_t chunks = seq_len / t->attention_chunk;
    const double whole = (double)chunks, rest = (double)(seq_len - chunks * t->attention_chunk);
    const double own = (whole * chunk * chunk + rest * rest) / 2;
    const double others = kept * (chunk * whole * (whole - 1) / 2 + rest * whole);
    return 2 * (own + others) * scores_and_values(t);
}
