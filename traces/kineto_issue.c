#include "traces/kineto_issue.h"

#include "base/arena.h"
#include "base/ascending.h"
#include "traces/kernel_class.h"
#include "traces/kineto_events.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The most seconds that a gap or a call may take to count as the cost of a call. In a longer gap between two calls the
 * thread did something else; a longer call did more than start its work (the first launch of a kernel loads its
 * module). */
static const double PAUSE_S = 1e-3;
/* If this many launched kernels have not started yet, the next launch may have to wait: CUDA queues 1024 launches. */
enum { QUEUE_ALMOST_FULL = 1000 };

void kineto_host_calls_release(struct kineto_host_calls *issue)
{
    free(issue->steps);
    free(issue->gaps_of_queued_gpu_work_s);
    *issue = (struct kineto_host_calls){0};
}

/* A kernel or copy that a call of the runtime started on the GPU. */
struct gpu_work_started_by_call {
    uint64_t correlation;
    uint32_t event_index;
};

/* The kernels and copies of a recording, in three orders for searching. */
struct gpu_work {
    const struct kineto_events *events;
    struct gpu_work_started_by_call *started; /* ordered by correlation */
    double *starts_us; /* start times of kernels and copies that calls started, ascending */
    double *ends_us;   /* end times of all kernels and copies, ascending */
    size_t start_count, end_count;
};

static int compare_started_gpu_work(const void *left, const void *right)
{
    const struct gpu_work_started_by_call *a = left, *b = right;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    return a->event_index < b->event_index ? -1 : a->event_index > b->event_index;
}

