#include "exec/reference_pass.h"

#include "exec/reference_math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Logits are made for this many tokens at a time: with a vocabulary of 10^5 those of a whole
 * sequence would be the largest array by far. */
#define HEAD_ROWS 64

struct sizes {
    size_t hidden, q, kv, ffn;
    struct reference_heads heads;
};

struct layer_parameters {
    struct reference_affine norm1, qkv, q_norm, k_norm, o, norm1_after, norm2, up, down,
        norm2_after;
};

/* Values of a layer's forward that its backward needs. */
struct layer_values {
    double *x, *normed1;       /* (s, hidden): the layer's input */
    double *q_plain, *k_plain; /* before qk_norm, (s, heads, dim), (s, kv_heads, dim) */
    double *q, *k, *v;         /* as attention reads them */
    double *attended, *lse;    /* (s, heads, dim), (s, heads) */
    double *mixed,
        *lowered; /* (s, hidden): what the branches compute, before the norms that end them */
    double *middle, *normed2;   /* (s, hidden): after attention's residual */
    double *raised, *acted, *y; /* (s, ffn or 2 ffn), (s, ffn), (s, hidden) */
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
};

static struct sizes sizes_of(const struct transformer *t, size_t layer,
                             const struct pass_sequence *sequence)
{
    return (struct sizes){
        .hidden = t->hidden,
        .q = transformer_q_width(t),
        .kv = transformer_kv_width(t),
        .ffn = t->ffn,
        .heads = {sequence->tokens, t->heads, t->kv_heads, t->head_dim, (size_t)t->attention_chunk,
                  (size_t)t->attention_kept, sequence->document_begin,
                  (size_t)transformer_window(t, (int64_t)layer)},
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
    return (struct layer_parameters){
        .norm1 = affine(r, prefix, "norm1"),
        .qkv = affine(r, prefix, "wqkv"),
        .q_norm = affine(r, prefix, "q_norm"),
        .k_norm = affine(r, prefix, "k_norm"),
        .o = affine(r, prefix, "wo"),
        .norm1_after = affine(r, prefix, "norm1_after"),
        .norm2 = affine(r, prefix, "norm2"),
        .up = affine(r, prefix, gated ? "w13" : "w1"),
        .down = affine(r, prefix, "w2"),
        .norm2_after = affine(r, prefix, "norm2_after"),
    };
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
        reference_rope(y, t->rope_theta, 1, s, heads, dim);
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
        reference_rope(d, t->rope_theta, -1, s, heads, t->head_dim);
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

static struct layer_values layer_forward(struct arena *arena, struct storage to,
                                         const struct transformer *t,
                                         const struct layer_parameters *p, size_t layer, double *x,
                                         const struct pass_sequence *sequence)
{
    const size_t s = sequence->tokens;
    const struct sizes n = sizes_of(t, layer, sequence);
    const size_t stride = n.q + 2 * n.kv, rows = s * n.hidden;
    struct layer_values l = {.x = x};

    l.normed1 = normed(arena, &to, t, &p->norm1, x, s);
    const double *qkv = stored(&to, reference_linear(arena, &p->qkv, l.normed1, s), s * stride);
    l.q_plain = columns(arena, qkv, s, stride, 0, n.q);
    l.k_plain = columns(arena, qkv, s, stride, n.q, n.kv);
    l.v = columns(arena, qkv, s, stride, n.q + n.kv, n.kv);
    l.q = prepared(arena, &to, t, &p->q_norm, l.q_plain, s, n.heads.heads);
    l.k = prepared(arena, &to, t, &p->k_norm, l.k_plain, s, n.heads.kv_heads);
    l.attended = reference_attention(arena, &n.heads, l.q, l.k, l.v, &l.lse);
    stored(&to, l.attended, s * n.q);
    l.mixed = stored(&to, reference_linear(arena, &p->o, l.attended, s), rows);
    const double *branch = normed(arena, &to, t, &p->norm1_after, l.mixed, s);
    l.middle = stored(&to, sum_of(arena, x, branch, rows), rows);

    l.normed2 = normed(arena, &to, t, &p->norm2, l.middle, s);
    l.raised = stored(&to, reference_linear(arena, &p->up, l.normed2, s), s * p->up.outputs);
    l.acted =
        stored(&to, reference_activation(arena, t->activation, l.raised, s, n.ffn), s * n.ffn);
    l.lowered = stored(&to, reference_linear(arena, &p->down, l.acted, s), rows);
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

/* Adds the gradients of a layer. On entry d holds the gradient of the layer's output, on return that of its input:
 * the gradient through the residual is already in it, and each branch adds its own. */
static void layer_backward(struct arena *arena, struct storage to, const struct transformer *t,
                           const struct layer_parameters *p, size_t layer,
                           const struct layer_values *l, double *d,
                           const struct pass_sequence *sequence)
{
    const size_t s = sequence->tokens;
    const struct sizes n = sizes_of(t, layer, sequence);
    const size_t stride = n.q + 2 * n.kv;

    const double *dlowered = unnormed(arena, &to, t, &p->norm2_after, d, l->lowered, s);
    double *dacted = zeros(arena, s, n.ffn);
    reference_linear_backward(&p->down, dacted, dlowered, l->acted, s);
    stored(&to, dacted, s * n.ffn);
    double *draised = zeros(arena, s, p->up.outputs);
    reference_activation_backward(t->activation, draised, dacted, l->raised, s, n.ffn);
    stored(&to, draised, s * p->up.outputs);
    double *dnormed2 = zeros(arena, s, n.hidden);
    reference_linear_backward(&p->up, dnormed2, draised, l->normed2, s);
    stored(&to, dnormed2, s * n.hidden);
    add_branch(&to, d, unnormed(arena, &to, t, &p->norm2, dnormed2, l->middle, s), s * n.hidden);

    const double *dmixed = unnormed(arena, &to, t, &p->norm1_after, d, l->mixed, s);
    double *dattended = zeros(arena, s, n.q);
    reference_linear_backward(&p->o, dattended, dmixed, l->attended, s);
    stored(&to, dattended, s * n.q);
    double *dq = zeros(arena, s, n.q), *dk = zeros(arena, s, n.kv), *dv = zeros(arena, s, n.kv);
    reference_attention_backward(&n.heads, dq, dk, dv, dattended, l->q, l->k, l->v, l->attended,
                                 l->lse);
    dq = unprepared(arena, &to, t, &p->q_norm, dq, l->q_plain, s, n.heads.heads);
    dk = unprepared(arena, &to, t, &p->k_norm, dk, l->k_plain, s, n.heads.kv_heads);
    stored(&to, dv, s * n.kv);
    double *dqkv = zeros(arena, s, stride);
    put_columns(dqkv, dq, s, stride, 0, n.q);
    put_columns(dqkv, dk, s, stride, n.q, n.kv);
    put_columns(dqkv, dv, s, stride, n.q + n.kv, n.kv);
    double *dnormed1 = zeros(arena, s, n.hidden);
    reference_linear_backward(&p->qkv, dnormed1, dqkv, l->normed1, s);
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
                          size_t seq_len, const struct document_list *documents, uint64_t number,
                          double scale, bool gradients)
{
    const struct transformer *t = &r->transformer;
    const size_t s = seq_len, hidden = t->hidden, layers = t->layers;
    const struct reference_affine table = affine(r, "", "embedding");
    const struct reference_affine places = affine(r, "", "positions");
    const struct reference_affine norm = affine(r, "", "norm");
    const struct reference_affine out = t->tied_head ? table : affine(r, "", "head");
    struct arena arena = {0};
    struct storage ends = storage_of(r, number, 2 * layers);
    const struct pass_sequence sequence = {s, document_begins(&arena, documents, s)};

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
