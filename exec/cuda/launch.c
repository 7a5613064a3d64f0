#include "exec/cuda/cuda.h"

#include "exec/cpu/kernels.h"
#include "exec/cuda/nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* At least one op of every MARK_EVERY consecutive ops of a stream has an event, so that the watcher sees progress. */
enum { MARK_EVERY = 16 };

/* ---- lists of ops, events and streams ---- */

void cuda_list_ops(struct cuda_rank *rank)
{
    struct assignment_stream_ops list[IR_STREAMS_MAX] = {0};
    assignment_list_ops_by_stream(&rank->run->assignment, rank->rank, list, &rank->list_position);
    for (uint32_t s = 0; s < rank->run->ir->stream_count; s++)
        rank->streams[s].ops_of_stream = list[s];
}

/* Returns, for each op, whether an event marks its end. If events time ops, they mark all. Else they mark these: ops
 * for which another op or the host waits, the last op of a stream and the last before a SYNC op, communication, and
 * every MARK_EVERY-th op. */
static bool *find_ops_that_need_end_event(const struct cuda_rank *rank)
{
    const struct exec_run *run = rank->run;
    const struct ir *ir = run->ir;
    uint32_t first = assignment_first_op(&run->assignment, rank->rank),
             count = assignment_op_count(&run->assignment, rank->rank);
    bool *needs_end_event = heap_zalloc((size_t)count + 1, sizeof *needs_end_event);
    uint32_t *last = heap_alloc(ir->stream_count, sizeof *last);
    for (uint32_t s = 0; s < ir->stream_count; s++)
        last[s] = IR_NONE;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t op = first + k;
        uint8_t s = ir->op.stream[op];
        for (uint32_t i = 0; i < ir->op.wait_count[op]; i++)
            needs_end_event[ir->wait[ir->op.wait_begin[op] + i].i - first] = true;
        if (cuda_is_sync(ir, op)) {
            if (last[s] != IR_NONE)
                needs_end_event[last[s]] = true;
            continue;
        }
        last[s] = k;
        if (cuda_takes_op_times_from_events(run) || cuda_is_communication(ir, op) ||
            ir_blocks_host(ir, op) || rank->list_position[k] % MARK_EVERY == 0 ||
            rank->list_position[k] + 1 == rank->streams[s].ops_of_stream.op_count)
            needs_end_event[k] = true;
    }
    free(last);
    return needs_end_event;
}

static enum status new_event(cudaEvent_t *event, bool timed, struct diag *diag)
{
    cudaError_t error =
        cudaEventCreateWithFlags(event, timed ? cudaEventDefault : cudaEventDisableTiming);
    return error == cudaSuccess ? STATUS_OK
                                : cuda_report_error(diag, "cudaEventCreateWithFlags", error);
}

static enum status open_events(struct cuda_rank *rank, struct diag *diag)
{
    const struct exec_run *run = rank->run;
    uint32_t first = assignment_first_op(&run->assignment, rank->rank),
             count = assignment_op_count(&run->assignment, rank->rank);
    bool trace = cuda_takes_op_times_from_events(run), shared = cuda_of_run(run)->shares_one_gpu;
    bool *mark = find_ops_that_need_end_event(rank);
    rank->op_events = heap_zalloc((size_t)count + 1, sizeof *rank->op_events);
    enum status status = new_event(&rank->step_begin_event, true, diag);
    for (uint32_t k = 0; k < count && status == STATUS_OK; k++) {
        struct cuda_events *events = &rank->op_events[k];
        bool meets = shared && cuda_is_communication(run->ir, first + k);
        if (cuda_is_sync(run->ir, first + k))
            continue;
        if (mark[k])
            status = new_event(&events->end, trace, diag);
        if ((trace || meets) && status == STATUS_OK)
            status = new_event(&events->begin, trace, diag);
        if (meets && status == STATUS_OK)
            status = new_event(&events->copies_end_event, false, diag);
    }
    free(mark);
    return status;
}

static void open_host_stream(struct cuda_rank *rank, struct cuda_stream *stream)
{
    size_t floats = cpu_most_scratch_floats(rank->run->ir, stream->ops_of_stream.ops,
                                            stream->ops_of_stream.op_count);
    stream->host_scratch = heap_zalloc(floats + 1, sizeof *stream->host_scratch);
    if (rank->host_work == NULL)
        rank->host_work =
            heap_zalloc((size_t)assignment_op_count(&rank->run->assignment, rank->rank) + 1,
                        sizeof *rank->host_work);
}

