#include "exec/cuda/nccl.h"

#include "exec/bootstrap.h"
#include "exec/cuda/nccl_links.h"

#include <stdlib.h>

#ifdef HAVE_NCCL
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
            result = ncclSuccess; /* the call failed, so the communicator's state is unknown */
    pthread_mutex_unlock(&l->poll_lock);
    if (result != ncclSuccess && result != ncclInProgress)
        run_record_failure(cuda->run, cuda->run->first_rank, IR_NONE, "NCCL, in group %s: %s: %s",
                           cuda->run->ir->group[l->links[at - 1].group].name,
                           l->nccl->ncclGetErrorString(result), l->nccl->ncclGetLastError(NULL));
}

/* ---- opening and closing of links ---- */

/* Makes the stream, the event and the two numbers by which barriers run and links are connected. */
static enum status open_barrier_stream(struct nccl_links *l, struct diag *diag)
{
    const char *call = "cudaMalloc (of NCCL's barriers)";
    cudaError_t error = cudaMalloc((void **)&l->barrier_operands, 2 * sizeof *l->barrier_operands);
    if (error == cudaSuccess) {
        call = "cudaStreamCreateWithFlags (of NCCL's barriers)";
        error = cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking);
    }
    if (error == cudaSuccess) {
        call = "cudaMemsetAsync (of NCCL's barriers)";
        error = cudaMemsetAsync(l->barrier_operands, 0, 2 * sizeof *l->barrier_operands, l->stream);
    }
    if (error == cudaSuccess) {
        call = "cudaEventCreateWithFlags (of NCCL's barriers)";
        error = cudaEventCreateWithFlags(&l->event, cudaEventDisableTiming);
    }
    return error == cudaSuccess ? STATUS_OK : cuda_report_error(diag, call, error);
}

/* Makes NCCL's id on rank 0 and sends it to all ranks. */
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
    nccl_list_links(l, cuda->run);
    ncclUniqueId id = {0};
    enum status status = open_barrier_stream(l, diag);
    if (status == STATUS_OK)
        status = broadcast_id(l, cuda->run, &id, diag);
    if (status == STATUS_OK)
        status = wait_for_all_processes(cuda->run, diag);
    if (status == STATUS_OK && l->link_count > 0)
        status = nccl_connect(cuda, &id, diag);
    return status;
}

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
    if (l->has_unendable_call) /* the lost call still uses what is freed below */
        return;
    if (l->event != NULL)
        cudaEventDestroy(l->event);
    if (l->stream != NULL)
        cudaStreamDestroy(l->stream);
    if (l->barrier_operands != NULL)
        cudaFree(l->barrier_operands);
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

/* ---- communication in a step ---- */

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
    struct nccl_links *l = cuda_of_run(run)->nccl_links;
    uint32_t group = (uint32_t)work_comm_group(call->work), rank = stream->rank->rank;
    struct nccl_link *link = nccl_find_link(l, call->work);
    const struct nccl_member_op p = nccl_make_member_op(
        l, link, run->assignment.member_count_by_group[group],
        assignment_group_index(&run->assignment, rank, group), call, stream->handle);
    if (!nccl_enter_call(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclGroupStart();
    if (result == ncclSuccess) {
        ncclResult_t put_result = nccl_enqueue_member_op(&p, stream->scratch);
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
    struct nccl_links *l = cuda_of_run(run)->nccl_links;
    uint32_t group = (uint32_t)work_comm_group(ir_work(run->ir, op));
    struct nccl_link *link = nccl_find_barrier_link(l, group);
    if (!nccl_enter_call(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclAllReduce(l->barrier_operands, l->barrier_operands, 1,
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
