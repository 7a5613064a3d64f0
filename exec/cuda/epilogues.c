#include "exec/cuda/epilogues.h"

#include "models/work.h"

/* ---- the order ---- */

static bool waits_for_another_stream(const struct ir *ir, uint32_t op)
{
    for (uint32_t i = 0; i < ir->op.wait_count[op]; i++)
        if (ir->op.stream[ir_waits(ir, op)[i].i] != ir->op.stream[op])
            return true;
    return false;
}

/* True if the op after `op` is of the same role, and starts on its stream as soon as `op` has ended, on the same
 * ranks. */
static bool are_neighbours(const struct ir *ir, uint32_t op)
{
    const uint32_t next = op + 1;
    return next < ir->op.count && ir_role_of(ir, next) == ir_role_of(ir, op) &&
           ir->op.stream[next] == ir->op.stream[op] && ir->op.guard[next] == ir->op.guard[op] &&
           ir->stream[ir->op.stream[op]].stream_class == STREAM_COMPUTE &&
           !waits_for_another_stream(ir, next);
}

/* ---- the memory ---- */

static bool is_same(struct view a, struct view b)
{
    return a.buffer.i == b.buffer.i && a.begin == b.begin && a.count == b.count;
}

/* True if two views have bytes in common in the planned arenas. */
static bool overlap(const struct ir *ir, struct view a, struct view b)
{
    const struct buffer_table *t = &ir->buffer;
    const uint64_t size_a = dtype_bytes((enum dtype)t->dtype[a.buffer.i]),
                   size_b = dtype_bytes((enum dtype)t->dtype[b.buffer.i]);
    const uint64_t at_a = t->offset[a.buffer.i] + a.begin * size_a,
                   at_b = t->offset[b.buffer.i] + b.begin * size_b;
    return t->memory[a.buffer.i] == t->memory[b.buffer.i] && at_a < at_b + b.count * size_b &&
           at_b < at_a + a.count * size_a;
}

/* True if what the next op writes lies apart from all that a product touches, its result included. */
static bool writes_apart(const struct ir *ir, uint32_t product)
{
    const struct view y = ir_write(ir, product + 1, 0);
    bool apart = !overlap(ir, y, ir_write(ir, product, 0));
    for (uint32_t k = 0; k < ir->op.read_count[product] && apart; k++)
        apart = !overlap(ir, y, ir_read(ir, product, k));
    return apart;
}

static uint8_t type_of(const struct ir *ir, struct view view)
{
    return ir->buffer.dtype[view.buffer.i];
}

/* ---- the work ---- */

/* True if a product is one call of the library: one group, whole factors, in 16 or 32 bits. */
static bool is_plain(const struct work *w)
{
    return w->kind == WORK_MATMUL && work_groups(w) == 1 && w->matmul.part == 0 &&
           w->matmul.route == 0 && w->matmul.scaling == SCALING_NONE;
}

/* The library's GELU is the tanh form. A chain of kernels (touches) computes the same. */
static bool is_gelu_of(const struct ir *ir, uint32_t product)
{
    const struct work *w = ir_work(ir, product), *next = ir_work(ir, product + 1);
    const struct view y = ir_write(ir, product, 0);
    const bool bias = w->matmul.epilogue == EPILOGUE_BIAS;
    return next->kind == WORK_GELU &&
           (next->activation.function == FUNCTION_OWN ||
            next->activation.function == FUNCTION_GELU) &&
           w->matmul.form == MATMUL_NT && w->matmul.accumulate == 0 &&
           is_same(ir_read(ir, product + 1, 0), y) &&
           type_of(ir, ir_write(ir, product + 1, 0)) == type_of(ir, y) &&
           (!bias || type_of(ir, ir_read(ir, product, 2)) == type_of(ir, y));
}

/* A sum that is added to one of 16 bits would be rounded twice. */
static bool is_sum_of_factor(const struct ir *ir, uint32_t product)
{
    const struct work *w = ir_work(ir, product), *next = ir_work(ir, product + 1);
    if (next->kind != WORK_COLUMN_SUM || work_groups(next) != 1 || next->column_sum.route != 0)
        return false;
    const uint8_t type = type_of(ir, ir_write(ir, product, 0));
    return w->matmul.form == MATMUL_TN &&
           is_same(ir_read(ir, product + 1, 0), ir_read(ir, product, 0)) &&
           next->column_sum.rows == w->matmul.k && next->column_sum.cols == w->matmul.m &&
           type_of(ir, ir_write(ir, product + 1, 0)) == type &&
           (next->column_sum.accumulate == 0 || type == DTYPE_F32);
}

enum product_epilogue epilogue_of(const struct ir *ir, uint32_t product)
{
    if (!is_plain(ir_work(ir, product)) || !are_neighbours(ir, product) ||
        !writes_apart(ir, product))
        return PRODUCT_ALONE;
    return is_gelu_of(ir, product)         ? PRODUCT_GELU
           : is_sum_of_factor(ir, product) ? PRODUCT_COLUMN_SUM
                                           : PRODUCT_ALONE;
}
