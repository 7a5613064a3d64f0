/* exec/cuda/nccl.h: communication between GPUs, one process each, by NCCL.
 *
 * Each group has a communicator for its collectives, and one for each channel and direction of its messages: a send
 * and a receive of one rank in different directions must not wait for each other. Barriers have a communicator of
 * their own, because the host, not a stream, orders them among the collectives of their group. All communicators are
 * split from one of all ranks before the first step, in the same order on every rank, and each is used at once: at the
 * first use of each kind NCCL connects the members and allocates buffers, which blocks the host until its peers reach
 * the same use. During a step hosts reach first uses in different orders, and this would deadlock. */
#ifndef EXEC_CUDA_NCCL_H
#define EXEC_CUDA_NCCL_H

#include "exec/cuda/cuda.h"

/* Makes and connects the communicators of this process's rank, before its arena is allocated. STATUS_SYSTEM: an NCCL
 * call failed, or the members of a group have not arrived within options.step_limit_s (60 s if that is 0). */
enum status nccl_links_open(struct cuda *cuda, struct diag *diag);
void nccl_links_close(struct cuda *cuda);
/* Allocates device memory by NCCL. nccl_free_memory() frees it, also after the links have been closed. */
enum status nccl_allocate_memory(void **memory, size_t bytes, struct diag *diag);
void nccl_free_memory(void *memory);
/* Registers the device memory of this process's rank with every communicator that carries data, and runs each
 * communication op once there, because NCCL connects the members anew at the first use of registered memory. All
 * processes must call it. Without options.registers_nccl_memory it does nothing. */
enum status nccl_register_memory(struct cuda *cuda, struct diag *diag);
/* Makes kernels that wait for other ranks give up, and hosts that wait in NCCL return, when a run has failed. Any
 * thread may call this. */
void nccl_links_abort(struct cuda *cuda);
/* Ends the run if NCCL has met an error on a communicator, such as a peer that has gone. Called by the watcher. */
void nccl_links_poll(struct cuda *cuda);
/* Puts the rank's part of a communication op on its stream. */
bool nccl_launch(struct cuda_stream *stream, struct call *call);
/* Waits until all members of a barrier's group have arrived, by an all-reduce of one number. False: the run has been
 * stopped, or the call failed. */
bool nccl_barrier(struct cuda_rank *rank, uint32_t op);
/* Returns the bytes of scratch that an op needs; 0 for most. */
size_t nccl_scratch_bytes(const struct call *call);
int nccl_version(const struct cuda *cuda);

#endif
