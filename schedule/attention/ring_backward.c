/* The ring backward. Keys and values go round again, followed by their gradients: each rank adds its part to a gradient
 * that passes, and the last hop brings the gradient to the rank of its keys. dq is summed in fp32.
 *
 * dk and dv are one tensor, as k and v are. With the profile's switch ring_sums_kv_gradients_in_fp32 they are summed in
 * fp32. Otherwise, as in InternEvo's code, they are summed in fp32 within the first window and in the compute dtype
 * from the first outer hop on; with windows of one rank all hops are outer ones, so the sums are in the compute dtype.
 * If the forward gathered keys and values, the backward gathers them again; their gradients either go round as well
 * (PyTorch), or are reduce-scattered (TransformerEngine's all-gather, Llama 3). */
#include "schedule/attention/ring.h"
#include "schedule/choices/profile.h"

static struct qkv emit_tile_backward(struct emit *e, const struct ring_attention_sizes *z,
                                     const struct ring_tile *tile,
                                     const struct attention_saved *saved, struct view kv,
                                     struct view d_o, struct view dq, struct view dkv)
{
    int64_t q_begin = tile->first_query * z->q_width, q_count = tile->query_count * z->q_width;
    int64_t o_begin = tile->first_query * z->o_width, o_count = tile->query_count * z->o_width;
    int64_t v_begin = z->rank_tokens * z->kv_width, k_count = tile->key_count * z->kv_width;
    int64_t v_count = tile->key_count * z->v_width;
    struct work work = ring_tile_work(e, WORK_ATTENTION_BACKWARD, z, tile);
    struct qkv in = {view_slice(saved->qkv.q, q_begin, q_count), view_slice(kv, 0, k_count),
                     view_slice(kv, v_begin, v_count)};
    struct qkv grads = {view_slice(dq, q_begin, q_count), view_slice(dkv, 0, k_count),
                        view_slice(dkv, v_begin, v_count)};
    attention_tile_backward(
        e, work, &in, view_slice(saved->o, o_begin, o_count),
        view_slice(saved->lse, tile->first_query * z->heads, tile->query_count * z->heads),
        view_slice(d_o, o_begin, o_count), &grads);
    return grads;
}

/* Adds `part` to `sum` in place, from element `begin` on; emits nothing if there is no sum yet (an empty view). */
static void add_in_place(struct emit *e, struct view sum, int64_t begin, struct view part)
{
    if (sum.count == 0)
        return;
    sum = view_slice(sum, begin, (int64_t)part.count);
    emit_add(e, sum, part, sum);
}

struct ring_gradients ring_step_backward(struct emit *e, const struct ring_attention_sizes *z,
                                         uint32_t step, const struct attention_saved *saved,
                                         struct view kv, struct view d_o, struct view into,
                                         struct ring_gradients sums)
{
    struct ring_tile tile[2];
    struct qkv grads[2];
    uint32_t tiles = ring_list_tiles_of_step(e, z, step, tile);
    if (tiles == 0)
        return (struct ring_gradients){0};
    struct ring_gradients here = {
        .dq = emit_compute_tensor(e, "dq_block", CATEGORY_ACTIVATION, z->rank_tokens, z->q_width),
        .dkv = into};
    if (into.count == 0)
        here.dkv = ring_new_blocks(e, z, "dkv_block", 1);
    for (uint32_t i = 0; i < tiles; i++) {
        e->guard = tile[i].guard;
        grads[i] = emit_tile_backward(e, z, &tile[i], saved, kv, d_o, here.dq, here.dkv);
        add_in_place(e, sums.dq, tile[i].first_query * z->q_width, grads[i].q);
    }
    /* These additions come after all tiles. A rank that a guard excludes from a tile still waits here until the block's
     * dkv has arrived. */
    for (uint32_t i = 0; i < tiles; i++) {
        e->guard = tile[i].guard;
        add_in_place(e, sums.dkv, 0, grads[i].k);
        add_in_place(e, sums.dkv, z->rank_tokens * z->kv_width, grads[i].v);
    }
    e->guard = IR_NONE16;
    return here;
}

