/* tests/exec/one_op.h: runs one op as a schedule of its own, with seeded inputs, and compares what two backends
 * compute. Included by test files only. */
#ifndef TESTS_EXEC_ONE_OP_H
#define TESTS_EXEC_ONE_OP_H

#include "exec/backend.h"
#include "exec/exec.h"
#include "exec/microbench_operands.h"
#include "exec/number.h"
#include "schedule/analysis/liveness.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct one_op {
    struct work work;
    enum dtype dtype;
    uint64_t seed;
    struct ir ir;
    uint32_t reads, writes;
    uint32_t read[CALL_OPERANDS_MAX], write[CALL_OPERANDS_MAX]; /* buffer ids of the operands */
    double *got[CALL_OPERANDS_MAX];     /* elements of each write after the run */
    enum dtype type[CALL_OPERANDS_MAX]; /* the type of each write */
    uint64_t count[CALL_OPERANDS_MAX];
};

static inline struct view one_op_add_operand_buffer(struct one_op *o, struct bench_operand operand,
                                                    uint16_t binding)
{
    struct buffer_desc desc = {
        .stem = "x",
        .number = IR_NONE,
        .memory = MEMORY_HBM,
        .dtype = operand.dtype,
        .category = CATEGORY_ACTIVATION,
        .flags = BUFFER_PERSISTENT,
        .layer = IR_NONE16,
        .binding = binding,
        .dims = {.count = 1, .size = {(int64_t)operand.element_count}},
    };
    return ir_whole_view(&o->ir, ir_add_buffer(&o->ir, &desc));
}

/* Builds a schedule of the op. Returns false if its kind does not run on a compute stream, or if bench_list_operands()
 * refuses its sizes. */
static inline bool one_op_build(struct one_op *o)
{
    struct ir *ir = &o->ir;
    struct bench_operands operands;
    struct view read[CALL_OPERANDS_MAX], write[CALL_OPERANDS_MAX];
    if (work_kind_info((enum work_kind)o->work.kind)->stream != STREAM_COMPUTE ||
        !bench_list_operands(&o->work, o->dtype, &operands))
        return false;
    ir->mesh = (struct mesh){.axis_count = 1, .axis = {{"rank", 1}}};
    ir->dtype = (uint8_t)o->dtype;
    ir->global_batch = ir->micro_batch = 1;
    ir->layout = (struct token_layout){
        .kind = LAYOUT_CONTIGUOUS, .cp = 1, .hp = 1, .chunk_count = 1, .sequence_tokens = 1};
    uint32_t tensor = ir_add_tensor(ir, (struct tensor){.name = "x", .rows = 1, .cols = 1});
    uint16_t bundle = ir_add_bundle(ir, (struct bundle){"x", tensor, 1, 1, 0});
    uint16_t binding =
        ir_add_binding(ir, (struct binding){BINDING_PARAM, bundle, IR_NONE16, IR_NONE16, 0});
    uint16_t indices =
        ir_add_binding(ir, (struct binding){BINDING_TOKENS, IR_NONE16, IR_NONE16, IR_NONE16, 0});
    o->reads = operands.read_count;
    o->writes = operands.write_count;
    for (uint32_t k = 0; k < o->writes; k++) {
        write[k] = one_op_add_operand_buffer(o, operands.write[k], binding);
        o->write[k] = write[k].buffer.i;
        o->count[k] = operands.write[k].element_count;
        o->type[k] = operands.write[k].dtype;
        o->got[k] = heap_zalloc(o->count[k] + 1, sizeof *o->got[k]);
    }
    for (uint32_t k = 0; k < o->reads; k++) {
        const struct bench_operand *operand = &operands.read[k];
        read[k] = operand->index_of_write_in_same_buffer >= 0
                      ? write[operand->index_of_write_in_same_buffer]
                      : one_op_add_operand_buffer(o, *operand,
                                                  operand->dtype == DTYPE_I32 ? indices : binding);
        o->read[k] = read[k].buffer.i;
    }
    struct op_desc desc = {
        .work = o->work,
        .stream = ir_add_stream(ir, "compute", STREAM_COMPUTE),
        .read_count = (uint8_t)o->reads,
        .write_count = (uint8_t)o->writes,
        .guard = IR_NONE16,
        .tags = {PHASE_FORWARD, REGION_NONE, IR_NONE16, IR_NONE16, IR_NONE16, IR_NONE16},
        .read = read,
        .write = write,
    };
    desc.work.reads = desc.work.writes = 0;
    ir_add_op(ir, &desc);
    liveness_compute_free_sets(ir);
    offsets_plan(ir, NULL);
    return true;
}

static inline void one_op_release(struct one_op *o)
{
    for (uint32_t k = 0; k < CALL_OPERANDS_MAX; k++)
        free(o->got[k]);
    ir_release(&o->ir);
}

