#include "models/frozen_storage.h"

#include "base/arena.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const frozen_storage_names[FROZEN_STORAGE_COUNT] = {"16bit", "nf4", "nf4-double",
                                                                "int8"};

enum {
    NF4_BLOCK_ELEMENTS = 64,      /* elements that share a scale of nf4 */
    SCALES_PER_OUTER_SCALE = 256, /* 8-bit scales that share an fp32 scale */
    SCALE_VALUE_DECADES = 7, /* powers of ten over which the values of 8-bit scales are spread */
};

/* NF4's values (QLoRA, appendix E). */
const float frozen_storage_values[FROZEN_STORAGE_VALUES] = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};

/* Returns end i, from 0 to `parts`, of the equal parts into which the range 0.1 to 1 is cut, as
 * torch.linspace() rounds it. */
static float linspace_value_at(int parts, int i)
{
    const float first = 0.1F, last = 1, step = (last - first) / (float)parts;
    return i < (parts + 1) / 2 ? (float)((double)first + (double)step * i)
                               : (float)((double)last - (double)step * (parts - i));
}

/* The values are 0, 1 and, in each of the 7 decades below 1, positive numbers and their negatives. The numbers of a
 * decade are the centres of equal parts of 0.1 to 1, scaled to the decade: one number in the lowest decade, and in each
 * further one twice as many (Dettmers et al., 8-bit Optimizers, arXiv 2110.02861, section 2.2). They are rounded as
 * bitsandbytes rounds them. */
void frozen_storage_scale_values(float value[static FROZEN_STORAGE_SCALE_VALUES])
{
    const int zero = FROZEN_STORAGE_SCALE_VALUES / 2 - 1;
    int n = 0;
    for (int decade = 0; decade < SCALE_VALUE_DECADES; decade++) {
        const int parts = 1 << decade;
        const float factor = (float)pow(10, decade - (SCALE_VALUE_DECADES - 1));
        for (int i = 0; i < parts; i++, n++) {
            const float centre =
                (linspace_value_at(parts, i) + linspace_value_at(parts, i + 1)) / 2;
            value[zero + 1 + n] = factor * centre;
            value[zero - 1 - n] = -value[zero + 1 + n];
        }
    }
    value[zero] = 0;
    value[FROZEN_STORAGE_SCALE_VALUES - 1] = 1;
}

/* Returns the index of the value nearest to x, the lower index if two are equally near. value[] is in ascending
 * order. */
