/* Costs: cases a person can compute, laws, and the published points the files are calibrated on. */
#include "models/cost.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* ---- hand-worked: 4 multiprocessors of 1 Gflop/s, 1 GB/s of memory, round shares of it ---- */

#define N(value) "{\"value\": " value ", \"source\": \"test\"}"
#define PASS                                                                                            \
    "{\"tile\": " N("10") ", \"step\": " N("10") ", \"ramp_s\": " N(                                    \
        "\"1 ms\"") ", \"rates\": {\"100\": " N("\"4 GFLOP/s\"") ", \"200\": " N("\"4 GFLOP/s\"") "}, " \
                                                                                                  "\"calibrated\": {\"residual\": 0.01, \"source\": \"test\", \"sizes\": {\"kv\": [50, 100]}}}"
#define DEVICE(sm_count, start)                                                                    \
    "\"device\": {\"sm_count\": " N(sm_count) ", \"peak_flop_per_s\": " N(                         \
        "\"8 GFLOP/s\"") ", \"memory_bytes_per_s\": " N("\"1 GB/s\"") ", \"kernel_start_s\": " N(start) "},"
#define MATMUL(rate, tile, ramp)                                                                                                                                                                                 \
    "\"matmul\": {\"flop_per_s\": " N(rate) ", \"f32_flop_per_s\": " N(                                                                                                                                          \
        "\"2 GFLOP/s\"") ", "                                                                                                                                                                                    \
                         "\"f64_"                                                                                                                                                                                \
                         "flop_"                                                                                                                                                                                 \
                         "per_s\":"                                                                                                                                                                              \
                         " " N(                                                                                                                                                                                  \
                             "\""                                                                                                                                                                                \
                             "1 "                                                                                                                                                                                \
                             "GF"                                                                                                                                                                                \
                             "LO"                                                                                                                                                                                \
                             "P/"                                                                                                                                                                                \
                             "s"                                                                                                                                                                                 \
                             "\"") ", \"burst_factor\": " N("1.25") ", \"tile\": " N(tile) ", "                                                                                                                  \
                                                                                           "\"sma"                                                                                                               \
                                                                                           "ll_"                                                                                                                 \
                                                                                           "tile"                                                                                                                \
                                                                                           "\":"                                                                                                                 \
                                                                                           " " N(tile) ", \"small_tile_rate\": " N("1") ", \"ramp_s\": " N(                                                      \
                                                                                               ramp) ", \"memory_fraction\": " N("1") ", \"calibrated\": {\"residual\": 0.02, \"source\": \"test\", \"sizes\": " \
                                                                                                                                      "{\"k\": [512, 32768]}}},"
#define MEMORY(ramp)                                                                                                           \
    "\"memory\": {\"stream_fraction\": " N("1") ", \"reduce_fraction\": " N(                                                   \
        "0.5") ", \"permute_fraction\": " N("0.25") ", \"gather_fraction\": " N("0.2") ", "                                    \
                                                                                       "\"scatter"                             \
                                                                                       "_fraction"                             \
                                                                                       "\": " N("0.1") ", \"ramp_bytes\": " N( \
                                                                                           ramp) ", \"estimated\": {\"residual\": 0.1, \"source\": \"nobody measured\"}},"
#define HOST                                                                                       \
    "\"host\": {\"op_s\": " N("\"6 us\"") ", \"kernel_s\": " N(                                    \
        "\"4 us\"") ", \"collective_s\": " N("\"30 us\"") ", \"copy_s\": " N("\"8 us\"") ", "      \
                                                                                         "\"sync_" \
                                                                                         "s\":"    \
                                                                                         " " N(    \
                                                                                             "\"1" \
                                                                                             "5 "  \
                                                                                             "us"  \
                                                                                             "\"") ", \"estimated\": {\"residual\": 0.1, \"source\": \"test\"}},"
#define CPU                                                                                        \
    "\"cpu\": {\"stream_fraction\": " N("0.5") ", \"start_s\": " N(                                \
        "\"1 ms\"") ", \"estimated\": {\"residual\": 0.1, \"source\": \"test\"}},"
#define ATTENTION                                                                                  \
    "\"attention\": {\"fa2\": {\"merge_bytes\": " N("26") ", \"forward\": " PASS                   \
                                                          ", \"backward\": " PASS "}}"
#define HEAD "{\"longhaul_device_cost\": 1, \"name\": \"toy\","
#define TAIL(ramp) MEMORY(ramp) HOST CPU ATTENTION "}"

