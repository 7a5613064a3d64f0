/* The reference's projections to q, k and v, forward and backward: direct ones, and those of latent attention, which
 * first project to narrow latent vectors. */
#include "exec/reference_layer.h"
#include "exec/reference_math.h"

#include <string.h>

/* Returns a copy of columns first .. first + cols - 1 of x, (rows, stride). copy_columns_in() writes such columns
 * back. */
static double *copy_columns_out(struct arena *arena, const double *x, size_t rows, size_t stride,
                                size_t first, size_t cols)
{
    double *y = reference_zeros(arena, rows, cols);
    for (size_t i = 0; i < rows; i++)
        memcpy(&y[i * cols], &x[i * stride + first], cols * sizeof *y);
    return y;
}

static void copy_columns_in(double *x, const double *y, size_t rows, size_t stride, size_t first,
                            size_t cols)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(&x[i * stride + first], &y[i * cols], cols * sizeof *y);
}

/* Returns the norm of the heads of q or k; it has no weights if the model's qk_norm has none. */
static struct reference_weight_and_bias
head_norm_parameters(const struct transformer *t, const struct reference_weight_and_bias *norm)
{
    return t->qk_norm_bare ? (struct reference_weight_and_bias){.outputs = (size_t)t->head_dim}
                           : *norm;
}

/* Returns the heads of q or k as attention reads them: with qk_norm and then RoPE, where the layer has them. */
static double *apply_qk_norm_and_rope(struct arena *arena, struct reference_rounding_state *to,
                                      const struct transformer *t,
                                      const struct reference_layer_widths *n,
                                      const struct reference_weight_and_bias *of,
                                      const double *plain, size_t s, size_t heads)
{
    const size_t dim = t->head_dim;
    const size_t norms = t->qk_norm_wide ? s : s * heads;
    const struct reference_weight_and_bias own = head_norm_parameters(t, of), *norm = &own;
    double *y = n->norms_heads_of_q_and_k
                    ? reference_norm(arena, norm, NORM_RMSNORM, t->norm_eps, plain, norms)
                    : copy_columns_out(arena, plain, s, heads * dim, 0, heads * dim);
    if (n->norms_heads_of_q_and_k)
        reference_perturb_like_rounding(to, y, s * heads * dim);
    if (n->applies_rope) {
        reference_rope(y, t->rope_theta, 1, s, heads, dim, dim);
        reference_perturb_like_rounding(to, y, s * heads * dim);
    }
    return y;
}

/* Returns the gradient of the input of apply_qk_norm_and_rope() from d, the gradient of its result. Overwrites d, and
 * adds the gradients of the norm's weights. */
static double *qk_norm_and_rope_backward(struct arena *arena, struct reference_rounding_state *to,
                                         const struct transformer *t,
                                         const struct reference_layer_widths *n,
                                         const struct reference_weight_and_bias *of, double *d,
                                         const double *plain, size_t s, size_t heads)
{
    const size_t count = s * heads * t->head_dim;
    const struct reference_weight_and_bias own = head_norm_parameters(t, of), *norm = &own;
    reference_perturb_like_rounding(to, d, count);
    if (n->applies_rope) {
        reference_rope(d, t->rope_theta, -1, s, heads, t->head_dim, t->head_dim);
        reference_perturb_like_rounding(to, d, count);
    }
    if (!n->norms_heads_of_q_and_k)
        return d;
    double *dplain = reference_zeros(arena, s, heads * t->head_dim);
    reference_norm_backward(norm, NORM_RMSNORM, t->norm_eps, dplain, d, plain,
                            t->qk_norm_wide ? s : s * heads);
    return reference_perturb_like_rounding(to, dplain, count);
}

