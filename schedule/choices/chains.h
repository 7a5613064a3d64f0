/* schedule/choices/chains.h: the work that an implementation runs as chains of kernels.
 *
 * By default the cost of a norm, a rotation or an activation is that of one kernel, which reads or writes each operand
 * once. Eager framework code launches a kernel for each operator instead, and every result in between goes through
 * memory. A profile names the framework whose code decides which kinds of work are such chains, and how many bytes per
 * element a chain moves in 16-bit training; docs/costs.md, "Chains of kernels", counts them. */
#ifndef SCHEDULE_CHOICES_CHAINS_H
#define SCHEDULE_CHOICES_CHAINS_H

#include "models/cost.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/profile.h"

/* Returns the framework whose chains the layers run: the profile's; torchtitan's if eager kernels are chosen and the
 * profile has no chains; CHAINS_FUSED if the chosen kernels fuse them. profile NULL: a profile without chains. */
enum chains chains_framework_of_choices(const struct profile *profile,
                                        const struct choices *choices);

/* Sets chain[] to the chains that the profile's implementation runs; all other kinds of work remain one kernel (bytes
 * 0).
 *
 * Of the choices, these matter: kernels, since torch.compile and Liger fuse most chains; loss, since only some losses
 * are chains; tensor_plan, tp and sequence_parallel_ranks, which determine over how many tokens gradients are summed.
 * kept: layers keep their activations for the backward, so the framework's own recomputation inside a layer takes time.
 * profile NULL: a profile without chains. */
void chains_fill_for_choices(const struct profile *profile, const struct choices *choices,
                             bool kept, struct cost_elementwise_chain chain[WORK_KIND_COUNT]);

#endif