static const char one_core[] =
    HEAD DEVICE("1", "\"0 s\"") MATMUL("\"1 GFLOP/s\"", "1", "\"0 s\"") TAIL("\"0 B\"");
static const char four_cores[] =
    HEAD DEVICE("4", "\"0 s\"") MATMUL("\"4 GFLOP/s\"", "100", "\"1 ms\"") TAIL("\"0 B\"");
static const char slow_start[] =
    HEAD DEVICE("4", "\"1 ms\"") MATMUL("\"4 GFLOP/s\"", "100", "\"0 s\"") TAIL("\"1 MB\"");

struct fixture {
    struct arena arena;
    struct diag diag;
    struct device_cost cost;
};

static void fixture_release(struct fixture *f)
{
    diag_release(&f->diag);
    arena_release(&f->arena);
}

static bool fixture_parse(struct fixture *f, const char *text)
{
    *f = (struct fixture){0};
    enum status status = cost_parse(&f->cost, &f->arena, "toy.json", text, strlen(text), &f->diag);
    return CHECK(f->diag.text ? f->diag.text : "parses", status == STATUS_OK);
}

static bool fixture_load(struct fixture *f, const char *name)
{
    *f = (struct fixture){0};
    enum status status = cost_load(&f->cost, &f->arena, name, &f->diag);
    return CHECK(f->diag.text ? f->diag.text : name, status == STATUS_OK);
}

static struct work product(int64_t m, int64_t n, int64_t k)
{
    return (struct work){.kind = WORK_MATMUL,
                         .in = DTYPE_BF16,
                         .out = DTYPE_BF16,
                         .matmul = {.m = m, .n = n, .k = k}};
}

static struct work attention(enum work_kind kind, int64_t q, int64_t kv, int64_t heads,
                             int64_t kv_heads, int64_t dim, enum mask mask)
{
    return (struct work){
        .kind = (uint8_t)kind,
        .in = DTYPE_BF16,
        .out = DTYPE_BF16,
        .attention = {
            .q = q, .kv = kv, .heads = heads, .kv_heads = kv_heads, .dim = dim, .mask = mask}};
}

static struct work flat(enum work_kind kind, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct work){
        .kind = (uint8_t)kind, .in = DTYPE_BF16, .out = DTYPE_BF16, .p = {a, b, c, d}};
}

static double seconds(const struct device_cost *cost, struct work work)
{
    return cost_work_s(cost, ATTENTION_FA2, &work);
}

static void two_gflop_take_two_seconds(void)
{
    struct fixture f;
    if (fixture_parse(&f, one_core)) {
        struct work cube = product(1000, 1000, 1000);
        CHECK_CLOSE("2 Gflop at 1 Gflop/s", seconds(&f.cost, cube), 2, 1e-12);
        cube.in = DTYPE_F32;
        CHECK_CLOSE("f32 has its own rate", seconds(&f.cost, cube), 1, 1e-12);
        cube.in = DTYPE_BF16;
        f.cost.clock = COST_CLOCK_BURST;
        CHECK_CLOSE("before power limits the clock", seconds(&f.cost, cube), 1.6, 1e-12);
        CHECK_CLOSE("ideal: 2 Gflop at a peak of 8", cost_ideal_s(8e9, &cube), 0.25, 1e-12);
    }
    fixture_release(&f);
}

static void products_go_in_waves_of_tiles(void)
{
    struct fixture f;
    if (fixture_parse(&f, four_cores)) {
        /* 5 tiles of 100 x 100 on 4 multiprocessors: 2 waves of 2 * 100 * 100 * 1 flop and 1 ms */
        CHECK_CLOSE("2 waves", seconds(&f.cost, product(500, 100, 1)), 2 * (20e-6 + 1e-3), 1e-12);
        /* k in 4 parts: 20 tiles, 5 waves of 250 deep (5 ms) and 1 ms; 4 partial sums of 50000
         * f32, written and read, are 1.6 MB. One part: 42 ms, two: 33.8 ms, eight: 38.2 ms. */
        CHECK_CLOSE("4 parts of k", seconds(&f.cost, product(500, 100, 1000)), 5 * 6e-3 + 1.6e-3,
                    1e-12);
    }
    fixture_release(&f);
}

static void a_thin_product_waits_for_memory(void)
{
    struct fixture f;
    if (fixture_parse(&f, slow_start)) {
        /* 2 (100 * 1 + 1 * 10^5 + 100 * 10^5) bytes and 1 MB of ramp at 1 GB/s; 1 ms to start */
        CHECK_CLOSE("bytes", seconds(&f.cost, product(100, 100000, 1)), 21.2002e-3 + 1e-3, 1e-12);
    }
    fixture_release(&f);
}

