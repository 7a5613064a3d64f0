/* sim/scheduler/sm_interference.h: kernels that run while messages occupy multiprocessors and memory bandwidth.
 *
 * A kernel's work is its seconds without messages. While messages take a share of what limits it, the multiprocessors
 * or the bandwidth of the device's memory, it advances more slowly, and its end moves whenever a message of its rank
 * starts or ends. Between such changes its end is known: a heap keeps the ends by date, one per class of ranks, and the
 * scheduler handles them ahead of the engine's clock. */
#ifndef SIM_SM_INTERFERENCE_H
#define SIM_SM_INTERFERENCE_H

#include "sim/scheduler/scheduler_state.h"

/* Starts a kernel at date_s, which is now or later, that takes `seconds` if no messages run. by_memory: memory
 * bandwidth limits it; else the multiprocessors do. */
void interference_start_kernel(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s,
                               double seconds, bool by_memory);

/* Adds `taken` to the shares that messages take from the rank (sign 1), or subtracts it (sign -1). held_s: seconds for
 * which the messages have already occupied multiprocessors without moving bytes. If multiprocessors limit the running
 * kernel, it loses the work that they would have done in these seconds. */
void interference_add_taken_resources(struct scheduler *s, uint32_t rank_index,
                                      struct interference_share taken, double sign, double held_s);

/* Ends the kernel that ends first, if it ends by until_s. Sets *rank_state to the index of its rank in s->rank_state,
 * *op to its op, and s->now_s to its end. Returns false if no kernel ends by until_s. */
bool interference_end_earliest_kernel(struct scheduler *s, double until_s, uint32_t *rank_state,
                                      uint32_t *op);

#endif
