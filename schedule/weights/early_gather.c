/* The casts and gathers of parameters at the beginning of a step, of two kinds. With --param-gather overlap, parameters
 * are gathered from the parts that ranks updated at the end of the step before. With --primary-weights quantised,
 * quantised weights are made from the masters.
 *
 * Quantised weights are what Megatron-LM keeps with --fp8-param-gather: there are no 16-bit parameters of linear
 * layers. Each rank quantises its part of the fp32 masters, and the parts are gathered in 8 bits, those of nvfp4 in 4
 * (TransformerEngine, pytorch/tensor/utils.py, quantize_master_weights(); Megatron-LM, distrib_optimizer.py,
 * _copy_main_params_to_model_params()). If a scale is that of a whole tensor, all ranks first agree on the largest
 * elements, by one all-reduce. If products need a transposed copy, it is made from the gathered one
 * (post_all_gather_processing()). The schedule casts at the beginning of a step and not after AdamW; it takes the same
 * time, and nothing reads the weights in between. A bundle has one scale here, while each of its tensors has its own
 * there; the work is the same.
 *
 * With mxfp8 neither of the two copies can be made from the other. Megatron-LM gathers 16 bits into the memory of the
 * gradients and quantises them from there (--reuse-grad-buf-for-mxfp8-param-ag), so 16-bit parameters take no memory of
 * their own. The few weights of such layers that stay in 16 bits (norms, biases, routers) are not gathered here. */
#include "schedule/weights/early_gather.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/quantised.h"

/* True if ranks agree on the largest element of a bundle before they quantise it. It is false for bundles whose experts
 * have scales of their own: their all-reduce, of a few bytes more, is left out. */
static bool has_largest_element_all_reduce(const struct emit *e, uint32_t b)
{
    const struct products_recipe *recipe = products_recipe(e->choices);
    return recipe->weight_scaling == SCALING_TENSOR && recipe->has_amax_pass &&
           weight_bundle_update_is_sharded(e, b) && e->weights.bundle[b].narrow.i != IR_NONE &&
           quantised_expert_scale_count(e, b) < 2;
}

/* Emits the passes that find the largest elements of the masters, for the bundles that the ranks `ranks` share and
 * agree on, and one all-reduce for all of them. Sets largest[b] of each of these bundles; leaves the others empty. */
static void emit_largest_elements_of_masters(struct emit *e, const struct weight_ranks *ranks,
                                             struct view *largest)
{
    int64_t count = 0, next = 0;
    for (uint32_t b = 0; b < e->weights.bundle_count; b++)
        count += e->weights.bundle[b].ranks == ranks && has_largest_element_all_reduce(e, b);
    if (count == 0)
        return;
    struct view own = emit_tensor(e, "amax", CATEGORY_PARAMETER, DTYPE_F32, count, 0),
                all = emit_tensor(e, "amax_all", CATEGORY_PARAMETER, DTYPE_F32, count, 0);
    for (uint32_t b = 0; b < e->weights.bundle_count; b++) {
        if (e->weights.bundle[b].ranks != ranks || !has_largest_element_all_reduce(e, b))
            continue;
        struct work work = quantised_work_of_own_part(e, b);
        work.quantise.finds = work.quantise.amax = 1;
        const struct view master = view_whole(e, e->weights.bundle[b].master);
        const struct view found = view_slice(own, next, 1);
        emit_op(e, e->stream.compute, &work, &master, 1, &found, 1);
        largest[b] = view_slice(all, next++, 1);
    }
    struct work reduce = {.kind = WORK_ALL_REDUCE,
                          .all_reduce = {ranks->shard_group, bytes_of_view(e, own), REDUCE_MAX}};
    emit_op(e, e->stream.weight_gather, &reduce, &own, 1, &all, 1);
}

/* Emits the cast of a bundle's masters to the quantised dtype. If each rank casts a part, also emits the gather of the
 * parts and, unless the scales are the same on all ranks, that of the scales. Returns the last gather; IR_NONE: there
 * is none. */
static op_id emit_quantise_and_gather_bundle(struct emit *e, uint32_t b, struct view largest)
{
    const struct weight_bundle_state *bundle = &e->weights.bundle[b];
    const struct products_recipe *recipe = products_recipe(e->choices);
    struct view scales = view_whole(e, bundle->narrow_scales);
    op_id last = {IR_NONE};
    if (!weight_bundle_update_is_sharded(e, b)) {
        struct work work = quantised_work_of_own_part(e, b);
        work.quantise.amax = recipe->has_amax_pass;
        const struct view master = view_whole(e, bundle->master);
        emit_op(e, e->stream.compute, &work, &master, 1,
                (struct view[]){view_whole(e, bundle->narrow), scales}, 2);
        return last;
    }
    const bool gathers_scales = recipe->weight_scaling != SCALING_TENSOR;
    if (gathers_scales)
        scales = (struct view){{IR_NONE}, 0, 0};
    const struct view part = quantised_emit_own_part(e, b, largest, &scales);
    if (gathers_scales)
        weights_emit_collective(e, e->stream.weight_gather, WORK_ALL_GATHER,
                                bundle->ranks->shard_group, scales.buffer, bundle->narrow_scales);
    return weights_emit_collective(e, e->stream.weight_gather, WORK_ALL_GATHER,
                                   bundle->ranks->shard_group, part.buffer, bundle->narrow);
}

/* Prepares the gathers of sharded parameters in 8 bits (shard.c): keeps `largest`, and emits the cast of this rank's
 * part if the framework casts it once a step, as Megatron-FSDP does after AdamW. torchao casts it before each gather
 * (float8/fsdp_utils.py, fsdp_pre_all_gather()); then this emits nothing. */
static void quantise_own_part_before_gathers(struct emit *e, uint32_t b, struct view largest)
{
    struct weight_bundle_state *bundle = &e->weights.bundle[b];
    bundle->amax_of_bundle = largest;
    if (e->choices->profile->backward_quantises_again)
        return;
    struct view scales = view_whole(e, bundle->narrow_scales);
    bundle->own_part_in_8_bits = quantised_emit_own_part(e, b, largest, &scales).buffer;
}

op_id early_gather_emit_all_bundles(struct emit *e)
{
    const struct op_tags before = e->op_tags;
    struct view *largest = arena_array(&e->arena, e->weights.bundle_count, sizeof *largest);
    op_id last = {IR_NONE};
    weights_set_op_labels(e, PHASE_OPTIMIZER, REGION_WEIGHT_COLLECTIVES, IR_NONE);
    emit_largest_elements_of_masters(e, &e->group.dense, largest);
    emit_largest_elements_of_masters(e, &e->group.experts, largest);
    for (uint32_t b = 0; b < e->weights.bundle_count; b++) {
        const struct weight_bundle_state *bundle = &e->weights.bundle[b];
        op_id op = {IR_NONE};
        if (bundle->has_states_elsewhere)
            continue;
        if (bundle->narrow.i != IR_NONE && weights_shard_params(e->choices) &&
            bundle->ranks->shard_size > 1)
            quantise_own_part_before_gathers(e, b, largest[b]);
        else if (bundle->narrow.i != IR_NONE)
            op = emit_quantise_and_gather_bundle(e, b, largest[b]);
        else if (e->choices->param_gather == PARAM_GATHER_OVERLAP &&
                 weight_bundle_update_is_sharded(e, b))
            op = weights_emit_collective(e, e->stream.weight_gather, WORK_ALL_GATHER,
                                         bundle->ranks->shard_group, bundle->param_shard,
                                         bundle->param);
        if (op.i != IR_NONE)
            last = op;
    }
    e->op_tags = before;
    return last;
}
