#include "exec/reference_pass.h"

#include "exec/reference_math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Logits are made for this many tokens at a time: with a vocabulary of 10^5 those of a whole
 * sequence would be the largest array by far. */
#define HEAD_ROWS 64

struct sizes {
    size_t hidden, q, k, v, o, ffn;
    struct reference_heads heads;
};

struct layer_parameters {
    struct reference_affine norm1, qkv, q_norm, k_norm, o, norm1_after, norm2, up, down,
        norm2_after;
    struct reference_affine q_down, q_down_norm, q_up, q_direct, kv_down, kv_down_norm, kv_up;
    struct reference_affine router, experts_up, experts_down, shared_up, shared_down;
};

/* Of a layer with experts: raised, acted and made are of the copies of all tokens, (s, copies, *). */
struct expert_values {
    double *logits, *weights; /* (s, experts), (s, copies) */
    double *raised, *acted, *made;
    double *shared_raised, *shared_acted;
};

/* Values of a layer's forward that its backward needs. */
struct layer_values {
    double *x, *normed1;       /* (s, hidden): the layer's input */
    double *q_plain, *k_plain; /* before qk_norm, (s, heads, dim), (s, kv_heads, dim) */
    double *q, *k, *v;         /* as attention reads them */
    double *attended, *lse;    /* (s, heads, vdim), (s, heads) */
    /* of latent attention: narrow vectors and their norms, (s, q_latent), (s, kv_latent) */
    double *q_latent, *q_normed, *kv_latent, *kv_normed;
    double *mixed,
        *lowered; /* (s, hidden): what the branches compute, before the norms that end them */
    double *middle, *normed2;   /* (s, hidden): after attention's residual */
    double *raised, *acted, *y; /* (s, ffn or 2 ffn), (s, ffn), (s, hidden) */
    struct expert_values experts;
};

/* The storage of results, and the random numbers that round them. */
struct storage {
    struct reference_rounding rounding;
    uint64_t state;
};

/* part: of the pass over a sequence; the same numbers are drawn for it whenever it is done again. */
static struct storage storage_of(const struct reference *r, uint64_t number, uint64_t part)
{
    uint64_t state = r->rounding.seed * UINT64_C(0x9e3779b97f4a7c15) + number;
    return (struct storage){r->rounding, state * UINT64_C(0xbf58476d1ce4e5b9) + part};
}

/* Returns the next uniform number of [-1/2, 1/2), from splitmix64. */
static double draw(struct storage *storage)
{
    uint64_t z = storage->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53 - 0.5;
}

/* Moves x in place as storing it with fewer digits may (struct reference_rounding), and returns it. */
static double *stored(struct storage *storage, double *x, size_t count)
{
    const struct reference_rounding *rounding = &storage->rounding;
    for (size_t i = 0; i < count && rounding->digits > 0; i++) {
        int exponent; /* |x| lies from 2^(exponent - 1) to 2^exponent */
        frexp(x[i], &exponent);
        exponent = exponent - 1 > rounding->lowest ? exponent - 1 : rounding->lowest;
        if (x[i] != 0)
            x[i] += ldexp(draw(storage), exponent - (rounding->digits - 1));
    }
    return x;
}

/* The properties of a sequence that a layer needs. */
struct pass_sequence {
    size_t tokens;
    const int64_t *document_begin; /* as of struct reference_heads */
    const int32_t *const *experts; /* [layers] (tokens, experts_per_token); NULL: it has none */
};

static struct sizes sizes_of(const struct transformer *t, size_t layer,
                             const struct pass_sequence *sequence)
{
    return (struct sizes){
        .hidden = t->hidden,
        .q = transformer_q_width(t),
        .k = transformer_kv_width(t),
        .v = transformer_v_width(t),
        .o = transformer_o_width(t),
        .ffn = t->ffn,
        .heads = {sequence->tokens, t->heads, t->kv_heads, t->head_dim, (size_t)t->attention_chunk,
                  (size_t)t->attention_kept, sequence->document_begin,
                  (size_t)transformer_window(t, (int64_t)layer), (size_t)transformer_v_dim(t)},
    };
}

static double *zeros(struct arena *arena, size_t rows, size_t cols)
{
    return arena_array(arena, rows * cols, sizeof(double));
}

/* ---- parameters ---- */

