/* tests/exec/test_cuda_kernels.c: compares every kind of work that has a kernel in the CUDA backend, compiled for the
 * CPU, with the CPU backend, over random shapes in fp32, bf16 and fp16. */
#include "exec/cuda/compute.h"

#include "exec/cpu/kernels.h"
#include "exec/microbench_operands.h"
#include "exec/moved_rows.h"
#include "exec/number.h"
#include "models/frozen_storage.h"
#include "tests/check.h"
#include "tests/exec/emulator/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SHAPES: random shapes of each kind, with the dtypes in turn. GUARD: bytes after a buffer that must not change. */
enum { SHAPES = 14, GUARD = 64 };

static struct check_random rng;

static int64_t draw(int64_t low, int64_t high)
{
    return check_random_i64(&rng, low, high);
}

static float draw_float(void)
{
    return (float)draw(-2000000, 2000000) * 1e-6f;
}

/* Returns a random value for a parameter of this name, 0 if the name is not listed. Numbers of columns are small, odd,
 * multiples of eight, or larger than a block; some are larger than what a block keeps. */
static int64_t draw_parameter(const char *name)
{
    static const struct {
        const char *name;
        int64_t low, high;
    } ranges[] = {
        {"rows", 1, 50},
        {"heads", 1, 5},
        {"vocab", 1, 700},
        {"parts", 1, 4},
        {"w0", 1, 40},
        {"w1", 0, 24},
        {"w2", 0, 24},
        {"copies", 1, 4},
        {"first", 0, 60},
        {"accumulate", 0, 1},
        {"count", 1, 9000},
        {"experts", 4, 90},
        {"score", 0, 2},
        {"norm", 0, 1},
        {"weights", 0, 1},
        {"to", 1, 50},
        {"width", 1, 80},
        {"take", 0, 3},
        {"held", 0, 1},
        {"arrived", 0, 0},
        {"plain", 1, 40},
        {"vdim", 1, 40},
        {"storage", 1, FROZEN_STORAGE_COUNT - 1},
    };
    if (strcmp(name, "cols") == 0 && draw(0, 11) == 0)
        return draw(8000, 17000); /* more than a block of a norm keeps in registers, or not */
    if (strcmp(name, "cols") == 0)
        return draw(0, 3) == 0 ? draw(1, 5000) : draw(0, 1) ? 8 * draw(1, 80) : draw(1, 400);
    if (strcmp(name, "dim") == 0)
        return draw(0, 1) ? 16 * draw(1, 10) : 2 * draw(1, 40);
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        if (strcmp(ranges[i].name, name) == 0)
            return draw(ranges[i].low, ranges[i].high);
    return 0;
}

/* Returns a random work of the kind that its kernels support. */
static struct work draw_supported_work(enum work_kind kind)
{
    const struct work_kind_info *info = work_kind_info(kind);
    struct work work = {.kind = (uint8_t)kind};
    for (uint32_t i = 0; i < info->param_count; i++)
        work.p[i] = draw_parameter(info->param[i].name);
    if (kind == WORK_PACK || kind == WORK_UNPACK)
        if (work.pack.w[1] == 0)
            work.pack.w[2] = 0;
    if (work_is_permutation(&work))
        work.permute.to = 0; /* only work with a route has it, which the backend refuses */
    if (kind == WORK_QUANTISE) {
        const int64_t form = draw(0, 4);
        work.quantise.scaling = form > 2 || draw(0, 2) == 0 ? SCALING_TENSOR
                                : draw(0, 1)                ? SCALING_VECTOR
                                                            : SCALING_BLOCK;
        work.quantise.turned = form == 1;
        work.quantise.both = form == 2;
        work.quantise.finds = form == 3;
        work.quantise.given = form == 4;
    }
    if (kind == WORK_ADD && draw(0, 1)) {
        work.elements.cols = draw(1, 60) * (draw(0, 1) ? 8 : 1);
        work.elements.count = work.elements.cols * draw(1, 30);
        work.reads = 3;
    } else if (kind == WORK_ADD) {
        work.elements.cols = 0;
        work.reads = 2;
    }
    if (kind == WORK_CROSS_ENTROPY_PARTIAL)
        work.loss_partial.total = draw(0, 1) ? 0 : draw(1, 2 * work.loss_partial.vocab);
    if (kind == WORK_CROSS_ENTROPY_PARTIAL_BACKWARD)
        work.loss_backward.total = draw(0, 1) ? 0 : draw(1, 2 * work.loss_backward.vocab);
    if (kind == WORK_ROUTE_BACKWARD && work.route.copies == 1)
        work.route.copies =
            2; /* the weight of a single copy may be 1, its gradient only rounding */
    if (kind == WORK_SINK || kind == WORK_SINK_BACKWARD)
        work.sink.sinks = 3 * work.sink.heads; /* the parts of three ranks */
    if (kind == WORK_TAKE_ROWS && work.take_rows.take == TAKE_ROWS_TO_ROUND_ORDER)
        work.take_rows.arrived = draw(0, 1) * work.take_rows.rows;
    if (kind == WORK_MERGE_ROWS)
        work.merge_rows.first = draw(0, 1);
    if (kind == WORK_EMBEDDING_BACKWARD)
        work.reads = (uint8_t)draw(2, 3);
    if (kind == WORK_LATENT_KEYS || kind == WORK_LATENT_KEYS_BACKWARD) {
        const int64_t unit = draw(0, 1) ? 8 : 1;
        work.latent_keys.plain *= unit;
        work.latent_keys.rotated = unit * draw(1, 20);
        work.latent_keys.vdim *= unit;
    }
    if (kind == WORK_ROPE || kind == WORK_ROPE_BACKWARD)
        work.rope.rotated = draw(0, 1) ? 0 : 2 * draw(1, work.rope.dim / 2);
    if (kind == WORK_ROPE || kind == WORK_ROPE_BACKWARD)
        work.rope.stride =
            draw(0, 1) ? 0 : work.rope.heads * work.rope.dim + (draw(0, 1) ? 8 : 3) * draw(0, 5);
    return work;
}

