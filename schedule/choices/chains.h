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

/* Fills `chain` with the chains of the profile's implementation; the other kinds of work remain one kernel (bytes 0).
 * compile: torch.compile fuses most chains. kept: layers save the activations for their backward, so the framework's
 * own recomputation inside a layer costs time. profile may be NULL: no chains. */
void chains_of(const struct profile *profile, bool compile, bool kept,
               struct cost_chain chain[WORK_KIND_COUNT]);

#endif
