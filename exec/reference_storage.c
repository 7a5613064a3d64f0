/* Arrays of the reference, and the random movement, in place of rounding, of the results that it stores. */
#include "exec/reference_layer.h"

#include <math.h>

double *reference_zeros(struct arena *arena, size_t rows, size_t cols)
{
    return arena_array(arena, rows * cols, sizeof(double));
}

double *reference_sum_of_two_arrays(struct arena *arena, const double *a, const double *b,
                                    size_t count)
{
    double *y = reference_zeros(arena, count, 1);
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
    return y;
}

/* Returns the next random number, uniform over [-1/2, 1/2), from splitmix64. */
static double next_uniform_around_0(struct reference_rounding_state *storage)
{
    uint64_t z = storage->random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53 - 0.5;
}

double *reference_perturb_like_rounding(struct reference_rounding_state *storage, double *x,
                                        size_t count)
{
    const struct reference_rounding *rounding = &storage->rounding;
    for (size_t i = 0; i < count && rounding->significand_bits > 0; i++) {
        int exponent; /* |x| lies from 2^(exponent - 1) to 2^exponent */
        frexp(x[i], &exponent);
        exponent = exponent - 1 > rounding->min_exponent ? exponent - 1 : rounding->min_exponent;
        if (x[i] != 0)
            x[i] +=
                ldexp(next_uniform_around_0(storage), exponent - (rounding->significand_bits - 1));
    }
    return x;
}
