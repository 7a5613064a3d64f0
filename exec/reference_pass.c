#include "exec/reference_pass.h"

#include "exec/reference_layer.h"
#include "exec/reference_math.h"

#include <stdio.h>
#include <string.h>

/* Logits are made for this many tokens at a time: with a vocabulary of 10^5 those of a whole
 * sequence would be the largest array by far. */
#define LOGITS_ROWS_AT_A_TIME 64

/* Returns a state whose random numbers depend on the seed, on the number of the sequence, and on `part`, a part of
 * the pass: the forward or the backward of a layer, or all that is outside of layers. So a forward that is computed
 * again is rounded in the same way. */
static struct reference_rounding_state rounding_state_of_pass_part(const struct reference *r,
                                                                   uint64_t number, uint64_t part)
{
    uint64_t state = r->rounding.seed * UINT64_C(0x9e3779b97f4a7c15) + number;
    return (struct reference_rounding_state){r->rounding,
                                             state * UINT64_C(0xbf58476d1ce4e5b9) + part};
}

static struct reference_layer_widths layer_widths(const struct transformer *t,
                                                  const struct reference_layer_parameters *p,
                                                  size_t layer,
                                                  const struct reference_pass_sequence *sequence)
{
    return (struct reference_layer_widths){
        .hidden = t->hidden,
        .q = transformer_q_columns(t),
        .k = transformer_kv_columns(t),
        .v = transformer_v_columns(t),
        .o = transformer_o_columns(t),
        .ffn = t->ffn,
        .applies_rope = transformer_layer_rotates(t, (int64_t)layer),
        .norms_heads_of_q_and_k = transformer_layer_has_qk_norm(t, (int64_t)layer),
        .attention_shape = {sequence->tokens, t->heads, t->kv_heads, t->head_dim,
                            (size_t)t->attention_chunk, (size_t)t->attention_kept,
                            sequence->document_begin,
                            (size_t)transformer_layer_window(t, (int64_t)layer),
                            (size_t)transformer_v_head_dim(t),
                            p->sinks != NULL ? p->sinks->param : NULL,
                            p->sinks != NULL ? p->sinks->grad : NULL, t->window_chunks},
    };
}

/* ---- the parameters of a layer ---- */

/* Returns the tensor PREFIXname.weight and its bias. All pointers are NULL if the model lacks the tensor, and those of
 * the bias if it has none. */
static struct reference_weight_and_bias find_weight_and_bias(const struct reference *r,
                                                             const char *prefix, const char *name)
{
    char full_name[64];
    snprintf(full_name, sizeof full_name, "%s%s.weight", prefix, name);
    const struct reference_tensor *weight = reference_find_tensor(r, full_name);
    snprintf(full_name, sizeof full_name, "%s%s.bias", prefix, name);
    const struct reference_tensor *bias = reference_find_tensor(r, full_name);
    if (weight == NULL)
        return (struct reference_weight_and_bias){0};
    return (struct reference_weight_and_bias){
        .weight = weight->param,
        .bias = bias != NULL ? bias->param : NULL,
        .dweight = weight->grad,
        .dbias = bias != NULL ? bias->grad : NULL,
        .outputs = weight->rows,
        .inputs = weight->cols,
    };
}

/* Gives a linear layer the adapters that the model has for `count` consecutive targets from `first` on. The outputs of
 * these targets follow one another in the layer's outputs. */
static void read_adapters(const struct reference *r, const char *prefix, int64_t layer,
                          struct reference_weight_and_bias *linear, enum adapter_target first,
                          int count)
{
    const struct transformer *t = &r->transformer;
    size_t begin = 0;
    int found = 0;
    for (int i = 0; i < count; i++) {
        const enum adapter_target target = (enum adapter_target)(first + i);
        const size_t outputs = (size_t)transformer_adapter_out_features(t, target);
        char a[64], b[64];
        snprintf(a, sizeof a, "%sadapter.%s.a", prefix, adapter_target_names[target]);
        snprintf(b, sizeof b, "%sadapter.%s.b", prefix, adapter_target_names[target]);
        if (transformer_layer_has_adapter(t, layer, target)) {
            const struct reference_tensor *of_a = reference_find_tensor(r, a),
                                          *of_b = reference_find_tensor(r, b);
            linear->adapter[found++] = (struct reference_adapter){
                of_a->param, of_b->param, of_a->grad, of_b->grad, (size_t)t->adapter_rank,
                begin,       outputs};
        }
        begin += outputs;
    }
}

