/* Norms, their gradients, and sums over rows.
 *
 * A block of a norm works on a row at a time. It reads the row once, with 16-byte loads that it issues together, and
 * keeps it in registers, as it was stored, until its sums are known. In a forward kernel a thread keeps up to KEPT
 * groups of eight columns. In a backward kernel it keeps up to OWNED; there it has the same columns of all rows of its
 * block, so it also keeps the sums over rows, for the gradients of weights, in registers. Rows that are too long for
 * that, and in a backward all rows that are not bf16, are read again for each sum; their sums over rows are kept in
 * shared memory or in the block's partial row.
 *
 * A block that sums columns works on 256 of them, and its warps share the rows. A second kernel adds the partial rows
 * of all blocks, in an order that does not depend on how threads run. */
#include "exec/cuda/device.cuh"

enum { ROW_THREADS = 512, PARTS_MAX = 264, KEPT = 4, OWNED = 2 };

/* Returns the number of threads of a block that keeps a row of `cols` columns in registers, with up to `groups` groups
 * of eight columns in each thread; 0: the row is too long. */
static inline unsigned threads_to_keep_row(int64_t cols, int groups)
{
    int64_t threads = ceil_div(ceil_div(cols, EIGHT * groups), WARP) * WARP;
    return threads > ROW_THREADS ? 0 : (unsigned)threads;
}

/* kept_column() returns the first column of group k of this thread. kept_column_count() returns how many columns of
 * that group are within the row. */
static __device__ __forceinline__ int64_t kept_column(int k)
{
    return ((int64_t)k * blockDim.x + threadIdx.x) * EIGHT;
}
static __device__ __forceinline__ int kept_column_count(int k, int64_t cols)
{
    int64_t left = cols - kept_column(k);
    return left <= 0 ? 0 : at_most_eight(left);
}

/* Tells the compiler that the elements of an array are bf16. Eight of them then take four registers instead of
 * eight. */
template <bool BF16> static __device__ __forceinline__ void assume_bf16(struct array *a)
{
    if (BF16)
        a->dtype = CUDA_BF16;
}
static inline bool is_bf16(struct cuda_array a)
{
    return a.dtype == CUDA_BF16;
}

/* ---- forward ---- */

/* The statistics of a row: rstd, and for a layer norm (CENTRED) also the mean. In memory a row has one number, rstd, or
 * two, the mean and rstd. */
template <bool CENTRED> struct statistics {
    float mean, rstd;
    __device__ __forceinline__ static struct statistics of(const float *stats, int64_t row)
    {
        return {CENTRED ? stats[2 * row] : 0.f, CENTRED ? stats[2 * row + 1] : stats[row]};
    }
    __device__ __forceinline__ void put(float *stats, int64_t row) const
    {
        if (CENTRED)
            stats[2 * row] = mean;
        stats[CENTRED ? 2 * row + 1 : row] = rstd;
    }
};

template <bool CENTRED>
static __global__ void norm_kernel(struct array y, float *stats, struct array x,
                                   struct array weight, struct array bias, int64_t rows,
                                   int64_t cols, float eps)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        float sum = 0, square = 0, mean = 0;
        if (CENTRED) {
            FOR_EACH_EIGHT_COLUMNS(c, n, cols)
            {
                struct eight_floats e = load8(x, row * cols + c, (int)n);
#pragma unroll
                for (int j = 0; j < EIGHT; j++)
                    sum += e.x[j];
            }
            mean = block_sum(sum) / (float)cols;
        }
        FOR_EACH_EIGHT_COLUMNS(c, n, cols)
        { /* squares of differences from the mean: sums of x and of x^2 would cancel */
            struct eight_floats e = load8(x, row * cols + c, (int)n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                square += j < n ? (e.x[j] - mean) * (e.x[j] - mean) : 0;
        }
        const struct statistics<CENTRED> s = {
            mean, 1 / sqrtf(block_sum(square) / (float)cols + eps)
        };
        if (threadIdx.x == 0)
            s.put(stats, row);
        FOR_EACH_EIGHT_COLUMNS(c, n, cols)
        {
            struct stored8 sx = fetch8(x, row * cols + c, (int)n), sw = fetch8(weight, c, (int)n);
            struct eight_floats e = unpack8(sx, x.dtype), w = unpack8(sw, weight.dtype), b = {};
            if (CENTRED)
                b = load8(bias, c, (int)n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                e.x[j] = (e.x[j] - s.mean) * s.rstd * w.x[j] + b.x[j];
            store8(y, row * cols + c, (int)n, e);
        }
    }
}

