/* Kernels around the matrix products of attention: the softmax of a tile and its gradient, the merge of tiles, sinks,
 * and small copies. */
#include "exec/cuda/device.cuh"

enum { THREADS = 256 };

/* ---- merges of results over blocks of keys ---- */

static __device__ __forceinline__ float log_sigmoid(float x)
{
    return fminf(x, 0.f) - log1pf(__expf(-fabsf(x)));
}

/* Returns the log-sum-exp of two log-sum-exps. `other` is not -INFINITY. */
static __device__ __forceinline__ float merged_lse(float own, float other)
{
    return own == -INFINITY ? other : own - log_sigmoid(own - other);
}

/* Merges eight elements of a block into those of the running result. own: the running log-sum-exp; other: the block's,
 * which is not -INFINITY. */
static __device__ __forceinline__ void merge8(struct eight_floats &o, const struct eight_floats &b,
                                              float own, float other)
{
    float share = own == -INFINITY ? 1 : 1 / (1 + __expf(own - other));
#pragma unroll
    for (int j = 0; j < EIGHT; j++)
        o.x[j] = own == -INFINITY ? b.x[j] : o.x[j] - share * (o.x[j] - b.x[j]);
}

static __global__ void merge_kernel(struct array out, const float *lse, struct array block,
                                    const float *block_lse, int64_t rows, int64_t dim)
{
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(dim))
    {
        int64_t row = w.row, c = (int64_t)w.column_group * EIGHT;
        int n = at_most_eight(dim - c);
        float own = lse[row], other = block_lse[row];
        if (other == -INFINITY) /* no key of this block was seen */
            continue;
        struct stored8 so = fetch8(out, row * dim + c, n), sb = fetch8(block, row * dim + c, n);
        struct eight_floats o = unpack8(so, CUDA_F32), b = unpack8(sb, block.dtype);
        merge8(o, b, own, other);
        store8(out, row * dim + c, n, o);
    }
}

/* Merges the log-sum-exps. A kernel of its own does this after merge_kernel(), since several threads of merge_kernel()
 * read each log-sum-exp, and here it is overwritten. */
static __global__ void merge_lse_kernel(float *lse, const float *block_lse, int64_t rows)
{
    FOR_EACH(i, rows)
    {
        float own = lse[i], other = block_lse[i];
        if (other != -INFINITY)
            lse[i] = merged_lse(own, other);
    }
}

int cuda_merge(float *out, float *lse, struct cuda_array block, const float *block_lse,
               int64_t rows, int64_t dim, cudaStream_t stream)
{
    struct array to = kernel_array_of_f32(out);
    to.is_aligned16 = to.is_aligned16 && dim % EIGHT == 0;
    int error = LAUNCH_INDEPENDENT_THREADS(
        merge_kernel, blocks_for(rows * ceil_div(dim, EIGHT), THREADS), THREADS, stream, to, lse,
        kernel_array_of_rows(block, dim), block_lse, rows, dim);
    return error ? error
                 : LAUNCH_INDEPENDENT_THREADS(merge_lse_kernel, blocks_for(rows, THREADS), THREADS,
                                              stream, lse, block_lse, rows);
}

/* Merges rows of a block into the running result. The outer rows of pairs with the same inner row are merged in the
 * order of the pairs, by the threads of the first such pair. */
static __global__ void merge_rows_kernel(struct array out, const float *lse, struct array block,
                                         const float *block_lse, int64_t heads, int64_t dim,
                                         struct cuda_moved_row_pairs pairs)
{
    const uint32_t groups = column_groups(dim);
    FOR_EACH_COLUMN_GROUP(w, pairs.count, (uint32_t)heads * groups)
    {
        const int64_t inner = pair_at(pairs, w.row).inner, head = w.column_group / groups;
        const int64_t c = (int64_t)(w.column_group % groups) * EIGHT, at = inner * heads + head;
        const int n = at_most_eight(dim - c);
        if (has_inner_row(pairs, w.row - 1, inner))
            continue;
        struct eight_floats o = load8(out, at * dim + c, n);
        float sum = lse[at];
        for (int64_t i = w.row; has_inner_row(pairs, i, inner); i++) {
            const int64_t from = pair_at(pairs, i).outer * heads + head;
            const float other = block_lse[from];
            if (other == -INFINITY)
                continue;
            merge8(o, load8(block, from * dim + c, n), sum, other);
            sum = merged_lse(sum, other);
        }
        store8(out, at * dim + c, n, o);
    }
}

