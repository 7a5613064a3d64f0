/* schedule/weights/weights.h: how weights are gathered, their gradients reduced and clipped, and the optimizer run. */
#ifndef SCHEDULE_WEIGHTS_WEIGHTS_H
#define SCHEDULE_WEIGHTS_WEIGHTS_H

#include "schedule/emit/op_list.h"

/* --- clipping by the norm of all gradients (schedule/weights/clip.c) --- */
/* A buffer of one number that holds the sum of the squares of all gradients' elements, those of all ranks
 * and stages, from here on; where the profile scales gradients in a pass of its own they are scaled
 * too. bundles: those that this stage updates, in the order in which it does. What AdamW is to scale by, in
 * the memory of the optimizer; IR_NONE: nothing. */
buffer_id weights_clip(struct emit *e, const uint32_t *bundle, uint32_t count,
                       struct op_list *list);

/* --- the optimizer's step (schedule/weights/update.c) --- */
/* Clips, and updates bundles in this order. */
void weights_update(struct emit *e, const uint32_t *bundle, uint32_t count, struct op_list *list);

/* Parameters are gathered before use, gradients reduced after their last part, the optimizer appended. */
void pass_weights(struct emit *e, struct op_list *list);

#endif
