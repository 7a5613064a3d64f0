/* schedule/weights/weights.h: what the weight choices share. */
#ifndef SCHEDULE_WEIGHTS_WEIGHTS_H
#define SCHEDULE_WEIGHTS_WEIGHTS_H

#include "schedule/emit/op_list.h"

/* ZeRO-3 and HSDP hold parameters as parts; ZeRO-2 and these two reduce gradients in every
 * micro-batch, since whole gradients must not stay. */
bool weights_sharded_params(const struct choices *choices);
bool weights_reduce_each_micro_batch(const struct choices *choices);
/* Whether whole gradients are zeroed before the step, and looked through before they are reduced,
 * as Megatron-LM does: passes over memory of their own. */
bool weights_pass_over_gradients(const struct choices *choices);

/* --- clipping by the norm of all gradients (schedule/weights/clip.c) --- */
/* Whether a step does. */
bool weights_clip_gradients(const struct choices *choices);
/* A buffer of one number that holds the sum of the squares of all gradients' elements, those of all ranks
 * and stages, from here on; where the profile scales gradients in a pass of its own they are scaled
 * too. bundles: those that this stage updates, in the order in which it does. What AdamW is to scale by, in
 * the memory of the optimizer; IR_NONE: nothing. */
buffer_id weights_clip(struct emit *e, const uint32_t *bundle, uint32_t count,
                       struct program *program);

/* --- the optimizer's step (schedule/weights/update.c) --- */
/* Clips, and updates bundles in this order. */
void weights_update(struct emit *e, const uint32_t *bundle, uint32_t count,
                    struct program *program);

/* --- what both use (schedule/weights/bundles.c) --- */
/* Emits a collective from one whole buffer to another; its bytes are those of `from`. */
op_id weights_collective(struct emit *e, uint8_t stream, enum work_kind kind, uint16_t group,
                         buffer_id from, buffer_id to);
/* A buffer for a rank's part of a bundle. */
buffer_id weights_shard_buffer(struct emit *e, uint32_t bundle, const char *stem,
                               enum category category, enum dtype dtype, enum memory memory);

/* Layers of a bundle. */
int64_t weights_layers_together(const struct choices *choices);

#endif
