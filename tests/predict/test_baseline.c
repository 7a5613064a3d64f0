/* tests/predict/test_baseline.c: LoongTrain's closed form of a step gives what is worked out by hand. */
#include "predict/validate/baseline.h"

#include "tests/check.h"

/* The test's step: two layers; a ring of 4 in windows of 2; links of 2 and 0.5 GB/s; a peak of 1 Tflop/s, of which
 * the cases reach half. */
static const struct baseline small = {
    .tile_flops = 1e12,
    .linear_flops = 3e12,
    .message_bytes = 1e9,
    .inner_bytes_per_s = 2e9,
    .outer_bytes_per_s = 0.5e9,
    .forward_all_to_alls_s = 0.1,
    .cp = 4,
    .window = 2,
    .layers = 2,
    .peak_flop_per_s = 1e12,
    .forwards_per_step = 2,
    .core_forwards_per_step = 1,
    .sequences_of_context_group = 1,
};

/* The step by hand. Attention's forward of a layer: tiles of 2 s while messages take 0.5 s inside a window and 2 s
 * outside: 0.1 + 2 (2 + 2). Its backward: tiles of 5 s while messages take 1 and 4 s: 0.1 + 2 (5 + 5). Products of
 * both layers: two forwards of 6 s, and a backward of 12 s. */
static void baseline_step_time_by_hand(void)
{
    struct baseline operator= small, links = small, alone = small;
    operator.predicts_attention_operator_only = true;
    CHECK_CLOSE("operator", baseline_step_s(&operator, 0.5), 8.1 + 20.1, 1e-12);
    CHECK_CLOSE("step", baseline_step_s(&small, 0.5), 2 * (8.1 + 20.1) + 4 * 6, 1e-12);
    CHECK_CLOSE("exchange", baseline_exchange_s(&small), 0.2, 1e-12);
    links.predicts_attention_operator_only = true;
    links.outer_bytes_per_s = 0.1e9; /* messages of 10 and 20 s */
    CHECK_CLOSE("slow links", baseline_step_s(&links, 0.5), 0.2 + 2 * (2 + 10) + 2 * (5 + 20),
                1e-12);
    alone.predicts_attention_operator_only = true;
    alone.cp = alone.window = 1;
    CHECK_CLOSE("no ring", baseline_step_s(&alone, 0.5), 0.2 + 2 + 5, 1e-12);
}

static const struct check_case cases[] = {
    {"a step takes what a person works out", baseline_step_time_by_hand},
};
CHECK_MAIN("predict/baseline", cases)
