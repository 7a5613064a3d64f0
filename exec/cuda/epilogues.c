#include "exec/cuda/epilogues.h"

#include "exec/cuda/kernels.h"
#include "models/work.h"

/* ---- the order ---- */

static bool waits_for_another_stream(const struct ir *ir, uint32_t op)
{
    for (uint32_t i = 0; i < ir->op.wait_count[op]; i++)
        if (ir->op.stream[ir_waits(ir, op)[i].i] != ir->op.stream[op])
            return true;
    return false;
}

/* True if the next op in the list is of the same role and stream, has the same guard, and starts as soon as `op` has
 * ended. */
static bool follow_directly(const struct ir *ir, uint32_t op)
{
    const uint32_t next = op + 1;
    return next < ir->op.count && ir_role_of_op(ir, next) == ir_role_of_op(ir, op) &&
           ir->op.stream[next] == ir->op.stream[op] && ir->op.guard[next] == ir->op.guard[op] &&
           ir->stream[ir->op.stream[op]].stream_class == STREAM_COMPUTE &&
           !waits_for_another_stream(ir, next);
}

/* ---- the memory ---- */

static bool is_same_view(struct view a, struct view b)
{
    return a.buffer.i == b.buffer.i && a.begin == b.begin && a.count == b.count;
}

static uint64_t view_address(const struct ir *ir, struct view view)
{
    return ir->buffer.offset[view.buffer.i] +
           view.begin * dtype_bytes((enum dtype)ir->buffer.dtype[view.buffer.i]);
}

/* True if two views have bytes in common in the planned arenas. */
static bool views_overlap(const struct ir *ir, struct view a, struct view b)
{
    const struct buffer_table *t = &ir->buffer;
    const uint64_t size_a = dtype_bytes((enum dtype)t->dtype[a.buffer.i]),
                   size_b = dtype_bytes((enum dtype)t->dtype[b.buffer.i]);
    const uint64_t at_a = view_address(ir, a), at_b = view_address(ir, b);
    return t->memory[a.buffer.i] == t->memory[b.buffer.i] && at_a < at_b + b.count * size_b &&
           at_b < at_a + a.count * size_a;
}

/* True if the first write of the next op overlaps no operand of this op. */
static bool next_op_writes_apart(const struct ir *ir, uint32_t op)
{
    const struct view y = ir_write_view(ir, op + 1, 0);
    bool apart = !views_overlap(ir, y, ir_write_view(ir, op, 0));
    for (uint32_t k = 0; k < ir->op.read_count[op] && apart; k++)
        apart = !views_overlap(ir, y, ir_read_view(ir, op, k));
    return apart;
}

static uint8_t view_dtype(const struct ir *ir, struct view view)
{
    return ir->buffer.dtype[view.buffer.i];
}

/* ---- the work ---- */

/* True if a product is one call of the library: one group, no part of a weight, operands of 16 or 32 bits. */
static bool is_single_plain_product(const struct work *w)
{
    return w->kind == WORK_MATMUL && work_row_groups(w) == 1 && w->matmul.part == 0 &&
           w->matmul.route == 0 && w->matmul.scaling == SCALING_NONE;
}

/* True if the next op is the GELU of this product's result. The library's GELU is the tanh form; so are the GELU ops
 * that run as a chain of kernels. */
static bool next_op_is_its_gelu(const struct ir *ir, uint32_t product)
{
    const struct work *w = ir_work(ir, product), *next = ir_work(ir, product + 1);
    const struct view y = ir_write_view(ir, product, 0);
    const bool bias = w->matmul.epilogue == EPILOGUE_BIAS;
    return next->kind == WORK_GELU &&
           (next->activation.function == FUNCTION_OF_KIND ||
            next->activation.function == FUNCTION_GELU) &&
           w->matmul.form == MATMUL_NT && w->matmul.accumulate == 0 &&
           is_same_view(ir_read_view(ir, product + 1, 0), y) &&
           view_dtype(ir, ir_write_view(ir, product + 1, 0)) == view_dtype(ir, y) &&
           (!bias || view_dtype(ir, ir_read_view(ir, product, 2)) == view_dtype(ir, y));
}

/* True if the next op sums the rows of the product's first factor. Not if it adds to an earlier sum of 16 bits,
 * which would be rounded twice. */
static bool next_op_sums_its_factor(const struct ir *ir, uint32_t product)
{
    const struct work *w = ir_work(ir, product), *next = ir_work(ir, product + 1);
    if (next->kind != WORK_COLUMN_SUM || work_row_groups(next) != 1 || next->column_sum.route != 0)
        return false;
    const uint8_t type = view_dtype(ir, ir_write_view(ir, product, 0));
    return w->matmul.form == MATMUL_TN &&
           is_same_view(ir_read_view(ir, product + 1, 0), ir_read_view(ir, product, 0)) &&
           next->column_sum.rows == w->matmul.k && next->column_sum.cols == w->matmul.m &&
           view_dtype(ir, ir_write_view(ir, product + 1, 0)) == type &&
           (next->column_sum.accumulate == 0 || type == DTYPE_F32);
}

enum product_epilogue epilogue_for_product(const struct ir *ir, uint32_t product)
{
    if (!is_single_plain_product(ir_work(ir, product)) || !follow_directly(ir, product) ||
        !next_op_writes_apart(ir, product))
        return PRODUCT_ALONE;
    return next_op_is_its_gelu(ir, product)       ? PRODUCT_GELU
           : next_op_sums_its_factor(ir, product) ? PRODUCT_COLUMN_SUM
                                                  : PRODUCT_ALONE;
}

/* True if all tensors of an op are bf16, but for the statistics that a norm writes. */
static bool is_bf16(const struct ir *ir, uint32_t op)
{
    bool all = view_dtype(ir, ir_write_view(ir, op, 0)) == DTYPE_BF16;
    for (uint32_t k = 0; k < ir->op.read_count[op] && all; k++)
        all = view_dtype(ir, ir_read_view(ir, op, k)) == DTYPE_BF16;
    return all;
}

/* True if the norm after a sum writes to no bytes of the sum, and either to no bytes of a term or exactly over a
 * whole term: a block has read a row before it writes that row. */
static bool writes_row_by_row(const struct ir *ir, uint32_t sum)
{
    const struct view y = ir_write_view(ir, sum + 1, 0);
    bool right = !views_overlap(ir, y, ir_write_view(ir, sum, 0));
    for (uint32_t k = 0; k < 2 && right; k++)
        right = !views_overlap(ir, y, ir_read_view(ir, sum, k)) ||
                view_address(ir, y) == view_address(ir, ir_read_view(ir, sum, k));
    return right;
}

bool epilogue_can_be_norm(const struct ir *ir, uint32_t sum)
{
    const struct work *w = ir_work(ir, sum);
    if (w->kind != WORK_ADD || w->elements.cols > 0 || !follow_directly(ir, sum))
        return false;
    const struct work *next = ir_work(ir, sum + 1);
    const bool rms = next->kind == WORK_RMSNORM && next->rmsnorm.bare == 0;
    return (rms || next->kind == WORK_LAYERNORM) && next->rows.cols <= CUDA_ADD_NORM_COLS &&
           is_same_view(ir_read_view(ir, sum + 1, 0), ir_write_view(ir, sum, 0)) &&
           is_bf16(ir, sum) && is_bf16(ir, sum + 1) && writes_row_by_row(ir, sum);
}
