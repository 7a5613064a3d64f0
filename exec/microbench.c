#include "exec/microbench.h"

#include "base/ascending.h"
#include "exec/backend.h"
#include "exec/microbench_operands.h"
#include "schedule/analysis/liveness.h"
#include "schedule/ir/visible.h"
#include "schedule/memory_plan/plan_offsets.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETS_MAX = 1024,
    MEMBERS_MAX = 64,
    REPEATS_MIN = 5,
    REPEATS_MAX = 400,
    QUEUE = 400,      /* ops that wait after one that holds the stream */
    SYNCS = 20,       /* pairs of an op and a wait for it */
    HOLD = 768,       /* the product that holds it has these sizes: some 10 ms of a core, */
    HOLD_GPU = 12288, /* or of a GPU with */
    HOLD_SMS = 132,   /* multiprocessors that are held */
    SUSTAINED_MAX = 20000,
};

static const double SECONDS = 0.06;
static const uint64_t ROTATE_BYTES = 64u << 20, ROTATE_BYTES_GPU = MICROBENCH_ROTATE_GPU;
static const double STABLE = 0.02;
static const double SUSTAINED_ROUNDS = 130 /* 8 s of SECONDS */, BESIDE_BYTES_PER_S = 50e9;

/* Returns a rough time of an op on one slow core, or on a GPU, by which the number of its repetitions is chosen. Kinds
 * with an exponential per element take several times as long per byte. */
static double guess_s(const struct work *work, bool gpu)
{
    if (gpu)
        return work_flops(work) / 300e12 +
               (work_memory_bytes(work) + 30 * (double)work_payload_bytes(work)) / 1.5e12 + 5e-6;
    static const enum work_kind slow[] = {
        WORK_SWIGLU,        WORK_SWIGLU_BACKWARD,       WORK_GELU,
        WORK_GELU_BACKWARD, WORK_CROSS_ENTROPY,         WORK_CROSS_ENTROPY_BACKWARD,
        WORK_ROPE,          WORK_CROSS_ENTROPY_PARTIAL, WORK_ROPE_BACKWARD};
    double bytes = work_memory_bytes(work) + (double)work_payload_bytes(work), rate = 4e9;
    for (size_t i = 0; i < ARRAY_LEN(slow); i++)
        if (work->kind == slow[i])
            rate = 1e9;
    return work_flops(work) / 30e9 + bytes / rate + 2e-6;
}

/* ---- the schedule ---- */

struct bench {
    const struct microbench_case *bench_case;
    const struct microbench_options *options;
    struct bench_operands operands;
    struct ir ir;
    uint16_t inputs, indices; /* bindings: filled with random numbers */
    uint32_t members;
    uint32_t sets;
    bool gpu;
    struct view (*read)[CALL_OPERANDS_MAX], (*write)[CALL_OPERANDS_MAX]; /* (sets) */
    struct work work;        /* with the group's id in place of its members */
    op_id first;             /* the first op that is timed */
    uint32_t first_timed_op; /* ops from there on, */
    uint32_t stride;         /* distance from one to the next; 0: 1 */
};

static void release_bench(struct bench *b)
{
    free(b->read);
    free(b->write);
    ir_release(&b->ir);
}

static struct view add_buffer(struct bench *b, struct bench_operand operand, enum memory memory,
                              uint16_t binding)
{
    struct buffer_desc desc = {
        .stem = "x",
        .number = IR_NONE,
        .memory = (uint8_t)memory,
        .dtype = operand.dtype,
        .category = CATEGORY_ACTIVATION,
        .flags = BUFFER_PERSISTENT,
        .layer = IR_NONE16,
        .binding = binding,
        .dims = {.count = 1, .size = {(int64_t)operand.count}},
    };
    return ir_whole(&b->ir, ir_add_buffer(&b->ir, &desc));
}