/* Returns how many of value[0..count), ascending, are less than `limit`. */
static size_t count_less_than(const double *value, size_t count, double limit)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (value[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Fills *w from the events; release it. */
static void build_gpu_work_index(struct gpu_work *w, const struct kineto_events *events)
{
    *w = (struct gpu_work){.events = events,
                           .started = heap_alloc(events->event_count + 1, sizeof *w->started),
                           .starts_us = heap_alloc(events->event_count + 1, sizeof *w->starts_us),
                           .ends_us = heap_alloc(events->event_count + 1, sizeof *w->ends_us)};
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = &events->events[i];
        if (event->type != KINETO_KERNEL)
            continue;
        w->ends_us[w->end_count++] = event->end_us;
        if (event->correlation == 0)
            continue;
        w->started[w->start_count] = (struct gpu_work_started_by_call){event->correlation, i};
        w->starts_us[w->start_count++] = event->start_us;
    }
    qsort(w->started, w->start_count, sizeof *w->started, compare_started_gpu_work);
    qsort(w->starts_us, w->start_count, sizeof *w->starts_us, ascending_double);
    qsort(w->ends_us, w->end_count, sizeof *w->ends_us, ascending_double);
}

static void release_gpu_work(struct gpu_work *w)
{
    free(w->started);
    free(w->starts_us);
    free(w->ends_us);
}

static int compare_correlations(const void *left, const void *right)
{
    const struct gpu_work_started_by_call *a = left, *b = right;
    return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

/* Returns the kernels and copies that a call started, and sets *count to their number. Returns NULL, with *count 0, if
 * it started none. */
static const struct gpu_work_started_by_call *
find_work_started_by_call(const struct gpu_work *w, const struct kineto_event *call, size_t *count)
{
    const struct gpu_work_started_by_call key = {.correlation = call->correlation};
    const struct gpu_work_started_by_call *end = w->started + w->start_count, *first, *last;
    *count = 0;
    if (call->correlation == 0)
        return NULL;
    first = bsearch(&key, w->started, w->start_count, sizeof key, compare_correlations);
    if (first == NULL)
        return NULL;
    last = first;
    while (first > w->started && first[-1].correlation == call->correlation)
        first--;
    while (last < end && last->correlation == call->correlation)
        last++;
    *count = (size_t)(last - first);
    return first;
}

static enum kineto_call_kind call_kind_of_kernel(const char *kernel)
{
    switch (kernel_class_of_kernel(kernel)) {
    case CLASS_COMMUNICATION:
        return CALL_COLLECTIVE;
    case CLASS_COPY:
        return CALL_COPY;
    default:
        return CALL_LAUNCH;
    }
}

/* Adds the time of a call that waits for the GPU: from the end of the last kernel or copy that ended during the call to
 * the end of the call. Adds nothing if none ended during it. */
static void add_gpu_wait_time_of_call(const struct gpu_work *w, const struct kineto_event *call,
                                      struct kineto_host_calls_of_step *step)
{
    size_t ended = count_less_than(w->ends_us, w->end_count, call->end_us);
    if (ended == 0 || w->ends_us[ended - 1] <= call->start_us)
        return; /* no work ended during the call */
    step->issue_calls_by_kind[CALL_WAIT].call_count++;
    step->issue_calls_by_kind[CALL_WAIT].total_call_s +=
        1e-6 * (call->end_us - w->ends_us[ended - 1]);
}

/* Adds the time that a kernel takes to start, in the two cases in which it shows:
 *   - The kernel before it on its stream, if there is one, had ended when the launch began. The time from the start of
 *     the launch to the start of the kernel is added to step->total_empty_stream_launch_delay_s.
 *   - The kernel before it still ran when the launch had returned. The time from the end of that kernel to the start of
 *     this one is added to issue->gaps_of_queued_gpu_work_s[].
 * call: the launch; kernel: the index of the kernel's event. */
static void add_launch_delay_of_call(const struct gpu_work *w, const struct kineto_event *call,
                                     uint32_t kernel, struct kineto_host_calls_of_step *step,
                                     struct kineto_host_calls *issue)
{
    const struct kineto_event *event = &w->events->events[kernel];
    /* events are ordered by lane (stream), and on a lane by start */
    const struct kineto_event *previous =
        kernel > 0 && event[-1].lane == event->lane ? event - 1 : NULL;
    if (previous != NULL && previous->end_us > call->end_us)
        issue->gaps_of_queued_gpu_work_s[issue->queued_gap_count++] =
            1e-6 * fmax(event->start_us - previous->end_us, 0);
    if (previous != NULL && previous->end_us > call->start_us)
        return;
    step->empty_stream_launch_count++;
    step->total_empty_stream_launch_delay_s += 1e-6 * (event->start_us - call->start_us);
}

/* The facts about earlier calls that add_call_to_step_sums() needs. */
struct calls_so_far {
    /* number of kernels and copies that all earlier calls started */
    size_t gpu_work_count_of_earlier_calls;
    double last_call_end_us; /* < 0: there is no earlier call in the step */
    /* the operator of the last call in the step that started work, if that was the launch of a
     * kernel; UINT32_MAX: it was not, or the operator is unknown */
    uint32_t operator_event_of_last_launch;
};

/* A call that started kernels or copies, and what decides whether its time is summed. */
struct starting_call {
    enum kineto_call_kind kind;
    double call_s, gap_s; /* its time; the time since the call before it */
    bool is_first;        /* it is the first of its step, so the gap is unknown */
    /* it may have waited for the GPU: the queue is almost full, or a copy is of pageable memory */
    bool may_have_waited_for_gpu;
    bool is_graph_launch; /* it started several kernels or copies, so it launched a graph */
    /* the last call before it that started work was a launch by the same operator */
    bool follows_launch_by_same_operator;
};

/* Returns the description of a call that started the kernels and copies started[0..count). */
static struct starting_call make_starting_call(const struct gpu_work *w,
                                               const struct kineto_runtime_call *issued,
                                               const struct calls_so_far *so_far,
                                               const struct gpu_work_started_by_call *started,
                                               size_t count)
{
    const struct kineto_event *call = &w->events->events[issued->event_index_of_call];
    const char *kernel = w->events->name[w->events->events[started->event_index].name];
    const enum kineto_call_kind kind = call_kind_of_kernel(kernel);
    const size_t begun_kernel_count = count_less_than(w->starts_us, w->start_count, call->start_us);
    return (struct starting_call){
        .kind = kind,
        .call_s = 1e-6 * (call->end_us - call->start_us),
        .gap_s = 1e-6 * fmax(call->start_us - so_far->last_call_end_us, 0),
        .is_first = so_far->last_call_end_us < 0,
        .may_have_waited_for_gpu =
            strstr(kernel, "Pageable") != NULL ||
            so_far->gpu_work_count_of_earlier_calls >= begun_kernel_count + QUEUE_ALMOST_FULL,
        .is_graph_launch = count > 1,
        .follows_launch_by_same_operator =
            kind == CALL_LAUNCH && issued->event_index_of_calling_operator != UINT32_MAX &&
            issued->event_index_of_calling_operator == so_far->operator_event_of_last_launch,
    };
}

/* Returns the seconds that are left out as pauses: the gap before a call if it is longer than
 * PAUSE_S, plus the call itself if it is longer. Returns 0 for a call that may have waited for the
 * GPU and for the first call of a step. */
static double pause_before_or_in_call_s(const struct starting_call *call)
{
    if (call->may_have_waited_for_gpu || call->is_first)
        return 0;
    return (call->gap_s > PAUSE_S ? call->gap_s : 0) + (call->call_s > PAUSE_S ? call->call_s : 0);
}

/* Adds a call to the sums of its step and returns true, or leaves it out and returns false. Counts
 * calls that may have waited for the GPU, and pauses. */
static bool add_starting_call_to_sums(const struct starting_call *call,
                                      struct kineto_host_calls_of_step *step)
{
    struct kineto_call_sums *sum = &step->issue_calls_by_kind[call->kind];
    const double left_out_s = pause_before_or_in_call_s(call);
    step->gpu_waiting_call_count += call->may_have_waited_for_gpu;
    step->pause_count += left_out_s > 0;
    step->sum_of_pauses_s += left_out_s;
    if (call->may_have_waited_for_gpu || call->is_first || call->is_graph_launch || left_out_s > 0)
        return false;
    sum->call_count++;
    sum->operator_count += !call->follows_launch_by_same_operator;
    sum->total_call_s += call->call_s;
    sum->total_gap_before_calls_s += call->gap_s;
    return true;
}

/* Adds a call to the sums of its step, the last one of issue->steps[], and updates *so_far. A call outside of all steps
 * only does the latter. */
static void add_call_to_step_sums(const struct gpu_work *w,
                                  const struct kineto_runtime_call *issued,
                                  struct calls_so_far *so_far, struct kineto_host_calls *issue)
{
    struct kineto_host_calls_of_step *step =
        issued->step >= 0 ? &issue->steps[issue->step_count - 1] : NULL;
    const struct kineto_event *event = &w->events->events[issued->event_index_of_call];
    size_t count;
    const struct gpu_work_started_by_call *started = find_work_started_by_call(w, event, &count);
    if (count == 0 && strstr(w->events->name[event->name], "Synchronize") == NULL)
        return; /* such a call is part of the time that the framework takes between launches */
    if (count == 0 && step != NULL)
        add_gpu_wait_time_of_call(w, event, step);
    if (count > 0) {
        struct starting_call call = make_starting_call(w, issued, so_far, started, count);
        if (step != NULL) {
            issue->graph_launch_count += call.is_graph_launch;
            if (add_starting_call_to_sums(&call, step) && call.kind == CALL_LAUNCH)
                add_launch_delay_of_call(w, event, started->event_index, step, issue);
        }
        so_far->gpu_work_count_of_earlier_calls += count;
        so_far->operator_event_of_last_launch =
            call.kind == CALL_LAUNCH ? issued->event_index_of_calling_operator : UINT32_MAX;
    }
    so_far->last_call_end_us = fmax(so_far->last_call_end_us, event->end_us);
}

static int compare_calls_by_start(const void *left, const void *right)
{
    const struct kineto_runtime_call *a = left, *b = right;
    if (a->start_us != b->start_us)
        return a->start_us < b->start_us ? -1 : 1;
    return a->event_index_of_call < b->event_index_of_call
               ? -1
               : a->event_index_of_call > b->event_index_of_call;
}

void kineto_sum_host_calls(struct kineto_host_calls *issue, const struct kineto_events *events,
                           struct kineto_runtime_call *issued, size_t count)
{
    struct gpu_work work;
    struct calls_so_far so_far = {.last_call_end_us = -1,
                                  .operator_event_of_last_launch = UINT32_MAX};
    int32_t last = -1;
    if (count == 0)
        return;
    build_gpu_work_index(&work, events);
    qsort(issued, count, sizeof *issued, compare_calls_by_start);
    issue->steps = heap_zalloc(count + 1, sizeof *issue->steps);
    issue->gaps_of_queued_gpu_work_s =
        heap_zalloc(count + 1, sizeof *issue->gaps_of_queued_gpu_work_s);
    for (size_t i = 0; i < count; i++) {
        if (issued[i].step != last) {
            so_far.last_call_end_us = -1;
            so_far.operator_event_of_last_launch = UINT32_MAX;
            issue->step_count += issued[i].step >= 0;
        }
        last = issued[i].step;
        add_call_to_step_sums(&work, &issued[i], &so_far, issue);
    }
    release_gpu_work(&work);
}
