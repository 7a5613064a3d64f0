/* tests/exec/test_offload_ratio.c: activations that are offloaded by ratio return unchanged. All pipelines but TeraPipe
 * and Seq1F1B, also with tensors of which only a part is offloaded, with and without a profile's waits for copies
 * (offload_waits_per_unit), compute the reference's step. */
#include "schedule/choices/profile.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "tests/exec/matrix.h"

static const struct {
    int pipeline;
    int64_t pp, tp, units;
    double ratio, hidden;
    bool waits;
    int64_t subsequences;
} rows[] = {
    /* pipeline, pp, tp, units, ratio, hidden, waits, subsequences */
    {CHOICE_PIPELINE_GPIPE, 2, 1, 3, 1, 0, false, 0},
    {CHOICE_PIPELINE_GPIPE, 2, 1, 4, 0.37, 0, true, 0},
    {CHOICE_PIPELINE_GPIPE, 1, 1, 2, 1, 0, true, 0},
    {CHOICE_PIPELINE_1F1B, 3, 1, 4, 0.6, 0, true, 0},
    {CHOICE_PIPELINE_1F1B, 2, 2, 3, 1, 0, true, 0},
    {CHOICE_PIPELINE_1F1B, 2, 2, 3, 0, 20000, false, 0},
    {CHOICE_PIPELINE_INTERLEAVED, 2, 1, 4, 0.8, 0, true, 0},
    {CHOICE_PIPELINE_ZB_1P, 2, 2, 4, 0.5, 0, false, 0},
    {CHOICE_PIPELINE_ZB_V, 2, 1, 4, 0.9, 0, true, 0},
    /* 8 tokens a subsequence: shared by four stages each gets 2, and shared by three the last gets 2 as well */
    {CHOICE_PIPELINE_MSP, 4, 1, 1, 1, 0, true, 7},
    {CHOICE_PIPELINE_MSP, 4, 1, 2, 0.7, 0, false, 7},
};

static uint64_t bytes_copied_to_host(const struct choices *choices)
{
    struct ir ir = {0};
    struct diag diag = {0};
    uint64_t bytes = 0;
    step_build(&ir, choices, &diag);
    for (uint32_t op = 0; op < ir.op.count; op++)
        if (ir.op.kind[op] == WORK_D2H)
            bytes += (uint64_t)ir_work(&ir, op)->copy.bytes;
    ir_release(&ir);
    diag_release(&diag);
    return bytes;
}

static void offloaded_elements_are_copied_back(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct profile profile;
        struct choices choices;
        struct diag diag = {0};
        struct request request = {
            .model = &shapes[5],
            .profile = "ideal",
            .strategy = "local",
            .weights = CHOICE_WEIGHTS_ZERO1,
            .activations = CHOICE_ACTIVATIONS_RATIO,
            .optimizer = -1,
            .attention_impl = ATTENTION_CPU,
            .dtype = DTYPE_F32,
            .ranks = rows[i].pp * rows[i].tp,
            .pp = rows[i].pp,
            .tp = rows[i].tp,
            .pipeline = rows[i].pp > 1 ? rows[i].pipeline : 0,
            .seq = rows[i].subsequences > 0 ? 8 * rows[i].subsequences : 24,
            .subsequences = rows[i].subsequences,
            .global_batch = rows[i].units,
            .offload_ratio = rows[i].ratio,
            .offload_hidden_bytes = rows[i].hidden,
            .sm = 80,
            .gpus_per_node = 8,
        };
        CHECK_INT("resolve", resolve_choices(&choices, &request, NULL, &diag), STATUS_OK);
        if (diag.text != NULL)
            fputs(diag.text, stderr);
        profile = *choices.profile;
        profile.offload_waits_per_unit = rows[i].waits;
        choices.profile = &profile;
        check_choices(&choices, true);
        CHECK("something leaves, where the backward does not come next",
              (bytes_copied_to_host(&choices) > 0) == (rows[i].pp > 1));
        diag_release(&diag);
    }
}

/* Twice the ratio moves twice the bytes of those activations that may be offloaded. */
static void bytes_follow_the_ratio(void)
{
    struct choices choices;
    struct diag diag = {0};
    struct request request = {.model = &shapes[0],
                              .profile = "ideal",
                              .strategy = "local",
                              .weights = CHOICE_WEIGHTS_ZERO1,
                              .activations = CHOICE_ACTIVATIONS_RATIO,
                              .optimizer = -1,
                              .attention_impl = ATTENTION_CPU,
                              .dtype = DTYPE_F32,
                              .ranks = 2,
                              .pp = 2,
                              .pipeline = CHOICE_PIPELINE_GPIPE,
                              .seq = 64,
                              .global_batch = 3,
                              .sm = 80,
                              .gpus_per_node = 8};
    CHECK_INT("resolve", resolve_choices(&choices, &request, NULL, &diag), STATUS_OK);
    double all = (double)bytes_copied_to_host(&choices);
    for (int quarters = 1; quarters < 4; quarters++) {
        double ratio = quarters / 4.0;
        choices.offload_ratio = ratio;
        CHECK_CLOSE("bytes", (double)bytes_copied_to_host(&choices), ratio * all, 1e-3);
    }
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"what leaves comes back", offloaded_elements_are_copied_back},
    {"bytes follow the ratio", bytes_follow_the_ratio},
};
CHECK_MAIN("offload ratio", cases)
