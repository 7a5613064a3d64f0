/* schedule/step/build.h: builds the finished schedule of resolved choices, and computes the memory that the profile's
 * framework holds besides the schedule's buffers.
 *
 * Building has three parts. Emission writes every layer as if weights were whole and activations saved. Passes rewrite
 * the list: recomputation, offload, weight sharding. The last part finishes it: waits, free sets, arena offsets. */
#ifndef SCHEDULE_STEP_BUILD_H
#define SCHEDULE_STEP_BUILD_H

#include "base/diag.h"
#include "schedule/choices/choices.h"
#include "schedule/ir/ir.h"

#include <stdint.h>

/* The time of attention kernels with dropout, divided by their time without it. With dropout they draw a random number
 * for each score, and store no mask. The factor is inferred from FPDT's measurements (docs/accuracy/fpdt.md). */
#define STEP_DROPOUT_SLOWDOWN 1.15

/* Returns the bytes that the profile's framework holds throughout the step beyond the schedule's buffers: a bucket of
 * gradients, and a placeholder of each shape for the gradients of a layer's products. 0: it holds neither. */
int64_t step_bucket_bytes(const struct choices *choices);
/* step_set_rotary_table_bytes() sets the bytes of the tables that the framework holds throughout the step for rotary
 * positions, each in a block of its own: angles in fp32, cosines, sines. A block of 0 bytes: it has no such table. */
enum { STEP_ROTARY_TABLES = 3 };
void step_set_rotary_table_bytes(const struct choices *choices, uint64_t block[STEP_ROTARY_TABLES]);

/* Returns the time of attention kernels under these choices, divided by their time without dropout. */
double step_attention_slowdown(const struct choices *choices);

/* Sets which share of the flops that tensor ranks spend on matrix products the model does not need: *layers, in the
 * layers, where ranks that hold the same key and value heads all project them; *head, in the head, where padding rows
 * of the vocabulary stand for no token. */
void step_redundant_product_shares(const struct choices *choices, double *layers, double *head);

/* Builds the finished schedule, with waits, free sets and arena offsets. *ir must be empty. It is an error if the
 * schedule has too many rows for its ids: about 2e8 ops or more per rank (ids of ops, operands and waits have 32 bits),
 * or 65000 layers or more (ids of layers have 16). */
enum status step_build(struct ir *ir, const struct choices *choices, struct diag *diag);

/* Does what step_build() does, but plans only the arenas of the memories whose bits are set in `memories`. Buffers in
 * the other memories get no offset, and their arenas have 0 bytes. */
enum status step_build_with_planned_memories(struct ir *ir, const struct choices *choices,
                                             unsigned memories, struct diag *diag);

/* Returns an upper limit of the number of ops of any rank. */
double step_max_ops_of_rank(const struct choices *choices);

/* Returns the number of layers after which the schedules of layers repeat: the number of layers of a bundle or the
 * distance between layers without a window, the larger of the two if the other divides it. 0: there is no such number,
 * for example because only some layers have experts. */
int64_t step_layers_per_period(const struct choices *choices);

/* Builds a short list that represents the whole schedule (ir->repeats): of `length` periods of layers or of 2 pp +
 * `length` + 4 micro-batches, whichever leaves out more. Its arenas, and sizes that depend on the number of
 * micro-batches, are those of the whole schedule. memories: as in step_build_with_planned_memories().
 *
 * Returns false, with *ir empty, if there is no such list: the schedule is too short for it, too large, or not of a
 * whole step; it offloads activations by ratio; or its layers and micro-batches do not repeat. */
bool step_build_short(struct ir *ir, const struct choices *choices, uint32_t length,
                      unsigned memories);

#endif