/* Returns a random element of a read: in [-1, 1), or positive where the op needs that, as for second moments. */
static inline double one_op_random_read_element(const struct one_op *o, uint32_t read,
                                                struct check_random *r)
{
    double x = 2 * check_random_double(r) - 1;
    enum work_kind kind = (enum work_kind)o->work.kind;
    if (kind == WORK_ATTENTION_BACKWARD && read == 4)
        return 3 + x; /* a log-sum-exp, large enough to keep every probability at most 1 */
    bool positive = (kind == WORK_ADAMW && read == 3) ||
                    (kind == WORK_CROSS_ENTROPY_FINISH && read == 2) ||
                    ((kind == WORK_SQUARE_SUM || kind == WORK_CLIP) && read == 1) ||
                    kind == WORK_RMSNORM_BACKWARD || kind == WORK_LAYERNORM_BACKWARD;
    return positive ? fabs(x) + 0.01 : x;
}

static inline enum status one_op_fill(void *user, const struct exec_buffer *buffer,
                                      struct diag *diag)
{
    (void)diag;
    const struct one_op *o = user;
    struct check_random r = {o->seed * 977 + buffer->buffer};
    int64_t limit = bench_index_operand_limit(&o->work);
    uint32_t read = 0;
    while (read + 1 < o->reads && o->read[read] != buffer->buffer)
        read++;
    for (uint64_t i = 0; i < buffer->element_count; i++)
        if (buffer->dtype == DTYPE_I32)
            ((int32_t *)buffer->data)[i] =
                (int32_t)check_random_i64(&r, 0, limit < 100000 ? limit - 1 : 100000);
        else if (buffer->dtype ==
                 DTYPE_U8) /* codes, or scales: any four such bytes are a positive number */
            ((uint8_t *)buffer->data)[i] = (uint8_t)(read == 0 ? check_random_i64(&r, 0, 255)
                                                               : 0x3c + check_random_i64(&r, 0, 2));
        else
            number_write_element(buffer->data, (enum dtype)buffer->dtype, i,
                                 one_op_random_read_element(o, read, &r));
    return STATUS_OK;
}

static inline enum status one_op_read(void *user, const struct exec_buffer *buffer,
                                      struct diag *diag)
{
    (void)diag;
    struct one_op *o = user;
    for (uint32_t k = 0; k < o->writes; k++)
        for (uint64_t i = 0; o->write[k] == buffer->buffer && i < buffer->element_count; i++)
            o->got[k][i] = number_read_element(buffer->data, (enum dtype)buffer->dtype, i);
    return STATUS_OK;
}

/* Runs the op on a backend; o->got then has the results. Returns false when the run fails. */
static inline bool one_op_run(struct one_op *o, const char *backend, enum exec_attention attention)
{
    const struct exec_options options = {
        .backend = backend,
        .model = {1e-5, 10000},
        .adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 7, 0.25},
        .attention = attention,
        .stall_limit_s = 60,
    };
    const struct exec_io io = {.user = o,
                               .fill = one_op_fill,
                               .read = one_op_read,
                               .read_after_last_step = 1u << BINDING_PARAM};
    struct exec_result result = {0};
    struct diag diag = {0};
    enum status status = exec_run(&o->ir, "one op", &options, &io, &result, &diag);
    if (status != STATUS_OK)
        printf("  %s: %s", backend, diag.text);
    exec_result_release(&result);
    diag_release(&diag);
    return status == STATUS_OK;
}

/* Returns the tolerance of results in a type, relative to the largest element. In fp32 the results of two backends
 * differ only by the order of sums; in bf16 and fp16 each result is also rounded once. */
static inline double one_op_tolerance(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? 1.0 / 100 : dtype == DTYPE_F16 ? 1.0 / 800 : 1e-4;
}

/* Returns the largest difference of write k, relative to the largest finite element in b. */
static inline double one_op_max_relative_difference(const struct one_op *a, const struct one_op *b,
                                                    uint32_t k)
{
    double worst = 0, scale = 1e-30;
    for (uint64_t i = 0; i < a->count[k]; i++)
        if (isfinite(b->got[k][i]))
            scale = fmax(scale, fabs(b->got[k][i]));
    for (uint64_t i = 0; i < a->count[k]; i++) {
        double x = a->got[k][i], y = b->got[k][i], d = x == y ? 0 : fabs(x - y) / scale;
        worst = isnan(d) ? INFINITY : fmax(worst, d);
    }
    return worst;
}

/* Computes the op on the CPU and on cuda and compares each write; prints a write that differs by more than the
 * tolerance, or by more than that of its own type if it is larger: AdamW with bf16 states writes bf16 in a schedule
 * that computes in fp32. */
static inline void one_op_compare(const char *label, struct work work, enum dtype dtype,
                                  enum exec_attention attention, double tolerance)
{
    struct one_op cpu = {.work = work, .dtype = dtype, .seed = 3}, cuda = cpu;
    if (!CHECK(label, one_op_build(&cpu) && one_op_build(&cuda)))
        return;
    if (CHECK(label, one_op_run(&cpu, "cpu", EXEC_ATTENTION_AUTO)) &&
        CHECK(label, one_op_run(&cuda, "cuda", attention)))
        for (uint32_t k = 0; k < cpu.writes; k++) {
            double d = one_op_max_relative_difference(&cuda, &cpu, k);
            double allowed = fmax(tolerance, one_op_tolerance(cpu.type[k]));
            if (!CHECK(label, d <= allowed))
                printf("  %s, %s: write %u differs by %.3g of its largest, tolerance %.3g\n", label,
                       dtype_name(dtype), k, d, allowed);
        }
    one_op_release(&cpu);
    one_op_release(&cuda);
}

#endif
