#include "schedule/pipeline/pipeline.h"

#include "base/arena.h"
#include "schedule/choices/profile.h"

#include <stdlib.h>

void actions_release(struct actions *actions)
{
    free(actions->action);
    *actions = (struct actions){0};
}

void actions_add(struct actions *a, enum action_kind kind, uint32_t chunk, uint32_t unit)
{
    a->action = heap_grow(a->action, &a->capacity, a->count + 1u, sizeof *a->action);
    a->action[a->count++] = (struct action){(uint8_t)kind, (uint8_t)chunk, (uint16_t)unit, false};
}

bool pipeline_has_remote_weights(const struct choices *c)
{
    return pipeline_of_choices(c)->is_multiplexed && c->helpers != MSP_WEIGHTS_REPLICATE;
}

bool pipeline_replicates_weights(const struct choices *c)
{
    return pipeline_of_choices(c)->is_multiplexed && c->helpers == MSP_WEIGHTS_REPLICATE;
}

bool pipeline_shards_weights(const struct choices *c)
{
    return pipeline_of_choices(c)->is_multiplexed && c->helpers == MSP_WEIGHTS_SHARD;
}

uint32_t pipeline_unit_count(const struct choices *c)
{
    return c->accumulation * c->subsequences;
}

uint32_t pipeline_chunk_count(const struct choices *c)
{
    return c->pp * c->virtual_stages;
}

uint32_t pipeline_count_chunks_of_stage(const struct choices *c)
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

uint32_t pipeline_embedding_layers(const struct choices *c)
{
    return pipeline_chunk_count(c) > 1 && (c->stage_layers == STAGE_LAYERS_AND_EMBEDDING ||
                                           c->stage_layers == STAGE_LAYERS_AND_BOTH_ENDS);
}

uint32_t pipeline_head_layers(const struct choices *c)
{
    return pipeline_chunk_count(c) > 1 && (c->stage_layers == STAGE_LAYERS_AND_HEAD ||
                                           c->stage_layers == STAGE_LAYERS_AND_BOTH_ENDS);
}

/* Returns the first layer after a chunk, if the pipeline is divided by cost, as nanotron's build_model() and
 * get_block_compute_costs() divide it. A layer costs (4 heads x head_dim + 3 ffn) x hidden, the head vocabulary x
 * hidden. Chunk i of n ends with the first layer up to which all layers together cost more than (i + 1) / n of the
 * whole. Each chunk has at least one layer while layers are left, and the last chunk has all that are left. */
static uint64_t chunk_end_by_cost(const struct choices *c, uint32_t chunk)
{
    const struct transformer *m = c->model;
    const uint64_t layers = (uint64_t)m->layers, chunks = pipeline_chunk_count(c);
    const uint64_t layer = (uint64_t)(4 * m->heads * m->head_dim + 3 * m->ffn),
                   all = layers * layer + (uint64_t)m->vocab;
    uint64_t end = 0;
    for (uint32_t i = 0; i <= chunk; i++) {
        const uint64_t exceeds = (uint64_t)((double)all * (i + 1) / (double)(chunks * layer)) + 1;
        end = end + 1 > exceeds ? end + 1 : exceeds;
        end = end > layers || i + 1 == chunks ? layers : end;
    }
    return end;
}

struct layer_range pipeline_layers_of_chunk(const struct choices *c, uint32_t chunk)
{
    const uint64_t layers = (uint64_t)c->model->layers, chunks = pipeline_chunk_count(c);
    if (c->stage_layers == STAGE_LAYERS_BY_COST)
        return (struct layer_range){(uint32_t)(chunk == 0 ? 0 : chunk_end_by_cost(c, chunk - 1)),
                                    (uint32_t)chunk_end_by_cost(c, chunk)};
    const uint64_t before = pipeline_embedding_layers(c), after = pipeline_head_layers(c);
    const uint64_t counted = before + layers + after;
    const uint64_t first = counted * chunk / chunks, end = counted * (chunk + 1) / chunks;
    return (struct layer_range){
        (uint32_t)(chunk == 0 ? 0 : first - before),
        (uint32_t)(chunk + 1 == chunks ? layers : end - before),
    };
}

int64_t pipeline_tokens_before_subsequence(const struct choices *c, uint32_t s)
{
    int64_t tokens = 0;
    if (c->subsequence_tokens == NULL)
        return c->seq / c->subsequences * s;
    for (uint32_t i = 0; i < s; i++)
        tokens += c->subsequence_tokens[i];
    return tokens;
}
