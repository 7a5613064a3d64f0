/* tests/models/test_cost.c: costs of cases that can be computed by hand, and general properties of costs.
 * test_cost_published.c compares with published points. */
#include "models/states.h"
#include "tests/models/cost_fixture.h"

#include <math.h>
#include <string.h>

/* ---- hand-worked: multiprocessors of 1 Gflop/s, 1 GB/s of memory, round shares of it ---- */

static const char one_core[] = TOY_COST_JSON_BEGIN TOY_DEVICE_JSON("1", "\"0 s\"")
    TOY_MATMUL_JSON("\"1 GFLOP/s\"", "1", "\"0 s\"") TOY_REMAINING_JSON("\"0 B\"");
static const char four_cores[] = TOY_COST_JSON_BEGIN TOY_DEVICE_JSON("4", "\"0 s\"")
    TOY_MATMUL_JSON("\"4 GFLOP/s\"", "100", "\"1 ms\"") TOY_REMAINING_JSON("\"0 B\"");
static const char slow_start[] = TOY_COST_JSON_BEGIN TOY_DEVICE_JSON("4", "\"1 ms\"")
    TOY_MATMUL_JSON("\"4 GFLOP/s\"", "100", "\"0 s\"") TOY_REMAINING_JSON("\"1 MB\"");

static void two_gflop_take_two_seconds(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, one_core)) {
        struct work cube = product(1000, 1000, 1000);
        CHECK_CLOSE("2 Gflop at 1 Gflop/s", seconds(&f.cost, cube), 2, 1e-12);
        cube.in = DTYPE_F32;
        CHECK_CLOSE("f32 has its own rate", seconds(&f.cost, cube), 1, 1e-12);
        cube.in = DTYPE_BF16;
        /* at the highest clock it would draw 2000 W, four times the limit: half the flops a second are left */
        f.cost.device_tensor_power = 2000;
        CHECK_CLOSE("what the power limit leaves", seconds(&f.cost, cube), 4, 1e-12);
        CHECK_CLOSE("a short run does not meet it",
                    cost_work_burst_s(&f.cost, ATTENTION_FA2, &cube), 2, 1e-12);
        f.cost.device_power = 0;
        CHECK_CLOSE("no power limit", seconds(&f.cost, cube), 2, 1e-12);
        CHECK_CLOSE("ideal: 2 Gflop at a peak of 8", cost_ideal_s(8e9, &cube), 0.25, 1e-12);
    }
    fixture_release(&f);
}

static void products_go_in_waves_of_tiles(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, four_cores)) {
        /* 5 tiles of 100 x 100 on 4 multiprocessors: 2 waves of 2 * 100 * 100 * 1 flop and 1 ms */
        CHECK_CLOSE("2 waves", seconds(&f.cost, product(500, 100, 1)), 2 * (20e-6 + 1e-3), 1e-12);
        /* k in 4 parts: 20 tiles, each 250 deep, run in 5 waves of 5 ms and 1 ms; the 4 partial sums of 50000 f32,
         * written and read, are 1.6 MB. In one part it would take 42 ms, in two 33.8 ms, in eight 38.2 ms. */
        CHECK_CLOSE("4 parts of k", seconds(&f.cost, product(500, 100, 1000)), 5 * 6e-3 + 1.6e-3,
                    1e-12);
    }
    fixture_release(&f);
}

static void thin_matmul_is_memory_bound(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, slow_start)) {
        /* 2 (100 * 1 + 1 * 10^5 + 100 * 10^5) bytes and 1 MB of ramp at 1 GB/s; 1 ms to start */
        CHECK_CLOSE("bytes", seconds(&f.cost, product(100, 100000, 1)), 21.2002e-3 + 1e-3, 1e-12);
    }
    fixture_release(&f);
}