/* Adapts the operands of kinds that allow other numbers or sizes of operands. */
static void adapt_operands(const struct work *work, struct bench_operands *o)
{
    switch ((enum work_kind)work->kind) {
    case WORK_CROSS_ENTROPY_FINISH:
        o->read[2].element_count *= (uint64_t)draw(1, 4);
        break;
    case WORK_CROSS_ENTROPY:
        if (draw(0, 1))
            o->write[o->write_count++] =
                (struct bench_operand){o->read[0].element_count, DTYPE_F32, -1};
        break;
    default:
        break;
    }
}

/* Returns a random element of a read that the kind can take. */
static float draw_element_of_read(const struct work *work, uint32_t read)
{
    float x = draw_float();
    enum work_kind kind = (enum work_kind)work->kind;
    if ((kind == WORK_ADAMW && read == 3) || (kind == WORK_CROSS_ENTROPY_FINISH && read == 2) ||
        ((kind == WORK_SQUARE_SUM || kind == WORK_CLIP) && read == 1))
        return fabsf(x) + 0.01f; /* a variance, a sum of exponentials or squares */
    if (kind == WORK_MERGE && read % 2 == 1 && draw(0, 4) == 0)
        return -INFINITY; /* the log-sum-exp of a row that saw no key */
    if (kind == WORK_CROSS_ENTROPY || kind == WORK_CROSS_ENTROPY_BACKWARD)
        return 8 * x;
    return x;
}

/* Returns a random position, token or label; tokens and labels may lie outside of a rank's part of the vocabulary. */
static int32_t draw_index(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_ROPE:
    case WORK_ROPE_BACKWARD:
        return (int32_t)draw(0, 1 << 22);
    case WORK_EMBEDDING:
    case WORK_EMBEDDING_BACKWARD:
        return (int32_t)draw(0, work->embedding.vocab + 2 * work->embedding.first);
    case WORK_CROSS_ENTROPY_PARTIAL:
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        return (int32_t)draw(-1, 2 * work->p[1]);
    default:
        return (int32_t)draw(-1, work->cross_entropy.vocab - 1);
    }
}

struct buffer {
    char *base;
    struct operand operand;
};

/* Returns a new buffer, sometimes shifted by one element from its alignment, always followed by guard bytes. */
static struct buffer new_buffer(struct bench_operand o)
{
    size_t element = dtype_bytes((enum dtype)o.dtype), shift = draw(0, 3) == 0 ? element : 0;
    struct buffer b = {.base = NULL};
    size_t bytes = shift + (size_t)o.element_count * element + GUARD;
    void *base = NULL;
    CU_ASSERT_EQUAL_FATAL(posix_memalign(&base, 64, bytes), 0);
    b.base = base;
    memset(b.base, 0x5a, bytes);
    b.operand = (struct operand){b.base + shift, o.element_count, o.dtype};
    return b;
}

