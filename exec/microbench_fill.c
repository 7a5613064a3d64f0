#include "exec/microbench.h"
#include "exec/number.h"

#include <string.h>

/* The number of random numbers, which are repeated until the buffer is full. It is a prime, so that the rows of a
 * matrix do not hold the same numbers; equal rows would draw less power. */
enum { PATTERN = 65537 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Returns a number in [0.25, 1) from random bits. */
static double positive_number(uint64_t bits)
{
    return 0.25 + 0.75 * (double)(bits >> 11) * 0x1p-53;
}

/* Returns a number that is about normally distributed with mean 0 and variance 1, from random bits: the sum of four
 * uniform numbers of variance 1/12 each, scaled. */
static double normal_number(uint64_t bits)
{
    double sum = 0;
    for (int i = 0; i < 4; i++, bits >>= 16)
        sum += (double)(bits & 0xffff) * 0x1p-16 - 0.5;
    return sum * 1.7320508075688772;
}

/* Fills the rest of data with repetitions of its first `fresh` elements. */
static void repeat_pattern(void *data, uint64_t bytes, uint64_t fresh, uint64_t elements)
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
    bool narrow = dtype_bytes(dtype) == 2;
    for (uint64_t i = 0; i < fresh; i++) {
        uint64_t bits = next_random(&state);
        if (dtype == DTYPE_U8) /* any four such bytes are an fp32 number between 0.01 and 0.26 */
            ((uint8_t *)data)[i] = (uint8_t)(0x3c + (bits >> 32) % 3);
        else
            number_write_element(data, dtype, i,
                                 narrow ? normal_number(bits) : positive_number(bits));
    }
    repeat_pattern(data, dtype_bytes(dtype), fresh, elements);
}

void microbench_fill_indices(int32_t *data, uint64_t elements, uint64_t limit, uint64_t seed)
{
    uint64_t state = 0x9e3779b97f4a7c15u + seed;
    uint64_t fresh = elements < PATTERN ? elements : PATTERN;
    for (uint64_t i = 0; i < fresh; i++) {
        uint64_t bits = next_random(&state);
        data[i] = (int32_t)((bits >> 16) % (limit < 1u << 20 ? limit : 1u << 20));
    }
    repeat_pattern(data, sizeof *data, fresh, elements);
}