static struct reference_layer_parameters layer_parameters(const struct reference *r, int64_t layer)
{
    char prefix[40], sinks[48];
    snprintf(prefix, sizeof prefix, "layers.%lld.", (long long)layer);
    snprintf(sinks, sizeof sinks, "%ssinks", prefix);
    const bool gated = transformer_has_gate(&r->transformer);
    struct reference_layer_parameters p = {
        .norm1 = find_weight_and_bias(r, prefix, "norm1"),
        .qkv = find_weight_and_bias(r, prefix, "wqkv"),
        .q_norm = find_weight_and_bias(r, prefix, "q_norm"),
        .k_norm = find_weight_and_bias(r, prefix, "k_norm"),
        .q_down = find_weight_and_bias(r, prefix, "q_a"),
        .q_down_norm = find_weight_and_bias(r, prefix, "q_a_norm"),
        .q_up = find_weight_and_bias(r, prefix, "q_b"),
        .q_direct = find_weight_and_bias(r, prefix, "q"),
        .kv_down = find_weight_and_bias(r, prefix, "kv_a"),
        .kv_down_norm = find_weight_and_bias(r, prefix, "kv_a_norm"),
        .kv_up = find_weight_and_bias(r, prefix, "kv_b"),
        .sinks = reference_find_tensor(r, sinks),
        .o = find_weight_and_bias(r, prefix, "wo"),
        .norm1_after = find_weight_and_bias(r, prefix, "norm1_after"),
        .norm2 = find_weight_and_bias(r, prefix, "norm2"),
        .up = find_weight_and_bias(r, prefix, gated ? "w13" : "w1"),
        .down = find_weight_and_bias(r, prefix, "w2"),
        .norm2_after = find_weight_and_bias(r, prefix, "norm2_after"),
        .router = find_weight_and_bias(r, prefix, "router"),
        .experts_up = find_weight_and_bias(r, prefix, "experts.w13"),
        .experts_down = find_weight_and_bias(r, prefix, "experts.w2"),
        .shared_up = find_weight_and_bias(r, prefix, "shared.w13"),
        .shared_down = find_weight_and_bias(r, prefix, "shared.w2"),
    };
    struct reference_weight_and_bias *const linear[] = {
        &p.qkv, &p.q_down, &p.q_up,       &p.q_direct,     &p.kv_down,   &p.kv_up,      &p.o,
        &p.up,  &p.down,   &p.experts_up, &p.experts_down, &p.shared_up, &p.shared_down};
    read_adapters(r, prefix, layer, &p.qkv, ADAPTER_Q, 3);
    read_adapters(r, prefix, layer, &p.o, ADAPTER_O, 1);
    read_adapters(r, prefix, layer, &p.up, gated ? ADAPTER_GATE : ADAPTER_UP, gated ? 2 : 1);
    read_adapters(r, prefix, layer, &p.down, ADAPTER_DOWN, 1);
    if (layer >= r->eight_bit_products.first_layer && layer < r->eight_bit_products.layer_end)
        for (size_t i = 0; i < ARRAY_LEN(linear); i++)
            linear[i]->eight_bit_products = &r->eight_bit_products;
    return p;
}

/* ---- norms of a layer ---- */

/* Returns the norm of x, (s, hidden). If the model has no norm in this place, and so no tensor of it, returns x. */
static double *apply_norm(struct arena *arena, struct reference_rounding_state *to,
                          const struct transformer *t, const struct reference_weight_and_bias *norm,
                          double *x, size_t s)
{
    if (norm->weight == NULL)
        return x;
    return reference_perturb_like_rounding(
        to, reference_norm(arena, norm, t->norm, t->norm_eps, x, s), s * (size_t)t->hidden);
}

