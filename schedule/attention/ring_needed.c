/* Attention over context ranks that send each other only the keys and values that some query of the receiver sees, as
 * MagiAttention does (arXiv 2505.13211). One exchange runs during the tile of a rank's own keys; then there is one tile
 * of the rows that have arrived. The backward exchanges the keys and values again, and sends their gradients back,
 * which are summed in fp32. Which rows these are follows from the documents and the window (schedule/ir/needed.h);
 * buffers have room for the rank with the most. */
#include "schedule/attention/ring.h"

#include "schedule/ir/visible.h"

/* The numbers of rows of keys that a rank sends and receives for a sequence, each the most over all ranks, for which
 * buffers have room. sequence, window: the parameters with these names of the sequence's ops. */
struct sent_received_row_capacity {
    int64_t sent_rows, received_rows;
    int64_t sequence, window;
};

static struct sent_received_row_capacity
sent_received_row_capacity_of(struct emit *e, const struct ring_attention_sizes *z)
{
    struct sequence_mask mask = sequence_mask_of(e, z->layer, z->sequence, e->choices->seq);
    const struct row_use use = {.sequence = mask.sequence, .window = mask.window};
    uint32_t i = 0;
    while (i < e->row_capacity_cache_count && (e->row_capacity_cache[i].sequence != mask.sequence ||
                                               e->row_capacity_cache[i].window != mask.window))
        i++;
    if (i == e->row_capacity_cache_count) {
        e->row_capacity_cache = heap_grow(e->row_capacity_cache, &e->row_capacity_cache_allocated,
                                          i + (size_t)1, sizeof *e->row_capacity_cache);
        e->row_capacity_cache[e->row_capacity_cache_count++] = (struct row_capacity_cache_entry){
            mask.sequence, mask.window, row_use_max_rows_of_any_rank(e->ir, &use)};
    }
    return (struct sent_received_row_capacity){e->row_capacity_cache[i].capacity.sent_rows,
                                               e->row_capacity_cache[i].capacity.received_rows,
                                               mask.sequence, mask.window};
}

static struct work needed_attention_work(const struct emit *e, enum work_kind kind,
                                         const struct ring_attention_sizes *z,
                                         const struct sent_received_row_capacity *r, bool arrived)
{
    struct work work = attention_causal_work(e, kind, z->rank_tokens, z->heads, z->kv_heads);
    work.attention.kv = arrived ? r->received_rows : z->rank_tokens;
    work.attention.mask = arrived ? MASK_PLAN : MASK_DOCUMENTS;
    work.attention.window = r->window;
    work.attention.sequence = r->sequence;
    return work;
}

/* Emits the op TAKE_ROWS, which copies rows of x to a new tensor in the order `how`, and returns that tensor. x has
 * `rows` rows of k and then as many of v; the result has room for `to` rows of each. */
static struct view emit_take_rows(struct emit *e, const struct ring_attention_sizes *z,
                                  const struct sent_received_row_capacity *r,
                                  enum take_rows_order how, struct view x, int64_t rows, int64_t to,
                                  const char *stem)
{
    struct work work = {
        .kind = WORK_TAKE_ROWS,
        .take_rows = {.rows = rows,
                      .to = to,
                      .parts = 2,
                      .width = z->kv_width,
                      .take = how,
                      .sequence = r->sequence,
                      .window = r->window},
    };
    struct view y = emit_tensor(
        e, stem, how == TAKE_ARRIVED_ROWS_TO_POSITIONS ? CATEGORY_KV : CATEGORY_COMMUNICATION,
        dtype_of_view(e, x), 2 * to, z->kv_width);
    emit_op(e, e->stream.compute, &work, &x, 1, &y, 1);
    return y;
}

static struct view exchange_rows(struct emit *e, const struct ring_attention_sizes *z,
                                 const struct sent_received_row_capacity *r, bool back,
                                 struct view x, const char *stem)
{
    int64_t rows = back ? r->received_rows : r->sent_rows,
            to = back ? r->sent_rows : r->received_rows;
    struct work work = {
        .kind = WORK_EXCHANGE,
        .exchange = {.group = e->group.outer_ring.group,
                     .rows = rows,
                     .to = to,
                     .parts = 2,
                     .width = z->kv_width,
                     .back = back,
                     .sequence = r->sequence,
                     .window = r->window},
    };
    struct view y =
        emit_tensor(e, stem, CATEGORY_COMMUNICATION, dtype_of_view(e, x), 2 * to, z->kv_width);
    emit_op(e, back ? e->group.outer_ring.dkv_stream : e->group.outer_ring.kv_stream, &work, &x, 1,
            &y, 1);
    return y;
}

/* Emits the exchange of keys and values between ranks, and returns those that arrive at this rank, sorted by sender. */
static struct view exchange_kv_rows(struct emit *e, const struct ring_attention_sizes *z,
                                    const struct sent_received_row_capacity *r, struct view kv)
{
    struct view message =
        emit_take_rows(e, z, r, TAKE_OWN_ROWS_TO_SEND, kv, z->rank_tokens, r->sent_rows, "message");
    return exchange_rows(e, z, r, false, message, "arrived");
}

static struct view emit_place_rows(struct emit *e, const struct ring_attention_sizes *z,
                                   const struct sent_received_row_capacity *r, struct view arrived)
{
    return emit_take_rows(e, z, r, TAKE_ARRIVED_ROWS_TO_POSITIONS, arrived, r->received_rows,
                          r->received_rows, "kv_needed");
}

