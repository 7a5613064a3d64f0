#include "traces/kernel_times.h"

#include "base/c_locale.h"
#include "base/text.h"
#include "traces/compare.h"
#include "traces/kernel_class.h"
#include "traces/kineto_events.h"
#include "traces/kineto_launch.h"
#include "traces/step_recording.h"

#include <stdlib.h>
#include <string.h>

#define NO_EVENT UINT32_MAX

/* The most seconds that the kernels of one call may take; its picoseconds then fit in an int64_t. */
static const double CALL_LIMIT_S = 1e6;

void kernel_times_release(struct kernel_times *times)
{
    arena_release(&times->arena);
    free(times->rows);
    *times = (struct kernel_times){0};
}

/* ---- names ---- */

bool kernel_times_is_recorded_name_of(const char *recorded, const char *op)
{
    const size_t size = strlen(op);
    return strncmp(recorded, op, size) == 0 && (recorded[size] == '\0' || recorded[size] == '.');
}

/* True if a name is that of a kernel which Inductor wrote: "triton_poi_fused_add_mul_3". */
static bool is_inductor_kernel(const char *name)
{
    static const char triton[] = "triton_";
    return strncmp(name, triton, sizeof triton - 1) == 0;
}

/* Converts the profiler's name of an operator to the form in recorded steps: "aten::mm" to "mm", "fsdp::copy" to
 * "fsdp.copy", "triton_poi_fused_add_mul_3" to "triton_poi_fused_add_mul" (the 3 only numbers the kernels of a
 * graph). */
static const char *convert_to_recorded_name(struct arena *arena, const char *name)
{
    static const char aten[] = "aten::";
    const char *colons = strstr(name, "::");
    size_t size = strlen(name);
    if (is_inductor_kernel(name)) {
        while (size > 0 && c_is_digit(name[size - 1]))
            size--;
        if (size > 0 && size < strlen(name) && name[size - 1] == '_')
            return arena_text(arena, name, size - 1);
    }
    if (strncmp(name, aten, sizeof aten - 1) == 0)
        return arena_text(arena, name + sizeof aten - 1, strlen(name) - (sizeof aten - 1));
    if (colons == NULL)
        return arena_text(arena, name, strlen(name));
    return arena_printf(arena, "%.*s.%s", (int)(colons - name), name, colons + 2);
}

/* ---- the operator to which a kernel belongs ---- */

struct kernel_owners {
    struct kernel_times *times;
    const struct kineto_events *events;
    const char **recorded_names; /* [names] each name in the form of recorded steps */
    bool *wanted;                /* [names] true if the caller asks for operators of this name */
    /* [events] for an operator: the operator to which the time of its kernels is added, itself or one around it;
     * NO_EVENT for other events */
    uint32_t *owner;
    /* [events] for a call: the innermost operator around it; NO_EVENT: there is none */
    uint32_t *inner;
    /* [events] for an operator that owns kernels: the seconds of these kernels. For a kernel that Inductor wrote and
     * whose operator is not known, as in a CUDA graph: its own seconds. */
    double *seconds;
};

static void fill_recorded_names(struct kernel_owners *k, const char *const *wanted, size_t count)
{
    for (size_t i = 0; i < k->events->name_count; i++) {
        k->recorded_names[i] = convert_to_recorded_name(&k->times->arena, k->events->name[i]);
        for (size_t w = 0; w < count && !k->wanted[i]; w++)
            k->wanted[i] = kernel_times_is_recorded_name_of(wanted[w], k->recorded_names[i]);
    }
}

/* Sets owner[] and inner[]. On each thread events are in the order of their starts, and an event comes before those
 * that it encloses. */
static void find_owner_operators(struct kernel_owners *k)
{
    const struct kineto_events *events = k->events;
    uint32_t *stack = heap_alloc(events->event_count + 1, sizeof *stack);
    size_t depth = 0;
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = &events->events[i];
        k->owner[i] = k->inner[i] = NO_EVENT;
        if (event->type != KINETO_OPERATOR && event->type != KINETO_CALL)
            continue;
        while (depth > 0 && (events->events[stack[depth - 1]].lane != event->lane ||
                             event->start_us >= events->events[stack[depth - 1]].end_us))
            depth--;
        const uint32_t around = depth > 0 ? stack[depth - 1] : NO_EVENT;
        const uint32_t owner = around != NO_EVENT ? k->owner[around] : NO_EVENT;
        const bool within = owner != NO_EVENT && k->wanted[events->events[owner].name];
        if (event->type == KINETO_CALL) {
            k->inner[i] = around;
            continue;
        }
        k->owner[i] = within ? owner : i;
        stack[depth++] = i;
    }
    free(stack);
}

