#include "traces/kineto_issue.h"

#include "base/arena.h"
#include "base/ascending.h"
#include "traces/kernel_class.h"
#include "traces/kineto_events.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A longer gap between two calls is not a cost of the call: the thread did something else. */
static const double PAUSE_S = 1e-3;
/* CUDA queues 1024 launches; the next launch waits until one of them has ended. */
enum { QUEUE_ALMOST_FULL = 1000 };

void kineto_issue_release(struct kineto_issue *issue)
{
    free(issue->steps);
    free(issue->queued_gap_s);
    *issue = (struct kineto_issue){0};
}

/* A kernel or copy that a call of the runtime started on the GPU. */
struct started_work {
    uint64_t correlation;
    uint32_t event_index;
};

struct maker {
    const struct kineto_events *events;
    struct started_work *started; /* ordered by correlation */
    double *start_us; /* start times of kernels and copies that calls started, ascending */
    double *end_us;   /* end times of all kernels and copies, ascending */
    size_t start_count, end_count;
};

static int compare_started(const void *left, const void *right)
{
    const struct started_work *a = left, *b = right;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    return a->event_index < b->event_index ? -1 : a->event_index > b->event_index;
}

/* Returns how many of value[0..count), ascending, are less than `limit`. */
static size_t count_below(const double *value, size_t count, double limit)
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

static void open_maker(struct maker *m, const struct kineto_events *events)
{
    *m = (struct maker){.events = events,
                        .started = heap_alloc(events->event_count + 1, sizeof *m->started),
                        .start_us = heap_alloc(events->event_count + 1, sizeof *m->start_us),
                        .end_us = heap_alloc(events->event_count + 1, sizeof *m->end_us)};
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = &events->events[i];
        if (event->type != KINETO_KERNEL)
            continue;
        m->end_us[m->end_count++] = event->end_us;
        if (event->correlation == 0)
            continue;
        m->started[m->start_count] = (struct started_work){event->correlation, i};
        m->start_us[m->start_count++] = event->start_us;
    }
    qsort(m->started, m->start_count, sizeof *m->started, compare_started);
    qsort(m->start_us, m->start_count, sizeof *m->start_us, ascending_double);
    qsort(m->end_us, m->end_count, sizeof *m->end_us, ascending_double);
}

static void close_maker(struct maker *m)
{
    free(m->started);
    free(m->start_us);
    free(m->end_us);
}

/* Returns the kernels and copies that a call started, and their number. */
static const struct started_work *find_started(const struct maker *m,
                                               const struct kineto_event *call, size_t *count)
{
    size_t low = 0, high = call->correlation != 0 ? m->start_count : 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->started[middle].correlation < call->correlation)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < m->start_count && call->correlation != 0 &&
           m->started[end].correlation == call->correlation)
        end++;
    *count = end - low;
    return m->started + low;
}

static enum kineto_call call_kind_of_kernel(const char *kernel)
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

/* Adds the time of a wait: from the end of the last work that ended during the call to the end of the call. */
static void add_wait_time(const struct maker *m, const struct kineto_event *call,
                          struct kineto_issue_step *step)
{
    size_t ended = count_below(m->end_us, m->end_count, call->end_us);
    if (ended == 0 || m->end_us[ended - 1] <= call->start_us)
        return; /* no work ended during the call */
    step->calls_of[CALL_WAIT].call_count++;
    step->calls_of[CALL_WAIT].total_call_s += 1e-6 * (call->end_us - m->end_us[ended - 1]);
}

/* Adds the time that a kernel takes to start, if its stream makes it visible. If the stream was empty when the launch
 * began, it is the time from the launch's begin to the kernel's start. If the previous kernel still ran when the launch
 * ended, it is the time from that kernel's end to the start. */
static void add_start_time(const struct maker *m, const struct kineto_event *call, uint32_t kernel,
                           struct kineto_issue *issue)
{
    const struct kineto_event *event = &m->events->events[kernel];
    struct kineto_issue_step *step = &issue->steps[issue->step_count - 1];
    bool follows = kernel > 0 && event[-1].lane == event->lane;
    if (follows && event[-1].end_us > call->end_us)
        issue->queued_gap_s[issue->queued_gap_count++] =
            1e-6 * fmax(event->start_us - event[-1].end_us, 0);
    if (follows && event[-1].end_us > call->start_us)
        return;
    step->idle_start_count++;
    step->total_idle_start_s += 1e-6 * (event->start_us - call->start_us);
}