/* Returns two bf16 numbers in one word, the first in the lower half. */
static __device__ __forceinline__ uint32_t pack_bf16_pair(float low, float high)
{
    return to_bf16(low) | (uint32_t)to_bf16(high) << 16;
}

/* Adds eight elements of a and of b, stores the sums in bf16, and returns them as they are stored. */
static __device__ __forceinline__ struct stored8 store_bf16_sum(const struct array &sum, int64_t i,
                                                                int n, const struct stored8 &a,
                                                                const struct stored8 &b)
{
    struct eight_floats e = unpack8(a, CUDA_BF16), f = unpack8(b, CUDA_BF16);
#pragma unroll
    for (int j = 0; j < EIGHT; j++)
        e.x[j] += f.x[j];
    if (n > 0)
        store8(sum, i, n, e);
    return {{pack_bf16_pair(e.x[0], e.x[1]), pack_bf16_pair(e.x[2], e.x[3]),
             pack_bf16_pair(e.x[4], e.x[5]), pack_bf16_pair(e.x[6], e.x[7])},
            {0, 0, 0, 0}};
}

/* Computes the norm of x. With ADDS, which is for bf16 only, it first computes and stores total = x + added, and then
 * computes the norm of `total`. */
template <bool CENTRED, bool BF16, bool ADDS>
static __global__ void __launch_bounds__(ROW_THREADS, BF16 && !CENTRED && !ADDS ? 2 : 1)
    norm_kept_kernel(struct array y, float *stats, struct array x, struct array weight,
                     struct array bias, int64_t rows, int64_t cols, float eps, struct array added,
                     struct array total)
{
    if (ADDS) {
        assume_bf16<BF16>(&added);
        assume_bf16<BF16>(&total);
    }
    assume_bf16<BF16>(&x);
    assume_bf16<BF16>(&y);
    assume_bf16<BF16>(&weight);
    assume_bf16<BF16>(&bias);
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        struct stored8 kept[KEPT];
        float sum = 0, square = 0, mean = 0;
#pragma unroll
        for (int k = 0; k < KEPT; k++)
            kept[k] = fetch8(x, row * cols + kept_column(k), kept_column_count(k, cols));
        if (ADDS) {
            struct stored8 other[KEPT];
#pragma unroll
            for (int k = 0; k < KEPT; k++)
                other[k] = fetch8(added, row * cols + kept_column(k), kept_column_count(k, cols));
#pragma unroll
            for (int k = 0; k < KEPT; k++)
                kept[k] = store_bf16_sum(total, row * cols + kept_column(k),
                                         kept_column_count(k, cols), kept[k], other[k]);
        }
        if (CENTRED) {
#pragma unroll
            for (int k = 0; k < KEPT; k++) {
                struct eight_floats e = unpack8(kept[k], x.dtype); /* 0 past the row's end */
#pragma unroll
                for (int j = 0; j < EIGHT; j++)
                    sum += e.x[j];
            }
            mean = block_sum(sum) / (float)cols;
        }
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            struct eight_floats e = unpack8(kept[k], x.dtype);
            int n = kept_column_count(k, cols);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                square += j < n ? (e.x[j] - mean) * (e.x[j] - mean) : 0;
        }
        const struct statistics<CENTRED> s = {
            mean, 1 / sqrtf(block_sum(square) / (float)cols + eps)
        };
        if (threadIdx.x == 0)
            s.put(stats, row);
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            int64_t c = kept_column(k);
            int n = kept_column_count(k, cols);
            if (n == 0)
                continue;
            struct eight_floats e = unpack8(kept[k], x.dtype), w = load8(weight, c, n), b = {};
            if (CENTRED)
                b = load8(bias, c, n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                e.x[j] = (e.x[j] - s.mean) * s.rstd * w.x[j] + b.x[j];
            store8(y, row * cols + c, n, e);
        }
    }
}

