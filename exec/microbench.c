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
    OPERAND_SETS_MAX = 1024,     /* the most sets of operands, each of which has its own buffers */
    COLLECTIVE_MEMBERS_MAX = 64, /* the most ranks of a collective */
    REPEATS_MIN = 5,
    REPEATS_MAX = 400,
    QUEUED_OPS = 400, /* ops that are queued while an earlier op occupies the stream */
    SYNCED_OPS = 20,  /* how many times an op and a wait for it are emitted */
    HOLDING_PRODUCT_SIDE =
        768, /* the side of the square product that occupies a core for some 10 ms */
    HOLDING_PRODUCT_SIDE_GPU =
        12288, /* its side for a GPU with HOLDING_PRODUCT_REFERENCE_SMS multiprocessors */
    /* the number of multiprocessors for which HOLDING_PRODUCT_SIDE_GPU was chosen; it is also used if that of the
     * device is not known */
    HOLDING_PRODUCT_REFERENCE_SMS = 132,
    SUSTAINED_REPEATS_MAX = 20000, /* the most repetitions of an op in a sustained point */
};

/* the rough time of the ops in a round */
static const double SECONDS = 0.06;
/* the bytes through which sets of operands rotate, which exceed the caches of a core and of a GPU */
static const uint64_t ROTATE_BYTES = 64u << 20, ROTATE_BYTES_GPU = MICROBENCH_ROTATE_GPU;
/* rounds end after one that changes the median by less than this share */
static const double STABLE = 0.02;
/* the length of a sustained point in rounds, 8 s in all: by then the power limit has settled the clock */
static const double SUSTAINED_ROUNDS = 130;
/* an upper estimate of the rate of copies beside an op */
static const double BESIDE_BYTES_PER_S = 50e9;
/* Returns a rough estimate of the seconds of an op, on one slow core or on a GPU. It determines how often the op is
 * repeated. On a core, kinds with an exponential for each element take several times as long per byte. */
static double estimate_op_s(const struct work *work, bool gpu)
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

/* ---- the schedule that is run to measure a point ---- */

struct bench {
    const struct microbench_case *bench_case;
    const struct microbench_options *options;
    struct bench_operands operands;
    struct ir ir;
    /* bindings of the buffers that are filled with random numbers, and with random indices */
    uint16_t input_binding, index_binding;
    uint32_t member_count;
    uint32_t operand_set_count;
    bool on_gpu;
    struct view (*read)[CALL_OPERANDS_MAX], (*write)[CALL_OPERANDS_MAX]; /* (sets) */
    /* the measured work, as an op of the schedule: its group is an id, not a number of members */
    struct work work;
    op_id first_timed_op_id; /* the first op that is timed */
    uint32_t timed_op_count; /* number of ops that are timed */
    /* distance in the list from one timed op to the next; not set for HOST_SYNC and the roles START and ISSUE, whose
     * timed ops are consecutive */
    uint32_t timed_op_distance;
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
        .dims = {.count = 1, .size = {(int64_t)operand.element_count}},
    };
    return ir_whole_view(&b->ir, ir_add_buffer(&b->ir, &desc));
}

static void add_operand_set(struct bench *b, uint32_t set)
{
    const struct bench_operands *o = &b->operands;
    bool host = b->bench_case->point_role == POINT_HOST;
    enum work_kind kind = (enum work_kind)b->work.kind;
    enum memory far = b->bench_case->point_role == POINT_PAGEABLE ? MEMORY_PAGEABLE : MEMORY_PINNED;
    enum memory from = host || kind == WORK_H2D ? far : MEMORY_HBM;
    enum memory to = host || kind == WORK_D2H ? far : MEMORY_HBM;
    for (uint32_t k = 0; k < o->write_count; k++) {
        bool read_too = false;
        for (uint32_t i = 0; i < o->read_count; i++)
            read_too |= o->read[i].index_of_write_in_same_buffer == (int)k;
        b->write[set][k] = add_buffer(b, o->write[k], to, read_too ? b->input_binding : IR_NONE16);
    }
    for (uint32_t k = 0; k < o->read_count; k++)
        b->read[set][k] =
            o->read[k].index_of_write_in_same_buffer >= 0
                ? b->write[set][o->read[k].index_of_write_in_same_buffer]
                : add_buffer(b, o->read[k], from,
                             o->read[k].dtype == DTYPE_I32 ? b->index_binding : b->input_binding);
}

