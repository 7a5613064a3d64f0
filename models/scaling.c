#include "models/scaling.h"

#include "base/saturating.h"

const char *const scaling_names[SCALING_COUNT] = {"none",  "tensor", "row", "vector",
                                                  "block", "mx",     "nv"};

/* For each scaling, the size of a block and the dtype of its scale. */
static const struct {
    int64_t rows, cols; /* 0: all rows, or all columns */
    enum dtype dtype;
} scalings[SCALING_COUNT] = {
    [SCALING_NONE] = {0, 0, DTYPE_F32},      [SCALING_TENSOR] = {0, 0, DTYPE_F32},
    [SCALING_ROW] = {1, 0, DTYPE_F32},       [SCALING_VECTOR] = {1, 128, DTYPE_F32},
    [SCALING_BLOCK] = {128, 128, DTYPE_F32}, [SCALING_MX] = {1, 32, DTYPE_E8M0},
    [SCALING_NV] = {1, 16, DTYPE_E4M3},
};

/* Returns the scaling; SCALING_NONE for a number that is no scaling, which a struct work that was not checked may
 * have. */
static enum scaling scaling_or_none_if_invalid(enum scaling scaling)
{
    return scaling < SCALING_COUNT ? scaling : SCALING_NONE;
}

enum dtype scaling_scale_dtype(enum scaling scaling)
{
    return scalings[scaling_or_none_if_invalid(scaling)].dtype;
}

struct scaling_block scaling_block(enum scaling scaling, int64_t rows, int64_t cols)
{
    int64_t r = scalings[scaling_or_none_if_invalid(scaling)].rows,
            c = scalings[scaling_or_none_if_invalid(scaling)].cols;
    return (struct scaling_block){r > 0 ? r : rows, c > 0 ? c : cols};
}

int64_t scaling_scale_count(enum scaling scaling, int64_t rows, int64_t cols)
{
    const struct scaling_block block = scaling_block(scaling, rows, cols);
    if (rows <= 0 || cols <= 0)
        return 0;
    return ((rows - 1) / block.rows + 1) * ((cols - 1) / block.cols + 1);
}

int64_t scaling_scale_index(enum scaling scaling, int64_t rows, int64_t cols, int64_t i, int64_t j)
{
    const struct scaling_block block = scaling_block(scaling, rows, cols);
    return i / block.rows * ((cols - 1) / block.cols + 1) + j / block.cols;
}

static int64_t block_count(int64_t size, int64_t block)
{
    return size / block + (size % block != 0);
}

/* Returns how many blocks lie above each other in the first `groups` matrices, which together have `rows` rows: the
 * exact number with are_groups_equal, else a number that is never exceeded. block: the rows of a block; 0: all rows of
 * a matrix. */
static int64_t blocks_along_rows(const struct scaling_layout *l, int64_t block, int64_t groups,
                                 int64_t rows)
{
    if (block == 0)
        return groups;
    if (l->are_groups_equal)
        return saturating_product(groups, block_count(l->rows / l->groups, block));
    return block == 1 ? rows : rows / block + groups;
}

/* Returns the number of scales for which the first `groups` matrices have room. Together they have `rows` rows. */
static int64_t scale_count(const struct scaling_layout *l, int64_t groups, int64_t rows)
{
    const int64_t r = scalings[scaling_or_none_if_invalid(l->scaling)].rows,
                  c = scalings[scaling_or_none_if_invalid(l->scaling)].cols;
    const int64_t along = l->is_transposed ? c : r, across = l->is_transposed ? r : c;
    return saturating_product(blocks_along_rows(l, along, groups, rows),
                              across == 0 ? 1 : block_count(l->cols, across));
}

int64_t scaling_layout_scale_count(const struct scaling_layout *layout)
{
    return layout->rows <= 0 || layout->cols <= 0
               ? 0
               : scale_count(layout, layout->groups, layout->rows);
}

int64_t scaling_layout_first_scale_of_group(const struct scaling_layout *layout, int64_t group,
                                            int64_t first)
{
    return scale_count(layout, group, first);
}
