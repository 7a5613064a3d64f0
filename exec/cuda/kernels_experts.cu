/* Kernels of mixtures of experts: the router, and the copies of rows that experts compute. */
#include "exec/cuda/device.cuh"

enum { THREADS = 256 };

/* Returns the expert to which a copy belongs: begin[expert] <= copy < begin[expert + 1]. */
static __device__ int64_t expert_at(const int64_t *begin, int64_t experts, int64_t copy)
{
    int64_t low = 0, high = experts;
    while (high - low > 1) {
        const int64_t middle = (low + high) >> 1;
        if (begin[middle] <= copy)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns the expert that computes copy j of token t. If routing is even, it computes what work_row_group_of_row() of
 * models/work.h does. It divides in 32 bits, which is much faster and suffices, since a device has room for far fewer
 * than 2^32 copies. */
static __device__ int64_t expert_of(struct cuda_route r, int64_t t, int64_t j)
{
    if (r.expert_begins != NULL)
        return expert_at(r.expert_begins, r.experts, j * r.rows + t);
    uint32_t total = (uint32_t)(r.rows * r.copies_per_token), row = (uint32_t)(j * r.rows + t);
    uint32_t size = total / (uint32_t)r.experts, longer = total % (uint32_t)r.experts;
    uint32_t in_longer = longer * (size + 1);
    return row < in_longer ? row / (size + 1) : longer + (row - in_longer) / size;
}

/* The largest logit of a token, and the sum of the exponentials of logits minus the largest one: of all experts' logits
 * or, for CUDA_SOFTMAX_OF_CHOSEN, of those of the experts that compute the token. All softmax scores of the token are
 * computed from them. For a sigmoid, which needs neither, they are -INFINITY and 0. */
struct score_stats {
    float top, sum;
};

static __device__ struct score_stats score_stats_of(struct cuda_route r, const float *logit,
                                                    int64_t t)
{
    struct score_stats s = {-INFINITY, 0};
    if (r.score == CUDA_SIGMOID)
        return s;
    int64_t count = r.score == CUDA_SOFTMAX_OF_CHOSEN ? r.copies_per_token : r.experts;
    for (int64_t i = 0; i < count; i++)
        s.top = fmaxf(s.top, logit[r.score == CUDA_SOFTMAX_OF_CHOSEN ? expert_of(r, t, i) : i]);
    for (int64_t i = 0; i < count; i++)
        s.sum += expf(logit[r.score == CUDA_SOFTMAX_OF_CHOSEN ? expert_of(r, t, i) : i] - s.top);
    return s;
}

static __device__ float score_of(struct cuda_route r, struct score_stats s, float logit)
{
    return r.score == CUDA_SIGMOID ? 1 / (1 + expf(-logit)) : expf(logit - s.top) / s.sum;
}

/* Returns the number by which the scores of a token are divided: with divides_scores_by_sum, the sum over its copies,
 * else 1. */
static __device__ float score_divisor(struct cuda_route r, struct score_stats s, const float *logit,
                                      int64_t t)
{
    float sum = 0;
    for (int64_t j = 0; r.divides_scores_by_sum && j < r.copies_per_token; j++)
        sum += score_of(r, s, logit[expert_of(r, t, j)]);
    return r.divides_scores_by_sum ? sum : 1;
}

static __global__ void route_kernel(float *weights, const float *logits, struct cuda_route r)
{
    FOR_EACH(t, r.rows)
    {
        const float *logit = logits + t * r.experts;
        struct score_stats s = score_stats_of(r, logit, t);
        float factor = r.scale / score_divisor(r, s, logit, t);
        for (int64_t j = 0; j < r.copies_per_token; j++)
            weights[t * r.copies_per_token + j] =
                factor * score_of(r, s, logit[expert_of(r, t, j)]);
    }
}

int cuda_route(float *weights, const float *logits, struct cuda_route route, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(route_kernel, blocks_for(route.rows, THREADS), THREADS,
                                      stream, weights, logits, route);
}

static __global__ void route_backward_kernel(struct array d_logits, const float *d_weights,
                                             const float *logits, struct cuda_route r)
{
    FOR_EACH(t, r.rows)
    {
        const float *logit = logits + t * r.experts, *dw = d_weights + t * r.copies_per_token;
        struct score_stats s = score_stats_of(r, logit, t);
        float sum = score_divisor(r, s, logit, t), through = 0, all = 0;
        for (int64_t j = 0; r.divides_scores_by_sum && j < r.copies_per_token; j++)
            through += dw[j] * score_of(r, s, logit[expert_of(r, t, j)]) / sum;
        for (int64_t j = 0; j < r.copies_per_token; j++)
            all += r.scale * (dw[j] - through) / sum * score_of(r, s, logit[expert_of(r, t, j)]);
        /* an expert has at most one copy of a token, and a token's copies are in the order of experts */
        int64_t next = expert_of(r, t, 0);
        for (int64_t i = 0, j = 0; i < r.experts; i++) {
            float d = r.score == CUDA_SOFTMAX ? -all * score_of(r, s, logit[i]) : 0;
            if (i == next) {
                float score = score_of(r, s, logit[i]);
                float ds = r.scale * (dw[j] - through) / sum * score;
                d += r.score == CUDA_SIGMOID             ? ds * (1 - score)
                     : r.score == CUDA_SOFTMAX_OF_CHOSEN ? ds - all * score
                                                         : ds;
                next = ++j < r.copies_per_token ? expert_of(r, t, j) : r.experts;
            }
            struct eight_floats e = {};
            e.x[0] = d;
            store8(d_logits, t * r.experts + i, 1, e);
        }
    }
}

int cuda_route_backward(struct cuda_array d_logits, const float *d_weights, const float *logits,
                        struct cuda_route route, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(route_backward_kernel, blocks_for(route.rows, THREADS),
                                      THREADS, stream, kernel_array_of_rows(d_logits, 1), d_weights,
                                      logits, route);
}

template <class UNIT> static __global__ void reorder_kernel(struct cuda_routed_rows r)
{
    const uint32_t units = (uint32_t)(r.row_bytes / (int64_t)sizeof(UNIT));
    const uint32_t ranks = (uint32_t)r.ranks;
    const uint32_t of_rank = (uint32_t)(r.expert_begins[r.experts] - r.expert_begins[0]);
    FOR_EACH_COLUMN_GROUP(w, r.row_count, units)
    {
        /* row: the number in the order of experts. Every rank has sent the same number of copies to an expert. */
        const uint32_t row = (uint32_t)w.row;
        const int64_t e = expert_at(r.expert_begins, r.experts, r.expert_begins[0] + row / ranks);
        const uint32_t before = (uint32_t)(r.expert_begins[e] - r.expert_begins[0]);
        const uint32_t count = (uint32_t)(r.expert_begins[e + 1] - r.expert_begins[e]),
                       at = row - before * ranks;
        const int64_t by_rank = (int64_t)(at / count * of_rank) + before + at % count;
        ((UNIT *)r.y)[(r.is_to_rank_order ? by_rank : w.row) * units + w.column_group] =
            ((const UNIT *)r.x)[(r.is_to_rank_order ? w.row : by_rank) * units + w.column_group];
    }
}

template <class UNIT> static int reorder_in_units(struct cuda_routed_rows rows, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        reorder_kernel<UNIT>,
        blocks_for(rows.row_count * (rows.row_bytes / (int64_t)sizeof(UNIT)), THREADS), THREADS,
        stream, rows);
}

int cuda_reorder_expert_rows(struct cuda_routed_rows rows, cudaStream_t stream)
{
    const uint64_t bits = (uintptr_t)rows.y | (uintptr_t)rows.x | (uint64_t)rows.row_bytes;
    return bits % sizeof(uint4) == 0      ? reorder_in_units<uint4>(rows, stream)
           : bits % sizeof(uint32_t) == 0 ? reorder_in_units<uint32_t>(rows, stream)
                                          : reorder_in_units<uint16_t>(rows, stream);
}

static __global__ void permute_kernel(struct array y, struct array x, const float *weights,
                                      int64_t rows, int64_t cols, int64_t copies)
{
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(cols))
    {
        int64_t row = w.row, c = (int64_t)w.column_group * EIGHT;
        int n = at_most_eight(cols - c);
        struct eight_floats e = load8(x, row * cols + c, n);
        for (int64_t j = 0; j < copies; j++) {
            struct eight_floats copy = e;
            float weight = weights != NULL ? weights[row * copies + j] : 1;
#pragma unroll
            for (int k = 0; k < EIGHT; k++)
                copy.x[k] *= weight;
            store8(y, (j * rows + row) * cols + c, n, copy);
        }
    }
}

