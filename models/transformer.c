#include "models/transformer.h"

#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- parameters ---- */

struct tensor_list {
    struct tensor_spec *out;
    size_t count, capacity;
};

static void add_tensor(struct tensor_list *list, bool present, const char *name, int64_t rows,
                       int64_t cols)
{
    if (!present)
        return;
    if (list->count < list->capacity)
        list->out[list->count] = (struct tensor_spec){name, rows, cols};
    list->count++;
}

static void add_latent_attention_tensors(struct tensor_list *list, const struct transformer *t)
{
    const int64_t q = transformer_q_columns(t);
    const int64_t expanded = t->heads * (t->head_dim - t->rope_dim + t->v_dim);
    const bool low = t->q_latent > 0;
    add_tensor(list, low, "q_a.weight", t->q_latent, t->hidden);
    add_tensor(list, low, "q_a_norm.weight", t->q_latent, 1);
    add_tensor(list, low, "q_b.weight", q, t->q_latent);
    add_tensor(list, !low, "q.weight", q, t->hidden);
    add_tensor(list, true, "kv_a.weight", t->kv_latent + t->rope_dim, t->hidden);
    add_tensor(list, true, "kv_a_norm.weight", t->kv_latent, 1);
    add_tensor(list, true, "kv_b.weight", expanded, t->kv_latent);
}

static void add_attention_tensors(struct tensor_list *list, const struct transformer *t)
{
    const int64_t q = transformer_q_columns(t), kv = transformer_kv_columns(t);
    if (t->kv_latent > 0) {
        add_latent_attention_tensors(list, t);
    } else {
        add_tensor(list, true, "wqkv.weight", q + 2 * kv, t->hidden);
        add_tensor(list, t->bias_qkv, "wqkv.bias", q + 2 * kv, 1);
        const bool norms = t->qk_norm && !t->qk_norm_bare;
        add_tensor(list, norms, "q_norm.weight", t->qk_norm_wide ? q : t->head_dim, 1);
        add_tensor(list, norms, "k_norm.weight", t->qk_norm_wide ? kv : t->head_dim, 1);
    }
    add_tensor(list, t->attention_sinks, "sinks", t->heads, 1);
    add_tensor(list, true, "wo.weight", t->hidden, transformer_o_columns(t));
    add_tensor(list, t->bias_o, "wo.bias", t->hidden, 1);
}

static void add_expert_tensors(struct tensor_list *list, const struct transformer *t)
{
    const int64_t up = t->experts * 2 * t->expert_ffn, down = t->experts * t->hidden;
    const bool shared = t->shared_ffn > 0;
    add_tensor(list, true, "router.weight", t->experts, t->hidden);
    add_tensor(list, t->router_bias, "router.bias", t->experts, 1);
    add_tensor(list, true, "experts.w13.weight", up, t->hidden);
    add_tensor(list, t->bias_ffn, "experts.w13.bias", up, 1);
    add_tensor(list, true, "experts.w2.weight", down, t->expert_ffn);
    add_tensor(list, t->bias_ffn, "experts.w2.bias", down, 1);
    add_tensor(list, shared, "shared.w13.weight", 2 * t->shared_ffn, t->hidden);
    add_tensor(list, shared, "shared.w2.weight", t->hidden, t->shared_ffn);
}

static void add_dense_ffn_tensors(struct tensor_list *list, const struct transformer *t)
{
    const bool gated = transformer_has_gate(t);
    add_tensor(list, gated, "w13.weight", 2 * t->ffn, t->hidden);
    add_tensor(list, gated && t->bias_ffn, "w13.bias", 2 * t->ffn, 1);
    add_tensor(list, !gated, "w1.weight", t->ffn, t->hidden);
    add_tensor(list, !gated && t->bias_ffn, "w1.bias", t->ffn, 1);
    add_tensor(list, true, "w2.weight", t->hidden, t->ffn);
    add_tensor(list, t->bias_ffn, "w2.bias", t->hidden, 1);
}

static const char *const adapter_tensor_names[ADAPTER_TARGET_COUNT][2] = {
    [ADAPTER_Q] = {"adapter.q.a", "adapter.q.b"},
    [ADAPTER_K] = {"adapter.k.a", "adapter.k.b"},
    [ADAPTER_V] = {"adapter.v.a", "adapter.v.b"},
    [ADAPTER_O] = {"adapter.o.a", "adapter.o.b"},
    [ADAPTER_GATE] = {"adapter.gate.a", "adapter.gate.b"},
    [ADAPTER_UP] = {"adapter.up.a", "adapter.up.b"},
    [ADAPTER_DOWN] = {"adapter.down.a", "adapter.down.b"},
};

