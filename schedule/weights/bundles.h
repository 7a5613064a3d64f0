/* schedule/weights/bundles.h: bundles of tensors whose weights are gathered, reduced and updated together. */
#ifndef SCHEDULE_WEIGHTS_BUNDLES_H
#define SCHEDULE_WEIGHTS_BUNDLES_H

#include "schedule/choices/choices.h"
#include "schedule/emit/emit.h"

#include <stdint.h>

/* True if AdamW updates the parameters that computation reads, or this rank's part of them, and there is no master
 * copy. That is so if they have the masters' dtype, as in PyTorch without mixed precision, and lie in the memory where
 * AdamW runs. */
bool weights_are_own_master_copies(const struct choices *choices);
/* Lays out the bundles of the stage, and makes their buffers that exist throughout the step. */
void weights_make_bundles(struct emit *e);
/* Makes the backward ops that are emitted from now on write the gradients of micro-batch `micro`, if each has its
 * own. */
void weights_choose_grads_of_micro_batch(struct emit *e, uint32_t micro);
/* Emits a collective from the whole buffer `from` to the whole buffer `to`, and returns the op. Its parameter `bytes`
 * is the size of `from`. */
op_id weights_emit_collective(struct emit *e, uint8_t stream, enum work_kind kind, uint16_t group,
                              buffer_id from, buffer_id to);
/* Returns a new buffer for this rank's part of a bundle. */
buffer_id weights_new_shard_buffer(struct emit *e, uint32_t bundle, const char *stem,
                                   enum category category, enum dtype dtype);
/* Sets the labels of ops that are emitted from now on: this phase and region, and the layer and micro-batch of op
 * `like`. like IR_NONE: no layer and no micro-batch. */
void weights_set_op_labels(struct emit *e, enum phase phase, enum region region, uint32_t like);
/* Returns the gradient that the optimizer reads: the buffer of this rank's part or, if there is none, the whole
 * gradient. */
buffer_id weights_gradient_of_optimizer(const struct emit *e, uint32_t bundle);

#endif