/* Reports why no kernel has a time. all: the number of kernels, without messages; within: the number of those that were
 * launched in a step. */
static enum status report_no_times(const char *name, size_t all, size_t within, struct diag *diag)
{
    const struct loc at = {.name = name};
    if (all == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "has kernels of messages alone: record a step that computes");
    if (within == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "no kernel was launched in a step of the profiler (ProfilerStep): call "
                          "profiler.step() after each training step");
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "all kernels take 0 us: the profiler recorded no times of the GPU");
}

/* True if the owner of a launch is an operator that the caller asks for, or the operator of a kernel that Inductor
 * wrote. False for a CUDA graph: it has one launch for all of its kernels, so their operators are not known. launcher:
 * the operator that launched; NO_EVENT: unknown. */
static bool has_known_operator(const struct kernel_owners *k, uint32_t launcher)
{
    const uint32_t owner = launcher != NO_EVENT ? k->owner[launcher] : NO_EVENT;
    return owner != NO_EVENT &&
           (k->wanted[k->events->events[owner].name] ||
            is_inductor_kernel(k->events->name[k->events->events[owner].name]));
}

/* Adds the time of each kernel, messages left out, to k->seconds of its owner; if the owner is
 * unknown, to times->seconds_of_unassigned_kernels or, for a kernel that Inductor wrote, to its own element. Kernels
 * launched outside of the profiler's steps do not count. Fails if no kernel that counts takes
 * time, or if a call takes more than CALL_LIMIT_S. */
static enum status add_kernels(struct kernel_owners *k, const struct kineto_steps *steps,
                               const char *name, struct diag *diag)
{
    const struct kineto_events *events = k->events;
    struct kineto_launchers launchers = {0};
    enum status status = STATUS_OK;
    size_t all = 0, within = 0;
    double sum_s = 0;
    kineto_launchers_find(&launchers, events, k->inner);
    for (uint32_t i = 0; i < events->event_count && status == STATUS_OK; i++) {
        const struct kineto_event *event = &events->events[i];
        if (event->type != KINETO_KERNEL ||
            kernel_class_of_kernel(events->name[event->name]) == CLASS_COMMUNICATION)
            continue;
        const uint32_t launcher = kineto_launcher_of(&launchers, event);
        const double seconds = 1e-6 * (event->end_us - event->start_us);
        const double issued_us =
            launcher != NO_EVENT ? events->events[launcher].start_us : event->start_us;
        all++;
        if (kineto_step_at(steps, issued_us) < 0)
            continue;
        const bool itself =
            is_inductor_kernel(events->name[event->name]) && !has_known_operator(k, launcher);
        double *to = itself                 ? &k->seconds[i]
                     : launcher == NO_EVENT ? &k->times->seconds_of_unassigned_kernels
                                            : &k->seconds[k->owner[launcher]];
        within++;
        sum_s += seconds;
        *to += seconds;
        if (seconds > CALL_LIMIT_S || (launcher != NO_EVENT && *to > CALL_LIMIT_S))
            status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                "a call takes %.3g s with its kernel '%.60s', and at most %.0f s "
                                "are read: is the recording damaged?",
                                *to, events->name[event->name], CALL_LIMIT_S);
    }
    kineto_launchers_release(&launchers);
    return status != STATUS_OK || sum_s > 0 ? status : report_no_times(name, all, within, diag);
}

/* ---- rows ---- */

/* One call of an operator that launched kernels, or a kernel that counts for itself. */
struct operator_call {
    struct operator_key key;
    bool has_missing_shapes;
    double seconds;
};