static void full_tiles_of_attention_go_in_waves(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, four_cores)) {
        /* 5 blocks of 10 queries on 4: 2 waves; a block is 4 * 10 * 100 keys * 100 flop = 0.4 ms */
        CHECK_CLOSE("full",
                    seconds(&f.cost, attention(WORK_ATTENTION, 50, 100, 1, 1, 100, MASK_FULL)),
                    2 * (0.4e-3 + 1e-3), 1e-12);
        /* dim 150 runs as 200 */
        CHECK_CLOSE("padded",
                    seconds(&f.cost, attention(WORK_ATTENTION, 50, 100, 1, 1, 150, MASK_FULL)),
                    2 * (0.8e-3 + 1e-3), 1e-12);
        /* 5 blocks of 10 keys on 4 multiprocessors: 2 waves. A block takes 10 flops for each of 10 keys, 100 queries
         * and 100 columns: 1 ms. The small kernels move 100 * 100 * 14 bytes: they read O and dO, clear and read the
         * f32 dQ, and write dQ */
        CHECK_CLOSE(
            "backward",
            seconds(&f.cost, attention(WORK_ATTENTION_BACKWARD, 100, 50, 1, 1, 100, MASK_FULL)),
            2 * (1e-3 + 1e-3) + 0.14e-3, 1e-12);
        /* 10 blocks in 3 waves; the small kernels move dQ of two heads, and sum dK and dV of 2
         * heads into 1: for each of the two they read 2 x 50 rows and write 50, of 100 elements of
         * 2 bytes */
        CHECK_CLOSE(
            "backward, grouped heads",
            seconds(&f.cost, attention(WORK_ATTENTION_BACKWARD, 100, 50, 2, 1, 100, MASK_FULL)),
            3 * (1e-3 + 1e-3) + 0.28e-3 + 0.06e-3, 1e-12);
    }
    fixture_release(&f);
}

static void unequal_head_dims_use_mean_dim_rate(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, four_cores)) {
        for (int impl = 0; impl < ATTENTION_IMPL_COUNT; impl++)
            f.cost.attention[impl][ATTENTION_FORWARD_PASS].flop_per_s[1] = 2e9;
        struct work work = attention(WORK_ATTENTION, 50, 100, 1, 1, 200, MASK_FULL);
        work.attention.vdim = 100;
        /* The rate is that of the mean dim, 150: 3 Gflop/s, between 4 at dim 100 and 2 at dim 200.
         * A block of 2 (200 + 100) * 10 * 100 flops on one of 4 multiprocessors takes 0.8 ms. */
        CHECK_CLOSE("dim 200, vdim 100", seconds(&f.cost, work), 2 * (0.8e-3 + 1e-3), 1e-12);
        work.attention.dim = 60; /* below all listed head dims, and the row is that of vdim */
        work.attention.vdim = 120;
        CHECK_CLOSE("dim 60, vdim 120", seconds(&f.cost, work), 2 * (0.36e-3 + 1e-3), 1e-12);
    }
    fixture_release(&f);
}