static uint8_t add_stream(struct bench *b, enum stream_class stream_class)
{
    return ir_add_stream(&b->ir, stream_class_name(stream_class), stream_class);
}

static op_id add_timed_op_to_schedule(struct bench *b, uint32_t set, const op_id *wait)
{
    enum stream_class class = b->bench_case->point_role == POINT_HOST
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

/* Adds an op that is not measured, to the stream of compute ops. */
static op_id add_untimed_op_to_schedule(struct bench *b, struct work work, const struct view *read,
                                        uint8_t reads, const struct view *write, uint8_t writes)
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

static op_id add_square_product(struct bench *b, int64_t size)
{
    struct bench_operand square = {(uint64_t)(size * size), b->options->dtype, -1};
    struct view read[2], write = add_buffer(b, square, MEMORY_HBM, IR_NONE16);
    for (int i = 0; i < 2; i++)
        read[i] = add_buffer(b, square, MEMORY_HBM, b->input_binding);
    struct work work = {.kind = WORK_MATMUL, .matmul = {size, size, size, MATMUL_NT, 0, 0}};
    return add_untimed_op_to_schedule(b, work, read, 2, &write, 1);
}

/* Returns the side of a square product that occupies its stream for some 10 ms on a core, or some 5 ms on a GPU of any
 * size. */
static int64_t side_of_product_that_holds_stream(const struct bench *b)
{
    double sms = b->options->sm_count > 0 ? b->options->sm_count : HOLDING_PRODUCT_REFERENCE_SMS;
    return b->on_gpu
               ? (int64_t)(HOLDING_PRODUCT_SIDE_GPU * cbrt(sms / HOLDING_PRODUCT_REFERENCE_SMS)) /
                     128 * 128
               : HOLDING_PRODUCT_SIDE;
}

static void add_barrier(struct bench *b)
{
    add_untimed_op_to_schedule(b, (struct work){.kind = WORK_BARRIER, .barrier = {0}}, NULL, 0,
                               NULL, 0);
}

/* A copy that runs at the same time as the op that is timed, on buffers of its own. */
struct background_copy {
    enum work_kind kind;
    int64_t bytes;
    struct view read, write;
};

static struct background_copy add_background_buffers(struct bench *b, enum work_kind kind,
                                                     int64_t bytes)
{
    struct bench_operand all = {(uint64_t)bytes, DTYPE_U8, -1};
    bool in = kind == WORK_H2D;
    return (struct background_copy){kind, bytes,
                                    add_buffer(b, all, in ? MEMORY_PINNED : MEMORY_HBM, IR_NONE16),
                                    add_buffer(b, all, in ? MEMORY_HBM : MEMORY_PINNED, IR_NONE16)};
}

static void emit_background_copy(struct bench *b, const struct background_copy *beside)
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

/* Chooses the copies that run at the same time as the timed op, makes their buffers, and returns their number. In role
 * BOTH_WAYS, for copies, it is one copy of the same size in the other direction; in role BESIDE, copies in both
 * directions, of about 256 MB at most, which should take somewhat longer than the op; else none. */
static uint32_t choose_background_copies(struct bench *b,
                                         struct background_copy background_copies[2])
{
    enum work_kind kind = (enum work_kind)b->work.kind;
    if (b->bench_case->point_role == POINT_BOTH_WAYS) {
        background_copies[0] =
            add_background_buffers(b, kind == WORK_H2D ? WORK_D2H : WORK_H2D, b->work.copy.bytes);
        return 1;
    }
    if (b->bench_case->point_role != POINT_BESIDE)
        return 0;
    double bytes = 1.5 * estimate_op_s(&b->work, b->on_gpu) * BESIDE_BYTES_PER_S;
    int64_t rounded = ((int64_t)(bytes < 256e6 ? bytes : 256e6) / 4096 + 1) * 4096;
    background_copies[0] = add_background_buffers(b, WORK_H2D, rounded);
    background_copies[1] = add_background_buffers(b, WORK_D2H, rounded);
    return 2;
}

static uint32_t repeat_count(const struct bench *b)
{
    bool sustained = b->bench_case->point_role == POINT_SUSTAINED;
    double seconds = b->options->round_s > 0 ? b->options->round_s : SECONDS;
    seconds *= sustained ? SUSTAINED_ROUNDS : 1;
    double fit = seconds / estimate_op_s(&b->work, b->on_gpu);
    uint32_t most = sustained ? SUSTAINED_REPEATS_MAX : REPEATS_MAX;
    return fit < REPEATS_MIN ? REPEATS_MIN : fit > most ? most : (uint32_t)fit;
}

uint32_t microbench_warmup_runs(uint32_t repeats)
{
    return 1 + repeats / 8;
}

/* Emits the op for the warm-up runs and then for the runs that are timed. The runs use the sets of operands in turn. */
static void emit_repeats(struct bench *b)
{
    struct background_copy background_copies[2];
    uint32_t repeats = repeat_count(b);
    uint32_t warm = b->bench_case->point_role == POINT_SUSTAINED ? repeats * 3 / 4
                                                                 : microbench_warmup_runs(repeats);
    repeats = b->bench_case->point_role == POINT_SUSTAINED ? repeats - warm : repeats;
    if (b->operand_set_count > warm + repeats)
        b->operand_set_count = warm + repeats;
    for (uint32_t set = 0; set < b->operand_set_count; set++)
        add_operand_set(b, set);
    uint32_t others = choose_background_copies(b, background_copies);
    for (uint32_t i = 0; i < warm + repeats; i++) {
        for (uint32_t k = 0; k < others; k++)
            emit_background_copy(b, &background_copies[k]);
        op_id op = add_timed_op_to_schedule(b, i % b->operand_set_count, NULL);
        if (i == warm)
            b->first_timed_op_id = op;
    }
    b->timed_op_count = repeats;
    b->timed_op_distance = 1 + others;
}

/* Emits ops that are issued while an earlier product still occupies their stream, and barriers of one rank before and
 * after them, which record the host's time. So neither the host nor the stream waits for the other. */
static void emit_queued_ops(struct bench *b)
{
    add_operand_set(b, 0);
    op_id hold = add_square_product(b, side_of_product_that_holds_stream(b));
    add_barrier(b);
    for (uint32_t i = 0; i < QUEUED_OPS; i++) {
        op_id op = add_timed_op_to_schedule(b, 0, &hold);
        if (i == 0)
            b->first_timed_op_id = op;
    }
    b->timed_op_count = QUEUED_OPS;
    add_barrier(b);
}

/* Emits pairs of a product and a HOST_SYNC, by which the host waits for the product. */
static void emit_op_sync_pairs(struct bench *b)
{
    struct work sync = {.kind = WORK_HOST_SYNC};
    for (uint32_t i = 0; i < SYNCED_OPS; i++) {
        op_id op = add_square_product(b, side_of_product_that_holds_stream(b) / 8);
        if (i == 0)
            b->first_timed_op_id = op;
        add_untimed_op_to_schedule(b, sync, NULL, 0, NULL, 0);
    }
    b->timed_op_count = 2 * SYNCED_OPS;
}

static void build_schedule(struct bench *b)
{
    struct ir *ir = &b->ir;
    ir->mesh = (struct mesh){.axis_count = 1, .axis = {{"rank", b->member_count}}};
    ir->dtype = b->options->dtype;
    ir->global_batch = ir->micro_batch = 1;
    ir->layout = (struct token_layout){LAYOUT_CONTIGUOUS, 1, 1, 1, 1, 0, NULL};
    ir_add_group(ir, "all", &(struct axis_coordinate_set){.axis = 0}, 1);
    /* SQUARE_SUM adds those elements of a bound buffer that belong to its tensor; here the tensor is the whole
     * buffer */
    const struct work *work = &b->bench_case->work;
    int64_t cols = work->kind == WORK_SQUARE_SUM ? work->square_sum.count : 1;
    uint32_t tensor = ir_add_tensor(ir, (struct tensor){.name = "random", .rows = 1, .cols = cols});
    uint16_t bundle = ir_add_bundle(ir, (struct bundle){.name = "random",
                                                        .tensor_begin = tensor,
                                                        .tensor_count = 1,
                                                        .elements = (uint64_t)cols});
    struct binding binding = {BINDING_PARAM, bundle, IR_NONE16, IR_NONE16, 0};
    b->input_binding = ir_add_binding(ir, binding);
    binding = (struct binding){BINDING_TOKENS, IR_NONE16, IR_NONE16, IR_NONE16, 0};
    b->index_binding = ir_add_binding(ir, binding);
    if (b->bench_case->work.kind == WORK_HOST_SYNC)
        emit_op_sync_pairs(b);
    else if (b->bench_case->point_role == POINT_START || b->bench_case->point_role == POINT_ISSUE)
        emit_queued_ops(b);
    else
        emit_repeats(b);
    liveness_compute_free_sets(ir);
    offsets_plan(ir, NULL);
}

/* ---- the content of buffers ---- */

static enum status fill_operand(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    (void)diag;
    const struct bench *b = user;
    if (buffer->dtype != DTYPE_I32) {
        microbench_fill(buffer->data, (enum dtype)buffer->dtype, buffer->element_count,
                        buffer->buffer);
        return STATUS_OK;
    }
    microbench_fill_indices(buffer->data, buffer->element_count,
                            (uint64_t)bench_index_operand_limit(&b->bench_case->work),
                            buffer->buffer);
    return STATUS_OK;
}

/* ---- times of the measured op, from the trace ---- */

struct op_timings {
    double *seconds;
    size_t count, capacity;
};

static void add_timing(struct op_timings *op_timings, double seconds)
{
    if (op_timings->count == op_timings->capacity) {
        op_timings->capacity = heap_next_capacity(op_timings->capacity, op_timings->count + 1);
        op_timings->seconds =
            heap_realloc(op_timings->seconds, op_timings->capacity, sizeof *op_timings->seconds);
    }
    op_timings->seconds[op_timings->count++] =
        seconds > 1e-9 ? seconds : 1e-9; /* the clock's step */
}

struct op_span { /* the time of one op over all ranks */
    double start_s, end_s;
};

/* Returns the span of each op, on the heap. A collective starts when its last member has arrived, and ends when its
 * last member has the result. */
static struct op_span *find_op_spans(const struct bench *b, const struct trace *trace)
{
    struct op_span *times = heap_zalloc(b->ir.op.count, sizeof *times);
    for (size_t row = 0; row < trace->ops.count; row++) {
        struct op_span *t = &times[trace->ops.op[row]];
        if (trace->ops.start_s[row] > t->start_s)
            t->start_s = trace->ops.start_s[row];
        if (trace->ops.end_s[row] > t->end_s)
            t->end_s = trace->ops.end_s[row];
    }
    return times;
}

/* Adds the times of a round: for HOST_SYNC, the seconds from the end of each product to the end of the wait for it; for
 * role ISSUE, the mean host time per queued op, between the barriers just before and after these ops; for role START,
 * the seconds from the end of one queued op to the end of the next; for other roles, the time of each timed op. */
static void add_times_of_round(const struct bench *b, const struct trace *trace,
                               struct op_timings *op_timings)
{
    struct op_span *times = find_op_spans(b, trace);
    uint32_t first = b->first_timed_op_id.i, end = first + b->timed_op_count;
    if (b->bench_case->work.kind == WORK_HOST_SYNC) {
        for (uint32_t op = first; op < end; op += 2)
            add_timing(op_timings, times[op + 1].end_s - times[op].end_s);
    } else if (b->bench_case->point_role == POINT_ISSUE) {
        add_timing(op_timings, (times[end].start_s - times[first - 1].end_s) / b->timed_op_count);
    } else if (b->bench_case->point_role == POINT_START) {
        for (uint32_t op = first + 1; op < end; op++)
            add_timing(op_timings, times[op].end_s - times[op - 1].end_s);
    } else {
        for (uint32_t i = 0; i < b->timed_op_count; i++) {
            const struct op_span *t = &times[first + i * b->timed_op_distance];
            add_timing(op_timings, t->end_s - t->start_s);
        }
    }
    free(times);
}

/* Returns the quantile `share` (0.5: the median) of the sorted timings. */
static double quantile(const struct op_timings *op_timings, double share)
{
    return op_timings->seconds[(size_t)((double)(op_timings->count - 1) * share + 0.5)];
}

/* Runs the schedule in rounds, until the median is stable, enough time is spent, or the most rounds have run; role
 * ISSUE always takes three times the most rounds. Sorts the timings of all rounds. */
static enum status run_rounds(struct bench *b, struct op_timings *op_timings, struct diag *diag)
{
    const struct microbench_options *o = b->options;
    /* the implementation cuDNN is measured by cuDNN's own kernels only, except in fp32, which they do not compute */
    bool by_cudnn =
        b->on_gpu && b->bench_case->attention_impl == ATTENTION_CUDNN && o->dtype != DTYPE_F32;
    bool hogged = b->bench_case->point_role == POINT_SM_HOG;
    const struct exec_options options = {
        .backend = o->backend,
        .model = {1e-5, 10000},
        .adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1, 1},
        .warmup_steps = hogged ? 1 : 0,
        .measured_steps = 1,
        .records_trace = true,
        .copy_link = o->copy_link,
        .message_link = o->message_link,
        .attention = by_cudnn ? EXEC_ATTENTION_FUSED : EXEC_ATTENTION_AUTO,
        .hogged_sm_count = hogged ? POINT_HOG_SMS : 0,
    };
    const struct exec_io io = {.user = b, .fill = fill_operand};
    uint32_t rounds = o->most_rounds > 0 ? o->most_rounds : b->on_gpu ? 1 : 2;
    double enough_s = 2 * (o->round_s > 0 ? o->round_s : SECONDS), spent_s = 0;
    bool few = b->bench_case->point_role == POINT_ISSUE; /* each round gives one sample only */
    if (b->bench_case->point_role == POINT_SUSTAINED)
        rounds = 1;
    double before_s = -1;
    for (uint32_t round = 0; round < (few ? 3 * rounds : rounds); round++) {
        struct exec_result result = {0};
        enum status status = exec_run(&b->ir, "bench", &options, &io, &result, diag);
        if (status == STATUS_OK)
            add_times_of_round(b, &result.trace, op_timings);
        spent_s += result.median_s;
        exec_result_release(&result);
        if (status != STATUS_OK)
            return status;
        qsort(op_timings->seconds, op_timings->count, sizeof *op_timings->seconds,
              ascending_double);
        double median_s = quantile(op_timings, 0.5);
        bool stable = before_s > 0 && median_s < before_s * (1 + STABLE) &&
                      median_s > before_s * (1 - STABLE);
        if (!few && (stable || spent_s > enough_s))
            break;
        before_s = median_s;
    }
    return STATUS_OK;
}

