/* 8-bit copies of matrices, which have one scale for the tensor, or one for each block of numbers. The scale of a block
 * follows from the largest magnitude of its numbers, that of a tensor from a largest magnitude that is given. The copy
 * has the numbers divided by the scale. */
#include "exec/cuda/device.cuh"

enum { THREADS = 256 };

static __global__ void largest_kernel(float *part, struct array x, int64_t count)
{
    float own = 0;
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        /* elements past the end are 0 */
        struct eight_floats e = load8(x, k * EIGHT, at_most_eight(count - k * EIGHT));
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            own = fmaxf(own, fabsf(e.x[j]));
    }
    own = block_max(own);
    if (threadIdx.x == 0)
        part[blockIdx.x] = own;
}

static unsigned block_count_for_largest_magnitude(int64_t count)
{
    return blocks_for(ceil_div(count, EIGHT), THREADS);
}

size_t cuda_largest_magnitude_scratch_bytes(int64_t count)
{
    return block_count_for_largest_magnitude(count) * sizeof(float);
}

int cuda_largest_magnitude(float *largest, struct cuda_array x, int64_t count, void *scratch,
                           cudaStream_t stream)
{
    const unsigned blocks = block_count_for_largest_magnitude(count);
    float *part = (float *)scratch;
    int error = LAUNCH(largest_kernel, blocks, THREADS, 0, stream, part, kernel_array_of(x), count);
    return error ? error
                 : LAUNCH(largest_kernel, 1, THREADS, 0, stream, largest, kernel_array_of_f32(part),
                          (int64_t)blocks);
}

/* Rounds a number to nearest, ties to even. A magnitude above the largest number becomes the largest number, and NaN
 * stays NaN (exec/number.c). */
static __device__ __forceinline__ uint8_t to_eight_bits(struct cuda_eight_bit_format type, float x)
{
    const uint32_t bits = __float_as_uint(x);
    const uint32_t sign = bits >> 24 & 0x80;
    if (x != x)
        return (uint8_t)(sign | 0x7f);
    const float size = fminf(fabsf(x), type.largest_finite);
    int exponent = (int)(__float_as_uint(size) >> 23) - 127;
    exponent = exponent < 1 - type.bias ? 1 - type.bias : exponent;
    const int steps = (int)rintf(ldexpf(size, type.mantissa_bits - exponent));
    return (uint8_t)(sign | (uint32_t)(((exponent + type.bias - 1) << type.mantissa_bits) + steps));
}

/* Writes the copy, (rows, cols), and its scale. turned: x is (cols, rows), the transpose of the copy. */
static __global__ void quantise_kernel(uint8_t *copy, float *scale, struct array x, int64_t rows,
                                       int64_t cols, int turned, const float *largest,
                                       struct cuda_eight_bit_format type)
{
    const float least = 1e-12f; /* the same as in exec/cpu/quantise.c */
    const float factor = type.largest_finite / fmaxf(*largest, least);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *scale = 1 / factor;
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(cols))
    {
        const int64_t c = (int64_t)w.column_group * EIGHT, i = w.row * cols + c;
        const int n = at_most_eight(cols - c);
        struct eight_floats e;
        if (turned)
            for (int j = 0; j < EIGHT; j++)
                e.x[j] = j < n ? load8(x, (c + j) * rows + w.row, 1).x[0] : 0;
        else
            e = load8(x, i, n);
        for (int j = 0; j < n; j++)
            copy[i + j] = to_eight_bits(type, e.x[j] * factor);
    }
}

int cuda_quantise(void *copy, float *scale, struct cuda_array x, int64_t rows, int64_t cols,
                  bool turned, const float *largest, struct cuda_eight_bit_format type,
                  cudaStream_t stream)
{
    const int64_t r = turned ? cols : rows, c = turned ? rows : cols;
    return LAUNCH_INDEPENDENT_THREADS(
        quantise_kernel, blocks_for(r * ceil_div(c, EIGHT), THREADS), THREADS, stream,
        (uint8_t *)copy, scale, kernel_array_of_rows(x, cols), r, c, turned ? 1 : 0, largest, type);
}

/* Writes the copy, (rows, cols), and a scale for each block of block_rows x CUDA_SCALE_BLOCK numbers, in the order of
 * rows of blocks. A block of threads works on one block of numbers at a time. turned: x is (cols, rows), the transpose
 * of the copy. */