/* The state of add_call() between calls. */
struct calls_so_far {
    size_t launched_kernels; /* kernels and copies */
    double last_call_end_us; /* < 0: there is no earlier call in the step */
    /* the operator of the last launch in the step; UINT32_MAX: none */
    uint32_t last_operator_event;
};

static void add_call(const struct maker *m, const struct kineto_issued *issued,
                     struct calls_so_far *before, struct kineto_issue *issue)
{
    struct kineto_issue_step outside = {0};
    struct kineto_issue_step *step =
        issued->step >= 0 ? &issue->steps[issue->step_count - 1] : &outside;
    const struct kineto_event *call = &m->events->events[issued->call_event];
    double last_us = before->last_call_end_us, call_s = 1e-6 * (call->end_us - call->start_us);
    double before_s = 1e-6 * fmax(call->start_us - last_us, 0);
    size_t count;
    const struct started_work *started = find_started(m, call, &count);
    bool waits = count == 0 && strstr(m->events->name[call->name], "Synchronize") != NULL;
    if (count == 0 && !waits)
        return; /* such a call is part of the time that the framework takes between launches */
    before->last_call_end_us = fmax(last_us, call->end_us);
    if (waits) {
        add_wait_time(m, call, step);
        return;
    }
    const char *name = m->events->name[m->events->events[started->event_index].name];
    enum kineto_call kind = call_kind_of_kernel(name);
    bool held = strstr(name, "Pageable") != NULL ||
                before->launched_kernels >=
                    count_below(m->start_us, m->start_count, call->start_us) + QUEUE_ALMOST_FULL;
    bool pause = !held && last_us >= 0 && fmax(before_s, call_s) > PAUSE_S;
    bool same = kind == CALL_LAUNCH && issued->operator_event != UINT32_MAX &&
                issued->operator_event == before->last_operator_event;
    before->launched_kernels += count;
    before->last_operator_event = kind == CALL_LAUNCH ? issued->operator_event : UINT32_MAX;
    issue->graph_launches += count > 1;
    step->held_calls += held;
    step->pause_count += pause;
    step->total_pause_s += pause ? before_s : 0;
    if (held || pause || last_us < 0 || count > 1)
        return;
    step->calls_of[kind].call_count++;
    step->calls_of[kind].operator_count += !same;
    step->calls_of[kind].total_call_s += call_s;
    step->calls_of[kind].total_gap_s += before_s;
    if (kind == CALL_LAUNCH)
        add_start_time(m, call, started->event_index, issue);
}

static int compare_issued(const void *left, const void *right)
{
    const struct kineto_issued *a = left, *b = right;
    if (a->start_us != b->start_us)
        return a->start_us < b->start_us ? -1 : 1;
    return a->call_event < b->call_event ? -1 : a->call_event > b->call_event;
}

void kineto_issue_sum_calls(struct kineto_issue *issue, const struct kineto_events *events,
                            struct kineto_issued *issued, size_t count)
{
    struct maker m;
    struct calls_so_far before = {.last_call_end_us = -1, .last_operator_event = UINT32_MAX};
    int32_t last = -1;
    if (count == 0)
        return;
    open_maker(&m, events);
    qsort(issued, count, sizeof *issued, compare_issued);
    issue->steps = heap_zalloc(count + 1, sizeof *issue->steps);
    issue->queued_gap_s = heap_zalloc(count + 1, sizeof *issue->queued_gap_s);
    for (size_t i = 0; i < count; i++) {
        if (issued[i].step != last) {
            before.last_call_end_us = -1;
            before.last_operator_event = UINT32_MAX;
            issue->step_count += issued[i].step >= 0;
        }
        last = issued[i].step;
        add_call(&m, &issued[i], &before, issue);
    }
    close_maker(&m);
}