static void causal_tiles_lose_half_of_the_longest_block(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, four_cores)) {
        /* 40 blocks. Those of a head loop over 10, 20 .. 100 columns, of which 10 are cut by the mask and take half
         * as long again: 60 columns on average, of 4 us each, and 1 ms to start and end. They run on 4
         * multiprocessors. The last term adds half of the longest block (100 columns and 1 ms) times 1 - 10 / 100 */
        double work = 40 * (60 * 4e-6 + 1e-3), longest = 100 * 4e-6 + 1e-3;
        CHECK_CLOSE("causal",
                    seconds(&f.cost, attention(WORK_ATTENTION, 100, 100, 4, 4, 100, MASK_CAUSAL)),
                    work / 4 + (0.9 * longest) / 2, 1e-12);
        struct work none = attention(WORK_ATTENTION, 10, 10, 1, 1, 100, MASK_CAUSAL);
        none.attention.offset =
            -10; /* no key is visible: no block has work, and memory limits the time */
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

/* An op that runs as a chain of kernels takes a start and an issue for each kernel, and the time to stream the bytes
 * that the chain moves. An op whose kernels the schedule itself counts (touches) ignores the chain. */
static void chains_take_their_own_bytes_and_kernels(void)
{
    struct cost_fixture f;
    const struct work norm = flat(WORK_RMSNORM, 100, 100, 0, 0),
                      rope = flat(WORK_ROPE, 10, 4, 50, 0), own = flat(WORK_SWIGLU, 100, 100, 4, 0);
    if (cost_fixture_parse_device(&f, four_cores)) {
        double fused_s = seconds(&f.cost, norm), own_s = seconds(&f.cost, own);
        f.cost.chain[WORK_RMSNORM] =
            (struct cost_elementwise_chain){.bytes_per_element = 36, .kernel_count = 8};
        f.cost.chain[WORK_ROPE] =
            (struct cost_elementwise_chain){.bytes_per_element = 20, .kernel_count = 3};
        f.cost.chain[WORK_SWIGLU] =
            (struct cost_elementwise_chain){.bytes_per_element = 10, .kernel_count = 2};
        CHECK("fused is faster", fused_s < seconds(&f.cost, norm));
        CHECK_CLOSE("norm: 36 bytes of 10^4", seconds(&f.cost, norm), 360e-6, 1e-12);
        CHECK_CLOSE("rope: 20 bytes of 2000", seconds(&f.cost, rope), 40e-6, 1e-12);
        f.cost.chain[WORK_ADAMW] =
            (struct cost_elementwise_chain){.bytes_per_element = 104, .kernel_count = 12};
        struct work step = {.kind = WORK_ADAMW, .adamw = {1000000, 0}};
        CHECK_CLOSE("an optimizer of twelve operators",
                    cost_memory_traffic_bytes(&f.cost, 0, &step), 104e6, 1e-12);
        CHECK_CLOSE("a chain of the schedule's own stays", seconds(&f.cost, own), own_s, 1e-12);
        CHECK_CLOSE("eight operators are issued", cost_host_issue_s(&f.cost, &norm), 80e-6, 1e-12);
    }
    fixture_release(&f);
    if (cost_fixture_parse_device(&f, slow_start)) {
        f.cost.chain[WORK_RMSNORM] =
            (struct cost_elementwise_chain){.bytes_per_element = 36, .kernel_count = 8};
        double start_s = f.cost.device_kernel_start_s;
        CHECK_CLOSE("eight starts and ramps", seconds(&f.cost, norm), 8 * (start_s + 1e-3) + 360e-6,
                    1e-12);
    }
    fixture_release(&f);
}

/* 10^4 elements: 24 bytes of each stream at 1 GB/s, and two passes handle 10^8 elements a second. */
static void slow_kernels_of_a_chain_go_by_their_elements(void)
{
    struct cost_fixture f;
    const struct work norm = flat(WORK_RMSNORM, 100, 100, 0, 0),
                      loss = flat(WORK_CROSS_ENTROPY, 100, 100, 100, 0),
                      sum = flat(WORK_ADD, 10000, 0, 0, 0);
    if (cost_fixture_parse_device(&f, four_cores)) {
        const struct cost_elementwise_chain chain = {
            .bytes_per_element = 36, .kernel_count = 8, .slow_kernel_passes = 2, .slow_bytes = 12};
        f.cost.chain[WORK_RMSNORM] = f.cost.chain[WORK_CROSS_ENTROPY] = f.cost.chain[WORK_ADD] =
            chain;
        CHECK_CLOSE("a rate that is not known", seconds(&f.cost, norm), 360e-6, 1e-12);
        f.cost.memory_element_rate = 1e8;
        CHECK_CLOSE("a norm", seconds(&f.cost, norm), 240e-6 + 200e-6, 1e-12);
        CHECK_CLOSE("a loss", seconds(&f.cost, loss), 240e-6 + 200e-6, 1e-12);
        CHECK_CLOSE("a sum", seconds(&f.cost, sum), 240e-6 + 200e-6, 1e-12);
        CHECK_CLOSE("all bytes are moved", cost_memory_traffic_bytes(&f.cost, 0, &norm), 360e3,
                    1e-12);
    }
    fixture_release(&f);
}

/* A limit of 500 W, products that would draw 2000 W, and kernels that memory limits, which draw 250
 * W. With 1.8 seconds of these for each second of products, the share of their rate that products
 * keep solves 2000 share^2 - (500 - 250) x 1.8 share = 500: it is 0.625. */
static void power_limit_applies_to_mean_power(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, four_cores)) {
        f.cost.memory_s_per_tensor_s = 1.8;
        CHECK_CLOSE("not measured", cost_power_limited_rate_share(&f.cost, 2000), 0.5, 1e-12);
        f.cost.device_memory_power = 250;
        CHECK_CLOSE("1.8 seconds for each", cost_power_limited_rate_share(&f.cost, 2000), 0.625,
                    1e-12);
        f.cost.memory_s_per_tensor_s = 7;
        CHECK_CLOSE("enough of them", cost_power_limited_rate_share(&f.cost, 2000), 1, 0);
        f.cost.memory_s_per_tensor_s = 0;
        CHECK_CLOSE("none of them", cost_power_limited_rate_share(&f.cost, 2000), 0.5, 1e-12);
        CHECK_CLOSE("no power at all", cost_power_limited_rate_share(&f.cost, 0), 1, 0);
        CHECK_CLOSE("below the limit", cost_power_limited_rate_share(&f.cost, 400), 1, 0);
        f.cost.memory_s_per_tensor_s = 1.8;
        f.cost.device_memory_power = 600;
        CHECK_CLOSE("above the limit itself", cost_power_limited_rate_share(&f.cost, 2000), 0.5,
                    1e-12);
    }
    fixture_release(&f);
}

