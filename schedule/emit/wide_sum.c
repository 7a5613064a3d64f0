/* Sums weight gradients to which several pieces of the tokens contribute, in an fp32 buffer of its own: it is filled
 * with zeros, the product of each piece in the compute dtype is added, and at the end it is cast to the gradient
 * (DeepSpeed's fpdt_layer.py: grad_w1.add_(torch.matmul(...)), grad_w1.to(dtype)). */
#include "schedule/emit/wide_sum.h"
#include "schedule/choices/profile.h"
#include "schedule/emit/emit.h"

#include <assert.h>

void emit_wide_sum_begin(struct emit *e, uint32_t part, enum weight weight)
{
    const struct choices *c = e->choices;
    if (c->attention != CHOICE_ATTENTION_FPDT || !c->profile->chunk_grad_f32 ||
        e->weights.defers != NULL)
        return;
    assert(e->weights.wide_sum[weight].count == 0);
    int64_t count = (int64_t)weight_view(e, part, weight).count;
    e->weights.wide_sum[weight] =
        emit_zeros(e, emit_tensor(e, "grad_sum", CATEGORY_GRADIENT, DTYPE_F32, count, 0));
}

void emit_wide_sum_add(struct emit *e, enum weight weight, struct view dy, struct view x, int64_t m,
                       int64_t n, int64_t k)
{
    struct view sum = e->weights.wide_sum[weight];
    struct view piece = emit_computed(e, "grad_piece", CATEGORY_GRADIENT, m * n, 0);
    struct work product = {.kind = WORK_MATMUL, .matmul = {m, n, k, MATMUL_TN, EPILOGUE_NONE, 0}};
    emit_op(e, e->stream.compute, &product, (struct view[]){dy, x}, 2, &piece, 1);
    emit_add(e, sum, piece, sum);
}

void emit_wide_sum_end(struct emit *e, uint32_t part, enum weight weight)
{
    struct view sum = e->weights.wide_sum[weight];
    bool accumulate;
    if (sum.count == 0)
        return;
    struct view dw = grad_view(e, part, weight, &accumulate), to = dw;
    if (accumulate)
        to = emit_tensor(e, "grad_piece", CATEGORY_GRADIENT, (enum dtype)e->weights.grad_dtype,
                         (int64_t)dw.count, 0);
    emit_cast(e, sum, to);
    if (accumulate)
        emit_add(e, dw, to, dw);
    e->weights.wide_sum[weight] = view_none();
}