/* Returns the tensor PREFIXname.weight with its bias, if it has one. Without the tensor: all NULL. */
static struct reference_affine affine(const struct reference *r, const char *prefix,
                                      const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s.weight", prefix, name);
    const struct reference_tensor *weight = reference_find(r, full);
    snprintf(full, sizeof full, "%s%s.bias", prefix, name);
    const struct reference_tensor *bias = reference_find(r, full);
    if (weight == NULL)
        return (struct reference_affine){0};
    return (struct reference_affine){
        .weight = weight->param,
        .bias = bias != NULL ? bias->param : NULL,
        .dweight = weight->grad,
        .dbias = bias != NULL ? bias->grad : NULL,
        .outputs = weight->rows,
        .inputs = weight->cols,
    };
}

static struct layer_parameters layer_parameters(const struct reference *r, int64_t layer)
{
    char prefix[40];
    snprintf(prefix, sizeof prefix, "layers.%lld.", (long long)layer);
    const bool gated = transformer_gated(&r->transformer);
    struct layer_parameters p = {
        .norm1 = affine(r, prefix, "norm1"),
        .qkv = affine(r, prefix, "wqkv"),
        .q_norm = affine(r, prefix, "q_norm"),
        .k_norm = affine(r, prefix, "k_norm"),
        .q_down = affine(r, prefix, "q_a"),
        .q_down_norm = affine(r, prefix, "q_a_norm"),
        .q_up = affine(r, prefix, "q_b"),
        .q_direct = affine(r, prefix, "q"),
        .kv_down = affine(r, prefix, "kv_a"),
        .kv_down_norm = affine(r, prefix, "kv_a_norm"),
        .kv_up = affine(r, prefix, "kv_b"),
        .o = affine(r, prefix, "wo"),
        .norm1_after = affine(r, prefix, "norm1_after"),
        .norm2 = affine(r, prefix, "norm2"),
        .up = affine(r, prefix, gated ? "w13" : "w1"),
        .down = affine(r, prefix, "w2"),
        .norm2_after = affine(r, prefix, "norm2_after"),
        .router = affine(r, prefix, "router"),
        .experts_up = affine(r, prefix, "experts.w13"),
        .experts_down = affine(r, prefix, "experts.w2"),
        .shared_up = affine(r, prefix, "shared.w13"),
        .shared_down = affine(r, prefix, "shared.w2"),
    };
    if (layer >= r->products.first && layer < r->products.end)
        p.qkv.products = p.o.products = p.up.products = p.down.products = &r->products;
    return p;
}

/* ---- a layer ---- */

/* Returns a copy of columns first..first+cols of x, (rows, stride). */
static double *columns(struct arena *arena, const double *x, size_t rows, size_t stride,
                       size_t first, size_t cols)
{
    double *y = zeros(arena, rows, cols);
    for (size_t i = 0; i < rows; i++)
        memcpy(&y[i * cols], &x[i * stride + first], cols * sizeof *y);
    return y;
}

static void put_columns(double *x, const double *y, size_t rows, size_t stride, size_t first,
                        size_t cols)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(&x[i * stride + first], &y[i * cols], cols * sizeof *y);
}

/* Returns the heads of q or k as attention reads them: normed, then turned by their position. */
static double *prepared(struct arena *arena, struct storage *to, const struct transformer *t,
                        const struct reference_affine *norm, const double *plain, size_t s,
                        size_t heads)
{
    const size_t dim = t->head_dim;
    const size_t norms = t->qk_norm_wide ? s : s * heads;
    double *y = t->qk_norm ? reference_norm(arena, norm, NORM_RMSNORM, t->norm_eps, plain, norms)
                           : columns(arena, plain, s, heads * dim, 0, heads * dim);
    if (t->qk_norm)
        stored(to, y, s * heads * dim);
    if (t->positions == POSITIONS_ROPE) {
        reference_rope(y, t->rope_theta, 1, s, heads, dim, dim);
        stored(to, y, s * heads * dim);
    }
    return y;
}

/* Returns the gradient before prepared() from the one after it, d, which is overwritten. */
static double *unprepared(struct arena *arena, struct storage *to, const struct transformer *t,
                          const struct reference_affine *norm, double *d, const double *plain,
                          size_t s, size_t heads)
{
    const size_t count = s * heads * t->head_dim;
    stored(to, d, count);
    if (t->positions == POSITIONS_ROPE) {
        reference_rope(d, t->rope_theta, -1, s, heads, t->head_dim, t->head_dim);
        stored(to, d, count);
    }
    if (!t->qk_norm)
        return d;
    double *dplain = zeros(arena, s, heads * t->head_dim);
    reference_norm_backward(norm, NORM_RMSNORM, t->norm_eps, dplain, d, plain,
                            t->qk_norm_wide ? s : s * heads);
    return stored(to, dplain, count);
}

