#include "exec/cuda/nccl.h"

#include "exec/bootstrap.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_NCCL
enum { WAIT_S = 60 };

/* Collectives of a group, or messages that flow by `flow` within it on one channel. */
struct link {
    uint32_t group, instance, channel;
    int64_t flow;    /* 0: collectives; BARRIERS */
    ncclComm_t comm; /* NULL: this rank is not in that instance */
};

static const int64_t BARRIERS = INT64_MAX;

struct nccl_links {
    const struct nccl *nccl;
    struct link *link;
    uint32_t count, capacity;
    bool barriers;
    atomic_bool aborted; /* the communicators are gone */
    cudaStream_t stream; /* of barriers: the number that they sum, and the event behind that */
    cudaEvent_t event;
    void *number;
};

/* ---- which there are ---- */

static struct link *find(const struct nccl_links *l, uint32_t group, uint32_t instance,
                         uint32_t channel, int64_t flow)
{
    for (uint32_t i = 0; i < l->count; i++) {
        struct link *link = &l->link[i];
        if (link->group == group && link->instance == instance && link->channel == channel &&
            link->flow == flow)
            return link;
    }
    return NULL;
}

/* How far messages of an op move along its group. */
static int64_t flow_of(const struct work *work)
{
    return work->kind == WORK_SEND ? work->p2p.by : work->kind == WORK_RECV ? -work->p2p.by : 0;
}

static uint32_t channel_of(const struct work *work)
{
    return flow_of(work) != 0 ? (uint32_t)work->p2p.channel : 0;
}

static void add(struct nccl_links *l, struct link link)
{
    if (find(l, link.group, link.instance, link.channel, link.flow) != NULL)
        return;
    if (l->count == l->capacity) {
        l->capacity = (uint32_t)heap_next_capacity(l->capacity, l->count + 1);
        l->link = heap_realloc(l->link, l->capacity, sizeof *l->link);
    }
    l->link[l->count++] = link;
}

/* In the order of ops, whosever they are: the same list in every process. */
static void list_links(struct nccl_links *l, const struct run *run)
{
    const struct ir *ir = run->ir;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        bool barrier = work->kind == WORK_BARRIER;
        if (work_kind_info((enum work_kind)work->kind)->stream != STREAM_COMM && !barrier)
            continue;
        uint32_t group = (uint32_t)work_group(work);
        l->barriers |= barrier;
        for (uint32_t i = 0; i < run->plan.instances[group]; i++)
            add(l, (struct link){group, i, channel_of(work), barrier ? BARRIERS : flow_of(work),
                                 NULL});
    }
}

/* ---- opening ---- */

static enum status refused(const struct nccl_links *l, const char *call, ncclResult_t result,
                           const char *group, struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = call}, STATUS_SYSTEM, "group %s: %s: %s", group,
                      l->nccl->ncclGetErrorString(result), l->nccl->ncclGetLastError(NULL));
}

/* Calls return before they are done; WAIT_S is as long as they may take. */
static ncclResult_t await(const struct nccl_links *l, ncclComm_t comm, ncclResult_t result)
{
    static const struct timespec nap = {0, 200000};
    double until_s = run_now() + WAIT_S;
    while (result == ncclInProgress && run_now() < until_s && !l->aborted) {
        ncclResult_t asked = l->nccl->ncclCommGetAsyncError(comm, &result);
        if (asked != ncclSuccess)
            return asked;
        if (result == ncclInProgress)
            nanosleep(&nap, NULL);
    }
    return result;
}

static enum status open_link(struct nccl_links *l, const struct run *run, struct link *link,
                             const ncclUniqueId *id, struct diag *diag)
{
    const struct plan *plan = &run->plan;
    if (plan_instance(plan, run->first, link->group) != link->instance)
        return STATUS_OK;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t result =
        l->nccl->ncclCommInitRankConfig(&link->comm, (int)plan->size[link->group], *id,
                                        (int)plan_index(plan, run->first, link->group), &config);
    result = await(l, link->comm, result);
    if (result == ncclSuccess)
        return STATUS_OK;
    const char *group = run->ir->group[link->group].name;
    if (result == ncclInProgress)
        return diag_error(diag, (struct loc){.name = "ncclCommInitRankConfig"}, STATUS_SYSTEM,
                          "group %s: its members have not all come within %d s", group, WAIT_S);
    return refused(l, "ncclCommInitRankConfig", result, group, diag);
}

