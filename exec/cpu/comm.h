/* exec/cpu/comm.h: messages between ranks that are threads: through shared memory, in order.
 *
 * The members of a group's n-th collective meet: each says where its operands lie, and when all
 * have come, each does its own part, reading what the others wrote. Sums run over members in
 * index order, so results do not depend on timing. A send meets its receive the same way. Nobody
 * leaves before everybody is done, so that buffers may be used again when the op has ended. */
#ifndef EXEC_CPU_COMM_H
#define EXEC_CPU_COMM_H

#include "exec/cpu/cpu.h"

/* All meetings of a step: made once, used in every step. */
struct comm *comm_new(struct exec_run *run);
void comm_free(struct comm *comm);
void comm_begin_step(struct comm *comm);

/* Wakes all who wait; they return false. */
void comm_stop(struct comm *comm);

/* The host of a rank waits for the others of a BARRIER. False: the run has been stopped. */
bool comm_barrier(struct comm *comm, uint32_t rank, uint32_t op);

/* Has the rank come to its part of a collective, barrier, send or receive? */
bool comm_arrived(struct comm *comm, uint32_t rank, uint32_t op);

#endif