static struct buffer copy_of_buffer(const struct buffer *b)
{
    size_t shift = (size_t)((char *)b->operand.data - b->base);
    size_t bytes = shift +
                   (size_t)b->operand.element_count * dtype_bytes((enum dtype)b->operand.dtype) +
                   GUARD;
    struct buffer copy = *b;
    void *base = NULL;
    CU_ASSERT_EQUAL_FATAL(posix_memalign(&base, 64, bytes), 0);
    copy.base = base;
    memcpy(copy.base, b->base, bytes);
    copy.operand.data = copy.base + shift;
    return copy;
}

static bool guard_is_intact(const struct buffer *b)
{
    const char *end = (char *)b->operand.data +
                      (size_t)b->operand.element_count * dtype_bytes((enum dtype)b->operand.dtype);
    for (int i = 0; i < GUARD; i++)
        if (end[i] != 0x5a)
            return false;
    return true;
}

/* Returns the tolerance of a comparison: both sides add in fp32, in different orders, and results stored in 16 bits
 * may round either way. */
static double tolerance(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? 1.0 / 120 : dtype == DTYPE_F16 ? 1.0 / 1000 : 3e-5;
}

static double difference(const struct buffer *got, const struct buffer *want)
{
    double worst = 0, scale = 1e-6;
    for (uint64_t i = 0; i < want->operand.element_count; i++) {
        double w = number_read_element(want->operand.data, (enum dtype)want->operand.dtype, i);
        if (isfinite(w))
            scale = fmax(scale, fabs(w));
    }
    for (uint64_t i = 0; i < want->operand.element_count; i++) {
        double w = number_read_element(want->operand.data, (enum dtype)want->operand.dtype, i);
        double g = number_read_element(got->operand.data, (enum dtype)got->operand.dtype, i);
        double d = w == g ? 0 : fabs(g - w) / scale;
        worst = isnan(d) ? INFINITY : fmax(worst, d);
    }
    return worst;
}

struct device_operands_of_call {
    struct buffer read[CALL_OPERANDS_MAX], write[CALL_OPERANDS_MAX];
    struct call call;
};

static void fill_operand(const struct work *work, uint32_t read, const struct operand *o)
{
    for (uint64_t i = 0; i < o->element_count; i++) {
        if (o->dtype == DTYPE_I32)
            ((int32_t *)o->data)[i] = draw_index(work);
        else if (o->dtype ==
                 DTYPE_U8) /* codes, or scales: any four such bytes are a positive number */
            ((uint8_t *)o->data)[i] = (uint8_t)(read == 0 ? draw(0, 255) : 0x3c + draw(0, 2));
        else
            number_write_element(o->data, (enum dtype)o->dtype, i,
                                 draw_element_of_read(work, read));
    }
}

static void make_device_call(struct device_operands_of_call *side, const struct work *work,
                             const struct bench_operands *o)
{
    side->call = (struct call){
        .work = work,
        .model = {1e-5, 10000},
        .adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 7, 0.25},
        .read_count = (uint8_t)o->read_count,
        .write_count = (uint8_t)o->write_count,
    };
    for (uint32_t k = 0; k < o->write_count; k++)
        side->call.write[k] = side->write[k].operand;
    for (uint32_t k = 0; k < o->read_count; k++)
        side->call.read[k] = o->read[k].index_of_write_in_same_buffer >= 0
                                 ? side->write[o->read[k].index_of_write_in_same_buffer].operand
                                 : side->read[k].operand;
}

static void *allocate_cuda_aligned(size_t bytes)
{
    void *p = NULL;
    CU_ASSERT_EQUAL_FATAL(posix_memalign(&p, CUDA_SCRATCH_ALIGNMENT, bytes + 64), 0);
    return p;
}

static size_t cpu_scratch_of(const struct call *call)
{
    const struct cpu_kernel_table_row *row = &cpu_math_rows[call->work->kind];
    size_t floats = (row->scratch ? row->scratch(call->work) : 0) + 16;
    for (uint32_t k = 0; k < call->read_count; k++)
        floats += (size_t)call->read[k].element_count + 16;
    for (uint32_t k = 0; k < call->write_count; k++)
        floats += (size_t)call->write[k].element_count + 16;
    return floats * sizeof(float);
}

