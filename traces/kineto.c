#include "traces/kineto.h"

#include "base/c_locale.h"
#include "base/text.h"
#include "traces/kernel_class.h"
#include "traces/kineto_events.h"
#include "traces/kineto_launch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* The properties of an event that follow from the events that enclose it; the event itself counts as one of these. */
struct operators_and_phase_around_event {
    uint32_t owner; /* the outermost enclosing operator that does work; NONE: there is none */
    uint32_t inner; /* the innermost enclosing operator; NONE: there is none */
    uint16_t phase; /* label; "forward" unless an enclosing event has another phase */
};

struct builder {
    struct trace *trace;
    const struct kineto_events *events;
    /* [events] set for operators, annotations and calls only */
    struct operators_and_phase_around_event *operators_and_phase_by_event;
    uint8_t *class_of_name; /* [names] enum kernel_class */
    uint16_t forward_label, recompute_label, backward_label, optimizer_label;
};

static const struct kineto_event *event_at_index(const struct builder *b, uint32_t i)
{
    return &b->events->events[i];
}

static const char *event_name(const struct builder *b, const struct kineto_event *event)
{
    return b->events->name[event->name];
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Returns the phase inside an event, which may begin a phase by its name. around: the phase in which the event lies. */
static uint16_t phase_of_events_inside(const struct builder *b, const struct kineto_event *event,
                                       uint16_t around)
{
    static const char engine[] = "autograd::engine::evaluate_function: ";
    const char *name = event_name(b, event);
    if (starts_with(name, engine))
        return starts_with(name + sizeof engine - 1, "CheckpointFunctionBackward")
                   ? b->recompute_label
                   : b->backward_label;
    if (starts_with(name, "Optimizer."))
        return b->optimizer_label;
    return around;
}

/* True if an operator calls no other operator: the next event on its thread, calls of the GPU's runtime left out,
 * starts after its end. */
static bool calls_no_other_operator(const struct builder *b, uint32_t i)
{
    const struct kineto_event *event = event_at_index(b, i);
    uint32_t next = i + 1;
    while (next < b->events->event_count && event_at_index(b, next)->type == KINETO_CALL &&
           event_at_index(b, next)->lane == event->lane)
        next++;
    return next == b->events->event_count || event_at_index(b, next)->lane != event->lane ||
           event_at_index(b, next)->type == KINETO_KERNEL ||
           event_at_index(b, next)->start_us >= event->end_us;
}

/* Sets the context of each operator and annotation; on a thread they nest in time. A call of the GPU's runtime gets the
 * context of the event around it. */
static void find_operators_around_events(struct builder *b)
{
    const struct kineto_events *events = b->events;
    uint32_t *stack = heap_alloc(events->event_count + 1, sizeof *stack);
    size_t depth = 0;
    uint32_t last_thread = NONE;
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = event_at_index(b, i);
        if (event->type == KINETO_KERNEL)
            continue;
        if (event->lane != last_thread)
            depth = 0;
        last_thread = event->lane;
        while (depth > 0 && event->start_us >= event_at_index(b, stack[depth - 1])->end_us)
            depth--;
        struct operators_and_phase_around_event around = {NONE, NONE, b->forward_label};
        if (depth > 0)
            around = b->operators_and_phase_by_event[stack[depth - 1]];
        b->operators_and_phase_by_event[i] = around;
        if (event->type == KINETO_CALL)
            continue;
        b->operators_and_phase_by_event[i].phase = phase_of_events_inside(b, event, around.phase);
        if (event->type == KINETO_OPERATOR)
            b->operators_and_phase_by_event[i].inner = i;
        if (around.owner == NONE) {
            enum kernel_class class = b->class_of_name[event->name];
            /* An operator whose name does not tell its class is a row only if it calls no other operator. */
            if (event->type == KINETO_OPERATOR && class != CLASS_NO_WORK &&
                (class != CLASS_OTHER || calls_no_other_operator(b, i)))
                b->operators_and_phase_by_event[i].owner = i;
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
    if (phase == b->optimizer_label && class != CLASS_COMMUNICATION && class != CLASS_COPY)
        class = CLASS_OPTIMIZER;
    size_t row = trace_add_op(trace);
    struct trace_ops *ops = &trace->ops;
    ops->rank[row] = b->events->rank;
    ops->op[row] = (uint32_t)row;
    ops->stream[row] = trace_intern_label(trace, b->events->lane[event->lane]);
    ops->kind[row] = trace_intern_label(trace, event_name(b, event));
    ops->phase[row] = phase;
    ops->region[row] = trace_intern_label(trace, kernel_class_name(class));
    ops->layer[row] = ops->chunk[row] = ops->micro[row] = -1;
    ops->step[row] = step;
    ops->start_s[row] = event->start_us * 1e-6;
    ops->end_s[row] = event->end_us * 1e-6;
    ops->bytes[row] = event->bytes;
    ops->flops[row] = flops;
}

static void add_operators(struct builder *b, const struct kineto_steps *steps)
{
    for (uint32_t i = 0; i < b->events->event_count; i++) {
        const struct kineto_event *event = event_at_index(b, i);
        if (event->type == KINETO_KERNEL || b->operators_and_phase_by_event[i].owner != i)
            continue;
        int32_t step = kineto_step_at(steps, event->start_us);
        if (step >= 0)
            add_row(b, event, b->class_of_name[event->name],
                    b->operators_and_phase_by_event[i].phase, step, event->flops);
    }
}

/* Adds a row for each kernel. It belongs to the step in which its operator was called; if its
 * operator is unknown, to the step that runs when the kernel starts. A kernel of no step is left
 * out. */
static void add_kernels(struct builder *b, const struct kineto_steps *steps)
{
    const struct kineto_events *events = b->events;
    struct kineto_launchers launchers = {0};
    uint32_t *inner = heap_alloc(events->event_count + 1, sizeof *inner);
    for (uint32_t i = 0; i < events->event_count; i++)
        inner[i] = event_at_index(b, i)->type == KINETO_CALL
                       ? b->operators_and_phase_by_event[i].inner
                       : NONE;
    kineto_launchers_find(&launchers, events, inner);
    /* [events] the operator's flops have already been given to one of its kernels */
    bool *used = heap_zalloc(events->event_count + 1, sizeof *used);
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = event_at_index(b, i);
        if (event->type != KINETO_KERNEL)
            continue;
        enum kernel_class class = kernel_class_of_kernel(event_name(b, event));
        uint16_t phase = 0;
        double flops = 0;
        double issued_us = event->start_us;
        uint32_t source = kineto_launcher_of(&launchers, event);
        if (source != NONE) {
            const struct operators_and_phase_around_event *context =
                &b->operators_and_phase_by_event[source];
            issued_us = event_at_index(b, source)->start_us;
            phase = context->phase;
            /* cuBLASLt clears a workspace before it launches the product: a memset is not the operator's work. */
            bool works = class != CLASS_COMMUNICATION && class != CLASS_COPY &&
                         !starts_with(event_name(b, event), "Memset");
            if (works && context->owner != NONE &&
                b->class_of_name[event_at_index(b, context->owner)->name] != CLASS_OTHER)
                class = b->class_of_name[event_at_index(b, context->owner)->name];
            if (works && !used[source]) {
                flops = event_at_index(b, source)->flops;
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

static void sum_host_issue_of_steps(const struct builder *b, const struct kineto_steps *steps,
                                    struct kineto_host_calls *issue)
{
    const struct kineto_events *events = b->events;
    struct kineto_runtime_call *issued = heap_alloc(events->event_count + 1, sizeof *issued);
    size_t count = 0;
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = event_at_index(b, i);
        if (event->type == KINETO_CALL)
            issued[count++] = (struct kineto_runtime_call){
                .start_us = event->start_us,
                .event_index_of_call = i,
                .event_index_of_calling_operator = b->operators_and_phase_by_event[i].owner,
                .step = kineto_step_at(steps, event->start_us)};
    }
    kineto_sum_host_calls(issue, events, issued, count);
    free(issued);
}

/* ---- the reader ---- */

static size_t skip_blanks(const char *data, size_t size, size_t at)
{
    while (at < size && c_is_space(data[at]))
        at++;
    return at;
}

bool kineto_recognise(const char *data, size_t size)
{
    size_t at = skip_blanks(data, size, 0);
    /* An array of events begins with "[{" or is "[]". Other texts that begin with '[', such as
     * "[1,0]<stdout>: ..." of mpirun, do not. */
    if (at < size && data[at] == '[')
        at = skip_blanks(data, size, at + 1);
    return at < size && (data[at] == '{' || data[at] == ']');
}

static void add_all_rows(struct builder *b, struct kineto_host_calls *issue)
{
    const struct kineto_events *events = b->events;
    struct trace *trace = b->trace;
    b->operators_and_phase_by_event =
        heap_alloc(events->event_count + 1, sizeof *b->operators_and_phase_by_event);
    b->class_of_name = heap_alloc(events->name_count + 1, sizeof *b->class_of_name);
    for (size_t i = 0; i < events->name_count; i++)
        b->class_of_name[i] = (uint8_t)kernel_class_of_operator(events->name[i]);
    b->forward_label = trace_intern_label(trace, "forward");
    b->recompute_label = trace_intern_label(trace, "recompute");
    b->backward_label = trace_intern_label(trace, "backward");
    b->optimizer_label = trace_intern_label(trace, "optimizer");
    find_operators_around_events(b);
    struct kineto_steps steps = {0};
    kineto_steps_find(&steps, events);
    if (events->has_kernels && issue != NULL)
        sum_host_issue_of_steps(b, &steps, issue);
    if (events->has_kernels)
        add_kernels(b, &steps);
    else
        add_operators(b, &steps);
    kineto_steps_release(&steps);
    free(b->operators_and_phase_by_event);
    free(b->class_of_name);
}

/* The number of labels that are kept free for phases and classes. The names of a recording need few labels, since they
 * repeat in every layer and step. */
enum { LABEL_ROOM = 64 };

enum status kineto_parse_with_host_calls(struct trace *trace, struct kineto_host_calls *issue,
                                         const char *name, const char *data, size_t size,
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
        status = diag_error(
            diag, at, STATUS_BAD_INPUT,
            "the recording has %zu different names of operators and streams; at most %d are read",
            events.name_count + events.lane_count, TRACE_LABEL_LIMIT - LABEL_ROOM);
        goto out;
    }
    struct builder builder = {.trace = trace, .events = &events};
    add_all_rows(&builder, issue);
    if (trace->ops.count == before) {
        status =
            diag_error(diag, at, STATUS_BAD_INPUT,
                       "among %zu events there are no operators or kernels of the PyTorch "
                       "profiler (categories cpu_op, kernel, gpu_memcpy, gpu_memset) that belong "
                       "to a step",
                       events.read_event_count);
        goto out;
    }
    trace_set_key(trace, "made_by", "PyTorch profiler");
    if (events.rank_count > 0) {
        struct text ranks = {0};
        text_put_i64(&ranks, events.rank_count);
        trace_set_key(trace, "ranks", ranks.data);
        text_release(&ranks);
    }
out:
    kineto_events_release(&events);
    return status;
}

enum status kineto_parse(struct trace *trace, const char *name, const char *data, size_t size,
                         struct diag *diag)
{
    return kineto_parse_with_host_calls(trace, NULL, name, data, size, diag);
}