/* Merges the log-sum-exps of rows. A kernel of its own does this, for the same reason as merge_lse_kernel(). */
static __global__ void merge_rows_lse_kernel(float *lse, const float *block_lse, int64_t heads,
                                             struct cuda_moved_row_pairs pairs)
{
    FOR_EACH_COLUMN_GROUP(w, pairs.count, (uint32_t)heads)
    {
        const int64_t inner = pair_at(pairs, w.row).inner;
        if (has_inner_row(pairs, w.row - 1, inner))
            continue;
        float sum = lse[inner * heads + w.column_group];
        for (int64_t i = w.row; has_inner_row(pairs, i, inner); i++) {
            const float other = block_lse[pair_at(pairs, i).outer * heads + w.column_group];
            if (other != -INFINITY)
                sum = merged_lse(sum, other);
        }
        lse[inner * heads + w.column_group] = sum;
    }
}

/* Sets the running result to the earlier one. If there is none, sets it to the result of rows that see no key: output 0
 * and log-sum-exp -INFINITY. */
static int set_merge_result_to_earlier(const struct cuda_row_merge *m, cudaStream_t stream)
{
    const int64_t rows = m->out_rows * m->heads;
    const struct cuda_array out = {m->out, CUDA_F32}, lse = {m->lse, CUDA_F32};
    int error = 0;
    if (m->before == NULL) {
        error = (int)cudaMemsetAsync(m->out, 0, (size_t)(rows * m->dim) * sizeof(float), stream);
        return error == 0 ? cuda_fill_f32(m->lse, -INFINITY, rows, stream) : error;
    }
    const struct cuda_array before = {(void *)(uintptr_t)m->before, CUDA_F32},
                            lse_before = {(void *)(uintptr_t)m->lse_before, CUDA_F32};
    if (m->before != m->out)
        error = cuda_copy_rows(out, m->dim, before, m->dim, rows, m->dim, stream);
    if (m->lse_before != m->lse && error == 0)
        error = cuda_copy_rows(lse, m->heads, lse_before, m->heads, m->out_rows, m->heads, stream);
    return error;
}

int cuda_merge_rows(struct cuda_row_merge m, struct cuda_moved_row_pairs pairs, cudaStream_t stream)
{
    struct array to = kernel_array_of_f32(m.out);
    to.is_aligned16 = to.is_aligned16 && m.dim % EIGHT == 0;
    int error = set_merge_result_to_earlier(&m, stream);
    if (error == 0)
        error = LAUNCH_INDEPENDENT_THREADS(
            merge_rows_kernel, blocks_for(pairs.count * m.heads * ceil_div(m.dim, EIGHT), THREADS),
            THREADS, stream, to, m.lse, kernel_array_of_rows(m.block, m.dim), m.block_lse, m.heads,
            m.dim, pairs);
    return error ? error
                 : LAUNCH_INDEPENDENT_THREADS(merge_rows_lse_kernel,
                                              blocks_for(pairs.count * m.heads, THREADS), THREADS,
                                              stream, m.lse, m.block_lse, m.heads, pairs);
}

/* ---- the softmax of a tile, its gradient, and row dots: each warp computes a row ---- */

struct seen_key_range {
    int64_t low, high; /* the keys [low..high) */
};

static __device__ __forceinline__ struct seen_key_range
keys_seen_by_row(const struct cuda_mask &mask, int64_t row, int64_t keys)
{
    struct seen_key_range seen = {0, keys};
    if (mask.visible_key_range_by_row != NULL)
        return {mask.visible_key_range_by_row[2 * row], mask.visible_key_range_by_row[2 * row + 1]};
    if (mask.offset != INT64_MAX) {
        seen.high = row + mask.offset + 1;
        seen.low = mask.window > 0 ? seen.high - mask.window : 0;
        seen.high = seen.high < 0 ? 0 : seen.high > keys ? keys : seen.high;
        seen.low = seen.low < 0 ? 0 : seen.low > seen.high ? seen.high : seen.low;
    }
    return seen;
}

static __device__ __forceinline__ void store1(const struct array &a, int64_t i, float x)
{
    if (a.dtype == CUDA_F32)
        ((float *)a.data)[i] = x;
    else
        ((uint16_t *)a.data)[i] = a.dtype == CUDA_BF16 ? to_bf16(x) : to_f16(x);
}

