/* tests/models/test_cost_casts.c: products in 8 bits with their casts, compared with kernels and
 * whole linears that torchao measured on a B200 (pytorch/ao at 36027d8,
 * torchao/prototype/moe_training/README.md: 1000 W), and with products of a layer that
 * TransformerEngine measured on a B300. */
#include "tests/models/cost_fixture.h"

static struct work quantise_work_of(int64_t rows, int64_t cols, bool turned)
{
    return (struct work){.kind = WORK_QUANTISE,
                         .in = DTYPE_BF16,
                         .out = DTYPE_E4M3,
                         .quantise = {rows, cols, SCALING_MX, turned, 0, 0, 0}};
}

static struct work matmul_work_of(int64_t m, int64_t n, int64_t k, enum matmul_form form,
                                  enum scaling scaling)
{
    return (struct work){.kind = WORK_MATMUL,
                         .in = scaling == SCALING_NONE ? DTYPE_BF16 : DTYPE_E4M3,
                         .out = DTYPE_BF16,
                         .matmul = {m, n, k, form, 0, 0, 0, scaling}};
}

static const struct {
    const char *label;
    struct work work;
    double us, off; /* measured; the relative error that is allowed */
} kernels[] = {
    {"activations", {.kind = WORK_QUANTISE, .quantise = {131072, 7168, SCALING_MX}}, 525.3, 0.05},
    {"gradients", {.kind = WORK_QUANTISE, .quantise = {131072, 2048, SCALING_MX}}, 144.4, 0.05},
    {"weights", {.kind = WORK_QUANTISE, .quantise = {16384, 7168, SCALING_MX}}, 65.4, 0.1},
    {"activations, turned",
     {.kind = WORK_QUANTISE, .quantise = {131072, 7168, SCALING_MX, 1}},
     472.2,
     0.1},
    {"gradients, turned",
     {.kind = WORK_QUANTISE, .quantise = {131072, 2048, SCALING_MX, 1}},
     141.5,
     0.06},
};

static void casts_take_what_was_measured(void)
{
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "b200"))
        for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
            struct work work = kernels[i].work;
            work.out = DTYPE_E4M3;
            CHECK_CLOSE(kernels[i].label, seconds(&f.cost, work) * 1e6, kernels[i].us,
                        kernels[i].off);
        }
    fixture_release(&f);
}

/* torchao's kernels of the forward and of the gradient of the input reach 65 % of the rate that the
 * power limit leaves of the peak, its kernel of the weight's gradient 52 %. The model has one rate
 * for all three, so the tolerances differ. */
static void products_take_what_was_measured(void)
{
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "b200")) {
        CHECK_CLOSE("forward",
                    seconds(&f.cost, matmul_work_of(131072, 2048, 7168, MATMUL_NT, SCALING_MX)),
                    1671.2e-6, 0.1);
        CHECK_CLOSE("input",
                    seconds(&f.cost, matmul_work_of(131072, 7168, 2048, MATMUL_NT, SCALING_MX)),
                    1683.4e-6, 0.15);
        CHECK_CLOSE("weight",
                    seconds(&f.cost, matmul_work_of(2048, 7168, 131072, MATMUL_NT, SCALING_MX)),
                    2103.3e-6, 0.25);
    }
    fixture_release(&f);
}

/* Returns how many times faster forward and backward of a linear are in MXFP8 than in bf16. In
 * MXFP8 the input, the weight and the gradient of the output are each cast twice, which is
 * included. */
static double mxfp8_speedup_over_bf16(const struct device_cost *cost, int64_t m, int64_t n,
                                      int64_t k)
{
    const enum scaling both[] = {SCALING_NONE, SCALING_MX};
    double sum[2];
    for (int i = 0; i < 2; i++)
        sum[i] = seconds(cost, matmul_work_of(m, n, k, MATMUL_NT, both[i])) +
                 seconds(cost, matmul_work_of(m, k, n, i ? MATMUL_NT : MATMUL_NN, both[i])) +
                 seconds(cost, matmul_work_of(n, k, m, i ? MATMUL_NT : MATMUL_TN, both[i]));
    for (int turned = 0; turned < 2; turned++)
        sum[1] += seconds(cost, quantise_work_of(m, k, turned)) +
                  seconds(cost, quantise_work_of(n, k, turned)) +
                  seconds(cost, quantise_work_of(m, n, turned));
    return sum[0] / sum[1];
}