static enum status open_barriers(struct nccl_links *l, struct diag *diag)
{
    if (!l->barriers)
        return STATUS_OK;
    const char *call = "cudaMalloc (of barriers)";
    cudaError_t error = cudaMalloc(&l->number, sizeof(float));
    if (error == cudaSuccess) {
        call = "cudaMemset (of barriers)";
        error = cudaMemset(l->number, 0, sizeof(float));
    }
    if (error == cudaSuccess) {
        call = "cudaStreamCreateWithFlags (of barriers)";
        error = cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking);
    }
    if (error == cudaSuccess) {
        call = "cudaEventCreateWithFlags (of barriers)";
        error = cudaEventCreateWithFlags(&l->event, cudaEventDisableTiming);
    }
    return error == cudaSuccess ? STATUS_OK : cuda_refused(diag, call, error);
}

enum status nccl_links_open(struct cuda *cuda, struct diag *diag)
{
    const struct run *run = cuda->run;
    struct nccl_links *l = heap_zalloc(1, sizeof *l);
    cuda->links = l;
    l->nccl = nccl_open(diag);
    if (l->nccl == NULL)
        return STATUS_SYSTEM;
    list_links(l, run);
    ncclUniqueId *id = heap_zalloc((size_t)l->count + 1, sizeof *id);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < l->count && bootstrap_rank(run->world) == 0; i++) {
        ncclResult_t result = l->nccl->ncclGetUniqueId(&id[i]);
        if (result != ncclSuccess) {
            status =
                refused(l, "ncclGetUniqueId", result, run->ir->group[l->link[i].group].name, diag);
            break;
        }
    }
    if (status == STATUS_OK)
        status = bootstrap_broadcast(run->world, 0, id, l->count * sizeof *id, diag);
    for (uint32_t i = 0; i < l->count && status == STATUS_OK; i++)
        status = open_link(l, run, &l->link[i], &id[i], diag);
    free(id);
    return status == STATUS_OK ? open_barriers(l, diag) : status;
}

void nccl_links_abort(struct cuda *cuda)
{
    struct nccl_links *l = cuda->links;
    if (l == NULL || atomic_exchange(&l->aborted, true))
        return;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->link[i].comm != NULL)
            l->nccl->ncclCommAbort(l->link[i].comm);
}

void nccl_links_close(struct cuda *cuda)
{
    struct nccl_links *l = cuda->links;
    if (l == NULL)
        return;
    if (run_stopped(cuda->run))
        nccl_links_abort(cuda);
    for (uint32_t i = 0; i < l->count && !l->aborted; i++)
        if (l->link[i].comm != NULL)
            l->nccl->ncclCommDestroy(l->link[i].comm);
    if (l->event != NULL)
        cudaEventDestroy(l->event);
    if (l->stream != NULL)
        cudaStreamDestroy(l->stream);
    if (l->number != NULL)
        cudaFree(l->number);
    free(l->link);
    free(l);
    cuda->links = NULL;
}

int nccl_version(const struct cuda *cuda)
{
    int version = 0;
    if (cuda->links != NULL)
        cuda->links->nccl->ncclGetVersion(&version);
    return version;
}

/* ---- one op ---- */

static const ncclDataType_t types[DTYPE_COUNT] = {
    [DTYPE_BF16] = ncclBfloat16, [DTYPE_F16] = ncclFloat16, [DTYPE_F32] = ncclFloat32,
    [DTYPE_F64] = ncclFloat64,   [DTYPE_I32] = ncclInt32,   [DTYPE_U8] = ncclUint8,
};

struct part {
    const struct nccl *nccl;
    ncclComm_t comm;
    cudaStream_t stream;
    const struct call *call;
    uint32_t size, index;
    ncclDataType_t type;
    size_t element;
};

static char *at(struct operand operand, uint64_t i)
{
    return (char *)operand.data + i * dtype_bytes((enum dtype)operand.dtype);
}

static ncclResult_t send_to(const struct part *p, const void *data, uint64_t count, int64_t peer)
{
    return p->nccl->ncclSend(data, count, p->type, (int)peer, p->comm, p->stream);
}

