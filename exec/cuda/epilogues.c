#include "exec/cuda/epilogues.h"

#include "exec/cuda/kernels.h"
#include "models/work.h"

/* ---- ops that run one after the other ---- */

static bool waits_for_another_stream(const struct ir *ir, uint32_t op)
{
    for (uint32_t i = 0; i < ir->op.wait_count[op]; i++)
        if (ir->op.stream[ir_waits(ir, op)[i].i] != ir->op.stream[op])
            return true;
    return false;
}

/* True if the op after `op` in the list has the same role, compute stream and guard, and waits for no other stream, so
 * that it starts as soon as `op` has ended. */
static bool next_op_follows_directly(const struct ir *ir, uint32_t op)
{
    const uint32_t next = op + 1;
    return next < ir->op.count && ir_role_of_op(ir, next) == ir_role_of_op(ir, op) &&
           ir->op.stream[next] == ir->op.stream[op] && ir->op.guard[next] == ir->op.guard[op] &&
           ir->stream[ir->op.stream[op]].stream_class == STREAM_COMPUTE &&
           !waits_for_another_stream(ir, next);
}

/* ---- operands that share memory ---- */

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

/* True if the first write of the next op overlaps neither the first write nor any read of this op. */
static bool next_op_writes_no_operand(const struct ir *ir, uint32_t op)
{
    const struct view y = ir_write_view(ir, op + 1, 0);
    bool writes_apart = !views_overlap(ir, y, ir_write_view(ir, op, 0));
    for (uint32_t k = 0; k < ir->op.read_count[op] && writes_apart; k++)
        writes_apart = !views_overlap(ir, y, ir_read_view(ir, op, k));
    return writes_apart;
}

static uint8_t view_dtype(const struct ir *ir, struct view view)
{
    return ir->buffer.dtype[view.buffer.i];
}

/* ---- products and additions, and the op after them ---- */

/* True if one call of the library computes a product: it has one group of rows, whose number does not depend on
 * routing, it multiplies a whole weight, and its operands have no scales (those in 8 or 4 bits have). */
static bool is_single_plain_product(const struct work *w)
{
    return w->kind == WORK_MATMUL && work_row_group_count(w) == 1 && w->matmul.part == 0 &&
           w->matmul.route == 0 && w->matmul.scaling == SCALING_NONE;
}

/* True if the next op is the GELU of this product's result, and the product's call can compute it. The library's GELU
 * has the tanh form, and so has a separate GELU op. */
static bool next_op_is_its_gelu(const struct ir *ir, uint32_t product)
{
    const struct work *w = ir_work(ir, product), *next = ir_work(ir, product + 1);
    const struct view y = ir_write_view(ir, product, 0);
    const bool bias = w->matmul.epilogue == EPILOGUE_BIAS;
    return next->kind == WORK_GELU &&
           (next->activation.function == ACTIVATION_FUNCTION_OF_KIND ||
            next->activation.function == FUNCTION_GELU) &&
           w->matmul.form == MATMUL_NT && w->matmul.accumulate == 0 &&
           is_same_view(ir_read_view(ir, product + 1, 0), y) &&
           view_dtype(ir, ir_write_view(ir, product + 1, 0)) == view_dtype(ir, y) &&
           (!bias || view_dtype(ir, ir_read_view(ir, product, 2)) == view_dtype(ir, y));
}

/* True if the next op sums the rows of the product's first factor, as the product's call can. A sum that is added to an
 * earlier one must be fp32: the call would round one of 16 bits twice. */
static bool next_op_sums_its_factor(const struct ir *ir, uint32_t product)
{
    const struct work *w = ir_work(ir, product), *next = ir_work(ir, product + 1);
    if (next->kind != WORK_COLUMN_SUM || work_row_group_count(next) != 1 ||
        next->column_sum.route != 0)
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
    if (!is_single_plain_product(ir_work(ir, product)) || !next_op_follows_directly(ir, product) ||
        !next_op_writes_no_operand(ir, product))
        return PRODUCT_NO_EPILOGUE;
    return next_op_is_its_gelu(ir, product)       ? PRODUCT_GELU
           : next_op_sums_its_factor(ir, product) ? PRODUCT_COLUMN_SUM
                                                  : PRODUCT_NO_EPILOGUE;
}

/* True if all tensors of an op are bf16, apart from the statistics that a norm writes. */
static bool has_bf16_tensors(const struct ir *ir, uint32_t op)
{
    bool all = view_dtype(ir, ir_write_view(ir, op, 0)) == DTYPE_BF16;
    for (uint32_t k = 0; k < ir->op.read_count[op] && all; k++)
        all = view_dtype(ir, ir_read_view(ir, op, k)) == DTYPE_BF16;
    return all;
}

/* True if the norm after an addition may be computed by the kernel of the addition, which reads a row before it writes
 * that row. So the norm's result must not overlap the sum, and it may overlap a term of the addition only if it lies
 * exactly over the term. */
