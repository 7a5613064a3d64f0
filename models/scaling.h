/* models/scaling.h: the scales of 8- and 4-bit operands: which numbers share one, and how they lie in memory. */
#ifndef MODELS_SCALING_H
#define MODELS_SCALING_H

#include "models/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* The scales of an 8- or 4-bit operand: an element's value is the stored number times the scale of its block. Each
 * value says which elements are a block, and the dtype of scales. A row of an operand lies along the axis over which a
 * product sums. */
enum scaling {
    SCALING_NONE,
    SCALING_TENSOR, /* all elements; f32 */
    SCALING_ROW,    /* each row; f32 */
    /* 128 elements of a row; f32. A product with this scaling has it for a and b. */
    SCALING_VECTOR,
    /* 128 x 128 elements; f32. Only the operand b of a product has it; a then has SCALING_VECTOR */
    SCALING_BLOCK,
    SCALING_MX, /* 32 elements of a row; E8M0 */
    SCALING_NV, /* 16 elements of a row; E4M3 */
    SCALING_COUNT
};
extern const char *const scaling_names[SCALING_COUNT];

/* Returns the dtype of the scales. */
enum dtype scaling_scale_dtype(enum scaling scaling);

/* The size of a block: elements that share a scale. */
struct scaling_block {
    int64_t rows, cols;
};
/* Returns the size of a block in a matrix of rows x cols. */
struct scaling_block scaling_block(enum scaling scaling, int64_t rows, int64_t cols);

/* Returns the number of scales of a matrix of rows x cols. */
int64_t scaling_scale_count(enum scaling scaling, int64_t rows, int64_t cols);

/* Returns the index of the scale of element (i, j): scales are in row-major order of their blocks. */
int64_t scaling_scale_index(enum scaling scaling, int64_t rows, int64_t cols, int64_t i, int64_t j);

/* The layout of the scales of quantised copies of `groups` matrices, which stand one below the other. Each matrix is
 * quantised by itself, so its blocks begin in its first row. */
struct scaling_layout {
    enum scaling scaling;
    int64_t rows, cols, groups; /* rows: of all matrices together */
    bool is_transposed; /* the copies are transposed: blocks are those of the transposed matrices */
    /* All matrices have rows / groups rows. False: the division of the rows is not known; there is room for any, in
     * which the last block of each matrix may be incomplete. With groups 1 it must be true. */
    bool are_groups_equal;
};

/* Returns the number of scales there is room for. */
int64_t scaling_layout_scale_count(const struct scaling_layout *layout);

/* Returns the index of the first scale of matrix `group`, which begins at row `first` of all rows. */
int64_t scaling_layout_first_scale_of_group(const struct scaling_layout *layout, int64_t group,
                                            int64_t first);

#endif
