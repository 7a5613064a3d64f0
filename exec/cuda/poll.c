/* The events that mark the ends of ops, the search for ops that have ended, and the pauses of threads that search. */
#include "exec/cuda/cuda.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

bool cuda_record_event(struct cuda_stream *stream, uint32_t op, cudaEvent_t event)
{
    cudaError_t error = event == NULL ? cudaSuccess : cudaEventRecord(event, stream->handle);
    return error == cudaSuccess || cuda_record_failure(stream->rank, op, "cudaEventRecord", error);
}

bool cuda_wait_event(struct cuda_stream *stream, uint32_t op, cudaEvent_t event)
{
    cudaError_t error = cudaStreamWaitEvent(stream->handle, event, 0);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, op, "cudaStreamWaitEvent", error);
}

bool cuda_record_end(struct cuda_stream *stream, uint32_t op)
{
    return cuda_record_event(stream, op, cuda_events_of(stream->rank, op)->end);
}

/* Returns where, in the stream's list, the first op is that has an event, is launched and is not known to have ended;
 * IR_NONE: there is none. */
static uint32_t next_position_with_end_event(const struct cuda_stream *stream)
{
    for (uint32_t i = stream->ended_ops; i < stream->launched_ops; i++)
        if (cuda_events_of(stream->rank, stream->ops_of_stream.ops[i])->end != NULL)
            return i;
    return IR_NONE;
}

/* Finds out whether the launched ops have ended, if no op with an event is left among those that are not known to have
 * ended: the last op launched on a stream may have no event. */
static void poll_ops_without_end_event(struct cuda_stream *stream)
{
    uint32_t launched = stream->launched_ops;
    if (stream->ended_ops == launched || next_position_with_end_event(stream) != IR_NONE)
        return;
    cudaError_t error = cudaStreamQuery(stream->handle);
    if (error == cudaErrorNotReady)
        return;
    if (error != cudaSuccess) {
        cuda_record_failure(stream->rank, stream->ops_of_stream.ops[stream->ended_ops],
                            "cudaStreamQuery (this op, or one before or after it)", error);
        return;
    }
    atomic_fetch_add(&stream->rank->run->ended_ops, launched - stream->ended_ops);
    stream->ended_ops = launched;
}

static void poll_stream(struct cuda_stream *stream)
{
    struct cuda_rank *rank = stream->rank;
    for (uint32_t i = next_position_with_end_event(stream); i != IR_NONE;
         i = next_position_with_end_event(stream)) {
        cudaError_t error = cudaEventQuery(cuda_events_of(rank, stream->ops_of_stream.ops[i])->end);
        if (error == cudaErrorNotReady)
            return;
        if (error != cudaSuccess) {
            cuda_record_failure(rank, stream->ops_of_stream.ops[i],
                                "cudaEventQuery (this op, or one before it)", error);
            return;
        }
        atomic_fetch_add(&rank->run->ended_ops, i + 1 - stream->ended_ops);
        stream->ended_ops = i + 1;
    }
    poll_ops_without_end_event(stream);
}

static bool dependencies_have_ended(const struct cuda_rank *rank, uint32_t op)
{
    const struct ir *ir = rank->run->ir;
    for (uint32_t i = 0; i < ir->op.wait_count[op]; i++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + i].i;
        if (!cuda_is_sync(ir, wait) && rank->streams[ir->op.stream[wait]].ended_ops <=
                                           rank->list_position[cuda_op_index_in_role(rank, wait)])
            return false;
    }
    return true;
}

/* True if a stream certainly computes. It looks at the launched ops that are not known to have ended, up to the first
 * one with an event. Any of them may be the one that runs, since only the event shows ends. So none of them may wait
 * for another op, nor be communication with other GPUs, which may wait for those. */
static bool stream_certainly_computes(const struct cuda_stream *stream)
{
    const struct cuda_rank *rank = stream->rank;
    const uint32_t launched = stream->launched_ops, ended = stream->ended_ops;
    for (uint32_t i = ended; i < launched; i++) {
        const uint32_t op = stream->ops_of_stream.ops[i];
        if ((!cuda_of_run(rank->run)->shares_one_gpu && cuda_is_communication(rank->run->ir, op)) ||
            !dependencies_have_ended(rank, op))
            return false;
        if (cuda_events_of(rank, op)->end != NULL)
            return true;
    }
    return ended < launched;
}

static bool has_running_op(const struct cuda_rank *rank)
{
    bool has_running = false;
    for (uint32_t s = 0; s < rank->run->ir->stream_count && !has_running; s++)
        has_running = stream_certainly_computes(&rank->streams[s]);
    return has_running;
}

void cuda_poll_ended_ops(struct cuda_rank *rank)
{
    struct exec_run *run = rank->run;
    pthread_mutex_lock(&rank->poll_lock);
    for (uint32_t s = 0; s < run->ir->stream_count; s++)
        poll_stream(&rank->streams[s]);
    bool at_work = has_running_op(rank);
    if (at_work != rank->is_rank_counted_as_running)
        atomic_fetch_add(&run->running_op_count, at_work ? 1 : -1);
    rank->is_rank_counted_as_running = at_work;
    int32_t mark = *(volatile int32_t *)rank->fault_op_plus_1_address;
    pthread_mutex_unlock(&rank->poll_lock);
    if (mark != 0)
        run_record_failure(run, rank->rank, (uint32_t)mark - 1, "%s",
                           cuda_fault_text((enum work_kind)run->ir->op.kind[mark - 1]));
}

/* Shortens the calling thread's timer slack: the time, usually 50 us, by which Linux may wake a sleeping thread
 * late. */
static void shorten_timer_slack(void)
{
#ifdef PR_SET_TIMERSLACK
    static _Thread_local bool is_set;
    if (!is_set)
        prctl(PR_SET_TIMERSLACK, 1ul);
    is_set = true;
#endif
}

double cuda_shortest_pause_s = 5e-6;

void cuda_pause_polling(double since_s)
{
    const double yield_s = 20e-6, longest_s = 50e-6, share = 1.0 / 500;
    double waited_s = run_now_s() - since_s, nap_s = share * waited_s;
    if (waited_s < yield_s) {
        sched_yield();
        return;
    }
    shorten_timer_slack();
    nap_s = nap_s > longest_s ? longest_s : nap_s;
    nap_s = nap_s < cuda_shortest_pause_s ? cuda_shortest_pause_s : nap_s;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * nap_s)}, NULL);
}
