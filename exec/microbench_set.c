/* The points that bench measures on a CPU: kinds of work over sizes that determine the numbers of the cost model
 * (docs/measuring.md). exec/microbench_gpu.c calls some of its functions, too. */
#include "exec/microbench_list.h"

#include "models/frozen_storage.h"

#include <string.h>

/* Adds matrix products: large and small sides, large and small k, each form, and one with a single row, which memory
 * bandwidth limits. */
static void add_product_cases(struct microbench_list *set, bool quick)
{
    static const struct {
        int64_t m, n, k, form;
        bool quick;
    } sizes[] = {
        {128, 128, 128, MATMUL_NT, false},   {256, 256, 256, MATMUL_NT, true},
        {512, 512, 512, MATMUL_NT, true},    {1024, 1024, 1024, MATMUL_NT, true},
        {256, 1024, 256, MATMUL_NT, false},  {1024, 256, 1024, MATMUL_NN, true},
        {64, 512, 512, MATMUL_NT, true},     {16, 512, 512, MATMUL_NT, false},
        {2048, 512, 128, MATMUL_NT, true},   {2048, 128, 512, MATMUL_NN, true},
        {4096, 256, 256, MATMUL_NT, true},   {4096, 256, 256, MATMUL_NN, false},
        {256, 256, 4096, MATMUL_TN, true},   {512, 512, 2048, MATMUL_TN, true},
        {128, 512, 2048, MATMUL_TN, false},  {512, 2048, 64, MATMUL_NT, false},
        {1024, 1024, 64, MATMUL_NT, true},   {2048, 2048, 32, MATMUL_NT, false},
        {1024, 2048, 512, MATMUL_NN, false}, {1, 2048, 2048, MATMUL_NT, true},
        {2, 2048, 1024, MATMUL_NT, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (!quick || sizes[i].quick)
            microbench_add_case(
                set, POINT_WORK,
                (struct work){.kind = WORK_MATMUL,
                              .matmul = {sizes[i].m, sizes[i].n, sizes[i].k, sizes[i].form, 0, 0}});
}

/* Adds attention for each head dim: squares with and without a mask, long and short sides, and grouped heads. */
static void add_attention_cases(struct microbench_list *set, bool quick)
{
    static const int64_t dims[] = {64, 32, 128, 16};
    static const struct {
        int64_t q, kv, heads, kv_heads, mask;
        bool quick;
    } sizes[] = {
        {1024, 1024, 2, 2, MASK_CAUSAL, true},  {512, 512, 4, 4, MASK_CAUSAL, false},
        {256, 256, 8, 2, MASK_CAUSAL, true},    {512, 512, 4, 2, MASK_FULL, true},
        {256, 2048, 2, 1, MASK_FULL, true},     {2048, 256, 2, 1, MASK_FULL, false},
        {2048, 2048, 1, 1, MASK_CAUSAL, false}, {128, 128, 8, 8, MASK_CAUSAL, true},
    };
    for (size_t d = 0; d < (quick ? 3 : ARRAY_LEN(dims)); d++)
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
            for (int backward = 0; backward < 2; backward++)
                if (!quick || sizes[i].quick)
                    microbench_list_add_attention_case(
                        set, POINT_WORK, ATTENTION_CPU,
                        (struct work){.kind = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION,
                                      .attention = {sizes[i].q, sizes[i].kv, sizes[i].heads,
                                                    sizes[i].kv_heads, dims[d], sizes[i].mask, 0,
                                                    0}});
}

void microbench_add_memory_bound_cases(struct microbench_list *set, int64_t count, bool host,
                                       const struct microbench_widths *widths,
                                       enum attention_impl impl)
{
    const int64_t COLS = widths->cols, VOCAB = widths->vocab, HEADS = widths->heads;
    const int64_t DIM = widths->dim, rows = count / COLS, parts = 4, copies = 4;
    const struct work works[] = {
        {.kind = WORK_RMSNORM, .rows = {rows, COLS, 0}},
        {.kind = WORK_RMSNORM_BACKWARD, .rows = {rows, COLS, 0}},
        {.kind = WORK_LAYERNORM, .rows = {rows, COLS, 0}},
        {.kind = WORK_LAYERNORM_BACKWARD, .rows = {rows, COLS, 0}},
        {.kind = WORK_ROPE, .rope = {rows, HEADS, DIM, 0}},
        {.kind = WORK_ROPE_BACKWARD, .rope = {rows, HEADS, DIM, 0}},
        {.kind = WORK_LATENT_KEYS, .latent_keys = {rows, HEADS, DIM, DIM / 2, DIM}},
        {.kind = WORK_LATENT_KEYS_BACKWARD, .latent_keys = {rows, HEADS, DIM, DIM / 2, DIM}},
        {.kind = WORK_SINK, .sink = {rows, HEADS, DIM, HEADS}},
        {.kind = WORK_SINK_BACKWARD, .sink = {rows, HEADS, DIM, HEADS}},
        {.kind = WORK_SWIGLU, .rows = {rows, COLS, 0}},
        {.kind = WORK_SWIGLU_BACKWARD, .rows = {rows, COLS, 0}},
        {.kind = WORK_GELU, .rows = {rows, COLS, 0}},
        {.kind = WORK_GELU_BACKWARD, .rows = {rows, COLS, 0}},
        {.kind = WORK_ROUTE, .route = {rows, COLS / 4, 8, ROUTE_SOFTMAX, 1, 0}},
        {.kind = WORK_ROUTE_BACKWARD, .route = {rows, COLS / 4, 8, ROUTE_SOFTMAX, 1, 0}},
        {.kind = WORK_PERMUTE, .permute = {rows / copies, COLS, copies}},
        {.kind = WORK_UNPERMUTE,
         .permute = {.rows = rows / copies, .cols = COLS, .copies = copies, .weights = 1}},
        {.kind = WORK_UNPERMUTE_BACKWARD, .permute = {rows / copies, COLS, copies}},
        {.kind = WORK_PERMUTE_WEIGHTS, .permute = {rows / copies, 1, copies}},
        {.kind = WORK_PERMUTE_WEIGHTS_BACKWARD, .permute = {rows / copies, 1, copies}},
        {.kind = WORK_EMBEDDING, .embedding = {rows, COLS, VOCAB, 0}},
        {.kind = WORK_EMBEDDING_BACKWARD, .embedding = {rows, COLS, VOCAB, 0}, .reads = 3},
        {.kind = WORK_CROSS_ENTROPY, .cross_entropy = {count / VOCAB, VOCAB, count, 0}},
        {.kind = WORK_CROSS_ENTROPY_BACKWARD, .cross_entropy = {count / VOCAB, VOCAB, count, 0}},
        {.kind = WORK_CROSS_ENTROPY_PARTIAL, .cross_entropy = {count / VOCAB, VOCAB, 0, 0}},
        {.kind = WORK_CROSS_ENTROPY_PARTIAL_BACKWARD,
         .loss_backward = {count / VOCAB, VOCAB, count}},
        {.kind = WORK_ADD, .elements = {count}},
        {.kind = WORK_CAST, .elements = {count}},
        {.kind = WORK_FILL, .elements = {count}},
        {.kind = WORK_PACK, .pack = {rows, parts, {COLS / 4, 0, 0}}},
        {.kind = WORK_UNPACK, .pack = {rows, parts, {COLS / 4, 0, 0}}},
        {.kind = WORK_HEAD_EXPAND, .heads = {rows / copies, HEADS, DIM, copies}},
        {.kind = WORK_HEAD_REDUCE, .heads = {rows / copies, HEADS, DIM, copies}},
        {.kind = WORK_COLUMN_SUM, .rows = {rows, COLS, 0}},
        {.kind = WORK_ADAMW, .elements = {count}},
        {.kind = WORK_SQUARE_SUM, .square_sum = {count, 0, 0}},
        {.kind = WORK_CLIP, .elements = {count}},
        {.kind = WORK_QUANTISE, .quantise = {rows, COLS, SCALING_TENSOR, 0, 1, 1}},
        {.kind = WORK_DEQUANTISE, .dequantise = {rows, COLS, FROZEN_STORAGE_NF4}},
    };
    for (size_t i = 0; i < ARRAY_LEN(works); i++)
        if (!host || works[i].kind == WORK_ADAMW)
            microbench_add_case(set, host ? POINT_HOST : POINT_WORK, works[i]);
    if (!host)
        microbench_list_add_attention_case(
            set, POINT_WORK, impl, (struct work){.kind = WORK_MERGE, .merge = {rows, HEADS, DIM}});
}

void microbench_add_copy_cases(struct microbench_list *set, int64_t bytes)
{
    for (int i = 0; i < 2; i++)
        microbench_add_case(set, POINT_WORK,
                            (struct work){.kind = i ? WORK_D2H : WORK_H2D, .copy = {bytes, 0}});
}

void microbench_add_message_cases(struct microbench_list *set, int64_t bytes)
{
    static const enum work_kind kinds[] = {WORK_ALL_REDUCE, WORK_ALL_GATHER, WORK_REDUCE_SCATTER,
                                           WORK_ALL_TO_ALL, WORK_REDUCE,     WORK_BROADCAST,
                                           WORK_SCATTER};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct work work = {.kind = (uint8_t)kinds[i], .p = {set->message_rank_count, bytes}};
        microbench_add_case(set, POINT_WORK, work);
    }
    microbench_add_case(
        set, POINT_WORK,
        (struct work){.kind = WORK_SHIFT, .p2p = {set->message_rank_count, 1, bytes, 0}});
}

void microbench_add_issue_cases(struct microbench_list *set)
{
    microbench_add_case(set, POINT_START, (struct work){.kind = WORK_FILL, .elements = {1}});
    microbench_add_case(set, POINT_ISSUE, (struct work){.kind = WORK_ADD, .elements = {1}});
    microbench_add_case(set, POINT_ISSUE, (struct work){.kind = WORK_FILL, .elements = {1}});
    microbench_add_case(set, POINT_ISSUE,
                        (struct work){.kind = WORK_ALL_REDUCE, .all_reduce = {1, 64, 0, 0, 0}});
    microbench_add_case(set, POINT_ISSUE, (struct work){.kind = WORK_H2D, .copy = {64, 0}});
    microbench_add_case(set, POINT_ISSUE, (struct work){.kind = WORK_HOST_SYNC});
}

static void add_all_cases(struct microbench_list *set, bool quick)
{
    static const struct microbench_widths widths = {512, 2048, 8, 64};
    static const int64_t counts[] = {1 << 14, 1 << 20, 1 << 17, 1 << 21};
    static const int64_t bytes[] = {64 << 10, 4 << 20, 1 << 20, 256 << 10, 16 << 20};
    size_t sizes = quick ? 2 : ARRAY_LEN(counts), messages = quick ? 3 : ARRAY_LEN(bytes);
    microbench_add_issue_cases(set);
    add_product_cases(set, quick);
    add_attention_cases(set, quick);
    for (size_t i = 0; i < sizes; i++)
        microbench_add_memory_bound_cases(set, counts[i], false, &widths, ATTENTION_CPU);
    for (size_t i = 0; i < sizes; i++)
        microbench_add_memory_bound_cases(set, counts[i], true, &widths, ATTENTION_CPU);
    for (size_t i = 0; i < messages; i++)
        microbench_add_copy_cases(set, bytes[i]);
    for (size_t i = 0; i < messages && set->message_rank_count > 1; i++)
        microbench_add_message_cases(set, bytes[i]);
}

size_t microbench_list_cases(const struct microbench_case **cases, struct arena *arena, bool quick,
                             uint32_t ranks, const bool *kinds)
{
    struct microbench_list set = {
        .arena = arena, .is_wanted_by_kind = kinds, .message_rank_count = ranks};
    add_all_cases(&set, true);
    if (!quick)
        add_all_cases(&set, false);
    *cases = set.cases;
    return set.count;
}
