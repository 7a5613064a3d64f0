/* exec/cuda/cuda.h: the CUDA backend: ranks are GPUs, or share one. Private to exec/cuda/, but for
 * cuda_backend.
 *
 * The host thread of a rank walks its list and puts each op into the queue of its stream. The head
 * of a queue is launched on the CUDA stream once everything that it waits for has been launched,
 * so that a stream only ever waits for events that have been recorded. Where ranks share a GPU, a
 * collective is launched for all members together, by the thread that arrives last
 * (loopback.c); between GPUs each launches its own part (nccl.c). Threads block only where the
 * schedule says so.
 *
 * Nothing is allocated during a step: device memory is one block per rank, the planned arena
 * followed by the scratch memory of every stream; events, plans and calls are made by open(). */
#ifndef EXEC_CUDA_CUDA_H
#define EXEC_CUDA_CUDA_H

#include "exec/backend.h"
#include "exec/cuda/attention.h"
#include "exec/cuda/compute.h"
#include "exec/cuda/library.h"
#include "exec/cuda/matmul.h"
#include "exec/run.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

extern const struct backend cuda_backend;

struct cuda_rank;

/* One stream of one rank. Written with the rank's lock held; what is atomic can be read without, by the watcher, which
 * must not wait for a thread that is held in a call. */
struct cuda_stream {
    struct cuda_rank *rank;
    uint8_t stream; /* row of ir.stream */
    cudaStream_t handle;
    struct plan_stream list;
    _Atomic uint32_t issued;   /* by the host, of the step at hand */
    _Atomic uint32_t launched; /* on the CUDA stream */
    _Atomic uint32_t ended; /* as far as somebody has looked; written with the rank's look_lock */
    atomic_bool held;       /* the head's waits are launched and it has come; others have not */
    void *scratch;
    size_t scratch_bytes;
    float *host_scratch; /* of a host stream */
    void *attention;     /* its handle of cuDNN, or NULL */
};

/* An op that the processor does, in the order of its stream. */
struct cuda_host_work {
    struct exec_run *run;
    struct call call;
    float *scratch;
};

/* The events of an op on one rank; NULL: not recorded. */
struct cuda_events {
    cudaEvent_t begin; /* when it may start: with a trace, and of communication between ranks of
                          one GPU, whose peers wait for it */
    cudaEvent_t moved; /* of that: its own copies have ended */
    cudaEvent_t end;
};

struct cuda_rank {
    struct exec_run *run;
    uint32_t rank;
    int device;
    pthread_mutex_t *lock;            /* own_lock, or one for all that share a GPU */
    struct cuda_stream *stream;       /* (stream_count); those without ops have no handle */
    uint32_t *place;                  /* (ops of the role) in the list of its stream */
    struct cuda_events *events;       /* (ops of the role) */
    atomic_bool *at_barrier;          /* (ops of the role) the host has come to it */
    bool *launches;                   /* (ops of the role) has put something on the device */
    struct cuda_host_work *host_work; /* (ops of the role); NULL: the schedule has no host stream */
    void *memory[MEMORY_COUNT];
    size_t bytes[MEMORY_COUNT]; /* allocated */
    int32_t *fault;             /* host memory that kernels write: op + 1 */
    cudaEvent_t base;           /* the beginning of the step */
    double base_s;              /* on the host's clock */
    bool at_work;               /* counted in run->busy; with look_lock */
    pthread_mutex_t own_lock, look_lock;
};

/* The plan of an op, shared by the ranks of its role. */
struct cuda_prepared {
    const struct product *product;
    struct attention *attention;
    size_t scratch;
};

struct loopback;
struct nccl_links;

/* All NULL: none. */
struct sm_hog {
    cudaStream_t stream;
    void *memory;
    int32_t *stop; /* of the host, which the device sees */
};

struct cuda {
    struct exec_run *run;
    uint32_t ranks;
    struct cuda_rank *rank;
    struct cuda_prepared *prepared; /* (ops) */
    const struct cublaslt *cublaslt;
    struct products *products;
    struct attentions *attentions;
    bool shared;               /* all ranks are on one GPU */
    struct nccl_links *links;  /* NULL: shared, or one rank */
    struct loopback *loopback; /* NULL: not shared */
    bool others_moved; /* under the shared lock: a rendezvous has launched ops of other ranks */
    uint32_t *barrier_begin; /* (groups) */
    atomic_uint *barrier;    /* (barriers of all group instances) members that have come */
    uint32_t barriers;
    struct sm_hog sm_hog;
    size_t launched_ops, recorded_ops; /* of a step that CUPTI timed; recorded: the fewest of any */
    unsigned clock_mhz; /* of the SMs of rank 0's device behind the last step; 0: unknown */
};

static inline struct cuda *cuda_of(const struct exec_run *run)
{
    return run->state;
}