static void add_set(struct bench *b, uint32_t set)
{
    const struct bench_operands *o = &b->operands;
    bool host = b->bench_case->role == POINT_HOST;
    enum work_kind kind = (enum work_kind)b->work.kind;
    enum memory far = b->bench_case->role == POINT_PAGEABLE ? MEMORY_PAGEABLE : MEMORY_PINNED;
    enum memory from = host || kind == WORK_H2D ? far : MEMORY_HBM;
    enum memory to = host || kind == WORK_D2H ? far : MEMORY_HBM;
    for (uint32_t k = 0; k < o->write_count; k++) {
        bool read_too = false;
        for (uint32_t i = 0; i < o->read_count; i++)
            read_too |= o->read[i].shared_write == (int)k;
        b->write[set][k] = add_buffer(b, o->write[k], to, read_too ? b->inputs : IR_NONE16);
    }
    for (uint32_t k = 0; k < o->read_count; k++)
        b->read[set][k] = o->read[k].shared_write >= 0
                              ? b->write[set][o->read[k].shared_write]
                              : add_buffer(b, o->read[k], from,
                                           o->read[k].dtype == DTYPE_I32 ? b->indices : b->inputs);
}

static uint8_t add_stream(struct bench *b, enum stream_class stream_class)
{
    return ir_add_stream(&b->ir, stream_class_name(stream_class), stream_class);
}

static op_id add_work(struct bench *b, uint32_t set, const op_id *wait)
{
    enum stream_class class = b->bench_case->role == POINT_HOST
                                  ? STREAM_HOST
                                  : work_kind_info((enum work_kind)b->work.kind)->stream;
    struct op_desc desc = {
        .work = b->work,
        .stream = add_stream(b, class == STREAM_SYNC ? STREAM_COMPUTE : class),
        .read_count = (uint8_t)b->operands.read_count,
        .write_count = (uint8_t)b->operands.write_count,
        .guard = IR_NONE16,
        .wait_count = wait ? 1 : 0,
        .tags = {PHASE_FORWARD, REGION_NONE, IR_NONE16, IR_NONE16, IR_NONE16, IR_NONE16},
        .read = b->read[set],
        .write = b->write[set],
        .wait = wait,
    };
    return ir_add_op(&b->ir, &desc);
}

/* Adds an op of another kind than the measured one. */
static op_id add_other(struct bench *b, struct work work, const struct view *read, uint8_t reads,
                       const struct view *write, uint8_t writes)
{
    struct op_desc desc = {
        .work = work,
        .stream = add_stream(b, STREAM_COMPUTE),
        .read_count = reads,
        .write_count = writes,
        .guard = IR_NONE16,
        .tags = {PHASE_FORWARD, REGION_NONE, IR_NONE16, IR_NONE16, IR_NONE16, IR_NONE16},
        .read = read,
        .write = write,
    };
    return ir_add_op(&b->ir, &desc);
}

static op_id add_product(struct bench *b, int64_t size)
{
    struct bench_operand square = {(uint64_t)(size * size), b->options->dtype, -1};
    struct view read[2], write = add_buffer(b, square, MEMORY_HBM, IR_NONE16);
    for (int i = 0; i < 2; i++)
        read[i] = add_buffer(b, square, MEMORY_HBM, b->inputs);
    struct work work = {.kind = WORK_MATMUL, .matmul = {size, size, size, MATMUL_NT, 0, 0}};
    return add_other(b, work, read, 2, &write, 1);
}

/* Side of the product that holds the stream: its time is a GPU's 5 ms, however small the GPU is. */
static int64_t holding_product_side(const struct bench *b)
{
    double sms = b->options->sms > 0 ? b->options->sms : HOLD_SMS;
    return b->gpu ? (int64_t)(HOLD_GPU * cbrt(sms / HOLD_SMS)) / 128 * 128 : HOLD;
}

static void add_barrier(struct bench *b)
{
    add_other(b, (struct work){.kind = WORK_BARRIER, .barrier = {0}}, NULL, 0, NULL, 0);
}

/* A copy of its own buffers, for what runs beside the op that is timed. */
struct background_copy {
    enum work_kind kind;
    int64_t bytes;
    struct view read, write;
};

static struct background_copy add_beside(struct bench *b, enum work_kind kind, int64_t bytes)
{
    struct bench_operand all = {(uint64_t)bytes, DTYPE_U8, -1};
    bool in = kind == WORK_H2D;
    return (struct background_copy){kind, bytes,
                                    add_buffer(b, all, in ? MEMORY_PINNED : MEMORY_HBM, IR_NONE16),
                                    add_buffer(b, all, in ? MEMORY_HBM : MEMORY_PINNED, IR_NONE16)};
}

