/* Attention by products, for a block of query rows at a time. Forward: S = Q K^T, its softmax P, and O = P V. Backward:
 * S again, and dP = dO V^T; from these P and dS; then dV += P^T dO and dK += dS^T Q in fp32, and dQ = dS K. Heads are
 * computed one after the other, so only the scores of one block of one head are in memory. */
#include "exec/cuda/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* SCORES_BYTES: the most bytes of S and P, and in a backward of dP and dS, of a block, unless a single row has more.
 * ROWS_UNIT: if this limits a block to more than ROWS_UNIT rows, it has a multiple of ROWS_UNIT. */
enum { SCORES_BYTES = 128 << 20, ROWS_UNIT = 64 };

/* The products of a block, by what they compute; PRODUCTS is their number. */
enum { SCORES, OUT, D_P, D_V, D_K, D_Q, PRODUCTS };

struct attention_tiles {
    const struct products *products;
    struct work work;
    uint8_t dtype;      /* the dtype of all reads except the lse and delta */
    int64_t block_rows; /* query rows of a block */
    /* plans of the products, [0] for full blocks and [1] for a last block of fewer rows */
    const struct product *plans[2][PRODUCTS];
    /* where arrays begin in the scratch memory, and its size */
    size_t s_offset, p_offset, dp_offset, ds_offset, delta_offset, dk_offset, dv_offset,
        workspace_offset, scratch_bytes;
};

static size_t reserve_bytes(size_t *end, size_t bytes)
{
    size_t at = *end;
    *end =
        (at + bytes + CUDA_SCRATCH_ALIGNMENT - 1) / CUDA_SCRATCH_ALIGNMENT * CUDA_SCRATCH_ALIGNMENT;
    return at;
}

static bool is_backward(const struct attention_tiles *t)
{
    return t->work.kind == WORK_ATTENTION_BACKWARD;
}

static void lay_out_scratch(struct attention_tiles *t)
{
    const size_t element = dtype_bytes((enum dtype)t->dtype);
    const size_t kv = (size_t)t->work.attention.kv, dim = (size_t)t->work.attention.dim;
    const size_t vdim = (size_t)work_attention_vdim(&t->work);
    size_t per_row = kv * (sizeof(float) + element) * (is_backward(t) ? 2 : 1);
    int64_t rows = (int64_t)(SCORES_BYTES / per_row);
    if (rows > ROWS_UNIT)
        rows -= rows % ROWS_UNIT;
    t->block_rows = rows < 1 ? 1 : rows > t->work.attention.q ? t->work.attention.q : rows;
    size_t scores = (size_t)t->block_rows * kv;
    t->workspace_offset = reserve_bytes(&t->scratch_bytes, PRODUCT_WORKSPACE);
    t->s_offset = reserve_bytes(&t->scratch_bytes, scores * sizeof(float));
    t->p_offset = reserve_bytes(&t->scratch_bytes, scores * element);
    if (!is_backward(t))
        return;
    t->dp_offset = reserve_bytes(&t->scratch_bytes, scores * sizeof(float));
    t->ds_offset = reserve_bytes(&t->scratch_bytes, scores * element);
    t->delta_offset = reserve_bytes(&t->scratch_bytes, (size_t)t->block_rows * sizeof(float));
    t->dk_offset = reserve_bytes(&t->scratch_bytes, kv * dim * sizeof(float));
    t->dv_offset = reserve_bytes(&t->scratch_bytes, kv * vdim * sizeof(float));
}

