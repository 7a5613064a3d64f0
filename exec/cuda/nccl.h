/* exec/cuda/nccl.h: communication between GPUs with NCCL, one process for each GPU.
 *
 * Each group has one communicator for its collectives, and one for each channel of its messages and each distance,
 * forwards or backwards, over which they go: a rank's send in one direction and its receive in the other must not wait
 * for each other. Barriers have a communicator of their own, because the host, not a stream, orders them among the
 * collectives of their group.
 *
 * All communicators are split from one of all ranks before the first step, in the same order on every rank. Each is
 * used right after it is made: at the first use of each kind NCCL connects the members and allocates buffers, which
 * blocks the host until its peers reach the same use. In a step hosts would reach first uses in different orders, and
 * deadlock. */
#ifndef EXEC_CUDA_NCCL_H
#define EXEC_CUDA_NCCL_H

#include "exec/cuda/cuda.h"

/* Makes and connects the communicators of this process's rank, before its arena is allocated. Returns STATUS_SYSTEM if
 * a call failed, or if the members of a group have not arrived within options.step_limit_s (60 s if that is 0);
 * STATUS_BAD_INPUT if the program was built without NCCL. */
enum status nccl_links_open(struct cuda *cuda, struct diag *diag);
void nccl_links_close(struct cuda *cuda);
/* Allocates device memory with NCCL. nccl_free_memory() frees it, also after the links have been closed. */
enum status nccl_allocate_memory(void **memory, size_t bytes, struct diag *diag);
void nccl_free_memory(void *memory);
/* Registers the device memory of this process's rank with every communicator that carries data, and runs each
 * communication op once in it, because NCCL connects the members anew when it first uses registered memory. All
 * processes must call this. Does nothing without options.registers_nccl_memory. */
enum status nccl_register_memory(struct cuda *cuda, struct diag *diag);
/* Aborts the communication of a run that has failed: kernels that wait for other ranks end, and hosts that wait in NCCL
 * return. Any thread may call it. */
void nccl_links_abort(struct cuda *cuda);
/* Records a failure of the run if NCCL has met an error on a communicator, such as a peer that has gone. The watcher
 * calls it. */
void nccl_links_poll(struct cuda *cuda);
/* Puts the rank's part of a communication op on its stream. Returns false if the run has failed. */
bool nccl_launch(struct cuda_stream *stream, struct call *call);
/* Waits until all members of a barrier's group have arrived, by an all-reduce of one number. Returns false if the run
 * has been stopped or the call failed. */
bool nccl_barrier(struct cuda_rank *rank, uint32_t op);
/* Returns the bytes of scratch memory that a communication op needs; 0 for most kinds. */
size_t nccl_scratch_bytes(const struct call *call);
int nccl_version(const struct cuda *cuda);

#endif
