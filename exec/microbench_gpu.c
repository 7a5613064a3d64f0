/* The points that bench measures on a GPU: products as wide as those of 7B to 70B models, with few tokens (which do not
 * fill the device) and many (which do); attention over tiles as rings and chunks have them and over whole sequences;
 * memory-bound work; messages; and copies from 4 KiB to 1 GiB. */
#include "exec/microbench_list.h"

static void add_product_cases(struct microbench_list *list, bool quick)
{
    static const struct {
        int64_t n, k;
        bool quick;
    } weights[] = {
        {4096, 4096, true},   {6144, 4096, false}, {28672, 4096, true},
        {4096, 14336, false}, {8192, 8192, false}, {32000, 4096, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(weights); i++)
        for (int64_t m = 128, step = 0; m <= 16384; m *= 2, step++) {
            const int64_t n = weights[i].n, k = weights[i].k;
            if (quick && (!weights[i].quick || step % 3 != 0))
                continue;
            microbench_add_case(
                list, POINT_WORK,
                (struct work){.kind = WORK_MATMUL, .matmul = {m, n, k, MATMUL_NT, 0, 0}});
            if (step % 2 == 1)
                continue;
            microbench_add_case(
                list, POINT_WORK,
                (struct work){.kind = WORK_MATMUL, .matmul = {m, k, n, MATMUL_NN, 0, 0}});
            microbench_add_case(
                list, POINT_WORK,
                (struct work){.kind = WORK_MATMUL, .matmul = {n, k, m, MATMUL_TN, 0, 1}});
        }
}

static void add_attention_cases(struct microbench_list *list, bool quick)
{
    static const struct {
        int64_t q, kv, heads, kv_heads, dim, mask;
        bool quick;
    } sizes[] = {
        {1024, 1024, 32, 8, 128, MASK_CAUSAL, true},
        {2048, 2048, 32, 8, 128, MASK_CAUSAL, false},
        {4096, 4096, 32, 8, 128, MASK_CAUSAL, true},
        {8192, 8192, 32, 8, 128, MASK_CAUSAL, false},
        {16384, 16384, 32, 8, 128, MASK_CAUSAL, true},
        {32768, 32768, 8, 1, 128, MASK_CAUSAL, false},
        {1024, 1024, 32, 8, 128, MASK_FULL, true},
        {2048, 2048, 32, 8, 128, MASK_FULL, false},
        {4096, 4096, 32, 8, 128, MASK_FULL, true},
        {8192, 8192, 32, 8, 128, MASK_FULL, false},
        {2048, 16384, 32, 8, 128, MASK_FULL, true},
        {16384, 2048, 32, 8, 128, MASK_FULL, false},
        {4096, 4096, 8, 1, 128, MASK_FULL, false},
        {4096, 4096, 8, 8, 128, MASK_FULL, false},
        {4096, 4096, 32, 32, 64, MASK_CAUSAL, true},
        {8192, 8192, 16, 16, 64, MASK_FULL, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (int backward = 0; backward < 2; backward++)
            if (!quick || sizes[i].quick)
                microbench_list_add_attention_case(
                    list, POINT_WORK, ATTENTION_CUDNN,
                    (struct work){.kind = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION,
                                  .attention = {sizes[i].q, sizes[i].kv, sizes[i].heads,
                                                sizes[i].kv_heads, sizes[i].dim, sizes[i].mask, 0,
                                                0}});
}

/* Adds points that show how much a kernel is slowed by copies that run at the same time, and by another kernel that
 * occupies multiprocessors, as a library's communication does. Each op is also measured without either. */
static void add_interference_cases(struct microbench_list *list)
{
    const struct work product = {.kind = WORK_MATMUL,
                                 .matmul = {8192, 8192, 8192, MATMUL_NT, 0, 0}};
    const struct work tile = {.kind = WORK_ATTENTION,
                              .attention = {8192, 8192, 32, 8, 128, MASK_CAUSAL, 0, 0}};
    const struct work norm = {.kind = WORK_RMSNORM, .rows = {16384, 4096, 0}};
    const struct work *const works[] = {&product, &tile, &norm};
    static const enum point_role roles[] = {POINT_WORK, POINT_BESIDE, POINT_SM_HOG};
    for (size_t w = 0; w < ARRAY_LEN(works); w++)
        for (size_t r = 0; r < ARRAY_LEN(roles); r++)
            microbench_list_add_attention_case(list, roles[r],
                                               works[w]->kind == WORK_ATTENTION
                                                   ? ATTENTION_CUDNN
                                                   : (enum attention_impl)POINT_NO_IMPL,
                                               *works[w]);
}

/* Adds the point of the role SUSTAINED, from which calibration fits the power of the device; no other point can replace
 * it. The same product in a short run is added, too. */
static void add_sustained_case(struct microbench_list *list)
{
    const struct work product = {.kind = WORK_MATMUL,
                                 .matmul = {8192, 8192, 8192, MATMUL_NT, 0, 0}};
    microbench_add_case(list, POINT_WORK, product);
    microbench_add_case(list, POINT_SUSTAINED, product);
}

static void add_pageable_and_two_way_copies(struct microbench_list *list, int64_t bytes)
{
    static const enum point_role roles[] = {POINT_BOTH_WAYS, POINT_PAGEABLE};
    for (size_t r = 0; r < ARRAY_LEN(roles); r++)
        for (int out = 0; out < 2; out++)
            microbench_add_case(
                list, roles[r],
                (struct work){.kind = out ? WORK_D2H : WORK_H2D, .copy = {bytes, 0}});
}

static void add_all_cases(struct microbench_list *list, bool quick)
{
    static const struct microbench_widths widths = {4096, 32768, 32, 128};
    static const int64_t counts[] = {1 << 20, 1 << 26, 1 << 23};
    microbench_add_issue_cases(list);
    add_product_cases(list, quick);
    add_attention_cases(list, quick);
    for (size_t i = 0; i < (quick ? 2 : ARRAY_LEN(counts)); i++)
        microbench_add_memory_bound_cases(list, counts[i], false, &widths, ATTENTION_CUDNN);
    for (int64_t bytes = 4 << 10; bytes <= 256 << 20 && list->message_rank_count > 1;
         bytes *= quick ? 64 : 4)
        microbench_add_message_cases(list, bytes);
    for (int64_t bytes = 4 << 10; bytes <= 1 << 30; bytes *= quick ? 64 : 4)
        microbench_add_copy_cases(list, bytes);
    for (int64_t bytes = 64 << 10; bytes <= 256 << 20; bytes *= quick ? 64 : 16)
        add_pageable_and_two_way_copies(list, bytes);
}

size_t microbench_list_gpu_cases(const struct microbench_case **cases, struct arena *arena,
                                 bool quick, uint32_t ranks, const bool *kinds)
{
    struct microbench_list list = {
        .arena = arena, .is_wanted_by_kind = kinds, .message_rank_count = ranks};
    add_all_cases(&list, true);
    if (!quick)
        add_sustained_case(&list);
    add_interference_cases(&list);
    if (!quick)
        add_all_cases(&list, false);
    *cases = list.cases;
    return list.count;
}
