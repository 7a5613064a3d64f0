/* Norms, their gradients, and sums over rows.
 *
 * A block of a norm takes a row at a time. Gradients of weights are sums over rows: each block sums its rows in shared
 * memory, or in its partial row if rows are too long for that (every thread its own columns). A block that sums columns
 * takes 256 of them, and its warps share the rows. A second kernel adds the partial rows in order. */
#include "exec/cuda/device.cuh"

enum { ROW_THREADS = 512, PARTS_MAX = 264 };

/* ---- forward ---- */

/* The statistics of a row: rstd, and for a layer norm (CENTRED) mean and rstd. */
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
            FOR_COLUMNS(c, n, cols)
            {
                struct eight e = load8(x, row * cols + c, (int)n);
#pragma unroll
                for (int j = 0; j < EIGHT; j++)
                    sum += e.x[j];
            }
            mean = block_sum(sum) / (float)cols;
        }
        FOR_COLUMNS(c, n, cols)
        { /* about the mean: no cancellation */
            struct eight e = load8(x, row * cols + c, (int)n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                square += j < n ? (e.x[j] - mean) * (e.x[j] - mean) : 0;
        }
        const struct statistics<CENTRED> s = {
            mean, 1 / sqrtf(block_sum(square) / (float)cols + eps)
        };
        if (threadIdx.x == 0)
            s.put(stats, row);
        FOR_COLUMNS(c, n, cols)
        {
            struct stored8 sx = fetch(x, row * cols + c, (int)n), sw = fetch(weight, c, (int)n);
            struct eight e = unpack(sx, x.dtype), w = unpack(sw, weight.dtype), b = {};
            if (CENTRED)
                b = load8(bias, c, (int)n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                e.x[j] = (e.x[j] - s.mean) * s.rstd * w.x[j] + b.x[j];
            store8(y, row * cols + c, (int)n, e);
        }
    }
}