static uint8_t min_u8(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* Returns the alignment (product_address_alignment_log2()) of all rows of all heads of an operand, in which heads begin
 * `dim` elements apart. */
static uint8_t alignment_log2_of_heads(const struct operand *operand, int64_t dim)
{
    uint64_t head = (uint64_t)dim * dtype_bytes((enum dtype)operand->dtype);
    return min_u8(product_address_alignment_log2(operand->data),
                  product_address_alignment_log2((void *)(uintptr_t)head));
}

/* Plans the matrix products for a block of `rows` query rows. Returns false, after a message, if cuBLASLt has no
 * algorithm for one of them. */
static bool plan_products_of_block(struct attention_tiles *t, struct products *products,
                                   const struct call *call, const struct product **plan,
                                   int64_t rows, struct diag *diag)
{
    const struct work *w = &t->work;
    const int64_t kv = w->attention.kv, dim = w->attention.dim, vdim = work_attention_vdim(w);
    const int64_t step = w->attention.heads * dim, kv_step = w->attention.kv_heads * dim;
    const int64_t o_step = w->attention.heads * vdim, v_step = w->attention.kv_heads * vdim;
    const uint8_t q = alignment_log2_of_heads(&call->read[0], dim),
                  k = alignment_log2_of_heads(&call->read[1], dim),
                  v = alignment_log2_of_heads(&call->read[2], vdim),
                  out = alignment_log2_of_heads(&call->write[0], is_backward(t) ? dim : vdim);
    const uint8_t d_o = is_backward(t) ? alignment_log2_of_heads(&call->read[5], vdim) : 0;
    const uint8_t T = t->dtype, out_type = call->write[0].dtype, F = DTYPE_F32;
    const uint8_t s = product_address_alignment_log2((void *)(uintptr_t)((uint64_t)kv * 4)),
                  p = product_address_alignment_log2(
                      (void *)(uintptr_t)((uint64_t)kv * dtype_bytes(T))),
                  dk = product_address_alignment_log2((void *)(uintptr_t)((uint64_t)dim * 4)),
                  dv = product_address_alignment_log2((void *)(uintptr_t)((uint64_t)vdim * 4));
    /* m, n, k, strides of a, b and y, form, types of a and y, accumulates, has_bias, alignments of a, b and y */
    const struct product_shape shapes[PRODUCTS] = {
        [SCORES] = {rows, kv, dim, step, kv_step, kv, MATMUL_NT, T, F, 0, 0, q, k, s},
        [OUT] = {rows, vdim, kv, kv, v_step, o_step, MATMUL_NN, T, out_type, 0, 0, p, v, out},
        [D_P] = {rows, kv, vdim, o_step, v_step, kv, MATMUL_NT, T, F, 0, 0, d_o, v, s},
        [D_V] = {kv, vdim, rows, kv, o_step, vdim, MATMUL_TN, T, F, 1, 0, p, d_o, dv},
        [D_K] = {kv, dim, rows, kv, step, dim, MATMUL_TN, T, F, 1, 0, p, q, dk},
        [D_Q] = {rows, dim, kv, kv, kv_step, step, MATMUL_NN, T, out_type, 0, 0, p, k, out},
    };
    for (int i = 0; i < PRODUCTS; i++) {
        if (is_backward(t) ? i == OUT : i > OUT)
            continue;
        plan[i] = products_plan(products, &shapes[i], diag);
        if (plan[i] == NULL)
            return false;
    }
    return true;
}

struct attention_tiles *attention_tiles_new(struct products *products, const struct call *call,
                                            struct diag *diag)
{
    struct attention_tiles *t = heap_zalloc(1, sizeof *t);
    t->products = products;
    t->work = *call->work;
    t->dtype = call->read[0].dtype;
    for (uint32_t k = 0; k < call->read_count; k++)
        if (k != 4 && (k != 3 || !t->work.attention.delta) && call->read[k].dtype != t->dtype) {
            diag_error(diag, (struct loc){.name = work_kind_info(t->work.kind)->name},
                       STATUS_BAD_INPUT, "reads %s and %s; all its operands must have one type",
                       dtype_name((enum dtype)t->dtype),
                       dtype_name((enum dtype)call->read[k].dtype));
            free(t);
            return NULL;
        }
    lay_out_scratch(t);
    int64_t rest = t->work.attention.q % t->block_rows;
    if (!plan_products_of_block(t, products, call, t->plans[0], t->block_rows, diag) ||
        (rest > 0 && !plan_products_of_block(t, products, call, t->plans[1], rest, diag))) {
        free(t);
        return NULL;
    }
    return t;
}

void attention_tiles_free(struct attention_tiles *tiles)
{
    free(tiles);
}

size_t attention_tiles_scratch_bytes(const struct attention_tiles *tiles)
{
    return tiles->scratch_bytes;
}

/* ---- running a tile ---- */

/* An op while its work is enqueued. cuda_error, product_error: the first error of a kernel or of a product; 0: none. */
struct tiles_op_enqueue_state {
    const struct attention_tiles *tiles;
    const struct call *call;
    const struct cuda_launch_context *context;
    struct cuda_mask mask;
    float scale;
    int product_error, cuda_error;
};

static char *scratch_address(const struct tiles_op_enqueue_state *r, size_t at)
{
    return (char *)r->context->scratch + at;
}

/* Returns the address of row `row` of head `head` in an operand (rows, heads, dim). */
static char *row_address(const struct operand *operand, int64_t row, int64_t heads, int64_t head,
                         int64_t dim)
{
    return (char *)operand->data +
           (size_t)((row * heads + head) * dim) * dtype_bytes((enum dtype)operand->dtype);
}

static void multiply(struct tiles_op_enqueue_state *r, const struct product *product, const void *a,
                     const void *b, void *y)
{
    if (r->cuda_error == 0 && r->product_error == 0)
        r->product_error =
            product_run(r->tiles->products, product, 1, a, b, NULL, y, y, NULL,
                        scratch_address(r, r->tiles->workspace_offset), r->context->stream);
}

static void record_first_cuda_error(struct tiles_op_enqueue_state *r, int error)
{
    if (r->cuda_error == 0)
        r->cuda_error = error;
}

static bool has_no_error(const struct tiles_op_enqueue_state *r)
{
    return r->cuda_error == 0 && r->product_error == 0;
}

static void run_forward_block(struct tiles_op_enqueue_state *r, int64_t head, int64_t first,
                              int64_t rows, const struct product *const *plan)
{
    const struct attention_tiles *t = r->tiles;
    const struct call *c = r->call;
    const int64_t heads = t->work.attention.heads, kv_heads = t->work.attention.kv_heads;
    const int64_t dim = t->work.attention.dim, vdim = work_attention_vdim(&t->work);
    const int64_t kv_head = head / (heads / kv_heads);
    float *s = (float *)(void *)scratch_address(r, t->s_offset);
    struct cuda_array p = {scratch_address(r, t->p_offset), t->dtype};
    multiply(r, plan[SCORES], row_address(&c->read[0], first, heads, head, dim),
             row_address(&c->read[1], 0, kv_heads, kv_head, dim), s);
    if (has_no_error(r))
        record_first_cuda_error(r, cuda_softmax(p, (float *)c->write[1].data + head, heads, s,
                                                first, rows, t->work.attention.kv, r->mask,
                                                r->scale, r->context->stream));
    multiply(r, plan[OUT], p.data, row_address(&c->read[2], 0, kv_heads, kv_head, vdim),
             row_address(&c->write[0], first, heads, head, vdim));
}

static void run_backward_block(struct tiles_op_enqueue_state *r, int64_t head, int64_t first,
                               int64_t rows, const struct product *const *plan)
{
    const struct attention_tiles *t = r->tiles;
    const struct call *c = r->call;
    const int64_t heads = t->work.attention.heads, kv_heads = t->work.attention.kv_heads;
    const int64_t dim = t->work.attention.dim, vdim = work_attention_vdim(&t->work);
    const int64_t kv_head = head / (heads / kv_heads);
    const void *q = row_address(&c->read[0], first, heads, head, dim);
    const void *k = row_address(&c->read[1], 0, kv_heads, kv_head, dim);
    const void *v = row_address(&c->read[2], 0, kv_heads, kv_head, vdim);
    struct cuda_array o = {row_address(&c->read[3], first, heads, head, vdim), t->dtype};
    struct cuda_array d_o = {row_address(&c->read[5], first, heads, head, vdim), t->dtype};
    struct cuda_array p = {scratch_address(r, t->p_offset), t->dtype},
                      ds = {scratch_address(r, t->ds_offset), t->dtype};
    float *s = (float *)(void *)scratch_address(r, t->s_offset),
          *dp = (float *)(void *)scratch_address(r, t->dp_offset);
    float *delta = (float *)(void *)scratch_address(r, t->delta_offset);
    multiply(r, plan[SCORES], q, k, s);
    multiply(r, plan[D_P], d_o.data, v, dp);
    if (has_no_error(r))
        record_first_cuda_error(
            r, t->work.attention.delta
                   ? cuda_copy_rows(
                         (struct cuda_array){delta, DTYPE_F32}, 1,
                         (struct cuda_array){row_address(&c->read[3], first, heads, head, 1),
                                             c->read[3].dtype},
                         heads, rows, 1, r->context->stream)
                   : cuda_row_dot(delta, o, d_o, rows, vdim, heads * vdim, r->context->stream));
    if (has_no_error(r))
        record_first_cuda_error(
            r, cuda_softmax_backward(p, ds, s, dp, (const float *)c->read[4].data + head, heads,
                                     delta, first, rows, t->work.attention.kv, r->mask, r->scale,
                                     r->context->stream));
    multiply(r, plan[D_V], p.data, d_o.data, scratch_address(r, t->dv_offset));
    multiply(r, plan[D_K], ds.data, q, scratch_address(r, t->dk_offset));
    multiply(r, plan[D_Q], ds.data, k, row_address(&c->write[0], first, heads, head, dim));
}

static void run_query_blocks_of_head(struct tiles_op_enqueue_state *r, int64_t head)
{
    const struct attention_tiles *t = r->tiles;
    const int64_t q = t->work.attention.q;
    for (int64_t first = 0; first < q && has_no_error(r); first += t->block_rows) {
        int64_t rows = q - first < t->block_rows ? q - first : t->block_rows;
        const struct product *const *plan = t->plans[rows < t->block_rows];
        if (is_backward(t))
            run_backward_block(r, head, first, rows, plan);
        else
            run_forward_block(r, head, first, rows, plan);
    }
}

/* Runs the backward of one key head. Its dK and dV are summed over the query heads that share it, in fp32. */
static void backward_kv_head(struct tiles_op_enqueue_state *r, int64_t kv_head)
{
    const struct attention_tiles *t = r->tiles;
    const struct call *c = r->call;
    const int64_t heads = t->work.attention.heads, kv_heads = t->work.attention.kv_heads;
    const int64_t kv = t->work.attention.kv, each = heads / kv_heads;
    const int64_t dims[] = {t->work.attention.dim, work_attention_vdim(&t->work)};
    const size_t sums[] = {t->dk_offset, t->dv_offset};
    for (int i = 0; i < 2; i++)
        record_first_cuda_error(r, (int)cudaMemsetAsync(scratch_address(r, sums[i]), 0,
                                                        (size_t)(kv * dims[i]) * sizeof(float),
                                                        r->context->stream));
    for (int64_t head = kv_head * each; head < (kv_head + 1) * each; head++)
        run_query_blocks_of_head(r, head);
    for (uint32_t i = 0; i < 2 && has_no_error(r); i++) {
        struct cuda_array from = {scratch_address(r, sums[i]), DTYPE_F32};
        struct cuda_array to = {row_address(&c->write[1 + i], 0, kv_heads, kv_head, dims[i]),
                                c->write[1 + i].dtype};
        record_first_cuda_error(r, cuda_copy_rows(to, kv_heads * dims[i], from, dims[i], kv,
                                                  dims[i], r->context->stream));
    }
}

const char *attention_tiles_run(const struct attention_tiles *tiles, const struct call *call,
                                const struct cuda_launch_context *place)
{
    const struct work *w = &tiles->work;
    struct tiles_op_enqueue_state r = {
        .tiles = tiles,
        .call = call,
        .context = place,
        .mask = {w->attention.mask == MASK_FULL ? INT64_MAX : w->attention.offset,
                 w->attention.mask == MASK_WINDOW ? w->attention.window : 0, place->visible_keys},
        .scale = 1 / sqrtf((float)w->attention.dim),
    };
    if (is_backward(tiles))
        for (int64_t i = 0; i < w->attention.kv_heads && has_no_error(&r); i++)
            backward_kv_head(&r, i);
    else
        for (int64_t i = 0; i < w->attention.heads && has_no_error(&r); i++)
            run_query_blocks_of_head(&r, i);
    if (r.product_error != 0)
        return product_error_text(tiles->products, r.product_error);
    return r.cuda_error != 0 ? cudaGetErrorString((cudaError_t)r.cuda_error) : NULL;
}
