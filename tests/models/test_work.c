/* tests/models/test_work.c: the table of kinds of work has no holes; visible pairs of attention,
 * and flops and bytes of works, are worked by hand. */
#include "models/work.h"

#include "models/frozen_storage.h"
#include "models/states.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the table of kinds ---- */

static void every_kind_has_a_row(void)
{
    static const char *const tags[] = {"phase", "region", "layer", "chunk", "step", "micro"};
    for (int i = 0; i < WORK_KIND_COUNT; i++) {
        const struct work_kind_info *info = work_kind_info((enum work_kind)i);
        enum work_kind found;
        CHECK(info->name,
              work_kind_find(info->name, strlen(info->name), &found) && (int)found == i);
        CHECK(info->name, info->reads_min <= info->reads_max && info->reads_max <= 11);
        CHECK(info->name, info->writes_min <= info->writes_max && info->writes_max <= 8);
        CHECK(info->name, info->stream < STREAM_CLASS_COUNT);
        for (uint32_t k = 0; k < info->param_count; k++) {
            const struct work_param *param = &info->param[k];
            CHECK(info->name, param->name[0] != '\0');
            CHECK(info->name, !param->value_names == (param->value_count == 0));
            for (uint32_t j = 0; j < k; j++)
                CHECK(info->name, strcmp(param->name, info->param[j].name) != 0);
            /* Else the text form could not tell a parameter from a label. */
            for (size_t t = 0; t < ARRAY_LEN(tags); t++)
                CHECK(info->name, strcmp(param->name, tags[t]) != 0);
        }
    }
    enum work_kind kind;
    CHECK("a prefix", !work_kind_find("matmu", 5, &kind));
    CHECK("nothing", !work_kind_find("", 0, &kind));
}

static void parameters_of_kinds_match_the_table(void)
{
    const struct work_kind_info *info = work_kind_info(WORK_ATTENTION);
    CHECK_INT("count", info->param_count, 16);
    CHECK_TEXT("last", info->param[15].name, "scaling");
    CHECK("mask must be given", !info->param[5].optional);
    CHECK_INT("masks", info->param[5].value_count, MASK_COUNT);
    CHECK_TEXT("mask", info->param[5].value_names[MASK_CAUSAL], "causal");
    CHECK("offset may be negative", info->param[6].is_signed && info->param[6].optional);
    CHECK("group", work_kind_info(WORK_SHIFT)->param[0].is_value_group_id);
    CHECK_TEXT("reduce", work_kind_info(WORK_ALL_REDUCE)->param[2].value_names[REDUCE_MAX], "max");
}

static void dtype_and_kind_names_are_found(void)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        enum dtype found;
        const char *name = dtype_name((enum dtype)i);
        CHECK(name, dtype_find(name, strlen(name), &found) && (int)found == i);
    }
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++) {
        enum attention_impl found;
        const char *name = attention_impl_name((enum attention_impl)i);
        CHECK(name, attention_impl_find(name, strlen(name), &found) && (int)found == i);
    }
    for (int i = 0; i < STREAM_CLASS_COUNT; i++) {
        enum stream_class found;
        const char *name = stream_class_name((enum stream_class)i);
        CHECK(name, stream_class_find(name, strlen(name), &found) && (int)found == i);
    }
    CHECK_INT("bf16", (int64_t)dtype_bytes(DTYPE_BF16), 2);
    CHECK_INT("f64", (int64_t)dtype_bytes(DTYPE_F64), 8);
    CHECK_INT("u8", (int64_t)dtype_bytes(DTYPE_U8), 1);
}

