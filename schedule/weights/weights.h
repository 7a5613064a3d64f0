/* schedule/weights/weights.h: how weights are gathered, their gradients reduced and clipped, and the optimizer run.
 *
 * The folder schedule/weights/ emits how weights are gathered and their gradients reduced, clipped and applied by the
 * optimizer. */
#ifndef SCHEDULE_WEIGHTS_WEIGHTS_H
#define SCHEDULE_WEIGHTS_WEIGHTS_H

#include "schedule/emit/op_list.h"

/* --- clipping by the norm of all gradients (schedule/weights/clip.c) --- */
/* Emits the clipping of the gradients of bundle[count], those that this stage updates, in the order of its updates. It
 * computes one number, the sum of squares of all elements of gradients on all ranks and stages. If the profile scales
 * gradients in a pass of its own, that pass is emitted, too. Returns the buffer by which AdamW must scale, in the
 * optimizer's memory; IR_NONE: AdamW does not scale. */
buffer_id weights_clip(struct emit *e, const uint32_t *bundle, uint32_t count);

/* --- the optimizer's step (schedule/weights/update.c) --- */
/* Clips gradients, and updates bundle[count] in the order of this array. */
void weights_update(struct emit *e, const uint32_t *bundle, uint32_t count);

/* Casts fp32 parameters to 16 bits where torch.autocast does (schedule/weights/autocast.c); does nothing if the step
 * does not use it. */
void pass_autocast(struct emit *e, struct op_list *list);
/* Gathers parameters before use, reduces gradients after their last part, and appends the optimizer. */
void pass_weights(struct emit *e, struct op_list *list);

#endif
