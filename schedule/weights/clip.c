/* Clipping by the norm of all gradients together, between the last reduction and the first update. One pass over a
 * rank's gradients sums their squares; an all-reduce of one number then sums over the ranks that together have all
 * gradients (Megatron-LM, clip_grads.py: multi_tensor_l2norm; DeepSpeed, scaled_global_norm();
 * torch.nn.utils.clip_grad_norm_). A gradient that several of these ranks hold must count once: the op's own rule
 * does that for weights of norms on tensor ranks (docs/ir.md), and the second copy of a tied embedding is left out of
 * the sum.
 *
 * The factor max_norm / (norm + 1e-6), at most 1, then scales what AdamW reads, or, in a pass of its own, the
 * gradients. Megatron-LM makes that pass only if the factor is below 1, which a schedule cannot know: here its
 * gradients are scaled by AdamW, at no cost. */
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/weights/weights.h"

static struct view gradient(const struct emit *e, uint32_t b)
{
    const struct bundle_state *bundle = &e->weights.bundle[b];
    return ir_whole(e->ir, bundle->grad_shard.i != IR_NONE ? bundle->grad_shard : bundle->grad);
}

/* True if the bundle is the last stage's copy of a tied embedding, whose other copy is on the first stage. */
static bool is_second_copy(const struct emit *e, uint32_t b)
{
    return e->weights.bundle[b].at_both_ends && e->stage > 0;
}

static void push(struct emit *e, uint8_t stream, const struct work *work, const struct view *read,
                 uint32_t reads, struct view write, struct op_list *out)
{
    op_list_push(out, emit_op(e, stream, work, read, reads, &write, 1));
}

/* The host waits until it can read the norm. */
static void await(struct emit *e, struct op_list *out)
{
    struct work work = {.kind = WORK_HOST_SYNC};
    uint8_t stream = e->group.norm != IR_NONE16 ? e->stream.reduce : e->stream.compute;
    op_list_push(out, emit_op(e, stream, &work, NULL, 0, NULL, 0));
}

buffer_id weights_clip(struct emit *e, const uint32_t *bundle, uint32_t count, struct op_list *out)
{
    const struct choices *c = e->choices;
    bool host = c->optimizer == CHOICE_OPTIMIZER_HOST;
    buffer_id none = {IR_NONE};
    if (!weights_clip_gradients(c) || count == 0)
        return none;
    e->tags = (struct op_tags){PHASE_OPTIMIZER, REGION_OPTIMIZER, IR_NONE16,
                               IR_NONE16,       IR_NONE16,        IR_NONE16};
    buffer_id norm = emit_buffer(e, "grad_norm", CATEGORY_WORKSPACE, DTYPE_F32, 1, 0);
    struct view squares = ir_whole(e->ir, norm);
    int64_t over = e->group.norm != IR_NONE16 ? e->group.norm + 1 : 0;
    bool adds = false;
    for (uint32_t i = 0; i < count; i++) {
        struct view read[2] = {gradient(e, bundle[i]), squares};
        struct work work = {.kind = WORK_SQUARE_SUM,
                            .square_sum = {(int64_t)read[0].count, adds, over}};
        if (is_second_copy(e, bundle[i]))
            continue;
        push(e, e->stream.compute, &work, read, adds ? 2 : 1, squares, out);
        adds = true;
    }
    if (!adds) { /* a stage with only the second copy takes part with a zero */
        struct work work = {.kind = WORK_FILL, .elements = {1, 0}};
        push(e, e->stream.compute, &work, NULL, 0, squares, out);
    }
    if (e->group.norm != IR_NONE16) {
        struct work work = {
            .kind = WORK_ALL_REDUCE,
            .all_reduce = {e->group.norm, (int64_t)dtype_bytes(DTYPE_F32), 0, 0, 0}};
        push(e, e->stream.reduce, &work, &squares, 1, squares, out);
    }
    if (c->profile->clipping_sync)
        await(e, out);
    if (host) { /* AdamW on the host scales the gradients itself */
        buffer_id there = emit_buffer(e, "grad_norm", CATEGORY_WORKSPACE, DTYPE_F32, 1, 0);
        struct work work = {.kind = WORK_D2H, .copy = {(int64_t)dtype_bytes(DTYPE_F32), 0}};
        e->ir->buffer.memory[there.i] = MEMORY_PINNED;
        push(e, e->stream.d2h, &work, &squares, 1, ir_whole(e->ir, there), out);
        return there;
    }
    if (c->profile->clipping == CLIPPING_IN_STEP)
        return norm;
    for (uint32_t i = 0; i < count; i++) {
        struct view read[2] = {gradient(e, bundle[i]), squares};
        struct work work = {.kind = WORK_CLIP, .elements = {(int64_t)read[0].count, 0}};
        push(e, e->stream.compute, &work, read, 2, read[0], out);
    }
    return none;
}