static void work_kinds_run_on_own_stream_classes(void)
{
    CHECK("own", work_may_run_on(WORK_MATMUL, STREAM_COMPUTE));
    CHECK("other", !work_may_run_on(WORK_MATMUL, STREAM_COMM));
    CHECK("adamw on the host", work_may_run_on(WORK_ADAMW, STREAM_HOST));
    CHECK("adamw on the device", work_may_run_on(WORK_ADAMW, STREAM_COMPUTE));
    CHECK("a fill on the host", work_may_run_on(WORK_FILL, STREAM_HOST));
    CHECK("a cast is not for the host", !work_may_run_on(WORK_CAST, STREAM_HOST));
    CHECK("either copy stream", work_may_run_on(WORK_H2D, STREAM_D2H));
    CHECK("host_sync names any stream", work_may_run_on(WORK_HOST_SYNC, STREAM_D2H));
}

/* ---- attention ---- */

static double count_visible_pairs_one_by_one(const struct work *work)
{
    double pairs = 0;
    for (int64_t i = 0; i < work->attention.q; i++)
        for (int64_t j = 0; j < work->attention.kv; j++) {
            bool below = j <= i + work->attention.offset;
            bool above = j > i + work->attention.offset - work->attention.window;
            pairs += work->attention.mask == MASK_FULL ||
                     (below && (work->attention.mask == MASK_CAUSAL || above));
        }
    return pairs;
}

static const char *mask_label(const struct work *work)
{
    static char text[128];
    snprintf(text, sizeof text, "q %d kv %d mask %d offset %d window %d", (int)work->attention.q,
             (int)work->attention.kv, (int)work->attention.mask, (int)work->attention.offset,
             (int)work->attention.window);
    return text;
}

static void visible_pairs_match_brute_force(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 3000; i++) {
        struct work work = {.kind = WORK_ATTENTION};
        work.attention.q = check_random_i64(&random, 1, 20);
        work.attention.kv = check_random_i64(&random, 1, 20);
        work.attention.mask = check_random_i64(&random, 0, MASK_DOCUMENTS - 1);
        work.attention.offset = check_random_i64(&random, -25, 25);
        work.attention.window = check_random_i64(&random, 0, 30);
        if (!CHECK_CLOSE(mask_label(&work), work_attention_pairs(&work),
                         count_visible_pairs_one_by_one(&work), 0))
            return;
    }
}

static const struct {
    const char *label;
    int64_t q, kv, mask, offset, window;
    double pairs;
} pairs[] = {
    {"square causal", 4, 4, MASK_CAUSAL, 0, 0, 10},
    {"bottom-right", 2, 4, MASK_CAUSAL, 2, 0, 7},
    {"more queries than keys", 4, 2, MASK_CAUSAL, 0, 0, 7},
    {"rows that see nothing", 4, 4, MASK_CAUSAL, -2, 0, 3},
    {"no row sees anything", 4, 4, MASK_CAUSAL, -4, 0, 0},
    {"far above", 4, 4, MASK_CAUSAL, INT64_MAX, 0, 16},
    {"far below", 4, 4, MASK_CAUSAL, INT64_MIN, 0, 0},
    {"window of one", 4, 4, MASK_WINDOW, 0, 1, 4},
    {"window of two", 4, 4, MASK_WINDOW, 0, 2, 7},
    {"window without end", 4, 4, MASK_WINDOW, 0, INT64_MAX, 10},
    {"window behind all", 4, 4, MASK_WINDOW, 100, 50, 0},
    {"everything at the limits", 4, 4, MASK_WINDOW, INT64_MIN, INT64_MAX, 0},
    {"1M tokens", INT64_C(1) << 20, INT64_C(1) << 20, MASK_CAUSAL, 0, 0, 549756338176.0},
};

static void visible_pairs_of_masks_by_hand(void)
{
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct work work = {.kind = WORK_ATTENTION};
        work.attention.q = pairs[i].q;
        work.attention.kv = pairs[i].kv;
        work.attention.mask = pairs[i].mask;
        work.attention.offset = pairs[i].offset;
        work.attention.window = pairs[i].window;
        CHECK_CLOSE(pairs[i].label, work_attention_pairs(&work), pairs[i].pairs, 0);
    }
}

/* ---- flops, bytes, scratch memory ---- */

#define BF DTYPE_BF16
#define F4 DTYPE_F32