/* Lists of rows that context ranks exchange: as a rank's assignment has them, and as its kernels read them. */
struct exchanged_row_lists {
    struct assignment_exchanged_rows rows;
    int64_t first[2][2], row[MOVED_LIST_COUNT][50], held[50];
    struct cuda_moved_row_pair pair[MOVED_LIST_COUNT][50];
    struct cuda_moved_row_pairs pairs[MOVED_LIST_COUNT];
};

/* Draws lists of at most `most` rows, perhaps of none. A row is sent and held up to twice and received at most once. */
static void draw_row_lists(struct exchanged_row_lists *l, int64_t most)
{
    for (int which = 0; which < MOVED_LIST_COUNT; which++) {
        int64_t count = 0;
        for (int64_t own = 0; own < most; own++)
            for (int64_t k = draw(0, which == MOVED_RECEIVED ? 1 : 2); k > 0 && count < most; k--) {
                l->row[which][count] = own;
                l->pair[which][count] = (struct cuda_moved_row_pair){count, own};
                l->held[count] = count;
                count++;
            }
        l->pairs[which] = (struct cuda_moved_row_pairs){l->pair[which], count};
        if (which < MOVED_HELD)
            l->first[which][1] = count;
    }
    l->rows = (struct assignment_exchanged_rows){
        .sent = {l->first[MOVED_SENT], l->row[MOVED_SENT]},
        .received = {l->first[MOVED_RECEIVED], l->row[MOVED_RECEIVED]},
        .held = {l->pairs[MOVED_HELD].count, l->held, l->row[MOVED_HELD]},
        .peer_count = 1,
    };
}

/* The copies that each of some ranks deals to experts, as a schedule has them and as kernels read them. */
struct dealing {
    struct routed_rows dealt;
    int64_t count[90], begin[91];
    int32_t *expert; /* of each slot of a router, on the heap */
};

/* Draws how many copies each expert gets, 0 for some, and sets the rows of *work to match: for a router the copies of
 * its own tokens, for a PACK or UNPACK those that several ranks deal to the experts of one of them. Returns false if
 * the kind of work has no rows of experts. */
static bool draw_copies_of_experts(struct dealing *d, struct work *work)
{
    const bool route = work->kind == WORK_ROUTE || work->kind == WORK_ROUTE_BACKWARD;
    if (!route && work->kind != WORK_PACK && work->kind != WORK_UNPACK)
        return false;
    const int64_t own = route ? work->route.experts : draw(1, 9), ranks = route ? 1 : draw(1, 4);
    d->dealt = (struct routed_rows){.rows_per_rank_by_expert = d->count,
                                    .experts = (uint32_t)(own * ranks),
                                    .ranks = (uint32_t)ranks,
                                    .first_expert = (uint32_t)(draw(0, ranks - 1) * own)};
    int64_t left = route ? work->route.rows * work->route.copies : INT64_MAX;
    for (int64_t e = 0; e < own * ranks; e++) {
        const int64_t most = route ? work->route.rows : 9, after = own * ranks - e - 1;
        const int64_t low = route && left > after * most ? left - after * most : 0;
        d->count[e] = low + (draw(0, 2) ? draw(0, (most < left ? most : left) - low) : 0);
        d->count[e] += !route && e == d->dealt.first_expert;
        left -= route ? d->count[e] : 0;
        d->begin[e + 1] = d->begin[e] + d->count[e];
    }
    if (route) {
        d->expert = calloc((size_t)d->begin[own] + 1, sizeof *d->expert);
        for (int32_t e = 0; e < own; e++)
            for (int64_t i = d->begin[e]; i < d->begin[e + 1]; i++)
                d->expert[i] = e;
        d->dealt.expert_of_slot = d->expert;
    }
    d->dealt.row_count = ranks * assignment_rows_per_rank_of_member(
                                     &d->dealt, d->dealt.first_expert / (uint32_t)own);
    if (!route)
        *work =
            (struct work){.kind = work->kind, .pack = {d->dealt.row_count, 1, {draw(1, 40), 0, 0}}};
    return true;
}

/* Returns how many rows each list of a work that moves rows may have; -1 for other works. */
static int64_t max_rows_of_moved_lists(const struct work *work)
{
    const int64_t rows = work->take_rows.rows, to = work->take_rows.to;
    const bool moves = work->kind == WORK_TAKE_ROWS || work->kind == WORK_ADD_ROWS ||
                       work->kind == WORK_MERGE_ROWS;
    return !moves ? -1 : rows < to ? rows : to;
}