static bool stream_has_attention(const struct cuda_rank *rank, const struct cuda_stream *stream)
{
    for (uint32_t i = 0; i < stream->ops_of_stream.op_count; i++)
        if (cuda_of_run(rank->run)->prepared_ops[stream->ops_of_stream.ops[i]].attention != NULL)
            return true;
    return false;
}

/* Makes a stream. A stream for NCCL's kernels gets the highest priority. When a multiprocessor becomes free, its blocks
 * are placed first: they are few, and other GPUs wait for them. */
static enum status new_stream(struct cuda_rank *rank, struct cuda_stream *stream, struct diag *diag)
{
    const char *call = "cudaStreamCreateWithFlags";
    int least = 0, greatest = 0;
    cudaError_t error;
    if (cuda_of_run(rank->run)->nccl_links == NULL ||
        rank->run->ir->stream[stream->stream_index_in_ir].stream_class != STREAM_COMM) {
        error = cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking);
    } else {
        call = "cudaStreamCreateWithPriority";
        error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
        if (error == cudaSuccess)
            error = cudaStreamCreateWithPriority(&stream->handle, cudaStreamNonBlocking, greatest);
    }
    return error == cudaSuccess ? STATUS_OK : cuda_report_error(diag, call, error);
}

enum status cuda_open_streams(struct cuda_rank *rank, struct diag *diag)
{
    const struct ir *ir = rank->run->ir;
    enum status status = STATUS_OK;
    size_t ops = (size_t)assignment_op_count(&rank->run->assignment, rank->rank) + 1;
    rank->host_has_reached_barrier = heap_zalloc(ops, sizeof *rank->host_has_reached_barrier);
    rank->has_launched_by_op = heap_zalloc(ops, sizeof *rank->has_launched_by_op);
    for (uint32_t s = 0; s < ir->stream_count && status == STATUS_OK; s++) {
        struct cuda_stream *stream = &rank->streams[s];
        if (stream->ops_of_stream.op_count == 0)
            continue;
        status = new_stream(rank, stream, diag);
        if (status != STATUS_OK)
            return status;
        if (ir->stream[s].stream_class == STREAM_HOST)
            open_host_stream(rank, stream);
        else if (stream_has_attention(rank, stream))
            status = attentions_open_stream(cuda_of_run(rank->run)->attentions, stream->handle,
                                            &stream->cudnn_handle, diag);
    }
    return status == STATUS_OK ? open_events(rank, diag) : status;
}

static void free_event(cudaEvent_t event)
{
    if (event != NULL)
        cudaEventDestroy(event);
}

void cuda_close_streams(struct cuda_rank *rank)
{
    const struct exec_run *run = rank->run;
    uint32_t count = assignment_op_count(&run->assignment, rank->rank);
    for (uint32_t k = 0; rank->op_events != NULL && k < count; k++) {
        free_event(rank->op_events[k].begin);
        free_event(rank->op_events[k].copies_end_event);
        free_event(rank->op_events[k].end);
    }
    free_event(rank->step_begin_event);
    for (uint32_t s = 0; s < run->ir->stream_count; s++) {
        attentions_close_stream(cuda_of_run(run)->attentions, rank->streams[s].cudnn_handle);
        if (rank->streams[s].handle != NULL)
            cudaStreamDestroy(rank->streams[s].handle);
        free(rank->streams[s].ops_of_stream.ops);
        free(rank->streams[s].host_scratch);
    }
    free(rank->host_work);
    free((void *)rank->host_has_reached_barrier);
    free(rank->has_launched_by_op);
    free(rank->op_events);
    free(rank->list_position);
}

/* ---- launches of ops ---- */

/* True if all ops for which an op waits have been launched. A SYNC op counts as launched if it comes before the op in
 * the list. The result never becomes true for an op that waits for a later op of its own stream. */