static void emit_beside(struct bench *b, const struct background_copy *beside)
{
    struct op_desc desc = {
        .work = {.kind = (uint8_t)beside->kind, .copy = {beside->bytes, 0}},
        .stream = add_stream(b, work_kind_info(beside->kind)->stream),
        .read_count = 1,
        .write_count = 1,
        .guard = IR_NONE16,
        .tags = {PHASE_FORWARD, REGION_NONE, IR_NONE16, IR_NONE16, IR_NONE16, IR_NONE16},
        .read = &beside->read,
        .write = &beside->write,
    };
    ir_add_op(&b->ir, &desc);
}

/* Chooses the copies that run at the same time as the op: one copy of the same size in the other direction, or copies
 * in both directions, each somewhat longer than the op, so that one always runs. */
static uint32_t choose_beside(struct bench *b, struct background_copy beside[2])
{
    enum work_kind kind = (enum work_kind)b->work.kind;
    if (b->bench_case->role == POINT_BOTH_WAYS) {
        beside[0] = add_beside(b, kind == WORK_H2D ? WORK_D2H : WORK_H2D, b->work.copy.bytes);
        return 1;
    }
    if (b->bench_case->role != POINT_BESIDE)
        return 0;
    double bytes = 1.5 * guess_s(&b->work, b->gpu) * BESIDE_BYTES_PER_S;
    int64_t rounded = ((int64_t)(bytes < 256e6 ? bytes : 256e6) / 4096 + 1) * 4096;
    beside[0] = add_beside(b, WORK_H2D, rounded);
    beside[1] = add_beside(b, WORK_D2H, rounded);
    return 2;
}

static uint32_t repeats_of(const struct bench *b)
{
    bool sustained = b->bench_case->role == POINT_SUSTAINED;
    double seconds = b->options->seconds > 0 ? b->options->seconds : SECONDS;
    seconds *= sustained ? SUSTAINED_ROUNDS : 1;
    double fit = seconds / guess_s(&b->work, b->gpu);
    uint32_t most = sustained ? SUSTAINED_MAX : REPEATS_MAX;
    return fit < REPEATS_MIN ? REPEATS_MIN : fit > most ? most : (uint32_t)fit;
}

uint32_t microbench_warmup(uint32_t repeats)
{
    return 1 + repeats / 8;
}

/* Emits the op repeatedly, each time on another set of operands. */
static void emit_repeats(struct bench *b)
{
    struct background_copy beside[2];
    uint32_t repeats = repeats_of(b);
    uint32_t warm =
        b->bench_case->role == POINT_SUSTAINED ? repeats * 3 / 4 : microbench_warmup(repeats);
    repeats = b->bench_case->role == POINT_SUSTAINED ? repeats - warm : repeats;
    if (b->sets > warm + repeats)
        b->sets = warm + repeats;
    for (uint32_t set = 0; set < b->sets; set++)
        add_set(b, set);
    uint32_t others = choose_beside(b, beside);
    for (uint32_t i = 0; i < warm + repeats; i++) {
        for (uint32_t k = 0; k < others; k++)
            emit_beside(b, &beside[k]);
        op_id op = add_work(b, i % b->sets, NULL);
        if (i == warm)
            b->first = op;
    }
    b->first_timed_op = repeats;
    b->stride = 1 + others;
}

/* Emits a queue of ops that the host issues while an earlier op still occupies their stream. Barriers of one rank
 * record the host's time before and after. */
static void emit_queue(struct bench *b)
{
    add_set(b, 0);
    op_id hold = add_product(b, holding_product_side(b));
    add_barrier(b);
    for (uint32_t i = 0; i < QUEUE; i++) {
        op_id op = add_work(b, 0, &hold);
        if (i == 0)
            b->first = op;
    }
    b->first_timed_op = QUEUE;
    add_barrier(b);
}

static void emit_syncs(struct bench *b)
{
    struct work sync = {.kind = WORK_HOST_SYNC};
    for (uint32_t i = 0; i < SYNCS; i++) {
        op_id op = add_product(b, holding_product_side(b) / 8);
        if (i == 0)
            b->first = op;
        add_other(b, sync, NULL, 0, NULL, 0);
    }
    b->first_timed_op = 2 * SYNCS;
}

