#include "predict/recorded_operators.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void recorded_operators_release(struct recorded_operators *operators)
{
    free(operators->row);
    arena_release(&operators->arena);
    *operators = (struct recorded_operators){0};
}

/* Returns the key of a recorded operator: its name, the shapes of its inputs and the dtype of the first. Inputs without
 * dimensions are left out. */
static struct operator_key operator_key_of(struct arena *arena, const struct step_recording *r,
                                           const struct step_event *event)
{
    struct operator_key key = {.op = event->op_name, .dtype = STEP_DTYPE_OTHER};
    struct text inputs = {0};
    for (uint32_t i = 0; i < event->in_count; i++) {
        const struct step_tensor *t = &r->tensor[event->in_begin + i];
        if (t->dim_count == 0)
            continue;
        if (inputs.size == 0)
            key.dtype = t->dtype;
        for (uint32_t d = 0; d < t->dim_count; d++)
            text_printf(&inputs, "%s%" PRId64, d == 0 ? "[" : ",", t->size[d]);
        text_putc(&inputs, ']');
    }
    key.inputs = arena_text(arena, inputs.size > 0 ? inputs.data : "", inputs.size);
    text_release(&inputs);
    return key;
}

/* Returns the event of an op; NULL: the op is not a kernel of the recorded program. */
static const struct step_event *kernel_event_of_op(const struct prediction *p,
                                                   const struct step_recording *r, uint32_t op)
{
    const uint32_t number = p->recorded.event_of_op[op];
    const bool kernel = number != IR_NONE && p->ir.op.kind[op] == WORK_OPAQUE &&
                        ir_work(&p->ir, op)->opaque.as != OPAQUE_TAKES_NO_TIME;
    return kernel ? &r->event[number] : NULL;
}

/* ---- sums ---- */

static int compare_operator_keys(const void *left, const void *right)
{
    const struct recorded_kernels_of_operator *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    int order = strcmp(a->key.op, b->key.op);
    if (order == 0)
        order = strcmp(a->key.inputs, b->key.inputs);
    return order != 0 ? order : a->key.dtype - b->key.dtype;
}

static void add_recorded_rank(struct recorded_operators *o, const struct prediction *p,
                              const struct step_recording *r)
{
    const struct sim_class *class = &p->sim.classes[p->sim.class_of_rank[r->rank]];
    for (uint32_t k = 0; k < class->op_count; k++) {
        const struct step_event *event = kernel_event_of_op(p, r, class->op_begin + k);
        if (event != NULL)
            o->row[o->count++] = (struct recorded_kernels_of_operator){
                .key = operator_key_of(&o->arena, r, event),
                .rank = r->rank,
                .call_count = 1,
                .predicted_s =
                    p->sim.end_s[class->first_row + k] - p->sim.start_s[class->first_row + k],
            };
    }
}

void recorded_operators_make(struct recorded_operators *o, const struct prediction *p)
{
    size_t rows = 0;
    assert(prediction_is_recorded(p) && p->is_simulated);
    *o = (struct recorded_operators){0};
    o->row = heap_alloc((size_t)p->ir.op.count + 1, sizeof *o->row);
    for (uint32_t i = 0; i < p->recorded.count; i++)
        add_recorded_rank(o, p, &p->recorded.recording[i]);
    if (o->count > 0)
        qsort(o->row, o->count, sizeof *o->row, compare_operator_keys);
    for (size_t i = 0; i < o->count; i++) {
        if (rows > 0 && compare_operator_keys(&o->row[rows - 1], &o->row[i]) == 0) {
            o->row[rows - 1].call_count++;
            o->row[rows - 1].predicted_s += o->row[i].predicted_s;
        } else {
            o->row[rows++] = o->row[i];
        }
    }
    o->count = rows;
}

/* ---- measured times ---- */

