/* sim/scheduler/sm_interference.h: kernels that run while messages occupy a share of the multiprocessors.
 *
 * A kernel's work is its seconds on all multiprocessors, so while messages occupy some of them it advances more
 * slowly, and its end moves whenever a message of its rank starts or ends. Between such changes its end is known: a
 * heap keeps the ends by date, one per class of ranks, and the scheduler handles them ahead of the engine's clock. */
#ifndef SIM_SM_INTERFERENCE_H
#define SIM_SM_INTERFERENCE_H

#include "sim/scheduler/scheduler_state.h"

/* Starts a kernel at date_s, now or later, that would take `seconds` without messages. */
void interference_start(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s,
                        double seconds);

/* Adds `share` to the share of the rank's multiprocessors that messages take from now on; < 0 gives some back. */
void interference_take(struct scheduler *s, uint32_t rank_index, double share);

/* If the kernel with the earliest end ends at until_s or before, ends it: sets *rank_state and *op to it and s->now_s
 * to its end. Returns false if there is no such kernel. */
bool interference_end(struct scheduler *s, double until_s, uint32_t *rank_state, uint32_t *op);

#endif
