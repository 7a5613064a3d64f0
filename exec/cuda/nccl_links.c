#include "exec/cuda/nccl.h"

#include "exec/bootstrap.h"
#include "exec/cuda/nccl_links.h"

#include <stdlib.h>
#include <time.h>

#ifdef HAVE_NCCL
enum { LEAVE_S = 1 };

/* ---- which there are ---- */

static struct nccl_link *find_link(struct nccl_links *l, uint32_t group, uint32_t channel,
                                   int64_t flow)
{
    for (uint32_t i = 0; i < l->link_count; i++) {
        struct nccl_link *link = &l->links[i];
        if (link->group == group && link->channel == channel && link->rank_shift == flow)
            return link;
    }
    return NULL;
}

/* Returns by how many ranks along the group an op sends its message; negative: towards lower ranks. */
static int64_t rank_shift_of(const struct work *work)
{
    return work->kind == WORK_SEND ? work->p2p.by : work->kind == WORK_RECV ? -work->p2p.by : 0;
}

static uint32_t channel_of(const struct work *work)
{
    return rank_shift_of(work) != 0 ? (uint32_t)work->p2p.channel : 0;
}

struct nccl_link *nccl_find_link(struct nccl_links *links, const struct work *work)
{
    return find_link(links, (uint32_t)work_comm_group(work), channel_of(work), rank_shift_of(work));
}

static void add_link(struct nccl_links *l, struct nccl_link link)
{
    if (find_link(l, link.group, link.channel, link.rank_shift) != NULL)
        return;
    if (l->link_count == l->capacity) {
        l->capacity = (uint32_t)heap_next_capacity(l->capacity, l->link_count + 1);
        l->links = heap_realloc(l->links, l->capacity, sizeof *l->links);
    }
    l->links[l->link_count++] = link;
}

/* Lists the links that any rank needs, in the order of ops, so that every process has the same list. */
static void list_links(struct nccl_links *l, const struct exec_run *run)
{
    const struct ir *ir = run->ir;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        bool barrier = work->kind == WORK_BARRIER;
        if (work_kind_info((enum work_kind)work->kind)->stream != STREAM_COMM && !barrier)
            continue;
        add_link(l, (struct nccl_link){(uint32_t)work_comm_group(work), channel_of(work),
                                       barrier ? NCCL_BARRIERS : rank_shift_of(work), NULL, NULL});
    }
}

/* ---- which thread is in a call ---- */

bool nccl_enter_call(struct nccl_links *l, struct nccl_link *link)
{
    atomic_store(&l->link_in_call, link);
    if (!atomic_load(&l->is_aborted))
        return true;
    atomic_store(&l->link_in_call, NULL);
    return false;
}

void nccl_leave_call(struct nccl_links *l)
{
    atomic_store(&l->link_in_call, NULL);
}

/* Waits until no thread is in a call; false: one still is after LEAVE_S seconds. */
static bool wait_until_no_call(const struct nccl_links *l)
{
    static const struct timespec nap = {0, 1000000};
    double until_s = run_now_s() + LEAVE_S;
    while (atomic_load(&l->link_in_call) != NULL && run_now_s() < until_s)
        nanosleep(&nap, NULL);
    return atomic_load(&l->link_in_call) == NULL;
}

/* Aborts and frees all communicators, which releases the threads and kernels that wait in them. A communicator in which
 * a thread is stuck is aborted first. If the thread returns within LEAVE_S seconds, the others follow; else
 * has_lost_call is set, and the others stay as they are. */
void nccl_abort(struct nccl_links *l)
{
    if (atomic_exchange(&l->is_aborted, true))
        return;
    const struct nccl_link *held = wait_until_no_call(l) ? NULL : atomic_load(&l->link_in_call);
    if (held != NULL && held->comm != NULL)
        l->nccl->ncclCommAbort(held->comm);
    l->has_lost_call = held != NULL && !wait_until_no_call(l);
    for (uint32_t i = 0; i < l->link_count && !l->has_lost_call; i++)
        if (l->links[i].comm != NULL && &l->links[i] != held)
            l->nccl->ncclCommAbort(l->links[i].comm);
    if (l->world.comm != NULL && &l->world != held && !l->has_lost_call)
        l->nccl->ncclCommAbort(l->world.comm);
}

void nccl_links_abort(struct cuda *cuda)
{
    if (cuda->nccl_links == NULL)
        return;
    pthread_mutex_lock(&cuda->nccl_links->poll_lock);
    nccl_abort(cuda->nccl_links);
    pthread_mutex_unlock(&cuda->nccl_links->poll_lock);
}

void nccl_links_poll(struct cuda *cuda)
{
    struct nccl_links *l = cuda->nccl_links;
    ncclResult_t result = ncclSuccess;
    uint32_t at = 0;
    if (l == NULL || pthread_mutex_trylock(&l->poll_lock) != 0)
        return;
    for (; at < l->link_count && !l->is_aborted && result == ncclSuccess; at++)
        if (l->links[at].comm != NULL &&
            l->nccl->ncclCommGetAsyncError(l->links[at].comm, &result) != ncclSuccess)
            result = ncclSuccess; /* the call itself failed: nothing is known */
    pthread_mutex_unlock(&l->poll_lock);
    if (result != ncclSuccess && result != ncclInProgress)
        run_record_failure(cuda->run, cuda->run->first_rank, IR_NONE, "NCCL, in group %s: %s: %s",
                           cuda->run->ir->group[l->links[at - 1].group].name,
                           l->nccl->ncclGetErrorString(result), l->nccl->ncclGetLastError(NULL));
}