static int compare_operator_calls_by_key(const void *left, const void *right)
{
    const struct operator_call *a = left, *b = right;
    int order = strcmp(a->key.op, b->key.op);
    if (order == 0)
        order = strcmp(a->key.inputs, b->key.inputs);
    if (order == 0)
        order = a->key.dtype - b->key.dtype;
    return order != 0 ? order : (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

static bool is_same_key(const struct operator_call *a, const struct operator_call *b)
{
    return a->key.dtype == b->key.dtype && strcmp(a->key.op, b->key.op) == 0 &&
           strcmp(a->key.inputs, b->key.inputs) == 0;
}

static void add_rows(struct kernel_owners *k)
{
    struct kernel_times *times = k->times;
    const struct kineto_events *events = k->events;
    struct operator_call *call = heap_alloc(events->event_count + 1, sizeof *call);
    double *seconds = heap_alloc(events->event_count + 1, sizeof *seconds);
    size_t calls = 0;
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = &events->events[i];
        if (!(k->seconds[i] > 0))
            continue;
        const char *inputs =
            event->input_shapes != UINT32_MAX ? events->name[event->input_shapes] : "";
        call[calls++] = (struct operator_call){
            .key = {k->recorded_names[event->name],
                    arena_text(&times->arena, inputs, strlen(inputs)), event->dtype},
            .has_missing_shapes = event->has_missing_shapes || event->type == KINETO_KERNEL,
            .seconds = k->seconds[i],
        };
    }
    if (calls > 0)
        qsort(call, calls, sizeof *call, compare_operator_calls_by_key);
    times->rows = heap_zalloc(calls + 1, sizeof *times->rows);
    for (size_t i = 0, count; i < calls; i += count) {
        struct operator_kernel_time *row = &times->rows[times->row_count++];
        row->key = call[i].key;
        for (count = 0; i + count < calls && is_same_key(&call[i], &call[i + count]); count++) {
            seconds[count] = call[i + count].seconds;
            row->total_s += seconds[count];
            row->has_missing_shapes |= call[i + count].has_missing_shapes;
        }
        row->call_count = count;
        row->median_s = comparison_sort_and_find_median(seconds, count);
    }
    free(seconds);
    free(call);
}

static bool has_any_operator_inputs(const struct kineto_events *events)
{
    for (size_t i = 0; i < events->event_count; i++)
        if (events->events[i].type == KINETO_OPERATOR &&
            events->events[i].input_shapes != UINT32_MAX)
            return true;
    return false;
}

enum status kernel_times_read(struct kernel_times *times, const char *name, const char *data,
                              size_t size, const char *const *wanted, size_t count,
                              struct diag *diag)
{
    struct kineto_events events = {.reads_operator_inputs = true};
    struct kineto_steps steps = {0};
    enum status status = kineto_events_read(&events, name, data, size, diag);
    times->device = events.device;
    if (status == STATUS_OK && !events.has_kernels)
        status =
            diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                       "has no kernels of a GPU: record with activities=[ProfilerActivity.CPU, "
                       "ProfilerActivity.CUDA]");
    if (status == STATUS_OK && !has_any_operator_inputs(&events))
        status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                            "does not say the shapes of operators, by which they are told apart: "
                            "record with record_shapes=True");
    if (status == STATUS_OK) {
        struct kernel_owners k = {
            .times = times,
            .events = &events,
            .recorded_names =
                arena_array(&times->arena, events.name_count + 1, sizeof *k.recorded_names),
            .wanted = arena_array(&times->arena, events.name_count + 1, sizeof *k.wanted),
            .owner = heap_alloc(events.event_count + 1, sizeof *k.owner),
            .inner = heap_alloc(events.event_count + 1, sizeof *k.inner),
            .seconds = heap_zalloc(events.event_count + 1, sizeof *k.seconds),
        };
        fill_recorded_names(&k, wanted, count);
        find_owner_operators(&k);
        kineto_steps_find(&steps, &events);
        times->step_count = steps.step_count > 0 ? steps.step_count : 1;
        status = add_kernels(&k, &steps, name, diag);
        add_rows(&k);
        kineto_steps_release(&steps);
        free(k.owner);
        free(k.inner);
        free(k.seconds);
    }
    kineto_events_release(&events);
    return status;
}

const struct operator_kernel_time *kernel_times_find(const struct kernel_times *times,
                                                     const struct operator_key *recorded)
{
    const struct operator_kernel_time *other = NULL, *unlisted = NULL;
    size_t others = 0, lists = 0;
    for (size_t i = 0; i < times->row_count; i++) {
        const struct operator_kernel_time *row = &times->rows[i];
        if (!kernel_times_is_recorded_name_of(recorded->op, row->key.op))
            continue;
        const bool known =
            row->key.dtype != STEP_DTYPE_OTHER && recorded->dtype != STEP_DTYPE_OTHER;
        if (strcmp(row->key.inputs, recorded->inputs) == 0) {
            if (row->key.dtype == recorded->dtype)
                return row;
            if (!known)
                other = others++ == 0 ? row : NULL;
        }
        if (row->has_missing_shapes)
            unlisted = lists++ == 0 && (!known || row->key.dtype == recorded->dtype) ? row : NULL;
    }
    return other != NULL ? other : unlisted;
}
