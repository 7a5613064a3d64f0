/* The times of ops: read from events before and after them, or from CUPTI's records of the kernels that they
 * launched. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/cupti.h"

#include <math.h>
#include <stdlib.h>

bool cuda_takes_op_times_from_events(const struct exec_run *run)
{
    return run->options->records_trace && !run->options->times_by_cupti;
}

void cuda_begin_cupti_range_of_op(const struct cuda_rank *rank, uint32_t op)
{
    rank->has_launched_by_op[cuda_op_index_in_role(rank, op)] = true;
    cupti_push_op((uint64_t)rank->rank << 32 | op);
}

void cuda_end_cupti_range(void)
{
    cupti_pop_op();
}

/* ---- times from events ---- */

static void read_event_times(struct cuda_rank *rank)
{
    struct exec_run *run = rank->run;
    uint32_t first = assignment_first_op(&run->assignment, rank->rank);
    double base_s = rank->step_begin_event_s - run->step_release_time_s;
    for (uint32_t k = 0; k < assignment_op_count(&run->assignment, rank->rank); k++) {
        const struct cuda_events *events = &rank->op_events[k];
        float begin_ms = 0, end_ms = 0;
        if (events->begin == NULL || events->end == NULL)
            continue;
        cudaError_t error = cudaEventElapsedTime(&begin_ms, rank->step_begin_event, events->begin);
        if (error == cudaSuccess)
            error = cudaEventElapsedTime(&end_ms, rank->step_begin_event, events->end);
        if (error != cudaSuccess) {
            cuda_record_failure(rank, first + k, "cudaEventElapsedTime", error);
            return;
        }
        struct op_time *time = run_op_time(run, rank->rank, first + k);
        *time = (struct op_time){base_s + 1e-3 * begin_ms, base_s + 1e-3 * end_ms};
        /* the op before it, whose time is time[-1], has computed it, so it takes no time of its own */
        if (cuda_of_run(run)->prepared_ops[first + k].is_computed_by_previous_op)
            time->start_s = time->end_s = time[-1].end_s;
    }
}

/* ---- times from CUPTI's records ---- */

static const struct op_time unknown = {NAN, NAN};

/* Returns the time of an op that launched nothing. An op without work, or one that the op before it has computed, takes
 * no time and ends at before_s, when the op before it on its stream ended. If ranks share a GPU, a send launches
 * nothing and has the time of its receiver's copy. */
static struct op_time time_of_unlaunched_op(struct exec_run *run, uint32_t rank, uint32_t op,
                                            double before_s)
{
    const struct assignment *assignment = &run->assignment;
    if (run->ir->op.kind[op] == WORK_SEND && assignment_op_works_on_rank(assignment, rank, op)) {
        const struct assignment_message *message =
            &assignment->messages[assignment_message_index(assignment, rank, op)];
        return *run_op_time(run, message->destination, message->recv_op);
    }
    return (struct op_time){before_s, before_s};
}

static void read_stream_times(struct cuda_stream *stream)
{
    struct cuda_rank *rank = stream->rank;
    struct exec_run *run = rank->run;
    struct cuda *cuda = cuda_of_run(run);
    bool host = run->ir->stream[stream->stream_index_in_ir].stream_class == STREAM_HOST;
    double before_s = 0;
    for (uint32_t i = 0; i < stream->ops_of_stream.op_count; i++) {
        uint32_t op = stream->ops_of_stream.ops[i];
        struct op_time *time = run_op_time(run, rank->rank, op);
        bool launches = rank->has_launched_by_op[cuda_op_index_in_role(rank, op)];
        cuda->launched_ops += launches;
        cuda->recorded_ops += launches && !isnan(time->end_s);
        /* an op with work on a host stream has written its times itself */
        if (!launches && !(host && assignment_op_works_on_rank(&run->assignment, rank->rank, op)))
            *time = time_of_unlaunched_op(run, rank->rank, op, before_s);
        if (!isnan(time->end_s))
            before_s = time->end_s;
    }
}

static void read_cupti_op_times(struct exec_run *run)
{
    struct cuda *cuda = cuda_of_run(run);
    struct cupti_span *span;
    size_t span_count;
    char why[CUPTI_WHY];
    size_t fewest = cuda->recorded_ops;
    bool first = cuda->launched_ops == 0;
    cuda->launched_ops = cuda->recorded_ops = 0;
    if (!cupti_take_spans(&span, &span_count, why)) {
        run_record_system_failure(
            run, "the step cannot be timed: %s; events can time it (without --cupti)", why);
        return;
    }
    for (size_t i = 0; i < span_count; i++) {
        uint32_t rank = (uint32_t)(span[i].op_id >> 32), op = (uint32_t)span[i].op_id;
        if (run_has_rank(run, rank))
            *run_op_time(run, rank, op) =
                (struct op_time){span[i].start_s - run->step_release_time_s,
                                 span[i].end_s - run->step_release_time_s};
    }
    free(span);
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count; r++)
        for (uint32_t s = 0; s < run->ir->stream_count; s++)
            read_stream_times(&cuda->rank_states[r].streams[s]);
    if (cuda->recorded_ops == 0 && cuda->launched_ops > 0)
        run_record_system_failure(
            run,
            "the step cannot be timed: CUPTI recorded none of its %zu ops; events can time "
            "it (without --cupti)",
            cuda->launched_ops);
    if (!first && fewest < cuda->recorded_ops)
        cuda->recorded_ops = fewest;
}

static bool op_times_come_from_cupti(const struct exec_run *run)
{
    return run->options->records_trace && run->options->times_by_cupti;
}

void cuda_forget_times(struct exec_run *run)
{
    struct cupti_span *span;
    size_t span_count;
    char why[CUPTI_WHY];
    if (!run->options->times_by_cupti)
        return;
    (void)cupti_take_spans(&span, &span_count,
                           why); /* drops the spans of failed and untimed runs */
    free(span);
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count; r++)
        for (uint32_t k = 0; k < assignment_op_count(&run->assignment, r); k++) {
            *run_op_time(run, r, assignment_first_op(&run->assignment, r) + k) = unknown;
            cuda_of_run(run)->rank_states[r].has_launched_by_op[k] = false;
        }
}

void cuda_read_times(struct exec_run *run)
{
    if (op_times_come_from_cupti(run))
        read_cupti_op_times(run);
    for (uint32_t r = run->first_rank;
         r < run->first_rank + run->rank_count && cuda_takes_op_times_from_events(run); r++)
        read_event_times(&cuda_of_run(run)->rank_states[r]);
}