/* ---- opening and closing ---- */

static enum status open_stream(struct nccl_links *l, struct diag *diag)
{
    const char *call = "cudaMalloc (of NCCL's barriers)";
    cudaError_t error = cudaMalloc((void **)&l->barrier_number, 2 * sizeof *l->barrier_number);
    if (error == cudaSuccess) {
        call = "cudaStreamCreateWithFlags (of NCCL's barriers)";
        error = cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking);
    }
    if (error == cudaSuccess) {
        call = "cudaMemsetAsync (of NCCL's barriers)";
        error = cudaMemsetAsync(l->barrier_number, 0, 2 * sizeof *l->barrier_number, l->stream);
    }
    if (error == cudaSuccess) {
        call = "cudaEventCreateWithFlags (of NCCL's barriers)";
        error = cudaEventCreateWithFlags(&l->event, cudaEventDisableTiming);
    }
    return error == cudaSuccess ? STATUS_OK : cuda_report_error(diag, call, error);
}

/* Makes the id on rank 0 and sends it to all ranks. */
static enum status broadcast_id(struct nccl_links *l, const struct exec_run *run, ncclUniqueId *id,
                                struct diag *diag)
{
    ncclResult_t result =
        bootstrap_rank(run->world) == 0 ? l->nccl->ncclGetUniqueId(id) : ncclSuccess;
    if (result != ncclSuccess)
        return diag_error(diag, (struct loc){.name = "ncclGetUniqueId"}, STATUS_SYSTEM, "%s: %s",
                          l->nccl->ncclGetErrorString(result), l->nccl->ncclGetLastError(NULL));
    return bootstrap_broadcast(run->world, 0, id, sizeof *id, diag);
}

/* Waits until all processes have reached this call. They take different times to build their plans, which must not
 * count towards the time limit for connecting a link. */
static enum status wait_for_all_processes(const struct exec_run *run, struct diag *diag)
{
    char here = 1, *all = heap_zalloc(bootstrap_process_count(run->world), 1);
    enum status status = bootstrap_all_gather(run->world, &here, all, 1, diag);
    free(all);
    return status;
}

enum status nccl_links_open(struct cuda *cuda, struct diag *diag)
{
    struct nccl_links *l = heap_zalloc(1, sizeof *l);
    pthread_mutex_init(&l->poll_lock, NULL);
    cuda->nccl_links = l;
    l->nccl = nccl_open(diag);
    if (l->nccl == NULL)
        return STATUS_SYSTEM;
    list_links(l, cuda->run);
    ncclUniqueId id = {0};
    enum status status = open_stream(l, diag);
    if (status == STATUS_OK)
        status = broadcast_id(l, cuda->run, &id, diag);
    if (status == STATUS_OK)
        status = wait_for_all_processes(cuda->run, diag);
    if (status == STATUS_OK && l->link_count > 0)
        status = nccl_connect(cuda, &id, diag);
    return status;
}

/* ---- registered memory ---- */

#ifdef HAVE_NCCL_REGISTRATION
enum status nccl_allocate_memory(void **memory, size_t bytes, struct diag *diag)
{
    const struct nccl_registration *nccl = nccl_registration_open(diag);
    const ncclResult_t result = nccl != NULL ? nccl->ncclMemAlloc(memory, bytes) : ncclSuccess;
    if (nccl != NULL && result != ncclSuccess)
        diag_error(diag, (struct loc){.name = "ncclMemAlloc"}, STATUS_SYSTEM, "%zu bytes: %s",
                   bytes, nccl_open(NULL)->ncclGetErrorString(result));
    return nccl != NULL && result == ncclSuccess ? STATUS_OK : STATUS_SYSTEM;
}

void nccl_free_memory(void *memory)
{
    nccl_registration_open(NULL)->ncclMemFree(memory);
}

static void nccl_deregister(struct nccl_link *link)
{
    if (link->registration != NULL)
        nccl_registration_open(NULL)->ncclCommDeregister(link->comm, link->registration);
    link->registration = NULL;
}
#else
enum status nccl_allocate_memory(void **memory, size_t bytes, struct diag *diag)
{
    (void)memory;
    (void)bytes;
    return diag_error(diag, (struct loc){.name = "--nccl-buffers"}, STATUS_BAD_INPUT,
                      "this program was built with an NCCL older than 2.19, which registers none");
}

void nccl_free_memory(void *memory)
{
    (void)memory;
}

static void nccl_deregister(struct nccl_link *link)
{
    (void)link;
}
#endif