static void add_adapter_tensors(struct tensor_list *list, const struct transformer *t,
                                int64_t layer)
{
    for (int i = 0; i < ADAPTER_TARGET_COUNT; i++) {
        const enum adapter_target target = (enum adapter_target)i;
        const bool present = transformer_layer_has_adapter(t, layer, target);
        add_tensor(list, present, adapter_tensor_names[i][0], t->adapter_rank,
                   transformer_adapter_in_features(t, target));
        add_tensor(list, present, adapter_tensor_names[i][1],
                   transformer_adapter_out_features(t, target), t->adapter_rank);
    }
}

size_t transformer_list_layer_tensors(const struct transformer *t, int64_t layer,
                                      struct tensor_spec out[], size_t max)
{
    struct tensor_list list = {out, 0, max};
    const bool norm_bias = t->norm == NORM_LAYERNORM;
    const bool before = t->norm_place != NORM_AFTER, after = t->norm_place != NORM_BEFORE;
    add_tensor(&list, before, "norm1.weight", t->hidden, 1);
    add_tensor(&list, before && norm_bias, "norm1.bias", t->hidden, 1);
    add_attention_tensors(&list, t);
    add_tensor(&list, after, "norm1_after.weight", t->hidden, 1);
    add_tensor(&list, after && norm_bias, "norm1_after.bias", t->hidden, 1);
    add_tensor(&list, before, "norm2.weight", t->hidden, 1);
    add_tensor(&list, before && norm_bias, "norm2.bias", t->hidden, 1);
    if (transformer_layer_has_experts(t, layer))
        add_expert_tensors(&list, t);
    else
        add_dense_ffn_tensors(&list, t);
    add_tensor(&list, after, "norm2_after.weight", t->hidden, 1);
    add_tensor(&list, after && norm_bias, "norm2_after.bias", t->hidden, 1);
    add_adapter_tensors(&list, t, layer);
    return list.count;
}

size_t transformer_list_embedding_tensors(const struct transformer *t, struct tensor_spec out[],
                                          size_t max)
{
    struct tensor_list list = {out, 0, max};
    add_tensor(&list, true, "embedding.weight", t->vocab, t->hidden);
    add_tensor(&list, t->positions == POSITIONS_LEARNED, "positions.weight", t->max_positions,
               t->hidden);
    return list.count;
}

size_t transformer_list_head_tensors(const struct transformer *t, struct tensor_spec out[],
                                     size_t max)
{
    struct tensor_list list = {out, 0, max};
    add_tensor(&list, true, "norm.weight", t->hidden, 1);
    add_tensor(&list, t->norm == NORM_LAYERNORM, "norm.bias", t->hidden, 1);
    add_tensor(&list, !t->tied_head, "head.weight", t->vocab, t->hidden);
    return list.count;
}

bool transformer_is_tensor_trained(const struct transformer *t, const char *name)
{
    return t->adapter_rank == 0 || strstr(name, "adapter.") != NULL;
}

bool transformer_layer_has_adapter(const struct transformer *t, int64_t layer,
                                   enum adapter_target target)
{
    const bool dense = !transformer_layer_has_experts(t, layer);
    const bool present =
        target == ADAPTER_GATE ? transformer_has_gate(t) && dense : target < ADAPTER_GATE || dense;
    const int64_t all = (1 << ADAPTER_TARGET_COUNT) - 1;
    const int64_t targets = t->adapter_targets > 0 ? t->adapter_targets : all;
    return t->adapter_rank > 0 && present && ((targets >> target) & 1) != 0;
}

int64_t transformer_adapter_in_features(const struct transformer *t, enum adapter_target target)
{
    return target == ADAPTER_O      ? transformer_o_columns(t)
           : target == ADAPTER_DOWN ? t->ffn
                                    : t->hidden;
}

int64_t transformer_adapter_out_features(const struct transformer *t, enum adapter_target target)
{
    switch (target) {
    case ADAPTER_Q:
        return transformer_q_columns(t);
    case ADAPTER_K:
        return transformer_kv_columns(t);
    case ADAPTER_V:
        return transformer_v_columns(t);
    case ADAPTER_GATE:
    case ADAPTER_UP:
        return t->ffn;
    default:
        return t->hidden;
    }
}

