#include "schedule/weights/quantised.h"

#include "schedule/choices/products.h"

int64_t quantised_expert_scale_count(const struct emit *e, uint32_t bundle)
{
    const bool has = e->whole_model->experts > 0 &&
                     (e->weights.bundle[bundle].has_spread_experts || e->choices->ep == 1) &&
                     products_recipe(e->choices)->weight_scaling == SCALING_TENSOR;
    return has ? e->whole_model->experts / (int64_t)e->choices->ep : 0;
}

struct work quantised_work_of_own_part(const struct emit *e, uint32_t bundle)
{
    const struct weight_bundle_state *state = &e->weights.bundle[bundle];
    const uint64_t parts =
        weight_bundle_update_is_sharded(e, bundle) ? state->ranks->shard_size : 1;
    const int64_t count = (int64_t)(state->elements / parts);
    const int64_t groups = quantised_expert_scale_count(e, bundle);
    /* The elements are taken as rows of 16, the block of SCALING_NV, or of 8 or 1 if they do not divide evenly. With
     * parts, `count` is a multiple of 8. */
    const int64_t cols = count % 16 == 0 ? 16 : count % 8 == 0 ? 8 : 1;
    return (struct work){.kind = WORK_QUANTISE,
                         .quantise = {.rows = count / cols,
                                      .cols = cols,
                                      .scaling = products_recipe(e->choices)->weight_scaling,
                                      .groups = groups > 1 ? groups : 0}};
}

int64_t quantised_scale_count(const struct work *work)
{
    const struct scaling_layout layout = work_scale_layout(work, 0);
    return scaling_layout_scale_count(&layout);
}

int64_t quantised_element_count(const struct emit *e, const struct work *work)
{
    const int64_t count = work->quantise.rows * work->quantise.cols;
    return products_recipe(e->choices)->weight_dtype == DTYPE_E2M1X2 ? (count + 1) / 2 : count;
}

void quantised_make_sharded_buffers(struct emit *e, uint32_t bundle)
{
    struct weight_bundle_state *state = &e->weights.bundle[bundle];
    const struct products_recipe *recipe = products_recipe(e->choices);
    const int64_t count = (int64_t)state->elements;
    state->narrow =
        emit_buffer(e, "w_narrow", CATEGORY_PARAMETER, (enum dtype)recipe->weight_dtype, count, 0);
    const struct work work = quantised_work_of_own_part(e, bundle);
    state->narrow_scales = emit_buffer(e, "w_scales", CATEGORY_PARAMETER,
                                       scaling_scale_dtype((enum scaling)recipe->weight_scaling),
                                       quantised_scale_count(&work), 0);
    e->ir->buffer.flags[state->narrow_scales.i] |= BUFFER_PERSISTENT;
}

struct view quantised_emit_own_part(struct emit *e, uint32_t bundle, struct view largest,
                                    struct view *scales)
{
    const struct weight_bundle_state *state = &e->weights.bundle[bundle];
    const struct products_recipe *recipe = products_recipe(e->choices);
    const bool agreed = largest.count > 0;
    struct work work = quantised_work_of_own_part(e, bundle);
    work.quantise.given = agreed;
    work.quantise.amax = !agreed && recipe->has_amax_pass;
    const struct view part =
        emit_tensor(e, "w_part", CATEGORY_PARAMETER, (enum dtype)recipe->weight_dtype,
                    quantised_element_count(e, &work), 0);
    if (scales->count == 0)
        *scales = emit_tensor(e, "w_part_scales", CATEGORY_PARAMETER,
                              scaling_scale_dtype((enum scaling)recipe->weight_scaling),
                              quantised_scale_count(&work), 0);
    const struct view read[2] = {view_whole(e, state->master), largest};
    const struct view write[2] = {part, *scales};
    emit_op(e, e->stream.compute, &work, read, agreed ? 2 : 1, write, 2);
    return part;
}

void quantised_make_buffers(struct emit *e, uint32_t bundle)
{
    struct weight_bundle_state *state = &e->weights.bundle[bundle];
    const struct products_recipe *recipe = products_recipe(e->choices);
    const enum scaling scaling = (enum scaling)recipe->weight_scaling;
    const struct work work = quantised_work_of_own_part(e, bundle);
    const int64_t parts =
        weight_bundle_update_is_sharded(e, bundle) ? (int64_t)state->ranks->shard_size : 1;
    state->narrow = emit_buffer(e, "w_narrow", CATEGORY_PARAMETER, (enum dtype)recipe->weight_dtype,
                                parts * quantised_element_count(e, &work), 0);
    /* a scale of a whole tensor is the same on all ranks, so there is one for all parts */
    state->narrow_scales =
        emit_buffer(e, "w_scales", CATEGORY_PARAMETER, scaling_scale_dtype(scaling),
                    (scaling == SCALING_TENSOR ? 1 : parts) * quantised_scale_count(&work), 0);
    e->ir->buffer.flags[state->narrow.i] |= BUFFER_PERSISTENT;
    e->ir->buffer.flags[state->narrow_scales.i] |= BUFFER_PERSISTENT;
}