void reference_projected_qkv_forward(struct arena *arena, struct reference_rounding_state *to,
                                     const struct transformer *t,
                                     const struct reference_layer_parameters *p,
                                     const struct reference_layer_widths *n,
                                     struct reference_saved_activations *l, size_t s)
{
    const size_t stride = n->q + n->k + n->v;
    const double *qkv = reference_perturb_like_rounding(
        to, reference_linear(arena, &p->qkv, l->normed1, s), s * stride);
    l->q_plain = copy_columns_out(arena, qkv, s, stride, 0, n->q);
    l->k_plain = copy_columns_out(arena, qkv, s, stride, n->q, n->k);
    l->v = copy_columns_out(arena, qkv, s, stride, n->q + n->k, n->v);
    l->q = apply_qk_norm_and_rope(arena, to, t, n, &p->q_norm, l->q_plain, s,
                                  n->attention_shape.heads);
    l->k = apply_qk_norm_and_rope(arena, to, t, n, &p->k_norm, l->k_plain, s,
                                  n->attention_shape.kv_heads);
}

void reference_projected_qkv_backward(struct arena *arena, struct reference_rounding_state *to,
                                      const struct transformer *t,
                                      const struct reference_layer_parameters *p,
                                      const struct reference_layer_widths *n,
                                      const struct reference_saved_activations *l, double *dx,
                                      double *dq, double *dk, const double *dv, size_t s)
{
    const size_t stride = n->q + n->k + n->v;
    dq = qk_norm_and_rope_backward(arena, to, t, n, &p->q_norm, dq, l->q_plain, s,
                                   n->attention_shape.heads);
    dk = qk_norm_and_rope_backward(arena, to, t, n, &p->k_norm, dk, l->k_plain, s,
                                   n->attention_shape.kv_heads);
    double *dqkv = reference_zeros(arena, s, stride);
    copy_columns_in(dqkv, dq, s, stride, 0, n->q);
    copy_columns_in(dqkv, dk, s, stride, n->q, n->k);
    copy_columns_in(dqkv, dv, s, stride, n->q + n->k, n->v);
    reference_linear_backward(&p->qkv, dx, dqkv, l->normed1, s);
}

void reference_latent_qkv_forward(struct arena *arena, struct reference_rounding_state *to,
                                  const struct transformer *t,
                                  const struct reference_layer_parameters *p,
                                  struct reference_saved_activations *l, size_t s)
{
    const size_t heads = t->heads, dim = t->head_dim, rope = t->rope_dim, latent = t->kv_latent;
    const size_t plain = dim - rope, vdim = t->v_dim, up = plain + vdim;
    const struct reference_weight_and_bias *q_up = &p->q_direct;
    double *q_in = l->normed1;
    if (t->q_latent > 0) {
        l->q_latent = reference_perturb_like_rounding(
            to, reference_linear(arena, &p->q_down, l->normed1, s), s * (size_t)t->q_latent);
        l->q_normed = q_in = reference_perturb_like_rounding(
            to, reference_norm(arena, &p->q_down_norm, NORM_RMSNORM, t->norm_eps, l->q_latent, s),
            s * (size_t)t->q_latent);
        q_up = &p->q_up;
    }
    l->q = reference_perturb_like_rounding(to, reference_linear(arena, q_up, q_in, s),
                                           s * heads * dim);
    reference_rope(l->q, t->rope_theta, 1, s, heads, dim, rope);
    reference_perturb_like_rounding(to, l->q, s * heads * dim);

    const double *both = reference_perturb_like_rounding(
        to, reference_linear(arena, &p->kv_down, l->normed1, s), s * (latent + rope));
    l->kv_latent = copy_columns_out(arena, both, s, latent + rope, 0, latent);
    double *shared = copy_columns_out(arena, both, s, latent + rope, latent, rope);
    reference_rope(shared, t->rope_theta, 1, s, 1, rope, rope);
    reference_perturb_like_rounding(to, shared, s * rope);
    l->kv_normed = reference_perturb_like_rounding(
        to, reference_norm(arena, &p->kv_down_norm, NORM_RMSNORM, t->norm_eps, l->kv_latent, s),
        s * latent);
    const double *wide = reference_perturb_like_rounding(
        to, reference_linear(arena, &p->kv_up, l->kv_normed, s), s * heads * up);
    l->k = reference_zeros(arena, s, heads * dim);
    l->v = reference_zeros(arena, s, heads * vdim);
    for (size_t i = 0; i < s; i++)
        for (size_t h = 0; h < heads; h++) {
            const double *from = &wide[(i * heads + h) * up];
            double *k = &l->k[(i * heads + h) * dim];
            memcpy(k, from, plain * sizeof *k);
            memcpy(k + plain, &shared[i * rope], rope * sizeof *k);
            memcpy(&l->v[(i * heads + h) * vdim], from + plain, vdim * sizeof *k);
        }
}