static void build(struct bench *b)
{
    struct ir *ir = &b->ir;
    ir->mesh = (struct mesh){.axis_count = 1, .axis = {{"rank", b->members}}};
    ir->dtype = b->options->dtype;
    ir->global_batch = ir->micro_batch = 1;
    ir->layout = (struct token_layout){LAYOUT_CONTIGUOUS, 1, 1, 1, 1, 0, NULL};
    ir_add_group(ir, "all", &(struct axis_set){.axis = 0}, 1);
    /* square_sum adds the elements of a bound buffer that belong to its tensor: here all of them. */
    const struct work *work = &b->bench_case->work;
    int64_t cols = work->kind == WORK_SQUARE_SUM ? work->square_sum.count : 1;
    uint32_t tensor = ir_add_tensor(ir, (struct tensor){.name = "random", .rows = 1, .cols = cols});
    uint16_t bundle = ir_add_bundle(ir, (struct bundle){"random", tensor, 1, (uint64_t)cols});
    struct binding binding = {BINDING_PARAM, bundle, IR_NONE16, IR_NONE16, 0};
    b->inputs = ir_add_binding(ir, binding);
    binding = (struct binding){BINDING_TOKENS, IR_NONE16, IR_NONE16, IR_NONE16, 0};
    b->indices = ir_add_binding(ir, binding);
    if (b->bench_case->work.kind == WORK_HOST_SYNC)
        emit_syncs(b);
    else if (b->bench_case->role == POINT_START || b->bench_case->role == POINT_ISSUE)
        emit_queue(b);
    else
        emit_repeats(b);
    liveness_compute_free_sets(ir);
    offsets_plan(ir, NULL);
}

/* ---- what buffers hold ---- */

static enum status fill_operand(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    (void)diag;
    const struct bench *b = user;
    if (buffer->dtype != DTYPE_I32) {
        microbench_fill(buffer->data, (enum dtype)buffer->dtype, buffer->elements, buffer->buffer);
        return STATUS_OK;
    }
    microbench_fill_indices(buffer->data, buffer->elements,
                            (uint64_t)bench_index_limit(&b->bench_case->work), buffer->buffer);
    return STATUS_OK;
}

/* ---- reading the trace ---- */

struct timings {
    double *s;
    size_t count, capacity;
};

static void add_timing(struct timings *timings, double seconds)
{
    if (timings->count == timings->capacity) {
        timings->capacity = heap_next_capacity(timings->capacity, timings->count + 1);
        timings->s = heap_realloc(timings->s, timings->capacity, sizeof *timings->s);
    }
    timings->s[timings->count++] = seconds > 1e-9 ? seconds : 1e-9; /* the clock's step */
}

struct op_times { /* of one op over all ranks */
    double start_s, end_s;
};

/* (ops) A collective starts when its last member has come, and ends when its last one has it. */
static struct op_times *times_of(const struct bench *b, const struct trace *trace)
{
    struct op_times *times = heap_zalloc(b->ir.op.count, sizeof *times);
    for (size_t row = 0; row < trace->ops.count; row++) {
        struct op_times *t = &times[trace->ops.op[row]];
        if (trace->ops.start_s[row] > t->start_s)
            t->start_s = trace->ops.start_s[row];
        if (trace->ops.end_s[row] > t->end_s)
            t->end_s = trace->ops.end_s[row];
    }
    return times;
}

static void add_timings(const struct bench *b, const struct trace *trace, struct timings *timings)
{
    struct op_times *times = times_of(b, trace);
    uint32_t first = b->first.i, end = first + b->first_timed_op;
    if (b->bench_case->work.kind == WORK_HOST_SYNC) {
        for (uint32_t op = first; op < end; op += 2)
            add_timing(timings, times[op + 1].end_s - times[op].end_s);
    } else if (b->bench_case->role == POINT_ISSUE) {
        add_timing(timings, (times[end].start_s - times[first - 1].end_s) / b->first_timed_op);
    } else if (b->bench_case->role == POINT_START) {
        for (uint32_t op = first + 1; op < end; op++)
            add_timing(timings, times[op].end_s - times[op - 1].end_s);
    } else {
        for (uint32_t i = 0; i < b->first_timed_op; i++) {
            const struct op_times *t = &times[first + i * b->stride];
            add_timing(timings, t->end_s - t->start_s);
        }
    }
    free(times);
}

