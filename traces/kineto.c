#include "traces/kineto.h"

#include "base/c_locale.h"
#include "base/text.h"
#include "traces/kernel_class.h"
#include "traces/kineto_events.h"
#include "traces/kineto_launch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The properties that an event takes from the events that enclose it. */
struct context {
    uint32_t owner; /* the outermost enclosing operator that does work, or the event itself; NONE */
    uint32_t inner; /* the innermost enclosing operator, or the event itself; NONE */
    uint16_t phase; /* label; "forward" unless an enclosing event has another phase */
};

#define NONE UINT32_MAX

struct builder {
    struct trace *trace;
    const struct kineto_events *events;
    struct context *context; /* [events] set for operators, annotations and calls only */
    uint8_t *class;          /* [names] enum kernel_class */
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

/* Returns the phase of the events within an event, if `around` is the phase of the event itself. */
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

/* True if an operator calls no other operator: the next event on its thread that is no call of the GPU's runtime
 * starts after its end. */
static bool is_leaf(const struct builder *b, uint32_t i)
{
    const struct kineto_event *event = event_at(b, i);
    uint32_t next = i + 1;
    while (next < b->events->count && event_at(b, next)->type == KINETO_CALL &&
           event_at(b, next)->lane == event->lane)
        next++;
    return next == b->events->count || event_at(b, next)->lane != event->lane ||
           event_at(b, next)->type == KINETO_KERNEL || event_at(b, next)->start_us >= event->end_us;
}

/* Walks the operators of each thread, which nest in time, and gives each its context. Calls of the GPU's runtime get
 * the context of the operator around them. */
static void nest_calls(struct builder *b)
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
        struct context around = {NONE, NONE, b->forward};
        if (depth > 0)
            around = b->context[stack[depth - 1]];
        b->context[i] = around;
        if (event->type == KINETO_CALL)
            continue;
        b->context[i].phase = phase_inside(b, event, around.phase);
        if (event->type == KINETO_OPERATOR)
            b->context[i].inner = i;
        if (around.owner == NONE) {
            enum kernel_class class = b->class[event->name];
            /* An operator whose name does not tell its class is a row only if it calls no other operator. */
            if (event->type == KINETO_OPERATOR && class != CLASS_NONE &&
                (class != CLASS_OTHER || is_leaf(b, i)))
                b->context[i].owner = i;
        }
        stack[depth++] = i;
    }
    free(stack);
}

/* ---- rows ---- */

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
    ops->layer[row] = ops->chunk[row] = ops->micro[row] = -1;
    ops->step[row] = step;
    ops->start_s[row] = event->start_us * 1e-6;
    ops->end_s[row] = event->end_us * 1e-6;
    ops->bytes[row] = event->bytes;
    ops->flops[row] = flops;
}

static void add_operators(struct builder *b, const struct kineto_steps *steps)
{
    for (uint32_t i = 0; i < b->events->count; i++) {
        const struct kineto_event *event = event_at(b, i);
        if (event->type == KINETO_KERNEL || b->context[i].owner != i)
            continue;
        int32_t step = kineto_step_at(steps, event->start_us);
        if (step >= 0)
            add_row(b, event, b->class[event->name], b -> context[i].phase, step, event->flops);
    }
}

/* Adds a row for each kernel. A kernel whose operator is unknown belongs to the step that runs when the kernel
 * starts. */
