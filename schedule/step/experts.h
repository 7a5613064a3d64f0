/* schedule/step/experts.h: the feed-forward part of a layer with experts. */
#ifndef SCHEDULE_STEP_EXPERTS_H
#define SCHEDULE_STEP_EXPERTS_H

#include "schedule/emit/emit.h"

/* Emits the forward of the experts from x[rows, hidden] to y, and sets *saved. If y is empty, the backward computes the
 * forward again and needs no result: then the sum of each token's results is left out, and the second product of shared
 * experts as well. */
void experts_forward(struct emit *e, uint32_t layer, struct view x, struct view y, int64_t rows,
                     struct expert_saved *saved);
/* Emits the gradient dx of x from dy, the gradient of y, and the gradients of the weights. */
void experts_backward(struct emit *e, uint32_t layer, struct view x, struct view dy, struct view dx,
                      int64_t rows, const struct expert_saved *saved);

#endif