static __global__ void softmax_kernel(struct array p, float *lse, int64_t lse_step, const float *s,
                                      int64_t first, int64_t rows, int64_t keys,
                                      struct cuda_mask mask, float scale)
{
    int64_t row = (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= rows) /* the same for all threads of a warp */
        return;
    struct seen_key_range seen = keys_seen_by_row(mask, first + row, keys);
    float top = -INFINITY, total = 0;
    for (int64_t j = seen.low + lane; j < seen.high; j += WARP) {
        float x = s[row * keys + j] * scale, higher = fmaxf(top, x);
        total = (top == -INFINITY ? 0 : total * __expf(top - higher)) + __expf(x - higher);
        top = higher;
    }
    float all_top = warp_max(top);
    total = warp_sum(top == -INFINITY ? 0 : total * __expf(top - all_top));
    float share = total > 0 ? 1 / total : 0;
    for (int64_t j = lane; j < keys; j += WARP) {
        bool shown = j >= seen.low && j < seen.high;
        store1(p, row * keys + j,
               shown ? __expf(s[row * keys + j] * scale - all_top) * share : 0.f);
    }
    if (lane == 0)
        lse[(first + row) * lse_step] = total > 0 ? all_top + logf(total) : -INFINITY;
}

int cuda_softmax(struct cuda_array p, float *lse, int64_t lse_step, const float *s, int64_t first,
                 int64_t rows, int64_t keys, struct cuda_mask mask, float scale,
                 cudaStream_t stream)
{
    return LAUNCH(softmax_kernel, (unsigned)ceil_div(rows, THREADS / WARP), THREADS, 0, stream,
                  kernel_array_of(p), lse, lse_step, s, first, rows, keys, mask, scale);
}