/* Works whose flops and bytes of memory are counted by hand, from operands and their sizes. A work is
 *
 *     {kind, dtype in, dtype out, reads, writes, {{parameters}}}
 *
 * with the parameters in the order of the kind's row in models/work_kinds.def. 0 reads and 0 writes
 * mean as few operands as the kind allows. A comment stands above rows that need one. */
static const struct {
    const char *label;
    struct work work;
    double flops, bytes;
} known[] = {
    {"matmul", {WORK_MATMUL, BF, BF, 0, 0, {{2, 3, 4}}}, 48, 52},
    {"matmul with bias", {WORK_MATMUL, BF, BF, 3, 1, {{2, 3, 4, 0, EPILOGUE_BIAS}}}, 48, 58},
    {"matmul into f32", {WORK_MATMUL, BF, F4, 3, 1, {{2, 3, 4, MATMUL_TN, 0, 1}}}, 48, 88},
    {"attention, full", {WORK_ATTENTION, BF, BF, 0, 0, {{4, 8, 2, 1, 16}}}, 4096, 1056},
    {"attention, bottom-right",
     {WORK_ATTENTION, BF, BF, 0, 0, {{4, 8, 2, 1, 16, MASK_CAUSAL, 4}}},
     3328,
     1056},
    {"attention_backward",
     {WORK_ATTENTION_BACKWARD, BF, BF, 0, 0, {{4, 8, 2, 1, 16}}},
     10240,
     2080},
    /* 32 pairs, 2 heads, 2 (16 + 8) flops; q 128, k 128, v 64, o 64 elements of 2 bytes, lse */
    {"attention, narrow v",
     {WORK_ATTENTION, BF, BF, 0, 0, {{4, 8, 2, 1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 8}}},
     3072,
     800},
    /* 2 (3 x 16 + 2 x 8) flops a pair and head; q, k, v, o, do, then dq, dk, dv */
    {"attention_backward, narrow v",
     {WORK_ATTENTION_BACKWARD, BF, BF, 0, 0, {{4, 8, 2, 1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 8}}},
     8192,
     1568},
    /* 2 rows: 3 heads of 4 + 5 and 2 shared are read, 3 heads of 4 + 2 and 5 are written */
    {"latent_keys", {WORK_LATENT_KEYS, BF, BF, 0, 0, {{2, 3, 4, 2, 5}}}, 0, 248},
    {"latent_keys_backward", {WORK_LATENT_KEYS_BACKWARD, BF, BF, 0, 0, {{2, 3, 4, 2, 5}}}, 0, 248},
    {"merge of bf16", {WORK_MERGE, BF, F4, 0, 0, {{2, 3, 4}}}, 0, 312},
    {"merge of f32", {WORK_MERGE, F4, F4, 0, 0, {{2, 3, 4}}}, 0, 360},
    /* 6 heads of 4: o in and out, lse in and out, 3 sinks; and do, o, lse, 3 sinks and their gradients */
    {"sink", {WORK_SINK, BF, BF, 0, 0, {{2, 3, 4, 3}}}, 0, 150},
    {"sink_backward", {WORK_SINK_BACKWARD, BF, F4, 0, 0, {{2, 3, 4, 3}}}, 0, 138},
    {"and accumulates", {WORK_SINK_BACKWARD, BF, F4, 5, 1, {{2, 3, 4, 3, 0, 1}}}, 0, 150},
    {"rmsnorm", {WORK_RMSNORM, BF, BF, 0, 0, {{2, 8}}}, 0, 88},
    {"rmsnorm_backward", {WORK_RMSNORM_BACKWARD, BF, BF, 0, 0, {{2, 8}}}, 0, 136},
    {"and accumulates", {WORK_RMSNORM_BACKWARD, BF, BF, 5, 2, {{2, 8, 1}}}, 0, 152},
    {"layernorm", {WORK_LAYERNORM, BF, BF, 0, 0, {{2, 8}}}, 0, 112},
    {"layernorm_backward", {WORK_LAYERNORM_BACKWARD, BF, BF, 0, 0, {{2, 8}}}, 0, 160},
    {"and accumulates", {WORK_LAYERNORM_BACKWARD, BF, BF, 6, 3, {{2, 8, 1}}}, 0, 192},
    {"rope", {WORK_ROPE, BF, BF, 0, 0, {{2, 1, 4}}}, 0, 40},
    {"rope in wider rows", {WORK_ROPE_BACKWARD, BF, BF, 0, 0, {{2, 1, 4, 6}}}, 0, 56},
    {"swiglu", {WORK_SWIGLU, BF, BF, 0, 0, {{2, 8}}}, 0, 96},
    {"swiglu_backward", {WORK_SWIGLU_BACKWARD, BF, BF, 0, 0, {{2, 8}}}, 0, 160},
    /* a weight of 4 bytes for each of 2 rows; backward its gradient, too */
    {"and weights", {WORK_SWIGLU, BF, BF, 0, 0, {{2, 8, 0, 0, 0, 0, 1}}}, 0, 104},
    {"and weights", {WORK_SWIGLU_BACKWARD, BF, BF, 0, 0, {{2, 8, 0, 0, 0, 0, 1}}}, 0, 176},
    {"gelu", {WORK_GELU, BF, BF, 0, 0, {{2, 8}}}, 0, 64},
    {"gelu_backward", {WORK_GELU_BACKWARD, BF, BF, 0, 0, {{2, 8}}}, 0, 96},
    {"gelu_backward, 27 touches of 16 elements",
     {WORK_GELU_BACKWARD, BF, BF, 0, 0, {{2, 8, 27}}},
     0,
     864},
    /* 4 rows of 2 logits in f32, 3 weights each */
    {"route", {WORK_ROUTE, F4, F4, 0, 0, {{4, 2, 3}}}, 0, 80},
    {"route_backward", {WORK_ROUTE_BACKWARD, F4, BF, 0, 0, {{4, 2, 3}}}, 0, 96},
    {"permute", {WORK_PERMUTE, BF, BF, 0, 0, {{4, 8, 3}}}, 0, 256},
    {"unpermute", {WORK_UNPERMUTE, BF, BF, 0, 0, {{4, 8, 3}}}, 0, 256},
    {"weighted", {WORK_UNPERMUTE, BF, BF, 0, 0, {{4, 8, 3, 0, 0, 0, 0, 1}}}, 0, 304},
    {"unpermute_backward", {WORK_UNPERMUTE_BACKWARD, BF, BF, 0, 0, {{4, 8, 3}}}, 0, 544},
    /* 12 weights of 4 bytes, read and written; or read, and 5 rows written */
    {"permute_weights", {WORK_PERMUTE_WEIGHTS, F4, F4, 0, 0, {{4, 1, 3}}}, 0, 96},
    {"back", {WORK_PERMUTE_WEIGHTS_BACKWARD, F4, F4, 0, 0, {{4, 1, 3, 1, 12, 5}}}, 0, 68},
    /* three matrices of 5 x 2 for 7 rows; of the gradient three results */
    {"grouped", {WORK_MATMUL, BF, BF, 0, 0, {{7, 5, 2, MATMUL_NT, 0, 0, 3}}}, 140, 158},
    {"and its gradient", {WORK_MATMUL, BF, F4, 0, 0, {{5, 2, 7, MATMUL_TN, 0, 0, 3}}}, 140, 218},
    {"embedding", {WORK_EMBEDDING, BF, BF, 0, 0, {{2, 8, 10}}}, 0, 72},
    {"embedding_backward", {WORK_EMBEDDING_BACKWARD, BF, F4, 0, 0, {{2, 8, 10}}}, 0, 488},
    {"and accumulates", {WORK_EMBEDDING_BACKWARD, BF, F4, 3, 1, {{2, 8, 10}}}, 0, 168},
    /* 16 elements of dy and of rows that are added to, 6 bytes each, and 30 rows that are cleared, all in bf16 */
    {"of a whole table", {WORK_EMBEDDING_BACKWARD, BF, F4, 0, 0, {{2, 8, 10, 0, 1, 30}}}, 0, 584},
    {"and accumulates", {WORK_EMBEDDING_BACKWARD, BF, F4, 3, 1, {{2, 8, 10, 0, 1, 30}}}, 0, 584},
    {"cross_entropy", {WORK_CROSS_ENTROPY, BF, F4, 0, 0, {{2, 10, 2}}}, 0, 60},
    {"and accumulates", {WORK_CROSS_ENTROPY, BF, F4, 3, 2, {{2, 10, 2, 1}}}, 0, 64},
    {"and keeps the softmax", {WORK_CROSS_ENTROPY, BF, F4, 2, 3, {{2, 10, 2}}}, 0, 140},
    {"cross_entropy_backward", {WORK_CROSS_ENTROPY_BACKWARD, BF, BF, 0, 0, {{2, 10, 2}}}, 0, 88},
    {"cross_entropy_partial", {WORK_CROSS_ENTROPY_PARTIAL, BF, F4, 0, 0, {{2, 10}}}, 0, 72},
    {"cross_entropy_partial_backward",
     {WORK_CROSS_ENTROPY_PARTIAL_BACKWARD, BF, BF, 0, 0, {{2, 10, 2}}},
     0,
     96},
    {"cross_entropy_finish", {WORK_CROSS_ENTROPY_FINISH, BF, F4, 0, 0, {{2, 10, 2}}}, 0, 44},
    {"add bf16 to f32", {WORK_ADD, BF, F4, 0, 0, {{8}}}, 0, 80},
    {"cast", {WORK_CAST, F4, BF, 0, 0, {{8}}}, 0, 48},
    /* 512 x 256 of bf16: 2 bytes of each element are read and 1 is written, and its scales */
    {"quantise", {WORK_QUANTISE, BF, DTYPE_E4M3, 0, 0, {{512, 256, SCALING_TENSOR}}}, 0, 393220},
    {"after a pass for the scale",
     {WORK_QUANTISE, BF, DTYPE_E4M3, 0, 0, {{512, 256, SCALING_TENSOR, 0, 0, 1}}},
     0,
     655364},
    {"only the largest element",
     {WORK_QUANTISE, BF, F4, 0, 0, {{512, 256, SCALING_TENSOR, 0, 0, 1, 0, 1}}},
     0,
     262144},
    {"a copy by the largest element that was found",
     {WORK_QUANTISE, BF, DTYPE_E4M3, 0, 0, {{512, 256, SCALING_TENSOR, 0, 0, 0, 0, 0, 1}}},
     0,
     393220},
    {"both copies in one pass",
     {WORK_QUANTISE, BF, DTYPE_E4M3, 0, 0, {{512, 256, SCALING_TENSOR, 0, 1}}},
     0,
     524296},
    {"mx", {WORK_QUANTISE, BF, DTYPE_E4M3, 0, 0, {{512, 256, SCALING_MX}}}, 0, 397312},
    /* 65536 bytes of codes, 2048 fp32 scales, 262144 bytes of results; 8-bit scales: 2048, 8 fp32 and the offset */
    {"nf4", {WORK_DEQUANTISE, DTYPE_U8, BF, 2, 1, {{512, 256, FROZEN_STORAGE_NF4}}}, 0, 335872},
    {"nf4 with 8-bit scales",
     {WORK_DEQUANTISE, DTYPE_U8, BF, 2, 1, {{512, 256, FROZEN_STORAGE_NF4_DOUBLE}}},
     0,
     329764},
    {"int8", {WORK_DEQUANTISE, DTYPE_U8, BF, 2, 1, {{512, 256, FROZEN_STORAGE_INT8}}}, 0, 395264},
    {"vector", {WORK_QUANTISE, BF, DTYPE_E4M3, 0, 0, {{512, 256, SCALING_VECTOR, 1}}}, 0, 397312},
    {"block", {WORK_QUANTISE, BF, DTYPE_E4M3, 0, 0, {{512, 256, SCALING_BLOCK}}}, 0, 393248},
    /* turned in 16 bits first: 4 bytes more */
    {"a scale a row, turned",
     {WORK_QUANTISE, BF, DTYPE_E4M3, 0, 0, {{512, 256, SCALING_ROW, 1}}},
     0,
     918528},
    {"4 bits", {WORK_QUANTISE, BF, DTYPE_E2M1X2, 0, 0, {{512, 256, SCALING_NV}}}, 0, 335872},
    {"product of 8 bits",
     {WORK_MATMUL, DTYPE_E4M3, BF, 4, 1, {{2, 3, 4, 0, 0, 0, 0, SCALING_TENSOR}}},
     48,
     32},
    {"product of 4 bits",
     {WORK_MATMUL, DTYPE_E2M1X2, BF, 4, 1, {{2, 3, 4, 0, 0, 0, 0, SCALING_NV}}},
     48,
     22},
    {"fill", {WORK_FILL, BF, BF, 0, 0, {{8}}}, 0, 16},
    {"pack", {WORK_PACK, BF, BF, 0, 0, {{2, 2, 3, 1, 1}}}, 0, 80},
    {"unpack", {WORK_UNPACK, BF, BF, 0, 0, {{2, 2, 3}}}, 0, 48},
    {"head_expand", {WORK_HEAD_EXPAND, BF, BF, 0, 0, {{2, 1, 4, 3}}}, 0, 64},
    {"head_reduce", {WORK_HEAD_REDUCE, BF, BF, 0, 0, {{2, 1, 4, 3}}}, 0, 64},
    {"column_sum", {WORK_COLUMN_SUM, BF, F4, 0, 0, {{2, 8}}}, 0, 64},
    {"and accumulates", {WORK_COLUMN_SUM, BF, F4, 2, 1, {{2, 8, 1}}}, 0, 96},
    {"and in groups", {WORK_COLUMN_SUM, BF, F4, 0, 0, {{2, 8, 0, 5}}}, 0, 192},
    {"adamw", {WORK_ADAMW, BF, F4, 4, 3, {{8}}}, 0, 208},
    {"and casts", {WORK_ADAMW, BF, BF, 4, 4, {{8}}}, 0, 224},
    /* gradient 2, parameter and two moments in and out 2 each: 14 bytes */
    {"in bf16", {WORK_ADAMW, BF, BF, 4, 3, {{8, STATES_BF16}}}, 0, 112},
    /* gradient 2, fp32 parameter in and out, and two moments of 256 codes and a scale of 4 bytes */
    {"in 8 bits", {WORK_ADAMW, BF, F4, 4, 3, {{256, STATES_8BIT}}}, 0, 3600},
    {"and a block begun", {WORK_ADAMW, BF, F4, 4, 3, {{257, STATES_8BIT}}}, 0, 3630},
    {"square_sum", {WORK_SQUARE_SUM, BF, F4, 0, 0, {{8}}}, 0, 20},
    {"and adds", {WORK_SQUARE_SUM, BF, F4, 2, 1, {{8, 1}}}, 0, 24},
    {"clip", {WORK_CLIP, BF, BF, 0, 0, {{8}}}, 0, 36},
    {"all_gather", {WORK_ALL_GATHER, BF, BF, 0, 0, {{1, 64}}}, 0, 0},
    {"reduce", {WORK_REDUCE, BF, BF, 0, 0, {{1, 64}}}, 0, 0},
    {"scatter", {WORK_SCATTER, BF, BF, 0, 0, {{1, 64}}}, 0, 0},
    {"d2h", {WORK_D2H, BF, BF, 0, 0, {{64}}}, 0, 0},
};