static void compare_kernel_with_cpu(enum work_kind kind, enum dtype dtype)
{
    struct work work = draw_supported_work(kind);
    struct dealing dealing = {.begin = {0}};
    const bool dealt = draw(0, 1) && draw_copies_of_experts(&dealing, &work);
    struct bench_operands o;
    char label[160], *end = label + snprintf(label, sizeof label, "%s %s",
                                             work_kind_info(kind)->name, dtype_name(dtype));
    for (uint32_t i = 0; i < work_kind_info(kind)->param_count && end < label + 120; i++)
        end += snprintf(end, 24, " %s=%" PRId64, work_kind_info(kind)->param[i].name, work.p[i]);
    if (!CHECK(label, bench_list_operands(&work, dtype, &o)))
        return;
    adapt_operands(&work, &o);

    struct device_operands_of_call cpu = {0}, cuda = {0};
    for (uint32_t k = 0; k < o.write_count; k++)
        cpu.write[k] = new_buffer(o.write[k]);
    for (uint32_t k = 0; k < o.read_count; k++) {
        if (o.read[k].index_of_write_in_same_buffer < 0)
            cpu.read[k] = new_buffer(o.read[k]);
        fill_operand(&work, k,
                     o.read[k].index_of_write_in_same_buffer < 0
                         ? &cpu.read[k].operand
                         : &cpu.write[o.read[k].index_of_write_in_same_buffer].operand);
    }
    for (uint32_t k = 0; k < o.write_count; k++)
        cuda.write[k] = copy_of_buffer(&cpu.write[k]);
    for (uint32_t k = 0; k < o.read_count; k++)
        if (o.read[k].index_of_write_in_same_buffer < 0)
            cuda.read[k] = copy_of_buffer(&cpu.read[k]);
    make_device_call(&cpu, &work, &o);
    make_device_call(&cuda, &work, &o);
    cpu.call.index_in_sharding_group = cuda.call.index_in_sharding_group = draw(0, 2);
    cpu.call.reads_softmax = cuda.call.reads_softmax =
        kind == WORK_CROSS_ENTROPY_BACKWARD && draw(0, 2) == 0;

    const struct cuda_kernel_table_row *row = &cuda_compute_rows[kind];
    struct exchanged_row_lists lists = {.rows.peer_count = 0};
    int32_t fault = 0;
    float *cpu_memory = allocate_cuda_aligned(cpu_scratch_of(&cpu.call));
    struct cuda_launch_context place = {
        .scratch = allocate_cuda_aligned(row->scratch ? row->scratch(&work) : 0),
        .fault_op_plus_1_address = &fault,
        .fault_op_plus_1 = 1};
    if (dealt) {
        cpu.call.routed_rows = cuda.call.routed_rows = &dealing.dealt;
        place.expert_begins = dealing.begin;
    }
    if (max_rows_of_moved_lists(&work) >= 0) {
        draw_row_lists(&lists, draw(0, 3) > 0 ? max_rows_of_moved_lists(&work) : 0);
        cpu.call.exchanged_rows = &lists.rows;
        place.moved_row_pair_lists = lists.pairs;
    }
    CHECK(label, cpu_compute_call(&cpu.call, cpu_memory) == NULL);
    CHECK_INT(label, row->run(&cuda.call, &place), 0);
    emulator_device_synchronize();
    CHECK_INT(label, fault, 0);
    for (uint32_t k = 0; k < o.write_count; k++) {
        double d = difference(&cuda.write[k], &cpu.write[k]);
        if (!CHECK(label, d <= tolerance((enum dtype)o.write[k].dtype)))
            printf("  write %" PRIu32 " differs by %g of its largest\n", k, d);
        CHECK(label, guard_is_intact(&cuda.write[k]));
        free(cpu.write[k].base);
        free(cuda.write[k].base);
    }
    for (uint32_t k = 0; k < o.read_count; k++) {
        free(cpu.read[k].base);
        free(cuda.read[k].base);
    }
    free(cpu_memory);
    free(place.scratch);
    free(dealing.expert);
}

static void kernels_compute_what_the_processor_does(void)
{
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
    rng = check_random_make();
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        for (int i = 0; i < SHAPES && cuda_compute_rows[kind].run != NULL; i++) {
            emulator_backwards = i % 2;
            compare_kernel_with_cpu((enum work_kind)kind, dtypes[i % 3]);
        }
    emulator_backwards = 0;
}

/* Every kind that the CPU backend computes has a CUDA kernel or is computed by a library of NVIDIA, and no other kind
 * is. */
