#include "exec/cuda/nccl_links.h"

#include "exec/bootstrap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_NCCL
enum { CONNECT_S = 60 };

/* The state of opening NCCL. One thread opens the communicators and makes a first exchange on each; another watches the
 * time. */
struct nccl_opening {
    struct nccl_links *links;
    struct exec_run *run;
    ncclUniqueId id;
    int device;
    pthread_mutex_t lock;
    pthread_cond_t state_changed;
    /* links begun so far; 0: the communicator of all ranks is being made */
    uint32_t begun_link_count;
    bool is_link_opening_over;
    bool registers_memory;    /* the links are open, and memory is registered with each */
    const char *refused_call; /* the call that was refused; NULL: none */
    char refusal_text[512];
};

static bool record_refused_call(struct nccl_opening *o, const char *call, const char *words,
                                const char *more)
{
    o->refused_call = call;
    snprintf(o->refusal_text, sizeof o->refusal_text, "%s%s%s", words, more[0] != '\0' ? ": " : "",
             more);
    return false;
}

static bool nccl_succeeded(struct nccl_opening *o, const char *call, ncclResult_t result)
{
    const struct nccl *nccl = o->links->nccl;
    return result == ncclSuccess || record_refused_call(o, call, nccl->ncclGetErrorString(result),
                                                        nccl->ncclGetLastError(NULL));
}

static bool cuda_succeeded(struct nccl_opening *o, const char *call, cudaError_t error)
{
    return error == cudaSuccess || record_refused_call(o, call, cudaGetErrorString(error), "");
}

/* Waits until everything on the links' stream has ended. Returns false if that failed or communicators are being
 * aborted. */
static bool await_test_exchange(struct nccl_opening *o, struct nccl_link *link)
{
    static const struct timespec nap = {0, 200000};
    struct nccl_links *l = o->links;
    cudaError_t error = cudaEventRecord(l->event, l->stream);
    while (error == cudaSuccess && (error = cudaEventQuery(l->event)) == cudaErrorNotReady) {
        ncclResult_t result = ncclSuccess;
        if (!nccl_enter_call(l, link))
            return false;
        ncclResult_t asked = l->nccl->ncclCommGetAsyncError(link->comm, &result);
        nccl_leave_call(l);
        if (!nccl_succeeded(o, "ncclCommGetAsyncError", asked != ncclSuccess ? asked : result))
            return false;
        nanosleep(&nap, NULL);
        error = cudaSuccess;
    }
    return cuda_succeeded(o, "cudaEventQuery (of a first exchange)", error);
}

static bool end_group(struct nccl_opening *o, struct nccl_link *link, ncclResult_t put_result)
{
    struct nccl_links *l = o->links;
    ncclResult_t result = l->nccl->ncclGroupEnd();
    nccl_leave_call(l);
    return nccl_succeeded(o, "a first exchange", put_result != ncclSuccess ? put_result : result) &&
           await_test_exchange(o, link);
}

