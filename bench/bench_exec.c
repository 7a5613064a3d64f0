/* Measures the overhead of the IR: a step that exec_run() runs is compared with the same kernels called directly.
 *
 * The direct loop calls the same functions on the same shapes in the same order, on one arena with the same offsets,
 * and nothing else: no host thread, no streams, no waits, no clocks. It has one rank, since with several the direct
 * loop would itself become an executor. The two are run alternately, so that a machine that slows down slows both;
 * the medians are compared. */
#include "exec/assignment.h"
#include "exec/bindings.h"
#include "exec/cpu/kernels.h"
#include "exec/exec.h"
#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TURNS = 5 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int print_failure(struct diag *diag)
{
    fputs(diag->text ? diag->text : "no reason was given\n", stderr);
    return 2;
}

static enum status fill_bound_buffer(void *user, const struct exec_buffer *buffer,
                                     struct diag *diag)
{
    (void)user;
    (void)diag;
    if (buffer->dtype != DTYPE_F32)
        return STATUS_OK; /* token 0 everywhere, positions 0: the work is the same */
    float *data = buffer->data;
    for (uint64_t i = 0; i < buffer->element_count; i++)
        data[i] = (float)((int)(i % 17) - 8) / 64;
    return STATUS_OK;
}

/* The calls of rank 0 in list order, on an arena of this program's own. */
struct direct_calls {
    struct call *calls;
    uint32_t call_count;
    char *arena;
    float *scratch;
};

static void prepare_direct_calls(struct direct_calls *d, const struct ir *ir,
                                 const struct assignment *assignment)
{
    size_t scratch = 1;
    d->arena = heap_zalloc(ir->planned_bytes[MEMORY_HBM] + 64, 1);
    d->calls = heap_zalloc(ir->op.count, sizeof *d->calls);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        struct call *call = &d->calls[d->call_count];
        if (!cpu_math_rows[ir->op.kind[op]].run)
            continue;
        d->call_count++;
        size_t needs = cpu_scratch_floats(ir, op);
        scratch = needs > scratch ? needs : scratch;
        *call = (struct call){.work = ir_work(ir, op),
                              .op = op,
                              .reads_softmax = assignment->reads_softmax_by_op[op],
                              .model = {1e-5, 5e5},
                              .adamw = {1e-3, 0.9, 0.95, 1e-8, 0, 1, 1},
                              .read_count = ir->op.read_count[op],
                              .write_count = ir->op.write_count[op]};
        for (uint32_t k = 0; k < (uint32_t)call->read_count + call->write_count; k++) {
            struct view view = ir_view_of_operand(ir, ir->operand[ir->op.operand_begin[op] + k]);
            uint8_t dtype = ir->buffer.dtype[view.buffer.i];
            uint64_t at = ir->buffer.offset[view.buffer.i] + view.begin * dtype_bytes(dtype);
            struct operand operand = {d->arena + at, view.count, dtype};
            if (k < call->read_count)
                call->read[k] = operand;
            else
                call->write[k - call->read_count] = operand;
        }
    }
    d->scratch = aligned_alloc(64, (scratch * sizeof(float) + 63) / 64 * 64);
    /* the direct calls begin with the same values as exec_run() */
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        struct exec_buffer buffer = {.dtype = ir->buffer.dtype[b],
                                     .element_count = ir_buffer_elements(ir, (buffer_id){b}),
                                     .data = d->arena + ir->buffer.offset[b]};
        if (ir->buffer.binding[b] != IR_NONE16)
            fill_bound_buffer(NULL, &buffer, NULL);
    }
}

static double direct_step_s(const struct direct_calls *d)
{
    double start = now_s();
    for (uint32_t i = 0; i < d->call_count; i++) {
        const char *wrong = cpu_compute_call(&d->calls[i], d->scratch);
        if (wrong) {
            fprintf(stderr, "op %u: %s\n", d->calls[i].op, wrong);
            exit(2);
        }
    }
    return now_s() - start;
}

int main(void)
{
    struct diag diag = {0};
    struct arena arena = {0};
    struct transformer model;
    struct choices choices;
    struct ir ir = {0};
    struct assignment assignment = {0};
    if (transformer_load(&model, &arena, "longhaul-3m", NULL, &diag) != STATUS_OK)
        return print_failure(&diag);
    struct request request = {.model = &model,
                              .strategy = "local",
                              .profile = "ideal",
                              .weights = CHOICE_WEIGHTS_REPLICATED,
                              .activations = CHOICE_ACTIVATIONS_FULL,
                              .optimizer = CHOICE_OPTIMIZER_DEVICE,
                              .attention_impl = ATTENTION_CPU,
                              .dtype = DTYPE_F32,
                              .ranks = 1,
                              .seq = 4096,
                              .sm = 0,
                              .gpus_per_node = 1};
    if (resolve_choices(&choices, &request, NULL, &diag) != STATUS_OK ||
        step_build(&ir, &choices, &diag) != STATUS_OK ||
        assignment_init(&assignment, &ir, "bench", &diag) != STATUS_OK)
        return print_failure(&diag);

    struct direct_calls direct = {0};
    prepare_direct_calls(&direct, &ir, &assignment);
    direct_step_s(&direct); /* warm-up */
    double run[TURNS], plain[TURNS];
    for (int i = 0; i < TURNS; i++) {
        struct exec_options options = {.model = {1e-5, 5e5},
                                       .adamw = {1e-3, 0.9, 0.95, 1e-8, 0, 1, 1},
                                       .warmup_steps = 1,
                                       .measured_steps = 1};
        struct exec_io io = {.fill = fill_bound_buffer};
        struct exec_result result = {0};
        if (exec_run(&ir, "bench", &options, &io, &result, &diag) != STATUS_OK)
            return print_failure(&diag);
        run[i] = result.median_s;
        plain[i] = direct_step_s(&direct);
        exec_result_release(&result);
    }
    gsl_sort(run, 1, TURNS);
    gsl_sort(plain, 1, TURNS);
    double a = gsl_stats_median_from_sorted_data(run, 1, TURNS);
    double b = gsl_stats_median_from_sorted_data(plain, 1, TURNS);
    printf("longhaul-3m, %lld tokens, full recomputation, 1 rank: %u ops\n", (long long)request.seq,
           ir.op.count);
    printf("run through the IR %.4f s (%.4f to %.4f), kernels called directly %.4f s (%.4f to "
           "%.4f): %+.2f %%\n",
           a, run[0], run[TURNS - 1], b, plain[0], plain[TURNS - 1], 100 * (a / b - 1));
    free(direct.arena);
    free(direct.calls);
    free(direct.scratch);
    assignment_release(&assignment);
    ir_release(&ir);
    arena_release(&arena);
    diag_release(&diag);
    return 0;
}
