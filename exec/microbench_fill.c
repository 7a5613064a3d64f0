#include "exec/microbench.h"

#include <string.h>

enum { PATTERN = 4096 }; /* random numbers, which are repeated */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Writes a number in [0.25, 1): not zero, since zeros draw less power; positive, as variances must be. All
 * floating-point dtypes get the same number, cut to the digits that they have; other dtypes get the bytes of an f32. */
static void put_number(void *data, uint64_t i, enum dtype dtype, uint64_t bits)
{
    uint32_t mantissa = (uint32_t)bits & 0x7fffff, exponent = bits >> 32 & 1 ? 126 : 125;
    uint32_t f32 = exponent << 23 | mantissa;
    uint16_t bf16 = (uint16_t)(f32 >> 16);
    uint16_t f16 = (uint16_t)((exponent - 112) << 10 | mantissa >> 13);
    uint64_t f64 = (uint64_t)(exponent + 896) << 52 | (uint64_t)mantissa << 29;
    switch (dtype) {
    case DTYPE_BF16:
        memcpy((char *)data + 2 * i, &bf16, 2);
        break;
    case DTYPE_F16:
        memcpy((char *)data + 2 * i, &f16, 2);
        break;
    case DTYPE_F64:
        memcpy((char *)data + 8 * i, &f64, 8);
        break;
    default:
        memcpy((char *)data + 4 * i, &f32, 4);
        break;
    }
}

/* Fills the rest of data with repetitions of its first `fresh` elements. */
static void repeat(void *data, uint64_t bytes, uint64_t fresh, uint64_t elements)
{
    for (uint64_t done = fresh; done < elements; done += fresh) {
        uint64_t left = elements - done;
        memcpy((char *)data + done * bytes, data, (left < fresh ? left : fresh) * bytes);
    }
}

void microbench_fill(void *data, enum dtype dtype, uint64_t elements, uint64_t seed)
{
    uint64_t state = 0x9e3779b97f4a7c15u + seed;
    uint64_t fresh = elements < PATTERN ? elements : PATTERN;
    for (uint64_t i = 0; i < fresh; i++)
        put_number(data, i, dtype, next_random(&state));
    repeat(data, dtype_bytes(dtype), fresh, elements);
}

void microbench_fill_indices(int32_t *data, uint64_t elements, uint64_t limit, uint64_t seed)
{
    uint64_t state = 0x9e3779b97f4a7c15u + seed;
    uint64_t fresh = elements < PATTERN ? elements : PATTERN;
    for (uint64_t i = 0; i < fresh; i++) {
        uint64_t bits = next_random(&state);
        data[i] = (int32_t)((bits >> 16) % (limit < 1u << 20 ? limit : 1u << 20));
    }
    repeat(data, sizeof *data, fresh, elements);
}
