/* Kernels of the loss. Each block works on one row of logits at a time. It sums exponentials relative to a running
 * maximum, so one pass over the logits gives the maximum and the sum. The loss makes a second pass only to write the
 * softmax. A gradient makes one pass over the softmax, or over logits whose log-sum-exp is given; over other logits it
 * makes two. */
#include "exec/cuda/device.cuh"

enum { ROW_THREADS = 1024, SUM_THREADS = 1024, IGNORED = -1 };

struct row_stats {
    float top, total; /* the largest logit, and the sum of the exponentials of logits minus it */
};

/* Computes the statistics of a row. Every thread of the block calls it and receives them. */
static __device__ __forceinline__ struct row_stats row_stats_of(const struct array &x, int64_t at,
                                                                int64_t vocab)
{
    float top = -INFINITY, total = 0;
    FOR_EACH_EIGHT_COLUMNS(c, n, vocab)
    {
        struct eight_floats e = load8(x, at + c, (int)n);
        float higher = top;
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            higher = j < n ? fmaxf(higher, e.x[j]) : higher;
        if (higher > top) {
            total *= __expf(top - higher);
            top = higher;
        }
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            total += j < n && top > -INFINITY ? __expf(e.x[j] - top) : 0;
    }
    struct row_stats all;
    all.top = block_max(top);
    all.total = block_sum(top > -INFINITY ? total * __expf(top - all.top) : 0);
    return all;
}

static __device__ __forceinline__ bool label_is_wrong(int32_t label, int64_t vocab)
{
    return label < IGNORED || label >= vocab;
}

static __global__ void cross_entropy_kernel(float *term, float *lse, struct array softmax,
                                            struct array x, const int32_t *label, int64_t rows,
                                            int64_t vocab, int32_t *fault, int32_t mark)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        struct row_stats s = row_stats_of(x, row * vocab, vocab);
        float l = s.top + logf(s.total);
        if (threadIdx.x == 0) {
            bool wrong = label_is_wrong(label[row], vocab);
            if (wrong)
                *fault = mark;
            lse[row] = l;
            term[row] = wrong || label[row] == IGNORED ? 0 : l - load1(x, row * vocab + label[row]);
        }
        if (softmax.data) {
            float scale = 1 / s.total;
            __syncthreads(); /* the label's logit has been read: softmax may be x */
            FOR_EACH_EIGHT_COLUMNS(c, n, vocab)
            {
                struct eight_floats e = load8(x, row * vocab + c, (int)n);
#pragma unroll
                for (int j = 0; j < EIGHT; j++)
                    e.x[j] = __expf(e.x[j] - s.top) * scale;
                store8(softmax, row * vocab + c, (int)n, e);
            }
        }
    }
}

/* Adds terms in one block, so that the order of the sum is fixed. It adds in fp64, because losses are compared to many
 * digits. */
static __global__ void add_terms_kernel(float *loss, const float *before, const float *term,
                                        int64_t rows, double count)
{
    __shared__ double sum[SUM_THREADS];
    double own = 0;
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x)
        own += term[i];
    sum[threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        double all = 0;
        for (unsigned i = 0; i < blockDim.x; i++)
            all += sum[i];
        *loss = (float)((before ? *before : 0.f) + all / count);
    }
}

int cuda_add_terms(float *loss, const float *before, const float *term, int64_t rows, double count,
                   cudaStream_t stream)
{
    return LAUNCH(add_terms_kernel, 1, threads_for_row(rows * EIGHT, SUM_THREADS), 0, stream, loss,
                  before, term, rows, count);
}

size_t cuda_cross_entropy_scratch_bytes(int64_t rows)
{
    return (size_t)rows * sizeof(float);
}

int cuda_cross_entropy(float *loss, float *lse, struct cuda_array softmax, struct cuda_array logits,
                       const int32_t *label, const float *before, int64_t rows, int64_t vocab,
                       double count, int32_t *fault, int32_t mark, void *scratch,
                       cudaStream_t stream)
{
    float *term = (float *)scratch;
    int error =
        LAUNCH(cross_entropy_kernel, blocks_for(rows, 1), threads_for_row(vocab, ROW_THREADS), 0,
               stream, term, lse, kernel_array_of_rows(softmax, vocab),
               kernel_array_of_rows(logits, vocab), label, rows, vocab, fault, mark);
    return error ? error : cuda_add_terms(loss, before, term, rows, count, stream);
}

static __global__ void cross_entropy_backward_kernel(struct array dx, struct array x,
                                                     const int32_t *label, bool softmax,
                                                     int64_t rows, int64_t vocab, float scale,
                                                     int32_t *fault, int32_t mark)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        struct row_stats s = {0, 1};
        float each = scale;
        int32_t target = label[row];
        if (label_is_wrong(target, vocab)) {
            if (threadIdx.x == 0)
                *fault = mark;
            target = IGNORED;
        }
        if (!softmax && target != IGNORED) { /* the same for all threads */
            s = row_stats_of(x, row * vocab, vocab);
            each = scale / s.total;
        }
        FOR_EACH_EIGHT_COLUMNS(c, n, vocab)
        {
            struct eight_floats e = {};
            if (target != IGNORED) {
                e = load8(x, row * vocab + c, (int)n);
#pragma unroll
                for (int j = 0; j < EIGHT; j++) {
                    e.x[j] = softmax ? e.x[j] * scale : __expf(e.x[j] - s.top) * each;
                    e.x[j] -= c + j == target ? scale : 0;
                }
            }
            store8(dx, row * vocab + c, (int)n, e);
        }
    }
}

