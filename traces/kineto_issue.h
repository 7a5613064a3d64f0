/* traces/kineto_issue.h: what the issuing threads spent in a recording of the PyTorch profiler on a GPU.
 *
 * A call of the CUDA runtime or driver and the kernel or copy that it started have the same "correlation". The calls of
 * all threads of the process form one sequence, since one thread issues at a time: the forward pass and the optimizer
 * on the main thread, the backward pass on the autograd engine's. The gap between the end of a call and the start of
 * the next one is time of the framework, and counts for the next call. A call that starts no work and does not wait is
 * part of a gap.
 *
 * Of the calls that start work, these are left out of the sums: pauses (gaps of more than 1 ms, as when the next batch
 * is loaded, and calls of more than 1 ms, as when a launch loads its kernel's module); the first call of a step; calls
 * that had to wait for the GPU (a launch into a full queue, a copy of pageable memory); and launches of CUDA graphs. */
#ifndef TRACES_KINETO_ISSUE_H
#define TRACES_KINETO_ISSUE_H

#include <stddef.h>
#include <stdint.h>

enum kineto_call_kind { CALL_LAUNCH, CALL_COLLECTIVE, CALL_COPY, CALL_WAIT, CALL_COUNT };

/* The calls of one kind in one step. */
struct kineto_call_sums {
    size_t call_count;
    /* sum of the times of all calls; of a call that waits, only the time after the work for which it waits has ended */
    double total_call_s;
    /* sum of the gaps between these calls and the calls before them */
    double total_gap_before_calls_s;
    /* number of operators that made these calls; an operator that launches several kernels in a row counts once */
    size_t operator_count;
};

struct kineto_host_calls_of_step {
    struct kineto_call_sums issue_calls_by_kind[CALL_COUNT];
    size_t gpu_waiting_call_count; /* number of calls that had to wait for the GPU */
    size_t pause_count;     /* number of calls with a pause, in the call or in the gap before it */
    double sum_of_pauses_s; /* sum of the gaps and calls that are pauses */
    /* number of launches that began when no earlier kernel ran or waited on their stream */
    size_t empty_stream_launch_count;
    /* sum over these launches of the seconds from the start of the call to the start of its kernel */
    double total_empty_stream_launch_delay_s;
};

/* All-zero is empty: a recording without calls. */
struct kineto_host_calls {
    struct kineto_host_calls_of_step *steps;
    size_t step_count;
    size_t graph_launch_count; /* number of calls that launched a CUDA graph */
    /* For each kernel whose launch is in the sums, and had returned before the kernel before it on its stream ended:
     * the seconds from that end to the start of the kernel. */
    double *gaps_of_queued_gpu_work_s;
    size_t queued_gap_count;
};
void kineto_host_calls_release(struct kineto_host_calls *issue);

/* A call as the reader of recordings (traces/kineto.c) finds it. The members event_index_... are indices
 * of events. */
struct kineto_runtime_call {
    double start_us;
    uint32_t event_index_of_call;
    /* the operator that made the call; UINT32_MAX: none */
    uint32_t event_index_of_calling_operator;
    int32_t step; /* the profiler's step; -1: outside all steps */
};

struct kineto_events;
/* Sums the calls issued[0..count) by step into *issue, which must be all-zero. Sorts issued[] by start. */
void kineto_sum_host_calls(struct kineto_host_calls *issue, const struct kineto_events *events,
                           struct kineto_runtime_call *issued, size_t count);

#endif
