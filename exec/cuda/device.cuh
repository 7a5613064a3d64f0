/* exec/cuda/device.cuh: the parts from which all kernels are made. It has arrays of bf16, fp16 or fp32, read eight
 * elements at a time; sums over warps and blocks; and launches.
 *
 * CUDA_EMULATED names a header that replaces CUDA's when the same kernels are compiled for the processor
 * (tests/exec/emulator/). */
#ifndef EXEC_CUDA_DEVICE_CUH
#define EXEC_CUDA_DEVICE_CUH

#include "exec/cuda/kernels.h"

#ifdef CUDA_EMULATED
#include CUDA_EMULATED
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
/* LAUNCH is for kernels in whose blocks threads synchronise or share memory, LAUNCH_INDEPENDENT_THREADS for all others.
 * The emulator runs the two in different ways. */
#define LAUNCH(kernel, grid, block, shared, stream, ...)                                           \
    (kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__), (int)cudaPeekAtLastError())
#define LAUNCH_INDEPENDENT_THREADS(kernel, grid, block, stream, ...)                               \
    LAUNCH(kernel, grid, block, 0, stream, __VA_ARGS__)
#define DYNAMIC_SHARED(name) extern __shared__ float name[]
/* Must come before a launch that needs more than SHARED_FREE bytes of shared memory, static variables included. bytes:
 * those that are dynamic. */
#define ALLOW_DYNAMIC_SHARED_BYTES(kernel, bytes)                                                                \
    (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes))

static __device__ __forceinline__ float from_bf16(uint16_t bits)
{
    return __uint_as_float((uint32_t)bits << 16);
}
static __device__ __forceinline__ uint16_t to_bf16(float x)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
static __device__ __forceinline__ float from_f16(uint16_t bits)
{
    return __half2float(__ushort_as_half(bits));
}
static __device__ __forceinline__ uint16_t to_f16(float x)
{
    return __half_as_ushort(__float2half_rn(x));
}
#endif

#include <math.h>

enum { WARP = 32, EIGHT = 8, BLOCK_MAX = 1024 };
/* SHARED_FREE: the bytes of shared memory that a block gets without a request. SHARED_MOST: the most that every device
 * of compute capability 8.0 or later gives on request. Both include static variables. */
enum { SHARED_FREE = 48 << 10, SHARED_MOST = 99 << 10 };

/* ---- arrays, and eight elements at a time ---- */

/* An array as kernels see it. is_aligned16: groups of eight elements, counted from `data`, begin at multiples of 16
 * bytes. */
struct array {
    char *data;
    int dtype;
    bool is_aligned16;
};

/* Eight elements as they are stored: 16-bit ones in lo, fp32 ones in both. */
struct stored8 {
    uint4 lo, hi;
};
struct eight_floats {
    float x[EIGHT];
};

static inline struct array kernel_array_of(struct cuda_array a)
{
    struct array array = {(char *)a.data, a.dtype, ((uintptr_t)a.data & 15) == 0};
    return array;
}
static inline struct array kernel_array_of_f32(const float *x)
{
    struct array array = {(char *)(uintptr_t)x, CUDA_F32, ((uintptr_t)x & 15) == 0};
    return array;
}
/* Returns an array that kernels read in rows of `cols` elements. If cols is no multiple of eight, is_aligned16 is
 * false, so that elements are read and written one by one. */
static inline struct array kernel_array_of_rows(struct cuda_array a, int64_t cols)
{
    struct array array = kernel_array_of(a);
    array.is_aligned16 = array.is_aligned16 && cols % EIGHT == 0;
    return array;
}

/* Fetches n <= 8 elements without unpacking them, so that the loads of all operands are under way before the first is
 * used. The other elements of the result are 0. */
