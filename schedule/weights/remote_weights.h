/* schedule/weights/remote_weights.h: weights of one stage on the stages that share its subsequences
 * (schedule/pipeline/multiplex.h), where each stage holds the states of its own layers only.
 *
 * The stages of a shared unit use a bundle at the same place of the same list. Before each use the bundle is sent to
 * all of them, ahead of the computation, as sharded parameters are (schedule/weights/shard.c). Let w be the bytes of
 * a bundle's parameters, g those of its gradient, and let k stages share U units of a chunk:
 *
 * broadcast: the owner sends w at each use. Each stage keeps its gradient until the last of the units; then the sum
 * over all stages goes to the owner (g per stage), which adds it to its own. A helper (a stage that is not the owner)
 * holds g of each bundle throughout these units.
 *
 * shard: each of the k stages holds a part. The owner sends w at the first use in a step, and each stage keeps its
 * part of it; from then on the parts are gathered (w (k - 1) / k per stage). The gradient of each unit is summed into
 * parts at once (g (k - 1) / k per stage and unit), and the owner gets the parts when it has done the units that it
 * does not share. A helper holds (w + g) / k of each bundle, and the whole g of two bundles.
 *
 * So shard saves (1 - 1 / k) g of each bundle, and broadcast sends gradients only once.
 *
 * All sums of a group are in one order on all of its stages, and those of different groups are in the order of tasks
 * that all stages follow (multiplex_order()), so that no cycle of stages waits for itself. Parts go back on streams
 * of their own, in one order for all stages, and only the end of the step waits for them. */
#ifndef SCHEDULE_WEIGHTS_REMOTE_WEIGHTS_H
#define SCHEDULE_WEIGHTS_REMOTE_WEIGHTS_H

#include "schedule/emit/emit.h"

/* A pass of a unit through a chunk of layers, forward or backward. */
struct unit_pass {
    uint32_t chunk, unit;
    bool is_forward;
};
/* Returns the stages that share a unit in a chunk, without their group: the member `group` is 0. */
struct unit_stages remote_stages_of_unit(const struct emit *e, uint32_t chunk, uint32_t unit);
/* Returns the pass to which an op belongs. */
struct unit_pass remote_pass_of(const struct emit *e, uint32_t op);
/* Makes backward ops add to the stage's own gradients again. */
void remote_end_unit(struct emit *e);
/* Sends a bundle's parameters from the owner to all stages that share a unit; if these stages hold parts already,
 * gathers the parts instead. Returns the new buffer in which this stage receives the parameters; the owner receives
 * them too, because its other units read its own parameters meanwhile. Sets *op to the op that sends or gathers. If
 * stages are to hold parts and the parameters come for the first time, this stage stores its part. */
buffer_id remote_receive_params(struct emit *e, struct unit_pass pass, uint32_t bundle, op_id *op);
/* Emits the sum of a shared unit's gradient over the stages that share the unit, and returns the op. If this stage then
 * has to add the sum to its own gradient, lent_grad->pending_sum is the buffer of the sum, else IR_NONE. */
op_id remote_sum_gradients(struct emit *e, struct lent_grad *lent_grad);
/* Adds that sum (lent_grad->pending_sum, which must exist) to the gradient, or the part of it, that this stage has. */
void remote_add_to_own_gradient(struct emit *e, const struct lent_grad *lent_grad);
/* Sends parts of gradients to their owners. alone: the stage's last op on units that it does not share with other
 * stages. */
void remote_return_parts(struct emit *e, op_id alone);

/* ---- stages that hold parts of weights (schedule/weights/remote_parts.c) ---- */
/* Returns the record of what this stage holds of a bundle that the stages `shared` share; the first call for them adds
 * the record. It is valid until the next call. */
struct remote_part *remote_part(struct emit *e, uint32_t bundle, const struct unit_stages *shared);
/* Stores this stage's part of parameters that came for the first time, unless it is their owner. */
void remote_store_part(struct emit *e, struct remote_part *part, buffer_id params);
/* Gathers the parts of all stages into the buffer `to`, and returns the op. */
op_id remote_gather_parts(struct emit *e, const struct remote_part *part, buffer_id to);
/* Sums a unit's gradients over the stages that share it, so that each gets its part of the sum, and returns the op. */
op_id remote_sum_parts(struct emit *e, struct lent_grad *lent_grad);
/* Returns the view to which sums of the part are added: on the owner, a range of its own gradient. */
struct view remote_part_of_gradient(const struct emit *e, const struct remote_part *part);

/* Makes the backward ops that follow add to the gradients of the unit that starts: the stage's own, or, if the unit is
 * shared, those that the sharing stages will sum. */
void weights_begin_unit(struct emit *e);

#endif