int64_t transformer_adapter_parameters(const struct transformer *t)
{
    int64_t count = 0;
    for (int64_t layer = 0; t->adapter_rank > 0 && layer < t->layers; layer++)
        for (int i = 0; i < ADAPTER_TARGET_COUNT; i++) {
            const enum adapter_target target = (enum adapter_target)i;
            if (transformer_layer_has_adapter(t, layer, target))
                count += t->adapter_rank * (transformer_adapter_in_features(t, target) +
                                            transformer_adapter_out_features(t, target));
        }
    return count;
}

int transformer_step_products_per_weight(const struct transformer *t)
{
    return t->adapter_rank > 0 ? 2 : 3;
}

static int64_t count_elements(const struct tensor_spec tensors[], size_t count)
{
    assert(count <= TRANSFORMER_MAX_TENSORS);
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += tensors[i].rows * tensors[i].cols;
    return sum;
}

/* Returns the first layer with experts, or, if `experts` is false, the first without; -1: there is no such layer. */
static int64_t first_layer_with_experts_or_without(const struct transformer *t, bool experts)
{
    for (int64_t l = 0; l < t->layers; l++)
        if (transformer_layer_has_experts(t, l) == experts)
            return l;
    return -1;
}

static int64_t layer_parameters(const struct transformer *t, int64_t layer)
{
    struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
    struct transformer bare = *t;
    bare.adapter_rank = 0;
    if (layer < 0)
        return 0;
    return count_elements(
        tensors, transformer_list_layer_tensors(&bare, layer, tensors, ARRAY_LEN(tensors)));
}

int64_t transformer_largest_layer_parameters(const struct transformer *t)
{
    const int64_t sparse = layer_parameters(t, first_layer_with_experts_or_without(t, true));
    const int64_t dense = layer_parameters(t, first_layer_with_experts_or_without(t, false));
    return sparse > dense ? sparse : dense;
}

int64_t transformer_embedding_parameters(const struct transformer *t)
{
    struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
    return count_elements(tensors,
                          transformer_list_embedding_tensors(t, tensors, ARRAY_LEN(tensors)));
}

int64_t transformer_head_parameters(const struct transformer *t)
{
    struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
    return count_elements(tensors, transformer_list_head_tensors(t, tensors, ARRAY_LEN(tensors)));
}

int64_t transformer_parameters(const struct transformer *t)
{
    const int64_t sparse = transformer_count_expert_layers(t);
    return (t->layers - sparse) *
               layer_parameters(t, first_layer_with_experts_or_without(t, false)) +
           sparse * (layer_parameters(t, first_layer_with_experts_or_without(t, true)) +
                     (t->router_correction ? t->experts : 0)) +
           transformer_embedding_parameters(t) + transformer_head_parameters(t);
}

int64_t transformer_active_parameters(const struct transformer *t)
{
    const int64_t expert =
        3 * t->hidden * t->expert_ffn + (t->bias_ffn ? 2 * t->expert_ffn + t->hidden : 0);
    const int64_t idle =
        (t->experts - t->experts_per_token) * expert + (t->router_correction ? t->experts : 0);
    return transformer_parameters(t) - transformer_count_expert_layers(t) * idle;
}

bool transformer_layer_has_experts(const struct transformer *t, int64_t layer)
{
    return t->experts > 0 && layer >= t->dense_layers &&
           (t->experts_every < 2 || (layer + 1) % t->experts_every == 0);
}

int64_t transformer_count_expert_layers(const struct transformer *t)
{
    int64_t count = 0;
    for (int64_t l = 0; t->experts > 0 && l < t->layers; l++)
        count += transformer_layer_has_experts(t, l);
    return count;
}

bool transformer_put_unmodelled(struct text *out, const struct transformer *t)
{
    if (t->unmodelled_parts_text == NULL)
        return false;
    text_puts(out, t->unmodelled_parts_text);
    return true;
}

/* ---- widths ---- */

int64_t transformer_q_columns(const struct transformer *t)
{
    return t->heads * t->head_dim;
}

int64_t transformer_kv_columns(const struct transformer *t)
{
    return t->kv_heads * t->head_dim;
}

int64_t transformer_v_head_dim(const struct transformer *t)
{
    return t->kv_latent > 0 ? t->v_dim : t->head_dim;
}

int64_t transformer_wider_head_dim(const struct transformer *t)
{
    return transformer_v_head_dim(t) > t->head_dim ? transformer_v_head_dim(t) : t->head_dim;
}

int64_t transformer_v_columns(const struct transformer *t)
{
    return t->kv_heads * transformer_v_head_dim(t);
}

int64_t transformer_o_columns(const struct transformer *t)
{
    return t->heads * transformer_v_head_dim(t);
}