static int nearest_value_index(const float *value, int count, float x)
{
    int low = 0, high = count - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (value[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return fabsf(value[high] - x) < fabsf(value[low] - x) ? high : low;
}

static int64_t divide_rounding_up(int64_t count, int64_t size)
{
    return count / size + (count % size != 0);
}

/* Returns the bytes of the 8-bit scales of n blocks, padded to a multiple of 4. */
static size_t padded_scale_bytes(int64_t n)
{
    return (size_t)divide_rounding_up(n, (int64_t)sizeof(float)) * sizeof(float);
}

uint64_t frozen_storage_code_bytes(enum frozen_storage storage, uint64_t elements)
{
    return storage == FROZEN_STORAGE_INT8 ? elements : elements / 2 + elements % 2;
}

uint64_t frozen_storage_scale_bytes(enum frozen_storage storage, int64_t rows, int64_t cols)
{
    const int64_t blocks =
        storage == FROZEN_STORAGE_INT8 ? rows : divide_rounding_up(rows * cols, NF4_BLOCK_ELEMENTS);
    if (storage != FROZEN_STORAGE_NF4_DOUBLE)
        return (uint64_t)blocks * sizeof(float);
    return padded_scale_bytes(blocks) +
           (uint64_t)(divide_rounding_up(blocks, SCALES_PER_OUTER_SCALE) + 1) * sizeof(float);
}

static float largest_magnitude(const float *x, int64_t count)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    return largest;
}

/* Writes the scales of n blocks to `to`, as nf4-double stores them (models/frozen_storage.h). Replaces each scale[i] by
 * its value as stored, which decode_scales() returns. */
static void encode_scales(float *scale, int64_t n, uint8_t *to)
{
    float eight_bit_scale_values[FROZEN_STORAGE_SCALE_VALUES];
    uint8_t *wide = to + padded_scale_bytes(n);
    double sum = 0;
    frozen_storage_scale_values(eight_bit_scale_values);
    for (int64_t i = 0; i < n; i++)
        sum += (double)scale[i];
    const float offset = (float)(sum / (double)n);
    memset(to, 0, padded_scale_bytes(n));
    for (int64_t first = 0; first < n; first += SCALES_PER_OUTER_SCALE) {
        const int64_t count =
            n - first < SCALES_PER_OUTER_SCALE ? n - first : SCALES_PER_OUTER_SCALE;
        for (int64_t i = first; i < first + count; i++)
            scale[i] -= offset;
        const float largest = largest_magnitude(scale + first, count);
        for (int64_t i = first; i < first + count; i++) {
            const float x = largest > 0 ? scale[i] / largest : 0;
            to[i] = (uint8_t)nearest_value_index(eight_bit_scale_values,
                                                 FROZEN_STORAGE_SCALE_VALUES, x);
            scale[i] = eight_bit_scale_values[to[i]] * largest + offset;
        }
        memcpy(wide, &largest, sizeof largest);
        wide += sizeof largest;
    }
    memcpy(wide, &offset, sizeof offset);
}

/* Sets scale[0..n) to the scales of n blocks, which are stored at `from`. */
static void decode_scales(enum frozen_storage storage, const uint8_t *from, int64_t n, float *scale)
{
    float eight_bit_scale_values[FROZEN_STORAGE_SCALE_VALUES], offset;
    if (storage != FROZEN_STORAGE_NF4_DOUBLE) {
        memcpy(scale, from, (size_t)n * sizeof *scale);
        return;
    }
    const uint8_t *wide = from + padded_scale_bytes(n);
    frozen_storage_scale_values(eight_bit_scale_values);
    memcpy(&offset, wide + (size_t)divide_rounding_up(n, SCALES_PER_OUTER_SCALE) * sizeof(float),
           sizeof offset);
    for (int64_t i = 0; i < n; i++) {
        float largest;
        memcpy(&largest, wide + (size_t)(i / SCALES_PER_OUTER_SCALE) * sizeof(float),
               sizeof largest);
        scale[i] = eight_bit_scale_values[from[i]] * largest + offset;
    }
}

/* Writes the codes of a block of nf4, two to a byte, the first in the high half. Blocks have no byte in common.
 * largest: the block's scale. */
static void encode_block(const float *x, int64_t count, float largest, uint8_t *codes)
{
    for (int64_t i = 0; i < count; i++) {
        const int code = nearest_value_index(frozen_storage_values, FROZEN_STORAGE_VALUES,
                                             largest > 0 ? x[i] / largest : 0);
        if (i % 2 == 0)
            codes[i / 2] = (uint8_t)(code << 4);
        else
            codes[i / 2] |= (uint8_t)code;
    }
}

void frozen_storage_encode(enum frozen_storage storage, int64_t rows, int64_t cols,
                           const double *values, uint8_t *codes, uint8_t *scales)
{
    const bool bytes = storage == FROZEN_STORAGE_INT8;
    const int64_t size = bytes ? cols : NF4_BLOCK_ELEMENTS, count = rows * cols,
                  n = divide_rounding_up(count, size);
    float *scale = heap_alloc((size_t)n, sizeof *scale);
    float *x = heap_alloc((size_t)size, sizeof *x);
    assert(storage != FROZEN_STORAGE_16BIT);
    for (int64_t b = 0; b < n; b++) {
        const int64_t first = b * size, own = count - first < size ? count - first : size;
        for (int64_t i = 0; i < own; i++)
            x[i] = (float)values[first + i];
        scale[b] = largest_magnitude(x, own);
        for (int64_t i = 0; bytes && i < own; i++)
            codes[first + i] =
                (uint8_t)(int8_t)(scale[b] > 0 ? lrintf(x[i] * (127.0F / scale[b])) : 0);
        if (!bytes)
            encode_block(x, own, scale[b], codes + first / 2);
    }
    if (storage == FROZEN_STORAGE_NF4_DOUBLE)
        encode_scales(scale, n, scales);
    else
        memcpy(scales, scale, (size_t)n * sizeof *scale);
    free(x);
    free(scale);
}

void frozen_storage_decode(enum frozen_storage storage, int64_t rows, int64_t cols,
                           const uint8_t *codes, const uint8_t *scales, float *values)
{
    const bool bytes = storage == FROZEN_STORAGE_INT8;
    const int64_t size = bytes ? cols : NF4_BLOCK_ELEMENTS, count = rows * cols,
                  n = divide_rounding_up(count, size);
    float *scale = heap_alloc((size_t)n, sizeof *scale);
    assert(storage != FROZEN_STORAGE_16BIT);
    decode_scales(storage, scales, n, scale);
    for (int64_t i = 0; i < count; i++) {
        const float of_block = scale[i / size];
        if (bytes)
            values[i] = (float)(int8_t)codes[i] * of_block * (1.0F / 127.0F);
        else
            values[i] = frozen_storage_values[i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15] *
                        of_block;
    }
    free(scale);
}