/* Returns the gradient of a latent vector x, given dnormed, the gradient of its norm. Adds the gradients of the norm's
 * weights. */
static double *latent_norm_backward(struct arena *arena, struct reference_rounding_state *to,
                                    const struct transformer *t,
                                    const struct reference_weight_and_bias *norm,
                                    const double *dnormed, const double *x, size_t s)
{
    double *dx = reference_zeros(arena, s, norm->outputs);
    reference_norm_backward(norm, NORM_RMSNORM, t->norm_eps, dx, dnormed, x, s);
    return reference_perturb_like_rounding(to, dx, s * norm->outputs);
}

void reference_latent_qkv_backward(struct arena *arena, struct reference_rounding_state *to,
                                   const struct transformer *t,
                                   const struct reference_layer_parameters *p,
                                   const struct reference_saved_activations *l, double *dx,
                                   double *dq, const double *dk, const double *dv, size_t s)
{
    const size_t heads = t->heads, dim = t->head_dim, rope = t->rope_dim, latent = t->kv_latent;
    const size_t plain = dim - rope, vdim = t->v_dim, up = plain + vdim;
    reference_perturb_like_rounding(to, dq, s * heads * dim);
    reference_rope(dq, t->rope_theta, -1, s, heads, dim, rope);
    reference_perturb_like_rounding(to, dq, s * heads * dim);
    if (t->q_latent > 0) {
        double *dnormed = reference_zeros(arena, s, (size_t)t->q_latent);
        reference_linear_backward(&p->q_up, dnormed, dq, l->q_normed, s);
        reference_perturb_like_rounding(to, dnormed, s * (size_t)t->q_latent);
        const double *dlow =
            latent_norm_backward(arena, to, t, &p->q_down_norm, dnormed, l->q_latent, s);
        reference_linear_backward(&p->q_down, dx, dlow, l->normed1, s);
    } else {
        reference_linear_backward(&p->q_direct, dx, dq, l->normed1, s);
    }

    double *dwide = reference_zeros(arena, s, heads * up),
           *dshared = reference_zeros(arena, s, rope);
    for (size_t i = 0; i < s; i++)
        for (size_t h = 0; h < heads; h++) {
            const double *from = &dk[(i * heads + h) * dim];
            double *d = &dwide[(i * heads + h) * up];
            memcpy(d, from, plain * sizeof *d);
            memcpy(d + plain, &dv[(i * heads + h) * vdim], vdim * sizeof *d);
            for (size_t j = 0; j < rope; j++)
                dshared[i * rope + j] += from[plain + j];
        }
    reference_perturb_like_rounding(to, dshared, s * rope);
    reference_rope(dshared, t->rope_theta, -1, s, 1, rope, rope);
    reference_perturb_like_rounding(to, dshared, s * rope);
    double *dnormed = reference_zeros(arena, s, latent);
    reference_linear_backward(&p->kv_up, dnormed, dwide, l->kv_normed, s);
    reference_perturb_like_rounding(to, dnormed, s * latent);
    const double *dlow =
        latent_norm_backward(arena, to, t, &p->kv_down_norm, dnormed, l->kv_latent, s);
    double *dboth = reference_zeros(arena, s, latent + rope);
    copy_columns_in(dboth, dlow, s, latent + rope, 0, latent);
    copy_columns_in(dboth, dshared, s, latent + rope, latent, rope);
    reference_linear_backward(&p->kv_down, dx, dboth, l->normed1, s);
}
