#include "schedule/pipeline/pipeline.h"

#include "schedule/choices/profile.h"

bool pipeline_has_remote_weights(const struct choices *c)
{
    return pipeline_of_choices(c)->is_multiplexed && c->helpers != HELPERS_REPLICATE;
}

bool pipeline_replicates_weights(const struct choices *c)
{
    return pipeline_of_choices(c)->is_multiplexed && c->helpers == HELPERS_REPLICATE;
}

bool pipeline_shards_weights(const struct choices *c)
{
    return pipeline_of_choices(c)->is_multiplexed && c->helpers == HELPERS_SHARD;
}

uint32_t pipeline_unit_count(const struct choices *c)
{
    return c->accumulation * c->subsequences;
}

uint32_t pipeline_chunk_count(const struct choices *c)
{
    return c->pp * c->virtual_stages;
}

uint32_t pipeline_chunk_count_of_stage(const struct choices *c)
{
    return pipeline_of_choices(c)->is_multiplexed ? pipeline_chunk_count(c) : c->virtual_stages;
}

uint32_t pipeline_chunk_of_stage(const struct choices *c, uint32_t stage, uint32_t v)
{
    if (pipeline_of_choices(c)->is_multiplexed)
        return v;
    return pipeline_of_choices(c)->is_folded && v == 1 ? 2 * c->pp - 1 - stage : v * c->pp + stage;
}

uint32_t pipeline_stage_of_chunk(const struct choices *c, uint32_t chunk)
{
    return pipeline_of_choices(c)->is_folded && chunk >= c->pp ? 2 * c->pp - 1 - chunk
                                                               : chunk % c->pp;
}

bool pipeline_ends_share_embedding(const struct choices *c)
{
    return c->model->tied_head && !pipeline_replicates_weights(c) &&
           pipeline_stage_of_chunk(c, 0) != pipeline_stage_of_chunk(c, pipeline_chunk_count(c) - 1);
}

bool pipeline_is_plain(const struct choices *c)
{
    const struct pipeline *row = pipeline_of_choices(c);
    return c->pp > 1 && c->virtual_stages == 1 && !row->splits_backward && !row->is_multiplexed;
}

bool pipeline_awaits_messages(const struct choices *c)
{
    return c->profile->pipeline_messages_sync && pipeline_is_plain(c);
}

uint32_t pipeline_layers_before(const struct choices *c)
{
    return pipeline_chunk_count(c) > 1 &&
           (c->stage_layers == STAGE_LAYERS_EMBEDDING || c->stage_layers == STAGE_LAYERS_BOTH);
}

uint32_t pipeline_layers_after(const struct choices *c)
{
    return pipeline_chunk_count(c) > 1 &&
           (c->stage_layers == STAGE_LAYERS_HEAD || c->stage_layers == STAGE_LAYERS_BOTH);
}

struct layer_range pipeline_layers_of_chunk(const struct choices *c, uint32_t chunk)
{
    const uint64_t layers = (uint64_t)c->model->layers, chunks = pipeline_chunk_count(c);
    const uint64_t before = pipeline_layers_before(c), after = pipeline_layers_after(c);
    const uint64_t counted = before + layers + after;
    const uint64_t first = counted * chunk / chunks, end = counted * (chunk + 1) / chunks;
    return (struct layer_range){
        (uint32_t)(chunk == 0 ? 0 : first - before),
        (uint32_t)(chunk + 1 == chunks ? layers : end - before),
    };
}

int64_t pipeline_tokens_before(const struct choices *c, uint32_t s)
{
    int64_t tokens = 0;
    if (c->subsequence_tokens == NULL)
        return c->seq / c->subsequences * s;
    for (uint32_t i = 0; i < s; i++)
        tokens += c->subsequence_tokens[i];
    return tokens;
}
