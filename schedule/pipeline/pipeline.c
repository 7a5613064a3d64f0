#include "schedule/pipeline/pipeline.h"

#include "schedule/choices/profile.h"
#include "schedule/pipeline/multiplex.h"
#include "schedule/pipeline/orders.h"

#include <stdio.h>

/* clang-format off */
static const struct pipeline pipelines[CHOICE_PIPELINE_COUNT] = {
    [CHOICE_PIPELINE_NONE] =
        {.name = "none", .summary = "all layers on every rank",
         .order = order_all_forward, .subsequences = true, .chunks = 1},
    [CHOICE_PIPELINE_GPIPE] =
        {.name = "gpipe", .summary = "all forwards, then all backwards",
         .order = order_all_forward, .chunks = 1},
    [CHOICE_PIPELINE_1F1B] =
        {.name = "1f1b", .summary = "one forward, one backward in turn (PipeDream-Flush)",
         .order = order_one_f_one_b, .chunks = 1},
    [CHOICE_PIPELINE_INTERLEAVED] =
        {.name = "interleaved", .summary = "1f1b over several chunks of layers a stage (Megatron-LM)",
         .order = order_interleaved, .subsequences = true},
    [CHOICE_PIPELINE_ZB_1P] =
        {.name = "zb-1p", .summary = "1f1b with gradients of weights put off into the drain (ZB-H1)",
         .order = order_one_f_one_b, .subsequences = true, .splits = true, .chunks = 1},
    [CHOICE_PIPELINE_ZB_V] =
        {.name = "zb-v", .summary = "the same with two chunks, down the stages and back up (ZB-V)",
         .order = order_zb_v, .subsequences = true, .splits = true, .chunks = 2, .folded = true},
    [CHOICE_PIPELINE_TERAPIPE] =
        {.name = "terapipe", .summary = "gpipe over subsequences",
         .order = order_all_forward, .subsequences = true, .chunks = 1},
    [CHOICE_PIPELINE_SEQ1F1B] =
        {.name = "seq1f1b", .summary = "1f1b over subsequences",
         .order = order_one_f_one_b, .subsequences = true, .chunks = 1},
    [CHOICE_PIPELINE_MSP] =
        {.name = "msp", .summary = "terapipe whose idle stages share the first and last subsequences (SPPO)",
         .order = order_multiplexed, .subsequences = true, .multiplexed = true, .chunks = 1},
};
/* clang-format on */

const struct pipeline *pipeline_row(enum pipeline_choice choice)
{
    return &pipelines[choice];
}

const struct pipeline *pipeline_of(const struct choices *c)
{
    return &pipelines[c->pipeline];
}

bool pipeline_has_remote_weights(const struct choices *c)
{
    return pipeline_of(c)->multiplexed && c->helpers != HELPERS_REPLICATE;
}

bool pipeline_replicates_weights(const struct choices *c)
{
    return pipeline_of(c)->multiplexed && c->helpers == HELPERS_REPLICATE;
}

bool pipeline_shards_weights(const struct choices *c)
{
    return pipeline_of(c)->multiplexed && c->helpers == HELPERS_SHARD;
}

uint32_t pipeline_units(const struct choices *c)
{
    return c->accumulation * c->subsequences;
}

uint32_t pipeline_chunks(const struct choices *c)
{
    return c->pp * c->virtual_stages;
}

uint32_t pipeline_chunks_at(const struct choices *c)
{
    return pipeline_of(c)->multiplexed ? pipeline_chunks(c) : c->virtual_stages;
}

uint32_t pipeline_chunk(const struct choices *c, uint32_t stage, uint32_t v)
{
    if (pipeline_of(c)->multiplexed)
        return v;
    return pipeline_of(c)->folded && v == 1 ? 2 * c->pp - 1 - stage : v * c->pp + stage;
}

uint32_t pipeline_stage(const struct choices *c, uint32_t chunk)
{
    return pipeline_of(c)->folded && chunk >= c->pp ? 2 * c->pp - 1 - chunk : chunk % c->pp;
}

bool pipeline_ends_tied(const struct choices *c)
{
    return c->model->tied_head && !pipeline_replicates_weights(c) &&
           pipeline_stage(c, 0) != pipeline_stage(c, pipeline_chunks(c) - 1);
}

bool pipeline_is_plain(const struct choices *c)
{
    const struct pipeline *row = pipeline_of(c);
    return c->pp > 1 && c->virtual_stages == 1 && !row->splits && !row->multiplexed;
}

bool pipeline_awaits_messages(const struct choices *c)
{
    return c->profile->messages_sync && pipeline_is_plain(c);
}

struct layer_range pipeline_layers(const struct choices *c, uint32_t chunk)
{
    uint64_t layers = (uint64_t)c->model->layers, chunks = pipeline_chunks(c);
    return (struct layer_range){(uint32_t)(layers * chunk / chunks),
                                (uint32_t)(layers * (chunk + 1) / chunks)};
}

int64_t pipeline_prefix(const struct choices *c, uint32_t s)
{
    int64_t tokens = 0;
    if (c->lengths == NULL)
        return c->seq / c->subsequences * s;
    for (uint32_t i = 0; i < s; i++)
        tokens += c->lengths[i];
    return tokens;
}
