/* The ring of TransformerEngine (point-to-point context parallelism, v1.6 to 2026).
 *
 * Forward: tiles alternate between two compute streams, so that one stream fills the multiprocessors that the last wave
 * of the other stream's kernel leaves idle. The message of a step waits for the previous tile on the same stream. Every
 * block and every partial output is kept until the forward returns, and outputs are merged at the end.
 *
 * Backward: the ring turns the other way and starts from the block that arrived last, so a rank need not keep its own
 * block. A message carries a block, followed by the gradient of the previous block, both in the compute dtype. There
 * are cp - 1 hops of each, and the last block to arrive is the rank's own. A step computes its tile before it waits for
 * the gradient that arrives. */
#include "schedule/attention/ring.h"

#include <stdlib.h>

static void shift_blocks(struct emit *e, int64_t by, struct view from, struct view to, op_id after)
{
    struct work work = {.kind = WORK_SHIFT,
                        .p2p = {e->group.outer_ring.group, by, bytes_of_view(e, from), 0, 0}};
    emit_op_after(e, after, e->group.outer_ring.kv_stream, &work, &from, 1, &to, 1);
}

/* ---- forward ---- */

/* The block of keys and values of a step, and the partial outputs of its tiles. */
struct ring_step_tensors {
    struct view kv, o, lse;
    struct ring_tile tile[2];
    uint32_t tile_count;
};

static op_id emit_tiles_forward(struct emit *e, const struct ring_attention_sizes *z, struct view q,
                                struct ring_step_tensors *partial)
{
    op_id last = {IR_NONE};
    for (uint32_t i = 0; i < partial->tile_count; i++) {
        e->guard = partial->tile[i].guard;
        last = ring_tile_forward(e, z, &partial->tile[i], q, partial->kv, partial->o, partial->lse);
    }
    e->guard = IR_NONE16;
    return last;
}

static void merge_partial_outputs(struct emit *e, const struct ring_attention_sizes *z,
                                  struct view sum, struct view lse,
                                  const struct ring_step_tensors *partial, uint32_t steps)
{
    for (uint32_t step = 1; step < steps; step++)
        for (uint32_t i = 0; i < partial[step].tile_count; i++) {
            e->guard = partial[step].tile[i].guard;
            e->op_tags.step = (uint16_t)step;
            ring_merge_tile(e, z, &partial[step].tile[i], sum, lse, partial[step].o,
                            partial[step].lse);
        }
    e->guard = IR_NONE16;
}

void ring_retained_forward(struct emit *e, const struct ring_attention_sizes *z,
                           struct attention_saved *saved, struct view o)
{
    bool f32 = e->choices->dtype == DTYPE_F32;
    uint32_t steps = e->group.outer_ring.size;
    uint8_t streams[2] = {e->stream.compute, e->stream.second_compute};
    op_id last[2] = {e->last_compute, e->last_compute};
    struct ring_step_tensors *partial = heap_zalloc(steps, sizeof *partial);
    struct view kv = saved->qkv.k;
    kv.count = (uint64_t)ring_block_elements(z); /* v lies after k */
    attention_save_output_and_make_lse(e, saved, o, z->rank_tokens, z->heads);

    for (uint32_t step = 0; step < steps; step++) {
        struct ring_step_tensors *here = &partial[step];
        e->op_tags.step = (uint16_t)step;
        here->kv = kv;
        here->tile_count = ring_list_tiles_of_step(e, z, step, here->tile);
        if (step + 1 < steps) {
            kv = ring_new_blocks(e, z, "kv", 1);
            shift_blocks(e, 1, here->kv, kv, last[step % 2]);
        }
        if (here->tile_count == 0)
            continue;
        bool whole = step == 0 && f32;
        here->o = whole ? o
                        : emit_compute_tensor(e, "o_block", CATEGORY_ACTIVATION, z->rank_tokens,
                                              z->o_width);
        here->lse = step == 0 ? saved->lse
                              : emit_tensor(e, "lse_block", CATEGORY_ACTIVATION, DTYPE_F32,
                                            z->rank_tokens, z->heads);
        e->stream.tile = streams[step % 2];
        op_id done = emit_tiles_forward(e, z, saved->qkv.q, here);
        e->stream.tile = e->stream.compute;
        if (done.i != IR_NONE)
            last[step % 2] = done;
    }
    struct view sum = emit_in_dtype(e, partial[0].o, DTYPE_F32, "o_sum", CATEGORY_ACTIVATION);
    merge_partial_outputs(e, z, sum, partial[0].lse, partial, steps);
    e->op_tags.step = IR_NONE16;
    if (!f32)
        emit_cast(e, sum, o);
    for (uint32_t step = 1; step < steps; step++)
        emit_extend_lifetime(e, partial[step].kv.buffer, e->last_compute);
    const struct qkv pair = ring_split_kv_block(z, kv);
    saved->qkv.k = pair.k;
    saved->qkv.v = pair.v;
    free(partial);
}

/* ---- backward ---- */

struct qkv ring_retained_backward(struct emit *e, const struct ring_attention_sizes *z,
                                  const struct attention_saved *saved, struct view d_o)
{
    uint32_t steps = e->group.outer_ring.size;
    const int64_t block = ring_block_elements(z);
    struct view dq = emit_zeros(
        e, emit_tensor(e, "dq_sum", CATEGORY_ACTIVATION, DTYPE_F32, z->rank_tokens, z->q_width));
    struct view kv = saved->qkv.k, message = {0}, next;
    kv.count = (uint64_t)block;
    for (uint32_t step = 0; step < steps; step++) {
        bool first = step == 0, last = step + 1 == steps;
        e->op_tags.step = (uint16_t)step;
        next = ring_new_blocks(e, z, "message", last ? 1 : 2);
        struct view gradient = last ? next : view_slice(next, block, block);
        if (first)
            shift_blocks(e, -1, kv, view_slice(next, 0, block), e->last_compute);
        else
            shift_blocks(e, -1, last ? view_slice(message, block, block) : message, next,
                         e->last_compute);
        /* The tiles of the first step do not write all elements of the gradient. The others must be zero, because later
         * steps add to all of them. */
        if (first)
            ring_step_backward(e, z, steps - 1, saved, kv, d_o, emit_zeros(e, gradient),
                               (struct ring_gradients){.dq = dq});
        else
            ring_step_backward(e, z, steps - 1 - step, saved, kv, d_o, view_none(),
                               (struct ring_gradients){dq, gradient});
        kv = view_slice(next, 0, block);
        message = next;
    }
    e->op_tags.step = IR_NONE16;
    dq = emit_in_dtype(e, dq, (enum dtype)e->choices->dtype, "dq", CATEGORY_ACTIVATION);
    struct qkv grads = ring_split_kv_block(z, next);
    grads.q = dq;
    return grads;
}
