/* schedule/weights/remote_weights.h: the weights that stages use but do not own, because they share subsequences of the
 * owner's chunk (schedule/pipeline/multiplex.h). Each stage holds the optimizer states of its own layers only.
 *
 * All stages that share a unit use a bundle at the same place of the same list of ops. Before each use the bundle is
 * sent to all of them, ahead of the computation, as sharded parameters are gathered (schedule/weights/shard.c). There
 * are two forms (enum msp_weights). Let w be the bytes of a bundle's parameters and g those of its gradient, and let k
 * stages share some units of a chunk.
 *
 * MSP_WEIGHTS_BROADCAST: the owner sends w at each use. Each stage keeps its gradient until the last of the units; then
 * the sum over all stages goes to the owner (g per stage), which adds it to its own. A helper (a stage that is not the
 * owner) holds g of each bundle throughout these units.
 *
 * MSP_WEIGHTS_SHARD: each of the k stages holds a part. The owner sends w at the first use in a step, and each stage
 * keeps its part of it; from then on the parts are gathered (w (k - 1) / k per stage). The gradient of each unit is
 * summed into parts at once (g (k - 1) / k per stage and unit), and the owner gets the parts when it has done the units
 * that it does not share. A helper holds (w + g) / k of each bundle, and the whole g of two bundles.
 *
 * So MSP_WEIGHTS_SHARD saves (1 - 1 / k) g of each bundle, and MSP_WEIGHTS_BROADCAST sends gradients only once.
 *
 * The sums of one group of stages are in the same order on all its stages. The sums of different groups are in the
 * order of tasks that all stages follow (multiplex_put_tasks_in_order()). So no cycle of stages waits for itself. Parts
 * are returned on streams of their own, in one order for all stages, and only the end of the step waits for them. */
#ifndef SCHEDULE_WEIGHTS_REMOTE_WEIGHTS_H
#define SCHEDULE_WEIGHTS_REMOTE_WEIGHTS_H

#include "schedule/emit/emit.h"

/* The way of a unit through a chunk of layers in one pass, forward or backward. */
struct unit_chunk_pass {
    uint32_t chunk, unit;
    bool is_forward;
};
/* Returns the stages that share a unit in a chunk. The member `group` is not set. */
struct stages_sharing_pipeline_unit
remote_stages_sharing_pipeline_unit(const struct emit *e, uint32_t chunk, uint32_t unit);
/* Returns the pass to which an op belongs. */
struct unit_chunk_pass remote_unit_chunk_pass_of_op(const struct emit *e, uint32_t op);
/* Makes backward ops write the stage's own gradients again. */
void remote_select_own_gradients_again(struct emit *e);
/* Sends a bundle's parameters from the owner to all stages that share a unit; if these stages hold parts of it already,
 * gathers the parts instead. Sets *op to the op that does so. Returns the new buffer in which this stage receives the
 * parameters. The owner receives them as well, since meanwhile its other units read its own parameters. With
 * MSP_WEIGHTS_SHARD, each stage keeps its part of the parameters that are sent. */
buffer_id remote_receive_params(struct emit *e, struct unit_chunk_pass pass, uint32_t bundle,
                                op_id *op);
/* Emits the sum of a shared unit's gradient over the stages that share the unit, and returns the op. Sets
 * remote_grad->gradient_sum_to_add to the buffer of the sum if this stage must add it to its own gradient, else to
 * IR_NONE. */
op_id remote_sum_gradients(struct emit *e, struct remote_grad *remote_grad);
/* Emits the addition of the sum remote_grad->gradient_sum_to_add, which must exist, to this stage's own gradient or to
 * its part of it. */
void remote_add_to_own_gradient(struct emit *e, const struct remote_grad *remote_grad);
/* Emits the messages that return parts of gradients to their owners, which add them to their gradients. last_unshared:
 * the stage's last op on a unit that it does not share, for which receives wait; IR_NONE: there is none. */
void remote_return_gradient_parts(struct emit *e, op_id last_unshared);

/* ---- stages that hold parts of weights (schedule/weights/remote_parts.c) ---- */
/* Returns the row of e->weights.stage_bundle_part for a bundle that the stages `shared` share; the first call for them
 * adds the row. The pointer is valid until the next call. */
struct stage_bundle_part *
remote_find_or_add_part(struct emit *e, uint32_t bundle,
                        const struct stages_sharing_pipeline_unit *shared);
/* Emits the copy of this stage's part out of `params`, the parameters that were sent, unless this stage owns the
 * layers. The copy has a stream of its own, beside the computation, which has not reached the bundle yet. */
void remote_emit_copy_of_own_part(struct emit *e, struct stage_bundle_part *part, buffer_id params);
/* Emits the gather of all stages' parts into the buffer `to`, and returns the op. */
op_id remote_gather_parts(struct emit *e, const struct stage_bundle_part *part, buffer_id to);
/* Emits the sum of a unit's gradient over the stages that share the unit, by which each stage gets its part of the sum.
 * Returns the op. */
op_id remote_sum_parts(struct emit *e, struct remote_grad *remote_grad);
/* Returns the view to which the sums of this stage's part are added: on the owner, a range of its own gradient. */
struct view remote_view_of_own_gradient_part(const struct emit *e,
                                             const struct stage_bundle_part *part);

/* ---- the gradients that a unit writes ---- */
/* Makes the backward ops that follow write the gradients of the unit that starts: the stage's own or, if the unit is
 * shared, those that the sharing stages will sum. With MSP_WEIGHTS_SHARD each shared unit has gradients of its own;
 * otherwise units that the same stages share write the same gradients. */
void weights_choose_gradients_of_unit(struct emit *e);

#endif