/* ---- the measurement of one point ---- */

static bool is_communication(const struct work *work)
{
    return work_kind_info((enum work_kind)work->kind)->stream == STREAM_COMM;
}

static enum status check_can_be_measured(const struct microbench_case *wanted, struct diag *diag)
{
    const struct work *work = &wanted->work;
    const char *name = work_kind_info((enum work_kind)work->kind)->name;
    int64_t members = work_comm_group(work);
    struct row_use use;
    if (row_use_if_work_moves_rows(work, &use))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%s moves rows that ranks need of each other, which follow from the "
                          "sequences of a schedule, and cannot be timed by itself",
                          work_kind_info((enum work_kind)work->kind)->name);
    if (work->kind == WORK_SEND || work->kind == WORK_RECV || work->kind == WORK_BARRIER)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%s is not measured, since it involves more than one op; measure a "
                          "shift",
                          name);
    if (is_communication(work) && (members < 1 || members > COLLECTIVE_MEMBERS_MAX))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "%s of %lld ranks; 1 to %d can be measured", name, (long long)members,
                          COLLECTIVE_MEMBERS_MAX);
    bool copies = work->kind == WORK_H2D || work->kind == WORK_D2H;
    bool computes = work_kind_info((enum work_kind)work->kind)->stream == STREAM_COMPUTE;
    if (((wanted->point_role == POINT_PAGEABLE || wanted->point_role == POINT_BOTH_WAYS) &&
         !copies) ||
        (wanted->point_role >= POINT_BESIDE && !computes))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT, "%s cannot be measured as '%s'",
                          name, point_role_name((enum point_role)wanted->point_role));
    if (wanted->point_role == POINT_HOST &&
        !work_may_run_on((enum work_kind)work->kind, STREAM_HOST))
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT, "%s does not run on the host",
                          name);
    return STATUS_OK;
}

