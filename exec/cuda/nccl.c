#include "exec/cuda/nccl.h"

#include "exec/bootstrap.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_NCCL
enum { CONNECT_S = 60, LEAVE_S = 1 };

/* Collectives of a group, or messages that flow by `flow` within it on one channel. */
struct link {
    uint32_t group, instance, channel;
    int64_t flow;    /* 0: collectives; BARRIERS */
    ncclComm_t comm; /* NULL: this rank is not in that instance */
};

static const int64_t BARRIERS = INT64_MAX;

/* Communicators are blocking: a call returns when it is done, made by the calling thread, which CUPTI's records are tied
 * to. One thread at a time calls NCCL. It says which communicator it is in, so that whoever ends the run does not take
 * the communicator from under it. */
struct nccl_links {
    const struct nccl *nccl;
    struct link *link;
    uint32_t count, capacity;
    _Atomic(struct link *) inside;
    atomic_bool aborted; /* no communicator may be used any more */
    bool lost;           /* a thread is still in a call that cannot be ended */
    cudaStream_t
        stream; /* of what connects links, and of barriers: the number that they sum, and an event */
    cudaEvent_t event;
    float *number;
};

/* ---- which there are ---- */

static struct link *find(struct nccl_links *l, uint32_t group, uint32_t instance, uint32_t channel,
                         int64_t flow)
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
        for (uint32_t i = 0; i < run->plan.instances[group]; i++)
            add(l, (struct link){group, i, channel_of(work), barrier ? BARRIERS : flow_of(work),
                                 NULL});
    }
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

/* ---- who is in a call ---- */

static bool enter(struct nccl_links *l, struct link *link)
{
    atomic_store(&l->inside, link);
    if (!atomic_load(&l->aborted))
        return true;
    atomic_store(&l->inside, NULL);
    return false;
}

static void leave(struct nccl_links *l)
{
    atomic_store(&l->inside, NULL);
}

/* Waits until nobody is in a call; false: somebody still is after LEAVE_S. */
static bool all_left(const struct nccl_links *l)
{
    static const struct timespec nap = {0, 1000000};
    double until_s = run_now() + LEAVE_S;
    while (atomic_load(&l->inside) != NULL && run_now() < until_s)
        nanosleep(&nap, NULL);
    return atomic_load(&l->inside) == NULL;
}

/* Aborting a communicator lets go who waits in a call of it, as well as its kernels, and frees it: the one that somebody
 * does not leave goes first, the others when nobody is in a call any more. */
static void abort_links(struct nccl_links *l)
{
    if (atomic_exchange(&l->aborted, true))
        return;
    const struct link *held = all_left(l) ? NULL : atomic_load(&l->inside);
    if (held != NULL && held->comm != NULL)
        l->nccl->ncclCommAbort(held->comm);
    l->lost = held != NULL && !all_left(l);
    for (uint32_t i = 0; i < l->count && !l->lost; i++)
        if (l->link[i].comm != NULL && &l->link[i] != held)
            l->nccl->ncclCommAbort(l->link[i].comm);
}

void nccl_links_abort(struct cuda *cuda)
{
    if (cuda->links != NULL)
        abort_links(cuda->links);
}

/* ---- opening ---- */

/* What one thread does while another looks at the time: communicators, and a first exchange on each. */
struct opening {
    struct nccl_links *links;
    struct run *run;
    const ncclUniqueId *id;
    int device;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t next; /* the link that it is at */
    bool over;
    const char *call; /* that was refused; NULL: none */
    char words[512];
};

static bool refused(struct opening *o, const char *call, const char *words, const char *more)
{
    o->call = call;
    snprintf(o->words, sizeof o->words, "%s%s%s", words, more[0] != '\0' ? ": " : "", more);
    return false;
}

static bool nccl_taken(struct opening *o, const char *call, ncclResult_t result)
{
    const struct nccl *nccl = o->links->nccl;
    return result == ncclSuccess ||
           refused(o, call, nccl->ncclGetErrorString(result), nccl->ncclGetLastError(NULL));
}

static bool cuda_taken(struct opening *o, const char *call, cudaError_t error)
{
    return error == cudaSuccess || refused(o, call, cudaGetErrorString(error), "");
}

