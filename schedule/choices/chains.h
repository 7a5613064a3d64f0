/* schedule/choices/chains.h: the work that an implementation runs as chains of kernels.
 *
 * The cost of a norm, a rotation or an activation is that of one kernel which touches each operand once. Eager
 * framework code launches one kernel for each of its operators, and every result in between goes through memory. A
 * profile names the kinds of work that its code leaves unfused, with the bytes per element that the chain moves in
 * 16-bit training; docs/costs.md, "Chains of kernels", counts them. */
#ifndef SCHEDULE_CHOICES_CHAINS_H
#define SCHEDULE_CHOICES_CHAINS_H

#include "models/cost.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/profile.h"

/* Returns the framework whose chains the layers run: the profile's; torchtitan's if eager kernels are chosen for a
 * profile without chains; CHAINS_FUSED if the chosen kernels fuse the chains. profile NULL stands for a profile without
 * chains. */
enum chains chains_used(const struct profile *profile, const struct choices *choices);

/* Fills `chain` with the chains of the profile's implementation; all other kinds of work remain one kernel (bytes 0).
 * Of the choices, kernels and loss matter, since torch.compile and Liger fuse most chains and only some losses are
 * chains; and tensor_plan, tp and row_ranks, which say over how many tokens gradients are summed. kept: layers keep
 * their activations for the backward, so the framework's own recomputation inside a layer takes time. profile NULL
 * stands for a profile without chains. */
void chains_of(const struct profile *profile, const struct choices *choices, bool kept,
               struct cost_chain chain[WORK_KIND_COUNT]);

#endif
