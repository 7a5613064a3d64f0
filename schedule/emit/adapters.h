/* schedule/emit/adapters.h: low-rank adapters of linear layers (LoRA, Hu et al., arXiv 2106.09685, section 4.1).
 *
 * An adapter adds (x A^T) B^T to y = x W^T + bias, of which W and the bias are frozen. One product of a schedule may
 * stand for several linear layers of the framework (q, k and v; gate and up). Each of them has an adapter of its own;
 * the columns of their results are next to each other in y.
 *
 * The order of operations is that of PEFT (peft/tuners/lora/layer.py, Linear.forward()): result = W x; then, layer by
 * layer, result + B(A(dropout(x))) * scaling. The product with `scaling` is a pass over the result. In the schedule
 * that is the pass which joins the columns of several layers or, for one layer, a copy. Under PEFT adapters have fp32
 * weights (autocast_adapter_dtype): over 16-bit weights each casts its input to fp32, and autocast casts it back for
 * the product, so each adapter keeps a 16-bit copy of its own. */
#ifndef SCHEDULE_EMIT_ADAPTERS_H
#define SCHEDULE_EMIT_ADAPTERS_H

#include "schedule/emit/emit.h"

/* Adds to y[rows, columns of all targets] the results of adapters: of those targets first .. first + count - 1 that
 * have one in this layer. All of them read x[rows, inputs]. Sets *saved to what the backward reads. */
void adapters_forward(struct emit *e, uint32_t layer, enum adapter_target first, uint32_t count,
                      struct view x, struct view y, int64_t rows, struct adapters_saved *saved);

/* Emits the gradients of the weights of the adapters that adapters_forward() used for the same targets, and adds to
 * dx[rows, inputs] the gradients of x through them. dx already has the gradient through the layers' own weights. */
void adapters_backward(struct emit *e, uint32_t layer, enum adapter_target first, uint32_t count,
                       struct view dy, struct view x, struct view dx, int64_t rows,
                       const struct adapters_saved *saved);

#endif
