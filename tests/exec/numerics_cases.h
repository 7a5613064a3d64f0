/* tests/exec/numerics_cases.h: compares kinds of computation on the CUDA backend with the CPU backend, in fp32, bf16
 * and fp16, and attention by each implementation. QUANTISE, ROW_DOT and the work on rows that ranks exchange are not
 * among them. Runs on a GPU and on the emulated device. Included by test files only. */
#ifndef TESTS_EXEC_NUMERICS_CASES_H
#define TESTS_EXEC_NUMERICS_CASES_H

#include "models/frozen_storage.h"
#include "models/states.h"
#include "tests/exec/one_op.h"

/* The factor of the sizes; a test on a GPU sets a larger one. */
static int64_t numerics_scale = 1;
#ifdef HAVE_CUDNN
static const bool has_fused_attention = true;
#else
static const bool has_fused_attention = false;
#endif

static void kinds_compute_what_the_processor_does(void)
{
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
    const int64_t s = numerics_scale, rows = 40 * s, cols = 64 * s;
    /* The numbers of a row are the parameters of its kind in the order of models/work_kinds.def:
     *   matmul        m, n, k, form, epilogue, accumulate, groups
     *   route         rows, experts, copies, score, norm, scale in millionths
     *   rows          rows, cols, and for a backward or a column sum accumulate
     *   attention's merge and sinks   rows, heads, head dim, number of sinks, part, accumulate
     *   others        the members of struct work (models/work.h) */
    const struct work works[] = {
        {.kind = WORK_MATMUL, .matmul = {48 * s, 80, 32 * s, MATMUL_NT, EPILOGUE_NONE, 0}},
        {.kind = WORK_MATMUL, .matmul = {48 * s, 80, 32 * s, MATMUL_NN, EPILOGUE_NONE, 0}},
        {.kind = WORK_MATMUL, .matmul = {48 * s, 80, 32 * s, MATMUL_TN, EPILOGUE_NONE, 1}},
        {.kind = WORK_MATMUL, .matmul = {48 * s, 80, 32 * s, MATMUL_NT, EPILOGUE_BIAS, 0}},
        {.kind = WORK_MATMUL, .matmul = {33, 17, 29, MATMUL_NT, EPILOGUE_NONE, 0}},
        {.kind = WORK_MATMUL, .matmul = {50 * s, 16, 32 * s, MATMUL_NT, EPILOGUE_NONE, 0, 7}},
        {.kind = WORK_MATMUL, .matmul = {50 * s, 16, 32 * s, MATMUL_NN, EPILOGUE_NONE, 0, 5}},
        {.kind = WORK_MATMUL, .matmul = {16, 24, 50 * s, MATMUL_TN, EPILOGUE_NONE, 1, 7}},
        {.kind = WORK_MATMUL, .matmul = {16, 24, 5, MATMUL_TN, EPILOGUE_NONE, 0, 7}},
        {.kind = WORK_MATMUL, .matmul = {50 * s, 16, 32 * s, MATMUL_NT, EPILOGUE_BIAS, 0, 7}},
        {.kind = WORK_ROUTE, .route = {rows, 12, 5, ROUTE_SOFTMAX, 1, 2500000}},
        {.kind = WORK_ROUTE, .route = {rows, 12, 5, ROUTE_SOFTMAX_OF_CHOSEN, 0, 0}},
        {.kind = WORK_ROUTE_BACKWARD, .route = {rows, 12, 5, ROUTE_SOFTMAX, 1, 2500000}},
        {.kind = WORK_ROUTE_BACKWARD, .route = {rows, 12, 5, ROUTE_SOFTMAX, 0, 0}},
        {.kind = WORK_ROUTE_BACKWARD, .route = {rows, 12, 5, ROUTE_SOFTMAX_OF_CHOSEN, 0, 0}},
        {.kind = WORK_ROUTE_BACKWARD, .route = {rows, 12, 5, ROUTE_SIGMOID, 1, 0}},
        {.kind = WORK_PERMUTE, .permute = {rows, cols, 3}},
        {.kind = WORK_UNPERMUTE,
         .permute = {.rows = rows, .cols = cols, .copies = 3, .weights = 1}},
        {.kind = WORK_UNPERMUTE, .permute = {rows, cols, 3}},
        {.kind = WORK_UNPERMUTE_BACKWARD, .permute = {rows, cols, 3}},
        {.kind = WORK_PERMUTE_WEIGHTS, .permute = {rows, 1, 3}},
        {.kind = WORK_PERMUTE_WEIGHTS_BACKWARD, .permute = {rows, 1, 3}},
        {.kind = WORK_MERGE, .merge = {rows, 4, 64}},
        {.kind = WORK_SINK, .sink = {rows, 4, 64, 4, 0, 0}},
        {.kind = WORK_SINK_BACKWARD, .sink = {rows, 4, 64, 4, 0, 1}},
        {.kind = WORK_RMSNORM, .rows = {rows, cols, 0}},
        {.kind = WORK_RMSNORM_BACKWARD, .rows = {rows, cols, 1}},
        {.kind = WORK_LAYERNORM, .rows = {rows, cols, 0}},
        {.kind = WORK_LAYERNORM_BACKWARD, .rows = {rows, cols, 1}},
        {.kind = WORK_ROPE, .rope = {rows, 4, 64, 0}},
        {.kind = WORK_ROPE_BACKWARD, .rope = {rows, 4, 64, 0}},
        {.kind = WORK_ROPE, .rope = {rows, 4, 64, 0, 24}},
        {.kind = WORK_ROPE_BACKWARD, .rope = {rows, 4, 64, 0, 24}},
        {.kind = WORK_ROPE,
         .rope = {rows, 1, 600, 0}}, /* more pairs than a block keeps angles of */
        {.kind = WORK_ROPE_BACKWARD, .rope = {rows, 1, 600, 0}},
        {.kind = WORK_LATENT_KEYS, .latent_keys = {rows, 4, 16, 8, 24}},
        {.kind = WORK_LATENT_KEYS_BACKWARD, .latent_keys = {rows, 4, 16, 8, 24}},
        {.kind = WORK_SWIGLU, .rows = {rows, cols, 0}},
        {.kind = WORK_SWIGLU_BACKWARD, .rows = {rows, cols, 0}},
        {.kind = WORK_SWIGLU, .activation = {.rows = rows, .cols = cols, .weights = 1}},
        {.kind = WORK_SWIGLU_BACKWARD, .activation = {.rows = rows, .cols = cols, .weights = 1}},
        {.kind = WORK_SWIGLU_BACKWARD,
         .activation = {rows, cols, 0, FUNCTION_CLAMPED, 0, 0, .weights = 1}},
        {.kind = WORK_GELU, .rows = {rows, cols, 0}},
        {.kind = WORK_GELU_BACKWARD, .rows = {rows, cols, 0}},
        {.kind = WORK_SWIGLU, .activation = {rows, cols, 0, FUNCTION_GELU}},
        {.kind = WORK_SWIGLU_BACKWARD, .activation = {rows, cols, 0, FUNCTION_GELU}},
        {.kind = WORK_SWIGLU, .activation = {rows, cols, 0, FUNCTION_CLAMPED}},
        {.kind = WORK_SWIGLU_BACKWARD, .activation = {rows, cols, 0, FUNCTION_CLAMPED}},
        {.kind = WORK_GELU, .activation = {rows, cols, 0, FUNCTION_RELU2}},
        {.kind = WORK_GELU_BACKWARD, .activation = {rows, cols, 0, FUNCTION_RELU2}},
        {.kind = WORK_EMBEDDING, .embedding = {rows, cols, 100, 0, 0}},
        {.kind = WORK_EMBEDDING_BACKWARD, .reads = 3, .embedding = {rows, cols, 100, 0, 0}},
        {.kind = WORK_CROSS_ENTROPY, .cross_entropy = {rows, 130 * s, rows, 0}},
        {.kind = WORK_CROSS_ENTROPY_BACKWARD, .cross_entropy = {rows, 130 * s, rows, 0}},
        {.kind = WORK_CROSS_ENTROPY_PARTIAL, .loss_partial = {rows, 130 * s, 0, 0, 0}},
        {.kind = WORK_CROSS_ENTROPY_PARTIAL_BACKWARD,
         .loss_backward = {rows, 130 * s, rows, 0, 0, 0}},
        {.kind = WORK_CROSS_ENTROPY_FINISH, .p = {rows, 130 * s, rows, 0, 0}},
        {.kind = WORK_ADD, .reads = 2, .elements = {rows * cols, 0}},
        {.kind = WORK_ADD, .reads = 3, .elements = {rows * cols, cols}}, /* a bias on every row */
        {.kind = WORK_CAST, .elements = {rows * cols, 0}},
        {.kind = WORK_DEQUANTISE, .dequantise = {rows, cols, FROZEN_STORAGE_NF4}},
        {.kind = WORK_DEQUANTISE, .dequantise = {rows, cols, FROZEN_STORAGE_NF4_DOUBLE}},
        {.kind = WORK_DEQUANTISE, .dequantise = {rows, cols, FROZEN_STORAGE_INT8}},
        {.kind = WORK_FILL, .elements = {rows * cols, 0}},
        {.kind = WORK_PACK, .pack = {rows, 4, {16, 8, 8}}},
        {.kind = WORK_UNPACK, .pack = {rows, 4, {16, 8, 8}}},
        {.kind = WORK_HEAD_EXPAND, .heads = {rows, 4, 64, 3}},
        {.kind = WORK_HEAD_REDUCE, .heads = {rows, 4, 64, 3}},
        {.kind = WORK_COLUMN_SUM, .rows = {rows, cols, 1}},
        {.kind = WORK_COLUMN_SUM, .column_sum = {rows, cols, 1, 7}},
        {.kind = WORK_COLUMN_SUM, .column_sum = {5, cols, 0, 7}},
        {.kind = WORK_ADAMW, .elements = {rows * cols, 0}},
        {.kind = WORK_ADAMW, .adamw = {rows * cols, STATES_BF16}},
        {.kind = WORK_SQUARE_SUM, .square_sum = {rows * cols, 1, 0}},
        {.kind = WORK_CLIP, .elements = {rows * cols, 0}},
        /* column sums within 48 KiB of shared memory, within 99 KiB (to be asked for), and too large for either */
        {.kind = WORK_LAYERNORM_BACKWARD, .rows = {3 * s, 6128, 1}},
        {.kind = WORK_LAYERNORM_BACKWARD, .rows = {3 * s, 6144, 1}},
        {.kind = WORK_LAYERNORM_BACKWARD, .rows = {3 * s, 12288, 1}},
        {.kind = WORK_RMSNORM_BACKWARD, .rows = {3 * s, 12288, 1}},
        {.kind = WORK_RMSNORM_BACKWARD, .rows = {3 * s, 25600, 1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(works); i++)
        for (size_t d = 0; d < ARRAY_LEN(dtypes); d++)
            one_op_compare(work_kind_info((enum work_kind)works[i].kind)->name, works[i], dtypes[d],
                           EXEC_ATTENTION_AUTO, one_op_tolerance(dtypes[d]));
}

/* Attention by matrix products takes every dtype and mask; the fused kernels take 16-bit types only, and not
 * every window. Both are compared with the CPU. */
static void attention_computes_what_the_processor_does(void)
{
    const int64_t n = 32 * numerics_scale;
    const struct {
        const char *label;
        int64_t q, kv, heads, kv_heads, dim, mask, offset, window;
        bool fused;   /* the fused kernels take it */
        int64_t vdim; /* 0: dim */
    } rows[] = {
        /* label, q, kv, heads, kv_heads, dim, mask, offset, window, fused, vdim */
        {"square causal", n, n, 4, 4, 64, MASK_CAUSAL, 0, 0, true, 0},
        {"full, grouped", n, n, 4, 2, 128, MASK_FULL, 0, 0, true, 0},
        {"more keys than queries", n, 3 * n, 4, 1, 64, MASK_FULL, 0, 0, true, 0},
        {"more queries than keys", 3 * n, n, 4, 2, 64, MASK_FULL, 0, 0, true, 0},
        {"causal to the end", n, 3 * n, 4, 2, 64, MASK_CAUSAL, 2 * n, 0, true, 0},
        {"causal behind a prefix, keys that nobody sees", n, 3 * n, 4, 2, 64, MASK_CAUSAL, n, 0,
         true, 0},
        {"first queries see nothing", 2 * n, 2 * n, 4, 2, 64, MASK_CAUSAL, -n / 2, 0, true, 0},
        {"odd sizes", n + 7, 2 * n + 5, 4, 2, 72, MASK_FULL, 0, 0, true, 0},
        {"a window", 2 * n, 2 * n, 4, 2, 64, MASK_WINDOW, 0, n / 2, true, 0},
        {"a window to the end", n, 3 * n, 4, 2, 64, MASK_WINDOW, 2 * n, n / 2 + 3, true, 0},
        {"a window of a tile before", n, n, 4, 2, 64, MASK_WINDOW, n, n + n / 2, false, 0},
        {"narrow heads of v", n, 2 * n, 4, 4, 24, MASK_CAUSAL, n, 0, true, 16},
        {"wide heads of v", n, n, 4, 2, 24, MASK_CAUSAL, 0, 0, true, 40},
    };
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t d = 0; d < ARRAY_LEN(dtypes); d++)
            for (int backward = 0; backward < 2; backward++) {
                struct work work = {.kind = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION,
                                    .attention = {rows[i].q, rows[i].kv, rows[i].heads,
                                                  rows[i].kv_heads, rows[i].dim, rows[i].mask,
                                                  rows[i].offset, rows[i].window,
                                                  .vdim = rows[i].vdim}};
                double tolerance = one_op_tolerance(dtypes[d]) * (backward ? 3 : 1);
                /* Some versions of cuDNN are refused for a backward with such a number of keys (exec/cuda/versions.h).
                 * FUSED would fail there; AUTO takes tiles instead. */
                enum exec_attention fused =
                    backward && rows[i].kv % 128 != 0 ? EXEC_ATTENTION_AUTO : EXEC_ATTENTION_FUSED;
                one_op_compare(rows[i].label, work, dtypes[d], EXEC_ATTENTION_TILES, tolerance);
                if (has_fused_attention && rows[i].fused && dtypes[d] != DTYPE_F32)
                    one_op_compare(rows[i].label, work, dtypes[d], fused, tolerance);
            }
}

static const struct check_case numerics_cases[] = {
    {"kinds compute what the processor does", kinds_compute_what_the_processor_does},
    {"attention computes what the processor does", attention_computes_what_the_processor_does},
};

#endif