static void fp8_gains_lost_to_casts_as_measured(void)
{
    static const struct {
        const char *label;
        int64_t m, n, k;
        double low, high; /* measured, the least and the most over groups */
    } linears[] = {
        /* label, m, n, k, low, high */
        {"Llama 4 Scout", 128000, 8192, 5120, 1.64, 1.81},
        {"DeepSeek-V3", 128000, 2048, 7168, 1.19, 1.60},
    };
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "b200")) {
        for (size_t i = 0; i < ARRAY_LEN(linears); i++) {
            double got = mxfp8_speedup_over_bf16(&f.cost, linears[i].m, linears[i].n, linears[i].k);
            CHECK(linears[i].label, got > linears[i].low - 0.08 && got < linears[i].high + 0.08);
        }
        /* a linear of an expert of DeepSeek-V3 16B with few rows: torchtitan (pull request 2086)
         * saw this model's steps at 0.95 of the speed of bf16 */
        CHECK("DeepSeek-V3 16B", mxfp8_speedup_over_bf16(&f.cost, 4096, 1408, 2048) < 1);
    }
    fixture_release(&f);
}

/* ---- attention in 8 bits ---- */

/* Rows of cuDNN's tables (NVIDIA/cudnn-frontend at 3929da2, benchmark/sdpa_benchmark_training/results; two sequences,
 * one on an H200), in milliseconds. Their heads count those of both sequences. */
static void attention_in_8_bits_takes_what_was_measured(void)
{
    static const struct {
        const char *label, *device;
        int64_t tokens, heads, kv_heads, dim, vdim, window;
        enum scaling scaling;
        double forward_ms, backward_ms, off; /* backward_ms 0: not judged */
    } rows[] = {
        /* label, device, tokens, heads, kv_heads, dim, vdim, window, scaling, forward_ms, backward_ms, off */
        {"GQA 4K, tensor", "gb200", 4096, 128, 16, 128, 0, 0, SCALING_TENSOR, 0.305, 1.167, 0.1},
        {"GQA 8K, mx", "gb200", 8192, 128, 16, 128, 0, 0, SCALING_MX, 1.156, 4.271, 0.1},
        {"GQA 4K, mx", "gb300", 4096, 128, 16, 128, 0, 0, SCALING_MX, 0.242, 1.203, 0.1},
        {"DeepSeek-V3 4K, mx", "gb300", 4096, 256, 256, 192, 128, 0, SCALING_MX, 0.546, 2.347, 0.1},
        {"DeepSeek-V3 8K, tensor", "gb200", 8192, 256, 256, 192, 128, 0, SCALING_TENSOR, 2.294,
         7.296, 0.13},
        /* the backward computes what the window hides, too */
        {"window 4K, mx", "gb200", 4096, 256, 256, 64, 0, 128, SCALING_MX, 0.211, 2.082, 0.12},
        {"H200 8K", "h200", 8192, 64, 8, 128, 0, 0, SCALING_TENSOR, 1.141, 0, 0.05},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cost_fixture f;
        struct work work = {.kind = WORK_ATTENTION,
                            .in = DTYPE_E4M3,
                            .out = DTYPE_BF16,
                            .attention = {.q = rows[i].tokens,
                                          .kv = rows[i].tokens,
                                          .heads = rows[i].heads,
                                          .kv_heads = rows[i].kv_heads,
                                          .dim = rows[i].dim,
                                          .vdim = rows[i].vdim,
                                          .mask = rows[i].window > 0 ? MASK_WINDOW : MASK_CAUSAL,
                                          .window = rows[i].window,
                                          .scaling = rows[i].scaling}};
        if (cost_fixture_load_device(&f, rows[i].device)) {
            CHECK_CLOSE(rows[i].label, 1e3 * cost_work_burst_s(&f.cost, ATTENTION_CUDNN, &work),
                        rows[i].forward_ms, rows[i].off);
            work.kind = WORK_ATTENTION_BACKWARD;
            if (rows[i].backward_ms > 0)
                CHECK_CLOSE(rows[i].label, 1e3 * cost_work_burst_s(&f.cost, ATTENTION_CUDNN, &work),
                            rows[i].backward_ms, rows[i].off);
        }
        fixture_release(&f);
    }
}