/* Returns a buffer of zeros to which this rank adds its part of the gradients of all ranks' keys and values; blocks
 * that its queries do not attend to stay zero. */
static struct view new_zero_kv_gradients_of_all_ranks(struct emit *e,
                                                      const struct ring_attention_sizes *z)
{
    return emit_zeros(e, ring_new_blocks(e, z, "dkv_all", e->group.outer_ring.size));
}

static struct view reduce_scatter_gradients(struct emit *e, const struct ring_attention_sizes *z,
                                            struct view all)
{
    struct work work = {
        .kind = WORK_REDUCE_SCATTER,
        .collective = {e->group.outer_ring.group, bytes_of_view(e, all), ALGORITHM_AUTO, 0, 1}};
    struct view own = ring_new_blocks(e, z, "dkv", 1);
    emit_op(e, e->group.outer_ring.dkv_stream, &work, &all, 1, &own, 1);
    return own;
}

struct qkv ring_backward(struct emit *e, const struct ring_attention_sizes *z,
                         const struct attention_saved *saved, struct view d_o)
{
    const struct choices *c = e->choices;
    enum dtype dtype = (enum dtype)c->dtype;
    const struct ring *outer = &e->group.outer_ring, *inner = &e->group.inner_ring;
    bool wide = c->profile->ring_sums_kv_gradients_in_fp32 || inner->size > 1;
    /* dkv: the gradient of the current block, summed over the ranks that the block has passed; dq: the gradient of this
     * rank's queries, in fp32 */
    struct ring_gradients sums = {0};
    struct ring_blocks blocks = {.next_window_first_block = saved->qkv.k};
    const int64_t block = ring_block_elements(z);
    blocks.next_window_first_block.count = (uint64_t)block; /* v lies after k */
    bool reduced = c->rotation == ROTATE_ALL_GATHER && !c->profile->shifts_gathered_kv_gradients;
    /* the gradients of all blocks, nearest first, if they are reduce-scattered */
    struct view all = {0};
    if (reduced)
        all = new_zero_kv_gradients_of_all_ranks(e, z);

    for (uint32_t step = 0, next; step < ring_step_count(e); step = next) {
        next = ring_next_step_with_tiles(e, z, step);
        ring_emit_messages_of_step(e, z, step, &blocks);
        struct view into = {0};
        if (reduced)
            into = view_slice(all, step * block, block);
        struct ring_gradients here =
            ring_step_backward(e, z, step, saved, blocks.current_block, d_o, into, sums);
        if (step == 0)
            sums.dq = emit_in_dtype(e, here.dq, DTYPE_F32, "dq_sum", CATEGORY_ACTIVATION);
        if (step == 0 && !reduced)
            sums.dkv = emit_in_dtype(e, here.dkv, wide ? DTYPE_F32 : dtype, "dkv_sum",
                                     CATEGORY_ACTIVATION);
        if (inner->size > 1)
            sums.dkv =
                ring_send_and_receive(e, inner, next - step, inner->dkv_stream, sums.dkv, "dkv");
        if (reduced || next % inner->size > 0) /* the next step is in the same window */
            continue;
        if (!c->profile->ring_sums_kv_gradients_in_fp32)
            sums.dkv = emit_in_dtype(e, sums.dkv, dtype, "dkv_sum", CATEGORY_ACTIVATION);
        if (outer->size > 1)
            sums.dkv =
                ring_send_and_receive(e, outer, (next - step + inner->size - 1) / inner->size,
                                      outer->dkv_stream, sums.dkv, "dkv");
    }
    if (reduced)
        sums.dkv = reduce_scatter_gradients(e, z, all);
    e->op_tags.step = IR_NONE16;
    struct view dq = emit_in_dtype(e, sums.dq, dtype, "dq", CATEGORY_ACTIVATION);
    struct view dkv = emit_in_dtype(e, sums.dkv, dtype, "dkv", CATEGORY_ACTIVATION);
    struct qkv grads = ring_split_kv_block(z, dkv);
    grads.q = dq;
    return grads;
}
