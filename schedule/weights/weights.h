/* schedule/weights/weights.h: what the weight choices share. */
#ifndef SCHEDULE_WEIGHTS_WEIGHTS_H
#define SCHEDULE_WEIGHTS_WEIGHTS_H

#include "schedule/program.h"

/* ZeRO-3 and HSDP hold parameters as parts; ZeRO-2 and these two reduce gradients in every
 * micro-batch, since whole gradients must not stay. */
bool weights_sharded_params(const struct choices *choices);
bool weights_reduce_each_micro_batch(const struct choices *choices);

/* --- stages that lend their weights to those that share their subsequences (schedule/weights/lend.c) --- */
/* The unit that an op of the draft is of, on its way through a chunk, forward or backward. */
struct lend_task {
    uint32_t chunk, unit;
    bool forward;
};
struct lend_task lend_task_of(const struct emit *e, uint32_t op);
/* Several stages share it. */
bool lend_is_shared(const struct emit *e, struct lend_task task);
/* Zeros in the stage's own gradients, to which all else is added. */
void lend_begin(struct emit *e);
/* From now on gradients are the stage's own again. */
void lend_end(struct emit *e);
/* A bundle's parameters from the owner of the chunk to all stages of a shared task, into a new buffer: on
 * the owner too, which has no use for it, but whose other units read its own meanwhile. */
buffer_id lend_params(struct emit *e, struct lend_task task, uint32_t bundle, op_id *op);
/* The sum of a shared task's gradients on all of its stages. */
op_id lend_sum(struct emit *e, const struct lent *lent);
/* What has been summed is added to the stage's own. */
op_id lend_add(struct emit *e, const struct lent *lent);

/* Layers of a bundle. */
int64_t weights_layers_together(const struct choices *choices);

#endif