static void full_tiles_of_attention_go_in_waves(void)
{
    struct fixture f;
    if (fixture_parse(&f, four_cores)) {
        /* 5 blocks of 10 queries on 4: 2 waves; a block is 4 * 10 * 100 keys * 100 flop = 0.4 ms */
        CHECK_CLOSE("full",
                    seconds(&f.cost, attention(WORK_ATTENTION, 50, 100, 1, 1, 100, MASK_FULL)),
                    2 * (0.4e-3 + 1e-3), 1e-12);
        /* dim 150 runs as 200 */
        CHECK_CLOSE("padded",
                    seconds(&f.cost, attention(WORK_ATTENTION, 50, 100, 1, 1, 150, MASK_FULL)),
                    2 * (0.8e-3 + 1e-3), 1e-12);
        /* 5 blocks of 10 keys, 10 * 10 * 100 queries * 100 flop = 1 ms each; the small kernels
         * move 100 * 100 * 14 bytes: O and dO in, f32 dQ cleared and read, dQ out */
        CHECK_CLOSE(
            "backward",
            seconds(&f.cost, attention(WORK_ATTENTION_BACKWARD, 100, 50, 1, 1, 100, MASK_FULL)),
            2 * (1e-3 + 1e-3) + 0.14e-3, 1e-12);
        /* 10 blocks, 3 waves; dQ of two heads; dK, dV of 2 heads summed into 1: 2 * 100 * 150 * 2 */
        CHECK_CLOSE(
            "backward, grouped heads",
            seconds(&f.cost, attention(WORK_ATTENTION_BACKWARD, 100, 50, 2, 1, 100, MASK_FULL)),
            3 * (1e-3 + 1e-3) + 0.28e-3 + 0.06e-3, 1e-12);
    }
    fixture_release(&f);
}

static void causal_tiles_lose_half_of_the_longest_block(void)
{
    struct fixture f;
    if (fixture_parse(&f, four_cores)) {
        /* 40 blocks; those of a head loop over 10, 20 .. 100 columns, 10 of them cut by the
         * mask and half as long again: 60 on average, of 4 us each, and 1 ms to start and end;
         * over 4 multiprocessors, and half of the longest (100 columns and 1 ms) times 1 - 10 / 100 */
        double work = 40 * (60 * 4e-6 + 1e-3), longest = 100 * 4e-6 + 1e-3;
        CHECK_CLOSE("causal",
                    seconds(&f.cost, attention(WORK_ATTENTION, 100, 100, 4, 4, 100, MASK_CAUSAL)),
                    work / 4 + (0.9 * longest) / 2, 1e-12);
        struct work none = attention(WORK_ATTENTION, 10, 10, 1, 1, 100, MASK_CAUSAL);
        none.attention.offset =
            -10; /* no key is visible: one empty block; its output is memory's */
        CHECK("no pairs take no products", seconds(&f.cost, none) <= 0.5e-3 + 1e-3);
        CHECK_CLOSE("no keys",
                    seconds(&f.cost, attention(WORK_ATTENTION, 1, 0, 1, 1, 100, MASK_FULL)), 1e-3,
                    1e-12);
    }
    fixture_release(&f);
}

static const struct {
    const char *label;
    enum work_kind kind;
    int64_t p[4];
    double seconds;
} memory_cases[] = {
    /* bytes at 1 GB/s over the share of the kind */
    {"add: 6 bytes of 10^6", WORK_ADD, {1000000, 0, 0, 0}, 6e-3},
    {"swiglu: 6 bytes of 100 x 100", WORK_SWIGLU, {100, 100, 0, 0}, 60e-6},
    {"pack: 4 bytes of 100 x 100, 1/4", WORK_PACK, {100, 1, 100, 0}, 160e-6},
    {"embedding: 10 rows of 100, 1/5", WORK_EMBEDDING, {10, 100, 1000, 0}, 4040e-9 * 5},
    {"merge: 20 rows, 26 x 100 + 3 f32", WORK_MERGE, {10, 2, 100, 0}, 52240e-9},
    {"gelu: 4 bytes of 100 x 100", WORK_GELU, {100, 100, 0, 0}, 40e-6},
    {"column_sum: 20200 bytes, 1/2", WORK_COLUMN_SUM, {100, 100, 0, 0}, 40.4e-6},
};

