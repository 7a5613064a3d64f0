/* schedule/step/layer.h: one layer for the rows of one unit (N rows, h hidden; schedule/emit/emit.h).
 *
 * The forward returns the layer's output [N, h], the backward the gradient of the layer's input. */
#ifndef SCHEDULE_STEP_LAYER_H
#define SCHEDULE_STEP_LAYER_H

#include "schedule/emit/emit.h"

/* layer_forward() emits x += wo(attention(norm1(x))), then x += mlp(norm2(x)), and returns the new x; layer_backward()
 * returns the gradient of x. */
buffer_id layer_forward(struct emit *e, uint32_t layer, buffer_id x);
buffer_id layer_backward(struct emit *e, uint32_t layer, buffer_id dy);

#endif
