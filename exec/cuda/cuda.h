/* exec/cuda/cuda.h: the CUDA backend: ranks are GPUs, or share one. Outside exec/cuda/ the program uses only
 * cuda_backend.
 *
 * The host thread of a rank walks its list and puts each op into the queue of its stream. The head of a queue is
 * launched on the CUDA stream once everything for which it waits has been launched. So a CUDA stream waits only for
 * events that have been recorded. If ranks share a GPU, a collective is launched for all members together, by the
 * thread that arrives last (loopback.c); between GPUs each rank launches its own part (nccl_links.c). Threads block
 * only where the schedule says so, and in calls of NCCL.
 *
 * A thread may hold several locks, which it takes in this order. First a rank's `lock` (own_lock, or that of the first
 * rank if all share a GPU), held while ops are launched; or instead of it a rank's poll_lock, held while it is found
 * out which ops have ended. Then the run's lock, which run_record_failure() takes and gives back before it calls the
 * backend's stop(). Last the poll_lock of NCCL's links, which stop() takes. So a thread that holds one of the first two
 * may end the run.
 *
 * Nothing is allocated during a step: the device memory of a rank is one block, the planned arena followed by the
 * scratch memory of every stream and by tables; events and plans are made by open().
 *
 * The folder exec/cuda/ is the backend whose ranks are NVIDIA GPUs, or share one. */
#ifndef EXEC_CUDA_CUDA_H
#define EXEC_CUDA_CUDA_H

#include "exec/backend.h"
#include "exec/cuda/attention.h"
#include "exec/cuda/compute.h"
#include "exec/cuda/library.h"
#include "exec/cuda/matmul.h"
#include "exec/cuda/rest.h"
#include "exec/run.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

extern const struct backend cuda_backend;

struct cuda_rank;

/* One stream of one rank. In a step, a thread that writes a member other than ended_ops holds the rank's lock. The
 * watcher, which must not wait for a thread that is stuck in a call, reads the atomic members without the lock. */
struct cuda_stream {
    struct cuda_rank *rank;
    uint8_t stream_index_in_ir; /* row of ir.stream */
    cudaStream_t handle;
    struct assignment_stream_ops ops_of_stream;
    _Atomic uint32_t issued_ops;   /* ops that the host has issued in the current step */
    _Atomic uint32_t launched_ops; /* ops launched on the CUDA stream */
    /* ops that have ended as far as cuda_poll_ended_ops() has found out; written with poll_lock held */
    _Atomic uint32_t ended_ops;
    /* the op at the head of the queue is a communication op that other ranks may not have reached */
    atomic_bool waits_for_peers;
    void *scratch;
    size_t scratch_bytes;
    float *host_scratch; /* scratch of a host stream */
    void *cudnn_handle;  /* NULL: the stream has no attention by cuDNN */
};

/* An op on a host stream: CUDA calls a host function for it, in the stream's order. */
struct cuda_host_work {
    struct exec_run *run;
    struct call call;
    float *scratch;
};

/* The CUDA events of an op on one rank; NULL: that event is not recorded. */
struct cuda_events {
    /* after this event the op may start. Recorded if events time ops, and for communication between ranks of one GPU,
     * whose peers wait for it */
    cudaEvent_t begin;
    /* the rank's copies have ended. Recorded only for communication between ranks of one GPU. */
    cudaEvent_t copies_end_event;
    cudaEvent_t end; /* the op has ended */
};

struct cuda_rank {
    struct exec_run *run;
    uint32_t rank;
    int device;
    pthread_mutex_t *lock;         /* own_lock, or one for all ranks that share a GPU */
    struct cuda_stream *streams;   /* (stream_count); those without ops have no handle */
    uint32_t *list_position;       /* (ops of the role) the op's position in its stream's list */
    struct cuda_events *op_events; /* (ops of the role) */
    atomic_bool *host_has_reached_barrier; /* (ops of the role) the host has reached this barrier */
    /* (ops of the role) the op has launched work in this step; only up to date if CUPTI times ops */
    bool *has_launched_by_op;
    struct cuda_host_work *host_work; /* (ops of the role); NULL: the rank has no host stream */
    void *memory[MEMORY_COUNT];
    bool is_memory_from_nccl;          /* device memory was allocated by NCCL */
    size_t memory_bytes[MEMORY_COUNT]; /* allocated bytes */
    /* device memory: for each attention over documents, the keys that its rows see (cuda_visible_keys_of_op()) */
    int32_t *visible_keys;
    /* (shapes) where the documents of each attention begin; NULL: the rank has no tables of documents */
    struct fused_documents *documents;
    /* (shapes of work that moves rows between ranks, MOVED_LIST_COUNT) the lists of rows of each such shape; their
     * pairs are in device memory. cuda_moved_row_pairs_of_op() finds the lists of an op. */
    struct cuda_moved_row_pairs *moved_row_pair_lists;
    int64_t *expert_begins; /* device memory: the tables of cuda_expert_begins_of_op() */
    /* memory of the host, into which a kernel that finds wrong data writes op + 1 */
    int32_t *fault_op_plus_1_address;
    cudaEvent_t step_begin_event; /* an event that is recorded when the step begins */
    double step_begin_event_s;    /* the time of that event on the host's clock */
    /* the rank is counted in run->running_op_count; guarded by poll_lock */
    bool is_rank_counted_as_running;
    pthread_mutex_t own_lock, poll_lock;
};

