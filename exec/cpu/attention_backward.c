/* The gradient of attention, tile by tile. Scores S are computed again, and P = exp(S - lse). With delta, the row sums
 * of dO o O (o: element by element), the gradient of the scores is dS = P o (dO V^T - delta) / sqrt(dim). If the work
 * has the parameter `delta`, an operand holds delta in place of O. The lse and O are those of the whole row, so a block
 * of keys yields exactly its own part of the gradient (FlashAttention-2). */
#include "exec/cpu/kernels.h"

#include "exec/cpu/fast_exp.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

size_t cpu_attention_backward_scratch_floats(const struct work *work)
{
    return (size_t)ATTENTION_QUERY_TILE * ATTENTION_KEY_TILE * 2 + (size_t)work->attention.q;
}

struct backward_head { /* one query head and its key head; pointers are to their first rows */
    const struct call *call;
    const struct work *work;
    const float *q, *k, *v, *o, *lse, *d_o;
    float *dq, *dk, *dv;
    float *p, *ds;      /* (query tile, key tile) */
    const float *delta; /* (q) */
    /* strides: the floats from one row to the next; heads: the number of query heads */
    int64_t q_stride, k_stride, v_stride, o_stride, heads, dim, vdim;
};

/* Replaces, in place, the scores S of one tile by the probabilities P, and the products dO V^T by the gradient dS of
 * the scores. P and dS are 0 where the mask hides a key. */
static void compute_tile_probabilities_and_ds(const struct backward_head *h, int64_t first,
                                              int64_t rows, int64_t key, int64_t width)
{
    float scale = 1 / sqrtf((float)h->dim);
    for (int64_t i = 0; i < rows; i++) {
        struct visible_keys keys = cpu_visible_keys(h->call, first + i);
        int64_t from = keys.begin - key, to = keys.end - key;
        from = from < 0 ? 0 : from > width ? width : from;
        to = to < from ? from : to > width ? width : to;
        float *p = h->p + i * ATTENTION_KEY_TILE, *ds = h->ds + i * ATTENTION_KEY_TILE;
        float lse = h->lse[(first + i) * h->heads], delta = h->delta[first + i];
        if (isinf(lse)) /* the row sees no key */
            from = to = width;
        for (int64_t j = 0; j < from; j++)
            p[j] = ds[j] = 0;
        for (int64_t j = from; j < to; j++)
            p[j] = fast_exp(p[j] - lse);
        for (int64_t j = from; j < to; j++)
            ds[j] = p[j] * (ds[j] - delta) * scale;
        for (int64_t j = to; j < width; j++)
            p[j] = ds[j] = 0;
    }
}

static bool is_tile_fully_masked(const struct backward_head *h, int64_t first, int64_t rows,
                                 int64_t key, int64_t width)
{
    for (int64_t i = 0; i < rows; i++) {
        struct visible_keys keys = cpu_visible_keys(h->call, first + i);
        if (keys.begin < key + width && keys.end > key)
            return false;
    }
    return true;
}

static void add_gradients_of_tile(const struct backward_head *h, int64_t first, int64_t rows,
                                  int64_t key, int64_t width)
{
    const blasint r = (blasint)rows, w = (blasint)width, d = (blasint)h->dim, dv = (blasint)h->vdim;
    const blasint step = (blasint)h->q_stride, k_step = (blasint)h->k_stride,
                  ld = ATTENTION_KEY_TILE;
    const blasint o_step = (blasint)h->o_stride, v_step = (blasint)h->v_stride;
    const float *q = h->q + first * h->q_stride, *d_o = h->d_o + first * h->o_stride;
    const float *k = h->k + key * h->k_stride, *v = h->v + key * h->v_stride;
    if (is_tile_fully_masked(h, first, rows, key, width))
        return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, r, w, d, 1 / sqrtf((float)h->dim), q, step,
                k, k_step, 0, h->p, ld);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, r, w, dv, 1, d_o, o_step, v, v_step, 0,
                h->ds, ld);
    compute_tile_probabilities_and_ds(h, first, rows, key, width);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, w, dv, r, 1, h->p, ld, d_o, o_step, 1,
                h->dv + key * h->v_stride, v_step);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, w, d, r, 1, h->ds, ld, q, step, 1,
                h->dk + key * h->k_stride, k_step);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, r, d, w, 1, h->ds, ld, k, k_step, 1,
                h->dq + first * h->q_stride, step);
}

static void compute_delta(const struct backward_head *h, float *delta)
{
    for (int64_t i = 0; i < h->work->attention.q; i++) {
        if (h->work->attention.delta) { /* h->o holds delta, (q, heads) */
            delta[i] = h->o[i * h->heads];
            continue;
        }
        const float *o = h->o + i * h->o_stride, *d_o = h->d_o + i * h->o_stride;
        float sum = 0;
        for (int64_t d = 0; d < h->vdim; d++)
            sum += o[d] * d_o[d];
        delta[i] = sum;
    }
}

const char *cpu_attention_backward(const struct call *call, float *scratch)
{
    const struct work *work = call->work;
    const int64_t heads = work->attention.heads, kv_heads = work->attention.kv_heads;
    const int64_t dim = work->attention.dim, q = work->attention.q, kv = work->attention.kv;
    const int64_t vdim = work_attention_vdim(work);
    float *dq = call->write[0].data, *dk = call->write[1].data, *dv = call->write[2].data;
    float *delta = scratch + 2 * ATTENTION_QUERY_TILE * ATTENTION_KEY_TILE;
    memset(dq, 0, (size_t)(q * heads * dim) * sizeof *dq);
    memset(dk, 0, (size_t)(kv * kv_heads * dim) * sizeof *dk);
    memset(dv, 0, (size_t)(kv * kv_heads * vdim) * sizeof *dv);
    for (int64_t i = 0; i < heads; i++) {
        const int64_t at = i * dim, o_at = i * vdim, key_head = i / (heads / kv_heads);
        const int64_t k_at = key_head * dim, v_at = key_head * vdim;
        struct backward_head h = {
            .call = call,
            .work = work,
            .q = (const float *)call->read[0].data + at,
            .k = (const float *)call->read[1].data + k_at,
            .v = (const float *)call->read[2].data + v_at,
            .o = (const float *)call->read[3].data + (work->attention.delta ? i : o_at),
            .lse = (const float *)call->read[4].data + i,
            .d_o = (const float *)call->read[5].data + o_at,
            .dq = dq + at,
            .dk = dk + k_at,
            .dv = dv + v_at,
            .p = scratch,
            .ds = scratch + ATTENTION_QUERY_TILE * ATTENTION_KEY_TILE,
            .delta = delta,
            .q_stride = heads * dim,
            .k_stride = kv_heads * dim,
            .v_stride = kv_heads * vdim,
            .o_stride = heads * vdim,
            .heads = heads,
            .dim = dim,
            .vdim = vdim,
        };
        compute_delta(&h, delta);
        for (int64_t key = 0; key < kv; key += ATTENTION_KEY_TILE)
            for (int64_t first = 0; first < q; first += ATTENTION_QUERY_TILE)
                add_gradients_of_tile(
                    &h, first, q - first < ATTENTION_QUERY_TILE ? q - first : ATTENTION_QUERY_TILE,
                    key, kv - key < ATTENTION_KEY_TILE ? kv - key : ATTENTION_KEY_TILE);
    }
    return NULL;
}