static void flops_and_bytes_by_hand(void)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        CHECK_CLOSE(known[i].label, work_flops(&known[i].work), known[i].flops, 0);
        CHECK_CLOSE(known[i].label, work_memory_bytes(&known[i].work), known[i].bytes, 0);
    }
}

static void every_kind_has_bytes(void)
{
    for (int i = 0; i < WORK_KIND_COUNT; i++) {
        struct work work = {.kind = (uint8_t)i};
        const struct work_kind_info *info = work_kind_info((enum work_kind)i);
        CHECK(info->name, work_memory_bytes(&work) >= 0 && isfinite(work_flops(&work)));
    }
}

static void payload_and_group_of_works(void)
{
    const struct work shift = {.kind = WORK_SHIFT, .p2p = {.group = 3, .by = -1, .bytes = 64}};
    const struct work copy = {.kind = WORK_H2D, .copy = {.bytes = 32}};
    const struct work matmul = {.kind = WORK_MATMUL, .matmul = {.m = 9}};
    const struct work barrier = {.kind = WORK_BARRIER, .barrier = {.group = 2}};
    const struct work reduce = {.kind = WORK_ALL_REDUCE, .all_reduce = {.group = 1, .bytes = 8}};
    CHECK_INT("shift", work_payload_bytes(&shift), 64);
    CHECK_INT("copy", work_payload_bytes(&copy), 32);
    CHECK_INT("all_reduce", work_payload_bytes(&reduce), 8);
    CHECK_INT("matmul", work_payload_bytes(&matmul), 0);
    CHECK_INT("shift's group", work_comm_group(&shift), 3);
    CHECK_INT("barrier's group", work_comm_group(&barrier), 2);
    CHECK_INT("matmul's group", work_comm_group(&matmul), -1);
}

