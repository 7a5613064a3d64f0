#include "exec/bootstrap.h"
#include "exec/cuda/cuda.h"
#include "exec/cuda/cupti.h"
#include "exec/cuda/nccl.h"
#include "exec/cuda/nvml.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Makes the rank's device the current device of the calling thread: what the thread creates or launches afterwards
 * belongs to that device. A thread starts with device 0. */
static void make_device_of_rank_current(const struct cuda_rank *rank)
{
    /* this cannot fail: find_device() has made the device current once */
    cudaSetDevice(rank->device);
}

/* ---- opening and closing the backend ---- */

static enum status check_options(const struct exec_run *run, struct diag *diag)
{
    const struct exec_options *o = run->options;
    if (o->copy_link.bytes_per_s > 0 || o->copy_link.latency_s > 0 ||
        o->message_link.bytes_per_s > 0 || o->message_link.latency_s > 0)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                          "links are emulated only on the cpu backend; a GPU uses its real links");
    if (o->registers_nccl_memory && run->world == NULL)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_BAD_INPUT,
                          "memory is registered with NCCL where each rank has a process and a GPU; "
                          "ranks that share a GPU copy without NCCL");
    return STATUS_OK;
}

/* Finds the device, which all ranks of a process share, and makes it current. This comes before anything is created:
 * handles and plans of libraries, streams, events and memory belong to the device that is current when they are
 * created. */
static enum status find_device(struct cuda *cuda, struct diag *diag)
{
    int devices = 0;
    enum status status = cuda_count_devices(&devices, diag);
    if (status != STATUS_OK)
        return status;
    cuda->shares_one_gpu = cuda->run->world == NULL && cuda->rank_count > 1;
    for (uint32_t r = 0; r < cuda->rank_count; r++)
        cuda->rank_states[r].device =
            cuda->run->world != NULL ? (int)bootstrap_local_rank(cuda->run->world) % devices : 0;
    cudaError_t error = cudaSetDevice(cuda->rank_states[cuda->run->first_rank].device);
    return error == cudaSuccess ? STATUS_OK : cuda_report_error(diag, "cudaSetDevice", error);
}

static void init_ranks(struct cuda *cuda)
{
    struct exec_run *run = cuda->run;
    cuda->rank_states = heap_zalloc(cuda->rank_count, sizeof *cuda->rank_states);
    for (uint32_t r = 0; r < cuda->rank_count; r++) {
        struct cuda_rank *rank = &cuda->rank_states[r];
        rank->run = run;
        rank->rank = r;
        pthread_mutex_init(&rank->own_lock, NULL);
        pthread_mutex_init(&rank->poll_lock, NULL);
        rank->lock = &rank->own_lock;
        rank->streams = heap_zalloc(run->ir->stream_count, sizeof *rank->streams);
        for (uint32_t s = 0; s < run->ir->stream_count; s++) {
            rank->streams[s].rank = rank;
            rank->streams[s].stream_index_in_ir = (uint8_t)s;
        }
    }
}

static void open_barriers(struct cuda *cuda)
{
    const struct assignment *assignment = &cuda->run->assignment;
    const struct ir *ir = cuda->run->ir;
    cuda->first_barrier_by_group =
        heap_zalloc((size_t)ir->group_count + 1, sizeof *cuda->first_barrier_by_group);
    for (uint32_t g = 0; g < ir->group_count; g++) {
        cuda->first_barrier_by_group[g] = cuda->barrier_count;
        cuda->barrier_count +=
            assignment->instance_count_by_group[g] * assignment->max_barriers_of_role_by_group[g];
    }
    cuda->barrier_arrivals =
        heap_zalloc((size_t)cuda->barrier_count + 1, sizeof *cuda->barrier_arrivals);
}

/* Sets the scratch bytes of each stream: the largest that one of its ops needs. */
static void set_scratch_sizes(struct cuda *cuda, struct cuda_rank *rank)
{
    for (uint32_t s = 0; s < cuda->run->ir->stream_count; s++) {
        struct cuda_stream *stream = &rank->streams[s];
        for (uint32_t i = 0; i < stream->ops_of_stream.op_count; i++) {
            size_t wanted = cuda->prepared_ops[stream->ops_of_stream.ops[i]].scratch_bytes;
            if (wanted > stream->scratch_bytes)
                stream->scratch_bytes = wanted;
        }
        stream->scratch_bytes = (stream->scratch_bytes + CUDA_SCRATCH_ALIGNMENT - 1) /
                                CUDA_SCRATCH_ALIGNMENT * CUDA_SCRATCH_ALIGNMENT;
    }
}

