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
#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"
#include "schedule/emit/emit.h"
#include "schedule/emit/tensor_parallel.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/weights.h"

static struct view gradient_read_by_optimizer(const struct emit *e, uint32_t b)
{
    return view_whole(e, weights_gradient_of_optimizer(e, b));
}

/* True if the gradients on tensor ranks are DTensors that FSDP does not shard. Until the optimizer reads them, they
 * keep the placements that autograd gave them, such as partial sums. */
static bool gradients_keep_placements(const struct emit *e)
{
    const struct choices *c = e->choices;
    return e->tensor.size > 1 && tensor_uses_dtensor(c) && c->weights == CHOICE_WEIGHTS_REPLICATED;
}

/* Emits reductions of the gradients of a bundle that are partial sums (of norms and biases), one by one: once for the
 * norm of all gradients, and again for AdamW. In the schedule they have been summed with the backward already, so the
 * ops only take the time, and nothing reads their results. */
static void reduce_partial_gradients(struct emit *e, uint32_t b)
{
    enum { READERS = 2 };
    for (uint32_t p = 0; p < part_index_of_embedding_or_head(e, END_PARTS); p++) {
        const struct model_part *part = &e->weights.part[p];
        if (part->bundle != b || part->tp_replicated_tensor_count == 0 ||
            e->choices->sequence_parallel_ranks == 1)
            continue;
        const struct view mean = {weights_gradient_of_optimizer(e, b),
                                  part->first_element + part->whole_begin,
                                  part->whole_count / part->tp_replicated_tensor_count};
        for (uint32_t i = 0; i < READERS * part->tp_replicated_tensor_count; i++)
            tensor_emit_unread_reduction(e, mean);
    }
}

/* Emits the passes over the rows of other tensor ranks in a gradient of bundle `b`: the sum of their squares, and their
 * scaling. There are such rows (gradient_rows_of_other_ranks) if each rank makes the whole gradient of a weight, and
 * takes its own rows only when AdamW reads them. Their scaling reads this sum in place of the norm: the norm of all
 * gradients counts the rows on the ranks that own them. */
static void emit_clipping_of_other_ranks_rows(struct emit *e, uint32_t b)
{
    struct view read[2] = {e->weights.bundle[b].gradient_rows_of_other_ranks};
    const int64_t count = (int64_t)read[0].count;
    if (count == 0)
        return;
    read[1] = emit_tensor(e, "dropped_norm", CATEGORY_WORKSPACE, DTYPE_F32, 1, 0);
    struct work work = {.kind = WORK_SQUARE_SUM, .square_sum = {count, false, 0}};
    emit_op(e, e->stream.compute, &work, read, 1, &read[1], 1);
    work = (struct work){.kind = WORK_CLIP, .elements = {count, 0}};
    emit_op(e, e->stream.compute, &work, read, 2, &read[0], 1);
}

buffer_id weights_emit_clipping(struct emit *e, const uint32_t *bundle, uint32_t count)
{
    const struct choices *c = e->choices;
    bool host = c->optimizer == CHOICE_OPTIMIZER_HOST;
    buffer_id none = {IR_NONE};
    if (!weights_clip_gradients(c) || count == 0)
        return none;
    weights_set_op_labels(e, PHASE_OPTIMIZER, REGION_OPTIMIZER, IR_NONE);
    struct view squares = emit_tensor(e, "grad_norm", CATEGORY_WORKSPACE, DTYPE_F32, 1, 0);
    int64_t over =
        e->group.group_for_gradient_norm != IR_NONE16 ? e->group.group_for_gradient_norm + 1 : 0;
    bool adds = false;
    for (uint32_t i = 0; i < count && gradients_keep_placements(e); i++)
        reduce_partial_gradients(e, bundle[i]);
    for (uint32_t i = 0; i < count; i++) {
        struct view read[2] = {gradient_read_by_optimizer(e, bundle[i]), squares};
        struct work work = {.kind = WORK_SQUARE_SUM,
                            .square_sum = {(int64_t)read[0].count, adds, over}};
        if (e->weights.bundle[bundle[i]].is_on_first_and_last_stage && e->stage > 0)
            continue; /* the last stage's copy of a tied embedding, whose other copy is on the first stage */
        emit_op(e, e->stream.compute, &work, read, adds ? 2 : 1, &squares, 1);
        adds = true;
    }
    if (!adds) /* a stage with only the second copy takes part with a zero */
        emit_zeros(e, squares);
    if (over > 0)
        weights_emit_collective(e, e->stream.grad_reduce, WORK_ALL_REDUCE,
                                e->group.group_for_gradient_norm, squares.buffer, squares.buffer);
    if (c->profile->host_waits_for_gradient_norm) /* the host reads the norm */
        emit_host_wait(e, over > 0 ? e->stream.grad_reduce : e->stream.compute);
    if (host) { /* AdamW on the host scales the gradients itself */
        struct view there = emit_tensor(e, "grad_norm", CATEGORY_WORKSPACE, DTYPE_F32, 1, 0);
        e->ir->buffer.memory[there.buffer.i] = MEMORY_PINNED;
        emit_host_device_copy(e, WORK_D2H, false, squares, there);
        return there.buffer;
    }
    if (c->profile->clipping == CLIPPING_IN_OPTIMIZER_STEP)
        return squares.buffer;
    for (uint32_t i = 0; i < count; i++) {
        struct view read[2] = {gradient_read_by_optimizer(e, bundle[i]), squares};
        struct work work = {.kind = WORK_CLIP, .elements = {(int64_t)read[0].count, 0}};
        emit_op(e, e->stream.compute, &work, read, 2, &read[0], 1);
        if (gradients_keep_placements(e))
            emit_clipping_of_other_ranks_rows(e, bundle[i]);
    }
    return none;
}
