#include "traces/kineto_issue.h"

#include "base/arena.h"
#include "base/ascending.h"
#include "traces/kernel_class.h"
#include "traces/kineto_events.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A longer time between two calls is not the cost of a call: the thread did something else. */
static const double PAUSE_S = 1e-3;
/* CUDA queues 1024 launches; the next launch waits until one of them has ended. */
enum { QUEUE_ALMOST_FULL = 1000 };

void kineto_issue_release(struct kineto_issue *issue)
{
    free(issue->step);
    free(issue->queued_gap_s);
    *issue = (struct kineto_issue){0};
}

/* A kernel or copy that a call of the runtime started on the GPU. */
struct started {
    uint64_t correlation;
    uint32_t event;
};

struct maker {
    const struct kineto_events *events;
    struct started *started; /* ordered by correlation */
    double *start_us;        /* start times of kernels and copies that calls started, ascending */
    double *end_us;          /* end times of all kernels and copies, ascending */
    size_t starts, ends;
};

static int compare_started(const void *left, const void *right)
{
    const struct started *a = left, *b = right;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
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
                        .started = heap_alloc(events->count + 1, sizeof *m->started),
                        .start_us = heap_alloc(events->count + 1, sizeof *m->start_us),
                        .end_us = heap_alloc(events->count + 1, sizeof *m->end_us)};
    for (uint32_t i = 0; i < events->count; i++) {
        const struct kineto_event *event = &events->event[i];
        if (event->type != KINETO_KERNEL)
            continue;
        m->end_us[m->ends++] = event->end_us;
        if (event->correlation == 0)
            continue;
        m->started[m->starts] = (struct started){event->correlation, i};
        m->start_us[m->starts++] = event->start_us;
    }
    qsort(m->started, m->starts, sizeof *m->started, compare_started);
    qsort(m->start_us, m->starts, sizeof *m->start_us, ascending_double);
    qsort(m->end_us, m->ends, sizeof *m->end_us, ascending_double);
}

static void close_maker(struct maker *m)
{
    free(m->started);
    free(m->start_us);
    free(m->end_us);
}

/* Returns the kernels and copies that a call started, and their number. */
static const struct started *find_started(const struct maker *m, const struct kineto_event *call,
                                          size_t *count)
{
    size_t low = 0, high = call->correlation != 0 ? m->starts : 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->started[middle].correlation < call->correlation)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < m->starts && call->correlation != 0 &&
           m->started[end].correlation == call->correlation)
        end++;
    *count = end - low;
    return m->started + low;
}

static enum kineto_call kind_of(const char *kernel)
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
static void add_wait(const struct maker *m, const struct kineto_event *call,
                     struct kineto_issue_step *step)
{
    size_t ended = count_below(m->end_us, m->ends, call->end_us);
    if (ended == 0 || m->end_us[ended - 1] <= call->start_us)
        return; /* no work ended during the call */
    step->calls_of[CALL_WAIT].count++;
    step->calls_of[CALL_WAIT].call_s += 1e-6 * (call->end_us - m->end_us[ended - 1]);
}

/* Adds the time that a kernel takes to start, if its stream makes it visible. If the stream was empty when the launch
 * began, it is the time from the launch's begin to the kernel's start. If the previous kernel still ran when the launch
 * ended, it is the time from that kernel's end to the start. */
static void add_start(const struct maker *m, const struct kineto_event *call, uint32_t kernel,
                      struct kineto_issue *issue)
{
    const struct kineto_event *event = &m->events->event[kernel];
    struct kineto_issue_step *step = &issue->step[issue->count - 1];
    bool follows = kernel > 0 && event[-1].lane == event->lane;
    if (follows && event[-1].end_us > call->end_us)
        issue->queued_gap_s[issue->queued++] = 1e-6 * fmax(event->start_us - event[-1].end_us, 0);
    if (follows && event[-1].end_us > call->start_us)
        return;
    step->idle_starts++;
    step->idle_start_s += 1e-6 * (event->start_us - call->start_us);
}

/* What is known of the calls before the one that is added. */
struct before {
    size_t launched;         /* kernels and copies */
    double end_us;           /* end of the last call of the step; < 0: there is none */
    uint32_t operator_event; /* operator of the last launch of the step; UINT32_MAX: none */
};

static void add_call(const struct maker *m, const struct kineto_issued *issued,
                     struct before *before, struct kineto_issue *issue)
{
    struct kineto_issue_step outside = {0};
    struct kineto_issue_step *step = issued->step >= 0 ? &issue->step[issue->count - 1] : &outside;
    const struct kineto_event *call = &m->events->event[issued->event];
    double last_us = before->end_us, call_s = 1e-6 * (call->end_us - call->start_us);
    double before_s = 1e-6 * fmax(call->start_us - last_us, 0);
    size_t count;
    const struct started *started = find_started(m, call, &count);
    bool waits = count == 0 && strstr(m->events->name[call->name], "Synchronize") != NULL;
    if (count == 0 && !waits)
        return; /* such a call is part of the time that the framework takes between launches */
    before->end_us = fmax(last_us, call->end_us);
    if (waits) {
        add_wait(m, call, step);
        return;
    }
    const char *name = m->events->name[m->events->event[started->event].name];
    enum kineto_call kind = kind_of(name);
    bool held =
        strstr(name, "Pageable") != NULL ||
        before->launched >= count_below(m->start_us, m->starts, call->start_us) + QUEUE_ALMOST_FULL;
    bool pause = !held && last_us >= 0 && fmax(before_s, call_s) > PAUSE_S;
    bool same = kind == CALL_LAUNCH && issued->operator_event != UINT32_MAX &&
                issued->operator_event == before->operator_event;
    before->launched += count;
    before->operator_event = kind == CALL_LAUNCH ? issued->operator_event : UINT32_MAX;
    issue->graphs += count > 1;
    step->held_calls += held;
    step->pauses += pause;
    step->pause_s += pause ? before_s : 0;
    if (held || pause || last_us < 0 || count > 1)
        return;
    step->calls_of[kind].count++;
    step->calls_of[kind].operators += !same;
    step->calls_of[kind].call_s += call_s;
    step->calls_of[kind].before_s += before_s;
    if (kind == CALL_LAUNCH)
        add_start(m, call, started->event, issue);
}

static int compare_issued(const void *left, const void *right)
{
    const struct kineto_issued *a = left, *b = right;
    if (a->start_us != b->start_us)
        return a->start_us < b->start_us ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

void kineto_issue_make(struct kineto_issue *issue, const struct kineto_events *events,
                       struct kineto_issued *issued, size_t count)
{
    struct maker m;
    struct before before = {.end_us = -1, .operator_event = UINT32_MAX};
    int32_t last = -1;
    if (count == 0)
        return;
    open_maker(&m, events);
    qsort(issued, count, sizeof *issued, compare_issued);
    issue->step = heap_zalloc(count + 1, sizeof *issue->step);
    issue->queued_gap_s = heap_zalloc(count + 1, sizeof *issue->queued_gap_s);
    for (size_t i = 0; i < count; i++) {
        if (issued[i].step != last) {
            before.end_us = -1;
            before.operator_event = UINT32_MAX;
            issue->count += issued[i].step >= 0;
        }
        last = issued[i].step;
        add_call(&m, &issued[i], &before, issue);
    }
    close_maker(&m);
}