int cuda_cross_entropy_backward(struct cuda_array dx, struct cuda_array x, const int32_t *label,
                                bool softmax, int64_t rows, int64_t vocab, double count,
                                int32_t *fault, int32_t mark, cudaStream_t stream)
{
    return LAUNCH(cross_entropy_backward_kernel, blocks_for(rows, 1),
                  threads_for_row(vocab, ROW_THREADS), 0, stream, kernel_array_of_rows(dx, vocab),
                  kernel_array_of_rows(x, vocab), label, softmax, rows, vocab, (float)(1 / count),
                  fault, mark);
}

/* ---- a vocabulary that is split over ranks ---- */

static __global__ void cross_entropy_partial_kernel(float *stats, struct array x,
                                                    const int32_t *label, int64_t rows,
                                                    int64_t vocab, int64_t columns, int64_t first)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        struct row_stats s = row_stats_of(x, row * vocab, columns);
        if (threadIdx.x == 0) {
            int64_t own = label[row] - first;
            bool here = label[row] != IGNORED && own >= 0 && own < columns;
            stats[3 * row] = s.top;
            stats[3 * row + 1] = s.total;
            stats[3 * row + 2] = here ? load1(x, row * vocab + own) : 0;
        }
    }
}

int cuda_cross_entropy_partial(float *stats, struct cuda_array x, const int32_t *label,
                               int64_t rows, int64_t vocab, int64_t columns, int64_t first,
                               cudaStream_t stream)
{
    return LAUNCH(cross_entropy_partial_kernel, blocks_for(rows, 1),
                  threads_for_row(vocab, ROW_THREADS), 0, stream, stats,
                  kernel_array_of_rows(x, vocab), label, rows, vocab, columns, first);
}

static __global__ void cross_entropy_partial_backward_kernel(struct array dx, struct array x,
                                                             const int32_t *label, const float *lse,
                                                             int64_t rows, int64_t vocab,
                                                             int64_t columns, int64_t first,
                                                             float scale)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        int64_t own = label[row] - first, some = label[row] == IGNORED ? 0 : columns;
        float l = lse[row];
        FOR_EACH_EIGHT_COLUMNS(c, n, vocab)
        {
            struct eight_floats e = load8(x, row * vocab + c, (int)n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                e.x[j] =
                    c + j >= some ? 0 : (__expf(e.x[j] - l) - (c + j == own ? 1.f : 0.f)) * scale;
            store8(dx, row * vocab + c, (int)n, e);
        }
    }
}

int cuda_cross_entropy_partial_backward(struct cuda_array dx, struct cuda_array x,
                                        const int32_t *label, const float *lse, int64_t rows,
                                        int64_t vocab, int64_t columns, int64_t first, double count,
                                        cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(cross_entropy_partial_backward_kernel, blocks_for(rows, 1),
                                      threads_for_row(vocab, ROW_THREADS), stream,
                                      kernel_array_of_rows(dx, vocab),
                                      kernel_array_of_rows(x, vocab), label, lse, rows, vocab,
                                      columns, first, (float)(1 / count));
}

/* Merges the statistics of all parts, stats (parts, rows, 3), into each row's log-sum-exp and loss term. Parts are
 * added in their order. */
static __global__ void cross_entropy_finish_kernel(float *term, float *lse, const float *stats,
                                                   const int32_t *label, int64_t rows,
                                                   int64_t parts)
{
    FOR_EACH(i, rows)
    {
        float top = -INFINITY, total = 0, target = 0;
        for (int64_t p = 0; p < parts; p++)
            top = fmaxf(top, stats[3 * (p * rows + i)]);
        for (int64_t p = 0; p < parts; p++) {
            const float *part = stats + 3 * (p * rows + i);
            /* part[1] is 0 if the part has only padding */
            total += part[1] > 0 ? part[1] * __expf(part[0] - top) : 0;
            target += part[2];
        }
        float l = top + logf(total);
        lse[i] = l;
        term[i] = label[i] == IGNORED ? 0 : l - target;
    }
}

int cuda_cross_entropy_finish(float *loss, float *lse, const float *stats, const int32_t *label,
                              const float *before, int64_t rows, int64_t parts, double count,
                              void *scratch, cudaStream_t stream)
{
    float *term = (float *)scratch;
    int error = LAUNCH_INDEPENDENT_THREADS(cross_entropy_finish_kernel, blocks_for(rows, 256), 256,
                                           stream, term, lse, stats, label, rows, parts);
    return error ? error : cuda_add_terms(loss, before, term, rows, count, stream);
}