template <bool CENTRED>
static int norm(struct cuda_array y, float *stats, struct cuda_array x, struct cuda_array weight,
                struct cuda_array bias, int64_t rows, int64_t cols, double eps, cudaStream_t stream)
{
    unsigned blocks = (unsigned)(rows < 65536 ? rows : 65536),
             threads = threads_to_keep_row(cols, KEPT);
    bool bf16 = is_bf16(x) && is_bf16(y) && is_bf16(weight) && is_bf16(bias);
    if (threads > 0 && bf16)
        return LAUNCH((norm_kept_kernel<CENTRED, true, false>), blocks, threads, 0, stream,
                      kernel_array_of_rows(y, cols), stats, kernel_array_of_rows(x, cols),
                      kernel_array_of_rows(weight, cols), kernel_array_of_rows(bias, cols), rows,
                      cols, (float)eps, kernel_array_of_rows(x, cols),
                      kernel_array_of_rows(x, cols));
    if (threads > 0)
        return LAUNCH((norm_kept_kernel<CENTRED, false, false>), blocks, threads, 0, stream,
                      kernel_array_of_rows(y, cols), stats, kernel_array_of_rows(x, cols),
                      kernel_array_of_rows(weight, cols), kernel_array_of_rows(bias, cols), rows,
                      cols, (float)eps, kernel_array_of_rows(x, cols),
                      kernel_array_of_rows(x, cols));
    return LAUNCH(norm_kernel<CENTRED>, blocks, threads_for_row(cols, ROW_THREADS), 0, stream,
                  kernel_array_of_rows(y, cols), stats, kernel_array_of_rows(x, cols),
                  kernel_array_of_rows(weight, cols), kernel_array_of_rows(bias, cols), rows, cols,
                  (float)eps);
}

template <bool CENTRED> static int add_norm(struct cuda_add_norm n, cudaStream_t stream)
{
    return LAUNCH((norm_kept_kernel<CENTRED, true, true>),
                  (unsigned)(n.rows < 65536 ? n.rows : 65536), threads_to_keep_row(n.cols, KEPT), 0,
                  stream, kernel_array_of_rows(n.y, n.cols), n.stats,
                  kernel_array_of_rows(n.a, n.cols), kernel_array_of_rows(n.weight, n.cols),
                  kernel_array_of_rows(n.bias, n.cols), n.rows, n.cols, (float)n.eps,
                  kernel_array_of_rows(n.b, n.cols), kernel_array_of_rows(n.sum, n.cols));
}

static_assert(CUDA_ADD_NORM_COLS_MAX == ROW_THREADS * KEPT * EIGHT, "a block keeps such a row");

int cuda_add_norm(const struct cuda_add_norm *n, cudaStream_t stream)
{
    return n->subtracts_mean ? add_norm<true>(*n, stream) : add_norm<false>(*n, stream);
}

int cuda_rmsnorm(struct cuda_array y, float *rstd, struct cuda_array x, struct cuda_array weight,
                 int64_t rows, int64_t cols, double eps, cudaStream_t stream)
{
    return norm<false>(y, rstd, x, weight, weight, rows, cols, eps, stream);
}

int cuda_layernorm(struct cuda_array y, float *stats, struct cuda_array x, struct cuda_array weight,
                   struct cuda_array bias, int64_t rows, int64_t cols, double eps,
                   cudaStream_t stream)
{
    return norm<true>(y, stats, x, weight, bias, rows, cols, eps, stream);
}

/* ---- partial sums over rows ---- */

static int64_t partial_row_count(int64_t rows)
{
    return rows < PARTS_MAX ? rows : (int64_t)PARTS_MAX;
}

size_t cuda_column_scratch_bytes(int64_t rows, int64_t cols, int sums)
{
    return (size_t)(partial_row_count(rows) * cols * sums) * sizeof(float);
}

enum { ADDERS = 16 }; /* warps that share the parts of a column */

/* Sets y[c] = before[c] + the sum of part[c] over all parts, which begin `step` floats apart. A block works on WARP
 * columns. Warp w adds the parts w, w + ADDERS, ..., and the first warp then adds the sums of all warps. */