static void memory_bound_work_takes_its_bytes(void)
{
    struct fixture f;
    if (fixture_parse(&f, four_cores)) {
        for (size_t i = 0; i < ARRAY_LEN(memory_cases); i++) {
            const int64_t *p = memory_cases[i].p;
            CHECK_CLOSE(memory_cases[i].label,
                        seconds(&f.cost, flat(memory_cases[i].kind, p[0], p[1], p[2], p[3])),
                        memory_cases[i].seconds, 1e-12);
        }
    }
    fixture_release(&f);
    if (fixture_parse(&f, slow_start))
        CHECK_CLOSE("half the rate at the ramp's bytes",
                    seconds(&f.cost, flat(WORK_FILL, 500000, 0, 0, 0)), 1e-3 + 2e-3, 1e-12);
    fixture_release(&f);
}

static void the_host_takes_its_time(void)
{
    struct fixture f;
    if (fixture_parse(&f, one_core)) {
        struct work work = product(8, 8, 8);
        CHECK_CLOSE("an op and a kernel", cost_issue_s(&f.cost, &work), 10e-6, 1e-12);
        work = flat(WORK_ALL_GATHER, 0, 8, 0, 0);
        CHECK_CLOSE("a collective", cost_issue_s(&f.cost, &work), 30e-6, 1e-12);
        CHECK_CLOSE("no device time of its own", seconds(&f.cost, work), 0, 0);
        work = flat(WORK_D2H, 8, 0, 0, 0);
        CHECK_CLOSE("a copy", cost_issue_s(&f.cost, &work), 8e-6, 1e-12);
        work = flat(WORK_HOST_SYNC, 0, 0, 0, 0);
        CHECK_CLOSE("a synchronisation", cost_issue_s(&f.cost, &work), 15e-6, 1e-12);
        /* bf16 gradient in, master, m, v in and out: 26 bytes of 10^6 at half of 1 GB/s, and 1 ms */
        work = flat(WORK_ADAMW, 1000000, 0, 0, 0);
        CHECK_CLOSE("adam on the host", cost_host_work_s(&f.cost, 1e9, &work), 52e-3 + 1e-3, 1e-12);
        CHECK_CLOSE("its bytes", cost_host_work_bytes(&work), 26e6, 1e-12);
    }
    fixture_release(&f);
}

/* ---- laws ---- */

static bool is_attention(int kind)
{
    return kind == WORK_ATTENTION || kind == WORK_ATTENTION_BACKWARD;
}

static void every_kind_has_its_functions(void)
{
    struct fixture f, ideal;
    if (fixture_load(&f, "a100-80g") && fixture_load(&ideal, "ideal")) {
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
            const char *name = work_kind_info((enum work_kind)kind)->name;
            struct work work = is_attention(kind)
                                   ? attention((enum work_kind)kind, 64, 64, 4, 2, 80, MASK_CAUSAL)
                                   : flat((enum work_kind)kind, 64, 64, 64, 0);
            double s = seconds(&f.cost, work);
            enum stream_class stream = work_kind_info((enum work_kind)kind)->stream;
            CHECK(name, isfinite(s) && (s > 0) == (stream == STREAM_COMPUTE));
            CHECK(name, cost_issue_s(&f.cost, &work) > 0);
            CHECK(name, (cost_calibration_of(&f.cost, ATTENTION_FA2, &work) != NULL) == (s > 0));
            CHECK(name, cost_issue_s(&ideal.cost, &work) == 0);
            CHECK_CLOSE(name, seconds(&ideal.cost, work), work_flops(&work) / 312e12, 1e-12);
        }
        fixture_release(&ideal);
    }
    fixture_release(&f);
}

/* More of anything takes no less time; how uneven blocks are is an average, good to 1 %. */
static void time_grows_with_every_size(void)
{
    struct check_random random = check_random_make();
    struct fixture f;
    if (fixture_load(&f, "a100-80g")) {
        for (int i = 0; i < 3000; i++) {
            struct work work;
            int grown = (int)check_random_i64(&random, 0, 2);
            int64_t a = check_random_i64(&random, 1, 20000),
                    b = check_random_i64(&random, 1, 20000);
            int64_t c = check_random_i64(&random, 1, 20000);
            if (check_random_i64(&random, 0, 1)) {
                work = product(a, b, c);
            } else {
                enum work_kind kind =
                    check_random_i64(&random, 0, 1) ? WORK_ATTENTION : WORK_ATTENTION_BACKWARD;
                work = attention(kind, a, b, 1 + c % 16, 1, 128,
                                 check_random_i64(&random, 0, 1) ? MASK_FULL : MASK_CAUSAL);
            }
            double before = seconds(&f.cost, work);
            work.p[grown] += check_random_i64(&random, 1, 5000);
            if (!CHECK("grows", seconds(&f.cost, work) >= before * 0.99))
                break;
        }
    }
    fixture_release(&f);
}