static ncclResult_t recv_from(const struct part *p, void *data, uint64_t count, int64_t peer)
{
    return p->nccl->ncclRecv(data, count, p->type, (int)peer, p->comm, p->stream);
}

static int64_t member(const struct part *p, int64_t index)
{
    int64_t size = (int64_t)p->size;
    return ((index % size) + size) % size;
}

/* Everybody to everybody: piece k of ours to `to(k)`, piece k of the result from `from(k)`. An
 * all-to-all has them in index order; a relative all-gather counts backwards from its rank, and
 * sends the same piece to all. */
static ncclResult_t exchange(const struct part *p, bool relative)
{
    struct operand y = p->call->write[0], x = p->call->read[0];
    uint64_t each = y.count / p->size;
    ncclResult_t result = ncclSuccess;
    for (int64_t k = 0; k < (int64_t)p->size && result == ncclSuccess; k++) {
        int64_t to = relative ? member(p, p->index + k) : k;
        int64_t from = relative ? member(p, p->index - k) : k;
        result = send_to(p, relative ? x.data : at(x, (uint64_t)k * each), each, to);
        if (result == ncclSuccess)
            result = recv_from(p, at(y, (uint64_t)k * each), each, from);
    }
    return result;
}

/* Piece k of the root's to member k, its own too. */
static ncclResult_t scatter(const struct part *p)
{
    struct operand y = p->call->write[0], x = p->call->read[0];
    int64_t root = p->call->work->broadcast.root;
    ncclResult_t result = ncclSuccess;
    for (int64_t k = 0; p->index == root && k < (int64_t)p->size && result == ncclSuccess; k++)
        result = send_to(p, at(x, (uint64_t)k * y.count), y.count, k);
    return result == ncclSuccess ? recv_from(p, y.data, y.count, root) : result;
}

/* Piece j of a relative reduce-scatter is for the member j places before us: the pieces are put into
 * index order first. */
static const void *in_index_order(const struct part *p, void *scratch, cudaError_t *error)
{
    struct operand x = p->call->read[0];
    uint64_t each = x.count / p->size;
    for (int64_t m = 0; m < (int64_t)p->size && *error == cudaSuccess; m++)
        *error = cudaMemcpyAsync((char *)scratch + (uint64_t)m * each * p->element,
                                 at(x, (uint64_t)member(p, p->index - m) * each), each * p->element,
                                 cudaMemcpyDeviceToDevice, p->stream);
    return scratch;
}

static ncclResult_t reduce_scatter(const struct part *p, void *scratch)
{
    struct operand y = p->call->write[0];
    const void *x = p->call->read[0].data;
    cudaError_t error = cudaSuccess;
    if (p->call->work->collective.relative)
        x = in_index_order(p, scratch, &error);
    return error != cudaSuccess ? ncclUnhandledCudaError
                                : p->nccl->ncclReduceScatter(x, y.data, y.count, p->type, ncclSum,
                                                             p->comm, p->stream);
}

static ncclResult_t put(const struct part *p, void *scratch)
{
    const struct call *c = p->call;
    const struct work *w = c->work;
    const struct operand *x = &c->read[0], *y = &c->write[0];
    switch ((enum work_kind)w->kind) {
    case WORK_ALL_TO_ALL:
        return exchange(p, false);
    case WORK_ALL_GATHER:
        return w->collective.relative ? exchange(p, true)
                                      : p->nccl->ncclAllGather(x->data, y->data, x->count, p->type,
                                                               p->comm, p->stream);
    case WORK_REDUCE_SCATTER:
        return reduce_scatter(p, scratch);
    case WORK_ALL_REDUCE:
        return p->nccl->ncclAllReduce(x->data, y->data, y->count, p->type,
                                      w->all_reduce.op == REDUCE_MAX ? ncclMax : ncclSum, p->comm,
                                      p->stream);
    case WORK_REDUCE:
        return p->nccl->ncclReduce(x->data, c->writes > 0 ? y->data : NULL, x->count, p->type,
                                   ncclSum, (int)w->broadcast.root, p->comm, p->stream);
    case WORK_BROADCAST:
        return p->nccl->ncclBroadcast(c->reads > 0 ? x->data : y->data, y->data, y->count, p->type,
                                      (int)w->broadcast.root, p->comm, p->stream);
    case WORK_SCATTER:
        return scatter(p);
    case WORK_SHIFT: {
        ncclResult_t result = send_to(p, x->data, x->count, member(p, p->index + w->p2p.by));
        return result == ncclSuccess
                   ? recv_from(p, y->data, y->count, member(p, p->index - w->p2p.by))
                   : result;
    }
    case WORK_SEND:
        return send_to(p, x->data, x->count, (int64_t)p->index + w->p2p.by);
    default: /* WORK_RECV */
        return recv_from(p, y->data, y->count, (int64_t)p->index + w->p2p.by);
    }
}

