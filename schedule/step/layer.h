/* schedule/step/layer.h: one layer for the rows of one unit (N rows, h hidden; schedule/emit/emit.h).
 *
 * The forward returns the layer's output [N, h], the backward the gradient of the layer's input. */
#ifndef SCHEDULE_STEP_LAYER_H
#define SCHEDULE_STEP_LAYER_H

#include "schedule/emit/emit.h"

/* layer_forward() adds to x the branch of attention and then that of the feed-forward part or experts, each with its
 * norms, and returns the sum. layer_backward() takes the gradient of the sum, and returns that of x. */
buffer_id layer_forward(struct emit *e, uint32_t layer, buffer_id x);
buffer_id layer_backward(struct emit *e, uint32_t layer, buffer_id dy);

#endif