/* cuDNN 9.19 reports the workspace of its own plans on sm 90: 32 MiB per 1K tokens with 32 and 8
 * heads, and delta. */
static void attention_workspace_bytes_by_hand(void)
{
    struct work work = {.kind = WORK_ATTENTION_BACKWARD,
                        .attention = {1024, 1024, 32, 8, 128, MASK_CAUSAL, 0, 0}};
    const int64_t mib = 1 << 20, delta = 4 * 1024 * 32;
    CHECK_INT("cudnn, sm 90", work_workspace_bytes(ATTENTION_CUDNN, 90, &work), 32 * mib + delta);
    CHECK_INT("cudnn, sm 80", work_workspace_bytes(ATTENTION_CUDNN, 80, &work), 48 * mib + delta);
    CHECK_INT("fa2", work_workspace_bytes(ATTENTION_FA2, 80, &work), 32 * mib + delta);
    CHECK_INT("fa3", work_workspace_bytes(ATTENTION_FA3, 90, &work), 32 * mib + delta);
    CHECK_INT("cpu", work_workspace_bytes(ATTENTION_CPU, 0, &work), 0);
    work.attention.kv_heads = 32;
    CHECK_INT("no expansion", work_workspace_bytes(ATTENTION_FA2, 80, &work), 16 * mib + delta);
    work.attention.q = work.attention.heads = work.attention.dim = INT64_MAX;
    CHECK_INT("huge", work_workspace_bytes(ATTENTION_FA2, 80, &work), INT64_MAX);
    work.kind = WORK_ATTENTION;
    CHECK_INT("forward", work_workspace_bytes(ATTENTION_FA2, 80, &work), 0);
}

static const struct check_case cases[] = {
    {"every kind has a row", every_kind_has_a_row},
    {"parameters are as written", parameters_of_kinds_match_the_table},
    {"names come back", dtype_and_kind_names_are_found},
    {"kinds run on their class of stream", work_kinds_run_on_own_stream_classes},
    {"pairs are exact", visible_pairs_match_brute_force},
    {"pairs of known masks", visible_pairs_of_masks_by_hand},
    {"flops and bytes by hand", flops_and_bytes_by_hand},
    {"every kind has bytes", every_kind_has_bytes},
    {"payloads and groups", payload_and_group_of_works},
    {"hidden memory of attention", attention_workspace_bytes_by_hand},
};
CHECK_MAIN("work", cases)
