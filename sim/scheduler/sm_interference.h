/* sim/scheduler/sm_interference.h: kernels that run while messages occupy multiprocessors and memory bandwidth.
 *
 * A kernel's work is its seconds without messages. While messages take a share of what limits it, the multiprocessors
 * or the bandwidth of the device's memory, it advances more slowly, and its end moves whenever a message of its rank
 * starts or ends. Between such changes its end is known: a heap keeps the ends by date, one per class of ranks, and the
 * scheduler handles them ahead of the engine's clock. */
#ifndef SIM_SM_INTERFERENCE_H
#define SIM_SM_INTERFERENCE_H

#include "sim/scheduler/scheduler_state.h"

/* Starts a kernel at date_s, now or later, that would take `seconds` without messages. by_memory: the memory's
 * bandwidth limits it, and not the multiprocessors. */
void interference_start_kernel(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s,
                               double seconds, bool by_memory);

/* Adds `taken` to what messages take of the rank (sign 1), or subtracts it (sign -1). held_s: seconds for which the
 * messages have already held the multiprocessors without moving bytes; a running kernel that the multiprocessors limit
 * is delayed by what that took. */
void interference_add_taken(struct scheduler *s, uint32_t rank_index,
                            struct interference_share taken, double sign, double held_s);

/* If the kernel with the earliest end ends at until_s or before, ends it: sets *rank_state and *op to it and s->now_s
 * to its end. Returns false if there is no such kernel. */
bool interference_end_kernel(struct scheduler *s, double until_s, uint32_t *rank_state,
                             uint32_t *op);

#endif