static double *sum_of(struct arena *arena, const double *a, const double *b, size_t count)
{
    double *y = zeros(arena, count, 1);
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
    return y;
}

/* Returns x, (s, hidden), or its norm if there is one (a branch that has none there has no such tensor). */
static double *normed(struct arena *arena, struct storage *to, const struct transformer *t,
                      const struct reference_affine *norm, double *x, size_t s)
{
    if (norm->weight == NULL)
        return x;
    return stored(to, reference_norm(arena, norm, t->norm, t->norm_eps, x, s),
                  s * (size_t)t->hidden);
}

/* Returns the gradient of x from dy, that of normed(x). */
static double *unnormed(struct arena *arena, struct storage *to, const struct transformer *t,
                        const struct reference_affine *norm, double *dy, const double *x, size_t s)
{
    if (norm->weight == NULL)
        return dy;
    double *dx = zeros(arena, s, (size_t)t->hidden);
    reference_norm_backward(norm, t->norm, t->norm_eps, dx, dy, x, s);
    return stored(to, dx, s * (size_t)t->hidden);
}

/* ---- experts: a loop over the copies of tokens ---- */

/* Returns one expert's rows of the matrices of all. */
static struct reference_affine expert_of(const struct reference_affine *all, size_t experts,
                                         int32_t expert)
{
    struct reference_affine one = *all;
    one.outputs = all->outputs / experts;
    one.weight += (size_t)expert * one.outputs * one.inputs;
    one.dweight += (size_t)expert * one.outputs * one.inputs;
    return one;
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* Returns d score(expert[j]) / d logit[e]; *score: the score itself, before it is normalised. */
static double score_slope(const struct transformer *t, const double *logit, const int32_t *expert,
                          size_t j, size_t e, double *score)
{
    const size_t own = (size_t)expert[j];
    if (t->router == ROUTER_SIGMOID) {
        *score = logistic(logit[own]);
        return e == own ? *score * (1 - *score) : 0;
    }
    double sum = 0, other = 0;
    for (size_t i = 0; i < (size_t)t->experts; i++) {
        bool counts = t->router == ROUTER_SOFTMAX;
        for (size_t k = 0; k < (size_t)t->experts_per_token; k++)
            counts = counts || (size_t)expert[k] == i;
        sum += counts ? exp(logit[i] - logit[own]) : 0;
        other += counts && i == e ? exp(logit[i] - logit[own]) : 0;
    }
    *score = 1 / sum;
    return *score * ((e == own) - other / sum);
}

static double route_scale(const struct transformer *t)
{
    return t->router_scale > 0 ? t->router_scale : 1;
}

static double *route(struct arena *arena, const struct transformer *t, const double *logits,
                     const int32_t *expert, size_t s)
{
    const size_t copies = t->experts_per_token, experts = t->experts;
    double *weights = zeros(arena, s, copies);
    for (size_t i = 0; i < s; i++) {
        double sum = 0;
        for (size_t j = 0; j < copies; j++) {
            score_slope(t, &logits[i * experts], &expert[i * copies], j, 0,
                        &weights[i * copies + j]);
            sum += weights[i * copies + j];
        }
        for (size_t j = 0; j < copies; j++)
            weights[i * copies + j] *= route_scale(t) / (t->router_norm ? sum : 1);
    }
    return weights;
}

/* Adds the gradient of logits, straight from the definition: every score by every logit. */
static void route_backward(const struct transformer *t, double *d_logits, const double *d_weights,
                           const double *logits, const int32_t *expert, size_t s)
{
    const size_t copies = t->experts_per_token, experts = t->experts;
    for (size_t i = 0; i < s; i++)
        for (size_t e = 0; e < experts; e++) {
            double sum = 0, dsum = 0, score, d = 0, through = 0;
            for (size_t j = 0; j < copies; j++) {
                dsum += score_slope(t, &logits[i * experts], &expert[i * copies], j, e, &score);
                sum += score;
            }
            for (size_t j = 0; j < copies; j++) {
                const double slope =
                    score_slope(t, &logits[i * experts], &expert[i * copies], j, e, &score);
                const double dw = route_scale(t) * d_weights[i * copies + j];
                d += dw * slope / (t->router_norm ? sum : 1);
                through += t->router_norm ? dw * score * dsum / (sum * sum) : 0;
            }
            d_logits[i * experts + e] += d - through;
        }
}

/* Returns what the experts of each token and the shared ones add to it, (s, hidden). */
static double *experts_forward(struct arena *arena, struct storage *to, const struct transformer *t,
                               const struct layer_parameters *p, struct expert_values *v,
                               const double *x, const struct pass_sequence *sequence,
                               const int32_t *expert)
{
    const size_t s = sequence->tokens, h = t->hidden, f = t->expert_ffn;
    const size_t copies = t->experts_per_token, all = s * copies;
    v->logits = reference_linear(arena, &p->router, x, s);
    v->weights = route(arena, t, v->logits, expert, s);
    v->raised = zeros(arena, all, 2 * f);
    v->made = zeros(arena, all, h);
    for (size_t i = 0; i < all; i++) {
        struct arena one = {0};
        const struct reference_affine up = expert_of(&p->experts_up, t->experts, expert[i]);
        memcpy(&v->raised[i * 2 * f], reference_linear(&one, &up, &x[i / copies * h], 1),
               2 * f * sizeof(double));
        arena_release(&one);
    }
    stored(to, v->raised, all * 2 * f);
    v->acted = stored(to, reference_activation(arena, t->activation, v->raised, all, f), all * f);
    for (size_t i = 0; i < all; i++) {
        struct arena one = {0};
        const struct reference_affine down = expert_of(&p->experts_down, t->experts, expert[i]);
        memcpy(&v->made[i * h], reference_linear(&one, &down, &v->acted[i * f], 1),
               h * sizeof(double));
        arena_release(&one);
    }
    stored(to, v->made, all * h);
    double *y = zeros(arena, s, h);
    for (size_t i = 0; i < all; i++)
        for (size_t c = 0; c < h; c++)
            y[i / copies * h + c] += v->weights[i] * v->made[i * h + c];
    stored(to, y, s * h);
    if (t->shared_ffn == 0)
        return y;
    const size_t shared = t->shared_ffn;
    v->shared_raised = stored(to, reference_linear(arena, &p->shared_up, x, s), s * 2 * shared);
    v->shared_acted = stored(
        to, reference_activation(arena, t->activation, v->shared_raised, s, shared), s * shared);
    const double *add =
        stored(to, reference_linear(arena, &p->shared_down, v->shared_acted, s), s * h);
    return stored(to, sum_of(arena, y, add, s * h), s * h);
}

/* Returns the gradient of x. */
static double *experts_backward(struct arena *arena, struct storage *to,
                                const struct transformer *t, const struct layer_parameters *p,
                                const struct expert_values *v, const double *x, const double *dy,
                                const struct pass_sequence *sequence, const int32_t *expert)
{
    const size_t s = sequence->tokens, h = t->hidden, f = t->expert_ffn;
    const size_t copies = t->experts_per_token, all = s * copies;
    double *dmade = zeros(arena, all, h), *dweights = zeros(arena, s, copies);
    for (size_t i = 0; i < all; i++)
        for (size_t c = 0; c < h; c++) {
            dmade[i * h + c] = v->weights[i] * dy[i / copies * h + c];
            dweights[i] += v->made[i * h + c] * dy[i / copies * h + c];
        }
    stored(to, dmade, all * h);
    double *dacted = zeros(arena, all, f), *draised = zeros(arena, all, 2 * f);
    double *dcopy = zeros(arena, all, h);
    for (size_t i = 0; i < all; i++) {
        const struct reference_affine down = expert_of(&p->experts_down, t->experts, expert[i]);
        reference_linear_backward(&down, &dacted[i * f], &dmade[i * h], &v->acted[i * f], 1);
    }
    stored(to, dacted, all * f);
    reference_activation_backward(t->activation, draised, dacted, v->raised, all, f);
    stored(to, draised, all * 2 * f);
    for (size_t i = 0; i < all; i++) {
        const struct reference_affine up = expert_of(&p->experts_up, t->experts, expert[i]);
        reference_linear_backward(&up, &dcopy[i * h], &draised[i * 2 * f], &x[i / copies * h], 1);
    }
    stored(to, dcopy, all * h);
    double *dx = zeros(arena, s, h), *dlogits = zeros(arena, s, t->experts);
    for (size_t i = 0; i < all; i++)
        for (size_t c = 0; c < h; c++)
            dx[i / copies * h + c] += dcopy[i * h + c];
    route_backward(t, dlogits, dweights, v->logits, expert, s);
    stored(to, dlogits, s * (size_t)t->experts);
    reference_linear_backward(&p->router, dx, dlogits, x, s);
    if (t->shared_ffn > 0) {
        const size_t shared = t->shared_ffn;
        double *d_act = zeros(arena, s, shared), *d_up = zeros(arena, s, 2 * shared);
        reference_linear_backward(&p->shared_down, d_act, dy, v->shared_acted, s);
        stored(to, d_act, s * shared);
        reference_activation_backward(t->activation, d_up, d_act, v->shared_raised, s, shared);
        stored(to, d_up, s * 2 * shared);
        reference_linear_backward(&p->shared_up, dx, d_up, x, s);
    }
    return stored(to, dx, s * h);
}

/* ---- what comes before attention ---- */

static void projected_forward(struct arena *arena, struct storage *to, const struct transformer *t,
                              const struct layer_parameters *p, const struct sizes *n,
                              struct layer_values *l, size_t s)
{
    const size_t stride = n->q + n->k + n->v;
    const double *qkv = stored(to, reference_linear(arena, &p->qkv, l->normed1, s), s * stride);
    l->q_plain = columns(arena, qkv, s, stride, 0, n->q);
    l->k_plain = columns(arena, qkv, s, stride, n->q, n->k);
    l->v = columns(arena, qkv, s, stride, n->q + n->k, n->v);
    l->q = prepared(arena, to, t, &p->q_norm, l->q_plain, s, n->heads.heads);
    l->k = prepared(arena, to, t, &p->k_norm, l->k_plain, s, n->heads.kv_heads);
}

/* Adds the gradient of what the layer's attention reads. */
static void projected_backward(struct arena *arena, struct storage *to, const struct transformer *t,
                               const struct layer_parameters *p, const struct sizes *n,
                               const struct layer_values *l, double *dx, double *dq, double *dk,
                               const double *dv, size_t s)
{
    const size_t stride = n->q + n->k + n->v;
    dq = unprepared(arena, to, t, &p->q_norm, dq, l->q_plain, s, n->heads.heads);
    dk = unprepared(arena, to, t, &p->k_norm, dk, l->k_plain, s, n->heads.kv_heads);
    double *dqkv = zeros(arena, s, stride);
    put_columns(dqkv, dq, s, stride, 0, n->q);
    put_columns(dqkv, dk, s, stride, n->q, n->k);
    put_columns(dqkv, dv, s, stride, n->q + n->k, n->v);
    reference_linear_backward(&p->qkv, dx, dqkv, l->normed1, s);
}

/* Latent attention (DeepSeek-V2, arXiv 2405.04434, equations 9 to 19 of section 2.1): q of a narrow normed vector, or
 * of x itself; k and v of another one, and rotated key columns that all heads share. */
static void latent_forward(struct arena *arena, struct storage *to, const struct transformer *t,
                           const struct layer_parameters *p, struct layer_values *l, size_t s)
{
    const size_t heads = t->heads, dim = t->head_dim, rope = t->rope_dim, latent = t->kv_latent;
    const size_t plain = dim - rope, vdim = t->v_dim, up = plain + vdim;
    const struct reference_affine *q_up = &p->q_direct;
    double *q_in = l->normed1;
    if (t->q_latent > 0) {
        l->q_latent =
            stored(to, reference_linear(arena, &p->q_down, l->normed1, s), s * (size_t)t->q_latent);
        l->q_normed = q_in = stored(
            to, reference_norm(arena, &p->q_down_norm, NORM_RMSNORM, t->norm_eps, l->q_latent, s),
            s * (size_t)t->q_latent);
        q_up = &p->q_up;
    }
    l->q = stored(to, reference_linear(arena, q_up, q_in, s), s * heads * dim);
    reference_rope(l->q, t->rope_theta, 1, s, heads, dim, rope);
    stored(to, l->q, s * heads * dim);

    const double *both =
        stored(to, reference_linear(arena, &p->kv_down, l->normed1, s), s * (latent + rope));
    l->kv_latent = columns(arena, both, s, latent + rope, 0, latent);
    double *shared = columns(arena, both, s, latent + rope, latent, rope);
    reference_rope(shared, t->rope_theta, 1, s, 1, rope, rope);
    stored(to, shared, s * rope);
    l->kv_normed = stored(
        to, reference_norm(arena, &p->kv_down_norm, NORM_RMSNORM, t->norm_eps, l->kv_latent, s),
        s * latent);
    const double *wide =
        stored(to, reference_linear(arena, &p->kv_up, l->kv_normed, s), s * heads * up);
    l->k = zeros(arena, s, heads * dim);
    l->v = zeros(arena, s, heads * vdim);
    for (size_t i = 0; i < s; i++)
        for (size_t h = 0; h < heads; h++) {
            const double *from = &wide[(i * heads + h) * up];
            double *k = &l->k[(i * heads + h) * dim];
            memcpy(k, from, plain * sizeof *k);
            memcpy(k + plain, &shared[i * rope], rope * sizeof *k);
            memcpy(&l->v[(i * heads + h) * vdim], from + plain, vdim * sizeof *k);
        }
}

/* Returns the gradient of a narrow vector from that of its norm. */
static double *narrow_backward(struct arena *arena, struct storage *to, const struct transformer *t,
                               const struct reference_affine *norm, const double *dnormed,
                               const double *x, size_t s)
{
    double *dx = zeros(arena, s, norm->outputs);
    reference_norm_backward(norm, NORM_RMSNORM, t->norm_eps, dx, dnormed, x, s);
    return stored(to, dx, s * norm->outputs);
}

/* Adds the gradient of what the layer's attention reads; overwrites dq. */
static void latent_backward(struct arena *arena, struct storage *to, const struct transformer *t,
                            const struct layer_parameters *p, const struct layer_values *l,
                            double *dx, double *dq, const double *dk, const double *dv, size_t s)
{
    const size_t heads = t->heads, dim = t->head_dim, rope = t->rope_dim, latent = t->kv_latent;
    const size_t plain = dim - rope, vdim = t->v_dim, up = plain + vdim;
    stored(to, dq, s * heads * dim);
    reference_rope(dq, t->rope_theta, -1, s, heads, dim, rope);
    stored(to, dq, s * heads * dim);
    if (t->q_latent > 0) {
        double *dnormed = zeros(arena, s, (size_t)t->q_latent);
        reference_linear_backward(&p->q_up, dnormed, dq, l->q_normed, s);
        stored(to, dnormed, s * (size_t)t->q_latent);
        const double *dlow =
            narrow_backward(arena, to, t, &p->q_down_norm, dnormed, l->q_latent, s);
        reference_linear_backward(&p->q_down, dx, dlow, l->normed1, s);
    } else {
        reference_linear_backward(&p->q_direct, dx, dq, l->normed1, s);
    }

    double *dwide = zeros(arena, s, heads * up), *dshared = zeros(arena, s, rope);
    for (size_t i = 0; i < s; i++)
        for (size_t h = 0; h < heads; h++) {
            const double *from = &dk[(i * heads + h) * dim];
            double *d = &dwide[(i * heads + h) * up];
            memcpy(d, from, plain * sizeof *d);
            memcpy(d + plain, &dv[(i * heads + h) * vdim], vdim * sizeof *d);
            for (size_t j = 0; j < rope; j++)
                dshared[i * rope + j] += from[plain + j];
        }
    stored(to, dshared, s * rope);
    reference_rope(dshared, t->rope_theta, -1, s, 1, rope, rope);
    stored(to, dshared, s * rope);
    double *dnormed = zeros(arena, s, latent);
    reference_linear_backward(&p->kv_up, dnormed, dwide, l->kv_normed, s);
    stored(to, dnormed, s * latent);
    const double *dlow = narrow_backward(arena, to, t, &p->kv_down_norm, dnormed, l->kv_latent, s);
    double *dboth = zeros(arena, s, latent + rope);
    put_columns(dboth, dlow, s, latent + rope, 0, latent);
    put_columns(dboth, dshared, s, latent + rope, latent, rope);
    reference_linear_backward(&p->kv_down, dx, dboth, l->normed1, s);
}

/* ---- a whole layer ---- */

static struct layer_values layer_forward(struct arena *arena, struct storage to,
                                         const struct transformer *t,
                                         const struct layer_parameters *p, size_t layer, double *x,
                                         const struct pass_sequence *sequence)
{
    const size_t s = sequence->tokens;
    const struct sizes n = sizes_of(t, layer, sequence);
    const size_t rows = s * n.hidden;
    struct layer_values l = {.x = x};

    l.normed1 = normed(arena, &to, t, &p->norm1, x, s);
    if (t->kv_latent > 0)
        latent_forward(arena, &to, t, p, &l, s);
    else
        projected_forward(arena, &to, t, p, &n, &l, s);
    l.attended = reference_attention(arena, &n.heads, l.q, l.k, l.v, &l.lse);
    stored(&to, l.attended, s * n.o);
    l.mixed = stored(&to, reference_linear(arena, &p->o, l.attended, s), rows);
    const double *branch = normed(arena, &to, t, &p->norm1_after, l.mixed, s);
    l.middle = stored(&to, sum_of(arena, x, branch, rows), rows);

    l.normed2 = normed(arena, &to, t, &p->norm2, l.middle, s);
    if (transformer_has_experts(t, (int64_t)layer)) {
        l.lowered = experts_forward(arena, &to, t, p, &l.experts, l.normed2, sequence,
                                    sequence->experts[layer]);
    } else {
        l.raised = stored(&to, reference_linear(arena, &p->up, l.normed2, s), s * p->up.outputs);
        l.acted =
            stored(&to, reference_activation(arena, t->activation, l.raised, s, n.ffn), s * n.ffn);
        l.lowered = stored(&to, reference_linear(arena, &p->down, l.acted, s), rows);
    }
    branch = normed(arena, &to, t, &p->norm2_after, l.lowered, s);
    l.y = stored(&to, sum_of(arena, l.middle, branch, rows), rows);
    return l;
}

/* d += branch, as it is stored. */
static void add_branch(struct storage *to, double *d, const double *branch, size_t count)
{
    for (size_t i = 0; i < count; i++)
        d[i] += branch[i];
    stored(to, d, count);
}

/* Returns the gradient of what the feed-forward part reads. */
static double *dense_backward(struct arena *arena, struct storage *to, const struct transformer *t,
                              const struct layer_parameters *p, size_t ffn,
                              const struct layer_values *l, const double *dlowered, size_t s)
{
    double *dacted = zeros(arena, s, ffn);
    reference_linear_backward(&p->down, dacted, dlowered, l->acted, s);
    stored(to, dacted, s * ffn);
    double *draised = zeros(arena, s, p->up.outputs);
    reference_activation_backward(t->activation, draised, dacted, l->raised, s, ffn);
    stored(to, draised, s * p->up.outputs);
    double *dnormed2 = zeros(arena, s, (size_t)t->hidden);
    reference_linear_backward(&p->up, dnormed2, draised, l->normed2, s);
    return stored(to, dnormed2, s * (size_t)t->hidden);
}

/* Adds the gradients of a layer. On entry d holds the gradient of the layer's output, on return that of its input:
 * the gradient through the residual is already in it, and each branch adds its own. */
static void layer_backward(struct arena *arena, struct storage to, const struct transformer *t,
                           const struct layer_parameters *p, size_t layer,
                           const struct layer_values *l, double *d,
                           const struct pass_sequence *sequence)
{
    const size_t s = sequence->tokens;
    const struct sizes n = sizes_of(t, layer, sequence);
    const double *dlowered = unnormed(arena, &to, t, &p->norm2_after, d, l->lowered, s);
    double *dnormed2 = transformer_has_experts(t, (int64_t)layer)
                           ? experts_backward(arena, &to, t, p, &l->experts, l->normed2, dlowered,
                                              sequence, sequence->experts[layer])
                           : dense_backward(arena, &to, t, p, n.ffn, l, dlowered, s);
    add_branch(&to, d, unnormed(arena, &to, t, &p->norm2, dnormed2, l->middle, s), s * n.hidden);

    const double *dmixed = unnormed(arena, &to, t, &p->norm1_after, d, l->mixed, s);
    double *dattended = zeros(arena, s, n.o);
    reference_linear_backward(&p->o, dattended, dmixed, l->attended, s);
    stored(&to, dattended, s * n.o);
    double *dq = zeros(arena, s, n.q), *dk = zeros(arena, s, n.k), *dv = zeros(arena, s, n.v);
    reference_attention_backward(&n.heads, dq, dk, dv, dattended, l->q, l->k, l->v, l->attended,
                                 l->lse);
    stored(&to, dv, s * n.v);
    double *dnormed1 = zeros(arena, s, n.hidden);
    if (t->kv_latent > 0)
        latent_backward(arena, &to, t, p, l, dnormed1, dq, dk, dv, s);
    else
        projected_backward(arena, &to, t, p, &n, l, dnormed1, dq, dk, dv, s);
    stored(&to, dnormed1, s * n.hidden);
    add_branch(&to, d, unnormed(arena, &to, t, &p->norm1, dnormed1, l->x, s), s * n.hidden);
}

/* ---- the ends ---- */

static void embed(const struct reference_affine *table, const struct reference_affine *places,
                  double *x, const int32_t *tokens, size_t s)
{
    const size_t hidden = table->inputs;
    for (size_t i = 0; i < s; i++)
        for (size_t j = 0; j < hidden; j++)
            x[i * hidden + j] = table->weight[(size_t)tokens[i] * hidden + j] +
                                (places->weight != NULL ? places->weight[i * hidden + j] : 0);
}

static void embed_backward(const struct reference_affine *table,
                           const struct reference_affine *places, const double *dx,
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

/* Computes the logits and returns the loss of x, (s, hidden); with dx, the gradients too. */
static double head(struct storage *to, const struct reference_affine *p, const double *x,
                   const int32_t *labels, size_t s, double scale, double *dx)
{
    double loss = 0;
    for (size_t i = 0; i < s; i += HEAD_ROWS) {
        const size_t rows = s - i < HEAD_ROWS ? s - i : HEAD_ROWS;
        struct arena arena = {0};
        double *logits = reference_linear(&arena, p, &x[i * p->inputs], rows);
        stored(to, logits, rows * p->outputs);
        loss += reference_cross_entropy(logits, &labels[i], scale, rows, p->outputs);
        stored(to, logits, rows * p->outputs);
        if (dx != NULL)
            reference_linear_backward(p, &dx[i * p->inputs], logits, &x[i * p->inputs], rows);
        arena_release(&arena);
    }
    return loss;
}

/* Returns the first token of the document of each token; NULL without a list. */
static int64_t *document_begins(struct arena *arena, const struct document_list *list, size_t s)
{
    if (list == NULL)
        return NULL;
    int64_t *begin = arena_array(arena, s, sizeof *begin);
    for (size_t i = 0; i < s; i++)
        begin[i] = document_begin(list, document_at(list, (int64_t)i));
    return begin;
}

double reference_sequence(struct reference *r, const int32_t *tokens, const int32_t *labels,
                          size_t seq_len, const int32_t *const *expert,
                          const struct document_list *documents, uint64_t number, double scale,
                          bool gradients)
{
    const struct transformer *t = &r->transformer;
    const size_t s = seq_len, hidden = t->hidden, layers = t->layers;
    const struct reference_affine table = affine(r, "", "embedding");
    const struct reference_affine places = affine(r, "", "positions");
    const struct reference_affine norm = affine(r, "", "norm");
    const struct reference_affine out = t->tied_head ? table : affine(r, "", "head");
    struct arena arena = {0};
    struct storage ends = storage_of(r, number, 2 * layers);
    const struct pass_sequence sequence = {s, document_begins(&arena, documents, s), expert};

    /* Only the input of every layer is kept; the backward goes through the layer again. */
    double **x = arena_array(&arena, layers + 1, sizeof *x);
    for (size_t i = 0; i <= layers; i++)
        x[i] = zeros(&arena, s, hidden);
    embed(&table, &places, x[0], tokens, s);
    if (places.weight != NULL)
        stored(&ends, x[0], s * hidden);
    for (size_t i = 0; i < layers; i++) {
        const struct layer_parameters p = layer_parameters(r, (int64_t)i);
        struct arena inside = {0};
        const struct layer_values l =
            layer_forward(&inside, storage_of(r, number, 2 * i), t, &p, i, x[i], &sequence);
        memcpy(x[i + 1], l.y, s * hidden * sizeof *l.y);
        arena_release(&inside);
    }

    double *normed = reference_norm(&arena, &norm, t->norm, t->norm_eps, x[layers], s);
    stored(&ends, normed, s * hidden);
    double *dnormed = gradients ? zeros(&arena, s, hidden) : NULL;
    const double loss = head(&ends, &out, normed, labels, s, scale, dnormed);
    if (!gradients)
        goto out;

    double *d = zeros(&arena, s, hidden);
    stored(&ends, dnormed, s * hidden);
    reference_norm_backward(&norm, t->norm, t->norm_eps, d, dnormed, x[layers], s);
    stored(&ends, d, s * hidden);
    for (size_t i = layers; i-- > 0;) {
        const struct layer_parameters p = layer_parameters(r, (int64_t)i);
        struct arena inside = {0};
        const struct layer_values l =
            layer_forward(&inside, storage_of(r, number, 2 * i), t, &p, i, x[i], &sequence);
        layer_backward(&inside, storage_of(r, number, 2 * i + 1), t, &p, i, &l, d, &sequence);
        arena_release(&inside);
    }
    embed_backward(&table, &places, d, tokens, s);
out:
    arena_release(&arena);
    return loss;
}