static enum status open_rank(struct cuda *cuda, struct cuda_rank *rank, struct diag *diag)
{
    if (cuda->shares_one_gpu)
        rank->lock = &cuda->rank_states[cuda->run->first_rank].own_lock;
    enum status status = cuda_open_streams(rank, diag);
    set_scratch_sizes(cuda, rank);
    return status == STATUS_OK ? cuda_open_memory(rank, diag) : status;
}

static void add_note_on_unfused_attention(const struct cuda *cuda)
{
    const char *why = attentions_why_not_fused(cuda->attentions);
    if (why != NULL && cuda->run->options->notes != NULL && run_has_rank(cuda->run, 0))
        diag_note(
            cuda->run->options->notes, (struct loc){.name = "attention"},
            "some or all of it is computed by longhaul's own kernels, which are slower than cuDNN: "
            "%s",
            why);
}

static void add_note_on_missing_epilogues(const struct cuda *cuda)
{
    static const char *const names[PRODUCT_EPILOGUE_COUNT] = {
        [PRODUCT_GELU] = "GELU", [PRODUCT_COLUMN_SUM] = "the gradient of a bias"};
    for (int e = 0; e < PRODUCT_EPILOGUE_COUNT; e++)
        if (cuda->joined_count[e] < cuda->candidate_count[e] && cuda->run->options->notes != NULL &&
            run_has_rank(cuda->run, 0))
            diag_note(cuda->run->options->notes, (struct loc){.name = "epilogues"},
                      "cuBLASLt computes %s with %" PRIu32 " of %" PRIu32
                      " products; for the others it has no algorithm, and a kernel of its own "
                      "computes it",
                      names[e], cuda->joined_count[e], cuda->candidate_count[e]);
}

/* Refuses routing that drops or shuffles copies of tokens, or that sends tokens before it copies them. The kernels know
 * only where the copies for each expert begin (cuda_expert_begins_of_op()), which suffices if a rank sends all its
 * copies in the order of experts. */
static enum status check_routing(const struct ir *ir, struct diag *diag)
{
    bool listed = ir->routing.deals_experts_in_shuffled_order;
    for (uint32_t s = 0; s < ir->shape_count; s++)
        listed |= work_is_permutation(&ir->shape[s]) && work_routing_list_index(&ir->shape[s]) >= 0;
    return listed ? diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                               "backend cuda neither drops nor shuffles copies of tokens, nor "
                               "sends tokens before it copies them; backend cpu, or a schedule of "
                               "--dispatcher alltoall without --expert-capacity, would do")
                  : STATUS_OK;
}

static enum status cuda_open(struct exec_run *run, struct diag *diag)
{
    struct cuda *cuda = heap_zalloc(1, sizeof *cuda);
    run->backend_state = cuda;
    cuda_set_environment();
    cuda->run = run;
    cuda->rank_count = run->assignment.ranks;
    init_ranks(cuda);
    open_barriers(cuda);
    enum status status = check_options(run, diag);
    if (status == STATUS_OK)
        status = check_routing(run->ir, diag);
    if (status == STATUS_OK && run->options->times_by_cupti) /* before there is a context */
        status = cupti_open(diag);
    if (status == STATUS_OK)
        status = find_device(cuda, diag);
    if (status != STATUS_OK)
        return status;
    cuda->cublaslt = cublaslt_open(diag);
    if (cuda->cublaslt == NULL)
        return STATUS_SYSTEM;
    cuda->products = products_new(cuda->cublaslt, diag);
    if (cuda->products == NULL)
        return STATUS_SYSTEM;
    cuda->attentions = attentions_new(cuda->products, run->options->attention, diag);
    if (cuda->attentions == NULL)
        return STATUS_SYSTEM;
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count; r++)
        cuda_list_ops(&cuda->rank_states[r]);
    status = cuda_prepare_ops(cuda, diag);
    if (status == STATUS_OK)
        add_note_on_unfused_attention(cuda);
    if (status == STATUS_OK)
        add_note_on_missing_epilogues(cuda);
    if (status == STATUS_OK && cuda->shares_one_gpu)
        status = loopback_open(cuda, diag);
    if (status == STATUS_OK && run->world != NULL && cuda->rank_count > 1)
        status = nccl_links_open(cuda, diag);
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count && status == STATUS_OK;
         r++)
        status = open_rank(cuda, &cuda->rank_states[r], diag);
    if (status == STATUS_OK && cuda->nccl_links != NULL)
        status = nccl_register_memory(cuda, diag);
    if (status == STATUS_OK)
        status = cuda_load_kernels(cuda, diag);
    if (status == STATUS_OK)
        status = sm_hog_open(cuda, diag);
    if (status == STATUS_OK &&
        (run->options->records_trace || run->options->waits_for_steady_clock))
        cuda->sampler = sampler_new(cuda->rank_states[run->first_rank].device);
    cudaError_t error = status == STATUS_OK ? cudaDeviceSynchronize() : cudaSuccess;
    return error == cudaSuccess ? status : cuda_report_error(diag, "cudaDeviceSynchronize", error);
}