/* Returns the value that a share of the sorted timings does not exceed. */
static double quantile(const struct timings *timings, double share)
{
    return timings->s[(size_t)((double)(timings->count - 1) * share + 0.5)];
}

static enum status run_rounds(struct bench *b, struct timings *timings, struct diag *diag)
{
    const struct microbench_options *o = b->options;
    /* A point that is called cuDNN's is measured by it or not at all; cuDNN takes no fp32. */
    bool by_cudnn = b->gpu && b->bench_case->impl == ATTENTION_CUDNN && o->dtype != DTYPE_F32;
    bool hogged = b->bench_case->role == POINT_SM_HOG;
    const struct exec_options options = {
        .backend = o->backend,
        .model = {1e-5, 10000},
        .adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1, 1},
        .warmup = hogged ? 1 : 0,
        .steps = 1,
        .trace = true,
        .copies = o->copies,
        .messages = o->messages,
        .attention = by_cudnn ? EXEC_ATTENTION_FUSED : EXEC_ATTENTION_AUTO,
        .hog_sms = hogged ? POINT_HOG_SMS : 0,
    };
    const struct exec_io io = {.user = b, .fill = fill_operand};
    uint32_t rounds = o->rounds > 0 ? o->rounds : b->gpu ? 1 : 2;
    double enough_s = 2 * (o->seconds > 0 ? o->seconds : SECONDS), spent_s = 0;
    bool few = b->bench_case->role == POINT_ISSUE; /* a sample a round */
    if (b->bench_case->role == POINT_SUSTAINED)
        rounds = 1;
    double before_s = -1;
    for (uint32_t round = 0; round < (few ? 3 * rounds : rounds); round++) {
        struct exec_result result = {0};
        enum status status = exec_run(&b->ir, "bench", &options, &io, &result, diag);
        if (status == STATUS_OK)
            add_timings(b, &result.trace, timings);
        spent_s += result.median_s;
        exec_result_release(&result);
        if (status != STATUS_OK)
            return status;
        qsort(timings->s, timings->count, sizeof *timings->s, ascending_double);
        double median_s = quantile(timings, 0.5);
        bool stable = before_s > 0 && median_s < before_s * (1 + STABLE) &&
                      median_s > before_s * (1 - STABLE);
        if (!few && (stable || spent_s > enough_s))
            break;
        before_s = median_s;
    }
    return STATUS_OK;
}

/* ---- the one call ---- */

static bool is_communication(const struct work *work)
{
    return work_kind_info((enum work_kind)work->kind)->stream == STREAM_COMM;
}

static enum status check_result(const struct microbench_case *wanted, struct diag *diag)
{
    const struct work *work = &wanted->work;
    const char *name = work_kind_info((enum work_kind)work->kind)->name;
    int64_t members = work_comm_group(work);
    struct row_use use;
    if (row_use_find(work, &use))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%s moves rows that ranks need of each other, which follow from the "
                          "sequences of a schedule, and cannot be timed by itself",
                          work_kind_info((enum work_kind)work->kind)->name);
    if (work->kind == WORK_SEND || work->kind == WORK_RECV || work->kind == WORK_BARRIER)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%s is not measured, since it involves more than one op; measure a "
                          "shift",
                          name);
    if (is_communication(work) && (members < 1 || members > MEMBERS_MAX))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%s of %lld ranks; 1 to %d can be measured", name, (long long)members,
                          MEMBERS_MAX);
    bool copies = work->kind == WORK_H2D || work->kind == WORK_D2H;
    bool computes = work_kind_info((enum work_kind)work->kind)->stream == STREAM_COMPUTE;
    if (((wanted->role == POINT_PAGEABLE || wanted->role == POINT_BOTH_WAYS) && !copies) ||
        (wanted->role >= POINT_BESIDE && !computes))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT, "%s cannot be measured as '%s'",
                          name, point_role_name((enum point_role)wanted->role));
    if (wanted->role == POINT_HOST && !work_may_run_on((enum work_kind)work->kind, STREAM_HOST))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT, "%s does not run on the host",
                          name);
    return STATUS_OK;
}

