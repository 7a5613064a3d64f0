/* schedule/weights/bundles.h: bundles of tensors whose weights are gathered, reduced and updated together. */
#ifndef SCHEDULE_WEIGHTS_BUNDLES_H
#define SCHEDULE_WEIGHTS_BUNDLES_H

#include "schedule/config/choices.h"
#include "schedule/emit/emit.h"

#include <stdbool.h>
#include <stdint.h>

/* Lays out bundles of tensors, and makes the buffers that live through the step. */
void weights_setup(struct emit *e);
/* From now on backward ops add to this micro-batch's gradients (schedule/weights/bundles.c). */
void weights_of_micro_batch(struct emit *e, uint32_t micro);
/* ZeRO-3 and HSDP hold parameters as parts; ZeRO-2 and these two reduce gradients in every
 * micro-batch, since whole gradients must not stay. */
bool weights_sharded_params(const struct choices *choices);
bool weights_reduce_each_micro_batch(const struct choices *choices);
/* Whether whole gradients are zeroed before the step, and looked through before they are reduced,
 * as Megatron-LM does: passes over memory of their own. */
bool weights_pass_over_gradients(const struct choices *choices);
/* Emits a collective from one whole buffer to another; its bytes are those of `from`. */
op_id weights_collective(struct emit *e, uint8_t stream, enum work_kind kind, uint16_t group,
                         buffer_id from, buffer_id to);
/* A buffer for a rank's part of a bundle. */
buffer_id weights_shard_buffer(struct emit *e, uint32_t bundle, const char *stem,
                               enum category category, enum dtype dtype, enum memory memory);
/* Layers of a bundle. */
int64_t weights_layers_together(const struct choices *choices);

#endif