/* Until what was put on the links' stream has ended. */
static bool await_exchange(struct opening *o, struct link *link)
{
    static const struct timespec nap = {0, 200000};
    struct nccl_links *l = o->links;
    cudaError_t error = cudaEventRecord(l->event, l->stream);
    while (error == cudaSuccess && (error = cudaEventQuery(l->event)) == cudaErrorNotReady) {
        ncclResult_t result = ncclSuccess;
        if (!enter(l, link))
            return false;
        ncclResult_t asked = l->nccl->ncclCommGetAsyncError(link->comm, &result);
        leave(l);
        if (!nccl_taken(o, "ncclCommGetAsyncError", asked != ncclSuccess ? asked : result))
            return false;
        nanosleep(&nap, NULL);
        error = cudaSuccess;
    }
    return cuda_taken(o, "cudaEventQuery (of a first exchange)", error);
}

static bool end_group(struct opening *o, struct link *link, ncclResult_t put_result)
{
    struct nccl_links *l = o->links;
    ncclResult_t result = l->nccl->ncclGroupEnd();
    leave(l);
    return nccl_taken(o, "a first exchange", put_result != ncclSuccess ? put_result : result) &&
           await_exchange(o, link);
}

/* A number to whoever this rank sends to on the link, and one from whoever it receives from. */
static bool exchange_messages(struct opening *o, struct link *link)
{
    struct nccl_links *l = o->links;
    const struct plan *plan = &o->run->plan;
    int64_t size = plan->size[link->group], own = plan_index(plan, o->run->first, link->group);
    int64_t to = own + link->flow, from = own - link->flow;
    if (!enter(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclGroupStart();
    if (result == ncclSuccess && to >= 0 && to < size)
        result = l->nccl->ncclSend(&l->number[0], 1, ncclFloat32, (int)to, link->comm, l->stream);
    if (result == ncclSuccess && from >= 0 && from < size)
        result = l->nccl->ncclRecv(&l->number[1], 1, ncclFloat32, (int)from, link->comm, l->stream);
    return end_group(o, link, result);
}

static size_t operand_bytes(const struct operand *operand)
{
    return (operand->count * dtype_bytes((enum dtype)operand->dtype) + CUDA_SCRATCH_ALIGNMENT - 1) /
           CUDA_SCRATCH_ALIGNMENT * CUDA_SCRATCH_ALIGNMENT;
}

/* One of the link's collectives, with memory of its own. What is made of messages moves an element of each piece; what
 * NCCL has an algorithm for has its real size, by which NCCL chooses the algorithm, and connects it. */
static bool try_collective(struct opening *o, struct link *link, const struct call *op)
{
    struct nccl_links *l = o->links;
    const uint32_t size = o->run->plan.size[link->group];
    struct work work = *op->work;
    struct call call = *op;
    call.work = &work;
    if (call.reads == 0)
        call.read[call.reads++] = call.write[0];
    if (call.writes == 0)
        call.write[call.writes++] = call.read[0];
    if (work.kind == WORK_ALL_TO_ALL || work.kind == WORK_SCATTER || work.kind == WORK_SHIFT ||
        (work.kind == WORK_ALL_GATHER && work.collective.relative)) {
        bool one = work.kind == WORK_SCATTER || work.kind == WORK_SHIFT;
        call.read[0].count = size;
        call.write[0].count = one ? 1 : size;
        if (work.kind == WORK_SHIFT)
            call.read[0].count = 1;
    } else if (work.kind == WORK_REDUCE_SCATTER) {
        work.collective.relative = 0;
    }
    size_t reads = operand_bytes(&call.read[0]);
    if (!cuda_taken(o, "cudaMalloc (of a first exchange)",
                    cudaMalloc(&call.read[0].data, reads + operand_bytes(&call.write[0]))))
        return false;
    call.write[0].data = (char *)call.read[0].data + reads;
    const struct part p = {
        .nccl = l->nccl,
        .comm = link->comm,
        .stream = l->stream,
        .call = &call,
        .size = size,
        .index = plan_index(&o->run->plan, o->run->first, link->group),
        .type = types[call.read[0].dtype],
        .element = dtype_bytes((enum dtype)call.read[0].dtype),
    };
    bool done = false;
    if (enter(l, link)) {
        ncclResult_t result = l->nccl->ncclGroupStart();
        done = end_group(o, link, result == ncclSuccess ? put(&p, NULL) : result);
    }
    if (done || !atomic_load(&l->aborted)) /* else kernels may still write there */
        cudaFree(call.read[0].data);
    return done;
}

/* Every shape of the link's collectives once, as its first member lists them: all members read the same list, whatever
 * is wrong with their own. */
static bool try_collectives(struct opening *o, struct link *link)
{
    struct run *run = o->run;
    const struct ir *ir = run->ir;
    uint32_t first = group_member(&ir->mesh, &ir->group[link->group], link->instance, 0);
    bool *tried = heap_zalloc((size_t)ir->shape_count + 1, sizeof *tried);
    bool going = true;
    for (uint32_t k = 0; k < plan_ops(&run->plan, first) && going; k++) {
        uint32_t op = plan_first(&run->plan, first) + k;
        const struct work *work = ir_work(ir, op);
        if (!plan_is_collective((enum work_kind)work->kind) || tried[ir->op.shape[op]] ||
            (uint32_t)work_group(work) != link->group || !plan_works(&run->plan, first, op))
            continue;
        struct call call;
        run_call(run, first, op, &call);
        tried[ir->op.shape[op]] = true;
        going = try_collective(o, link, &call);
    }
    free(tried);
    return going;
}

static bool try_barrier(struct opening *o, struct link *link)
{
    struct nccl_links *l = o->links;
    if (!enter(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclAllReduce(l->number, l->number, 1, ncclFloat32, ncclSum,
                                                 link->comm, l->stream);
    leave(l);
    return nccl_taken(o, "ncclAllReduce (a first barrier)", result) && await_exchange(o, link);
}

static bool open_link(struct opening *o, struct link *link)
{
    struct nccl_links *l = o->links;
    const struct plan *plan = &o->run->plan;
    if (plan_instance(plan, o->run->first, link->group) != link->instance)
        return true;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclComm_t comm = NULL; /* known to others when it is whole: it cannot be aborted before */
    if (!enter(l, link))
        return false;
    ncclResult_t result =
        l->nccl->ncclCommInitRankConfig(&comm, (int)plan->size[link->group], *o->id,
                                        (int)plan_index(plan, o->run->first, link->group), &config);
    if (result == ncclSuccess)
        link->comm = comm;
    leave(l);
    if (!nccl_taken(o, "ncclCommInitRankConfig", result) || atomic_load(&l->aborted))
        return false;
    return link->flow == 0          ? try_collectives(o, link)
           : link->flow == BARRIERS ? try_barrier(o, link)
                                    : exchange_messages(o, link);
}

/* All processes go through the links in the same order, and each ends its exchange on one before it goes on to the
 * next: the first link that is not done by all is one that all its members come to. */
static void *open_in_order(void *argument)
{
    struct opening *o = argument;
    bool going = cuda_taken(o, "cudaSetDevice", cudaSetDevice(o->device));
    for (uint32_t i = 0; i < o->links->count && going; i++, o->id++) {
        pthread_mutex_lock(&o->lock);
        o->next = i;
        pthread_cond_broadcast(&o->changed);
        pthread_mutex_unlock(&o->lock);
        going = open_link(o, &o->links->link[i]);
    }
    pthread_mutex_lock(&o->lock);
    o->over = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* False: for that long the thread has neither ended nor come to another link. */
static bool await_opening(struct opening *o, double seconds)
{
    bool late = false;
    pthread_mutex_lock(&o->lock);
    while (!o->over && !late) {
        uint32_t at = o->next;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)seconds;
        until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        int waited = 0;
        while (!o->over && o->next == at && waited == 0)
            waited = pthread_cond_timedwait(&o->changed, &o->lock, &until);
        late = !o->over && o->next == at;
    }
    pthread_mutex_unlock(&o->lock);
    return !late;
}

static enum status run_opening(struct opening *o, struct diag *diag)
{
    struct nccl_links *l = o->links;
    const struct run *run = o->run;
    double limit_s = run->options->limit_s > 0 ? run->options->limit_s : CONNECT_S;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, open_in_order, o);
    if (error != 0)
        return diag_error(diag, (struct loc){.name = run->name}, STATUS_SYSTEM,
                          "cannot start a thread: %s", strerror(error));
    bool late = !await_opening(o, limit_s);
    if (late)
        abort_links(l);
    if (l->lost) {
        pthread_detach(thread); /* it stays in NCCL until the program ends */
    } else {
        pthread_join(thread, NULL);
    }
    const char *group = run->ir->group[l->link[o->next].group].name;
    if (late)
        return diag_error(diag, (struct loc){.name = "NCCL"}, STATUS_SYSTEM,
                          "rank %" PRIu32 " cannot connect group %s: its members have not all come "
                          "within %g s",
                          run->first, group, limit_s);
    return o->call == NULL ? STATUS_OK
                           : diag_error(diag, (struct loc){.name = o->call}, STATUS_SYSTEM,
                                        "group %s: %s", group, o->words);
}

static enum status open_links(struct cuda *cuda, const ncclUniqueId *id, struct diag *diag)
{
    pthread_condattr_t monotonic;
    /* of the heap, since a thread that cannot be ended goes on to use it */
    struct opening *o = heap_zalloc(1, sizeof *o);
    o->links = cuda->links;
    o->run = cuda->run;
    o->id = id;
    o->device = cuda->rank[cuda->run->first].device;
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&o->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    enum status status = run_opening(o, diag);
    if (!cuda->links->lost) {
        pthread_mutex_destroy(&o->lock);
        pthread_cond_destroy(&o->changed);
        free(o);
    }
    return status;
}

static enum status open_stream(struct nccl_links *l, struct diag *diag)
{
    const char *call = "cudaMalloc (of NCCL's barriers)";
    cudaError_t error = cudaMalloc((void **)&l->number, 2 * sizeof *l->number);
    if (error == cudaSuccess) {
        call = "cudaStreamCreateWithFlags (of NCCL's barriers)";
        error = cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking);
    }
    if (error == cudaSuccess) {
        call = "cudaMemsetAsync (of NCCL's barriers)";
        error = cudaMemsetAsync(l->number, 0, 2 * sizeof *l->number, l->stream);
    }
    if (error == cudaSuccess) {
        call = "cudaEventCreateWithFlags (of NCCL's barriers)";
        error = cudaEventCreateWithFlags(&l->event, cudaEventDisableTiming);
    }
    return error == cudaSuccess ? STATUS_OK : cuda_refused(diag, call, error);
}

/* Rank 0 makes the links' ids, and tells all. */
static enum status share_ids(struct nccl_links *l, const struct run *run, ncclUniqueId *id,
                             struct diag *diag)
{
    for (uint32_t i = 0; i < l->count && bootstrap_rank(run->world) == 0; i++) {
        ncclResult_t result = l->nccl->ncclGetUniqueId(&id[i]);
        if (result != ncclSuccess)
            return diag_error(diag, (struct loc){.name = "ncclGetUniqueId"}, STATUS_SYSTEM,
                              "%s: %s", l->nccl->ncclGetErrorString(result),
                              l->nccl->ncclGetLastError(NULL));
    }
    return bootstrap_broadcast(run->world, 0, id, l->count * sizeof *id, diag);
}

enum status nccl_links_open(struct cuda *cuda, struct diag *diag)
{
    struct nccl_links *l = heap_zalloc(1, sizeof *l);
    cuda->links = l;
    l->nccl = nccl_open(diag);
    if (l->nccl == NULL)
        return STATUS_SYSTEM;
    list_links(l, cuda->run);
    ncclUniqueId *id = heap_zalloc((size_t)l->count + 1, sizeof *id);
    enum status status = open_stream(l, diag);
    if (status == STATUS_OK)
        status = share_ids(l, cuda->run, id, diag);
    if (status == STATUS_OK && l->count > 0)
        status = open_links(cuda, id, diag);
    if (!l->lost)
        free(id);
    return status;
}

void nccl_links_close(struct cuda *cuda)
{
    struct nccl_links *l = cuda->links;
    if (l == NULL)
        return;
    if (run_stopped(cuda->run))
        abort_links(l);
    for (uint32_t i = 0; i < l->count && !l->aborted; i++)
        if (l->link[i].comm != NULL)
            l->nccl->ncclCommDestroy(l->link[i].comm);
    if (l->lost) /* all this is still used */
        return;
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

/* ---- a step ---- */

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
    struct nccl_links *l = cuda_of(run)->links;
    uint32_t group = (uint32_t)work_group(call->work), rank = stream->rank->rank;
    const struct operand *any = call->writes > 0 ? &call->write[0] : &call->read[0];
    struct link *link = find(l, group, plan_instance(&run->plan, rank, group),
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
    if (!enter(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclGroupStart();
    if (result == ncclSuccess) {
        ncclResult_t put_result = put(&p, stream->scratch);
        result = l->nccl->ncclGroupEnd();
        result = put_result != ncclSuccess ? put_result : result;
    }
    leave(l);
    return result == ncclSuccess || failed(l, stream->rank, call->op, result);
}

bool nccl_barrier(struct cuda_rank *rank, uint32_t op)
{
    const struct run *run = rank->run;
    double since_s = run_now();
    struct nccl_links *l = cuda_of(run)->links;
    uint32_t group = (uint32_t)work_group(ir_work(run->ir, op));
    struct link *link = find(l, group, plan_instance(&run->plan, rank->rank, group), 0, BARRIERS);
    if (!enter(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclAllReduce(l->number, l->number, 1, ncclFloat32, ncclSum,
                                                 link->comm, l->stream);
    leave(l);
    if (result != ncclSuccess)
        return failed(l, rank, op, result);
    cudaError_t error = cudaEventRecord(l->event, l->stream);
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