static __global__ void add_partial_rows_kernel(struct array y, struct array before,
                                               const float *part, int64_t parts, int64_t step,
                                               int64_t cols)
{
    __shared__ float sum[ADDERS][WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t c = (int64_t)blockIdx.x * WARP + lane;
    float own = 0;
    for (int64_t p = warp; p < parts && c < cols; p += ADDERS)
        own += part[p * step + c];
    sum[warp][lane] = own;
    __syncthreads();
    if (warp > 0 || c >= cols)
        return;
    for (int w = 1; w < ADDERS; w++)
        own += sum[w][lane];
    struct eight_floats e = {};
    e.x[0] = own + (before.data ? load1(before, c) : 0.f);
    store8(y, c, 1, e);
}

static int launch_add_partial_rows(struct cuda_array y, struct cuda_array before, const float *part,
                                   int64_t parts, int64_t step, int64_t cols, cudaStream_t stream)
{
    return LAUNCH(add_partial_rows_kernel, (unsigned)ceil_div(cols, WARP), ADDERS * WARP, 0, stream,
                  kernel_array_of(y), kernel_array_of(before), part, parts, step, cols);
}

/* Returns the bytes of shared memory in which a block keeps `floats` sums, besides the memory of block_sum(). Returns 0
 * if that is too much: the block then keeps its sums in its partial row in device memory. */
static size_t shared_bytes_for(int64_t floats)
{
    size_t bytes = (size_t)floats * sizeof(float);
    return bytes + REDUCE_SHARED <= SHARED_MOST ? bytes : 0;
}

static __device__ __forceinline__ void zero_columns(float *sum, int64_t cols)
{
    FOR_EACH_EIGHT_COLUMNS(c, n, cols)
    for (int j = 0; j < n; j++)
        sum[c + j] = 0;
}

/* Copies columns. A thread copies those that it has written itself, so threads need not synchronise. */
static __device__ __forceinline__ void copy_columns(float *to, const float *from, int64_t cols)
{
    FOR_EACH_EIGHT_COLUMNS(c, n, cols)
    for (int j = 0; j < n; j++)
        to[c + j] = from[c + j];
}

/* ---- gradients of norms ---- */

/* Computes the gradient of a norm. part: a row for each block, with the sums over the block's rows for the gradient of
 * the weight and, if CENTRED, then of the bias. in_shared: the block makes these sums in shared memory. */
template <bool CENTRED>
static __global__ void norm_backward_kernel(struct array dx, float *part, struct array dy,
                                            struct array x, struct array weight, const float *stats,
                                            int64_t rows, int64_t cols, bool in_shared)
{
    DYNAMIC_SHARED(shared);
    float *own = part + blockIdx.x * (CENTRED ? 2 : 1) * cols, *sum = in_shared ? shared : own;
    float *bias_sum = sum + cols;
    zero_columns(sum, cols);
    if (CENTRED)
        zero_columns(bias_sum, cols);
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const struct statistics<CENTRED> s = statistics<CENTRED>::of(stats, row);
        float g_sum = 0, dot = 0;
        FOR_EACH_EIGHT_COLUMNS(c, n, cols)
        {
            struct stored8 sd = fetch8(dy, row * cols + c, (int)n),
                           sx = fetch8(x, row * cols + c, (int)n), sw = fetch8(weight, c, (int)n);
            struct eight_floats d = unpack8(sd, dy.dtype), e = unpack8(sx, x.dtype),
                                w = unpack8(sw, weight.dtype);
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                float g = d.x[j] * w.x[j]; /* 0 past the row's end */
                g_sum += g;
                dot += g * (e.x[j] - s.mean) * s.rstd;
            }
        }
        float g_mean = CENTRED ? block_sum(g_sum) / (float)cols : 0;
        float d_mean = block_sum(dot) / (float)cols;
        FOR_EACH_EIGHT_COLUMNS(c, n, cols)
        {
            struct stored8 sd = fetch8(dy, row * cols + c, (int)n),
                           sx = fetch8(x, row * cols + c, (int)n), sw = fetch8(weight, c, (int)n);
            struct eight_floats d = unpack8(sd, dy.dtype), e = unpack8(sx, x.dtype),
                                w = unpack8(sw, weight.dtype);
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                float xhat = (e.x[j] - s.mean) * s.rstd;
                if (j < n)
                    sum[c + j] += d.x[j] * xhat;
                if (j < n && CENTRED)
                    bias_sum[c + j] += d.x[j];
                e.x[j] = s.rstd * (d.x[j] * w.x[j] - g_mean - xhat * d_mean);
            }
            store8(dx, row * cols + c, (int)n, e);
        }
    }
    if (in_shared) {
        copy_columns(own, sum, cols);
        if (CENTRED)
            copy_columns(own + cols, bias_sum, cols);
    }
}