static void eager_ops_add_their_start_time(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, one_core)) {
        struct work add = flat(WORK_ADD, 1000000, 0, 0, 0); /* 6 MB at 1 GB/s */
        CHECK_CLOSE("its bytes", seconds(&f.cost, add), 6e-3, 1e-9);
        f.cost.memory_start_s = 1e-3;
        CHECK_CLOSE("and 1 ms", seconds(&f.cost, add), 7e-3, 1e-9);
        CHECK_CLOSE("which a product does not have", seconds(&f.cost, product(1000, 1000, 1000)), 2,
                    1e-12);
    }
    fixture_release(&f);
}

static void memory_bound_work_takes_its_bytes(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, four_cores)) {
        for (size_t i = 0; i < ARRAY_LEN(memory_cases); i++) {
            const int64_t *p = memory_cases[i].p;
            CHECK_CLOSE(memory_cases[i].label,
                        seconds(&f.cost, flat(memory_cases[i].kind, p[0], p[1], p[2], p[3])),
                        memory_cases[i].seconds, 1e-12);
        }
    }
    fixture_release(&f);
    if (cost_fixture_parse_device(&f, slow_start))
        CHECK_CLOSE("half the rate at the ramp's bytes",
                    seconds(&f.cost, flat(WORK_FILL, 500000, 0, 0, 0)), 1e-3 + 2e-3, 1e-12);
    fixture_release(&f);
}

static void host_issue_times_by_hand(void)
{
    struct cost_fixture f;
    if (cost_fixture_parse_device(&f, one_core)) {
        struct work work = product(8, 8, 8);
        CHECK_CLOSE("an op and a kernel", cost_host_issue_s(&f.cost, &work), 10e-6, 1e-12);
        f.cost.host_product_s = 20e-6;
        CHECK_CLOSE("and the call of cuBLAS", cost_host_issue_s(&f.cost, &work), 30e-6, 1e-12);
        work = flat(WORK_ALL_GATHER, 0, 8, 0, 0);
        CHECK_CLOSE("a collective", cost_host_issue_s(&f.cost, &work), 30e-6, 1e-12);
        CHECK_CLOSE("no device time of its own", seconds(&f.cost, work), 0, 0);
        work = flat(WORK_D2H, 8, 0, 0, 0);
        CHECK_CLOSE("a copy", cost_host_issue_s(&f.cost, &work), 8e-6, 1e-12);
        work = flat(WORK_HOST_SYNC, 0, 0, 0, 0);
        CHECK_CLOSE("a synchronisation", cost_host_issue_s(&f.cost, &work), 15e-6, 1e-12);
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
    struct cost_fixture f, ideal;
    if (cost_fixture_load_device(&f, "a100-80g") && cost_fixture_load_device(&ideal, "ideal")) {
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
            const char *name = work_kind_info((enum work_kind)kind)->name;
            struct work work = is_attention(kind)
                                   ? attention((enum work_kind)kind, 64, 64, 4, 2, 80, MASK_CAUSAL)
                                   : flat((enum work_kind)kind, 64, 64, 64, 0);
            if (kind == WORK_OPAQUE)
                work = (struct work){.kind = WORK_OPAQUE,
                                     .opaque = {.as = OPAQUE_STREAM, .bytes = 64}};
            if (kind == WORK_ADAMW)
                work.adamw.states = STATES_FP32;
            double s = seconds(&f.cost, work);
            enum stream_class stream = work_kind_info((enum work_kind)kind)->stream;
            CHECK(name, isfinite(s) && (s > 0) == (stream == STREAM_COMPUTE));
            CHECK(name, cost_host_issue_s(&f.cost, &work) > 0);
            CHECK(name,
                  (cost_calibration_of_work(&f.cost, ATTENTION_FA2, &work) != NULL) == (s > 0));
            CHECK(name, cost_host_issue_s(&ideal.cost, &work) == 0);
            CHECK_CLOSE(name, seconds(&ideal.cost, work), work_flops(&work) / 312e12, 1e-12);
        }
        fixture_release(&ideal);
    }
    fixture_release(&f);
}

/* Bytes that a chain gathers or scatters by rows move at the share of the bandwidth that gathers or
 * scatters reach. An unpermute without weights has a chain of its own, or is one kernel. */
