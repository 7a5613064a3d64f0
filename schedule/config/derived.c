#include "schedule/config/derived.h"
#include "schedule/choices/profile.h"
#include "schedule/pipeline/pipeline.h"

/* True if several ranks use the same weights, so that each could hold a part of them. */
static bool ranks_share_weights(const struct choices *c)
{
    return c->ranks > c->tp * c->pp;
}

bool weights_shard_params(const struct choices *c)
{
    return ranks_share_weights(c) &&
           (c->weights == CHOICE_WEIGHTS_ZERO3 || c->weights == CHOICE_WEIGHTS_HSDP);
}

bool weights_reduce_each_micro_batch(const struct choices *c)
{
    return c->grad_sync != GRAD_SYNC_LAST &&
           (weights_shard_params(c) ||
            (ranks_share_weights(c) && c->weights == CHOICE_WEIGHTS_ZERO2));
}

uint8_t weights_grad_dtype(const struct choices *c)
{
    bool wide = c->profile->grad_dtype == DTYPE_F32 &&
                (!states_are_bf16((enum states)c->states) ||
                 (c->profile->reduces_bf16_states_in_grad_dtype && weights_shard_params(c)));
    if (c->gradients != GRADIENTS_PROFILE)
        wide = c->gradients == GRADIENTS_FP32;
    return wide ? DTYPE_F32 : c->dtype;
}

bool weights_have_zeroing_and_nan_checks(const struct choices *c)
{
    return c->profile->zeroes_and_nan_checks_gradients && c->scope == SCOPE_WHOLE_STEP &&
           !weights_reduce_each_micro_batch(c) && !pipeline_has_remote_weights(c);
}

int64_t weights_layers_per_bundle(const struct choices *c)
{
    int64_t layer = transformer_largest_layer_parameters(c->model);
    if (weights_shard_params(c) || pipeline_has_remote_weights(c) ||
        c->profile->most_elements_of_gradient_bucket <= layer)
        return 1;
    int64_t together = c->profile->most_elements_of_gradient_bucket / layer;
    return together < c->model->layers ? together : c->model->layers;
}

bool weights_have_root_unit(const struct choices *c)
{
    return c->profile->has_fsdp_root_unit && weights_shard_params(c) && c->pp == 1 &&
           c->scope == SCOPE_WHOLE_STEP;
}

bool weights_allocate_gradients_in_backward(const struct choices *c)
{
    return c->profile->frees_gradients_between_steps && c->scope == SCOPE_WHOLE_STEP &&
           c->pp == 1 && c->accumulation == 1 && c->subsequences == 1;
}

bool weights_clip_gradients(const struct choices *c)
{
    return c->profile->clipping != CLIPPING_NONE && c->scope == SCOPE_WHOLE_STEP;
}

bool derived_binds_positions_by_sequence(const struct choices *c)
{
    return c->ring_layout == RING_ZIGZAG_DOCUMENTS || c->ring_layout == RING_BY_CORE_PLAN;
}

bool fpdt_offloads(const struct choices *c)
{
    return c->attention == CHOICE_ATTENTION_FPDT && c->chunk_count > 1 &&
           c->kv_offload == KV_OFFLOAD_ON;
}

bool derived_sends_latents(const struct choices *c)
{
    return c->model->kv_latent > 0 && c->mla_exchange == MLA_EXCHANGE_LATENT &&
           (c->hp > 1 || fpdt_offloads(c));
}

bool fpdt_one_rank_fetches_for_all(const struct choices *c)
{
    return fpdt_offloads(c) && c->chunk_fetch == FETCH_ONE;
}
