/* tests/predict/test_documents.c: laws of the time and the MFU of steps over packed documents. */
#include "predict/bounds.h"
#include "predict/longhaul.h"
#include "schedule/ir/documents.h"
#include "tests/check.h"

#include <stdio.h>

enum { SEQ = 65536, BATCH = 4 };

/* Predicts Llama 3 8B on 16 GPUs: two replicas of two micro-batches. length: document lengths per sequence,
 * ended by 0; NULL: no documents. */
static struct prediction_result predict(const char *strategy, int layout,
                                        const int64_t (*length)[4], bool exact)
{
    struct setup setup = {0};
    struct prediction prediction = {0};
    struct prediction_result result = {0};
    struct arena arena = {0};
    struct documents documents;
    struct diag diag = {0};
    enum status status = setup_load_model(&setup, "llama3-8b", NULL, NULL, &diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, "dgx-h100", 2, 16, &diag);
    documents_init(&documents, &arena, BATCH);
    for (uint32_t s = 0; s < BATCH && length != NULL; s++) {
        uint32_t count = 0;
        while (count < 4 && length[s][count] > 0)
            count++;
        documents_set_lengths(&documents, &arena, s, length[s], count);
    }
    if (status == STATUS_OK) {
        setup_open_request(&setup);
        setup.request.strategy = strategy;
        setup.request.profile = "ideal";
        setup.request.ring_layout = layout;
        setup.request.dp = 2;
        setup.request.seq = SEQ;
        setup.request.global_batch = BATCH;
        setup.request.activations = CHOICE_ACTIVATIONS_FULL;
        if (length != NULL)
            setup.request.documents = &documents;
        status = prediction_make(&prediction, &setup, &setup.request, exact, &diag);
    }
    if (CHECK_INT(strategy, status, STATUS_OK)) {
        prediction_read(&result, &prediction);
        CHECK("what plan takes for the least",
              bound_step_s(&setup, &prediction.choices) <= result.step_s);
        CHECK("the busiest kernels", prediction_bound_s(&prediction) <= result.step_s);
    } else {
        fputs(diag.text, stderr);
    }
    prediction_release(&prediction);
    setup_release(&setup);
    arena_release(&arena);
    diag_release(&diag);
    return result;
}

static struct prediction_result predicted(const char *strategy, int layout,
                                          const int64_t (*length)[4])
{
    return predict(strategy, layout, length, false);
}

static const int64_t whole[BATCH][4] = {{SEQ}, {SEQ}, {SEQ}, {SEQ}};
static const int64_t packed[BATCH][4] = {{32768, 16384, 8192, 8192},
                                         {8192, 8192, 32768, 16384},
                                         {16384, 8192, 8192, 32768},
                                         {32768, 8192, 16384, 8192}};
static const int64_t ordered[BATCH][4] = {{32768, 16384, 8192, 8192},
                                          {32768, 16384, 8192, 8192},
                                          {32768, 16384, 8192, 8192},
                                          {32768, 16384, 8192, 8192}};
/* The sequences of the first replica are packed; those of the second are one document each. */
static const int64_t uneven[BATCH][4] = {
    {16384, 16384, 16384, 16384}, {16384, 16384, 16384, 16384}, {SEQ}, {SEQ}};

static void laws_of_time(void)
{
    double none = predicted("ulysses", RING_ZIGZAG, NULL).step_s;
    double step_s = predicted("ulysses", RING_ZIGZAG, ordered).step_s;
    CHECK_CLOSE("one document is causal", predicted("ulysses", RING_ZIGZAG, whole).step_s, none,
                1e-12);
    CHECK("documents take less", step_s < 0.9 * none);
    /* kernels sum the same blocks in another order */
    CHECK_CLOSE("order is nothing", predicted("ulysses", RING_ZIGZAG, packed).step_s, step_s, 1e-9);
    CHECK_CLOSE("the slowest replica decides", predicted("ulysses", RING_ZIGZAG, uneven).step_s,
                none, 0.01);
}

/* A ring whose ranks compute different numbers of pairs waits for the slowest; a ring that cuts each document
 * over its ranks does not. */
static void cut_documents_are_even(void)
{
    static const int64_t skewed[BATCH][4] = {{49152, 8192, 4096, 4096},
                                             {49152, 8192, 4096, 4096},
                                             {49152, 8192, 4096, 4096},
                                             {49152, 8192, 4096, 4096}};
    double cut = predicted("ring", RING_ZIGZAG_DOCUMENTS, skewed).step_s;
    CHECK("contiguous", predicted("ring", RING_CONTIGUOUS, skewed).step_s > 1.1 * cut);
    CHECK("zigzag of the whole", predicted("ring", RING_ZIGZAG, skewed).step_s > cut);
}

/* Documents of 1/2, 1/4, 1/8 and 1/8 of a sequence have 1/4 + 1/16 + 2/64 = 11/32 of its causal pairs. */
static void mfu_counts_visible_pairs(void)
{
    struct prediction_result causal = predicted("ulysses", RING_ZIGZAG, NULL);
    struct prediction_result seen = predicted("ulysses", RING_ZIGZAG, packed);
    /* flops of a forward per token: 2 x 7.5 billion weights, and 32 layers x 4096 x 2 x SEQ / 2 pairs */
    double linear = 2.0 * (8030261248.0 - 128256.0 * 4096 - 65 * 4096),
           core = 32.0 * 4096 * 2 * SEQ;
    double want = (linear + 11.0 / 32 * core) / (linear + core);
    CHECK_CLOSE("flops of a step",
                seen.mfu[MFU_LONGHAUL] * seen.step_s / (causal.mfu[MFU_LONGHAUL] * causal.step_s),
                want, 1e-6);
}

/* Folding ranks, or leaving out repeated parts of a schedule, changes neither times nor flops. */
static void folded_is_exact(void)
{
    static const char *const strategies[] = {"ulysses", "ring"};
    for (size_t i = 0; i < 2 * ARRAY_LEN(strategies); i++) {
        const int64_t(*length)[4] = i % 2 == 0 ? uneven : ordered;
        struct prediction_result exact = predict(strategies[i / 2], RING_ZIGZAG, length, true);
        struct prediction_result folded = predict(strategies[i / 2], RING_ZIGZAG, length, false);
        CHECK_CLOSE(strategies[i / 2], folded.step_s, exact.step_s, 1e-9);
        CHECK_CLOSE(strategies[i / 2], folded.hfu, exact.hfu, 1e-9);
    }
}

static const struct check_case cases[] = {
    {"folded is exact", folded_is_exact},
    {"laws of time", laws_of_time},
    {"cut documents are even", cut_documents_are_even},
    {"MFU counts visible pairs", mfu_counts_visible_pairs},
};
CHECK_MAIN("predicted documents", cases)