static void chain_bytes_move_at_gather_rates(void)
{
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "a100-80g")) {
        const struct cost_elementwise_chain plain = {
            .bytes_per_element = 6, .kernel_count = 2, .scattered_bytes = 6};
        struct work back = {.kind = WORK_UNPERMUTE,
                            .permute = {.rows = 1000, .cols = 512, .copies = 8, .weights = 1}};
        const double elements = 1000 * 512 * 8.0, ramp = f.cost.memory_ramp_bytes,
                     rate = f.cost.device_memory_bytes_per_s, start = f.cost.device_kernel_start_s,
                     stream = rate * f.cost.memory_stream_fraction;
        f.cost.chain[WORK_UNPERMUTE] = (struct cost_elementwise_chain){
            .bytes_per_element = 10, .kernel_count = 3, .gathered_bytes = 4};
        CHECK_CLOSE("gathered", seconds(&f.cost, back),
                    3 * start + (4 * elements + ramp) / (rate * f.cost.memory_gather_fraction) +
                        (6 * elements + 3 * ramp) / stream,
                    1e-12);
        back.permute.weights = 0;
        CHECK("one kernel", cost_host_issue_s(&f.cost, &back) < 2 * f.cost.host_op_s);
        f.cost.chain[WORK_UNPERMUTE].chain_without_copy_weights = &plain;
        CHECK_CLOSE("scattered", seconds(&f.cost, back),
                    2 * start + (6 * elements + ramp) / (rate * f.cost.memory_scatter_fraction),
                    1e-12);
    }
    fixture_release(&f);
}

/* Recorded operators cost as much as our own work of the same sizes. Those of which only bytes are
 * known cost as much as a kernel that streams these bytes, or longer if they handle elements one by
 * one. */
static void recorded_operators_cost_as_our_own(void)
{
    struct work causal = attention(WORK_ATTENTION, 512, 768, 8, 4, 128, MASK_CAUSAL);
    struct work full = attention(WORK_ATTENTION_BACKWARD, 512, 768, 8, 4, 128, MASK_FULL);
    struct work grouped = {.kind = WORK_MATMUL, .matmul = {4096, 768, 2048, MATMUL_TN}};
    struct work narrow = product(1024, 256, 640);
    causal.in = causal.out = full.in = full.out = grouped.in = grouped.out = DTYPE_BF16;
    grouped.matmul.groups = 8;
    narrow.in = DTYPE_F32;
    narrow.out = DTYPE_F32;
    const struct {
        const char *label;
        struct work own, opaque;
    } pairs[] = {
        {"a product",
         product(1024, 256, 640),
         {.kind = WORK_OPAQUE, .opaque = {.as = OPAQUE_MATMUL, .m = 1024, .n = 256, .k = 640}}},
        {"a product in fp32",
         narrow,
         {.kind = WORK_OPAQUE,
          .opaque = {.as = OPAQUE_MATMUL,
                     .m = 1024,
                     .n = 256,
                     .k = 640,
                     .dtype = DTYPE_F32,
                     .out_dtype = DTYPE_F32}}},
        {"gradients of experts",
         grouped,
         {.kind = WORK_OPAQUE,
          .opaque = {.as = OPAQUE_MATMUL_TN, .m = 4096, .n = 768, .k = 2048, .groups = 8}}},
        {"causal attention",
         causal,
         {.kind = WORK_OPAQUE,
          .opaque = {.as = OPAQUE_ATTENTION,
                     .m = 512,
                     .n = 768,
                     .k = 128,
                     .heads = 8,
                     .kv_heads = 4,
                     .causal = 1,
                     .kernels = ATTENTION_FA2}}},
        {"its backward, not causal",
         full,
         {.kind = WORK_OPAQUE,
          .opaque = {.as = OPAQUE_ATTENTION_BACKWARD,
                     .m = 512,
                     .n = 768,
                     .k = 128,
                     .heads = 8,
                     .kv_heads = 4,
                     .kernels = ATTENTION_FA2}}},
        {"a fill",
         {.kind = WORK_FILL, .out = DTYPE_U8, .elements = {1000}},
         {.kind = WORK_OPAQUE, .opaque = {.as = OPAQUE_STREAM, .bytes = 1000}}},
    };
    const struct work nothing = {.kind = WORK_OPAQUE};
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "a100-80g"))
        for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
            const struct work *own = &pairs[i].own, *opaque = &pairs[i].opaque;
            CHECK_CLOSE(pairs[i].label, seconds(&f.cost, *opaque), seconds(&f.cost, *own), 0);
            CHECK_CLOSE(pairs[i].label, cost_host_issue_s(&f.cost, opaque),
                        cost_host_issue_s(&f.cost, own), 0);
            CHECK_CLOSE(pairs[i].label, work_flops(opaque), work_flops(own), 0);
            CHECK_CLOSE(pairs[i].label, cost_memory_traffic_bytes(&f.cost, ATTENTION_FA2, opaque),
                        cost_memory_traffic_bytes(&f.cost, ATTENTION_FA2, own), 0);
            CHECK(pairs[i].label, cost_calibration_of_work(&f.cost, ATTENTION_FA2, opaque) ==
                                      cost_calibration_of_work(&f.cost, ATTENTION_FA2, own));
        }
    CHECK_CLOSE("nothing takes no time", seconds(&f.cost, nothing), 0, 0);
    const struct work slow = {.kind = WORK_OPAQUE,
                              .opaque = {.as = OPAQUE_STREAM, .bytes = 1000, .slow = 2000}};
    const struct work fast = {.kind = WORK_OPAQUE, .opaque = {.as = OPAQUE_STREAM, .bytes = 1000}};
    f.cost.memory_element_rate = 0;
    CHECK_CLOSE("no rate of elements is known", seconds(&f.cost, slow), seconds(&f.cost, fast), 0);
    f.cost.memory_element_rate = 1e6;
    CHECK_CLOSE("elements one by one", seconds(&f.cost, slow),
                2e-3 + f.cost.device_kernel_start_s + f.cost.memory_start_s, 1e-12);
    f.cost.memory_element_rate = 1e15;
    CHECK_CLOSE("memory is slower", seconds(&f.cost, slow), seconds(&f.cost, fast), 0);
    CHECK_CLOSE("nor does its issue", cost_host_issue_s(&f.cost, &nothing), 0, 0);
    fixture_release(&f);
}

