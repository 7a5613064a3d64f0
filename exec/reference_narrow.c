/* The rounding of operands to 8 bits in the reference: numbers that share a scale are divided by it, rounded, and
 * multiplied by it again. */
#include "exec/reference_math.h"

#include "base/arena.h"
#include "exec/number.h"

#include <math.h>
#include <stdlib.h>

/* A matrix whose element (i, j) is at index i row_stride + j col_stride. */
struct strided_matrix_shape {
    size_t rows, cols, row_stride, col_stride;
};

/* Returns the inverse of a block's scale, by which the block's numbers are multiplied before they are rounded. amax:
 * their largest magnitude. Unless the scale is a power of two (MX), an amax below 1e-12 counts as 1e-12, as in the
 * kernels, so that a block of zeros has a scale. */
static float inverse_scale_of_block(float amax, enum dtype dtype, enum scaling scaling)
{
    if (scaling == SCALING_MX)
        return ldexpf(1, -number_scale_exponent(amax, dtype, false));
    return number_largest_finite(dtype) / fmaxf(amax, 1e-12f);
}

/* Rounds the block that begins at row i0 and column j0, whose numbers share a scale. The scale follows from amax, the
 * largest magnitude of the block. */
static void round_block(double *y, const double *x, struct strided_matrix_shape s, size_t i0,
                        size_t j0, struct scaling_block block, enum dtype dtype,
                        enum scaling scaling)
{
    const size_t i1 = i0 + (size_t)block.rows < s.rows ? i0 + (size_t)block.rows : s.rows;
    const size_t j1 = j0 + (size_t)block.cols < s.cols ? j0 + (size_t)block.cols : s.cols;
    float amax = 0;
    for (size_t i = i0; i < i1; i++)
        for (size_t j = j0; j < j1; j++)
            amax = fmaxf(amax, fabsf((float)x[i * s.row_stride + j * s.col_stride]));
    const float factor = inverse_scale_of_block(amax, dtype, scaling), scale = 1 / factor;
    for (size_t i = i0; i < i1; i++)
        for (size_t j = j0; j < j1; j++) {
            uint8_t code;
            float value = (float)x[i * s.row_stride + j * s.col_stride] * factor;
            number_from_f32(&code, dtype, &value, 1);
            number_to_f32(&value, &code, dtype, 1);
            y[i * s.row_stride + j * s.col_stride] = (double)value * scale;
        }
}

double *reference_round_to_narrow(const double *x, size_t rows, size_t cols, enum dtype dtype,
                                  enum scaling scaling, bool turned)
{
    const struct strided_matrix_shape s = turned
                                              ? (struct strided_matrix_shape){cols, rows, 1, cols}
                                              : (struct strided_matrix_shape){rows, cols, cols, 1};
    const struct scaling_block block = scaling_block(scaling, (int64_t)s.rows, (int64_t)s.cols);
    double *y = heap_alloc(rows * cols, sizeof *y);
    for (size_t i = 0; i < s.rows; i += (size_t)block.rows)
        for (size_t j = 0; j < s.cols; j += (size_t)block.cols)
            round_block(y, x, s, i, j, block, dtype, scaling);
    return y;
}
