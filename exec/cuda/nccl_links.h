/* exec/cuda/nccl_links.h: the communicators of a run, and one communication op on one of them. nccl_links.c opens, uses
 * and closes the communicators, nccl_calls.c finds them and guards calls on them, nccl_open.c connects them, and
 * nccl_op.c makes the op. */
#ifndef EXEC_CUDA_NCCL_LINKS_H
#define EXEC_CUDA_NCCL_LINKS_H

#include "exec/cuda/nccl.h"

#ifdef HAVE_NCCL
#include <stdatomic.h>

/* A communicator of the instance of a group to which this process's rank belongs. It serves one of three purposes: the
 * group's collectives, its barriers, or the messages on one channel from each rank to the rank `rank_shift` further in
 * the group. */
struct nccl_link {
    uint32_t group, channel;
    int64_t rank_shift; /* 0: for collectives; NCCL_SHIFT_OF_BARRIERS: for barriers */
    ncclComm_t comm;    /* NULL: not made yet */
    void *registration; /* of the rank's device memory; NULL: it is not registered */
};

#define NCCL_SHIFT_OF_BARRIERS INT64_MAX

/* The communicators of this process. They are blocking: a call returns when it is done, and the calling thread makes
 * all launches, as CUPTI's records require. Only one thread at a time calls NCCL, apart from the watcher, which asks
 * for errors, and a thread that aborts the communicators. */
struct nccl_links {
    const struct nccl *nccl;
    /* the communicator of all ranks, from which the links are split; it has no other use */
    struct nccl_link world;
    struct nccl_link *links;
    uint32_t link_count, capacity;
    /* the link whose NCCL call is in progress; NULL: there is none. A thread that ends the run aborts that link's
     * communicator only if the call does not return. */
    _Atomic(struct nccl_link *) link_in_call;
    atomic_bool is_aborted; /* no communicator may be used any more */
    /* held while communicators are polled or aborted. It is the last of the backend's locks (exec/cuda/cuda.h): a
     * thread that holds it takes no other lock. */
    pthread_mutex_t poll_lock;
    bool has_unendable_call; /* a thread is still in a call that cannot be ended */
    /* for barriers, and to connect links: a stream, an event, and two numbers in device memory. The first is summed or
     * sent, and the second receives. */
    cudaStream_t stream;
    cudaEvent_t event;
    float *barrier_operands;
};

/* nccl_enter_call() records that the calling thread is in a call of NCCL on a link, until nccl_leave_call(). It returns
 * false if communicators are being aborted; the thread must then use none. */
bool nccl_enter_call(struct nccl_links *links, struct nccl_link *link);
void nccl_leave_call(struct nccl_links *links);

/* Aborts and frees all communicators, which releases the threads and kernels that wait in them. Only the first call
 * does it. If a thread stays in a call, it aborts that call's communicator first; if the thread still does not return,
 * it sets has_unendable_call and leaves the other communicators as they are. */
void nccl_abort(struct nccl_links *links);

/* Makes the communicator of all ranks from the id, splits all links from it and connects them. All processes must call
 * this, with their links in the same order. */
enum status nccl_connect(struct cuda *cuda, const ncclUniqueId *id, struct diag *diag);

/* Lists the links that any rank needs, in the order of ops, so that every process has the same list. */
void nccl_list_links(struct nccl_links *links, const struct exec_run *run);
/* Undoes the registration of the rank's memory with a link; does nothing if the memory is not registered with it. */
void nccl_deregister(struct nccl_link *link);

/* Returns the link on which a communication op runs. */
struct nccl_link *nccl_find_link(struct nccl_links *links, const struct work *work);
/* Returns the link on which barriers of a group run. */
struct nccl_link *nccl_find_barrier_link(struct nccl_links *links, uint32_t group);

/* One communication op on one rank, with its communicator. */
struct nccl_member_op {
    const struct nccl *nccl;
    ncclComm_t comm;
    cudaStream_t stream;
    const struct call *call;
    uint32_t group_size, member_index;
    ncclDataType_t type;
    size_t element_bytes;
};

/* Returns an op's part for the member with index `index` among the `size` members of the link's group. */
struct nccl_member_op nccl_make_member_op(const struct nccl_links *links,
                                          const struct nccl_link *link, uint32_t size,
                                          uint32_t index, const struct call *call,
                                          cudaStream_t stream);

/* Puts the part on its stream. Must be called between ncclGroupStart() and ncclGroupEnd(). scratch has
 * nccl_scratch_bytes() bytes. */
ncclResult_t nccl_enqueue_member_op(const struct nccl_member_op *part, void *scratch);
#endif

#endif