void nccl_links_close(struct cuda *cuda)
{
    struct nccl_links *l = cuda->nccl_links;
    if (l == NULL)
        return;
    if (run_must_stop(cuda->run))
        nccl_abort(l);
    for (uint32_t i = 0; i < l->link_count && !l->is_aborted; i++)
        if (l->links[i].comm != NULL) {
            nccl_deregister(&l->links[i]);
            l->nccl->ncclCommDestroy(l->links[i].comm);
        }
    if (l->world.comm != NULL && !l->is_aborted)
        l->nccl->ncclCommDestroy(l->world.comm);
    if (l->has_lost_call) /* all this is still used */
        return;
    if (l->event != NULL)
        cudaEventDestroy(l->event);
    if (l->stream != NULL)
        cudaStreamDestroy(l->stream);
    if (l->barrier_number != NULL)
        cudaFree(l->barrier_number);
    free(l->links);
    pthread_mutex_destroy(&l->poll_lock);
    free(l);
    cuda->nccl_links = NULL;
}

int nccl_version(const struct cuda *cuda)
{
    int version = 0;
    if (cuda->nccl_links != NULL)
        cuda->nccl_links->nccl->ncclGetVersion(&version);
    return version;
}

/* ---- a step ---- */

static bool record_link_failure(const struct nccl_links *l, const struct cuda_rank *rank,
                                uint32_t op, ncclResult_t result)
{
    run_record_failure(rank->run, rank->rank, op, "NCCL: %s: %s",
                       l->nccl->ncclGetErrorString(result), l->nccl->ncclGetLastError(NULL));
    return false;
}

bool nccl_launch(struct cuda_stream *stream, struct call *call)
{
    struct exec_run *run = stream->rank->run;
    struct nccl_links *l = cuda_of(run)->nccl_links;
    uint32_t group = (uint32_t)work_comm_group(call->work), rank = stream->rank->rank;
    struct nccl_link *link = nccl_find_link(l, call->work);
    const struct nccl_part p =
        nccl_part_of(l, link, run->assignment.group_size[group],
                     assignment_group_index(&run->assignment, rank, group), call, stream->handle);
    if (!nccl_enter_call(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclGroupStart();
    if (result == ncclSuccess) {
        ncclResult_t put_result = nccl_enqueue_part(&p, stream->scratch);
        result = l->nccl->ncclGroupEnd();
        result = put_result != ncclSuccess ? put_result : result;
    }
    nccl_leave_call(l);
    return result == ncclSuccess || record_link_failure(l, stream->rank, call->op, result);
}

bool nccl_barrier(struct cuda_rank *rank, uint32_t op)
{
    const struct exec_run *run = rank->run;
    double since_s = run_now_s();
    struct nccl_links *l = cuda_of(run)->nccl_links;
    uint32_t group = (uint32_t)work_comm_group(ir_work(run->ir, op));
    struct nccl_link *link = find_link(l, group, 0, NCCL_BARRIERS);
    if (!nccl_enter_call(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclAllReduce(l->barrier_number, l->barrier_number, 1,
                                                 ncclFloat32, ncclSum, link->comm, l->stream);
    nccl_leave_call(l);
    if (result != ncclSuccess)
        return record_link_failure(l, rank, op, result);
    cudaError_t error = cudaEventRecord(l->event, l->stream);
    while (error == cudaSuccess && !run_must_stop(run)) {
        error = cudaEventQuery(l->event);
        if (error == cudaSuccess)
            return true;
        if (error != cudaErrorNotReady)
            return cuda_record_failure(rank, op, "cudaEventQuery (of a barrier)", error);
        error = cudaSuccess;
        cuda_poll_ended_ops(rank);
        cuda_pause_polling(since_s);
    }
    return error == cudaSuccess ? false : cuda_record_failure(rank, op, "cudaEventRecord", error);
}

#else /* built without NCCL */

enum status nccl_allocate_memory(void **memory, size_t bytes, struct diag *diag)
{
    (void)memory;
    (void)bytes;
    (void)diag;
    return STATUS_SYSTEM;
}

void nccl_free_memory(void *memory)
{
    (void)memory;
}

enum status nccl_register_memory(struct cuda *cuda, struct diag *diag)
{
    (void)cuda;
    (void)diag;
    return STATUS_OK;
}

enum status nccl_links_open(struct cuda *cuda, struct diag *diag)
{
    (void)cuda;
    return diag_error(diag, (struct loc){.name = "NCCL"}, STATUS_BAD_INPUT,
                      "this program was built without NCCL, which several GPUs need; ranks of one "
                      "process can share one GPU");
}

void nccl_links_close(struct cuda *cuda)
{
    (void)cuda;
}

void nccl_links_abort(struct cuda *cuda)
{
    (void)cuda;
}

void nccl_links_poll(struct cuda *cuda)
{
    (void)cuda;
}

bool nccl_launch(struct cuda_stream *stream, struct call *call)
{
    (void)stream;
    (void)call;
    return false;
}

bool nccl_barrier(struct cuda_rank *rank, uint32_t op)
{
    (void)rank;
    (void)op;
    return false;
}

size_t nccl_scratch_bytes(const struct call *call)
{
    (void)call;
    return 0;
}

int nccl_version(const struct cuda *cuda)
{
    (void)cuda;
    return 0;
}
#endif