/* Sends one number to the next rank on the link and receives one from the previous rank, where the group has them. */
static bool exchange_test_messages(struct nccl_opening *o, struct nccl_link *link)
{
    struct nccl_links *l = o->links;
    const struct assignment *assignment = &o->run->assignment;
    int64_t size = assignment->member_count_by_group[link->group],
            own = assignment_group_index(assignment, o->run->first_rank, link->group);
    int64_t to = own + link->rank_shift, from = own - link->rank_shift;
    if (!nccl_enter_call(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclGroupStart();
    if (result == ncclSuccess && to >= 0 && to < size)
        result = l->nccl->ncclSend(&l->barrier_operands[0], 1, ncclFloat32, (int)to, link->comm,
                                   l->stream);
    if (result == ncclSuccess && from >= 0 && from < size)
        result = l->nccl->ncclRecv(&l->barrier_operands[1], 1, ncclFloat32, (int)from, link->comm,
                                   l->stream);
    return end_group(o, link, result);
}

static size_t aligned_operand_bytes(const struct operand *operand)
{
    return (operand->element_count * dtype_bytes((enum dtype)operand->dtype) +
            CUDA_SCRATCH_ALIGNMENT - 1) /
           CUDA_SCRATCH_ALIGNMENT * CUDA_SCRATCH_ALIGNMENT;
}

/* Runs one of the link's collectives on temporary memory, so that NCCL connects the members for it. If NCCL chooses
 * among algorithms for the collective, it runs with its real size, since NCCL chooses by size and connects only for the
 * chosen one. If the collective consists of messages, each has one element. */
static bool try_collective(struct nccl_opening *o, struct nccl_link *link, const struct call *op)
{
    struct nccl_links *l = o->links;
    const uint32_t size = o->run->assignment.member_count_by_group[link->group];
    struct work work = *op->work;
    struct call call = *op;
    int64_t *each = NULL;
    struct assignment_exchanged_rows rows;
    call.work = &work;
    call.routed_rows = NULL;
    if (call.read_count == 0)
        call.read[call.read_count++] = call.write[0];
    if (call.write_count == 0)
        call.write[call.write_count++] = call.read[0];
    if (work.kind == WORK_ALL_TO_ALL || work.kind == WORK_SCATTER || work.kind == WORK_SHIFT ||
        (work.kind == WORK_ALL_GATHER && work.collective.relative)) {
        bool one = work.kind == WORK_SCATTER || work.kind == WORK_SHIFT;
        call.read[0].element_count = size;
        call.write[0].element_count = one ? 1 : size;
        if (work.kind == WORK_SHIFT)
            call.read[0].element_count = 1;
    } else if (work.kind == WORK_EXCHANGE) { /* a row of one element between any two members */
        each = heap_alloc(size + 1u, sizeof *each);
        for (uint32_t k = 0; k <= size; k++)
            each[k] = k;
        rows = (struct assignment_exchanged_rows){
            .sent.first_row_by_peer = each, .received.first_row_by_peer = each, .peer_count = size};
        work.exchange.rows = work.exchange.to = size;
        work.exchange.parts = work.exchange.width = 1;
        call.read[0].element_count = call.write[0].element_count = size;
        call.exchanged_rows = &rows;
    } else if (work.kind == WORK_REDUCE_SCATTER) {
        work.collective.relative = 0;
    }
    size_t reads = aligned_operand_bytes(&call.read[0]);
    if (!cuda_succeeded(
            o, "cudaMalloc (of a first exchange)",
            cudaMalloc(&call.read[0].data, reads + aligned_operand_bytes(&call.write[0])))) {
        free(each);
        return false;
    }
    call.write[0].data = (char *)call.read[0].data + reads;
    const struct nccl_member_op p = nccl_make_member_op(
        l, link, size, assignment_group_index(&o->run->assignment, o->run->first_rank, link->group),
        &call, l->stream);
    bool done = false;
    if (nccl_enter_call(l, link)) {
        ncclResult_t result = l->nccl->ncclGroupStart();
        done =
            end_group(o, link, result == ncclSuccess ? nccl_enqueue_member_op(&p, NULL) : result);
    }
    free(each);
    if (done || !atomic_load(&l->is_aborted)) /* else kernels may still write there */
        cudaFree(call.read[0].data);
    return done;
}

/* Runs each shape of the link's collectives once. All members go through the ops of the link's first member, so they
 * agree even if their own ops are faulty. */
static bool try_collectives(struct nccl_opening *o, struct nccl_link *link)
{
    struct exec_run *run = o->run;
    const struct ir *ir = run->ir;
    uint32_t first = group_global_rank_of_member(
        &ir->mesh, &ir->group[link->group],
        assignment_group_instance(&run->assignment, run->first_rank, link->group), 0);
    bool *tried = heap_zalloc((size_t)ir->shape_count + 1, sizeof *tried);
    bool succeeded = true;
    for (uint32_t k = 0; k < assignment_op_count(&run->assignment, first) && succeeded; k++) {
        uint32_t op = assignment_first_op(&run->assignment, first) + k;
        const struct work *work = ir_work(ir, op);
        if (!assignment_is_collective((enum work_kind)work->kind) || tried[ir->op.shape[op]] ||
            (uint32_t)work_comm_group(work) != link->group ||
            !assignment_op_works_on_rank(&run->assignment, first, op))
            continue;
        struct call call;
        run_fill_call(run, first, op, &call);
        tried[ir->op.shape[op]] = true;
        succeeded = try_collective(o, link, &call);
    }
    free(tried);
    return succeeded;
}

static bool try_barrier(struct nccl_opening *o, struct nccl_link *link)
{
    struct nccl_links *l = o->links;
    if (!nccl_enter_call(l, link))
        return false;
    ncclResult_t result = l->nccl->ncclAllReduce(l->barrier_operands, l->barrier_operands, 1,
                                                 ncclFloat32, ncclSum, link->comm, l->stream);
    nccl_leave_call(l);
    return nccl_succeeded(o, "ncclAllReduce (a first barrier)", result) &&
           await_test_exchange(o, link);
}

/* Makes the communicator of all ranks. It is stored in the links only after it is complete, because NCCL cannot abort
 * an incomplete one. */
static bool open_world(struct nccl_opening *o)
{
    struct nccl_links *l = o->links;
    const struct exec_run *run = o->run;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclComm_t comm = NULL;
    if (!nccl_enter_call(l, &l->world))
        return false;
    ncclResult_t result =
        l->nccl->ncclCommInitRankConfig(&comm, (int)bootstrap_process_count(run->world), o->id,
                                        (int)bootstrap_rank(run->world), &config);
    if (result == ncclSuccess)
        l->world.comm = comm;
    nccl_leave_call(l);
    return nccl_succeeded(o, "ncclCommInitRankConfig", result) && !atomic_load(&l->is_aborted);
}

/* Splits the link from the communicator of all ranks, in one call for all instances of its group, and connects its
 * members. A link shares no resources of NCCL with others (config.splitShare is 0), since links are in use at the same
 * time. */
static bool open_link(struct nccl_opening *o, struct nccl_link *link)
{
    struct nccl_links *l = o->links;
    const struct assignment *assignment = &o->run->assignment;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclComm_t comm = NULL;
    if (!nccl_enter_call(l, &l->world))
        return false;
    ncclResult_t result = l->nccl->ncclCommSplit(
        l->world.comm, (int)assignment_group_instance(assignment, o->run->first_rank, link->group),
        (int)assignment_group_index(assignment, o->run->first_rank, link->group), &comm, &config);
    if (result == ncclSuccess)
        link->comm = comm;
    nccl_leave_call(l);
    if (!nccl_succeeded(o, "ncclCommSplit", result) || atomic_load(&l->is_aborted))
        return false;
    return link->rank_shift == 0                        ? try_collectives(o, link)
           : link->rank_shift == NCCL_SHIFT_OF_BARRIERS ? try_barrier(o, link)
                                                        : exchange_test_messages(o, link);
}

/* Runs every op of this process's rank on the link once, at the addresses that it has in a step. All members run the
 * same ops in the same order, and each op has ended before the next one begins. */
static bool run_each_op_in_registered_memory(struct nccl_opening *o, struct nccl_link *link)
{
    struct exec_run *run = o->run;
    const struct assignment *assignment = &run->assignment;
    const struct ir *ir = run->ir;
    const uint32_t rank = run->first_rank, first = assignment_first_op(assignment, rank);
    bool succeeded = true;
    for (uint32_t op = first; op < first + assignment_op_count(assignment, rank) && succeeded;
         op++) {
        const struct work *work = ir_work(ir, op);
        struct call call;
        if (work_kind_info((enum work_kind)work->kind)->stream != STREAM_COMM ||
            nccl_find_link(o->links, work) != link ||
            !assignment_op_works_on_rank(assignment, rank, op))
            continue;
        run_fill_call(run, rank, op, &call);
        if (cuda_op_moves_no_bytes(assignment, &call))
            continue;
        const struct nccl_member_op p = nccl_make_member_op(
            o->links, link, assignment->member_count_by_group[link->group],
            assignment_group_index(assignment, rank, link->group), &call, o->links->stream);
        if (!nccl_enter_call(o->links, link))
            return false;
        ncclResult_t result = o->links->nccl->ncclGroupStart();
        void *scratch = cuda_of_run(run)->rank_states[rank].streams[ir->op.stream[op]].scratch;
        succeeded = end_group(o, link,
                              result == ncclSuccess ? nccl_enqueue_member_op(&p, scratch) : result);
    }
    return succeeded;
}

static bool register_memory(struct nccl_opening *o, struct nccl_link *link)
{
#ifdef HAVE_NCCL_REGISTRATION
    const struct cuda_rank *rank = &cuda_of_run(o->run)->rank_states[o->run->first_rank];
    if (link->rank_shift ==
        NCCL_SHIFT_OF_BARRIERS) /* the number that barriers sum is not in this memory */
        return true;
    if (!nccl_enter_call(o->links, link))
        return false;
    ncclResult_t result = nccl_registration_open(NULL)->ncclCommRegister(
        link->comm, rank->memory[MEMORY_HBM], rank->memory_bytes[MEMORY_HBM], &link->registration);
    nccl_leave_call(o->links);
    return nccl_succeeded(o, "ncclCommRegister", result) &&
           run_each_op_in_registered_memory(o, link);
#else
    (void)o;
    (void)link;
    return true;
#endif
}

/* Opens the links, or registers memory with each, as a thread's function. All processes go through the links in the
 * same order, and finish their exchange on one link before the next. This cannot deadlock: all members of the first
 * link that is not open have no link before it to wait on, so they all reach it. */
static void *open_links_in_order(void *argument)
{
    struct nccl_opening *o = argument;
    bool succeeded = cuda_succeeded(o, "cudaSetDevice", cudaSetDevice(o->device)) &&
                     (o->registers_memory || open_world(o));
    for (uint32_t i = 0; i < o->links->link_count && succeeded; i++) {
        pthread_mutex_lock(&o->lock);
        o->begun_link_count = i + 1;
        pthread_cond_broadcast(&o->state_changed);
        pthread_mutex_unlock(&o->lock);
        succeeded = o->registers_memory ? register_memory(o, &o->links->links[i])
                                        : open_link(o, &o->links->links[i]);
    }
    pthread_mutex_lock(&o->lock);
    o->is_link_opening_over = true;
    pthread_cond_broadcast(&o->state_changed);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* Waits for the thread that opens links. Returns false if for `seconds` it has neither ended nor gone on to another
 * link. */
static bool await_link_opening_thread(struct nccl_opening *o, double seconds)
{
    bool late = false;
    pthread_mutex_lock(&o->lock);
    while (!o->is_link_opening_over && !late) {
        uint32_t at = o->begun_link_count;
        struct timespec deadline;
        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += (time_t)seconds;
        deadline.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
        deadline.tv_sec += deadline.tv_nsec / 1000000000;
        deadline.tv_nsec %= 1000000000;
        int waited = 0;
        while (!o->is_link_opening_over && o->begun_link_count == at && waited == 0)
            waited = pthread_cond_timedwait(&o->state_changed, &o->lock, &deadline);
        late = !o->is_link_opening_over && o->begun_link_count == at;
    }
    pthread_mutex_unlock(&o->lock);
    return !late;
}

static enum status start_and_await_link_opening(struct nccl_opening *o, struct diag *diag)
{
    struct nccl_links *l = o->links;
    const struct exec_run *run = o->run;
    double limit_s = run->options->step_limit_s > 0 ? run->options->step_limit_s : CONNECT_S;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, open_links_in_order, o);
    if (error != 0)
        return diag_error(diag, (struct loc){.name = run->schedule_name}, STATUS_SYSTEM,
                          "cannot start a thread: %s", strerror(error));
    bool late = !await_link_opening_thread(o, limit_s);
    if (late)
        nccl_abort(l);
    if (l->has_unendable_call) {
        pthread_detach(thread); /* the thread stays in NCCL until the program ends */
    } else {
        pthread_join(thread, NULL);
    }
    const bool world = o->begun_link_count == 0;
    const char *group = world ? "" : run->ir->group[l->links[o->begun_link_count - 1].group].name;
    const char *what = world ? "all ranks" : "group ";
    if (late)
        return diag_error(diag, (struct loc){.name = "NCCL"}, STATUS_SYSTEM,
                          "rank %" PRIu32
                          " cannot connect %s%s: not all members have arrived within %g s",
                          run->first_rank, what, group, limit_s);
    return o->refused_call == NULL
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = o->refused_call}, STATUS_SYSTEM, "%s%s: %s",
                            what, group, o->refusal_text);
}