static void cuda_close(struct exec_run *run)
{
    struct cuda *cuda = cuda_of_run(run);
    if (cuda == NULL)
        return;
    sampler_free(cuda->sampler);
    make_device_of_rank_current(&cuda->rank_states[run->first_rank]);
    nccl_links_close(cuda);
    sm_hog_close(cuda);
    (void)cudaDeviceSynchronize(); /* queued work may still use what is freed below */
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count; r++)
        cuda_close_streams(&cuda->rank_states[r]);
    for (uint32_t r = 0; r < cuda->rank_count; r++) {
        struct cuda_rank *rank = &cuda->rank_states[r];
        if (run_has_rank(run, r))
            cuda_close_memory(rank);
        free(rank->streams);
        pthread_mutex_destroy(&rank->own_lock);
        pthread_mutex_destroy(&rank->poll_lock);
    }
    loopback_close(cuda);
    cuda_free_prepared_ops(cuda);
    attentions_free(cuda->attentions);
    products_free(cuda->products);
    free(cuda->first_barrier_by_group);
    free((void *)cuda->barrier_arrivals);
    free(cuda->rank_states);
    free(cuda);
    run->backend_state = NULL;
}

/* ---- access to memory ---- */

/* Returns the address of a rank's memory. While ops are planned there is no memory yet: then it returns an invented
 * address with the same alignment. */
static void *cuda_memory_address(struct exec_run *run, uint32_t rank, enum memory memory)
{
    void *base = cuda_of_run(run)->rank_states[rank].memory[memory];
    return base != NULL ? base : (void *)(uintptr_t)CUDA_SCRATCH_ALIGNMENT;
}

static void cuda_write_memory(struct exec_run *run, uint32_t r, enum memory memory, uint64_t offset,
                              const void *from, uint64_t bytes)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    char *to = (char *)rank->memory[memory] + offset;
    make_device_of_rank_current(rank);
    cudaError_t error = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
    if (error != cudaSuccess)
        cuda_record_failure(rank, IR_NONE, "cudaMemcpy", error);
}

static void cuda_read_memory(struct exec_run *run, uint32_t r, enum memory memory, uint64_t offset,
                             void *to, uint64_t bytes)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    const char *from = (const char *)rank->memory[memory] + offset;
    make_device_of_rank_current(rank);
    cudaError_t error = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
    if (error != cudaSuccess)
        cuda_record_failure(rank, IR_NONE, "cudaMemcpy", error);
}

static void cuda_zero_memory(struct exec_run *run, uint32_t r, enum memory memory, uint64_t offset,
                             uint64_t bytes)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    char *to = (char *)rank->memory[memory] + offset;
    if (memory != MEMORY_HBM) {
        memset(to, 0, bytes);
        return;
    }
    make_device_of_rank_current(rank);
    cudaError_t error = cudaMemset(to, 0, bytes);
    if (error != cudaSuccess)
        cuda_record_failure(rank, IR_NONE, "cudaMemset", error);
}

static bool cuda_draw_block(struct exec_run *run, uint32_t r, enum memory memory, uint64_t offset,
                            enum dtype dtype, const struct draw *draw)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    struct cuda_array to = {(char *)rank->memory[memory] + offset, (uint8_t)dtype};
    if (memory != MEMORY_HBM)
        return false;
    make_device_of_rank_current(rank);
    cudaError_t error = (cudaError_t)cuda_draw(to, draw, NULL);
    if (error != cudaSuccess)
        cuda_record_failure(rank, IR_NONE, "launching a draw of numbers", error);
    return true;
}

/* ---- functions that the executor calls in a step ---- */

/* Records the base event of a step, by which times on the device's clock become times on the host's. First the host
 * waits for the device: NaNs of cuda_fill_memory_with_poison() and copies of cuda_write_memory() may be pending on the
 * legacy stream, for which the streams of the step do not wait. Nothing else runs then, so the event ends at most a few
 * microseconds before the host sees it. */