template <bool CENTRED>
static int norm(struct cuda_array y, float *stats, struct cuda_array x, struct cuda_array weight,
                struct cuda_array bias, int64_t rows, int64_t cols, double eps, cudaStream_t stream)
{
    return LAUNCH(norm_kernel<CENTRED>, (unsigned)(rows < 65536 ? rows : 65536),
                  threads_for(cols, ROW_THREADS), 0, stream, rows_of(y, cols), stats,
                  rows_of(x, cols), rows_of(weight, cols), rows_of(bias, cols), rows, cols,
                  (float)eps);
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

static int64_t parts_of(int64_t rows)
{
    return rows < PARTS_MAX ? rows : (int64_t)PARTS_MAX;
}

size_t cuda_column_scratch(int64_t rows, int64_t cols, int sums)
{
    return (size_t)(parts_of(rows) * cols * sums) * sizeof(float);
}

/* y[c] = before[c] + sum of the parts' [c]; parts are `step` floats apart. */
static __global__ void add_parts_kernel(struct array y, struct array before, const float *part,
                                        int64_t parts, int64_t step, int64_t cols)
{
    FOR_EACH(c, cols)
    {
        float sum = 0;
        for (int64_t p = 0; p < parts; p++)
            sum += part[p * step + c];
        struct eight e = {};
        e.x[0] = sum + (before.data ? load1(before, c) : 0.f);
        store8(y, c, 1, e);
    }
}

static int add_parts(struct cuda_array y, struct cuda_array before, const float *part,
                     int64_t parts, int64_t step, int64_t cols, cudaStream_t stream)
{
    return LAUNCH_APART(add_parts_kernel, blocks_for(cols, 128), 128, stream, array_of(y),
                        array_of(before), part, parts, step, cols);
}

/* Returns how much shared memory the sums of a block need, in addition to that of block_sum(). For very long rows it
 * is 0: their sums are made in the partial row itself. */
static size_t shared_for(int64_t floats)
{
    size_t bytes = (size_t)floats * sizeof(float);
    return bytes + REDUCE_SHARED <= SHARED_MOST ? bytes : 0;
}

static __device__ __forceinline__ void clear_columns(float *sum, int64_t cols)
{
    FOR_COLUMNS(c, n, cols)
    for (int j = 0; j < n; j++)
        sum[c + j] = 0;
}

/* Copies columns; each thread copies those that it has written, so no synchronisation is needed. */
static __device__ __forceinline__ void copy_columns(float *to, const float *from, int64_t cols)
{
    FOR_COLUMNS(c, n, cols)
    for (int j = 0; j < n; j++)
        to[c + j] = from[c + j];
}

/* ---- gradients of norms ---- */

/* part: of each block, sums for the weight and, CENTRED, for the bias. */
template <bool CENTRED>
static __global__ void norm_backward_kernel(struct array dx, float *part, struct array dy,
                                            struct array x, struct array weight, const float *stats,
                                            int64_t rows, int64_t cols, bool in_shared)
{
    DYNAMIC_SHARED(shared);
    float *own = part + blockIdx.x * (CENTRED ? 2 : 1) * cols, *sum = in_shared ? shared : own;
    float *bias_sum = sum + cols;
    clear_columns(sum, cols);
    if (CENTRED)
        clear_columns(bias_sum, cols);
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const struct statistics<CENTRED> s = statistics<CENTRED>::of(stats, row);
        float g_sum = 0, dot = 0;
        FOR_COLUMNS(c, n, cols)
        {
            struct stored8 sd = fetch(dy, row * cols + c, (int)n),
                           sx = fetch(x, row * cols + c, (int)n), sw = fetch(weight, c, (int)n);
            struct eight d = unpack(sd, dy.dtype), e = unpack(sx, x.dtype),
                         w = unpack(sw, weight.dtype);
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                float g = d.x[j] * w.x[j]; /* 0 past the row's end */
                g_sum += g;
                dot += g * (e.x[j] - s.mean) * s.rstd;
            }
        }
        float g_mean = CENTRED ? block_sum(g_sum) / (float)cols : 0;
        float d_mean = block_sum(dot) / (float)cols;
        FOR_COLUMNS(c, n, cols)
        {
            struct stored8 sd = fetch(dy, row * cols + c, (int)n),
                           sx = fetch(x, row * cols + c, (int)n), sw = fetch(weight, c, (int)n);
            struct eight d = unpack(sd, dy.dtype), e = unpack(sx, x.dtype),
                         w = unpack(sw, weight.dtype);
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

/* Launches `parts` blocks, each of which writes partial sums. */
template <bool CENTRED>
static int norm_backward(struct cuda_array dx, float *part, int64_t parts, struct cuda_array dy,
                         struct cuda_array x, struct cuda_array weight, const float *stats,
                         int64_t rows, int64_t cols, cudaStream_t stream)
{
    size_t shared = shared_for((CENTRED ? 2 : 1) * cols);
    if (shared + REDUCE_SHARED > SHARED_FREE) {
        int error = ALLOW_SHARED(norm_backward_kernel<CENTRED>, shared);
        if (error)
            return error;
    }
    return LAUNCH(norm_backward_kernel<CENTRED>, (unsigned)parts, threads_for(cols, ROW_THREADS),
                  shared, stream, rows_of(dx, cols), part, rows_of(dy, cols), rows_of(x, cols),
                  rows_of(weight, cols), stats, rows, cols, shared > 0);
}

int cuda_rmsnorm_backward(struct cuda_array dx, struct cuda_array dweight, struct cuda_array dy,
                          struct cuda_array x, struct cuda_array weight, const float *rstd,
                          struct cuda_array before, int64_t rows, int64_t cols, void *scratch,
                          cudaStream_t stream)
{
    float *part = (float *)scratch;
    int64_t parts = parts_of(rows);
    int error = norm_backward<false>(dx, part, parts, dy, x, weight, rstd, rows, cols, stream);
    return error ? error : add_parts(dweight, before, part, parts, cols, cols, stream);
}

int cuda_layernorm_backward(struct cuda_array dx, struct cuda_array dweight,
                            struct cuda_array dbias, struct cuda_array dy, struct cuda_array x,
                            struct cuda_array weight, const float *stats,
                            struct cuda_array weight_before, struct cuda_array bias_before,
                            int64_t rows, int64_t cols, void *scratch, cudaStream_t stream)
{
    float *part = (float *)scratch;
    int64_t parts = parts_of(rows);
    int error = norm_backward<true>(dx, part, parts, dy, x, weight, stats, rows, cols, stream);
    if (error == 0)
        error = add_parts(dweight, weight_before, part, parts, 2 * cols, cols, stream);
    return error ? error
                 : add_parts(dbias, bias_before, part + cols, parts, 2 * cols, cols, stream);
}

/* ---- column sums ---- */

enum { TILE_ROWS = 8 };

/* A block takes 32 x 8 columns of the rows part, part + parts, ...; its warps share the rows. */
static __global__ void column_sum_kernel(float *part, struct array x, int64_t rows, int64_t cols)
{
    __shared__ float sum[TILE_ROWS][WARP * EIGHT];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t c = ((int64_t)blockIdx.x * WARP + lane) * EIGHT;
    int n = c < cols ? up_to_eight(cols - c) : 0;
    struct eight own = {};
    for (int64_t row = (int64_t)blockIdx.y * TILE_ROWS + warp; row < rows && n > 0;
         row += (int64_t)gridDim.y * TILE_ROWS) {
        struct eight e = load8(x, row * cols + c, n);
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
    int64_t parts = parts_of(ceil_div(rows, TILE_ROWS));
    dim3 grid((unsigned)ceil_div(cols, WARP * EIGHT), (unsigned)parts);
    int error = LAUNCH(column_sum_kernel, grid, TILE_ROWS * WARP, 0, stream, part, rows_of(x, cols),
                       rows, cols);
    return error ? error : add_parts(y, before, part, parts, cols, cols, stream);
}