/* Returns how many sets of operands together exceed the caches, at most OPERAND_SETS_MAX. A buffer that the work both
 * reads and writes is counted once. */
static uint32_t needed_operand_sets(const struct bench *b)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < b->operands.read_count; k++)
        if (b->operands.read[k].index_of_write_in_same_buffer < 0)
            bytes += b->operands.read[k].element_count * dtype_bytes(b->operands.read[k].dtype);
    for (uint32_t k = 0; k < b->operands.write_count; k++)
        bytes += b->operands.write[k].element_count * dtype_bytes(b->operands.write[k].dtype);
    uint64_t rotate = b->options->min_bytes_of_all_operand_sets > 0
                          ? b->options->min_bytes_of_all_operand_sets
                      : b->on_gpu ? ROTATE_BYTES_GPU
                                  : ROTATE_BYTES;
    uint64_t sets = bytes > 0 ? rotate / bytes + 1 : 1;
    return sets < OPERAND_SETS_MAX ? (uint32_t)sets : OPERAND_SETS_MAX;
}

enum status microbench_measure_case(const struct microbench_case *wanted,
                                    const struct microbench_options *options, struct point *point,
                                    struct diag *diag)
{
    struct bench b = {
        .bench_case = wanted, .options = options, .work = wanted->work, .member_count = 1};
    struct op_timings op_timings = {0};
    enum status status = check_can_be_measured(wanted, diag);
    if (status == STATUS_OK &&
        !bench_list_operands(&wanted->work, (enum dtype)options->dtype, &b.operands))
        status = diag_error(
            diag, (struct loc){0}, STATUS_BAD_INPUT,
            "%s cannot be measured at these sizes: an operand would be empty, too large or "
            "not a whole number of elements",
            work_kind_info((enum work_kind)wanted->work.kind)->name);
    if (status != STATUS_OK)
        return status;
    if (is_communication(&wanted->work)) {
        b.member_count = (uint32_t)wanted->work.p[0];
        b.work.p[0] = 0;
    }
    const struct backend *backend = backend_find(options->backend ? options->backend : "cpu");
    b.on_gpu = backend != NULL && !backend->kernels_run_on_host;
    b.operand_set_count = needed_operand_sets(&b);
    b.read = heap_zalloc(b.operand_set_count, sizeof *b.read);
    b.write = heap_zalloc(b.operand_set_count, sizeof *b.write);
    build_schedule(&b);
    status = run_rounds(&b, &op_timings, diag);
    if (status == STATUS_OK) {
        *point = (struct point){
            .role = wanted->point_role,
            .attention_impl = wanted->attention_impl,
            .nodes = 1,
            .work = wanted->work.kind == WORK_HOST_SYNC ? wanted->work
                                                        : *ir_work(&b.ir, b.first_timed_op_id.i),
            .median_s = quantile(&op_timings, 0.5),
            .p10_s = quantile(&op_timings, 0.1),
            .p90_s = quantile(&op_timings, 0.9),
            .repeats = (int64_t)op_timings.count,
        };
        if (is_communication(&wanted->work))
            point->work.p[0] = b.member_count;
    }
    free(op_timings.seconds);
    release_bench(&b);
    return status;
}

