/* exec/bindings.h: copies between bound buffers of ranks and the model's own tensors and sequences.
 *
 * A binding says what a buffer means. For tensors it says which ones the buffer holds, over which axes they are cut,
 * over which group the bundle is sharded, and over which axes the elements are parts of a sum. For tokens the
 * schedule's layout says which ones the buffer holds. That suffices to fill the inputs of any schedule from one set of
 * tensors and sequences, and to collect its results into one set: parts of sums are added, and slices are put together.
 * Nothing here depends on the strategy, so a new strategy needs no change.
 *
 * Only the part of a mesh axis's name before the first '_' counts. Axes "cp" are the layout's context ranks, in the
 * order of the group named "cp" if that group has just these axes. Axes "hp" are the layout's head ranks. Ranks that
 * differ along axes "dp" hold different sequences, and ranks that differ only along other axes hold the same ones. Rank
 * d of D along dp holds sequences d B/D to (d+1) B/D - 1 of a batch of B, in the order of its micro-batches. */
#ifndef EXEC_BINDINGS_H
#define EXEC_BINDINGS_H

#include "base/diag.h"
#include "exec/exec_options.h"
#include "exec/stored_tensors.h"
#include "schedule/ir/ir.h"

#include <stdint.h>

/* A run of elements of a buffer that are the same on `copies` ranks of a group. */
struct copied_run {
    uint64_t begin, element_count;
    uint32_t copies;
};

/* Returns the number of runs of a rank's buffer, and fills share[] with them unless it is NULL. The runs cover the
 * elements of the tensors to which the buffer is bound, without padding. `copies` of a run is the number of ranks that
 * hold the same elements, among the ranks of the same role in the rank's instance of the group; it is 1 if group is
 * IR_NONE16. Neighbouring runs with equal copies are joined. A buffer that is bound to no tensor is one run with copies
 * 1. */
uint32_t bindings_list_copied_runs(const struct ir *ir, uint32_t rank, uint32_t buffer,
                                   uint16_t group, struct copied_run *share);

/* The tensors and sequences of the model: bound buffers are filled from them and collected into them. An array of
 * tensors has (ir.tensor_count) pointers, each to rows * cols elements, row after row. */
struct bindings {
    const struct ir *ir;
    /* Values that fill buffers. */
    const double *const *params;        /* parameters, and their masters */
    const double *const *moment1;       /* NULL: buffers are left as they are */
    const double *const *moment2;       /* NULL: buffers are left as they are */
    const struct stored_tensor *stored; /* codes and scales of stored weights */
    const int32_t *tokens;              /* (ir.global_batch, ir.layout.sequence_tokens) */
    const int32_t *labels; /* the same shape; NULL: tokens shifted by one, the last one -1 */
    /* [kind] the arrays into which buffers bound to PARAM .. MOMENT2 are collected; NULL: they are not wanted */
    double *const *collected[BINDING_KIND_COUNT];
    double loss; /* loss of the step read last */
    /* the number of elements, over all steps so far, that differ from the same element of the rank that was
     * collected */
    uint64_t differing_replica_elements;

    /* 1 + the number of the step that was read last, at first 0. Only bindings.c uses it. */
    uint32_t last_collected_step_plus_1;
};

/* Checks that the schedule's bindings can be filled and collected: the columns of a tensor divide evenly over the ranks
 * over which they are cut, and a buffer has as many elements as its bundle, its share of the bundle or a whole number
 * of sequences of its tokens. The caller has set b->ir; the other members may be set later. name: the schedule's name
 * in messages. */
enum status bindings_check(const struct bindings *b, const char *name, struct diag *diag);

/* A block of a tensor, (rows, cols), whose elements are consecutive in a bound buffer from element buffer_offset on. In
 * the tensor, row r of the block begins at element tensor_offset + r * row_stride. */
struct bindings_block {
    uint32_t tensor;
    uint64_t tensor_offset, buffer_offset, rows, cols, row_stride;
};
typedef void bindings_block_function(void *context, const struct bindings_block *block);
/* Calls use() with blocks that together are the elements of tensors that a bound buffer holds, without padding. */
void bindings_for_each_block(const struct exec_buffer *buffer, bindings_block_function *use,
                             void *context);

/* Functions for a struct exec_io whose `user` is a struct bindings. bindings_fill_buffer() fills a buffer that is bound
 * to parameters, masters, moments, stored weights, tokens, labels or positions, and leaves any other as it is.
 * bindings_collect_buffer() adds a bound buffer to the collected arrays and to the loss, which both start from 0 in
 * every step. */
enum status bindings_fill_buffer(void *user, const struct exec_buffer *buffer, struct diag *diag);
enum status bindings_collect_buffer(void *user, const struct exec_buffer *buffer,
                                    struct diag *diag);

#endif
