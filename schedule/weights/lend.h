/* schedule/weights/lend.h: weights of a stage on the stages that share its subsequences
 * (schedule/pipeline/multiplex.h), where each holds the states of its own layers alone.
 *
 * A shared unit's stages use a bundle at the same place of the same program, so before each use it comes to
 * all of them, ahead of the computation as sharded parameters do (schedule/weights/shard.c). With w bytes
 * of a bundle's parameters, g of its gradient, k stages that share U units of a chunk:
 *
 * broadcast: the owner sends w at each use. What a stage makes of the gradient stays until the last of the
 * units; then the sum over all goes to the owner (g a stage), which adds it to its own. A helper holds g
 * throughout these units, of each bundle.
 *
 * shard: each of the k holds a part. The owner sends w at the first use in a step, and of what came each
 * keeps its part; from then on the parts are gathered (w (k - 1) / k a stage). The gradient of each unit
 * is summed into parts at once (g (k - 1) / k a stage and unit), which go to the owner when it has been
 * through the units that it takes alone. A helper holds (w + g) / k of each bundle, and all g of two.
 *
 * So parts save (1 - 1 / k) g of each bundle; broadcast sends gradients once.
 *
 * All sums of a group stand in one order on all of its stages, and those of different groups in the order
 * of tasks that all stages keep (multiplex_order()), so that no cycle of stages waits for itself. Parts
 * go back on streams of their own, in one order of all stages, and nothing but the end of the step waits
 * for them. */
#ifndef SCHEDULE_WEIGHTS_LEND_H
#define SCHEDULE_WEIGHTS_LEND_H

#include "schedule/emit/op_list.h"

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
/* A bundle's parameters on all stages of a shared task, in a new buffer: on the owner too, which has no use
 * for it, but whose other units read its own meanwhile. *kept: keeps the stage's part of them; IR_NONE:
 * nothing does. */
buffer_id lend_params(struct emit *e, struct lend_task task, uint32_t bundle, op_id *op,
                      op_id *kept);
/* The sum of a shared task's gradients over its stages. */
op_id lend_sum(struct emit *e, struct lent *lent);
/* What has been summed (lent->sum) is added to what the stage has of it. */
op_id lend_add(struct emit *e, const struct lent *lent);
/* Parts of gradients go to their owners; alone: the stage's last op on units that it takes alone. */
void lend_return(struct emit *e, op_id alone, struct program *out);

/* --- schedule/weights/lend_parts.c: where stages hold parts --- */
/* The least number of parts of a chunk's bundles such that `parts` of them, and those of all stages that
 * share its units, are whole numbers of them. */
uint64_t lend_parts(const struct choices *choices, uint32_t chunk, uint64_t parts);
/* This stage's part; valid until the next call. */
struct lent_part *lend_part(struct emit *e, uint32_t bundle, const struct shared *shared);
/* Parameters have come for the first time; IR_NONE: nothing is to be done. */
op_id lend_keep_part(struct emit *e, struct lent_part *part, buffer_id params);
op_id lend_gather_parts(struct emit *e, const struct lent_part *part, buffer_id to);
op_id lend_sum_parts(struct emit *e, struct lent *lent);
/* Where its sums are added: of the owner, in its own gradient. */
struct view lend_part_of_gradient(const struct emit *e, const struct lent_part *part);

/* The same of a unit, where stages lend each other weights: to the stage's own gradients, or, if it is
 * shared, to gradients that its stages will sum (schedule/weights/lend.c). */
void weights_of_unit(struct emit *e);

#endif