static __device__ __forceinline__ struct stored8 fetch8(const struct array &a, int64_t i, int n)
{
    struct stored8 s = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (a.dtype == CUDA_F32) {
        const float *p = (const float *)a.data + i;
        if (a.is_aligned16 && n == EIGHT) {
            s.lo = ((const uint4 *)p)[0];
            s.hi = ((const uint4 *)p)[1];
        } else {
            uint32_t *word = (uint32_t *)&s;
#pragma unroll
            for (int k = 0; k < EIGHT; k++)
                word[k] = k < n ? ((const uint32_t *)p)[k] : 0;
        }
    } else {
        const uint16_t *p = (const uint16_t *)a.data + i;
        if (a.is_aligned16 && n == EIGHT) {
            s.lo = *(const uint4 *)p;
        } else {
            uint32_t *word = (uint32_t *)&s;
#pragma unroll
            for (int k = 0; k < EIGHT; k += 2)
                word[k / 2] = (k < n ? p[k] : 0u) | (k + 1 < n ? (uint32_t)p[k + 1] << 16 : 0u);
        }
    }
    return s;
}

static __device__ __forceinline__ struct eight_floats unpack8(const struct stored8 &s, int dtype)
{
    struct eight_floats e;
    const uint32_t *word = (const uint32_t *)&s;
#pragma unroll
    for (int k = 0; k < EIGHT; k++) {
        uint16_t bits = (uint16_t)(word[k / 2] >> (k % 2 * 16));
        e.x[k] = dtype == CUDA_F32    ? __uint_as_float(word[k])
                 : dtype == CUDA_BF16 ? from_bf16(bits)
                                      : from_f16(bits);
    }
    return e;
}

static __device__ __forceinline__ struct eight_floats load8(const struct array &a, int64_t i, int n)
{
    return unpack8(fetch8(a, i, n), a.dtype);
}

static __device__ __forceinline__ void store8(const struct array &a, int64_t i, int n,
                                              const struct eight_floats &e)
{
    if (a.dtype == CUDA_F32) {
        float *p = (float *)a.data + i;
        if (a.is_aligned16 && n == EIGHT) {
            ((float4 *)p)[0] = make_float4(e.x[0], e.x[1], e.x[2], e.x[3]);
            ((float4 *)p)[1] = make_float4(e.x[4], e.x[5], e.x[6], e.x[7]);
        } else {
#pragma unroll
            for (int k = 0; k < EIGHT; k++)
                if (k < n)
                    p[k] = e.x[k];
        }
        return;
    }
    uint16_t *p = (uint16_t *)a.data + i;
    uint32_t word[4];
#pragma unroll
    for (int k = 0; k < EIGHT; k += 2) {
        uint32_t low = a.dtype == CUDA_BF16 ? to_bf16(e.x[k]) : to_f16(e.x[k]);
        uint32_t high = a.dtype == CUDA_BF16 ? to_bf16(e.x[k + 1]) : to_f16(e.x[k + 1]);
        word[k / 2] = low | high << 16;
    }
    if (a.is_aligned16 && n == EIGHT) {
        *(uint4 *)p = make_uint4(word[0], word[1], word[2], word[3]);
    } else {
#pragma unroll
        for (int k = 0; k < EIGHT; k++)
            if (k < n)
                p[k] = (uint16_t)(word[k / 2] >> (k % 2 * 16));
    }
}

static __device__ __forceinline__ float load1(const struct array &a, int64_t i)
{
    if (a.dtype == CUDA_F32)
        return ((const float *)a.data)[i];
    uint16_t bits = ((const uint16_t *)a.data)[i];
    return a.dtype == CUDA_BF16 ? from_bf16(bits) : from_f16(bits);
}

static __device__ __forceinline__ int at_most_eight(int64_t left)
{
    return left < EIGHT ? (int)left : EIGHT;
}

/* ---- sums and maxima over the threads of a warp or block ---- */

static __device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2)
        x += __shfl_xor_sync(~0u, x, o);
    return x;
}

static __device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, o));
    return x;
}

/* The bytes of static shared memory that block_sum() takes in a kernel. block_max() takes as many. */
enum { REDUCE_SHARED = WARP * sizeof(float) };

