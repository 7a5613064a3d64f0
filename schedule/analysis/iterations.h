/* schedule/analysis/iterations.h: finds the parts of a list of ops that repeat.
 *
 * A block is the forward or backward of one layer for one unit (a micro-batch or a part of one), or, if blocks are of
 * units, the forward or backward of one unit as a whole. It begins with the first op that carries this label and goes
 * on until the next block begins. In the optimizer, a block is what updates one layer. Iterations are equal blocks,
 * or equal groups of blocks, in a row. */
#ifndef SCHEDULE_ITERATIONS_H
#define SCHEDULE_ITERATIONS_H

#include "schedule/ir/ir.h"

/* Consecutive iterations that are equal: they have the same ops, with the same shapes, streams, guards and memories. */
struct iterations {
    /* id of the first op of the first iteration, and number of ops of each iteration */
    uint32_t first_op, ops_per_iteration;
    uint32_t iteration_count;
    uint32_t blocks_per_iteration; /* number of blocks of each iteration */
    /* first: the label of the first iteration (its layer or unit). step: what the label grows by from one iteration to
     * the next; 0: by varying amounts */
    int32_t first, step;
    bool is_in_optimizer;
};

/* Returns an array of all iterations of a role's list that can be a run (schedule/ir/repeats.h), in list order, and
 * sets *count to its length. The caller frees the array. Where several numbers of blocks per iteration repeat often
 * enough, the smallest is used. A block is the ops of one unit if ir->repeats.iterations_are_units is set, else those
 * of one layer. */
struct iterations *find_iterations(const struct ir *ir, uint32_t role, uint32_t *count);

/* Returns the layer (with of_units: the unit) that an op is labelled with, or whose optimizer states it updates; -1:
 * none. */
int32_t iteration_label(const struct ir *ir, uint32_t op, bool of_units);

/* Returns the layer of a bundle, or the first of its layers; -1: none. */
int32_t bundle_first_layer(const struct ir *ir, uint16_t bundle);

#endif