static void record_step_begin_event(struct cuda_rank *rank)
{
    cudaError_t settled = cudaDeviceSynchronize();
    if (settled != cudaSuccess) {
        cuda_record_failure(rank, IR_NONE, "cudaDeviceSynchronize", settled);
        return;
    }
    cudaStream_t stream = NULL;
    for (uint32_t s = 0; s < rank->run->ir->stream_count && stream == NULL; s++)
        stream = rank->streams[s].handle;
    cudaError_t error = cudaEventRecord(rank->step_begin_event, stream);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(rank->step_begin_event);
    rank->step_begin_event_s = run_now_s();
    if (error != cudaSuccess)
        cuda_record_failure(rank, IR_NONE, "cudaEventSynchronize", error);
}

static void cuda_begin_step(struct exec_run *run)
{
    struct cuda *cuda = cuda_of_run(run);
    if (cuda->shares_one_gpu)
        loopback_begin_step(cuda);
    for (uint32_t i = 0; i < cuda->barrier_count; i++)
        atomic_store(&cuda->barrier_arrivals[i], 0);
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count; r++) {
        struct cuda_rank *rank = &cuda->rank_states[r];
        make_device_of_rank_current(rank);
        *rank->fault_op_plus_1_address = 0;
        for (uint32_t k = 0; k < assignment_op_count(&run->assignment, r); k++)
            atomic_store(&rank->host_has_reached_barrier[k], false);
        for (uint32_t s = 0; s < run->ir->stream_count; s++) {
            struct cuda_stream *stream = &rank->streams[s];
            stream->issued_ops = stream->launched_ops = stream->ended_ops = 0;
            stream->waits_for_peers = false;
        }
        cudaError_t error =
            run->options->finds_unwritten_reads ? cuda_fill_memory_with_poison(rank) : cudaSuccess;
        if (error != cudaSuccess)
            cuda_record_failure(rank, IR_NONE, "cudaMemset", error);
        record_step_begin_event(rank);
    }
    cuda_forget_times(run);
    sm_hog_begin(cuda);
}

static bool cuda_enqueue(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    make_device_of_rank_current(rank);
    pthread_mutex_lock(rank->lock);
    rank->streams[run->ir->op.stream[op]].issued_ops++;
    pthread_mutex_unlock(rank->lock);
    cuda_launch_ready_ops(rank);
    return !run_must_stop(run);
}

/* Polls until the first `count` ops of a stream have ended. It never calls a CUDA function that blocks, because the
 * thread must be able to return when a run has stalled and is stopped. Returns false if the run has failed. */
static bool poll_until_ended(struct cuda_rank *rank, uint8_t stream, uint32_t count)
{
    double since_s = run_now_s();
    for (;;) {
        cuda_poll_ended_ops(rank);
        if (run_must_stop(rank->run))
            return false;
        if (rank->streams[stream].ended_ops >= count)
            return true;
        cuda_pause_polling(since_s);
    }
}

static bool cuda_wait_stream(struct exec_run *run, uint32_t r, uint8_t stream)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    return poll_until_ended(rank, stream, rank->streams[stream].issued_ops);
}

static bool cuda_wait_op(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    return poll_until_ended(rank, run->ir->op.stream[op],
                            rank->list_position[cuda_op_index_in_role(rank, op)] + 1);
}

static bool cuda_barrier(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cuda *cuda = cuda_of_run(run);
    const struct assignment *assignment = &run->assignment;
    double since_s = run_now_s();
    uint32_t group = (uint32_t)ir_work(run->ir, op)->barrier.group;
    make_device_of_rank_current(&cuda->rank_states[r]);
    if (cuda->nccl_links != NULL) {
        atomic_store(
            &cuda->rank_states[r]
                 .host_has_reached_barrier[cuda_op_index_in_role(&cuda->rank_states[r], op)],
            true);
        return nccl_barrier(&cuda->rank_states[r], op);
    }
    atomic_uint *arrivals =
        &cuda->barrier_arrivals[cuda->first_barrier_by_group[group] +
                                assignment_group_instance(assignment, r, group) *
                                    assignment->max_barriers_of_role_by_group[group] +
                                assignment->collective_number_by_op[op]];
    atomic_store(&cuda->rank_states[r]
                      .host_has_reached_barrier[cuda_op_index_in_role(&cuda->rank_states[r], op)],
                 true);
    atomic_fetch_add(arrivals, 1);
    while (atomic_load(arrivals) < assignment->member_count_by_group[group] &&
           !run_must_stop(run)) {
        cuda_poll_ended_ops(&cuda->rank_states[r]);
        cuda_pause_polling(since_s);
    }
    return !run_must_stop(run);
}

