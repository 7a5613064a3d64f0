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
/* Emits the clipping of the gradients of bundle[count], and the updates of these bundles in this order. */
void weights_update(struct emit *e, const uint32_t *bundle, uint32_t count);

/* Inserts the casts of fp32 parameters that autocast makes, and makes ops read the copies
 * (schedule/weights/autocast.c). Changes nothing if autocast casts no parameters. */
void pass_autocast(struct emit *e, struct op_list *list);
/* Rewrites the list: ops that gather parameters come before their uses, ops that reduce a gradient after its last part,
 * and the optimizer's ops at the end. */
void pass_weights(struct emit *e, struct op_list *list);

#endif