static void no_product_or_attention_beats_the_peak(void)
{
    struct check_random random = check_random_make();
    const char *const *names;
    size_t count;
    struct fixture list = {0};
    CHECK("presets",
          cost_presets(&names, &count, &list.arena, &list.diag) == STATUS_OK && count == 10);
    for (size_t i = 0; i < count; i++) {
        struct fixture f;
        if (!fixture_load(&f, names[i])) {
            fixture_release(&f);
            continue;
        }
        CHECK_TEXT("a preset is called as its file", f.cost.name, names[i]);
        for (int k = 0; k < 200; k++) {
            int64_t q = check_random_i64(&random, 1, 70000),
                    kv = check_random_i64(&random, 1, 70000);
            for (int impl = 0; impl < ATTENTION_IMPL_COUNT; impl++) {
                if (!f.cost.attention[impl][0].present)
                    continue;
                for (int kind = WORK_ATTENTION; kind <= WORK_ATTENTION_BACKWARD; kind++) {
                    struct work work = attention((enum work_kind)kind, q, kv, 8, 2, 128,
                                                 k % 2 ? MASK_FULL : MASK_CAUSAL);
                    CHECK(names[i], cost_work_s(&f.cost, (enum attention_impl)impl, &work) >=
                                        cost_ideal_s(f.cost.device_peak_flop_per_s, &work));
                }
            }
            struct work work = product(q, kv, 1 + q % 9000);
            CHECK(names[i],
                  seconds(&f.cost, work) >= cost_ideal_s(f.cost.device_peak_flop_per_s, &work));
        }
        fixture_release(&f);
    }
    fixture_release(&list);
}

static void every_number_has_a_source(void)
{
    struct fixture f;
    if (fixture_load(&f, "h100-96g")) {
        for (size_t i = 0; i < f.cost.facts.count; i++) {
            const struct cost_fact *fact = &f.cost.facts.row[i];
            CHECK(fact->name,
                  fact->source[0] && fact->meaning[0] && fact->at.name && fact->at.line);
            for (size_t k = 0; k < i; k++)
                CHECK(fact->name, strcmp(fact->name, f.cost.facts.row[k].name) != 0);
        }
        struct text text = {0};
        cost_print(&text, &f.cost);
        CHECK("its own", strstr(text.data, "device.memory_bytes_per_s = 2.40 TB/s"));
        CHECK("its base's base's", strstr(text.data, "device.sm_count = 132"));
        text_release(&text);
    }
    fixture_release(&f);
}

/* ---- published points ---- */

/* One rank's ring of LoongTrain's 2D attention, as models of schedules have it: one causal
 * square, then half tiles; each rank of a step waits for the slowest (arXiv 2406.18485, section 4). */
struct ring {
    const struct device_cost *cost;
    int64_t rows, heads, kv_heads; /* tokens and heads of one rank */
    int64_t steps;
};

static double tile_s(const struct ring *ring, enum work_kind kind, int64_t q, int64_t kv,
                     enum mask mask)
{
    double total =
        seconds(ring->cost, attention(kind, q, kv, ring->heads, ring->kv_heads, 128, mask));
    if (kind == WORK_ATTENTION)
        return total + seconds(ring->cost, flat(WORK_MERGE, q, ring->heads, 128, 0));
    /* dq, dk, dv are added to f32 sums */
    struct work add = flat(WORK_ADD, q * ring->heads * 128, 0, 0, 0);
    add.in = add.out = DTYPE_F32;
    total += seconds(ring->cost, add);
    add.elements.count = kv * ring->kv_heads * 128;
    return total + 2 * seconds(ring->cost, add);
}

static double ring_s(const struct ring *ring, enum work_kind kind)
{
    int64_t c = ring->rows;
    double half_queries = tile_s(ring, kind, c / 2, c, MASK_FULL);
    double half_keys = tile_s(ring, kind, c, c / 2, MASK_FULL);
    return tile_s(ring, kind, c, c, MASK_CAUSAL) +
           (double)(ring->steps - 1) * fmax(half_queries, half_keys);
}

/* hp = 8, cp = 8, GQA 32/8 on 64 A100. Forward: the difference that SC++ makes to a step, per
 * layer (Table 6). Both: the operator less its all-to-alls (Table 4). */
