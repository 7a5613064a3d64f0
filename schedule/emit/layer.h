/* schedule/emit/layer.h: the parts of a training step, each for the rows of one unit (emit.h:
 * N rows, h hidden). Forward functions return the activation [N, h], backward ones its gradient. */
#ifndef SCHEDULE_EMIT_LAYER_H
#define SCHEDULE_EMIT_LAYER_H

#include "schedule/emit/emit.h"

static inline void set_region(struct emit *e, enum region region)
{
    e->tags.region = (uint8_t)region;
}

/* Room for what layers keep of one unit for their backward. */
struct layer_saved *saved_new(struct emit *e);

/* --- one layer (schedule/emit/layer.c) --- */
/* x += wo(attention(norm1(x))); x += mlp(norm2(x)) */
buffer_id layer_forward(struct emit *e, uint32_t layer, buffer_id x);
buffer_id layer_backward(struct emit *e, uint32_t layer, buffer_id dy);

/* --- before and after the layers (schedule/emit/embedding_head.c) --- */
buffer_id embedding_forward(struct emit *e);
void embedding_backward(struct emit *e, buffer_id dx);
/* Final norm, head and loss, forward and backward, piece by piece; returns the gradient of x. */
buffer_id head(struct emit *e, buffer_id x);

#endif