/* Greater sizes never take less time, within the 1 % to which the average unevenness of blocks is known. */
static void time_grows_with_every_size(void)
{
    struct check_random random = check_random_make();
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "a100-80g")) {
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
    struct cost_fixture list = {0};
    CHECK("presets",
          cost_presets(&names, &count, &list.arena, &list.diag) == STATUS_OK && count == 13);
    for (size_t i = 0; i < count; i++) {
        struct cost_fixture f;
        if (!cost_fixture_load_device(&f, names[i])) {
            fixture_release(&f);
            continue;
        }
        CHECK_TEXT("a preset is called as its file", f.cost.name, names[i]);
        for (int k = 0; k < 200; k++) {
            int64_t q = check_random_i64(&random, 1, 70000),
                    kv = check_random_i64(&random, 1, 70000);
            for (int impl = 0; impl < ATTENTION_IMPL_COUNT; impl++) {
                if (!f.cost.attention[impl][0].is_family_present)
                    continue;
                for (int kind = WORK_ATTENTION; kind <= WORK_ATTENTION_BACKWARD; kind++) {
                    struct work work = attention((enum work_kind)kind, q, kv, 8, 2, 128,
                                                 k % 2 ? MASK_FULL : MASK_CAUSAL);
                    work.attention.scaling = impl == ATTENTION_CUDNN_FP8     ? SCALING_TENSOR
                                             : impl == ATTENTION_CUDNN_MXFP8 ? SCALING_MX
                                                                             : SCALING_NONE;
                    const double peak =
                        f.cost.device_peak_flop_per_s * work_peak_rate_over_bf16_peak(&work);
                    CHECK(names[i], cost_work_s(&f.cost, (enum attention_impl)impl, &work) >=
                                        cost_ideal_s(peak, &work));
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
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "h100-96g")) {
        for (size_t i = 0; i < f.cost.facts.count; i++) {
            const struct cost_fact *fact = &f.cost.facts.row[i];
            CHECK(fact->name,
                  fact->source[0] && fact->meaning[0] && fact->at.name && fact->at.line);
            for (size_t k = 0; k < i; k++)
                CHECK(fact->name, strcmp(fact->name, f.cost.facts.row[k].name) != 0);
        }
        struct text text = {0};
        cost_print_numbers_and_sources(&text, &f.cost);
        CHECK("its own", strstr(text.data, "device.memory_bytes_per_s = 2.40 TB/s"));
        CHECK("its base's base's", strstr(text.data, "device.sm_count = 132"));
        text_release(&text);
    }
    fixture_release(&f);
}

/* ---- ranges, faults ---- */

static void a_prediction_says_when_it_is_extrapolated(void)
{
    struct cost_fixture f;
    struct text reason = {0};
    if (cost_fixture_parse_device(&f, four_cores)) {
        struct work work = product(8, 8, 512);
        CHECK("inside",
              !cost_is_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason) && !reason.size);
        work = product(8, 8, 64);
        CHECK("under", cost_is_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason));
        CHECK_TEXT("why", reason.data, "matmul k = 64 is under the calibrated 512..32768");
        reason.size = 0;
        work = attention(WORK_ATTENTION, 8, 200, 1, 1, 64, MASK_FULL);
        CHECK("over", cost_is_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason));
        CHECK_TEXT("why", reason.data, "attention kv = 200 is over the calibrated 50..100");
        reason.size = 0;
        work = attention(WORK_ATTENTION, 8, 1048576, 1, 1, 64, MASK_FULL);
        CHECK("far over", cost_is_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason));
        CHECK_TEXT("all digits", reason.data,
                   "attention kv = 1048576 is over the calibrated 50..100");
        reason.size = 0;
        work = flat(WORK_ADD, 8, 0, 0, 0);
        CHECK("estimated", cost_is_extrapolated(&f.cost, ATTENTION_FA2, &work, &reason));
        CHECK_TEXT("why", reason.data, "add on toy is an estimate: nobody measured");
        work = flat(WORK_ALL_GATHER, 0, 8, 0, 0);
        CHECK("nothing to predict", !cost_is_extrapolated(&f.cost, ATTENTION_FA2, &work, NULL));
    }
    fixture_release(&f);
    if (cost_fixture_load_device(&f, "h100")) {
        struct work work = attention(WORK_ATTENTION, 8192, 8192, 16, 8, 256, MASK_CAUSAL);
        reason.size = 0;
        CHECK("wide heads", cost_is_extrapolated(&f.cost, ATTENTION_CUDNN, &work, &reason));
        CHECK_TEXT("why", reason.data, "attention dim = 256 is over the calibrated 64..128");
    }
    text_release(&reason);
    fixture_release(&f);
}

