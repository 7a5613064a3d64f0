/* exec/draw.h: seeded numbers that fill memory before the first step. They have the same bits on every backend.
 *
 * Element i of a tensor is centre + scale (s - DRAW_SUM_MEAN), where s is the sum of the four 16-bit parts of output i
 * of splitmix64 (Steele, Lea, Flood 2014) from the tensor's seed. The sum of four uniform numbers is nearly normal, but
 * never further than 3.46 standard deviations from its mean. It is computed in integers, so processors and devices
 * agree. A rank draws only the elements that it holds. Needs no CUDA header, and is C++, too. */
#ifndef EXEC_DRAW_H
#define EXEC_DRAW_H

#include <stdint.h>

/* The standard deviation and the mean of s, the sum of four numbers that are uniform over 0 .. 65535. */
#define DRAW_SUM_DEVIATION 37837.2271
#define DRAW_SUM_MEAN 131070

/* A block (rows, cols) of a tensor, contiguous in memory, to be filled with seeded numbers. Row r of the block
 * begins at element first_element + r row_stride of the tensor. */
struct draw {
    uint64_t seed;
    uint64_t rows, cols, first_element, row_stride;
    float centre, scale;
};

#ifdef __CUDACC__
#define DRAW_HOST_AND_DEVICE static __host__ __device__ __forceinline__
#else
#define DRAW_HOST_AND_DEVICE static inline
#endif

/* Returns element i of the tensor. */
DRAW_HOST_AND_DEVICE float draw_element(const struct draw *draw, uint64_t i)
{
    uint64_t z = draw->seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    int32_t sum = (int32_t)((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    return draw->centre + draw->scale * (float)(sum - DRAW_SUM_MEAN);
}

#ifndef __cplusplus
/* Writes the draw's numbers to `to`, (rows, cols) of a floating-point enum dtype, on up to `threads` threads. */
void draw_fill(void *to, uint8_t dtype, const struct draw *draw, uint32_t threads);
#endif

#endif
