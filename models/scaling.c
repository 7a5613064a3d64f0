#include "models/scaling.h"

const char *const scaling_names[SCALING_COUNT] = {"none",  "tensor", "row", "vector",
                                                  "block", "mx",     "nv"};

/* The rows and columns of a block, and the dtype of its scale; 0: all rows, or all columns. */
static const struct {
    int64_t rows, cols;
    enum dtype dtype;
} scalings[SCALING_COUNT] = {
    [SCALING_NONE] = {0, 0, DTYPE_F32},      [SCALING_TENSOR] = {0, 0, DTYPE_F32},
    [SCALING_ROW] = {1, 0, DTYPE_F32},       [SCALING_VECTOR] = {1, 128, DTYPE_F32},
    [SCALING_BLOCK] = {128, 128, DTYPE_F32}, [SCALING_MX] = {1, 32, DTYPE_E8M0},
    [SCALING_NV] = {1, 16, DTYPE_E4M3},
};

/* Returns the scaling itself, or SCALING_NONE if a caller that fills struct work by itself has another number there. */
static enum scaling known(enum scaling scaling)
{
    return scaling < SCALING_COUNT ? scaling : SCALING_NONE;
}

enum dtype scaling_dtype(enum scaling scaling)
{
    return scalings[known(scaling)].dtype;
}

struct scaling_block scaling_block(enum scaling scaling, int64_t rows, int64_t cols)
{
    int64_t r = scalings[known(scaling)].rows, c = scalings[known(scaling)].cols;
    return (struct scaling_block){r > 0 ? r : rows, c > 0 ? c : cols};
}

int64_t scaling_count(enum scaling scaling, int64_t rows, int64_t cols)
{
    const struct scaling_block block = scaling_block(scaling, rows, cols);
    if (rows <= 0 || cols <= 0)
        return 0;
    return ((rows - 1) / block.rows + 1) * ((cols - 1) / block.cols + 1);
}

int64_t scaling_at(enum scaling scaling, int64_t rows, int64_t cols, int64_t i, int64_t j)
{
    const struct scaling_block block = scaling_block(scaling, rows, cols);
    return i / block.rows * ((cols - 1) / block.cols + 1) + j / block.cols;
}