static bool cuda_finish(struct exec_run *run, uint32_t rank)
{
    for (uint32_t s = 0; s < run->ir->stream_count; s++)
        if (!cuda_wait_stream(run, rank, (uint8_t)s))
            return false;
    return true;
}

static void cuda_record_passed_sync(struct exec_run *run, uint32_t rank, uint32_t op)
{
    (void)run; /* later ops are issued later, so there is no thread to notify */
    (void)rank;
    (void)op;
}

static void cuda_end_step(struct exec_run *run)
{
    struct cuda *cuda = cuda_of_run(run);
    sm_hog_end(cuda);
    cuda_read_times(run);
}

/* ---- functions that the watcher and run_record_failure() call ---- */

/* Finds out which ops have ended on the device, since a host thread that is blocked in a call cannot. Also finds out
 * whether NCCL has met an error. */
static void cuda_poll_all_ranks(struct exec_run *run)
{
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count; r++)
        cuda_poll_ended_ops(&cuda_of_run(run)->rank_states[r]);
    nccl_links_poll(cuda_of_run(run));
}

/* Stops a run. Host threads that wait notice this by themselves, but kernels that wait for other GPUs must be
 * aborted. */
static void cuda_stop(struct exec_run *run)
{
    nccl_links_abort(cuda_of_run(run));
}

static enum op_state cuda_op_state(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    if (!run_has_rank(run, r))
        return OP_NOT_ISSUED; /* the rank is in another process, so its state is not known here */
    if (work_kind_info((enum work_kind)run->ir->op.kind[op])->stream == STREAM_SYNC) {
        uint32_t host = atomic_load(&run->host_op[r]);
        return host > op ? OP_DONE : OP_NOT_ISSUED;
    }
    const struct cuda_stream *stream = &rank->streams[run->ir->op.stream[op]];
    uint32_t place = rank->list_position[cuda_op_index_in_role(rank, op)];
    bool remote = !cuda_of_run(run)->shares_one_gpu &&
                  work_kind_info((enum work_kind)run->ir->op.kind[op])->stream == STREAM_COMM;
    enum op_state state = OP_QUEUED;
    if (place < stream->ended_ops)
        state = OP_DONE;
    else if (place >= stream->issued_ops)
        state = OP_NOT_ISSUED;
    else if (place < stream->launched_ops)
        state = place > stream->ended_ops ? OP_QUEUED : remote ? OP_AT_RENDEZVOUS : OP_RUNNING;
    else if (place == stream->launched_ops && stream->waits_for_peers)
        state = OP_AT_RENDEZVOUS;
    return state;
}

static bool cuda_rank_has_arrived(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cuda_rank *rank = &cuda_of_run(run)->rank_states[r];
    if (!run_has_rank(run, r) || !assignment_op_works_on_rank(&run->assignment, r, op))
        return false; /* the op does nothing on the rank, or the rank is in another process */
    if (run->ir->op.kind[op] == WORK_BARRIER)
        return atomic_load(&rank->host_has_reached_barrier[cuda_op_index_in_role(rank, op)]);
    enum op_state state = cuda_op_state(run, r, op);
    return state == OP_AT_RENDEZVOUS || state == OP_RUNNING || state == OP_DONE;
}

const struct backend cuda_backend = {
    .name = "cuda",
    .summary = "NVIDIA GPUs: CUDA streams, cuBLASLt, cuDNN; ranks that share one, or NCCL",
    .supports_processes = true,
    .kernel = cuda_kernels,
    .describe = cuda_describe,
    .describe_run = cuda_describe_run,
    .clock_mhz = cuda_mean_clock_mhz,
    .describe_step = cuda_describe_step,
    .open = cuda_open,
    .close = cuda_close,
    .memory = cuda_memory_address,
    .put = cuda_write_memory,
    .get = cuda_read_memory,
    .clear = cuda_zero_memory,
    .draw = cuda_draw_block,
    .begin_step = cuda_begin_step,
    .end_step = cuda_end_step,
    .enqueue = cuda_enqueue,
    .wait_stream = cuda_wait_stream,
    .wait_op = cuda_wait_op,
    .barrier = cuda_barrier,
    .finish = cuda_finish,
    .record_passed_sync = cuda_record_passed_sync,
    .watch = cuda_poll_all_ranks,
    .stop = cuda_stop,
    .state = cuda_op_state,
    .arrived = cuda_rank_has_arrived,
};