static bool norm_can_overwrite_addition_rows(const struct ir *ir, uint32_t sum)
{
    const struct view y = ir_write_view(ir, sum + 1, 0);
    bool overlaps_at_most_a_term = !views_overlap(ir, y, ir_write_view(ir, sum, 0));
    for (uint32_t k = 0; k < 2 && overlaps_at_most_a_term; k++)
        overlaps_at_most_a_term = !views_overlap(ir, y, ir_read_view(ir, sum, k)) ||
                                  view_address(ir, y) == view_address(ir, ir_read_view(ir, sum, k));
    return overlaps_at_most_a_term;
}

bool epilogue_addition_can_compute_norm(const struct ir *ir, uint32_t sum)
{
    const struct work *w = ir_work(ir, sum);
    if (w->kind != WORK_ADD || w->elements.cols > 0 || !next_op_follows_directly(ir, sum))
        return false;
    const struct work *next = ir_work(ir, sum + 1);
    const bool rms = next->kind == WORK_RMSNORM && next->rmsnorm.bare == 0;
    return (rms || next->kind == WORK_LAYERNORM) && next->rows.cols <= CUDA_ADD_NORM_COLS_MAX &&
           is_same_view(ir_read_view(ir, sum + 1, 0), ir_write_view(ir, sum, 0)) &&
           has_bf16_tensors(ir, sum) && has_bf16_tensors(ir, sum + 1) &&
           norm_can_overwrite_addition_rows(ir, sum);
}

/* ---- RoPE and the pack or unpack beside it ---- */

/* The tensors that the kernel of a rotated pack reads and writes: whole rows, and up to three blocks. */
struct rotated_pack_views {
    struct view whole, block[3];
    uint32_t block_count;
};

/* True if the ops from `first` on are in one of the four orders of struct epilogue_rotated_pack, by their kinds. Sets
 * *found to them. */
static bool match_rotated_pack_order(const struct ir *ir, uint32_t first,
                                     struct epilogue_rotated_pack *found)
{
    uint8_t kind[3] = {ir->op.kind[first]};
    uint32_t following = 0;
    while (following < 2 && next_op_follows_directly(ir, first + following)) {
        following++;
        kind[following] = ir->op.kind[first + following];
    }
    *found = (struct epilogue_rotated_pack){.first = first, .op_count = 2, .rope_count = 1};
    if (following < 1)
        return false;
    found->is_forward = kind[0] == WORK_ROPE || kind[0] == WORK_PACK;
    if ((kind[0] == WORK_ROPE && kind[1] == WORK_PACK) ||
        (kind[0] == WORK_UNPACK && kind[1] == WORK_ROPE_BACKWARD)) {
        found->pack = found->is_forward ? first + 1 : first;
        found->rope[0] = found->is_forward ? first : first + 1;
        return true;
    }
    found->op_count = 3;
    found->rope_count = 2;
    found->pack = found->is_forward ? first : first + 2;
    found->rope[0] = found->is_forward ? first + 1 : first;
    found->rope[1] = found->rope[0] + 1;
    return following == 2 &&
           ((kind[0] == WORK_PACK && kind[1] == WORK_ROPE && kind[2] == WORK_ROPE) ||
            (kind[0] == WORK_ROPE_BACKWARD && kind[1] == WORK_ROPE_BACKWARD &&
             kind[2] == WORK_UNPACK));
}

static uint32_t block_count_of_pack(const struct ir *ir, const struct epilogue_rotated_pack *f)
{
    return f->is_forward ? ir->op.write_count[f->pack] : ir->op.read_count[f->pack];
}

static struct view view_of_pack_operand_with_whole_rows(const struct ir *ir,
                                                        const struct epilogue_rotated_pack *f)
{
    return f->is_forward ? ir_read_view(ir, f->pack, 0) : ir_write_view(ir, f->pack, 0);
}

static struct view block_view_of_pack(const struct ir *ir, const struct epilogue_rotated_pack *f,
                                      uint32_t k)
{
    return f->is_forward ? ir_write_view(ir, f->pack, k) : ir_read_view(ir, f->pack, k);
}

/* Returns a tensor of rope i: with `inner`, the one between the rope and the pack; else the other one. */
static struct view view_of_rope(const struct ir *ir, const struct epilogue_rotated_pack *f,
                                uint32_t i, bool inner)
{
    return (f->pack < f->rope[i]) == inner ? ir_read_view(ir, f->rope[i], 0)
                                           : ir_write_view(ir, f->rope[i], 0);
}

/* True if the kernel for the pack and rope i need not write pack_view, a tensor of the pack: it lies between the two,
 * is not bound, and no other op reads it. */
