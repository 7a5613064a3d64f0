/* When ops ran: by events before and behind them, or by CUPTI's records of what they launched. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/cupti.h"

#include <stdlib.h>

bool cuda_times_by_events(const struct run *run)
{
    return run->options->trace && !run->options->profile;
}

void cuda_owns(const struct cuda_rank *rank, uint32_t op)
{
    cupti_push((uint64_t)rank->rank << 32 | op);
}

void cuda_owned(void)
{
    cupti_pop();
}

static void read_events(struct cuda_rank *rank)
{
    struct run *run = rank->run;
    uint32_t first = plan_first(&run->plan, rank->rank);
    double base_s = rank->base_s - run->epoch_s;
    for (uint32_t k = 0; k < plan_ops(&run->plan, rank->rank); k++) {
        const struct cuda_events *events = &rank->events[k];
        float begin_ms = 0, end_ms = 0;
        if (events->begin == NULL || events->end == NULL)
            continue;
        cudaError_t error = cudaEventElapsedTime(&begin_ms, rank->base, events->begin);
        if (error == cudaSuccess)
            error = cudaEventElapsedTime(&end_ms, rank->base, events->end);
        if (error != cudaSuccess) {
            cuda_failed(rank, first + k, "cudaEventElapsedTime", error);
            return;
        }
        *run_time(run, rank->rank, first + k) =
            (struct op_time){base_s + 1e-3 * begin_ms, base_s + 1e-3 * end_ms};
    }
}

/* Ops that launched nothing end with the op before them on their stream. */
static void fill_gaps(struct cuda_rank *rank)
{
    struct run *run = rank->run;
    for (uint32_t s = 0; s < run->ir->stream_count; s++) {
        double end_s = 0;
        for (uint32_t i = 0; i < rank->stream[s].op_count; i++) {
            struct op_time *time = run_time(run, rank->rank, rank->stream[s].op[i]);
            if (time->end_s == 0)
                *time = (struct op_time){end_s, end_s};
            end_s = time->end_s;
        }
    }
}

static void read_records(struct run *run)
{
    struct cupti_span *span;
    size_t spans = cupti_take(&span);
    for (size_t i = 0; i < spans; i++) {
        uint32_t rank = (uint32_t)(span[i].id >> 32), op = (uint32_t)span[i].id;
        if (!run_is_here(run, rank))
            continue;
        *run_time(run, rank, op) =
            (struct op_time){span[i].start_s - run->epoch_s, span[i].end_s - run->epoch_s};
    }
    free(span);
    for (uint32_t r = run->first; r < run->first + run->count; r++)
        fill_gaps(&cuda_of(run)->rank[r]);
}

void cuda_read_times(struct run *run)
{
    if (run->options->trace && run->options->profile)
        read_records(run);
    for (uint32_t r = run->first; r < run->first + run->count && cuda_times_by_events(run); r++)
        read_events(&cuda_of(run)->rank[r]);
}