/* Returns the sum or the maximum of x over all threads of the block, to each of them. Blocks must be whole warps. */
template <bool MAX> static __device__ __forceinline__ float block_reduce(float x)
{
    __shared__ float part[WARP];
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    x = MAX ? warp_max(x) : warp_sum(x);
    if (warps == 1)
        return x;
    __syncthreads(); /* all threads have read the result of the previous call */
    if (lane == 0)
        part[warp] = x;
    __syncthreads();
    x = lane < warps ? part[lane] : MAX ? -INFINITY : 0.f;
    return MAX ? warp_max(x) : warp_sum(x);
}
static __device__ __forceinline__ float block_sum(float x)
{
    return block_reduce<false>(x);
}
static __device__ __forceinline__ float block_max(float x)
{
    return block_reduce<true>(x);
}

/* ---- grids, blocks, loops over elements, and pairs of rows ---- */

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Returns the number of blocks of a grid whose threads loop over `items`: enough for a thread for each item, but no
 * more than fill any device several times. */
static inline unsigned blocks_for(int64_t items, int threads)
{
    const int64_t most = 4096;
    int64_t blocks = ceil_div(items, threads);
    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

/* Returns the number of threads, at most `most`, of a block that works on one row, eight columns to a thread. */
static inline unsigned threads_for_row(int64_t cols, int most)
{
    int64_t threads = ceil_div(ceil_div(cols, EIGHT), WARP) * WARP;
    return (unsigned)(threads > most ? most : threads);
}

#define FOR_EACH(i, count)                                                                         \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);                  \
         i += (int64_t)gridDim.x * blockDim.x)

/* The state of a loop in which the threads of a grid share the groups of eight columns of a matrix. Groups are counted
 * along a row, row by row. With each step a thread skips as many groups as the grid has threads. This skip is step_rows
 * rows and step_groups groups. Row and group are counted separately, so that only the start divides, and in 32 bits: a
 * grid has less than 2^32 threads. */
struct column_group_loop_state {
    int64_t row;
    uint32_t column_group, step_rows, step_groups;
};

static __device__ __forceinline__ struct column_group_loop_state walk_begin(uint32_t groups)
{
    uint32_t first = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    struct column_group_loop_state walk = {first / groups, first % groups, threads / groups,
                                         threads % groups};
    return walk;
}

static __device__ __forceinline__ void walk_on(struct column_group_loop_state &walk, uint32_t groups)
{
    walk.row += walk.step_rows;
    walk.column_group += walk.step_groups;
    if (walk.column_group >= groups) {
        walk.column_group -= groups;
        walk.row++;
    }
}

static __device__ __forceinline__ uint32_t column_groups(int64_t cols)
{
    return (uint32_t)((cols + EIGHT - 1) / EIGHT);
}

/* Loops over a thread's groups of eight columns of a matrix whose rows have `groups` groups. A group is w.column_group
 * of row w.row. */
#define FOR_EACH_COLUMN_GROUP(w, rows, groups)                                                                \
    for (struct column_group_loop_state w = walk_begin(groups); w.row < (rows); walk_on(w, groups))

static __device__ __forceinline__ struct cuda_moved_row_pair pair_at(const struct cuda_moved_row_pairs &pairs,
                                                               int64_t i)
{
    struct cuda_moved_row_pair pair = {i, i};
    return pairs.pairs != NULL ? pairs.pairs[i] : pair;
}

/* True if pair i exists and has this inner row. */
static __device__ __forceinline__ bool has_inner_row(const struct cuda_moved_row_pairs &pairs, int64_t i,
                                                     int64_t inner)
{
    return i >= 0 && i < pairs.count && pair_at(pairs, i).inner == inner;
}

/* Loops over a thread's columns of the row of its block, eight at a time: the n columns from c on. */
#define FOR_EACH_EIGHT_COLUMNS(c, n, cols)                                                                    \
    for (int64_t c = (int64_t)threadIdx.x * EIGHT, n = at_most_eight((cols)-c); c < (cols);        \
         c += (int64_t)blockDim.x * EIGHT, n = at_most_eight((cols)-c))

#endif