/* A plan of a product for those groups that have `rows` rows. */
struct cuda_group_product_plan {
    int64_t rows;
    const struct product *product;
};

/* The preparations for an op, made before the first step; the ranks of its role share them. */
struct cuda_prepared_op {
    /* for a product: (group_product_plan_count) plans, ascending by rows, one for each number of rows that a group
     * has */
    struct cuda_group_product_plan *product_plans_by_group_rows;
    uint32_t group_product_plan_count;
    uint8_t epilogue; /* enum product_epilogue: what its one plan computes of the next op */
    bool is_computed_by_previous_op; /* the call of an op before also computes this op */
    bool computes_next_norm;         /* its kernel also computes the norm after it */
    bool rotates_and_packs;          /* its kernel computes a rotated pack (epilogues.h) */
    struct attention *attention;     /* NULL: the op is no attention */
    size_t scratch_bytes;
};

struct loopback_rendezvous_list;
struct nccl_links;

/* The kernel that occupies multiprocessors during every measured step (sm_hog.c). All zero: there is none. */
struct sm_hog {
    cudaStream_t stream;
    void *memory;
    int32_t *stop_flag; /* host memory that the device sees */
    bool is_running;    /* during the current step */
};

struct cuda {
    struct exec_run *run;
    uint32_t rank_count;
    struct cuda_rank *rank_states;
    struct cuda_prepared_op *prepared_ops; /* (ops) */
    /* Counts for each epilogue, over the roles of this process. epilogue_op_count: ops of the kind that the epilogue
     * computes. candidate_count: products whose call could compute such an op, which is the next one. joined_count:
     * those of the candidates whose call does compute it. */
    uint32_t epilogue_op_count[PRODUCT_EPILOGUE_COUNT], candidate_count[PRODUCT_EPILOGUE_COUNT],
        joined_count[PRODUCT_EPILOGUE_COUNT];
    /* the number of norms in these roles, and of those that the kernel of an addition computes */
    uint32_t norm_count, joined_norm_count;
    /* the number of rotations (RoPE) in these roles, and of those that share a kernel with a pack or unpack */
    uint32_t rope_count, joined_rope_count;
    const struct cublaslt *cublaslt;
    struct products *products;
    struct attentions *attentions;
    bool shares_one_gpu;                       /* there are several ranks, all on one GPU */
    struct nccl_links *nccl_links;             /* NULL: ranks share one GPU, or there is one rank */
    struct loopback_rendezvous_list *loopback; /* NULL: ranks do not share one GPU */
    /* ops of other ranks have been launched, whose queues must be looked at again; guarded by the lock that all ranks
     * share */
    bool must_recheck_queues_of_other_ranks;
    /* (groups) the row in barrier_arrivals[] of the group's first barrier */
    uint32_t *first_barrier_by_group;
    atomic_uint *barrier_arrivals; /* (barrier_count) members that have arrived */
    uint32_t barrier_count;
    struct sm_hog sm_hog;
    /* with times by CUPTI: how many ops a step launches, and how many of them have records, in the step with the fewest
     * records */
    size_t launched_ops, recorded_ops;
    struct sampler *sampler; /* samples this process's device; NULL: it is not sampled */
};

static inline struct cuda *cuda_of_run(const struct exec_run *run)
{
    return run->backend_state;
}

static inline bool cuda_is_sync(const struct ir *ir, uint32_t op)
{
    return work_kind_info((enum work_kind)ir->op.kind[op])->stream == STREAM_SYNC;
}

static inline bool cuda_is_communication(const struct ir *ir, uint32_t op)
{
    return work_kind_info((enum work_kind)ir->op.kind[op])->stream == STREAM_COMM;
}

/* True if an op is on a host stream, so that the processor computes it in the stream's order. */
static inline bool cuda_runs_on_host(const struct ir *ir, uint32_t op)
{
    return ir->stream[ir->op.stream[op]].stream_class == STREAM_HOST;
}