/* ---- flops ---- */

/* Returns the number of elements of the matrices in one layer's attention: the projections, without norms and
 * biases. */
static int64_t attention_weight_elements(const struct transformer *t)
{
    const int64_t q = transformer_q_columns(t), kv = transformer_kv_columns(t);
    if (t->kv_latent == 0)
        return t->hidden * (2 * q + 2 * kv);
    const int64_t query = t->q_latent > 0 ? t->q_latent * (t->hidden + q) : t->hidden * q;
    const int64_t values = transformer_o_columns(t);
    const int64_t expanded = t->heads * (t->head_dim - t->rope_dim) + values;
    return query + t->hidden * (t->kv_latent + t->rope_dim) + t->kv_latent * expanded +
           values * t->hidden;
}

int64_t transformer_active_matrix_parameters(const struct transformer *t)
{
    const int64_t sparse = transformer_count_expert_layers(t);
    const int64_t dense_ffn = (transformer_has_gate(t) ? 3 : 2) * t->hidden * t->ffn;
    const int64_t sparse_ffn =
        t->hidden * (t->experts + 3 * (t->experts_per_token * t->expert_ffn + t->shared_ffn));
    return t->layers * attention_weight_elements(t) + (t->layers - sparse) * dense_ffn +
           sparse * sparse_ffn;
}

int64_t transformer_layer_linear_flops_per_token(const struct transformer *t)
{
    return 2 * transformer_active_matrix_parameters(t) / t->layers;
}

int64_t transformer_head_flops_per_token(const struct transformer *t)
{
    return 2 * t->hidden * t->vocab;
}

/* Returns the columns of q plus those of the attention's output, over all heads: a pair takes 2 flops for each. */
static double attention_columns_per_pair(const struct transformer *t)
{
    return (double)(t->heads * (t->head_dim + transformer_v_head_dim(t)));
}

double transformer_layer_attention_flops(const struct transformer *t, int64_t seq_len, bool causal)
{
    const double s = (double)seq_len;
    const double pairs = causal ? s * s / 2 : s * s;
    return 2 * pairs * attention_columns_per_pair(t);
}

/* ---- what differs by layer ---- */

int64_t transformer_layer_window(const struct transformer *t, int64_t layer)
{
    bool full = layer < t->window_from_layer ||
                (t->full_attention_every > 0 && (layer + 1) % t->full_attention_every == 0);
    return full ? 0 : t->attention_window;
}

bool transformer_layer_rotates(const struct transformer *t, int64_t layer)
{
    return t->positions == POSITIONS_ROPE &&
           (t->unrotated_every == 0 || (layer + 1) % t->unrotated_every != 0);
}

bool transformer_layer_has_qk_norm(const struct transformer *t, int64_t layer)
{
    return t->qk_norm && (!t->qk_norm_bare || transformer_layer_rotates(t, layer));
}

bool transformer_has_gate(const struct transformer *t)
{
    return t->activation == ACTIVATION_SWIGLU || t->activation == ACTIVATION_GEGLU ||
           t->activation == ACTIVATION_SWIGLU_CLAMPED;
}

int64_t transformer_count_windowed_layers(const struct transformer *t)
{
    int64_t count = 0;
    for (int64_t l = 0; l < t->layers; l++)
        count += transformer_layer_window(t, l) > 0;
    return count;
}

double transformer_visible_attention_flops(const struct transformer *t, int64_t seq_len)
{
    const double causal = transformer_layer_attention_flops(t, seq_len, true);
    if (t->attention_window > 0 && t->attention_window < seq_len) {
        const double share = (double)transformer_count_windowed_layers(t) / (double)t->layers;
        const double s = (double)seq_len, w = (double)t->attention_window;
        const double rest = fmod(s, w), in_chunks = floor(s / w) * w * w + rest * rest;
        if (t->window_chunks)
            return causal * (1 - share) + causal * share * in_chunks / (s * s);
        return causal * (1 - share) + causal * share * (2 * s * w - w * w) / (s * s);
    }
    if (t->attention_chunk == 0)
        return causal;
    const double chunk = (double)t->attention_chunk, kept = (double)t->attention_kept;
    const int64_t chunks = seq_len / t->attention_chunk;
    const double whole = (double)chunks, rest = (double)(seq_len - chunks * t->attention_chunk);
    const double own = (whole * chunk * chunk + rest * rest) / 2;
    const double others = kept * (chunk * whole * (whole - 1) / 2 + rest * whole);
    return 2 * (own + others) * attention_columns_per_pair(t);
}