/* ---- the limit on the time of all cases ---- */

double microbench_estimated_s(const struct microbench_case *wanted,
                              const struct microbench_options *options)
{
    const struct backend *backend = backend_find(options->backend ? options->backend : "cpu");
    const struct bench b = {.bench_case = wanted,
                            .options = options,
                            .work = wanted->work,
                            .on_gpu = backend != NULL && !backend->kernels_run_on_host};
    double rounds = options->most_rounds > 0 ? options->most_rounds : b.on_gpu ? 1 : 2;
    uint32_t repeats = repeat_count(&b);
    return wanted->point_role == POINT_SUSTAINED
               ? repeats * estimate_op_s(&b.work, b.on_gpu)
               : rounds * (repeats + microbench_warmup_runs(repeats)) *
                     estimate_op_s(&b.work, b.on_gpu);
}

bool microbench_fits_time_budget(const struct microbench_time_budget *budget, double guess_s)
{
    return budget->limit_s <= 0 ||
           budget->spent_s + guess_s + budget->most_overhead_s <= budget->limit_s;
}

void microbench_record_spent_time(struct microbench_time_budget *budget, double guess_s,
                                  double took_s)
{
    budget->spent_s += took_s;
    budget->most_overhead_s = fmax(budget->most_overhead_s, took_s - guess_s);
}