/* ---- a whole layer of experts ---- */

/* The layer of torchao's bench_moe_layer.py, of which the experts are in MXFP8: 131072 tokens that each go to one of 8
 * experts, and a shared one. */
enum { LAYER_ROWS = 131072, LAYER_EXPERTS = 8 };

/* Returns the seconds of a linear of experts, forward and backward. With scaled operands each of
 * them is cast twice. groups: the number of experts; 0: the linear is of the shared expert. */
static double expert_linear_s(const struct device_cost *cost, int64_t n, int64_t k, int64_t groups,
                              enum scaling scaling)
{
    const bool scaled = scaling != SCALING_NONE;
    const int64_t m = LAYER_ROWS;
    struct work work[3] = {
        matmul_work_of(m, n, k, MATMUL_NT, scaling),
        matmul_work_of(m, k, n, scaled ? MATMUL_NT : MATMUL_NN, scaling),
        matmul_work_of(n, k, m, scaled && groups == 0 ? MATMUL_NT : MATMUL_TN, scaling)};
    const int64_t sides[3][2] = {{m, k}, {n * (groups > 0 ? groups : 1), k}, {m, n}};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        work[i].matmul.groups = groups;
        work[i].matmul.turned = scaled && groups > 0 && i == 2;
        sum += seconds(cost, work[i]);
        for (int turned = 0; turned < 2 && scaled; turned++) {
            struct work cast = quantise_work_of(sides[i][0], sides[i][1], turned);
            cast.quantise.groups = groups;
            sum += seconds(cost, cast);
        }
    }
    return sum;
}

/* Returns the seconds of the layer: w1, w3 and w2 of experts and of the shared one, the activation of both, the copies
 * of tokens, the sum with the shared result, and the loss, a mean of squares over outputs. */
static double layer_s(const struct device_cost *cost, int64_t h, int64_t f, enum scaling scaling)
{
    struct work of[] = {
        {.kind = WORK_SWIGLU, .activation = {LAYER_ROWS, f}},
        {.kind = WORK_SWIGLU_BACKWARD, .activation = {LAYER_ROWS, f}},
        {.kind = WORK_PERMUTE, .permute = {.rows = LAYER_ROWS, .cols = h, .copies = 1}},
        {.kind = WORK_UNPERMUTE,
         .permute = {.rows = LAYER_ROWS, .cols = h, .copies = 1, .weights = 1}},
        {.kind = WORK_ADD, .elements = {LAYER_ROWS * h, 0}},
    };
    /* how often each is done; two of the four additions stand for the loss, forward and backward */
    const int times[] = {2, 2, 2, 2, 4};
    double sum = 0;
    for (int shared = 0; shared < 2; shared++)
        sum += 2 * expert_linear_s(cost, f, h, shared ? 0 : LAYER_EXPERTS, scaling) +
               expert_linear_s(cost, h, f, shared ? 0 : LAYER_EXPERTS, scaling);
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        of[i].in = of[i].out = DTYPE_BF16;
        sum += times[i] * seconds(cost, of[i]);
    }
    return sum;
}

/* torchao measured gains of 1.431 and 1.148 (275.3 ms in bf16 against 192.4, and 92.0 against
 * 80.2). Both are predicted too high, because torchao rearranges scales for its kernels (484 us a
 * linear), reaches 52 % of the peak in gradients of weights, and computes what is beside the
 * products in more passes. That narrow experts gain less, as casts are a larger share of their
 * time, is predicted. */