/* Returns the gradient of x, given dy, the gradient of apply_norm(x), and adds the gradients of the norm's weights. */
static double *norm_backward(struct arena *arena, struct reference_rounding_state *to,
                             const struct transformer *t,
                             const struct reference_weight_and_bias *norm, double *dy,
                             const double *x, size_t s)
{
    if (norm->weight == NULL)
        return dy;
    double *dx = reference_zeros(arena, s, (size_t)t->hidden);
    reference_norm_backward(norm, t->norm, t->norm_eps, dx, dy, x, s);
    return reference_perturb_like_rounding(to, dx, s * (size_t)t->hidden);
}

/* ---- a layer, forward and backward ---- */

static struct reference_saved_activations
layer_forward(struct arena *arena, struct reference_rounding_state to, const struct transformer *t,
              const struct reference_layer_parameters *p, size_t layer, double *x,
              const struct reference_pass_sequence *sequence)
{
    const size_t s = sequence->tokens;
    const struct reference_layer_widths n = layer_widths(t, p, layer, sequence);
    const size_t rows = s * n.hidden;
    struct reference_saved_activations l = {.input = x};

    l.normed1 = apply_norm(arena, &to, t, &p->norm1, x, s);
    if (t->kv_latent > 0)
        reference_latent_qkv_forward(arena, &to, t, p, &l, s);
    else
        reference_projected_qkv_forward(arena, &to, t, p, &n, &l, s);
    l.attention_output = reference_attention(arena, &n.attention_shape, l.q, l.k, l.v, &l.lse);
    reference_perturb_like_rounding(&to, l.attention_output, s * n.o);
    l.attention_branch = reference_perturb_like_rounding(
        &to, reference_linear(arena, &p->o, l.attention_output, s), rows);
    const double *branch = apply_norm(arena, &to, t, &p->norm1_after, l.attention_branch, s);
    l.after_attention = reference_perturb_like_rounding(
        &to, reference_sum_of_two_arrays(arena, x, branch, rows), rows);

    l.normed2 = apply_norm(arena, &to, t, &p->norm2, l.after_attention, s);
    if (transformer_layer_has_experts(t, (int64_t)layer)) {
        l.ffn_branch = reference_experts_forward(arena, &to, t, p, &l.experts, l.normed2, sequence,
                                                 sequence->experts_of_layer[layer]);
    } else {
        l.up_output = reference_perturb_like_rounding(
            &to, reference_linear(arena, &p->up, l.normed2, s), s * p->up.outputs);
        l.activated = reference_perturb_like_rounding(
            &to, reference_activation(arena, t->activation, l.up_output, s, n.ffn), s * n.ffn);
        l.ffn_branch = reference_perturb_like_rounding(
            &to, reference_linear(arena, &p->down, l.activated, s), rows);
    }
    branch = apply_norm(arena, &to, t, &p->norm2_after, l.ffn_branch, s);
    l.output = reference_perturb_like_rounding(
        &to, reference_sum_of_two_arrays(arena, l.after_attention, branch, rows), rows);
    return l;
}

/* Computes d += branch and rounds d as storing it would. */
static void add_and_round_branch(struct reference_rounding_state *to, double *d,
                                 const double *branch, size_t count)
{
    for (size_t i = 0; i < count; i++)
        d[i] += branch[i];
    reference_perturb_like_rounding(to, d, count);
}

/* Returns the gradient of the input of a dense feed-forward part, given dlowered, the gradient of its output. Adds the
 * gradients of its weights. */
static double *ffn_backward(struct arena *arena, struct reference_rounding_state *to,
                            const struct transformer *t, const struct reference_layer_parameters *p,
                            size_t ffn, const struct reference_saved_activations *l,
                            const double *dlowered, size_t s)
{
    double *dacted = reference_zeros(arena, s, ffn);
    reference_linear_backward(&p->down, dacted, dlowered, l->activated, s);
    reference_perturb_like_rounding(to, dacted, s * ffn);
    double *draised = reference_zeros(arena, s, p->up.outputs);
    reference_activation_backward(t->activation, draised, dacted, l->up_output, s, ffn);
    reference_perturb_like_rounding(to, draised, s * p->up.outputs);
    double *dnormed2 = reference_zeros(arena, s, (size_t)t->hidden);
    reference_linear_backward(&p->up, dnormed2, draised, l->normed2, s);
    return reference_perturb_like_rounding(to, dnormed2, s * (size_t)t->hidden);
}

