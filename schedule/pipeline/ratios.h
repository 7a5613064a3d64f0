/* schedule/pipeline/ratios.h: how much of each unit's activations goes to the host.
 *
 * Units 0 .. N-1 run forward one after the other, and backward in the opposite order. While unit i runs,
 * what leaves of unit i - 1 can be copied; what one unit's computation hides is M_thr = rate x time
 * (SPPO, arXiv 2503.10377, section 5.2). Units of equal time have fewer and fewer bytes the later they
 * come, since attention grows: so ratios do not fall. The last unit's backward comes at once, and
 * nothing of it leaves. (The paper prints the sizes and the ratios the other way round, and its
 * M_max drops the sum: this is the reading that its figures follow.) */
#ifndef SCHEDULE_PIPELINE_RATIOS_H
#define SCHEDULE_PIPELINE_RATIOS_H

#include <stdint.h>

/* Returns min(1, hidden / bytes): the part of `bytes` that leaves during a computation that hides `hidden` of
 * them. */
double ratio_hidden(double bytes, double hidden);

/* Fills alpha[i], the part of bytes[i] that leaves; the last one is 0. hidden[i]: bytes that go to the host while
 * unit i computes, which are those of the unit before it. */
void ratios_adaptive(double *alpha, const double *bytes, uint32_t units, const double *hidden);

/* Returns the bytes on the device when unit i has run forward: M_i = A_i + sum over j < i of (1 - alpha_j) A_j. */
double ratios_kept(const double *alpha, const double *bytes, uint32_t i);
/* Returns the most bytes on the device while unit i runs and unit i - 1 is still leaving: M_i + alpha_(i-1)
 * A_(i-1). */
double ratios_live(const double *alpha, const double *bytes, uint32_t i);

#endif
