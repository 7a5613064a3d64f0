/* schedule/emit/adapters.h: low-rank adapters of linear layers (LoRA, Hu et al., arXiv 2106.09685, section 4.1).
 *
 * An adapter adds (x A^T) B^T to y = x W^T + bias, whose weights are frozen. One product of a schedule stands for
 * several linear layers of the framework (q, k and v; gate and up), each of which has an adapter of its own; the
 * columns of their results are next to each other in y.
 *
 * The order of operations is that of PEFT (peft/tuners/lora/layer.py, Linear.forward()): result = W x; then, layer by
 * layer, result + B(A(dropout(x))) * scaling. The product with `scaling` is a pass over the result; here it is the pass
 * that joins the columns of several layers, or a copy. Under PEFT adapters have fp32 weights (autocast_adapter_dtype),
 * so that every layer casts its input to fp32, and autocast casts it back for the product: each adapter keeps a 16-bit
 * copy of its own. */
#ifndef SCHEDULE_EMIT_ADAPTERS_H
#define SCHEDULE_EMIT_ADAPTERS_H

#include "schedule/emit/emit.h"

/* Adds to y[rows, columns of all targets] the adapters of targets first .. first + count - 1 that the layer has. All of
 * them read x[rows, inputs]. Sets *saved to what the backward reads. */
void adapters_forward(struct emit *e, uint32_t layer, enum adapter_target first, uint32_t count,
                      struct view x, struct view y, int64_t rows, struct adapters_saved *saved);

/* Emits the gradients of these adapters, and adds their gradients of x to dx[rows, inputs], which already has the
 * gradient through the layer's own weight. */
void adapters_backward(struct emit *e, uint32_t layer, enum adapter_target first, uint32_t count,
                       struct view dy, struct view x, struct view dx, int64_t rows,
                       const struct adapters_saved *saved);

#endif