/* Adds the gradients of a layer's weights, and turns d, the gradient of the layer's output, into that of its input. The
 * residuals pass d on as it is; each branch adds its own gradient to it. */
static void layer_backward(struct arena *arena, struct reference_rounding_state to,
                           const struct transformer *t, const struct reference_layer_parameters *p,
                           size_t layer, const struct reference_saved_activations *l, double *d,
                           const struct reference_pass_sequence *sequence)
{
    const size_t s = sequence->tokens;
    const struct reference_layer_widths n = layer_widths(t, p, layer, sequence);
    const double *dlowered = norm_backward(arena, &to, t, &p->norm2_after, d, l->ffn_branch, s);
    double *dnormed2 =
        transformer_layer_has_experts(t, (int64_t)layer)
            ? reference_experts_backward(arena, &to, t, p, &l->experts, l->normed2, dlowered,
                                         sequence, sequence->experts_of_layer[layer])
            : ffn_backward(arena, &to, t, p, n.ffn, l, dlowered, s);
    add_and_round_branch(&to, d,
                         norm_backward(arena, &to, t, &p->norm2, dnormed2, l->after_attention, s),
                         s * n.hidden);

    const double *dmixed = norm_backward(arena, &to, t, &p->norm1_after, d, l->attention_branch, s);
    double *dattended = reference_zeros(arena, s, n.o);
    reference_linear_backward(&p->o, dattended, dmixed, l->attention_output, s);
    reference_perturb_like_rounding(&to, dattended, s * n.o);
    double *dq = reference_zeros(arena, s, n.q), *dk = reference_zeros(arena, s, n.k),
           *dv = reference_zeros(arena, s, n.v);
    reference_attention_backward(&n.attention_shape, dq, dk, dv, dattended, l->q, l->k, l->v,
                                 l->attention_output, l->lse);
    reference_perturb_like_rounding(&to, dv, s * n.v);
    double *dnormed1 = reference_zeros(arena, s, n.hidden);
    if (t->kv_latent > 0)
        reference_latent_qkv_backward(arena, &to, t, p, l, dnormed1, dq, dk, dv, s);
    else
        reference_projected_qkv_backward(arena, &to, t, p, &n, l, dnormed1, dq, dk, dv, s);
    reference_perturb_like_rounding(&to, dnormed1, s * n.hidden);
    add_and_round_branch(&to, d, norm_backward(arena, &to, t, &p->norm1, dnormed1, l->input, s),
                         s * n.hidden);
}

/* ---- embedding, head, and the pass of a whole sequence ---- */

static void embed_tokens(const struct reference_weight_and_bias *table,
                         const struct reference_weight_and_bias *places, double *x,
                         const int32_t *tokens, size_t s)
{
    const size_t hidden = table->inputs;
    for (size_t i = 0; i < s; i++)
        for (size_t j = 0; j < hidden; j++)
            x[i * hidden + j] = table->weight[(size_t)tokens[i] * hidden + j] +
                                (places->weight != NULL ? places->weight[i * hidden + j] : 0);
}

static void embed_backward(const struct reference_weight_and_bias *table,
                           const struct reference_weight_and_bias *places, const double *dx,
                           const int32_t *tokens, size_t s)
{
    const size_t hidden = table->inputs;
    for (size_t i = 0; i < s; i++)
        for (size_t j = 0; j < hidden; j++) {
            table->dweight[(size_t)tokens[i] * hidden + j] += dx[i * hidden + j];
            if (places->dweight != NULL)
                places->dweight[i * hidden + j] += dx[i * hidden + j];
        }
}

/* Returns the loss of x, (s, hidden), through the logits of the head p. If dx is not NULL, adds the gradient of x to
 * dx, and the gradients of the head's parameters to p's. */