/* Sets that add up to what no cache holds; operands that two ops share are counted once. */
static uint32_t sets_needed(const struct bench *b)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < b->operands.read_count; k++)
        if (b->operands.read[k].shared_write < 0)
            bytes += b->operands.read[k].count * dtype_bytes(b->operands.read[k].dtype);
    for (uint32_t k = 0; k < b->operands.write_count; k++)
        bytes += b->operands.write[k].count * dtype_bytes(b->operands.write[k].dtype);
    uint64_t rotate = b->options->rotate_bytes > 0 ? b->options->rotate_bytes
                      : b->gpu                     ? ROTATE_BYTES_GPU
                                                   : ROTATE_BYTES;
    uint64_t sets = bytes > 0 ? rotate / bytes + 1 : 1;
    return sets < SETS_MAX ? (uint32_t)sets : SETS_MAX;
}

enum status microbench_run(const struct microbench_case *wanted,
                           const struct microbench_options *options, struct point *point,
                           struct diag *diag)
{
    struct bench b = {.bench_case = wanted, .options = options, .work = wanted->work, .members = 1};
    struct timings timings = {0};
    enum status status = check_result(wanted, diag);
    if (status == STATUS_OK &&
        !bench_operands(&wanted->work, (enum dtype)options->dtype, &b.operands))
        status = diag_error(
            diag, (struct loc){0}, STATUS_BAD_INPUT,
            "%s cannot be measured at these sizes: an operand would be empty, too large or "
            "not a whole number of elements",
            work_kind_info((enum work_kind)wanted->work.kind)->name);
    if (status != STATUS_OK)
        return status;
    if (is_communication(&wanted->work)) {
        b.members = (uint32_t)wanted->work.p[0];
        b.work.p[0] = 0;
    }
    const struct backend *backend = backend_find(options->backend ? options->backend : "cpu");
    b.gpu = backend != NULL && !backend->host_memory;
    b.sets = sets_needed(&b);
    b.read = heap_zalloc(b.sets, sizeof *b.read);
    b.write = heap_zalloc(b.sets, sizeof *b.write);
    build(&b);
    status = run_rounds(&b, &timings, diag);
    if (status == STATUS_OK) {
        *point = (struct point){
            .role = wanted->role,
            .attention_impl = wanted->impl,
            .nodes = 1,
            .work = wanted->work.kind == WORK_HOST_SYNC ? wanted->work : *ir_work(&b.ir, b.first.i),
            .median_s = quantile(&timings, 0.5),
            .p10_s = quantile(&timings, 0.1),
            .p90_s = quantile(&timings, 0.9),
            .repeats = (int64_t)timings.count,
        };
        if (is_communication(&wanted->work))
            point->work.p[0] = b.members;
    }
    free(timings.s);
    release_bench(&b);
    return status;
}

/* ---- a limit of time ---- */

double microbench_guess_s(const struct microbench_case *wanted,
                          const struct microbench_options *options)
{
    const struct backend *backend = backend_find(options->backend ? options->backend : "cpu");
    const struct bench b = {.bench_case = wanted,
                            .options = options,
                            .work = wanted->work,
                            .gpu = backend != NULL && !backend->host_memory};
    double rounds = options->rounds > 0 ? options->rounds : b.gpu ? 1 : 2;
    uint32_t repeats = repeats_of(&b);
    return wanted->role == POINT_SUSTAINED
               ? repeats * guess_s(&b.work, b.gpu)
               : rounds * (repeats + microbench_warmup(repeats)) * guess_s(&b.work, b.gpu);
}

bool microbench_fits(const struct microbench_budget *budget, double guess_s)
{
    return budget->within_s <= 0 ||
           budget->spent_s + guess_s + budget->besides_s <= budget->within_s;
}

void microbench_spend(struct microbench_budget *budget, double guess_s, double took_s)
{
    budget->spent_s += took_s;
    budget->besides_s = fmax(budget->besides_s, took_s - guess_s);
}