int cuda_permute(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                 int64_t cols, int64_t copies, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        permute_kernel, blocks_for(rows * ceil_div(cols, EIGHT), THREADS), THREADS, stream,
        kernel_array_of_rows(y, cols), kernel_array_of_rows(x, cols), weights, rows, cols, copies);
}

static __global__ void unpermute_kernel(struct array y, struct array x, const float *weights,
                                        int64_t rows, int64_t cols, int64_t copies)
{
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(cols))
    {
        int64_t row = w.row, c = (int64_t)w.column_group * EIGHT;
        int n = at_most_eight(cols - c);
        struct eight_floats sum = {};
        for (int64_t j = 0; j < copies; j++) {
            struct eight_floats e = load8(x, (j * rows + row) * cols + c, n);
            float weight = weights ? weights[row * copies + j] : 1;
#pragma unroll
            for (int i = 0; i < EIGHT; i++)
                sum.x[i] += weight * e.x[i];
        }
        store8(y, row * cols + c, n, sum);
    }
}

int cuda_unpermute(struct cuda_array y, struct cuda_array x, const float *weights, int64_t rows,
                   int64_t cols, int64_t copies, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        unpermute_kernel, blocks_for(rows * ceil_div(cols, EIGHT), THREADS), THREADS, stream,
        kernel_array_of_rows(y, cols), kernel_array_of_rows(x, cols), weights, rows, cols, copies);
}

