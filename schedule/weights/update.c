/* The optimizer's step on a stage's part of its bundles: clipping, then AdamW on each bundle, on the device or on the
 * host, and copies of the new parameters to the buffers from which they are read. */
#include "schedule/weights/bundles.h"
#include "schedule/weights/weights.h"

static op_id copy(struct emit *e, enum work_kind kind, buffer_id from, buffer_id to)
{
    struct work work = {.kind = (uint8_t)kind, .copy = {(int64_t)ir_buffer_bytes(e->ir, from), 0}};
    return emit_op(e, kind == WORK_D2H ? e->stream.d2h : e->stream.h2d, &work,
                   (struct view[]){ir_whole(e->ir, from)}, 1, (struct view[]){ir_whole(e->ir, to)},
                   1);
}

/* Emits AdamW on this rank's part of a bundle, with the gradient scaled by `norm` if there is one, and copies the new
 * parameters to the buffers from which they are read. */
static void update(struct emit *e, uint32_t b, buffer_id norm, struct op_list *out)
{
    struct bundle_state *bundle = &e->weights.bundle[b];
    bool host = e->choices->optimizer == CHOICE_OPTIMIZER_HOST;
    bool sharded = bundle->grad_shard.i != IR_NONE;
    buffer_id grad = sharded ? bundle->grad_shard : bundle->grad;
    buffer_id param = bundle->param_shard.i != IR_NONE ? bundle->param_shard : bundle->param;
    bool gather_after = sharded && bundle->param_shard.i == IR_NONE;
    bool no_master =
        e->choices->states == STATES_BF16 && !host; /* bf16 parameters are all there is */
    e->tags = (struct op_tags){PHASE_OPTIMIZER, REGION_OPTIMIZER, IR_NONE16,
                               IR_NONE16,       IR_NONE16,        IR_NONE16};
    if (no_master)
        param = bundle->master;
    else if (gather_after)
        param = weights_shard_buffer(e, b, "updated", CATEGORY_PARAMETER, e->choices->dtype,
                                     MEMORY_HBM);

    buffer_id written = param, read = grad;
    if (host) {
        read = ir_add_buffer_like(e->ir, grad);
        written = ir_add_buffer_like(e->ir, param);
        for (int i = 0; i < 2; i++) {
            buffer_id buffer = i == 0 ? read : written;
            e->ir->buffer.memory[buffer.i] = MEMORY_PINNED;
            e->ir->buffer.flags[buffer.i] = 0;
        }
        op_list_push(out, copy(e, WORK_D2H, grad, read));
    }
    bool copies = bundle->master.i != param.i; /* parameters beside the optimizer's own */
    struct view state[4] = {ir_whole(e->ir, bundle->master), ir_whole(e->ir, bundle->moment1),
                            ir_whole(e->ir, bundle->moment2), ir_whole(e->ir, written)};
    struct work work = {.kind = WORK_ADAMW, .adamw = {(int64_t)state[0].count, e->choices->states}};
    struct view reads[5] = {ir_whole(e->ir, read), state[0], state[1], state[2]};
    if (norm.i != IR_NONE)
        reads[4] = ir_whole(e->ir, norm);
    op_list_push(out, emit_op(e, host ? e->stream.host : e->stream.compute, &work, reads,
                              norm.i != IR_NONE ? 5 : 4, state, copies ? 4 : 3));
    if (host)
        op_list_push(out, copy(e, WORK_H2D, written, param));
    if (gather_after) {
        e->tags.region = REGION_WEIGHTS;
        op_list_push(out, weights_collective(e, e->stream.gather, WORK_ALL_GATHER, e->group.shard,
                                             param, bundle->param));
    }
}

void weights_update(struct emit *e, const uint32_t *bundle, uint32_t count, struct op_list *out)
{
    buffer_id norm = weights_clip(e, bundle, count, out);
    for (uint32_t i = 0; i < count; i++)
        update(e, bundle[i], norm, out);
}
