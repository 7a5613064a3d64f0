#include "predict/reproduce/block_tensors.h"

/* The largest tensors among the ops that were visited so far, in elements; `exchange` is the sum over all-to-alls.
 * has_attention, attended_back: the attention of the forward, and of the backward, was visited. */
struct largest_tensors {
    const struct ir *ir;
    struct block_tensor_to_input_ratios forward, backward;
    bool has_attention, attended_back;
};

static void raise_to(double *most, double value)
{
    *most = value > *most ? value : *most;
}

static double elements_of_read(const struct ir *ir, uint32_t op)
{
    return (double)ir_read_view(ir, op, 0).count;
}

static double elements_of_write(const struct ir *ir, uint32_t op)
{
    return (double)ir_write_view(ir, op, 0).count;
}

/* Returns the elements of all operands, except workspaces and operands in another data type than that of
 * computation. */
static double elements_of_operands(const struct ir *ir, uint32_t op)
{
    double sum = 0;
    for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; k++) {
        struct view view = ir_view_of_operand(ir, ir_operands(ir, op)[k]);
        if (ir->buffer.dtype[view.buffer.i] == ir->dtype &&
            ir->buffer.category[view.buffer.i] != CATEGORY_WORKSPACE)
            sum += (double)view.count;
    }
    return sum;
}

/* Raises `qkv` or `ffn` to the number of elements of a product's tensor. In the forward this is the tensor that the
 * product writes, in the backward the gradient that it reads. `qkv` is for products before attention in the forward and
 * after it in the backward, `ffn` for all others. */
static void update_largest_product_tensor(struct largest_tensors *f, uint32_t op, bool backward)
{
    bool is_ffn = backward ? !f->attended_back : f->has_attention;
    struct block_tensor_to_input_ratios *t = backward ? &f->backward : &f->forward;
    raise_to(is_ffn ? &t->ffn : &t->qkv,
             backward ? elements_of_read(f->ir, op) : elements_of_write(f->ir, op));
}

static void update_largest_op_tensors(struct largest_tensors *f, uint32_t op)
{
    const struct ir *ir = f->ir;
    bool backward = ir->op.phase[op] == PHASE_BACKWARD;
    switch ((enum work_kind)ir->op.kind[op]) {
    case WORK_LAYERNORM:
    case WORK_RMSNORM:
        raise_to(&f->forward.hidden, elements_of_read(ir, op));
        break;
    case WORK_LAYERNORM_BACKWARD:
    case WORK_RMSNORM_BACKWARD:
        raise_to(&f->backward.hidden, elements_of_write(ir, op));
        break;
    case WORK_MATMUL:
        update_largest_product_tensor(f, op, backward);
        break;
    case WORK_ALL_TO_ALL:
        (backward ? &f->backward : &f->forward)->exchange += elements_of_write(ir, op);
        break;
    case WORK_ATTENTION:
        f->has_attention = true;
        raise_to(&f->forward.attention, elements_of_operands(ir, op));
        break;
    case WORK_ATTENTION_BACKWARD:
        f->attended_back = true;
        raise_to(&f->backward.attention, elements_of_operands(ir, op));
        break;
    default:
        break;
    }
}

static void divide_by_input_elements(struct block_tensor_to_input_ratios *t, double unit)
{
    double *const all[] = {&t->hidden, &t->qkv, &t->exchange, &t->attention, &t->ffn};
    for (size_t i = 0; unit > 0 && i < sizeof all / sizeof all[0]; i++)
        *all[i] /= unit;
}

void block_tensors_find(struct block_tensor_to_input_ratios *forward,
                        struct block_tensor_to_input_ratios *backward, const struct ir *ir)
{
    struct largest_tensors f = {.ir = ir};
    const struct role *role = &ir->role[0];
    for (uint32_t op = role->op_begin; op < role->op_begin + role->op_count; op++)
        if (ir->op.phase[op] == PHASE_FORWARD || ir->op.phase[op] == PHASE_BACKWARD)
            update_largest_op_tensors(&f, op);
    double unit = f.forward.hidden;
    f.backward.hidden += f.forward.hidden;
    f.backward.qkv += f.forward.qkv;
    f.backward.ffn += f.forward.ffn;
    divide_by_input_elements(&f.forward, unit);
    divide_by_input_elements(&f.backward, unit);
    *forward = f.forward;
    *backward = f.backward;
}