static __global__ void softmax_backward_kernel(struct array p, struct array ds, const float *s,
                                               const float *dp, const float *lse, int64_t lse_step,
                                               const float *delta, int64_t first, int64_t rows,
                                               int64_t keys, struct cuda_mask mask, float scale)
{
    int64_t row = (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    if (row >= rows)
        return;
    struct seen_key_range seen = keys_seen_by_row(mask, first + row, keys);
    float l = lse[(first + row) * lse_step], d = delta[row];
    for (int64_t j = threadIdx.x % WARP; j < keys; j += WARP) {
        int64_t i = row * keys + j;
        bool shown = j >= seen.low && j < seen.high && l != -INFINITY;
        float share = shown ? __expf(s[i] * scale - l) : 0.f;
        store1(p, i, share);
        store1(ds, i, shown ? share * (dp[i] - d) * scale : 0.f);
    }
}

int cuda_softmax_backward(struct cuda_array p, struct cuda_array ds, const float *s,
                          const float *dp, const float *lse, int64_t lse_step, const float *delta,
                          int64_t first, int64_t rows, int64_t keys, struct cuda_mask mask,
                          float scale, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(softmax_backward_kernel,
                                      (unsigned)ceil_div(rows, THREADS / WARP), THREADS, stream,
                                      kernel_array_of(p), kernel_array_of(ds), s, dp, lse, lse_step,
                                      delta, first, rows, keys, mask, scale);
}

static __global__ void row_dot_kernel(float *delta, struct array o, struct array d_o, int64_t rows,
                                      int64_t dim, int64_t step)
{
    int64_t row = (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= rows)
        return;
    float sum = 0;
    for (int64_t c = lane; c < dim; c += WARP)
        sum += load1(o, row * step + c) * load1(d_o, row * step + c);
    sum = warp_sum(sum);
    if (lane == 0)
        delta[row] = sum;
}

int cuda_row_dot(float *delta, struct cuda_array o, struct cuda_array d_o, int64_t rows,
                 int64_t dim, int64_t step, cudaStream_t stream)
{
    return LAUNCH(row_dot_kernel, (unsigned)ceil_div(rows, THREADS / WARP), THREADS, 0, stream,
                  delta, kernel_array_of(o), kernel_array_of(d_o), rows, dim, step);
}

/* ---- sinks ---- */

static __global__ void sink_kernel(struct array o_new, struct array o, const float *lse,
                                   struct array sink, int64_t rows, uint32_t heads, int64_t dim)
{
    const uint32_t groups = column_groups(dim);
    FOR_EACH_COLUMN_GROUP(w, rows, heads * groups)
    {
        uint32_t head = w.column_group / groups;
        int64_t c = (int64_t)(w.column_group - head * groups) * EIGHT, at = w.row * heads + head;
        int64_t i = at * dim + c;
        int n = at_most_eight(dim - c);
        float share = 1 / (1 + __expf(load1(sink, head) - lse[at]));
        struct eight_floats e = load8(o, i, n);
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            e.x[j] *= share;
        store8(o_new, i, n, e);
    }
}

/* Adds the sinks to the log-sum-exps. A kernel of its own does this after sink_kernel(), since lse_new may be the same
 * array as lse, and several threads of sink_kernel() read the lse of each row and head. */
static __global__ void sink_lse_kernel(float *lse_new, const float *lse, struct array sink,
                                       int64_t rows, uint32_t heads)
{
    FOR_EACH_COLUMN_GROUP(w, rows, heads)
    {
        int64_t i = w.row * heads + w.column_group;
        lse_new[i] = merged_lse(lse[i], load1(sink, w.column_group));
    }
}

int cuda_sink(struct cuda_array o_new, float *lse_new, struct cuda_sink_operands s,
              cudaStream_t stream)
{
    const int64_t all = s.rows * s.heads;
    const uint32_t heads = (uint32_t)s.heads;
    int error = LAUNCH_INDEPENDENT_THREADS(
        sink_kernel, blocks_for(all * ceil_div(s.dim, EIGHT), THREADS), THREADS, stream,
        kernel_array_of_rows(o_new, s.dim), kernel_array_of_rows(s.o, s.dim), s.lse,
        kernel_array_of(s.sink), s.rows, heads, s.dim);
    return error ? error
                 : LAUNCH_INDEPENDENT_THREADS(sink_lse_kernel, blocks_for(all, THREADS), THREADS,
                                              stream, lse_new, s.lse, kernel_array_of(s.sink),
                                              s.rows, heads);
}

static __global__ void sink_terms_kernel(float *term, const float *lse, struct array sink,
                                         int64_t rows, uint32_t heads)
{
    FOR_EACH_COLUMN_GROUP(w, rows, heads)
    {
        int64_t i = w.row * heads + w.column_group;
        term[i] *= -__expf(load1(sink, w.column_group) - lse[i]);
    }
}

int cuda_sink_terms(float *term, struct cuda_sink_operands s, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(sink_terms_kernel, blocks_for(s.rows * s.heads, THREADS),
                                      THREADS, stream, term, s.lse, kernel_array_of(s.sink), s.rows,
                                      (uint32_t)s.heads);
}

/* ---- copies and fills ---- */

/* Transposes x. The tiles are counted along the grid's x only, because the grid's y has at most 65535 blocks, and each
 * side of x may be as long as a sequence. */
static __global__ void transpose_kernel(float *y, const float *x, int64_t rows, int64_t cols,
                                        uint32_t tiles_across)
{
    __shared__ float tile[WARP][WARP + 1];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    uint32_t tile_row = blockIdx.x / tiles_across, tile_col = blockIdx.x % tiles_across;
    int64_t r0 = (int64_t)tile_row * WARP, c0 = (int64_t)tile_col * WARP;
    for (int i = warp; i < WARP; i += warps)
        if (r0 + i < rows && c0 + lane < cols)
            tile[i][lane] = x[(r0 + i) * cols + c0 + lane];
    __syncthreads();
    for (int i = warp; i < WARP; i += warps)
        if (c0 + i < cols && r0 + lane < rows)
            y[(c0 + i) * rows + r0 + lane] = tile[lane][i];
}

int cuda_transpose(float *y, const float *x, int64_t rows, int64_t cols, cudaStream_t stream)
{
    int64_t across = ceil_div(cols, WARP);
    return LAUNCH(transpose_kernel, (unsigned)(ceil_div(rows, WARP) * across), THREADS, 0, stream,
                  y, x, rows, cols, (uint32_t)across);
}

static __global__ void copy_rows_kernel(struct array to, int64_t to_step, struct array from,
                                        int64_t from_step, int64_t rows, int64_t dim)
{
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(dim))
    {
        int64_t row = w.row, c = (int64_t)w.column_group * EIGHT;
        int n = at_most_eight(dim - c);
        store8(to, row * to_step + c, n, load8(from, row * from_step + c, n));
    }
}

int cuda_copy_rows(struct cuda_array to, int64_t to_step, struct cuda_array from, int64_t from_step,
                   int64_t rows, int64_t dim, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(copy_rows_kernel,
                                      blocks_for(rows * ceil_div(dim, EIGHT), THREADS), THREADS,
                                      stream, kernel_array_of_rows(to, to_step), to_step,
                                      kernel_array_of_rows(from, from_step), from_step, rows, dim);
}

static __global__ void fill_kernel(float *x, float value, int64_t count)
{
    FOR_EACH(i, count)
    x[i] = value;
}

int cuda_fill_f32(float *x, float value, int64_t count, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(fill_kernel, blocks_for(count, THREADS), THREADS, stream, x,
                                      value, count);
}