static inline uint32_t cuda_local(const struct cuda_rank *rank, uint32_t op)
{
    return op - plan_first(&rank->run->plan, rank->rank);
}
static inline struct cuda_events *cuda_events(const struct cuda_rank *rank, uint32_t op)
{
    return &rank->events[cuda_local(rank, op)];
}

/* Ends the run: "rank 0: op 3 (...): cudaMemcpyAsync: out of memory". Returns false. */
bool cuda_failed(struct cuda_rank *rank, uint32_t op, const char *call, cudaError_t error);
/* The same before anything runs. */
enum status cuda_refused(struct diag *diag, const char *call, cudaError_t error);

/* ---- launch.c: from queues to CUDA streams ---- */

/* Lists of a rank's ops by stream; then its streams and events; all that can be waited for or timed gets an
 * event. */
void cuda_list_ops(struct cuda_rank *rank);
enum status cuda_open_streams(struct cuda_rank *rank, struct diag *diag);
void cuda_close_streams(struct cuda_rank *rank);
/* Launches whatever can be, of this rank and, where they share a GPU, of those that its ops let go
 * on. Takes the rank's lock. */
void cuda_launch(struct cuda_rank *rank);
/* Looks how far the streams have come, for who waits and for the watcher. Takes the rank's look_lock only: a thread may
 * be launching. */
void cuda_look(struct cuda_rank *rank);
/* Between two looks of a thread that has waited since `since_s` for what the device or another thread does:
 * it yields for some microseconds, and then sleeps for a five-hundredth of what it has waited, within 5 to
 * 50 us, so that an end is seen soon and a long wait keeps no processor busy. */
void cuda_rest(double since_s);
/* Below: with the rank's lock held; false: the run has failed. */
bool cuda_end(struct cuda_stream *stream, uint32_t op);
bool cuda_record(struct cuda_stream *stream, uint32_t op, cudaEvent_t event);
bool cuda_hold(struct cuda_stream *stream, uint32_t op, cudaEvent_t event);

/* ---- memory.c ---- */

enum status cuda_open_memory(struct cuda_rank *rank, struct diag *diag);
void cuda_close_memory(struct cuda_rank *rank);
/* Fills all planned memory that is not bound with NaNs, so that what is read before it has been
 * written shows in the results. */
cudaError_t cuda_poison(const struct cuda_rank *rank);
/* NUMA node of the processor that a device hangs on; -1: unknown. */
int cuda_numa_node(int device);

/* ---- times.c ---- */

/* Around the launches of an op, with its rank's lock held: what the profiling interface records is
 * that op's. Not called for ops that launch nothing. */
void cuda_owns(const struct cuda_rank *rank, uint32_t op);
void cuda_owned(void);
/* Whether ops have events of their own to be timed by. */
bool cuda_times_by_events(const struct exec_run *run);
/* Before a step, with a profile: no op has a time. */
void cuda_forget_times(struct exec_run *run);
/* Writes the times of a step that has ended; NaN: CUPTI has none of the op. */
void cuda_read_times(struct exec_run *run);

/* ---- sm_hog.c ---- */

enum status sm_hog_open(struct cuda *cuda, struct diag *diag);
void sm_hog_begin(struct cuda *cuda); /* of a step */
void sm_hog_end(struct cuda *cuda);   /* fails the run when the kernel was not there to its end */
void sm_hog_close(struct cuda *cuda);

/* ---- describe.c ---- */

/* Before the first call of CUDA or NCCL: what they read from the environment once. What the user has set stays. */
void cuda_environment(void);
/* Counts the GPUs, at least one. STATUS_SYSTEM: none can be used; the message says why. */
enum status cuda_count_devices(int *count, struct diag *diag);
enum status cuda_describe(backend_say *say, void *user, struct diag *diag);
void cuda_describe_run(struct exec_run *run, backend_say *say, void *user);
unsigned cuda_clock_mhz(int device);

/* ---- prepare.c: everything that is planned before the first step ---- */

enum status cuda_prepare(struct cuda *cuda, struct diag *diag);
void cuda_unprepare(struct cuda *cuda);
/* Whether communication stays where it is: of a group of one, in place. */
bool cuda_moves_nothing(const struct exec_plan *plan, const struct call *call);
extern backend_kernel *const cuda_kernels[WORK_KIND_COUNT]; /* context: a struct cuda_stream */

/* ---- loopback.c: communication of ranks that share a GPU ---- */

enum status loopback_open(struct cuda *cuda, struct diag *diag);
void loopback_begin_step(struct cuda *cuda);
/* The op at the head of its queue has come; launches it for all when it was the last. False: not
 * yet, or the run has failed. */
bool loopback_arrive(struct cuda_stream *stream, uint32_t op);
void loopback_close(struct cuda *cuda);

#endif