static void attention_must_be_known_to_the_device(void)
{
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "a100-80g")) {
        struct loc at = {.name = "x"};
        CHECK_INT("80", cost_check_attention(&f.cost, ATTENTION_FA2, 80, at, &f.diag), STATUS_OK);
        CHECK_INT("fa3", cost_check_attention(&f.cost, ATTENTION_FA3, 128, at, &f.diag),
                  STATUS_BAD_INPUT);
        CHECK_INT("256", cost_check_attention(&f.cost, ATTENTION_FA2, 256, at, &f.diag), STATUS_OK);
        CHECK_INT("257", cost_check_attention(&f.cost, ATTENTION_FA2, 257, at, &f.diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT("messages", f.diag.text,
                   "x: error: device a100-80g has no cost of attention 'fa3'; it has fa2, cudnn, "
                   "triton, fa1\n"
                   "x: error: device a100-80g has no cost of attention 'fa2' with head dim 257; "
                   "the largest is 256\n");
    }
    fixture_release(&f);
}

static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"no schema", "{\"name\": \"toy\"}", "longhaul_device_cost"},
    {"another schema", "{\"longhaul_device_cost\": 2}", "longhaul_device_cost"},
    {"unknown family", TOY_COST_JSON_BEGIN "\"matmull\": {}}", "matmul"},
    {"unknown number", TOY_COST_JSON_BEGIN "\"matmul\": {\"tiles\": 1}}", "tile"},
    {"a bare number", TOY_COST_JSON_BEGIN "\"matmul\": {\"tile\": 1}}", "every number says where"},
    {"no source", TOY_COST_JSON_BEGIN "\"matmul\": {\"tile\": {\"value\": 1}}}", "source"},
    {"no unit", TOY_COST_JSON_BEGIN "\"matmul\": {\"ramp_s\": " N("1") "}}",
     "a bare number has no unit"},
    {"the wrong unit", TOY_COST_JSON_BEGIN "\"matmul\": {\"ramp_s\": " N("\"1 GB\"") "}}", "1 GB"},
    {"out of range", TOY_COST_JSON_BEGIN "\"matmul\": {\"ramp_s\": " N("\"1 s\"") "}}",
     "outside 0..0.001"},
    {"an interval of one",
     TOY_COST_JSON_BEGIN
     "\"device\": {\"power\": {\"value\": \"5 W\", \"source\": \"t\", \"interval\": [\"4 W\"]}}}",
     "expected [lowest, highest]"},
    {"an interval without the value",
     TOY_COST_JSON_BEGIN "\"device\": {\"power\": {\"value\": \"5 W\", \"source\": \"t\","
                         " \"interval\": [\"6 W\", \"7 W\"]}}}",
     "does not hold the value"},
    {"an interval without a unit",
     TOY_COST_JSON_BEGIN
     "\"device\": {\"power\": {\"value\": \"5 W\", \"source\": \"t\", \"interval\": [4, 6]}}}",
     "a bare number has no unit"},
    {"no value", TOY_COST_JSON_BEGIN "\"matmul\": {\"tile\": {\"source\": \"t\"}}}",
     "has no \"value\""},
    {"unknown attention", TOY_COST_JSON_BEGIN "\"attention\": {\"fa4\": {}}}", "fa4"},
    {"not a head dim",
     TOY_COST_JSON_BEGIN "\"attention\": {\"fa2\": {\"forward\": {\"rates\": {\"x\": 1}}}}}",
     "'x' is no head dim"},
    {"unknown base", TOY_COST_JSON_BEGIN "\"base\": \"a100\"}", "a100"},
    {"incomplete", TOY_COST_JSON_BEGIN "\"note\": \"x\"}", "has no device.sm_count"},
    {"two calibrations", TOY_COST_JSON_BEGIN "\"cpu\": {\"calibrated\": {}, \"estimated\": {}}}",
     "give one of them"},
    {"a range of one",
     TOY_COST_JSON_BEGIN
     "\"cpu\": {\"calibrated\": {\"residual\": 0, \"source\": \"x\", \"sizes\": {\"k\": [1]}}}}",
     "expected [lowest, highest]"},
    {"no backward",
     TOY_COST_JSON_BEGIN "\"base\": \"cpu-generic\", \"attention\": {\"fa2\": {\"merge_bytes\": " N(
         "26") ", \"forward\": " TOY_ATTENTION_PASS_JSON "}}}",
     "attention.fa2 has no backward"},
    {"truncated", TOY_COST_JSON_BEGIN, "toy.json"},
    {"not an object", "[]", "object"},
};

