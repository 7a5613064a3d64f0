/* The optimizer's step on a stage's part of its bundles: clipping, then AdamW on each bundle, on the device or on the
 * host, and copies of the new parameters to the buffers from which they are read. */
#include "schedule/choices/profile.h"
#include "schedule/emit/emit.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/weights.h"

/* Returns a new buffer of the shape and dtype of `buffer` in a memory of the host. It is not persistent. */
static buffer_id new_host_buffer(struct emit *e, buffer_id buffer, enum memory memory)
{
    buffer_id host = ir_add_buffer_like(e->ir, buffer);
    e->ir->buffer.memory[host.i] = (uint8_t)memory;
    e->ir->buffer.flags[host.i] = 0;
    return host;
}

/* Emits AdamW on this rank's part of a bundle, and the copies of the new parameters to the buffers from which they are
 * read. squares: the buffer with the sum of the squares of all gradients, from which AdamW finds the factor that scales
 * the gradient; IR_NONE: it does not scale. */
static void emit_update_of_bundle(struct emit *e, uint32_t b, buffer_id squares)
{
    struct weight_bundle_state *bundle = &e->weights.bundle[b];
    const struct profile *profile = e->choices->profile;
    bool pageable = profile->casts_host_params_to_pageable_memory;
    bool host = e->choices->optimizer == CHOICE_OPTIMIZER_HOST;
    bool sharded = bundle->grad_shard.i != IR_NONE;
    buffer_id grad = weights_gradient_of_optimizer(e, b);
    buffer_id param = bundle->param_shard.i != IR_NONE ? bundle->param_shard : bundle->param;
    bool narrow = bundle->narrow.i != IR_NONE; /* the next step quantises the masters */
    bool gather_after = sharded && bundle->param_shard.i == IR_NONE && !narrow;
    bool no_master = weights_are_own_master_copies(e->choices);
    bool stays = bundle->param_shard.i != IR_NONE &&
                 e->ir->buffer.memory[bundle->param_shard.i] != MEMORY_HBM; /* on the host */
    weights_set_op_labels(e, PHASE_OPTIMIZER, REGION_OPTIMIZER, IR_NONE);
    if (no_master && !stays)
        param = bundle->master;
    else if (gather_after)
        param = weights_new_shard_buffer(e, b, "updated", CATEGORY_PARAMETER, e->choices->dtype);

    buffer_id written = param, read = grad;
    if (host) {
        struct view sent = view_whole(e, grad);
        if (profile->host_grads_f32)
            sent = emit_in_dtype(e, sent, DTYPE_F32, "grad_wide", CATEGORY_GRADIENT);
        read = new_host_buffer(e, sent.buffer, MEMORY_PINNED);
        if (!stays)
            written = new_host_buffer(e, param, pageable ? MEMORY_PAGEABLE : MEMORY_PINNED);
        emit_host_device_copy(e, WORK_D2H, false, sent, view_whole(e, read));
    }
    /* AdamW also writes the parameters, unless they are the masters, or quantised weights, which the next step makes */
    bool copies = bundle->master.i != param.i && !narrow;
    struct view state[4] = {ir_whole_view(e->ir, bundle->master),
                            ir_whole_view(e->ir, bundle->moment1),
                            ir_whole_view(e->ir, bundle->moment2), ir_whole_view(e->ir, written)};
    struct work work = {.kind = WORK_ADAMW, .adamw = {(int64_t)state[0].count, e->choices->states}};
    struct view reads[5] = {ir_whole_view(e->ir, read), state[0], state[1], state[2]};
    if (squares.i != IR_NONE)
        reads[4] = ir_whole_view(e->ir, squares);
    emit_op(e, host ? e->stream.host : e->stream.compute, &work, reads,
            squares.i != IR_NONE ? 5 : 4, state, copies ? 4 : 3);
    if (host && pageable &&
        !stays) /* CUDA reads pageable memory when the copy is called, not when its stream comes to it */
        emit_host_wait(e, e->stream.host);
    if (host && !stays)
        emit_host_device_copy(e, WORK_H2D, pageable, view_whole(e, written), view_whole(e, param));
    if (gather_after) {
        e->op_tags.region = REGION_WEIGHT_COLLECTIVES;
        weights_emit_collective(e, e->stream.weight_gather, WORK_ALL_GATHER,
                                bundle->ranks->shard_group, param, bundle->param);
    }
}

void weights_emit_clip_and_update(struct emit *e, const uint32_t *bundle, uint32_t count)
{
    buffer_id squares = weights_emit_clipping(e, bundle, count);
    for (uint32_t i = 0; i < count; i++)
        emit_update_of_bundle(e, bundle[i], squares);
}