static inline uint32_t cuda_op_index_in_role(const struct cuda_rank *rank, uint32_t op)
{
    return op - assignment_first_op(&rank->run->assignment, rank->rank);
}
static inline struct cuda_events *cuda_events_of(const struct cuda_rank *rank, uint32_t op)
{
    return &rank->op_events[cuda_op_index_in_role(rank, op)];
}

/* Records a failure and stops the run: "rank 0: op 3 (...): cudaMemcpyAsync: out of memory". Returns false. */
bool cuda_record_failure(struct cuda_rank *rank, uint32_t op, const char *call, cudaError_t error);
/* Records, as the failure of a stream's op, the words of the library that refused it. Returns false. */
bool cuda_record_library_failure(const struct cuda_stream *stream, uint32_t op, const char *words);
/* Adds a message about a CUDA call that failed before the first step. Returns STATUS_SYSTEM. */
enum status cuda_report_error(struct diag *diag, const char *call, cudaError_t error);

/* ---- launch.c: streams, events, and launches of issued ops ---- */

/* cuda_list_ops() lists a rank's ops by stream; it is called before cuda_open_streams(), which makes the streams, and
 * the events of ops that are waited for, timed or watched. */
void cuda_list_ops(struct cuda_rank *rank);
enum status cuda_open_streams(struct cuda_rank *rank, struct diag *diag);
void cuda_close_streams(struct cuda_rank *rank);
/* Launches every issued op of this rank whose waits have been launched and, on a shared GPU, ops of other ranks that
 * waited for these. Takes the rank's lock. */
void cuda_launch_ready_ops(struct cuda_rank *rank);

/* ---- poll.c: events, and the search for ops that have ended ---- */

/* Asks the device which ops of the rank have ended, and counts them in the run. Fails the run if a kernel has found
 * wrong data. Threads that wait and the watcher call it. It takes only the rank's poll_lock, since another thread may
 * hold the rank's lock while it launches. */
void cuda_poll_ended_ops(struct cuda_rank *rank);
/* Call these with the rank's lock held; they return false if the run has failed. cuda_record_end() records the end
 * event of an op, if it has one. cuda_record_event() records any event on the stream of an op, and cuda_wait_event()
 * makes that stream wait for an event. */
bool cuda_record_end(struct cuda_stream *stream, uint32_t op);
bool cuda_record_event(struct cuda_stream *stream, uint32_t op, cudaEvent_t event);
bool cuda_wait_event(struct cuda_stream *stream, uint32_t op, cudaEvent_t event);

/* ---- memory.c: device memory, host memory, and tables in device memory ---- */

enum status cuda_open_memory(struct cuda_rank *rank, struct diag *diag);
void cuda_close_memory(struct cuda_rank *rank);
/* Returns, for an attention over documents (work_pairs_depend_on_rank()) on a rank, the keys that each row sees, in
 * device memory (visible_key_range_by_row of struct cuda_mask); NULL for other ops. */
const int32_t *cuda_visible_keys_of_op(const struct cuda_rank *rank, uint32_t op);
/* Returns, for an op that moves rows between context ranks, its lists of rows on a rank, [MOVED_LIST_COUNT]
 * (exec/moved_rows.h). Each list is sorted by inner row and then by outer row. NULL for other ops. */
const struct cuda_moved_row_pairs *cuda_moved_row_pairs_of_op(const struct cuda_rank *rank,
                                                              uint32_t op);
/* Returns, for an op on the rows of experts with routing that is not even, where the copies for each expert begin among
 * those that a rank sends, [experts + 1] in device memory. NULL for other ops. */
const int64_t *cuda_expert_begins_of_op(const struct cuda_rank *rank, uint32_t op);
/* Fills the parts of the rank's planned arenas, in all memories, that hold no bound buffer with NaNs, so that a read
 * before the first write shows in the results. */
cudaError_t cuda_fill_memory_with_poison(const struct cuda_rank *rank);
/* Returns the NUMA node to which a device is attached; -1: unknown. */
int cuda_numa_node(int device);

/* ---- documents.c: packed documents as cuDNN takes them ---- */

/* Describes the documents of an attention op on the ranks of its role in this process. Returns false if the op has
 * none. */
bool cuda_find_documents(const struct exec_run *run, uint32_t op, struct attention_documents *d);
/* cuda_documents_bytes() returns how many bytes the tables of a rank's documents take. cuda_upload_documents() copies
 * the tables to `memory`: device memory of that size, aligned to 16 bytes. */
