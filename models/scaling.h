/* models/scaling.h: the scales of 8- and 4-bit operands: which numbers share one, and how they lie in memory. */
#ifndef MODELS_SCALING_H
#define MODELS_SCALING_H

#include "models/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* The elements of an 8- or 4-bit operand that share a scale (a block), and the dtype of the scales. An element's value
 * is the stored number times its scale. The rows of an operand lie along the axis over which a product sums. */
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

/* Returns the rows and columns of numbers that share a scale in a matrix of rows x cols. */
struct scaling_block {
    int64_t rows, cols;
};
struct scaling_block scaling_block(enum scaling scaling, int64_t rows, int64_t cols);

/* Returns the number of scales of a matrix of rows x cols. */
int64_t scaling_scale_count(enum scaling scaling, int64_t rows, int64_t cols);

/* Returns the index of the scale of element (i, j). The scales of a row of blocks follow each other. */
int64_t scaling_scale_index(enum scaling scaling, int64_t rows, int64_t cols, int64_t i, int64_t j);

/* The scales of the copies of `groups` matrices with `cols` columns each and `rows` rows together; each matrix is
 * quantised by itself. is_transposed: the copies are transposed. equal_groups: all matrices have rows / groups rows;
 * else there is room for any division of the rows, where blocks begin anew in each matrix, so up to `groups` blocks are
 * incomplete. groups 1: one matrix, with equal_groups. */
struct scaling_layout {
    enum scaling scaling;
    int64_t rows, cols, groups;
    bool is_transposed, equal_groups;
};

/* Returns the number of scales there is room for. */
int64_t scaling_layout_scale_count(const struct scaling_layout *layout);

/* Returns the index of the first scale of a matrix that begins at row `first` of all. */
int64_t scaling_layout_first_scale(const struct scaling_layout *layout, int64_t group,
                                   int64_t first);

#endif