static __global__ void quantise_blocks_kernel(uint8_t *copy, float *scale, struct array x,
                                              int64_t rows, int64_t cols, int turned,
                                              int block_rows, uint32_t blocks,
                                              struct cuda_eight_bit_format type)
{
    const float least = 1e-12f; /* the same as in exec/cpu/quantise.c */
    const uint32_t along = (uint32_t)((cols + CUDA_SCALE_BLOCK - 1) / CUDA_SCALE_BLOCK);
    const int count = block_rows * CUDA_SCALE_BLOCK;
    for (uint32_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const int64_t row = (int64_t)(b / along) * block_rows;
        const int64_t col = (int64_t)(b % along) * CUDA_SCALE_BLOCK;
        float own = 0;
        for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) {
            const int64_t r = row + i / CUDA_SCALE_BLOCK, c = col + i % CUDA_SCALE_BLOCK;
            if (r < rows && c < cols)
                own = fmaxf(own, fabsf(load1(x, turned ? c * rows + r : r * cols + c)));
        }
        const float factor = type.largest_finite / fmaxf(block_max(own), least);
        if (threadIdx.x == 0)
            scale[b] = 1 / factor;
        for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) {
            const int64_t r = row + i / CUDA_SCALE_BLOCK, c = col + i % CUDA_SCALE_BLOCK;
            if (r < rows && c < cols)
                copy[r * cols + c] =
                    to_eight_bits(type, load1(x, turned ? c * rows + r : r * cols + c) * factor);
        }
    }
}

int cuda_quantise_blocks(void *copy, float *scales, struct cuda_array x, int64_t rows, int64_t cols,
                         bool turned, int block_rows, struct cuda_eight_bit_format type,
                         cudaStream_t stream)
{
    const int64_t r = turned ? cols : rows, c = turned ? rows : cols;
    const int64_t blocks = ceil_div(r, block_rows) * ceil_div(c, CUDA_SCALE_BLOCK);
    return LAUNCH(quantise_blocks_kernel, blocks_for(blocks, 1),
                  (unsigned)(block_rows == 1 ? (int)WARP : (int)THREADS), 0, stream,
                  (uint8_t *)copy, scales, kernel_array_of(x), r, c, turned ? 1 : 0, block_rows,
                  (uint32_t)blocks, type);
}

/* Writes `outer` lines of `padded` scales each. The first `inner` scales of a line are copied from `from`, where lines
 * begin outer_step scales apart and the scales of a line are inner_step apart. The others are 0. */
static __global__ void lay_out_scales_kernel(float *to, const float *from, uint32_t outer,
                                             uint32_t inner, uint32_t padded, uint32_t outer_step,
                                             uint32_t inner_step)
{
    const uint32_t count = outer * padded, step = gridDim.x * blockDim.x;
    for (uint32_t k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += step) {
        const uint32_t o = k / padded, i = k % padded;
        to[k] = i < inner ? from[(int64_t)o * outer_step + (int64_t)i * inner_step] : 0.f;
    }
}

size_t cuda_laid_out_scale_count(int64_t rows, int64_t cols, int block_rows)
{
    const int64_t r = ceil_div(rows, block_rows), c = ceil_div(cols, CUDA_SCALE_BLOCK);
    return (size_t)(block_rows == 1 ? c * ceil_div(r, 4) * 4 : r * ceil_div(c, 4) * 4);
}

int cuda_lay_out_scales(float *to, const float *from, int64_t rows, int64_t cols, int block_rows,
                        cudaStream_t stream)
{
    const int64_t r = ceil_div(rows, block_rows), c = ceil_div(cols, CUDA_SCALE_BLOCK);
    const bool turns = block_rows == 1;
    const int64_t outer = turns ? c : r, inner = turns ? r : c, padded = ceil_div(inner, 4) * 4;
    return LAUNCH_INDEPENDENT_THREADS(lay_out_scales_kernel, blocks_for(outer * padded, THREADS),
                                      THREADS, stream, to, from, (uint32_t)outer, (uint32_t)inner,
                                      (uint32_t)padded, (uint32_t)(turns ? 1 : c),
                                      (uint32_t)(turns ? c : 1));
}