static void expert_layer_fp8_gain_after_casts(void)
{
    static const struct {
        const char *label;
        int64_t h, f;
        double measured, predicted; /* the latter as docs/products.md has it */
    } layers[] = {{"Llama 4 Scout", 5120, 8192, 1.431, 1.68},
                  {"DeepSeek-V3", 7168, 2048, 1.148, 1.47}};
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "b200")) {
        double got[ARRAY_LEN(layers)];
        for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
            got[i] = layer_s(&f.cost, layers[i].h, layers[i].f, SCALING_NONE) /
                     layer_s(&f.cost, layers[i].h, layers[i].f, SCALING_MX);
            CHECK_CLOSE(layers[i].label, got[i], layers[i].predicted, 0.004);
            CHECK(layers[i].label, got[i] > layers[i].measured);
        }
        CHECK("narrow experts gain less", got[1] < got[0] - 0.15);
    }
    fixture_release(&f);
}

/* ---- the products of a layer on a B300 ---- */

/* The twelve products of a layer with hidden size 4096 and an FFN 16384 wide, for 15872 rows, in milliseconds
 * (NVIDIA/TransformerEngine at d0067d0, docs/examples/gemm_profiling/gemm_profiling.rst): kernels only, and with casts
 * of both operands of each. There a product is a linear of its own, whose input and weight are cast, with blocks along
 * both axes at once. */
static const struct {
    const char *label;
    enum scaling scaling;
    double products_ms, products_off, with_casts_ms, with_casts_off;
} b300[] = {
    /* label, scaling, products_ms, products_off, with_casts_ms, with_casts_off */
    {"bf16", SCALING_NONE, 12.93, 0.05, 0, 0},
    {"fp8-tensor", SCALING_TENSOR, 6.812, 0.03, 9.147, 0.05},
    {"mxfp8", SCALING_MX, 7.161, 0.03, 8.984, 0.05},
    {"nvfp4", SCALING_NV, 3.764, 0.03, 6.453, 0.1},
};

static void products_of_a_b300_take_what_was_measured(void)
{
    enum { ROWS = 15872 };
    static const int64_t shapes[4][2] = {{4096, 12288}, {4096, 4096}, {4096, 16384}, {16384, 4096}};
    struct cost_fixture f;
    if (cost_fixture_load_device(&f, "b300"))
        for (size_t i = 0; i < ARRAY_LEN(b300); i++) {
            double products_s = 0, casts_s = 0;
            for (int p = 0; p < 12; p++) {
                int64_t in = shapes[p / 3][0], out = shapes[p / 3][1];
                const int64_t sides[3][3] = {
                    {ROWS, out, in}, {ROWS, in, out}, {in, out, ROWS}}; /* m n k */
                const int64_t *side = sides[p % 3];
                struct work product =
                    matmul_work_of(side[0], side[1], side[2], MATMUL_NT, b300[i].scaling);
                product.in = b300[i].scaling == SCALING_NV ? DTYPE_E2M1X2 : product.in;
                products_s += seconds(&f.cost, product);
                for (int operand = 0; operand < 2 && b300[i].with_casts_ms > 0; operand++) {
                    struct work cast = quantise_work_of(side[operand], side[2], false);
                    cast.out = product.in;
                    cast.quantise.scaling = b300[i].scaling;
                    cast.quantise.both = b300[i].scaling != SCALING_TENSOR;
                    cast.quantise.amax = b300[i].scaling != SCALING_MX;
                    casts_s += seconds(&f.cost, cast);
                }
            }
            CHECK_CLOSE(b300[i].label, products_s * 1e3, b300[i].products_ms, b300[i].products_off);
            if (b300[i].with_casts_ms > 0)
                CHECK_CLOSE(b300[i].label, (products_s + casts_s) * 1e3, b300[i].with_casts_ms,
                            b300[i].with_casts_off);
        }
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"casts take what was measured", casts_take_what_was_measured},
    {"products take what was measured", products_take_what_was_measured},
    {"casts eat the gain where they were seen to", fp8_gains_lost_to_casts_as_measured},
    {"products of a B300 take what was measured", products_of_a_b300_take_what_was_measured},
    {"attention in 8 bits takes what was measured", attention_in_8_bits_takes_what_was_measured},
    {"layers of experts gain what casts leave", expert_layer_fp8_gain_after_casts},
};
CHECK_MAIN("cost_casts", cases)
