/* exec/bindings.h: copies between bound buffers of ranks and the model's own tensors and sequences.
 *
 * A binding says what a buffer means: which tensors it holds, cut over which axes, flat over which group, partial over
 * which axes; which tokens, by the schedule's token layout. That suffices to fill the inputs of any schedule from one
 * set of tensors and sequences, and to collect its results into one set: partial sums are added, parts are put
 * together. Nothing here depends on the strategy, so a new strategy needs no change.
 *
 * Of the names of mesh axes only the part before the first '_' counts: "cp" axes are the layout's context ranks (in
 * the order of the group named "cp" where it has just these axes), "hp" its head ranks, "dp" axes hold different
 * sequences; ranks that differ in any other axis hold the same ones. Rank d of D along dp holds sequences d B/D to
 * (d+1) B/D - 1 of a batch of B, in the order of its micro-batches. */
#ifndef EXEC_BINDINGS_H
#define EXEC_BINDINGS_H

#include "base/diag.h"
#include "exec/exec_options.h"
#include "exec/stored_tensors.h"
#include "schedule/ir/ir.h"

#include <stdint.h>

/* A run of elements of a buffer of which `copies` ranks of a group hold the same elements. */
struct copied_run {
    uint64_t begin, element_count;
    uint32_t copies;
};

/* Fills share[] with the runs of a rank's buffer that hold elements of the tensors to which it is bound, without
 * padding, and returns their number. share: NULL if only the number is wanted. A run's `copies` is how many ranks of
 * the same role, in the rank's instance of the group, hold the same elements; neighbouring runs with equal copies are
 * joined. A buffer that is bound to no tensor is one run with copies 1. */
uint32_t bindings_copied_runs(const struct ir *ir, uint32_t rank, uint32_t buffer, uint16_t group,
                              struct copied_run *share);

/* The model's tensors and sequences that bound buffers are filled from and collected into. An array of tensors has
 * (ir.tensor_count) pointers, each to rows * cols elements, row after row. */
struct bindings {
    const struct ir *ir;
    /* Values that fill buffers. */
    const double *const *params;        /* parameters, and their masters */
    const double *const *moment1;       /* NULL: zero */
    const double *const *moment2;       /* NULL: zero */
    const struct stored_tensor *stored; /* codes and scales of stored weights */
    const int32_t *tokens;              /* (ir.global_batch, ir.layout.sequence_tokens) */
    const int32_t *labels; /* the same shape; NULL: tokens shifted by one, the last one -1 */
    /* Arrays into which buffers are collected, by BINDING_PARAM .. BINDING_MOMENT2; NULL: not wanted. */
    double *const *collected[BINDING_KIND_COUNT];
    double loss; /* loss of the step read last */
    /* Number of elements so far that had another value on a replica than on the rank from which they were collected. */
    uint64_t differing_replica_elements;

    /* Used only by bindings.c. */
    uint32_t next_step; /* 1 + the step that was read last */
};

/* Checks that the schedule's bindings can be filled and collected: columns divide by the ranks over which they are cut,
 * and buffers have as many elements as their bundles or tokens. The caller has set b->ir; the other members may be set
 * later. name: the schedule's name in messages. */
enum status bindings_check(const struct bindings *b, const char *name, struct diag *diag);

/* A block of a tensor, (rows, cols), whose elements are consecutive in a bound buffer from element buffer_offset on. In
 * the tensor, row r of the block begins at element tensor_offset + r * row_stride. */
struct bindings_block {
    uint32_t tensor;
    uint64_t tensor_offset, buffer_offset, rows, cols, row_stride;
};
typedef void bindings_block_function(void *context, const struct bindings_block *block);
/* Calls use for blocks that together are all elements of tensors that a bound buffer holds, without padding. */
void bindings_for_each_block(const struct exec_buffer *buffer, bindings_block_function *use,
                             void *context);

/* Functions for a struct exec_io whose `user` is a struct bindings: the first fills a bound buffer, the second adds
 * one to the collected arrays. Collected sums start from 0 in every step. */
enum status bindings_fill_buffer(void *user, const struct exec_buffer *buffer, struct diag *diag);
enum status bindings_collect_buffer(void *user, const struct exec_buffer *buffer,
                                    struct diag *diag);

#endif
