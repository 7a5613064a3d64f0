/* sim/jitter.h: by how many seconds a step grows because a kernel takes different times on different ranks.
 *
 * A simulation gives every kernel its mean time. On a machine each time is random, with a standard
 * deviation of `relative` times its mean, and at a rendezvous all ranks wait for the last one. Between two rendezvous
 * the times of a rank's kernels add up, and so do their variances, to V. The last of n ranks arrives E(n) sqrt(V)
 * after the mean, where E(n) is the expected maximum of n standard normal numbers. Other kernels may hide that delay:
 * a rendezvous delays the rank only by the part that exceeds the time between its end and the first kernel that waits
 * for it. Nothing hides the delay of a barrier. After a delay, V starts from 0 again. The end of the step counts as a
 * rendezvous of all ranks. This is a first-order model: delays do not add to the spread, and no
 * rank is always slower than others. docs/simulation.md, "Jitter". */
#ifndef SIM_JITTER_H
#define SIM_JITTER_H

#include "schedule/ir/ir.h"
#include "sim/sim.h"

/* Returns the seconds that jitter adds to the step of a rank; relative in [0, 1]. */
double jitter_s(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                double relative);

/* Returns E(n), n >= 1, after Blom (1958): within 0.03 of the exact value. */
double jitter_expected_max_of_normals(uint32_t n);

#endif
