/* schedule/pipeline/pipeline_rows.c: the table of pipelines. schedule/pipeline/pipeline.h describes its columns. */
#include "schedule/pipeline/orders.h"

/* clang-format off */
static const struct pipeline pipelines[CHOICE_PIPELINE_COUNT] = {
    [CHOICE_PIPELINE_NONE] =
        {.name = "none", .summary = "all layers on every rank",
         .order = order_all_forward, .has_subsequences = true, .chunks_per_stage = 1},
    [CHOICE_PIPELINE_GPIPE] =
        {.name = "gpipe", .summary = "all forwards, then all backwards",
         .order = order_all_forward, .chunks_per_stage = 1},
    [CHOICE_PIPELINE_1F1B] =
        {.name = "1f1b", .summary = "one forward, one backward in turn (PipeDream-Flush)",
         .order = order_one_f_one_b, .chunks_per_stage = 1},
    [CHOICE_PIPELINE_INTERLEAVED] =
        {.name = "interleaved", .summary = "1f1b over several chunks of layers a stage (Megatron-LM)",
         .order = order_interleaved, .has_subsequences = true},
    [CHOICE_PIPELINE_ZB_1P] =
        {.name = "zb-1p", .summary = "1f1b with gradients of weights put off into the drain (ZB-H1)",
         .order = order_one_f_one_b, .has_subsequences = true, .splits_backward = true, .chunks_per_stage = 1},
    [CHOICE_PIPELINE_ZB_V] =
        {.name = "zb-v", .summary = "the same with two chunks, down the stages and back up (ZB-V)",
         .order = order_zb_v, .has_subsequences = true, .splits_backward = true, .chunks_per_stage = 2, .is_folded = true},
    [CHOICE_PIPELINE_TERAPIPE] =
        {.name = "terapipe", .summary = "gpipe over subsequences",
         .order = order_all_forward, .has_subsequences = true, .chunks_per_stage = 1},
    [CHOICE_PIPELINE_SEQ1F1B] =
        {.name = "seq1f1b", .summary = "1f1b over subsequences",
         .order = order_one_f_one_b, .has_subsequences = true, .chunks_per_stage = 1},
    [CHOICE_PIPELINE_MSP] =
        {.name = "msp", .summary = "terapipe whose idle stages share the first and last subsequences (SPPO)",
         .order = order_multiplexed, .has_subsequences = true, .is_multiplexed = true, .chunks_per_stage = 1},
};
/* clang-format on */

const struct pipeline *pipeline_of_choice(enum pipeline_choice choice)
{
    return &pipelines[choice];
}

const struct pipeline *pipeline_of_choices(const struct choices *c)
{
    return &pipelines[c->pipeline];
}