size_t cuda_documents_bytes(const struct cuda_rank *rank);
enum status cuda_upload_documents(struct cuda_rank *rank, void *memory, struct diag *diag);
/* Returns where the documents of an attention op begin in its tensors; NULL for other ops, and if the rank has no
 * tables. */
const struct fused_documents *cuda_documents_of_op(const struct cuda_rank *rank, uint32_t op);

/* ---- times.c: the times of ops ---- */

/* Call these before and after the launches of an op, with the lock of its rank held: CUPTI then assigns everything that
 * is launched between the two calls to the op. The first one also records that the op has launched work
 * (has_launched_by_op). An op that launches nothing needs neither. */
void cuda_begin_cupti_range_of_op(const struct cuda_rank *rank, uint32_t op);
void cuda_end_cupti_range(void);
/* True if the run records a trace, and times each op by CUDA events before and after it; false without a trace, and if
 * CUPTI times the ops. */
bool cuda_takes_op_times_from_events(const struct exec_run *run);
/* Called before a step. If CUPTI times ops, drops its records so far, and marks the times of all ops as unknown
 * (NaN). */
void cuda_forget_times(struct exec_run *run);
/* Fills run->op_times, after a step, from CUDA events or CUPTI's records. Ops of which CUPTI has no times stay NaN. */
void cuda_read_times(struct exec_run *run);

/* ---- sm_hog.c: a kernel that occupies multiprocessors ---- */

enum status sm_hog_open(struct cuda *cuda, struct diag *diag);
/* Starts the kernel if the step is measured and options.hogged_sm_count is not 0. */
void sm_hog_begin(struct cuda *cuda);
/* Ends the kernel. Fails the run if the kernel had ended before. */
void sm_hog_end(struct cuda *cuda);
void sm_hog_close(struct cuda *cuda);

/* ---- describe.c: the environment, the number of GPUs, and descriptions of the device and of the run ---- */

/* Sets environment variables that CUDA and NCCL read at their first call, so call it before that. A value that the user
 * has given CUDA_DEVICE_MAX_CONNECTIONS is kept; NCCL_COMM_BLOCKING is overridden. */
void cuda_set_environment(void);
/* Sets *count to the number of GPUs, at least 1. Returns STATUS_SYSTEM, after a message, if none can be used. */
enum status cuda_count_devices(int *count, struct diag *diag);
enum status cuda_describe(backend_header_function *say, void *user, struct diag *diag);
void cuda_describe_run(struct exec_run *run, backend_header_function *say, void *user);
/* Returns the mean frequency of the SM clock between two times of run_now_s(), in MHz; 0: unknown. */
double cuda_mean_clock_mhz(struct exec_run *run, double begin_s, double end_s);
/* Describes the device between two times of run_now_s(): its clock, power and temperature, what limited the clock, and
 * all samples. Without samples it says nothing. */
void cuda_describe_step(struct exec_run *run, double begin_s, double end_s,
                        backend_header_function *say, void *user);

/* ---- product_ops.c: matrix products ---- */

/* Plans a product for the groups that it has on the call's rank. */
enum status cuda_prepare_product(struct cuda *cuda, const struct call *call,
                                 struct cuda_prepared_op *prepared, struct diag *diag);
backend_kernel cuda_run_product; /* context: a struct cuda_stream */

/* ---- prepare.c: plans and scratch memory of ops ---- */

enum status cuda_prepare_ops(struct cuda *cuda, struct diag *diag);
void cuda_free_prepared_ops(struct cuda *cuda);

/* ---- enqueue.c: functions that put the work of ops on CUDA streams ---- */

/* True if a communication op moves no bytes: its group has one member, and its result, if it has one, is in place. */
bool cuda_op_moves_no_bytes(const struct assignment *assignment, const struct call *call);
extern backend_kernel *const cuda_kernels[WORK_KIND_COUNT]; /* context: a struct cuda_stream */

/* ---- load.c: first launches of kernels ---- */

/* Launches once each distinct op of this process's ranks that runs our own or a library's kernels, apart from NCCL's,
 * so that CUDA loads no kernel during a step. The ranks' arenas in device memory are zero before and after. It takes
 * about as long as one op of each shape. */
enum status cuda_load_kernels(struct cuda *cuda, struct diag *diag);

/* ---- loopback.c: communication of ranks that share a GPU ---- */

enum status loopback_open(struct cuda *cuda, struct diag *diag);
void loopback_begin_step(struct cuda *cuda);
/* Called when a communication op reaches the head of its queue. The last member to arrive launches the op for all.
 * Returns false if it is not launched yet, or if the run has failed. */
bool loopback_arrive(struct cuda_stream *stream, uint32_t op);
void loopback_close(struct cuda *cuda);

#endif
