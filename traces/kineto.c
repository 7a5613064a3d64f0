#include "traces/kineto.h"

#include "base/text.h"
#include "traces/kernel_class.h"
#include "traces/kineto_events.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The properties that an event takes from the events that enclose it. */
struct context {
    uint32_t owner; /* the outermost event around that does something, or itself; NONE */
    uint16_t phase; /* label; PHASE_UNSEEN: nothing around said so */
};

#define NONE UINT32_MAX

struct builder {
    struct trace *trace;
    const struct kineto_events *events;
    struct context *context; /* per event; of operators and annotations only */
    uint8_t *class;          /* per name */
    uint16_t forward, recompute, backward, optimizer;
};

static const struct kineto_event *event_at(const struct builder *b, uint32_t i)
{
    return &b->events->event[i];
}

static const char *name_of(const struct builder *b, const struct kineto_event *event)
{
    return b->events->name[event->name];
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Returns the phase that an event gives to all within it. */
static uint16_t phase_inside(const struct builder *b, const struct kineto_event *event,
                             uint16_t around)
{
    static const char engine[] = "autograd::engine::evaluate_function: ";
    const char *name = name_of(b, event);
    if (starts_with(name, engine))
        return starts_with(name + sizeof engine - 1, "CheckpointFunctionBackward") ? b->recompute
                                                                                   : b->backward;
    if (starts_with(name, "Optimizer."))
        return b->optimizer;
    return around;
}

/* Walks the operators of each thread, which nest in time, and gives each its context. */
static void nest(struct builder *b)
{
    const struct kineto_events *events = b->events;
    uint32_t *stack = heap_alloc(events->count + 1, sizeof *stack);
    size_t depth = 0;
    uint32_t last_thread = NONE;
    for (uint32_t i = 0; i < events->count; i++) {
        const struct kineto_event *event = event_at(b, i);
        if (event->type == KINETO_KERNEL)
            continue;
        if (event->lane != last_thread)
            depth = 0;
        last_thread = event->lane;
        while (depth > 0 && event->start_us >= event_at(b, stack[depth - 1])->end_us)
            depth--;
        struct context around = {NONE, b->forward};
        if (depth > 0)
            around = b->context[stack[depth - 1]];
        b->context[i] = around;
        b->context[i].phase = phase_inside(b, event, around.phase);
        if (around.owner == NONE) {
            enum kernel_class class = b->class[event->name];
            /* A name that says nothing is a row only where it is not split further. */
            bool leaf = i + 1 == events->count || event_at(b, i + 1)->lane != event->lane ||
                        event_at(b, i + 1)->type == KINETO_KERNEL ||
                        event_at(b, i + 1)->start_us >= event->end_us;
            if (event->type == KINETO_OPERATOR && class != CLASS_NONE &&
                (class != CLASS_OTHER || leaf))
                b->context[i].owner = i;
        }
        stack[depth++] = i;
    }
    free(stack);
}

/* --- which step an instant belongs to --- */

struct steps {
    struct step {
        double start_us, end_us;
        int32_t number;
    } * step;
    size_t count;
};

static int compare_steps(const void *left, const void *right)
{
    const struct step *a = left, *b = right;
    return a->start_us < b->start_us ? -1 : a->start_us > b->start_us;
}

static struct steps find_steps(const struct builder *b)
{
    struct steps steps = {heap_alloc(b->events->count + 1, sizeof *steps.step), 0};
    for (uint32_t i = 0; i < b->events->count; i++) {
        const struct kineto_event *event = event_at(b, i);
        static const char prefix[] = "ProfilerStep#";
        const char *name = name_of(b, event);
        if (event->type == KINETO_ANNOTATION && starts_with(name, prefix)) {
            long number = strtol(name + sizeof prefix - 1, NULL, 10);
            int32_t kept = number >= 0 && number < INT32_MAX ? (int32_t)number : INT32_MAX;
            steps.step[steps.count++] = (struct step){event->start_us, event->end_us, kept};
        }
    }
    if (steps.count > 0)
        qsort(steps.step, steps.count, sizeof *steps.step, compare_steps);
    return steps;
}

/* Returns the step that runs at an instant; -1: outside all of them. Without steps all is step 0. */
static int32_t step_at(const struct steps *steps, double time_us)
{
    if (steps->count == 0)
        return 0;
    size_t low = 0, high = steps->count; /* the last that has started is low - 1 */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (steps->step[middle].start_us <= time_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && time_us < steps->step[low - 1].end_us ? steps->step[low - 1].number : -1;
}

/* --- the operator that launched a kernel --- */

struct launcher {
    uint64_t external;
    uint32_t event;
};

static int compare_launchers(const void *left, const void *right)
{
    const struct launcher *a = left, *b = right;
    if (a->external != b->external)
        return a->external < b->external ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

static size_t find_launcher(const struct launcher *launcher, size_t count, uint64_t external)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (launcher[middle].external < external)
            low = middle + 1;
        else
            high = middle;
    }
    return external != 0 && low < count && launcher[low].external == external ? low : NONE;
}

/* --- rows --- */

static void add_row(struct builder *b, const struct kineto_event *event, enum kernel_class class,
                    uint16_t phase, int32_t step, double flops)
{
    struct trace *trace = b->trace;
    if (phase == b->optimizer && class != CLASS_COMMUNICATION && class != CLASS_COPY)
        class = CLASS_OPTIMIZER;
    size_t row = trace_add_op(trace);
    struct trace_ops *ops = &trace->ops;
    ops->rank[row] = b->events->rank;
    ops->op[row] = (uint32_t)row;
    ops->stream[row] = trace_label(trace, b->events->lane[event->lane]);
    ops->kind[row] = trace_label(trace, name_of(b, event));
    ops->phase[row] = phase;
    ops->region[row] = trace_label(trace, kernel_class_name(class));
    ops->layer[row] = ops->chunk[row] = -1;
    ops->step[row] = step;
    ops->start_s[row] = event->start_us * 1e-6;
    ops->end_s[row] = event->end_us * 1e-6;
    ops->bytes[row] = event->bytes;
    ops->flops[row] = flops;
}

static void add_operators(struct builder *b, const struct steps *steps)
{
    for (uint32_t i = 0; i < b->events->count; i++) {
        const struct kineto_event *event = event_at(b, i);
        if (event->type == KINETO_KERNEL || b->context[i].owner != i)
            continue;
        int32_t step = step_at(steps, event->start_us);
        if (step >= 0)
            add_row(b, event, b->class[event->name], b -> context[i].phase, step, event->flops);
    }
}

/* A kernel that belongs to no operator is in the step that runs when it starts. */
static void add_kernels(struct builder *b, const struct steps *steps)
{
    const struct kineto_events *events = b->events;
    struct launcher *launcher = heap_alloc(events->count + 1, sizeof *launcher);
    bool *used = heap_zalloc(events->count + 1, sizeof *used); /* its flops are given away */
    size_t count = 0;
    for (uint32_t i = 0; i < events->count; i++)
        if (event_at(b, i)->type == KINETO_OPERATOR && event_at(b, i)->external != 0)
            launcher[count++] = (struct launcher){event_at(b, i)->external, i};
    if (count > 0)
        qsort(launcher, count, sizeof *launcher, compare_launchers);
    for (uint32_t i = 0; i < events->count; i++) {
        const struct kineto_event *event = event_at(b, i);
        if (event->type != KINETO_KERNEL)
            continue;
        enum kernel_class class = kernel_class_of_kernel(name_of(b, event));
        uint16_t phase = 0;
        double flops = 0;
        double issued_us = event->start_us;
        size_t found = find_launcher(launcher, count, event->external);
        if (found != NONE) {
            uint32_t source = launcher[found].event;
            const struct context *context = &b->context[source];
            issued_us = event_at(b, source)->start_us;
            phase = context->phase;
            if (class != CLASS_COMMUNICATION && class != CLASS_COPY && context->owner != NONE &&
                b->class[event_at(b, context->owner)->name] != CLASS_OTHER)
                class = b->class[event_at(b, context->owner)->name];
            if (!used[found] && class != CLASS_COMMUNICATION && class != CLASS_COPY) {
                flops = event_at(b, source)->flops;
                used[found] = true;
            }
        }
        int32_t step = step_at(steps, issued_us);
        if (step >= 0)
            add_row(b, event, class, phase, step, flops);
    }
    free(used);
    free(launcher);
}

bool kineto_recognise(const char *data, size_t size)
{
    size_t i = 0;
    while (i < size && strchr(" \t\r\n", data[i]) != NULL && data[i] != '\0')
        i++;
    return i < size && (data[i] == '{' || data[i] == '[');
}

static void build(struct builder *b)
{
    const struct kineto_events *events = b->events;
    struct trace *trace = b->trace;
    b->context = heap_alloc(events->count + 1, sizeof *b->context);
    b->class = heap_alloc(events->name_count + 1, sizeof *b->class);
    for (size_t i = 0; i < events->name_count; i++)
        b->class[i] = (uint8_t)kernel_class_of_operator(events->name[i]);
    b->forward = trace_label(trace, "forward");
    b->recompute = trace_label(trace, "recompute");
    b->backward = trace_label(trace, "backward");
    b->optimizer = trace_label(trace, "optimizer");
    nest(b);
    struct steps steps = find_steps(b);
    if (events->has_kernels)
        add_kernels(b, &steps);
    else
        add_operators(b, &steps);
    free(steps.step);
    free(b->context);
    free(b->class);
}

/* Labels are few in a real recording: names repeat in every layer and step. */
enum { LABEL_ROOM = 64 };

enum status kineto_parse(struct trace *trace, const char *name, const char *data, size_t size,
                         struct diag *diag)
{
    struct kineto_events events = {0};
    struct loc at = {.name = name};
    size_t before = trace->ops.count;
    enum status status = kineto_events_read(&events, name, data, size, diag);
    if (status != STATUS_OK)
        goto out;
    if (trace->label_count + events.name_count + events.lane_count + LABEL_ROOM >
        TRACE_LABEL_LIMIT) {
        status = diag_error(diag, at, STATUS_BAD_INPUT,
                            "%zu different names of operators and streams: more than %d",
                            events.name_count + events.lane_count, TRACE_LABEL_LIMIT - LABEL_ROOM);
        goto out;
    }
    struct builder builder = {.trace = trace, .events = &events};
    build(&builder);
    if (trace->ops.count == before) {
        status = diag_error(diag, at, STATUS_BAD_INPUT,
                            "no operators or kernels of the PyTorch profiler (categories cpu_op, "
                            "kernel, gpu_memcpy) among %zu events",
                            events.seen);
        goto out;
    }
    trace_set(trace, "made_by", "PyTorch profiler");
    if (events.ranks > 0) {
        struct text ranks = {0};
        text_put_i64(&ranks, events.ranks);
        trace_set(trace, "ranks", ranks.data);
        text_release(&ranks);
    }
out:
    kineto_events_release(&events);
    return status;
}
