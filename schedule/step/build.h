/* schedule/step/build.h: builds the finished schedule of resolved choices, and computes the memory that the profile's
 * framework holds besides the schedule's buffers.
 *
 * Building emits every layer as if weights were whole and activations saved, rewrites the list (recomputation, weight
 * sharding, offload) and finishes it: waits, free sets, arena offsets. */
#ifndef SCHEDULE_STEP_BUILD_H
#define SCHEDULE_STEP_BUILD_H

#include "base/diag.h"
#include "schedule/choices/choices.h"
#include "schedule/ir/ir.h"

#include <stdint.h>

/* Time of attention kernels with dropout relative to those without it: they draw a random number for each score, and
 * store no mask. The factor is inferred from FPDT's measurements (docs/accuracy/fpdt.md). */
#define STEP_DROPOUT_SLOWDOWN 1.15

/* Returns the bytes that the profile's framework holds throughout the step beyond the schedule's buffers: a gradient
 * bucket, and a placeholder of each shape for the gradients of a layer's products. 0: it holds nothing more. */
int64_t step_bucket_bytes(const struct choices *choices);
/* Sets the bytes of the rotary tables that the framework holds throughout the step, each in a block of its own: angles
 * in fp32, if it keeps them; cosines; sines. */
enum { STEP_ROTARY_TABLES = 3 };
void step_rotary_tables(const struct choices *choices, uint64_t block[STEP_ROTARY_TABLES]);

/* Returns the time of attention kernels relative to the plain kernel. */
double step_attention_slowdown(const struct choices *choices);

/* Sets the share of the flops of matrix products, in layers and in the head, that tensor ranks compute beyond what the
 * model needs: ranks that hold the same key and value heads all project them, and padding rows of the vocabulary stand
 * for no token. */
void step_redundant_product_shares(const struct choices *choices, double *layers, double *head);

/* Builds the finished schedule, with waits, free sets and arena offsets. *ir must be empty. Too large a schedule is an
 * error: more than 2e8 ops per rank, since ids of ops, operands and waits have 32 bits, or 65000 layers, since those of
 * layers have 16. */
enum status step_build(struct ir *ir, const struct choices *choices, struct diag *diag);

/* Does what step_build() does, but plans only the arenas of those memories whose bit is set in `memories`, for a
 * prediction that does not need the others. Buffers in the others get no offset, and their arenas have 0 bytes. */
enum status step_build_planned(struct ir *ir, const struct choices *choices, unsigned memories,
                               struct diag *diag);

/* Returns an upper limit of the number of ops of each rank. */
double step_max_ops(const struct choices *choices);

/* Returns the number of layers after which the schedules of layers repeat: the layers of a bundle or the distance
 * between layers without a window, whichever is a multiple of the other. 0: they do not repeat. */
int64_t step_layers_per_period(const struct choices *choices);

/* Builds a short list that represents the whole schedule (ir->repeats): of `length` periods of layers, or of 2 pp +
 * `length` + 4 units. Its arenas, and sizes that depend on the number of units, are those of the whole schedule.
 * Returns false, with ir empty, if the schedule is too short, too large or not of a whole step, if it offloads
 * activations by ratio, or if its layers or units do not repeat. memories: as in step_build_planned(). */
bool step_build_short(struct ir *ir, const struct choices *choices, uint32_t length,
                      unsigned memories);

#endif
