/* schedule/analysis/iterations.h: finds the parts of a list of ops that repeat.
 *
 * A list is divided into blocks. If blocks are of layers, a block is the forward or backward of one layer for one unit
 * (a micro-batch or a part of one). If blocks are of units, it is the forward or backward of one unit as a whole. It
 * begins with the first op that carries this label and goes on until the next block begins. In the optimizer, a block
 * of layers is consecutive ops that update one layer. An iteration is a block or a group of consecutive blocks.
 * Iterations that follow each other and are equal can be a run of a short list. */
#ifndef SCHEDULE_ITERATIONS_H
#define SCHEDULE_ITERATIONS_H

#include "schedule/ir/ir.h"

/* Consecutive iterations that are equal: they have the same ops, with the same shapes, streams, guards and memories. */
struct run_of_equal_iterations {
    /* id of the first op of the first iteration; number of ops of each iteration */
    uint32_t first_op, ops_per_iteration;
    uint32_t iteration_count;
    uint32_t blocks_per_iteration; /* number of blocks of each iteration */
    /* first: the label of the first iteration (its layer or unit). step: what the label grows by from one iteration to
     * the next; 0: by varying amounts */
    int32_t first, step;
    bool is_in_optimizer;
};

/* Finds the sequences of iterations in a role's list that can be runs (schedule/ir/repeats.h). Returns them as an array
 * in list order, which the caller frees, and sets *count to its length. If iterations of several numbers of blocks
 * repeat often enough, the smallest number is used. Blocks are of units if ir->repeats.iterations_are_units is set,
 * else of layers. */
struct run_of_equal_iterations *find_iterations(const struct ir *ir, uint32_t role,
                                                uint32_t *count);

/* Returns the layer with which an op is labelled or, for an op of the optimizer without a label, the first layer whose
 * states it updates; with of_units the unit with which the op is labelled. -1: none. */
int32_t iteration_label_of_op(const struct ir *ir, uint32_t op, bool of_units);

/* Returns the layer of a bundle, or the first of its layers; -1: none. */
int32_t bundle_first_layer(const struct ir *ir, uint16_t bundle);

#endif
