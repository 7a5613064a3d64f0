/* schedule/step/embedding_head.h: the parts before and after the layers: embedding, final norm, head and loss.
 *
 * embedding_forward() returns the activation [N, h]. head_and_loss() takes the activation of the last layer and returns
 * its gradient; embedding_backward() takes the gradient of the activation that embedding_forward() returned. */
#ifndef SCHEDULE_STEP_EMBEDDING_HEAD_H
#define SCHEDULE_STEP_EMBEDDING_HEAD_H

#include "schedule/emit/emit.h"

buffer_id embedding_forward(struct emit *e);
void embedding_backward(struct emit *e, buffer_id dx);
/* Emits the final norm and, in pieces of rows, the head and the loss, each of them forward and backward. Returns the
 * gradient of x. */
buffer_id head_and_loss(struct emit *e, buffer_id x);

#endif