static const struct {
    int64_t tokens;
    double forward_s, both_s;
} loongtrain[] = {
    {131072, 12.6e-3, 52.1e-3 - 2.64e-3},
    {262144, 48.6e-3, 166.2e-3 - 3.24e-3},
    {524288, 168.6e-3, 644.1e-3 - 4.43e-3},
    {1048576, 651e-3, 2494e-3 - 7.31e-3},
};

static void loongtrain_operators_are_reproduced(void)
{
    struct fixture f;
    if (fixture_load(&f, "a100-80g")) {
        double forward = 0, backward = 0, both = 0;
        for (size_t i = 0; i < ARRAY_LEN(loongtrain); i++) {
            struct ring ring = {&f.cost, loongtrain[i].tokens / 8, 4, 1, 8};
            double a = ring_s(&ring, WORK_ATTENTION), b = ring_s(&ring, WORK_ATTENTION_BACKWARD);
            double published = loongtrain[i].both_s - loongtrain[i].forward_s;
            CHECK_CLOSE("forward", a, loongtrain[i].forward_s, 0.09);
            CHECK_CLOSE("backward", b, published, 0.07);
            CHECK_CLOSE("both", a + b, loongtrain[i].both_s, 0.03);
            forward += fabs(a / loongtrain[i].forward_s - 1) / 4;
            backward += fabs(b / published - 1) / 4;
            both += fabs((a + b) / loongtrain[i].both_s - 1) / 4;
        }
        CHECK("forward, mean", forward <= 0.05);
        CHECK("backward, mean", backward <= 0.03);
        CHECK("both, mean", both <= 0.014);
    }
    fixture_release(&f);
}

/* Other shapes of the same operator, on which nothing was fitted (Table 4, compute-bound cells). */
static const struct {
    const char *label;
    int64_t tokens, hp, cp;
    double both_s;
} other_rings[] = {
    {"128K hp 4 cp 16", 131072, 4, 16, 55.4e-3 - 2.15e-3},
    {"128K hp 16 cp 4", 131072, 16, 4, 55.8e-3 - 7.23e-3},
    {"128K hp 32 cp 2", 131072, 32, 2, 60.8e-3 - 13.4e-3},
    {"1M hp 4 cp 16", 1048576, 4, 16, 2559e-3 - 6.76e-3},
    {"1M hp 16 cp 4", 1048576, 16, 4, 2530e-3 - 42.44e-3},
    {"1M hp 32 cp 2", 1048576, 32, 2, 2579e-3 - 81.76e-3},
};

static void other_rings_follow(void)
{
    struct fixture f;
    if (fixture_load(&f, "a100-80g")) {
        for (size_t i = 0; i < ARRAY_LEN(other_rings); i++) {
            int64_t kv_heads = other_rings[i].hp < 8 ? 8 / other_rings[i].hp : 1;
            struct ring ring = {&f.cost, other_rings[i].tokens / other_rings[i].cp,
                                32 / other_rings[i].hp, kv_heads, other_rings[i].cp};
            CHECK_CLOSE(other_rings[i].label,
                        ring_s(&ring, WORK_ATTENTION) + ring_s(&ring, WORK_ATTENTION_BACKWARD),
                        other_rings[i].both_s, 0.05);
        }
    }
    fixture_release(&f);
}

/* cuDNN 9.19.1 on an H200, GQA 64/8, dim 128: TFLOP/s, causal counted half. */
static const struct {
    int64_t tokens;
    double full[2], causal[2];
} cudnn[] = {
    {2048, {633, 504}, {484, 370}},  {4096, {671, 560}, {591, 474}},
    {8192, {691, 594}, {644, 541}},  {16384, {702, 612}, {673, 579}},
    {32768, {693, 572}, {688, 581}},
};