size_t nccl_scratch(const struct call *call)
{
    bool turns = call->work->kind == WORK_REDUCE_SCATTER && call->work->collective.relative;
    return turns ? call->read[0].count * dtype_bytes((enum dtype)call->read[0].dtype) : 0;
}

static bool failed(const struct nccl_links *l, const struct cuda_rank *rank, uint32_t op,
                   ncclResult_t result)
{
    run_failed(rank->run, rank->rank, op, "NCCL: %s: %s", l->nccl->ncclGetErrorString(result),
               l->nccl->ncclGetLastError(NULL));
    return false;
}

bool nccl_launch(struct cuda_stream *stream, struct call *call)
{
    struct run *run = stream->rank->run;
    const struct nccl_links *l = cuda_of(run)->links;
    uint32_t group = (uint32_t)work_group(call->work), rank = stream->rank->rank;
    const struct operand *any = call->writes > 0 ? &call->write[0] : &call->read[0];
    const struct link *link = find(l, group, plan_instance(&run->plan, rank, group),
                                   channel_of(call->work), flow_of(call->work));
    const struct part p = {
        .nccl = l->nccl,
        .comm = link->comm,
        .stream = stream->handle,
        .call = call,
        .size = run->plan.size[group],
        .index = plan_index(&run->plan, rank, group),
        .type = types[any->dtype],
        .element = dtype_bytes((enum dtype)any->dtype),
    };
    ncclResult_t result = l->nccl->ncclGroupStart();
    ncclResult_t put_result = result == ncclSuccess ? put(&p, stream->scratch) : result;
    if (result == ncclSuccess)
        result = l->nccl->ncclGroupEnd();
    result = await(l, p.comm,
                   put_result != ncclSuccess && put_result != ncclInProgress ? put_result : result);
    if (result == ncclSuccess)
        return true;
    return failed(l, stream->rank, call->op, result);
}

bool nccl_barrier(struct cuda_rank *rank, uint32_t op)
{
    const struct run *run = rank->run;
    double since_s = run_now();
    const struct nccl_links *l = cuda_of(run)->links;
    uint32_t group = (uint32_t)work_group(ir_work(run->ir, op));
    const struct link *link =
        find(l, group, plan_instance(&run->plan, rank->rank, group), 0, BARRIERS);
    pthread_mutex_lock(rank->lock);
    ncclResult_t result = await(l, link->comm,
                                l->nccl->ncclAllReduce(l->number, l->number, 1, ncclFloat32,
                                                       ncclSum, link->comm, l->stream));
    cudaError_t error = result == ncclSuccess ? cudaEventRecord(l->event, l->stream) : cudaSuccess;
    pthread_mutex_unlock(rank->lock);
    if (result != ncclSuccess)
        return failed(l, rank, op, result);
    while (error == cudaSuccess && !run_stopped(run)) {
        error = cudaEventQuery(l->event);
        if (error == cudaSuccess)
            return true;
        if (error != cudaErrorNotReady)
            return cuda_failed(rank, op, "cudaEventQuery (of a barrier)", error);
        error = cudaSuccess;
        cuda_look(rank);
        cuda_rest(since_s);
    }
    return error == cudaSuccess ? false : cuda_failed(rank, op, "cudaEventRecord", error);
}

#else /* built without NCCL */

enum status nccl_links_open(struct cuda *cuda, struct diag *diag)
{
    (void)cuda;
    return diag_error(diag, (struct loc){.name = "NCCL"}, STATUS_BAD_INPUT,
                      "this program was built without it; ranks of one process can share a GPU");
}

void nccl_links_close(struct cuda *cuda)
{
    (void)cuda;
}

void nccl_links_abort(struct cuda *cuda)
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

size_t nccl_scratch(const struct call *call)
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