/* Computes the gradients of cuda_unpermute(). A block works on one copy of a row at a time. */
static __global__ void unpermute_backward_kernel(struct array dx, float *d_weights, struct array dy,
                                                 struct array x, const float *weights, int64_t rows,
                                                 int64_t cols, int64_t copies)
{
    for (int64_t at = blockIdx.x; at < rows * copies; at += gridDim.x) {
        int64_t row = (uint32_t)at % (uint32_t)rows, j = (uint32_t)at / (uint32_t)rows;
        float weight = weights[row * copies + j], dot = 0;
        FOR_EACH_EIGHT_COLUMNS(c, n, cols)
        {
            struct eight_floats d = load8(dy, row * cols + c, (int)n);
            struct eight_floats e = load8(x, at * cols + c, (int)n);
#pragma unroll
            for (int i = 0; i < EIGHT; i++) {
                dot += d.x[i] * e.x[i];
                d.x[i] *= weight;
            }
            store8(dx, at * cols + c, (int)n, d);
        }
        dot = block_sum(dot);
        if (threadIdx.x == 0)
            d_weights[row * copies + j] = dot;
    }
}

int cuda_unpermute_backward(struct cuda_array dx, float *d_weights, struct cuda_array dy,
                            struct cuda_array x, const float *weights, int64_t rows, int64_t cols,
                            int64_t copies, cudaStream_t stream)
{
    return LAUNCH(unpermute_backward_kernel, blocks_for(rows * copies, 1),
                  threads_for_row(cols, THREADS), 0, stream, kernel_array_of_rows(dx, cols),
                  d_weights, kernel_array_of_rows(dy, cols), kernel_array_of_rows(x, cols), weights,
                  rows, cols, copies);
}

static __global__ void transpose_weights_kernel(float *y, const float *x, int64_t rows,
                                                int64_t cols)
{
    FOR_EACH(k, rows * cols)
    {
        y[(k % cols) * rows + k / cols] = x[k];
    }
}

int cuda_permute_weights(float *y, const float *weights, int64_t rows, int64_t copies,
                         cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(transpose_weights_kernel, blocks_for(rows * copies, THREADS),
                                      THREADS, stream, y, weights, rows, copies);
}

int cuda_permute_weights_backward(float *d_weights, const float *dy, int64_t rows, int64_t copies,
                                  cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(transpose_weights_kernel, blocks_for(rows * copies, THREADS),
                                      THREADS, stream, d_weights, dy, copies, rows);
}
