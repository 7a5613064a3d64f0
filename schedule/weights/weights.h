/* schedule/weights/weights.h: the passes that gather and reduce weights, clipping, and the optimizer's step.
 *
 * The folder schedule/weights/ emits the ops that gather weights, reduce and clip their gradients, and update them. */
#ifndef SCHEDULE_WEIGHTS_WEIGHTS_H
#define SCHEDULE_WEIGHTS_WEIGHTS_H

#include "schedule/emit/op_list.h"

/* --- clipping by the norm of all gradients (schedule/weights/clip.c) --- */
/* Emits the clipping of the gradients of bundle[count], the bundles that this stage updates, in the order of its
 * updates. It computes one number, the sum of squares of all elements of gradients on all ranks and stages. Returns the
 * buffer with that number, by which AdamW scales the gradients, in the optimizer's memory. Returns IR_NONE if AdamW
 * does not scale: count is 0, gradients are not clipped, or a pass of its own on the device has scaled them
 * (CLIPPING_BY_SEPARATE_PASS). */
buffer_id weights_emit_clipping(struct emit *e, const uint32_t *bundle, uint32_t count);

/* --- the optimizer's step (schedule/weights/update.c) --- */
/* Emits the clipping of the gradients of bundle[count], and then the updates of these bundles, in this order. */
void weights_emit_clip_and_update(struct emit *e, const uint32_t *bundle, uint32_t count);

/* --- passes over the list --- */
/* Adds the casts of fp32 parameters that autocast makes to the list, and makes ops read the 16-bit copies
 * (schedule/weights/autocast.c). Changes nothing if autocast casts no parameters. */
void pass_autocast(struct emit *e, struct op_list *list);
/* Adds to the list the ops that gather parameters before their uses, the ops that reduce a gradient after its last
 * part, and the optimizer's ops at the end. */
void pass_weights(struct emit *e, struct op_list *list);

#endif
