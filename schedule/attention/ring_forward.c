/* The ring forward: every step's tile is merged into running sums in fp32. */
#include "schedule/attention/ring.h"

static struct view view_of_tile_queries(struct view x, const struct ring_tile *tile, int64_t width)
{
    return view_slice(x, tile->first_query * width, tile->query_count * width);
}

op_id ring_tile_forward(struct emit *e, const struct ring_attention_sizes *z,
                        const struct ring_tile *tile, struct view q, struct view kv, struct view o,
                        struct view lse)
{
    struct work work = ring_tile_work(e, WORK_ATTENTION, z, tile);
    struct qkv in = {
        .q = view_of_tile_queries(q, tile, z->q_width),
        .k = view_slice(kv, 0, tile->key_count * z->kv_width),
        .v = view_slice(kv, z->rank_tokens * z->kv_width, tile->key_count * z->v_width),
    };
    return attention_tile(e, work, &in, view_of_tile_queries(o, tile, z->o_width),
                          view_of_tile_queries(lse, tile, z->heads));
}

void ring_merge_tile(struct emit *e, const struct ring_attention_sizes *z,
                     const struct ring_tile *tile, struct view sum, struct view lse,
                     struct view block, struct view block_lse)
{
    struct work work = {
        .kind = WORK_MERGE,
        .merge = {tile->query_count, z->heads, transformer_v_head_dim(e->choices->model)}};
    struct view write[2] = {view_of_tile_queries(sum, tile, z->o_width),
                            view_of_tile_queries(lse, tile, z->heads)};
    struct view read[4] = {write[0], write[1], view_of_tile_queries(block, tile, z->o_width),
                           view_of_tile_queries(block_lse, tile, z->heads)};
    emit_op(e, e->stream.compute, &work, read, 4, write, 2);
}

/* Emits the tiles of a step after the first, and merges their results into `sum` and saved->lse. */
static void emit_step_forward(struct emit *e, const struct ring_attention_sizes *z, uint32_t step,
                              const struct attention_saved *saved, struct view kv, struct view sum)
{
    struct ring_tile tile[2];
    uint32_t tiles = ring_list_tiles_of_step(e, z, step, tile);
    if (tiles == 0)
        return;
    struct view block =
        emit_compute_tensor(e, "o_block", CATEGORY_ACTIVATION, z->rank_tokens, z->o_width);
    struct view block_lse =
        emit_tensor(e, "lse_block", CATEGORY_ACTIVATION, DTYPE_F32, z->rank_tokens, z->heads);
    for (uint32_t i = 0; i < tiles; i++) {
        e->guard = tile[i].guard;
        ring_tile_forward(e, z, &tile[i], saved->qkv.q, kv, block, block_lse);
        ring_merge_tile(e, z, &tile[i], sum, saved->lse, block, block_lse);
    }
    e->guard = IR_NONE16;
}

void ring_forward(struct emit *e, const struct ring_attention_sizes *z,
                  struct attention_saved *saved, struct view o)
{
    bool f32 = e->choices->dtype == DTYPE_F32;
    struct view sum = o;
    struct ring_blocks blocks = {.next_window_first_block = saved->qkv.k};
    blocks.next_window_first_block.count = (uint64_t)ring_block_elements(z); /* v lies after k */
    attention_save_output_and_make_lse(e, saved, o, z->rank_tokens, z->heads);

    for (uint32_t step = 0; step < ring_step_count(e);
         step = ring_next_step_with_tiles(e, z, step)) {
        ring_emit_messages_of_step(e, z, step, &blocks);
        if (step > 0) {
            emit_step_forward(e, z, step, saved, blocks.current_block, sum);
            continue;
        }
        struct ring_tile tile[2];
        ring_list_tiles_of_step(e, z, 0, tile);
        struct view block = o;
        if (!f32)
            block =
                emit_compute_tensor(e, "o_block", CATEGORY_ACTIVATION, z->rank_tokens, z->o_width);
        ring_tile_forward(e, z, tile, saved->qkv.q, blocks.current_block, block, saved->lse);
        sum = emit_in_dtype(e, block, DTYPE_F32, "o_sum", CATEGORY_ACTIVATION);
    }
    if (!f32)
        emit_cast(e, sum, o);
    e->op_tags.step = IR_NONE16;
}