/* Does what norm_backward_kernel() does, in bf16, for rows that fit into OWNED groups of columns in each thread. (In
 * fp32 they would need too many registers.) It fetches the next row while the present one waits for its sums. */
template <bool CENTRED>
static __global__ void __launch_bounds__(ROW_THREADS)
    norm_backward_owned_kernel(struct array dx, float *part, struct array dy, struct array x,
                               struct array weight, const float *stats, int64_t rows, int64_t cols)
{
    assume_bf16<true>(&dx);
    assume_bf16<true>(&dy);
    assume_bf16<true>(&x);
    assume_bf16<true>(&weight);
    struct eight_floats weight_sum[OWNED] = {}, bias_sum[OWNED] = {};
    struct stored8 sd[OWNED], sx[OWNED], sw[OWNED];
#pragma unroll
    for (int k = 0; k < OWNED; k++) {
        int64_t c = kept_column(k);
        int n = kept_column_count(k, cols);
        sw[k] = fetch8(weight, c, n);
        sd[k] = fetch8(dy, blockIdx.x * cols + c, n);
        sx[k] = fetch8(x, blockIdx.x * cols + c, n);
    }
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const struct statistics<CENTRED> s = statistics<CENTRED>::of(stats, row);
        int64_t next = row + gridDim.x;
        struct stored8 next_d[OWNED], next_x[OWNED];
        float g_sum = 0, dot = 0;
#pragma unroll
        for (int k = 0; k < OWNED; k++) {
            int n = next < rows ? kept_column_count(k, cols) : 0;
            next_d[k] = fetch8(dy, next * cols + kept_column(k), n);
            next_x[k] = fetch8(x, next * cols + kept_column(k), n);
        }
#pragma unroll
        for (int k = 0; k < OWNED; k++) {
            struct eight_floats d = unpack8(sd[k], dy.dtype), e = unpack8(sx[k], x.dtype),
                                w = unpack8(sw[k], weight.dtype);
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                float g = d.x[j] * w.x[j]; /* 0 past the row's end */
                g_sum += g;
                dot += g * (e.x[j] - s.mean) * s.rstd;
            }
        }
        float g_mean = CENTRED ? block_sum(g_sum) / (float)cols : 0;
        float d_mean = block_sum(dot) / (float)cols;
#pragma unroll
        for (int k = 0; k < OWNED; k++) {
            int n = kept_column_count(k, cols);
            struct eight_floats d = unpack8(sd[k], dy.dtype), e = unpack8(sx[k], x.dtype),
                                w = unpack8(sw[k], weight.dtype);
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                float xhat = (e.x[j] - s.mean) * s.rstd;
                weight_sum[k].x[j] += d.x[j] * xhat;
                if (CENTRED)
                    bias_sum[k].x[j] += d.x[j];
                e.x[j] = s.rstd * (d.x[j] * w.x[j] - g_mean - xhat * d_mean);
            }
            if (n > 0)
                store8(dx, row * cols + kept_column(k), n, e);
            sd[k] = next_d[k];
            sx[k] = next_x[k];
        }
    }
    float *own = part + blockIdx.x * (CENTRED ? 2 : 1) * cols;
#pragma unroll
    for (int k = 0; k < OWNED; k++) {
        int n = kept_column_count(k, cols);
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            if (j < n)
                own[kept_column(k) + j] = weight_sum[k].x[j];
            if (j < n && CENTRED)
                own[cols + kept_column(k) + j] = bias_sum[k].x[j];
        }
    }
}

/* Launches one of the two kernels with `parts` blocks, each of which writes a partial row. */
template <bool CENTRED>
static int launch_norm_backward(struct cuda_array dx, float *part, int64_t parts,
                                struct cuda_array dy, struct cuda_array x, struct cuda_array weight,
                                const float *stats, int64_t rows, int64_t cols, cudaStream_t stream)
{
    unsigned threads = threads_to_keep_row(cols, OWNED);
    if (threads > 0 && is_bf16(dx) && is_bf16(dy) && is_bf16(x) && is_bf16(weight))
        return LAUNCH(norm_backward_owned_kernel<CENTRED>, (unsigned)parts, threads, 0, stream,
                      kernel_array_of_rows(dx, cols), part, kernel_array_of_rows(dy, cols),
                      kernel_array_of_rows(x, cols), kernel_array_of_rows(weight, cols), stats,
                      rows, cols);
    size_t shared = shared_bytes_for((CENTRED ? 2 : 1) * cols);
    if (shared + REDUCE_SHARED > SHARED_FREE) {
        int error = ALLOW_DYNAMIC_SHARED_BYTES(norm_backward_kernel<CENTRED>, shared);
        if (error)
            return error;
    }
    return LAUNCH(norm_backward_kernel<CENTRED>, (unsigned)parts,
                  threads_for_row(cols, ROW_THREADS), shared, stream,
                  kernel_array_of_rows(dx, cols), part, kernel_array_of_rows(dy, cols),
                  kernel_array_of_rows(x, cols), kernel_array_of_rows(weight, cols), stats, rows,
                  cols, shared > 0);
}

