/* exec/cuda/nccl.h: communication between GPUs, one process each, by NCCL.
 *
 * A communicator per group, and per group, channel and direction of messages: a send and a receive
 * of one rank that flow apart must not wait for each other. Barriers have one of their own, since their
 * place among the collectives of their group is the host's and not a stream's. All are made before the
 * first step, in an order that is the same everywhere, and each is used at once: NCCL connects members, and takes
 * buffers, at the first use of each kind, which stops the host until its peers come to the same use. In a step, where
 * hosts come to them in different orders, that would be for ever. */
#ifndef EXEC_CUDA_NCCL_H
#define EXEC_CUDA_NCCL_H

#include "exec/cuda/cuda.h"

/* The links of this process's rank, before its arena is allocated. STATUS_SYSTEM: NCCL's words, with the call; or the
 * members of a group have not come within options.limit_s (60 s without). */
enum status nccl_links_open(struct cuda *cuda, struct diag *diag);
void nccl_links_close(struct cuda *cuda);
/* Makes kernels that wait for others give up, and a host that waits in NCCL; for a run that has failed. Any thread. */
void nccl_links_abort(struct cuda *cuda);
/* Puts the rank's part of a communication op on its stream. */
bool nccl_launch(struct cuda_stream *stream, struct call *call);
/* Waits until all members of a barrier's group have come to it: an all-reduce of one number. False: the run
 * has been stopped, or it failed. */
bool nccl_barrier(struct cuda_rank *rank, uint32_t op);
/* Bytes of scratch that an op needs; 0 for most. */
size_t nccl_scratch(const struct call *call);
int nccl_version(const struct cuda *cuda);

#endif