/* The interval of values that machines of one device have is printed with the number. */
static void a_number_may_have_an_interval(void)
{
    static const char file[] =
        "{\"longhaul_device_cost\": 1, \"name\": \"h\", \"base\": \"h100\","
        " \"device\": {\"power\": {\"value\": \"700 W\", \"source\": \"two boards\","
        " \"interval\": [\"650 W\", \"700 W\"]}}}";
    struct cost_fixture f;
    struct text out = {0};
    if (cost_fixture_parse_device(&f, file)) {
        cost_print_numbers_and_sources(&out, &f.cost);
        CHECK("printed",
              strstr(out.data, "device.power = 700 W, machines from 650 W to 700 W  (") != NULL);
        CHECK_CLOSE("the value counts", f.cost.device_power, 700, 0);
    }
    text_release(&out);
    fixture_release(&f);
}

static void a_wrong_file_gets_one_message(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct cost_fixture f = {0};
        enum status status = cost_parse(&f.cost, &f.arena, "toy.json", wrong[i].text,
                                        strlen(wrong[i].text), &f.diag);
        CHECK_INT(wrong[i].label, status, STATUS_BAD_INPUT);
        CHECK_INT(wrong[i].label, (int64_t)f.diag.error_count, 1);
        const char *text = f.diag.text ? f.diag.text : "";
        if (!CHECK(wrong[i].label, strstr(text, wrong[i].message) != NULL))
            CHECK_TEXT(wrong[i].label, text, wrong[i].message);
        fixture_release(&f);
    }
    struct cost_fixture f = {0};
    CHECK_INT("no such device", cost_load(&f.cost, &f.arena, "a100-80", &f.diag), STATUS_BAD_INPUT);
    CHECK("did you mean", f.diag.text && strstr(f.diag.text, "a100-80g"));
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"2 Gflop at 1 Gflop/s take 2 s", two_gflop_take_two_seconds},
    {"products go in waves of tiles", products_go_in_waves_of_tiles},
    {"a thin product waits for memory", thin_matmul_is_memory_bound},
    {"full tiles of attention go in waves", full_tiles_of_attention_go_in_waves},
    {"unequal heads have the rate of their mean", unequal_head_dims_use_mean_dim_rate},
    {"causal tiles lose half of the longest block", causal_tiles_lose_half_of_the_longest_block},
    {"an eager op takes its start too", eager_ops_add_their_start_time},
    {"memory-bound work takes its bytes", memory_bound_work_takes_its_bytes},
    {"chains take their own bytes and kernels", chains_take_their_own_bytes_and_kernels},
    {"chains gather and scatter", chain_bytes_move_at_gather_rates},
    {"slow kernels of a chain go by their elements", slow_kernels_of_a_chain_go_by_their_elements},
    {"the power limit holds for the mean", power_limit_applies_to_mean_power},
    {"the host takes its time", host_issue_times_by_hand},
    {"every kind has its functions", every_kind_has_its_functions},
    {"opaque work costs what it is recorded as", recorded_operators_cost_as_our_own},
    {"time grows with every size", time_grows_with_every_size},
    {"nothing beats the peak", no_product_or_attention_beats_the_peak},
    {"every number has a source", every_number_has_a_source},
    {"a prediction says when it is extrapolated", a_prediction_says_when_it_is_extrapolated},
    {"attention must be known to the device", attention_must_be_known_to_the_device},
    {"a number may have an interval", a_number_may_have_an_interval},
    {"a wrong file gets one message", a_wrong_file_gets_one_message},
};

CHECK_MAIN("cost", cases)