static void cudnn_rates_are_reproduced(void)
{
    struct fixture f;
    double square[2] = {0, 0};
    if (fixture_load(&f, "h200")) {
        for (size_t i = 0; i < ARRAY_LEN(cudnn); i++) {
            double s = (double)cudnn[i].tokens;
            for (int pass = 0; pass < 2; pass++) {
                enum work_kind kind = pass ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION;
                double flops = (pass ? 10 : 4) * s * s * 128 * 64;
                for (int causal = 0; causal < 2; causal++) {
                    struct work work = attention(kind, cudnn[i].tokens, cudnn[i].tokens, 64, 8, 128,
                                                 causal ? MASK_CAUSAL : MASK_FULL);
                    double rate = flops / (causal ? 2 : 1) /
                                  cost_work_s(&f.cost, ATTENTION_CUDNN, &work) / 1e12;
                    double want = causal ? cudnn[i].causal[pass] : cudnn[i].full[pass];
                    CHECK_CLOSE(pass ? "backward" : "forward", rate, want, pass ? 0.065 : 0.025);
                    square[pass] += (rate / want - 1) * (rate / want - 1) / 10;
                }
            }
        }
        for (int pass = 0; pass < 2; pass++)
            CHECK("within the residual its file states",
                  sqrt(square[pass]) <=
                      f.cost.attention[ATTENTION_CUDNN][pass].calibration.residual);
        double rate = 2 * 8192.0 * 8192 * 8192 / seconds(&f.cost, product(8192, 8192, 8192));
        CHECK("8192^3 runs at 769-798 TFLOP/s", rate >= 769e12 && rate <= 798e12);
        f.cost.clock = COST_CLOCK_BURST;
        rate = 2 * 8192.0 * 8192 * 8192 / seconds(&f.cost, product(8192, 8192, 8192));
        CHECK_CLOSE("and at 894 where power does not limit", rate, 894e12, 0.01);
    }
    fixture_release(&f);
}

/* FPDT's 2.7B model has 32 heads of 80: two forwards and a backward reach 141 TFLOP/s where dim
 * 128 reaches 203 (derived from its MFU): the ratio is what padding to 96 costs. */
static void head_dim_80_pays_for_96(void)
{
    struct fixture f;
    if (fixture_load(&f, "a100-80g")) {
        double rate[2];
        for (int i = 0; i < 2; i++) {
            int64_t dim = i ? 80 : 128;
            struct work a = attention(WORK_ATTENTION, 65536, 65536, 8, 8, dim, MASK_FULL);
            struct work b = attention(WORK_ATTENTION_BACKWARD, 65536, 65536, 8, 8, dim, MASK_FULL);
            rate[i] = (2 * work_flops(&a) + work_flops(&b)) /
                      (2 * seconds(&f.cost, a) + seconds(&f.cost, b));
        }
        CHECK_CLOSE("80 over 128", rate[1] / rate[0], 141.0 / 203, 0.02);
    }
    fixture_release(&f);
}

/* ---- ranges, faults ---- */

static void a_prediction_says_when_it_is_extrapolated(void)
{
    struct fixture f;
    struct text reason = {0};
    if (fixture_parse(&f, four_cores)) {
        struct work work = product(8, 8, 512);
        CHECK("inside", !cost_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason) && !reason.size);
        work = product(8, 8, 64);
        CHECK("under", cost_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason));
        CHECK_TEXT("why", reason.data, "matmul k = 64 is under the calibrated 512..32768");
        reason.size = 0;
        work = attention(WORK_ATTENTION, 8, 200, 1, 1, 64, MASK_FULL);
        CHECK("over", cost_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason));
        CHECK_TEXT("why", reason.data, "attention kv = 200 is over the calibrated 50..100");
        reason.size = 0;
        work = attention(WORK_ATTENTION, 8, 1048576, 1, 1, 64, MASK_FULL);
        CHECK("far over", cost_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason));
        CHECK_TEXT("all digits", reason.data,
                   "attention kv = 1048576 is over the calibrated 50..100");
        reason.size = 0;
        work = flat(WORK_ADD, 8, 0, 0, 0);
        CHECK("estimated", cost_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason));
        CHECK_TEXT("why", reason.data, "add on toy is an estimate: nobody measured");
        work = flat(WORK_ALL_GATHER, 0, 8, 0, 0);
        CHECK("nothing to predict", !cost_extrapolated(&f.cost, ATTENTION_FA2, &work, NULL));
    }
    text_release(&reason);
    fixture_release(&f);
}