static enum status open_links_watched(struct cuda *cuda, const ncclUniqueId *id,
                                      bool registers_memory, struct diag *diag)
{
    pthread_condattr_t monotonic_cond_attributes;
    /* on the heap, because a thread that cannot be stopped goes on using it */
    struct nccl_opening *o = heap_zalloc(1, sizeof *o);
    o->links = cuda->nccl_links;
    o->run = cuda->run;
    o->id = *id;
    o->registers_memory = registers_memory;
    o->device = cuda->rank_states[cuda->run->first_rank].device;
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_init(&monotonic_cond_attributes);
    pthread_condattr_setclock(&monotonic_cond_attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&o->state_changed, &monotonic_cond_attributes);
    pthread_condattr_destroy(&monotonic_cond_attributes);
    enum status status = start_and_await_link_opening(o, diag);
    if (!cuda->nccl_links->has_unendable_call) {
        pthread_mutex_destroy(&o->lock);
        pthread_cond_destroy(&o->state_changed);
        free(o);
    }
    return status;
}

enum status nccl_connect(struct cuda *cuda, const ncclUniqueId *id, struct diag *diag)
{
    return open_links_watched(cuda, id, false, diag);
}

enum status nccl_register_memory(struct cuda *cuda, struct diag *diag)
{
    const ncclUniqueId none = {0};
    return cuda->run->options->registers_nccl_memory && cuda->nccl_links->link_count > 0
               ? open_links_watched(cuda, &none, true, diag)
               : STATUS_OK;
}
#endif
