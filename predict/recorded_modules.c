#include "predict/recorded_modules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void recorded_modules_release(struct recorded_modules *modules)
{
    free(modules->row);
    arena_release(&modules->arena);
    *modules = (struct recorded_modules){0};
}

/* Returns a module's name, with '*' in place of each part between dots that is a number. */
static const char *module_name_pattern(struct arena *arena, const char *name)
{
    struct text out = {0};
    for (const char *at = name; *at != '\0';) {
        const size_t size = strcspn(at, ".");
        if (size > 0 && strspn(at, "0123456789") == size)
            text_putc(&out, '*');
        else
            text_append(&out, at, size);
        at += size;
        if (*at == '.')
            text_putc(&out, *at++);
    }
    const char *pattern = arena_text(arena, out.size > 0 ? out.data : "", out.size);
    text_release(&out);
    return pattern;
}

static int longer_first(const void *a, const void *b)
{
    const struct recorded_module *x = a, *y = b;
    if (x->total_s != y->total_s)
        return x->total_s < y->total_s ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Returns, on the heap, the index in m->row of each module of a recording. Modules that have no row yet get one; m->row
 * must have room for all. */
static uint32_t *row_index_of_each_module(struct recorded_modules *m,
                                          const struct step_recording *r)
{
    uint32_t *row = heap_alloc((size_t)r->module_count + 1, sizeof *row);
    for (uint32_t i = 0; i < r->module_count; i++) {
        const char *name = module_name_pattern(&m->arena, r->module[i]);
        for (row[i] = 0; row[i] < m->count && strcmp(m->row[row[i]].name, name) != 0;)
            row[i]++;
        if (row[i] == m->count)
            m->row[m->count++].name = name;
    }
    return row;
}

static void add_kernel(struct recorded_modules *m, uint32_t row, enum step_phase phase,
                       double seconds)
{
    struct recorded_module *module = &m->row[row];
    double *of_phase[STEP_PHASE_COUNT] = {
        [STEP_FORWARD] = &module->forward_s,
        [STEP_BACKWARD] = &module->backward_s,
        [STEP_RECOMPUTE] = &module->recompute_s,
        [STEP_OPTIMIZER] = &module->optimizer_s,
    };
    *of_phase[phase] += seconds;
    module->total_s += seconds;
    m->kernel_s += seconds;
}

/* The seconds of the longest kernel so far. guessed_s: of the kernels whose time was not measured; unknown_s: of those
 * among them of which only the bytes are known. */
struct longest_kernel_seconds {
    double unknown_s, guessed_s;
};

/* Adds a kernel's seconds to those of measured kernels, or, if only its bytes are known, to those of unknown ones. Sets
 * the operator of the longest kernel without a measured time, and that of the longest of these of which only the bytes
 * are known. */
static void add_kernel_seconds(struct recorded_modules *m, const struct work *work,
                               const struct step_event *event, double seconds,
                               struct longest_kernel_seconds *longest)
{
    if (work->opaque.ps > 0) {
        m->measured_kernel_s += seconds;
        return;
    }
    if (seconds > longest->guessed_s) {
        longest->guessed_s = seconds;
        m->longest_unmeasured_operator = event->op_name;
    }
    if (event->kind != STEP_OPAQUE)
        return;
    m->kernels_of_unknown_flops_s += seconds;
    if (seconds > longest->unknown_s || m->operator_of_longest_unknown_kernel == NULL) {
        longest->unknown_s = seconds;
        m->operator_of_longest_unknown_kernel = event->op_name;
    }
}

/* Adds to *m the kernels, collectives and flops of one recording. */
static void add_recording(struct recorded_modules *m, const struct prediction *p,
                          const struct step_recording *r, struct longest_kernel_seconds *longest)
{
    const struct sim_class *class = &p->sim.classes[p->sim.class_of_rank[r->rank]];
    uint32_t *row = row_index_of_each_module(m, r);
    for (uint32_t k = 0; k < class->op_count; k++) {
        const uint32_t op = class->op_begin + k, number = p->recorded.event_of_op[op];
        const double seconds =
            p->sim.end_s[class->first_row + k] - p->sim.start_s[class->first_row + k];
        if (number == IR_NONE)
            continue;
        const struct step_event *event = &r->event[number];
        if (event->kind == STEP_COLLECTIVE)
            m->collectives_s += seconds;
        m->model_flops += event->flops / p->recorded.count;
        if (event->phase == STEP_RECOMPUTE)
            m->repeated_flops += event->flops / p->recorded.count;
        if (p->ir.op.kind[op] != WORK_OPAQUE)
            continue;
        add_kernel(m, row[event->module], (enum step_phase)event->phase, seconds);
        add_kernel_seconds(m, ir_work(&p->ir, op), event, seconds, longest);
    }
    free(row);
}

void recorded_modules_make(struct recorded_modules *m, const struct prediction *p)
{
    const struct schedule_recordings *recorded = &p->recorded;
    size_t modules = 1;
    struct longest_kernel_seconds longest = {0, 0};
    assert(prediction_is_recorded(p) && p->is_simulated);
    *m = (struct recorded_modules){0};
    for (uint32_t i = 0; i < recorded->count; i++)
        modules += recorded->recording[i].module_count;
    m->row = heap_zalloc(modules, sizeof *m->row);
    for (uint32_t i = 0; i < recorded->count; i++)
        add_recording(m, p, &recorded->recording[i], &longest);
    qsort(m->row, m->count, sizeof *m->row, longer_first);
    while (m->count > 0 && !(m->row[m->count - 1].total_s > 0))
        m->count--;
}

double recorded_modules_mfu(const struct prediction *p)
{
    double useful_s = 0;
    uint32_t ranks = 0;
    if (p->stages.stage_count <= 1)
        return p->sim.step_s > 0 ? p->waterfall.cause_s[CAUSE_USEFUL] / p->sim.step_s : 0;
    for (uint32_t i = 0; i < p->stages.stage_count; i++) {
        useful_s += p->stages.rank_count_by_stage[i] * p->stages.waterfall[i].cause_s[CAUSE_USEFUL];
        ranks += p->stages.rank_count_by_stage[i];
    }
    return ranks > 0 && p->sim.step_s > 0 ? useful_s / ranks / p->sim.step_s : 0;
}