/* Returns, on the heap, the name of each operator of the recordings once, and sets *count to their number. */
static const char **operator_names(const struct prediction *p, size_t *count)
{
    size_t events = 1;
    for (uint32_t i = 0; i < p->recorded.count; i++)
        events += p->recorded.recording[i].event_count;
    const char **name = heap_alloc(events, sizeof *name);
    *count = 0;
    for (uint32_t i = 0; i < p->recorded.count; i++)
        for (uint32_t e = 0; e < p->recorded.recording[i].event_count; e++) {
            const struct step_event *event = &p->recorded.recording[i].event[e];
            size_t k = 0;
            while (k < *count && strcmp(name[k], event->op_name) != 0)
                k++;
            if (k == *count && event->kind < STEP_RECORD_CUDA_EVENT)
                name[(*count)++] = event->op_name;
        }
    return name;
}

/* Sets the time of each kernel of one recording for which a measured one is found, and counts both these and all
 * kernels in p->measured. */
static void use_measured_times(struct prediction *p, uint32_t role,
                               const struct kernel_times *times, struct arena *arena)
{
    const struct step_recording *r = &p->recorded.recording[role];
    const struct role *ops = &p->ir.role[role];
    for (uint32_t op = ops->op_begin; role_has_op(ops, op); op++) {
        const struct step_event *event = kernel_event_of_op(p, r, op);
        if (event == NULL)
            continue;
        const struct operator_key key = operator_key_of(arena, r, event);
        const struct operator_kernel_time *time = kernel_times_find(times, &key);
        p->measured.kernel_total++;
        if (time == NULL)
            continue;
        struct work work = *ir_work(&p->ir, op);
        work.opaque.ps = llround(fmax(1e12 * time->median_s, 1));
        ir_set_work(&p->ir, op, &work);
        p->measured.measured_kernels++;
    }
}

/* Refuses times that were measured on another GPU than the cluster's: one with another number of multiprocessors or
 * another size of memory. A recording without these numbers is accepted, and sets p->measured.is_device_unknown. */
static enum status check_device(struct prediction *p, const struct kineto_device *from,
                                const char *path, struct diag *diag)
{
    const double near = 0.05; /* drivers report somewhat different totals */
    const double gib = 1024.0 * 1024 * 1024;
    const struct device *to = &p->setup->cluster.device;
    const double memory = to->memory_bytes - to->driver_bytes;
    p->measured.is_device_unknown = from->multiprocessors <= 0 || from->memory_bytes <= 0;
    if (p->measured.is_device_unknown || (from->multiprocessors == (double)to->sm_count &&
                                          fabs(from->memory_bytes / memory - 1) <= near))
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                      "its kernels ran on '%s' (%.0f multiprocessors, %.1f GiB), and GPUs of the "
                      "cluster are %s (%" PRId64 ", %.1f GiB); "
                      "choose a cluster of the GPU that ran, or leave --kernel-times out",
                      from->name, from->multiprocessors, from->memory_bytes / gib, to->name,
                      to->sm_count, memory / gib);
}

enum status recorded_operators_use_measured(struct prediction *p, const char *path,
                                            struct diag *diag)
{
    struct kernel_times times = {0};
    struct arena arena = {0};
    struct text text = {0};
    size_t count;
    const char **name = operator_names(p, &count);
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = kernel_times_read(&times, path, text.data, text.size, name, count, diag);
    if (status == STATUS_OK)
        status = check_device(p, &times.device, path, diag);
    p->measured.file = path;
    for (uint32_t i = 0; i < p->recorded.count && status == STATUS_OK; i++)
        use_measured_times(p, i, &times, &arena);
    if (status == STATUS_OK && times.row_count == 0)
        status =
            diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                       "has no calls that launched its kernels, which say their operators: record "
                       "with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
    if (status == STATUS_OK && p->measured.measured_kernels == 0)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "none of its %zu operators is one of the recorded step: both have to "
                            "run the same program with the same sizes",
                            times.row_count);
    free((void *)name);
    text_release(&text);
    arena_release(&arena);
    kernel_times_release(&times);
    return status;
}