static bool dependencies_are_launched(const struct cuda_rank *rank, uint32_t op)
{
    const struct ir *ir = rank->run->ir;
    for (uint32_t i = 0; i < ir->op.wait_count[op]; i++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + i].i;
        if (cuda_is_sync(ir, wait) ? wait > op
                                   : rank->streams[ir->op.stream[wait]].launched_ops <=
                                         rank->list_position[cuda_op_index_in_role(rank, wait)])
            return false;
    }
    return true;
}

static bool wait_for_dependencies(struct cuda_stream *stream, uint32_t op)
{
    const struct cuda_rank *rank = stream->rank;
    const struct ir *ir = rank->run->ir;
    for (uint32_t i = 0; i < ir->op.wait_count[op]; i++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + i].i;
        if (!cuda_is_sync(ir, wait) && ir->op.stream[wait] != stream->stream_index_in_ir &&
            !cuda_wait_event(stream, op, cuda_events_of(rank, wait)->end))
            return false;
    }
    return true;
}

/* Puts an op's work on its CUDA stream. Returns false if the run has failed. */
static bool enqueue_op(struct cuda_stream *stream, uint32_t op)
{
    struct cuda_rank *rank = stream->rank;
    struct exec_run *run = rank->run;
    struct call call;
    run_fill_call(run, rank->rank, op, &call);
    bool host = run->ir->stream[stream->stream_index_in_ir].stream_class == STREAM_HOST;
    bool communication = cuda_is_communication(run->ir, op);
    bool remote = cuda_of_run(run)->nccl_links != NULL && communication;
    bool owns = !host && !cuda_of_run(run)->prepared_ops[op].is_computed_by_previous_op &&
                !(communication && cuda_op_moves_no_bytes(&run->assignment, &call));
    if (owns)
        cuda_begin_cupti_range_of_op(rank, op);
    stream->waits_for_peers = remote; /* NCCL's calls may hold the host until its peers arrive */
    bool was_enqueued =
        remote ? nccl_launch(stream, &call) : cuda_kernels[run->ir->op.kind[op]](stream, &call);
    stream->waits_for_peers = false;
    if (owns)
        cuda_end_cupti_range();
    return was_enqueued;
}

/* Launches the next op of a stream. Returns false if the op cannot be launched now, there is none, or the run has
 * failed. */
static bool launch_next_op_of_stream(struct cuda_stream *stream)
{
    struct cuda_rank *rank = stream->rank;
    struct exec_run *run = rank->run;
    struct cuda *cuda = cuda_of_run(run);
    if (stream->waits_for_peers || stream->launched_ops == stream->issued_ops || run_must_stop(run))
        return false;
    uint32_t op = stream->ops_of_stream.ops[stream->launched_ops];
    if (!dependencies_are_launched(rank, op) || !wait_for_dependencies(stream, op))
        return false;
    bool works = assignment_op_works_on_rank(&run->assignment, rank->rank, op);
    if (works && cuda->shares_one_gpu && cuda_is_communication(run->ir, op)) {
        stream->waits_for_peers = true;
        bool all = loopback_arrive(stream, op);
        cuda->must_recheck_queues_of_other_ranks = cuda->must_recheck_queues_of_other_ranks || all;
        return all;
    }
    if (!cuda_record_event(stream, op, cuda_events_of(rank, op)->begin))
        return false;
    if (works && !enqueue_op(stream, op))
        return false;
    if (!cuda_record_end(stream, op))
        return false;
    stream->launched_ops++;
    return true;
}

static void launch_rank(struct cuda_rank *rank)
{
    for (bool succeeded = true; succeeded;) {
        succeeded = false;
        for (uint32_t s = 0; s < rank->run->ir->stream_count; s++)
            while (launch_next_op_of_stream(&rank->streams[s]))
                succeeded = true;
    }
}

void cuda_launch_ready_ops(struct cuda_rank *rank)
{
    struct cuda *cuda = cuda_of_run(rank->run);
    pthread_mutex_lock(rank->lock);
    launch_rank(rank);
    while (cuda->shares_one_gpu && cuda->must_recheck_queues_of_other_ranks &&
           !run_must_stop(rank->run)) {
        cuda->must_recheck_queues_of_other_ranks = false;
        for (uint32_t r = 0; r < cuda->rank_count; r++)
            launch_rank(&cuda->rank_states[r]);
    }
    pthread_mutex_unlock(rank->lock);
}