static void add_kernels(struct builder *b, const struct kineto_steps *steps)
{
    const struct kineto_events *events = b->events;
    struct kineto_launchers launchers = {0};
    uint32_t *inner = heap_alloc(events->count + 1, sizeof *inner);
    for (uint32_t i = 0; i < events->count; i++)
        inner[i] = event_at(b, i)->type == KINETO_CALL ? b->context[i].inner : NONE;
    kineto_launchers_find(&launchers, events, inner);
    /* [events] a kernel of the operator has got its flops */
    bool *used = heap_zalloc(events->count + 1, sizeof *used);
    for (uint32_t i = 0; i < events->count; i++) {
        const struct kineto_event *event = event_at(b, i);
        if (event->type != KINETO_KERNEL)
            continue;
        enum kernel_class class = kernel_class_of_kernel(name_of(b, event));
        uint16_t phase = 0;
        double flops = 0;
        double issued_us = event->start_us;
        uint32_t source = kineto_launcher_of(&launchers, event);
        if (source != NONE) {
            const struct context *context = &b->context[source];
            issued_us = event_at(b, source)->start_us;
            phase = context->phase;
            /* cuBLASLt clears a workspace before it launches the product: a memset is not the operator's work. */
            bool works = class != CLASS_COMMUNICATION && class != CLASS_COPY &&
                         !starts_with(name_of(b, event), "Memset");
            if (works && context->owner != NONE &&
                b->class[event_at(b, context->owner)->name] != CLASS_OTHER)
                class = b->class[event_at(b, context->owner)->name];
            if (works && !used[source]) {
                flops = event_at(b, source)->flops;
                used[source] = true;
            }
        }
        int32_t step = kineto_step_at(steps, issued_us);
        if (step >= 0)
            add_row(b, event, class, phase, step, flops);
    }
    free(used);
    kineto_launchers_release(&launchers);
    free(inner);
}

static void add_issue(const struct builder *b, const struct kineto_steps *steps,
                      struct kineto_issue *issue)
{
    const struct kineto_events *events = b->events;
    struct kineto_issued *issued = heap_alloc(events->count + 1, sizeof *issued);
    size_t count = 0;
    for (uint32_t i = 0; i < events->count; i++) {
        const struct kineto_event *event = event_at(b, i);
        if (event->type == KINETO_CALL)
            issued[count++] =
                (struct kineto_issued){.start_us = event->start_us,
                                       .event = i,
                                       .operator_event = b->context[i].owner,
                                       .step = kineto_step_at(steps, event->start_us)};
    }
    kineto_issue_make(issue, events, issued, count);
    free(issued);
}

static size_t skip_blanks(const char *data, size_t size, size_t at)
{
    while (at < size && c_is_space(data[at]))
        at++;
    return at;
}

bool kineto_recognise(const char *data, size_t size)
{
    size_t at = skip_blanks(data, size, 0);
    /* an array of events; a '[' that begins a launcher's tag, such as "[1,0]", is not followed by '{' */
    if (at < size && data[at] == '[')
        at = skip_blanks(data, size, at + 1);
    return at < size && (data[at] == '{' || data[at] == ']');
}

static void build(struct builder *b, struct kineto_issue *issue)
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
    nest_calls(b);
    struct kineto_steps steps = {0};
    kineto_steps_find(&steps, events);
    if (events->has_kernels && issue != NULL)
        add_issue(b, &steps, issue);
    if (events->has_kernels)
        add_kernels(b, &steps);
    else
        add_operators(b, &steps);
    kineto_steps_release(&steps);
    free(b->context);
    free(b->class);
}

/* The number of labels that are kept free for phases and classes. The names of a recording need few labels, since they
 * repeat in every layer and step. */
enum { LABEL_ROOM = 64 };

enum status kineto_parse_issue(struct trace *trace, struct kineto_issue *issue, const char *name,
                               const char *data, size_t size, struct diag *diag)
{
    struct kineto_events events = {0};
    struct loc at = {.name = name};
    size_t before = trace->ops.count;
    enum status status = kineto_events_read(&events, name, data, size, diag);
    if (status != STATUS_OK)
        goto out;
    if (trace->label_count + events.name_count + events.lane_count + LABEL_ROOM >
        TRACE_LABEL_LIMIT) {
        status = diag_error(
            diag, at, STATUS_BAD_INPUT,
            "the recording has %zu different names of operators and streams; at most %d are read",
            events.name_count + events.lane_count, TRACE_LABEL_LIMIT - LABEL_ROOM);
        goto out;
    }
    struct builder builder = {.trace = trace, .events = &events};
    build(&builder, issue);
    if (trace->ops.count == before) {
        status =
            diag_error(diag, at, STATUS_BAD_INPUT,
                       "among %zu events there are no operators or kernels of the PyTorch "
                       "profiler (categories cpu_op, kernel, gpu_memcpy, gpu_memset) that belong "
                       "to a step",
                       events.seen_count);
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

enum status kineto_parse(struct trace *trace, const char *name, const char *data, size_t size,
                         struct diag *diag)
{
    return kineto_parse_issue(trace, NULL, name, data, size, diag);
}