static void attention_must_be_known_to_the_device(void)
{
    struct fixture f;
    if (fixture_load(&f, "a100-80g")) {
        struct loc at = {.name = "x"};
        CHECK_INT("80", cost_check_attention(&f.cost, ATTENTION_FA2, 80, at, &f.diag), STATUS_OK);
        CHECK_INT("fa3", cost_check_attention(&f.cost, ATTENTION_FA3, 128, at, &f.diag),
                  STATUS_BAD_INPUT);
        CHECK_INT("256", cost_check_attention(&f.cost, ATTENTION_FA2, 256, at, &f.diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT("messages", f.diag.text,
                   "x: error: device a100-80g has no cost of attention 'fa3'; it has fa2, cudnn\n"
                   "x: error: device a100-80g has no cost of attention 'fa2' with head dim 256; "
                   "the largest is 128\n");
    }
    fixture_release(&f);
}

static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"no schema", "{\"name\": \"toy\"}", "longhaul_device_cost"},
    {"another schema", "{\"longhaul_device_cost\": 2}", "longhaul_device_cost"},
    {"unknown family", HEAD "\"matmull\": {}}", "matmul"},
    {"unknown number", HEAD "\"matmul\": {\"tiles\": 1}}", "tile"},
    {"a bare number", HEAD "\"matmul\": {\"tile\": 1}}", "every number says where"},
    {"no source", HEAD "\"matmul\": {\"tile\": {\"value\": 1}}}", "source"},
    {"no unit", HEAD "\"matmul\": {\"ramp_s\": " N("1") "}}", "a bare number has no unit"},
    {"the wrong unit", HEAD "\"matmul\": {\"ramp_s\": " N("\"1 GB\"") "}}", "1 GB"},
    {"out of range", HEAD "\"matmul\": {\"ramp_s\": " N("\"1 s\"") "}}", "outside 0..0.001"},
    {"unknown attention", HEAD "\"attention\": {\"fa4\": {}}}", "fa4"},
    {"not a head dim", HEAD "\"attention\": {\"fa2\": {\"forward\": {\"rates\": {\"x\": 1}}}}}",
     "'x' is no head dim"},
    {"unknown base", HEAD "\"base\": \"a100\"}", "a100"},
    {"incomplete", HEAD "\"note\": \"x\"}", "has no device.sm_count"},
    {"two calibrations", HEAD "\"cpu\": {\"calibrated\": {}, \"estimated\": {}}}",
     "give one of them"},
    {"a range of one",
     HEAD
     "\"cpu\": {\"calibrated\": {\"residual\": 0, \"source\": \"x\", \"sizes\": {\"k\": [1]}}}}",
     "expected [lowest, highest]"},
    {"no backward",
     HEAD "\"base\": \"cpu-generic\", \"attention\": {\"fa2\": {\"merge_bytes\": " N(
         "26") ", \"forward\": " PASS "}}}",
     "attention.fa2 has no backward"},
    {"truncated", HEAD, "toy.json"},
    {"not an object", "[]", "object"},
};

static void a_wrong_file_gets_one_message(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct fixture f = {0};
        enum status status = cost_parse(&f.cost, &f.arena, "toy.json", wrong[i].text,
                                        strlen(wrong[i].text), &f.diag);
        CHECK_INT(wrong[i].label, status, STATUS_BAD_INPUT);
        CHECK_INT(wrong[i].label, (int64_t)f.diag.errors, 1);
        const char *text = f.diag.text ? f.diag.text : "";
        if (!CHECK(wrong[i].label, strstr(text, wrong[i].message) != NULL))
            CHECK_TEXT(wrong[i].label, text, wrong[i].message);
        fixture_release(&f);
    }
    struct fixture f = {0};
    CHECK_INT("no such device", cost_load(&f.cost, &f.arena, "a100-80", &f.diag), STATUS_BAD_INPUT);
    CHECK("did you mean", f.diag.text && strstr(f.diag.text, "a100-80g"));
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"2 Gflop at 1 Gflop/s take 2 s", two_gflop_take_two_seconds},
    {"products go in waves of tiles", products_go_in_waves_of_tiles},
    {"a thin product waits for memory", a_thin_product_waits_for_memory},
    {"full tiles of attention go in waves", full_tiles_of_attention_go_in_waves},
    {"causal tiles lose half of the longest block", causal_tiles_lose_half_of_the_longest_block},
    {"memory-bound work takes its bytes", memory_bound_work_takes_its_bytes},
    {"the host takes its time", the_host_takes_its_time},
    {"every kind has its functions", every_kind_has_its_functions},
    {"time grows with every size", time_grows_with_every_size},
    {"nothing beats the peak", no_product_or_attention_beats_the_peak},
    {"every number has a source", every_number_has_a_source},
    {"LoongTrain's operators are reproduced", loongtrain_operators_are_reproduced},
    {"other rings follow", other_rings_follow},
    {"cuDNN's rates are reproduced", cudnn_rates_are_reproduced},
    {"head dim 80 pays for 96", head_dim_80_pays_for_96},
    {"a prediction says when it is extrapolated", a_prediction_says_when_it_is_extrapolated},
    {"attention must be known to the device", attention_must_be_known_to_the_device},
    {"a wrong file gets one message", a_wrong_file_gets_one_message},
};

CHECK_MAIN("cost", cases)
