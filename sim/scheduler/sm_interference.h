/* sim/scheduler/sm_interference.h: kernels whose GPU's multiprocessors messages take a share of.
 *
 * Such a kernel ends when it has had its seconds of all multiprocessors, so its end moves whenever a
 * message of its rank starts or ends. Until the links do anything new, the ends that are known stand:
 * they are kept by date, one per class of ranks, and the scheduler takes them ahead of the engine's
 * clock. */
#ifndef SIM_BESIDE_H
#define SIM_BESIDE_H

#include "sim/scheduler/scheduler_state.h"

/* A kernel that starts at date_s, now or later, and would take so many seconds alone. */
void interference_start(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s,
                        double seconds);

/* From now on messages of the rank have so much more of its multiprocessors (less: share < 0). */
void interference_take(struct scheduler *s, uint32_t rank_index, double share);

/* Ends the kernel that ends first, if it does so until_s at the latest: *rank_state and *op say which,
 * and it is then s->now_s. */
bool interference_end(struct scheduler *s, double until_s, uint32_t *rank_state, uint32_t *op);

#endif