static bool may_leave_unwritten(const struct ir *ir, const struct epilogue_rotated_pack *f,
                                uint32_t i, struct view pack_view)
{
    const uint32_t buffer = pack_view.buffer.i,
                   reader = f->pack < f->rope[i] ? f->rope[i] : f->pack;
    return is_same_view(view_of_rope(ir, f, i, true), pack_view) &&
           ir->buffer.binding[buffer] == IR_NONE16 && ir->buffer.free_count[buffer] == 1 &&
           ir_free_set(ir, buffer)->i == reader;
}

/* True if the tensors between the pack and its ropes need not be written, and the ropes read the same positions. With
 * two ropes, sets f->rope[] to the order of the blocks. */
static bool ropes_match_pack(const struct ir *ir, struct epilogue_rotated_pack *f)
{
    if (f->rope_count == 1)
        return may_leave_unwritten(ir, f, 0, view_of_pack_operand_with_whole_rows(ir, f));
    if (block_count_of_pack(ir, f) < 2)
        return false;
    if (!may_leave_unwritten(ir, f, 0, block_view_of_pack(ir, f, 0))) {
        const uint32_t rope = f->rope[0];
        f->rope[0] = f->rope[1];
        f->rope[1] = rope;
    }
    return may_leave_unwritten(ir, f, 0, block_view_of_pack(ir, f, 0)) &&
           may_leave_unwritten(ir, f, 1, block_view_of_pack(ir, f, 1)) &&
           is_same_view(ir_read_view(ir, f->rope[0], 1), ir_read_view(ir, f->rope[1], 1));
}

static struct rotated_pack_views views_of_rotated_pack(const struct ir *ir,
                                                       const struct epilogue_rotated_pack *f)
{
    struct rotated_pack_views v = {.block_count = block_count_of_pack(ir, f)};
    v.whole = f->rope_count == 1 ? view_of_rope(ir, f, 0, false)
                                 : view_of_pack_operand_with_whole_rows(ir, f);
    for (uint32_t k = 0; k < v.block_count; k++)
        v.block[k] = f->rope_count == 2 && k < 2 ? view_of_rope(ir, f, k, false)
                                                 : block_view_of_pack(ir, f, k);
    return v;
}

/* True if the kernel's tensors are of one type of 16 or 32 bits, and none that it writes overlaps one that it reads. */
static bool tensors_suit_kernel(const struct ir *ir, const struct epilogue_rotated_pack *f)
{
    const struct rotated_pack_views v = views_of_rotated_pack(ir, f);
    const struct view positions = ir_read_view(ir, f->rope[0], 1);
    const uint8_t dtype = view_dtype(ir, v.whole);
    bool suits = dtype == DTYPE_BF16 || dtype == DTYPE_F16 || dtype == DTYPE_F32;
    for (uint32_t k = 0; k < v.block_count && suits; k++)
        suits = view_dtype(ir, v.block[k]) == dtype && !views_overlap(ir, v.whole, v.block[k]) &&
                !views_overlap(ir, positions, f->is_forward ? v.block[k] : v.whole);
    return suits;
}

/* True if cuda_rotated_pack() takes the shapes of the pack and the ropes. */
static bool has_shapes_of_rotated_pack(const struct ir *ir, const struct epilogue_rotated_pack *f)
{
    const struct work *pack = ir_work(ir, f->pack), *rope = ir_work(ir, f->rope[0]);
    const int64_t *w = pack->pack.w, dim = rope->rope.dim,
                  rotated = rope->rope.rotated ? rope->rope.rotated : dim;
    int64_t cols = 0, heads_end = 0;
    bool sizes_fit = pack->pack.route == 0 && pack->pack.dealt == 0 && (w[1] > 0 || w[2] == 0) &&
                     rotated % 16 == 0 && rotated / 2 <= CUDA_ROTATED_PAIRS_MAX && dim % 8 == 0;
    for (uint32_t i = 0; i < f->rope_count && sizes_fit; i++) {
        const struct work *r = ir_work(ir, f->rope[i]);
        const int64_t stride = r->rope.stride ? r->rope.stride : r->rope.heads * r->rope.dim;
        const int64_t row = f->rope_count == 1 ? pack->pack.parts * (w[0] + w[1] + w[2]) : w[i];
        heads_end += r->rope.heads * dim;
        sizes_fit = r->rope.rows == pack->pack.rows && stride == row && r->rope.dim == dim &&
                    r->rope.rotated == rope->rope.rotated &&
                    (f->rope_count == 1 || (pack->pack.parts == 1 && r->rope.heads * dim == row));
    }
    for (int k = 0; k < 3 && sizes_fit; k++) { /* no head is split */
        sizes_fit = w[k] % 8 == 0 && (cols >= heads_end || w[k] % dim == 0);
        cols += pack->pack.parts * w[k];
    }
    return sizes_fit;
}

bool epilogue_find_rotated_pack(const struct ir *ir, uint32_t first,
                                struct epilogue_rotated_pack *found)
{
    return match_rotated_pack_order(ir, first, found) && ropes_match_pack(ir, found) &&
           has_shapes_of_rotated_pack(ir, found) && tensors_suit_kernel(ir, found);
}
