/* exec/cpu/comm.h: messages between ranks that are threads: through shared memory, in order.
 *
 * The members of a group's n-th collective rendezvous: each publishes the addresses of its operands, and once all
 * have arrived, each computes its own part from the others' operands. Sums run over members in index order, so
 * results do not depend on timing. A send meets its receive in the same way. No member leaves before all are done, so
 * buffers may be reused as soon as the op has ended. */
#ifndef EXEC_CPU_COMM_H
#define EXEC_CPU_COMM_H

#include "exec/cpu/cpu.h"

/* Makes the state of all collectives, barriers and messages of a step. comm_begin_step() resets it for the next
 * step. */
struct comm *comm_new(struct exec_run *run);
void comm_begin_step(struct comm *comm);
void comm_free(struct comm *comm);

/* Wakes all threads that wait in this module's functions, which then return false. */
void comm_stop(struct comm *comm);

/* Blocks the host of a rank until all members of a BARRIER have arrived. Returns false if the run is stopped before. */
bool comm_wait_at_barrier(struct comm *comm, uint32_t rank, uint32_t op);

/* True if the rank has reached its part of a collective, barrier, send or receive. */
bool comm_rank_has_arrived(struct comm *comm, uint32_t rank, uint32_t op);

#endif
