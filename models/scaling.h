/* models/scaling.h: the scales of 8- and 4-bit operands: which numbers share one, and how they lie in memory. */
#ifndef MODELS_SCALING_H
#define MODELS_SCALING_H

#include "models/dtype.h"

#include <stdint.h>

/* Which elements of an 8- or 4-bit operand share a scale, by which they are multiplied. Rows of blocks lie along the
 * axis that a product sums over. */
enum scaling {
    SCALING_NONE,
    SCALING_TENSOR, /* all of them; f32 */
    SCALING_ROW,    /* a row; f32 */
    SCALING_VECTOR, /* 128 of a row; f32. A product in which b has these too */
    SCALING_BLOCK,  /* 128 x 128; f32. In a product: of b, whose a has SCALING_VECTOR */
    SCALING_MX,     /* 32 of a row; E8M0 */
    SCALING_NV,     /* 16 of a row; E4M3 */
    SCALING_COUNT
};
extern const char *const scaling_names[SCALING_COUNT];

/* Returns the dtype of the scales. */
enum dtype scaling_dtype(enum scaling scaling);

/* Returns the rows and columns of numbers that share a scale in a matrix of rows x cols. */
struct scaling_block {
    int64_t rows, cols;
};
struct scaling_block scaling_block(enum scaling scaling, int64_t rows, int64_t cols);

/* Returns the number of scales of a matrix of rows x cols. */
int64_t scaling_count(enum scaling scaling, int64_t rows, int64_t cols);

/* Returns the number of the scale of element (i, j): scales lie in rows of blocks. */
int64_t scaling_at(enum scaling scaling, int64_t rows, int64_t cols, int64_t i, int64_t j);

#endif