static double lm_head_loss(struct reference_rounding_state *to,
                           const struct reference_weight_and_bias *p, const double *x,
                           const int32_t *labels, size_t s, double scale, double *dx)
{
    double loss = 0;
    for (size_t i = 0; i < s; i += LOGITS_ROWS_AT_A_TIME) {
        const size_t rows = s - i < LOGITS_ROWS_AT_A_TIME ? s - i : LOGITS_ROWS_AT_A_TIME;
        struct arena arena = {0};
        double *logits = reference_linear(&arena, p, &x[i * p->inputs], rows);
        reference_perturb_like_rounding(to, logits, rows * p->outputs);
        loss += reference_cross_entropy(logits, &labels[i], scale, rows, p->outputs);
        reference_perturb_like_rounding(to, logits, rows * p->outputs);
        if (dx != NULL)
            reference_linear_backward(p, &dx[i * p->inputs], logits, &x[i * p->inputs], rows);
        arena_release(&arena);
    }
    return loss;
}

/* Returns, for each token, the first token of its document; NULL if list is NULL. */
static int64_t *document_begin_by_token(struct arena *arena, const struct document_list *list,
                                        size_t s)
{
    if (list == NULL)
        return NULL;
    int64_t *begin = arena_array(arena, s, sizeof *begin);
    for (size_t i = 0; i < s; i++)
        begin[i] = document_begin(list, document_index_at_position(list, (int64_t)i));
    return begin;
}

double reference_run_sequence(struct reference *r, const int32_t *tokens, const int32_t *labels,
                              size_t seq_len, const int32_t *const *expert,
                              const struct document_list *documents, uint64_t number, double scale,
                              bool gradients)
{
    const struct transformer *t = &r->transformer;
    const size_t s = seq_len, hidden = t->hidden, layers = t->layers;
    const struct reference_weight_and_bias table = find_weight_and_bias(r, "", "embedding");
    const struct reference_weight_and_bias places = find_weight_and_bias(r, "", "positions");
    const struct reference_weight_and_bias norm = find_weight_and_bias(r, "", "norm");
    const struct reference_weight_and_bias out =
        t->tied_head ? table : find_weight_and_bias(r, "", "head");
    struct arena arena = {0};
    struct reference_rounding_state ends = rounding_state_of_pass_part(r, number, 2 * layers);
    const struct reference_pass_sequence sequence = {
        s, document_begin_by_token(&arena, documents, s), expert, r->router_weights_at_activation};

    /* only the input of every layer is kept: the backward computes the forward of a layer again */
    double **x = arena_array(&arena, layers + 1, sizeof *x);
    for (size_t i = 0; i <= layers; i++)
        x[i] = reference_zeros(&arena, s, hidden);
    embed_tokens(&table, &places, x[0], tokens, s);
    if (places.weight != NULL)
        reference_perturb_like_rounding(&ends, x[0], s * hidden);
    for (size_t i = 0; i < layers; i++) {
        const struct reference_layer_parameters p = layer_parameters(r, (int64_t)i);
        struct arena inside = {0};
        const struct reference_saved_activations l = layer_forward(
            &inside, rounding_state_of_pass_part(r, number, 2 * i), t, &p, i, x[i], &sequence);
        memcpy(x[i + 1], l.output, s * hidden * sizeof *l.output);
        arena_release(&inside);
    }

    double *normed = reference_norm(&arena, &norm, t->norm, t->norm_eps, x[layers], s);
    reference_perturb_like_rounding(&ends, normed, s * hidden);
    double *dnormed = gradients ? reference_zeros(&arena, s, hidden) : NULL;
    const double loss = lm_head_loss(&ends, &out, normed, labels, s, scale, dnormed);
    if (!gradients)
        goto out;

    double *d = reference_zeros(&arena, s, hidden);
    reference_perturb_like_rounding(&ends, dnormed, s * hidden);
    reference_norm_backward(&norm, t->norm, t->norm_eps, d, dnormed, x[layers], s);
    reference_perturb_like_rounding(&ends, d, s * hidden);
    for (size_t i = layers; i-- > 0;) {
        const struct reference_layer_parameters p = layer_parameters(r, (int64_t)i);
        struct arena inside = {0};
        const struct reference_saved_activations l = layer_forward(
            &inside, rounding_state_of_pass_part(r, number, 2 * i), t, &p, i, x[i], &sequence);
        layer_backward(&inside, rounding_state_of_pass_part(r, number, 2 * i + 1), t, &p, i, &l, d,
                       &sequence);
        arena_release(&inside);
    }
    embed_backward(&table, &places, d, tokens, s);
out:
    arena_release(&arena);
    return loss;
}
