#include "schedule/weights/remote_weights.h"

#include "schedule/emit/emit.h"
#include "schedule/emit/process_groups.h"
#include "schedule/pipeline/multiplex.h"

struct unit_chunk_pass remote_unit_chunk_pass_of_op(const struct emit *e, uint32_t op)
{
    const struct op_table *table = &e->ir->op;
    const struct choices *c = e->choices;
    uint32_t chunk = 0, last = pipeline_chunk_count(c) - 1;
    if (table->layer[op] != IR_NONE16)
        while (table->layer[op] >= pipeline_layers_of_chunk(c, chunk).end)
            chunk++;
    else if (table->region[op] != REGION_EMBEDDING)
        chunk = last;
    return (struct unit_chunk_pass){chunk, table->micro[op], table->phase[op] == PHASE_FORWARD};
}

struct stages_sharing_pipeline_unit
remote_stages_sharing_pipeline_unit(const struct emit *e, uint32_t chunk, uint32_t unit)
{
    struct stages_sharing_subsequence share =
        multiplex_stages_sharing_subsequence(e->choices, chunk, unit % e->choices->subsequences);
    return (struct stages_sharing_pipeline_unit){.first_stage = share.first_stage,
                                                 .count = share.count,
                                                 .index = e->stage - share.first_stage,
                                                 .chunk = chunk,
                                                 .this_stage_owns_layers = e->stage == chunk};
}

static void append_remote_grad_row(struct emit *e, uint32_t bundle, uint16_t group,
                                   uint64_t *touched)
{
    e->weights.remote_grad =
        heap_grow(e->weights.remote_grad, &e->weights.remote_grad_capacity,
                  e->weights.remote_grad_count + 1u, sizeof *e->weights.remote_grad);
    uint64_t elements = pipeline_shards_weights(e->choices)
                            ? e->weights.bundle[bundle].elements
                            : e->weights.bundle[bundle].unpadded_elements;
    buffer_id buffer =
        emit_buffer(e, "lent_grad", CATEGORY_GRADIENT, e->weights.grad_dtype, (int64_t)elements, 0);
    e->weights.remote_grad[e->weights.remote_grad_count++] =
        (struct remote_grad){.buffer = buffer,
                             .written = touched,
                             .bundle = bundle,
                             .group = group,
                             .sharing_stages = e->unit.stages,
                             .gradient_sum_to_add = {IR_NONE}};
}

void remote_select_own_gradients_again(struct emit *e)
{
    e->weights.written = e->weights.written_weight_masks_by_micro_batch;
    for (uint32_t b = 0; b < e->weights.bundle_count; b++)
        e->weights.bundle[b].grad = e->weights.grad_buffer[b];
}

/* Makes backward ops write those gradients of e->weights.remote_grad, from row `begin` on, that belong to the unit's
 * chunk and to the stages of `group`. Returns false if there are none. */
static bool select_remote_gradients_to_write(struct emit *e, uint32_t begin, uint16_t group)
{
    bool found = false;
    for (uint32_t i = begin; i < e->weights.remote_grad_count; i++) {
        const struct remote_grad *remote_grad = &e->weights.remote_grad[i];
        if (remote_grad->group != group ||
            remote_grad->sharing_stages.chunk != e->unit.stages.chunk)
            continue;
        e->weights.bundle[remote_grad->bundle].grad = remote_grad->buffer;
        e->weights.written = remote_grad->written;
        found = true;
    }
    return found;
}

void weights_choose_gradients_of_unit(struct emit *e)
{
    remote_select_own_gradients_again(e);
    if (e->unit.stages.count == 1)
        return;
    uint32_t begin = pipeline_shards_weights(e->choices) ? e->weights.remote_grad_count : 0;
    uint16_t group = multiplex_group_of_sharing_stages(
        e, "sums",
        (struct stages_sharing_subsequence){e->unit.stages.first_stage, e->unit.stages.count});
    if (!select_remote_gradients_to_write(e, begin, group)) {
        uint64_t *touched =
            arena_array(&e->arena, part_index_of_embedding_or_head(e, END_PARTS), sizeof *touched);
        for (uint32_t b = 0; b < e->weights.bundle_count; b++)
            if (e->weights.bundle[b].chunk == e->unit.stages.chunk ||
                e->weights.bundle[b].is_on_first_and_last_stage)
                append_remote_grad_row(e, b, group, touched);
        select_remote_gradients_to_write(e, begin, group);
    }
}

static op_id emit_broadcast(struct emit *e, const struct stages_sharing_pipeline_unit *shared,
                            uint32_t bundle, buffer_id to)
{
    struct view from = view_whole(e, e->weights.bundle[bundle].param), all = view_whole(e, to);
    uint16_t group = multiplex_group_of_sharing_stages(
        e, "weights", (struct stages_sharing_subsequence){shared->first_stage, shared->count});
    struct work work = {
        .kind = WORK_BROADCAST,
        .broadcast = {group, bytes_of_view(e, all), shared->chunk - shared->first_stage}};
    return emit_op(e, e->stream.weight_gather, &work, &from, shared->this_stage_owns_layers, &all,
                   1);
}

buffer_id remote_receive_params(struct emit *e, struct unit_chunk_pass pass, uint32_t bundle,
                                op_id *op)
{
    struct stages_sharing_pipeline_unit shared =
        remote_stages_sharing_pipeline_unit(e, pass.chunk, pass.unit);
    buffer_id to = emit_buffer(e, "borrowed", CATEGORY_PARAMETER, e->choices->dtype,
                               (int64_t)e->weights.bundle[bundle].elements, 0);
    struct stage_bundle_part *part =
        pipeline_shards_weights(e->choices) ? remote_find_or_add_part(e, bundle, &shared) : NULL;
    if (part != NULL && part->parameters_have_arrived) {
        *op = remote_gather_parts(e, part, to);
        return to;
    }
    *op = emit_broadcast(e, &shared, bundle, to);
    if (part != NULL)
        remote_emit_copy_of_own_part(e, part, to);
    return to;
}

op_id remote_sum_gradients(struct emit *e, struct remote_grad *remote_grad)
{
    if (pipeline_shards_weights(e->choices))
        return remote_sum_parts(e, remote_grad);
    const struct stages_sharing_pipeline_unit *shared = &remote_grad->sharing_stages;
    struct view all = view_whole(e, remote_grad->buffer);
    struct work work = {.kind = WORK_REDUCE,
                        .broadcast = {remote_grad->group, bytes_of_view(e, all),
                                      shared->chunk - shared->first_stage}};
    remote_grad->gradient_sum_to_add.i =
        shared->this_stage_owns_layers ? remote_grad->buffer.i : IR_NONE;
    return emit_op(e, e->stream.grad_reduce, &work, &all, 1, &all, shared->this_stage_owns_layers);
}

void remote_add_to_own_gradient(struct emit *e, const struct remote_grad *remote_grad)
{
    struct view sum = view_whole(e, remote_grad->gradient_sum_to_add);
    struct view to = {e->weights.grad_buffer[remote_grad->bundle], 0, sum.count};
    if (pipeline_shards_weights(e->choices))
        to = remote_view_of_own_gradient_part(
            e, remote_find_or_add_part(e, remote_grad->bundle, &remote_grad->sharing_stages));
    emit_add(e, sum, to, to);
}