int cuda_rmsnorm_backward(struct cuda_array dx, struct cuda_array dweight, struct cuda_array dy,
                          struct cuda_array x, struct cuda_array weight, const float *rstd,
                          struct cuda_array before, int64_t rows, int64_t cols, void *scratch,
                          cudaStream_t stream)
{
    float *part = (float *)scratch;
    int64_t parts = partial_row_count(rows);
    int error =
        launch_norm_backward<false>(dx, part, parts, dy, x, weight, rstd, rows, cols, stream);
    return error ? error
                 : launch_add_partial_rows(dweight, before, part, parts, cols, cols, stream);
}

int cuda_layernorm_backward(struct cuda_array dx, struct cuda_array dweight,
                            struct cuda_array dbias, struct cuda_array dy, struct cuda_array x,
                            struct cuda_array weight, const float *stats,
                            struct cuda_array weight_before, struct cuda_array bias_before,
                            int64_t rows, int64_t cols, void *scratch, cudaStream_t stream)
{
    float *part = (float *)scratch;
    int64_t parts = partial_row_count(rows);
    int error =
        launch_norm_backward<true>(dx, part, parts, dy, x, weight, stats, rows, cols, stream);
    if (error == 0)
        error =
            launch_add_partial_rows(dweight, weight_before, part, parts, 2 * cols, cols, stream);
    return error ? error
                 : launch_add_partial_rows(dbias, bias_before, part + cols, parts, 2 * cols, cols,
                                           stream);
}

/* ---- column sums ---- */

enum { TILE_ROWS = 8 };

/* Adds the columns of x into partial rows. A block adds WARP * EIGHT columns of the rows that belong to its partial
 * row. The rows are cut into tiles of TILE_ROWS. Tiles p, p + parts, ... belong to partial row p, which is blockIdx.y,
 * and each warp adds one row of each tile. */
static __global__ void column_sum_kernel(float *part, struct array x, int64_t rows, int64_t cols)
{
    __shared__ float sum[TILE_ROWS][WARP * EIGHT];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t c = ((int64_t)blockIdx.x * WARP + lane) * EIGHT;
    int n = c < cols ? at_most_eight(cols - c) : 0;
    struct eight_floats own = {};
    for (int64_t row = (int64_t)blockIdx.y * TILE_ROWS + warp; row < rows && n > 0;
         row += (int64_t)gridDim.y * TILE_ROWS) {
        struct eight_floats e = load8(x, row * cols + c, n);
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            own.x[j] += e.x[j];
    }
#pragma unroll
    for (int j = 0; j < EIGHT; j++)
        sum[warp][lane * EIGHT + j] = own.x[j];
    __syncthreads();
    for (int j = 0; warp == 0 && j < n; j++) {
        float all = 0;
        for (int w = 0; w < TILE_ROWS; w++)
            all += sum[w][lane * EIGHT + j];
        part[blockIdx.y * cols + c + j] = all;
    }
}

int cuda_column_sum(struct cuda_array y, struct cuda_array x, struct cuda_array before,
                    int64_t rows, int64_t cols, void *scratch, cudaStream_t stream)
{
    float *part = (float *)scratch;
    int64_t parts = partial_row_count(ceil_div(rows, TILE_ROWS));
    dim3 grid((unsigned)ceil_div(cols, WARP * EIGHT), (unsigned)parts);
    int error = LAUNCH(column_sum_kernel, grid, TILE_ROWS * WARP, 0, stream, part,
                       kernel_array_of_rows(x, cols), rows, cols);
    return error ? error : launch_add_partial_rows(y, before, part, parts, cols, cols, stream);
}
