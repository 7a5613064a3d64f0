/* 8-bit copies of matrices with one scale for the tensor: the largest magnitude, and numbers divided by the scale. */
#include "exec/cuda/device.cuh"

enum { THREADS = 256 };

static __global__ void largest_kernel(float *part, struct array x, int64_t count)
{
    float own = 0;
    FOR_EACH(k, (count + EIGHT - 1) / EIGHT)
    {
        struct eight_floats e =
            load8(x, k * EIGHT, at_most_eight(count - k * EIGHT)); /* others are 0 */
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            own = fmaxf(own, fabsf(e.x[j]));
    }
    own = block_max(own);
    if (threadIdx.x == 0)
        part[blockIdx.x] = own;
}

static unsigned largest_blocks(int64_t count)
{
    return blocks_for(ceil_div(count, EIGHT), THREADS);
}

size_t cuda_largest_scratch_bytes(int64_t count)
{
    return largest_blocks(count) * sizeof(float);
}

int cuda_largest_magnitude(float *largest, struct cuda_array x, int64_t count, void *scratch,
                           cudaStream_t stream)
{
    const unsigned blocks = largest_blocks(count);
    float *part = (float *)scratch;
    int error = LAUNCH(largest_kernel, blocks, THREADS, 0, stream, part, array_of(x), count);
    return error ? error
                 : LAUNCH(largest_kernel, 1, THREADS, 0, stream, largest, floats_of(part),
                          (int64_t)blocks);
}

/* Rounds to nearest, ties to even; what exceeds the largest number becomes that number (exec/number.c). */
static __device__ __forceinline__ uint8_t to_eight_bits(struct cuda_eight_bits type, float x)
{
    const uint32_t bits = __float_as_uint(x);
    const uint32_t sign = bits >> 24 & 0x80;
    if (x != x)
        return (uint8_t)(sign | 0x7f);
    const float size = fminf(fabsf(x), type.largest);
    int exponent = (int)(__float_as_uint(size) >> 23) - 127;
    exponent = exponent < 1 - type.bias ? 1 - type.bias : exponent;
    const int steps = (int)rintf(ldexpf(size, type.mantissa_bits - exponent));
    return (uint8_t)(sign | (uint32_t)(((exponent + type.bias - 1) << type.mantissa_bits) + steps));
}

/* Writes copy (rows, cols) and the scale. turned: x is (cols, rows). */
static __global__ void quantise_kernel(uint8_t *copy, float *scale, struct array x, int64_t rows,
                                       int64_t cols, int turned, const float *largest,
                                       struct cuda_eight_bits type)
{
    const float least = 1e-12f; /* exec/cpu/quantise.c */
    const float factor = type.largest / fmaxf(*largest, least);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *scale = 1 / factor;
    FOR_GROUPS(w, rows, column_groups(cols))
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
                  bool turned, const float *largest, struct cuda_eight_bits type,
                  cudaStream_t stream)
{
    const int64_t r = turned ? cols : rows, c = turned ? rows : cols;
    return LAUNCH_APART(quantise_kernel, blocks_for(r * ceil_div(c, EIGHT), THREADS), THREADS,
                        stream, (uint8_t *)copy, scale, rows_of(x, cols), r, c, turned ? 1 : 0,
                        largest, type);
}