static void every_kind_has_a_row(void)
{
    static const enum work_kind elsewhere[] = {WORK_MATMUL, WORK_ATTENTION, WORK_ATTENTION_BACKWARD,
                                               WORK_FILL};
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        bool library = false;
        for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
            library = library || (int)elsewhere[i] == kind;
        CHECK(work_kind_info((enum work_kind)kind)->name,
              (cpu_math_rows[kind].run != NULL) ==
                  (library || cuda_compute_rows[kind].run != NULL));
    }
}

/* One token fills all or nine tenths of the batch, as padding does. The row of its gradient must be the sum in
 * ascending order of positions, bit for bit, whatever the order of threads. */
static void a_frequent_token_is_summed_in_order(void)
{
    enum { ROWS = 777, COLS = 3, VOCAB = 5 };
    static float dy[ROWS * COLS], table[VOCAB * COLS], want[VOCAB * COLS];
    static int32_t token[ROWS];
    rng = check_random_make();
    for (int round = 0; round < 4; round++) {
        memset(want, 0, sizeof want);
        for (int i = 0; i < ROWS; i++) {
            token[i] = round == 0 || draw(0, 9) > 0 ? 3 : (int32_t)draw(0, VOCAB - 1);
            for (int c = 0; c < COLS; c++) {
                dy[i * COLS + c] = draw_float();
                want[token[i] * COLS + c] += dy[i * COLS + c];
            }
        }
        emulator_backwards = round % 2;
        void *scratch = allocate_cuda_aligned(cuda_embedding_backward_scratch_bytes(ROWS, VOCAB));
        CHECK_INT("run",
                  cuda_embedding_backward(
                      (struct cuda_array){table, CUDA_F32}, (struct cuda_array){dy, CUDA_F32},
                      token, (struct cuda_array){0}, ROWS, COLS, VOCAB, 0, scratch, NULL),
                  0);
        emulator_device_synchronize();
        CHECK_INT("bits", memcmp(table, want, sizeof want), 0);
        free(scratch);
    }
    emulator_backwards = 0;
}

static void a_wrong_label_is_reported(void)
{
    int32_t label[3] = {0, 4, 1}, fault = 0;
    float logits[3][4] = {{0}}, loss = 0, lse[3], term[64];
    struct cuda_array x = {logits, CUDA_F32};
    CHECK_INT("loss",
              cuda_cross_entropy(&loss, lse, (struct cuda_array){0}, x, label, NULL, 3, 4, 3,
                                 &fault, 8, term, NULL),
              0);
    emulator_device_synchronize();
    CHECK_INT("the op's mark", fault, 8);
}

/* The label of row r is in the middle of the row, so the thread that overwrites this logit is not the one that reads
 * it for the loss. */
static void softmax_may_overwrite_its_logits(void)
{
    enum { ROWS = 3, VOCAB = 600 };
    for (int backwards = 0; backwards < 2; backwards++) {
        int32_t label[ROWS], fault = 0;
        float logits[ROWS][VOCAB], softmax[ROWS][VOCAB], lse[2][ROWS], term[64], loss[2];
        emulator_backwards = backwards;
        for (int r = 0; r < ROWS; r++) {
            label[r] = VOCAB / 2 + r;
            for (int c = 0; c < VOCAB; c++)
                logits[r][c] = (float)((c * 7 + r) % 13) * 0.5f;
        }
        struct cuda_array x = {logits, CUDA_F32}, apart = {softmax, CUDA_F32};
        cuda_cross_entropy(&loss[0], lse[0], apart, x, label, NULL, ROWS, VOCAB, ROWS, &fault, 1,
                           term, NULL);
        cuda_cross_entropy(&loss[1], lse[1], x, x, label, NULL, ROWS, VOCAB, ROWS, &fault, 1, term,
                           NULL);
        emulator_device_synchronize();
        CHECK_INT("fault", fault, 0);
        CHECK_CLOSE(backwards ? "last threads first" : "first threads first", loss[1], loss[0], 0);
        CHECK("softmax", memcmp(logits, softmax, sizeof softmax) == 0);
    }
    emulator_backwards = 0;
}

static const struct check_case cases[] = {
    {"every kind has a row", every_kind_has_a_row},
    {"kernels compute what the processor does", kernels_compute_what_the_processor_does},
    {"a frequent token is summed in order", a_frequent_token_is_summed_in_order},
    {"a wrong label is told", a_wrong_label_is_reported},
    {"softmax may go over its logits", softmax_may_overwrite_its_logits},
};
CHECK_MAIN("cuda kernels", cases)