void ring_needed_rows_forward(struct emit *e, const struct ring_attention_sizes *z,
                              struct attention_saved *saved, struct view o)
{
    bool f32 = e->choices->dtype == DTYPE_F32;
    struct sent_received_row_capacity r = sent_received_row_capacity_of(e, z);
    struct view kv = ring_own_keys_values(saved), arrived = {0}, block = o;
    struct qkv in = ring_qkv_from_q_and_kv(saved->qkv.q, kv);
    attention_save_output_and_make_lse(e, saved, o, z->rank_tokens, z->heads);
    e->op_tags.step = 0;
    if (r.received_rows > 0)
        arrived = exchange_kv_rows(e, z, &r, kv);
    if (!f32 && r.received_rows > 0)
        block = emit_compute_tensor(e, "o_block", CATEGORY_ACTIVATION, z->rank_tokens, z->q_width);
    attention_tile(e, needed_attention_work(e, WORK_ATTENTION, z, &r, false), &in, block,
                   saved->lse);
    if (r.received_rows > 0) {
        struct view sum = emit_in_dtype(e, block, DTYPE_F32, "o_sum", CATEGORY_ACTIVATION);
        struct ring_tile all = {.query_count = z->rank_tokens, .guard = IR_NONE16};
        e->op_tags.step = 1;
        in = ring_qkv_from_q_and_kv(saved->qkv.q, emit_place_rows(e, z, &r, arrived));
        block = emit_compute_tensor(e, "o_block", CATEGORY_ACTIVATION, z->rank_tokens, z->q_width);
        struct view lse =
            emit_tensor(e, "lse_block", CATEGORY_ACTIVATION, DTYPE_F32, z->rank_tokens, z->heads);
        attention_tile(e, needed_attention_work(e, WORK_ATTENTION, z, &r, true), &in, block, lse);
        ring_merge_tile(e, z, &all, sum, saved->lse, block, lse);
        if (!f32)
            emit_cast(e, sum, o);
    }
    e->op_tags.step = IR_NONE16;
}

/* Emits the backward of a tile, and returns the gradients of its queries and of its keys and values. */
static struct ring_gradients emit_tile_backward(struct emit *e,
                                                const struct ring_attention_sizes *z,
                                                const struct sent_received_row_capacity *r,
                                                bool arrived, const struct attention_saved *saved,
                                                struct view kv, struct view d_o)
{
    struct ring_gradients g = {
        .dq = emit_compute_tensor(e, "dq_block", CATEGORY_ACTIVATION, z->rank_tokens, z->q_width),
        .dkv = emit_compute_tensor(e, "dkv_block", CATEGORY_KV,
                                   2 * (arrived ? r->received_rows : z->rank_tokens), z->kv_width),
    };
    struct qkv in = ring_qkv_from_q_and_kv(saved->qkv.q, kv),
               grads = ring_qkv_from_q_and_kv(g.dq, g.dkv);
    attention_tile_backward(e, needed_attention_work(e, WORK_ATTENTION_BACKWARD, z, r, arrived),
                            &in, saved->o, saved->lse, d_o, &grads);
    return g;
}

struct qkv ring_needed_rows_backward(struct emit *e, const struct ring_attention_sizes *z,
                                     const struct attention_saved *saved, struct view d_o)
{
    enum dtype dtype = (enum dtype)e->choices->dtype;
    struct sent_received_row_capacity r = sent_received_row_capacity_of(e, z);
    struct view kv = ring_own_keys_values(saved), arrived = {0};
    e->op_tags.step = 0;
    if (r.received_rows > 0)
        arrived = exchange_kv_rows(e, z, &r, kv);
    struct ring_gradients own = emit_tile_backward(e, z, &r, false, saved, kv, d_o);
    if (r.received_rows > 0) {
        own.dq = emit_in_dtype(e, own.dq, DTYPE_F32, "dq_sum", CATEGORY_ACTIVATION);
        own.dkv = emit_in_dtype(e, own.dkv, DTYPE_F32, "dkv_sum", CATEGORY_ACTIVATION);
        e->op_tags.step = 1;
        struct ring_gradients other =
            emit_tile_backward(e, z, &r, true, saved, emit_place_rows(e, z, &r, arrived), d_o);
        struct view message = emit_take_rows(e, z, &r, TAKE_RESULTS_TO_SENDER_ORDER, other.dkv,
                                             r.received_rows, r.received_rows, "message");
        struct view back = exchange_rows(e, z, &r, true, message, "returned");
        struct work work = {
            .kind = WORK_ADD_ROWS,
            .add_rows = {.rows = r.sent_rows,
                         .to = z->rank_tokens,
                         .parts = 2,
                         .width = z->kv_width,
                         .sequence = r.sequence,
                         .window = r.window},
        };
        emit_add(e, own.dq, other.dq, own.dq);
        emit_op(e, e->stream.compute, &work, (struct view[]){back, own.dkv}, 2, &own.dkv, 1);
    }
    e->op_tags.step = IR_NONE16;
    struct view dq = emit_in_dtype(e, own.dq, dtype, "dq", CATEGORY_ACTIVATION);
    return ring_qkv_from_q_and_kv(dq, emit_in_dtype(e, own.dkv, dtype, "dkv", CATEGORY_ACTIVATION));
}
