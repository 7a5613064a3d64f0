/* Attention whose tiles a core plan divides among context ranks, in rounds (schedule/ir/tile_plan.h). In each round a
 * rank gets the keys and queries of its tiles from their owners and computes its tiles. Results for rows that other
 * ranks own are sent to these ranks: outputs with their log-sum-exps, which are merged, and the gradients of queries
 * and keys, which are summed in fp32. The rows of a round travel while the tiles of the previous round are computed,
 * and its results while those of the next round are. If no rank sends any rows in a round, there is no exchange.
 * Buffers have room for the rank with the most rows. */
#include "schedule/attention/ring.h"

#include "schedule/ir/visible.h"

/* One pass (forward or backward) over a sequence, and the round whose ops are being emitted. */
struct planned_ring {
    const struct ring_attention_sizes *shape;
    int64_t sequence, window;
    enum plan_pass pass;
    uint32_t rounds, round;
};

static struct planned_ring planned_ring_of(struct emit *e, const struct ring_attention_sizes *z,
                                           enum plan_pass pass)
{
    struct sequence_mask mask = sequence_mask_of(e, z->layer, z->sequence, e->choices->seq);
    return (struct planned_ring){
        z, mask.sequence, mask.window, pass, row_use_round_count(e->ir, mask.sequence, pass), 0};
}

static struct max_rows_of_any_rank_in_round
capacity_of_moved_rows(const struct emit *e, const struct planned_ring *p,
                       enum plan_keys_or_queries operand_kind)
{
    const struct row_use use = {p->sequence, p->window, p->round + 1, p->pass, operand_kind};
    return row_use_max_rows_of_any_rank(e->ir, &use);
}

/* Rows that move together: `parts` tensors of `width` columns, one after the other in their buffers. */
struct moved_rows_format {
    enum plan_keys_or_queries keys_or_queries;
    int64_t parts, width;
    enum dtype dtype;
};

static struct view new_moved_tensor(struct emit *e, const struct moved_rows_format *m,
                                    const char *stem, int64_t rows)
{
    enum category category = m->keys_or_queries == PLAN_KEYS ? CATEGORY_KV : CATEGORY_ACTIVATION;
    return emit_tensor(e, stem, category, m->dtype, m->parts * rows, m->width);
}

/* Emits the op TAKE_ROWS, which copies rows of x[rows], in the order `how`, to y[to]. arrived: the rows of other ranks,
 * which TAKE_ROWS_TO_ROUND_ORDER also reads; empty: there are none. */
static void emit_take_rows(struct emit *e, const struct planned_ring *p,
                           const struct moved_rows_format *m, enum take_rows_order how,
                           struct view x, int64_t rows, struct view arrived, struct view y,
                           int64_t to)
{
    struct work work = {
        .kind = WORK_TAKE_ROWS,
        .take_rows = {rows, to, m->parts, m->width, how, p->sequence, p->window, p->round + 1,
                      p->pass == PLAN_BACKWARD, m->keys_or_queries,
                      (int64_t)arrived.count / (m->parts * m->width)},
    };
    emit_op(e, e->stream.compute, &work, (struct view[]){x, arrived}, arrived.count > 0 ? 2 : 1, &y,
            1);
}

static struct view exchange_rows(struct emit *e, const struct planned_ring *p,
                                 const struct moved_rows_format *m, bool back, struct view x,
                                 const char *stem)
{
    const struct max_rows_of_any_rank_in_round room =
        capacity_of_moved_rows(e, p, m->keys_or_queries);
    int64_t rows = back ? room.received_rows : room.sent_rows,
            to = back ? room.sent_rows : room.received_rows;
    struct work work = {
        .kind = WORK_EXCHANGE,
        .exchange = {e->group.outer_ring.group, rows, to, m->parts, m->width, back, p->sequence,
                     p->window, p->round + 1, p->pass == PLAN_BACKWARD, m->keys_or_queries},
    };
    struct view y = emit_tensor(e, stem, CATEGORY_COMMUNICATION, m->dtype, m->parts * to, m->width);
    emit_op(e, back ? e->group.outer_ring.dkv_stream : e->group.outer_ring.kv_stream, &work, &x, 1,
            &y, 1);
    return y;
}

/* Sends a rank's own rows to the ranks that need them in the round. Returns the rows that arrive; an empty view if none
 * arrive on any rank. */
static struct view send_rows(struct emit *e, const struct planned_ring *p,
                             const struct moved_rows_format *m, struct view own)
{
    const struct max_rows_of_any_rank_in_round room =
        capacity_of_moved_rows(e, p, m->keys_or_queries);
    if (room.received_rows == 0)
        return view_none();
    struct view message = emit_tensor(e, "message", CATEGORY_COMMUNICATION, m->dtype,
                                      m->parts * room.sent_rows, m->width);
    emit_take_rows(e, p, m, TAKE_OWN_ROWS_TO_SEND, own, p->shape->rank_tokens, view_none(), message,
                   room.sent_rows);
    return exchange_rows(e, p, m, false, message, "arrived");
}

/* Returns the rows that the round reads, in packed order. They are `own` itself if, on every rank, they are exactly the
 * rank's own rows. arrived: the rows of other ranks; empty: none. */
static struct view gather_rows_of_round(struct emit *e, const struct planned_ring *p,
                                        const struct moved_rows_format *m, struct view own,
                                        struct view arrived, const char *stem)
{
    const struct row_use use = {p->sequence, p->window, p->round + 1, p->pass, m->keys_or_queries};
    if (row_use_has_own_rows_only(e->ir, &use))
        return own;
    const int64_t rows = capacity_of_moved_rows(e, p, m->keys_or_queries).packed_rows;
    struct view y = new_moved_tensor(e, m, stem, rows);
    emit_take_rows(e, p, m, TAKE_ROWS_TO_ROUND_ORDER, own, p->shape->rank_tokens, arrived, y, rows);
    return y;
}

/* Sends results of rows in packed order to the owners of the rows. Returns the results that arrive for this rank's own
 * rows; an empty view if none arrive on any rank. */
static struct view emit_return_results(struct emit *e, const struct planned_ring *p,
                                       const struct moved_rows_format *m, struct view x)
{
    const struct max_rows_of_any_rank_in_round room =
        capacity_of_moved_rows(e, p, m->keys_or_queries);
    if (room.received_rows == 0)
        return view_none();
    struct view message = emit_tensor(e, "message", CATEGORY_COMMUNICATION, m->dtype,
                                      m->parts * room.received_rows, m->width);
    emit_take_rows(e, p, m, TAKE_RESULTS_TO_SENDER_ORDER, x, room.packed_rows, view_none(), message,
                   room.received_rows);
    return exchange_rows(e, p, m, true, message, "returned");
}

static struct view view_of_equal_part(struct view x, int64_t part, int64_t parts)
{
    const int64_t count = (int64_t)x.count / parts;
    return view_slice(x, part * count, count);
}

static struct work round_attention_work(const struct emit *e, const struct planned_ring *p,
                                        enum work_kind kind)
{
    const struct ring_attention_sizes *z = p->shape;
    struct work work = attention_causal_work(
        e, kind, capacity_of_moved_rows(e, p, PLAN_QUERIES).packed_rows, z->heads, z->kv_heads);
    work.attention.kv = capacity_of_moved_rows(e, p, PLAN_KEYS).packed_rows;
    work.attention.mask = MASK_PLAN;
    work.attention.window = p->window;
    work.attention.sequence = p->sequence;
    work.attention.round = p->round + 1;
    work.attention.delta = kind == WORK_ATTENTION_BACKWARD;
    return work;
}

static bool round_has_tiles(const struct emit *e, const struct planned_ring *p)
{
    return capacity_of_moved_rows(e, p, PLAN_QUERIES).packed_rows > 0;
}

static void set_current_round(struct emit *e, struct planned_ring *p, uint32_t round)
{
    p->round = round;
    e->op_tags.step = (uint16_t)round;
}

/* ---- forward ---- */

/* The running result of a rank's own queries, into which rounds are merged. has_merged_a_round: some round has been
 * merged. */
struct merged_results_of_rounds {
    struct view o, lse;
    bool has_merged_a_round;
};

/* Results of a round that have come back from other ranks; empty views: none have. */
struct returned_results {
    struct view block, lse;
    uint32_t round;
};

/* Merges the results of a round for this rank's own rows into *sum. held: this rank has computed them, and they are in
 * packed order; else other ranks have returned them. */
static void merge_tiles(struct emit *e, const struct planned_ring *p,
                        struct merged_results_of_rounds *sum, struct view block, struct view lse,
                        bool held)
{
    const struct ring_attention_sizes *z = p->shape;
    struct work work = {
        .kind = WORK_MERGE_ROWS,
        .merge_rows = {(int64_t)lse.count / z->heads, z->rank_tokens, z->heads,
                       z->q_width / z->heads, p->sequence, p->window, p->round + 1,
                       !sum->has_merged_a_round, held},
    };
    emit_op(e, e->stream.compute, &work, (struct view[]){block, lse, sum->o, sum->lse},
            sum->has_merged_a_round ? 4 : 2, (struct view[]){sum->o, sum->lse}, 2);
    sum->has_merged_a_round = true;
}

static void merge_returned_results(struct emit *e, struct planned_ring p,
                                   struct merged_results_of_rounds *sum,
                                   struct returned_results *from)
{
    set_current_round(e, &p, from->round);
    if (from->block.count > 0)
        merge_tiles(e, &p, sum, from->block, from->lse, false);
    from->block = view_none();
}

/* The rows that have arrived from other ranks for a round. A view is empty if no rank sends such rows. */
struct rows_arrived_for_round {
    struct view keys, queries, statistics;
};

static struct moved_rows_format format_of_moved_keys(const struct emit *e,
                                                     const struct ring_attention_sizes *z)
{
    return (struct moved_rows_format){PLAN_KEYS, 2, z->kv_width, (enum dtype)e->choices->dtype};
}

static struct moved_rows_format
format_of_moved_queries(const struct emit *e, const struct ring_attention_sizes *z, int64_t parts)
{
    return (struct moved_rows_format){PLAN_QUERIES, parts, z->q_width,
                                      (enum dtype)e->choices->dtype};
}

static struct moved_rows_format format_of_moved_statistics(const struct ring_attention_sizes *z,
                                                           int64_t parts)
{
    return (struct moved_rows_format){PLAN_QUERIES, parts, z->heads, DTYPE_F32};
}

static struct rows_arrived_for_round
send_rows_for_round_forward(struct emit *e, const struct planned_ring *p,
                            const struct attention_saved *saved)
{
    const struct moved_rows_format keys = format_of_moved_keys(e, p->shape),
                                   queries = format_of_moved_queries(e, p->shape, 1);
    return (struct rows_arrived_for_round){.keys =
                                               send_rows(e, p, &keys, ring_own_keys_values(saved)),
                                           .queries = send_rows(e, p, &queries, saved->qkv.q)};
}

void ring_planned_forward(struct emit *e, const struct ring_attention_sizes *z,
                          struct attention_saved *saved, struct view o)
{
    const struct moved_rows_format keys = format_of_moved_keys(e, z),
                                   queries = format_of_moved_queries(e, z, 1),
                                   statistics = format_of_moved_statistics(z, 1);
    struct planned_ring p = planned_ring_of(e, z, PLAN_FORWARD);
    attention_save_output_and_make_lse(e, saved, o, z->rank_tokens, z->heads);
    struct merged_results_of_rounds sum = {.o = o, .lse = saved->lse};
    struct returned_results returned = {.block = view_none()};
    if (e->choices->dtype != DTYPE_F32)
        sum.o = emit_tensor(e, "o_sum", CATEGORY_ACTIVATION, DTYPE_F32, z->rank_tokens, z->q_width);
    set_current_round(e, &p, 0);
    struct rows_arrived_for_round now = send_rows_for_round_forward(e, &p, saved), next = {0};
    for (uint32_t t = 0; t < p.rounds; t++, now = next) {
        if (t + 1 < p.rounds) {
            set_current_round(e, &p, t + 1);
            next = send_rows_for_round_forward(e, &p, saved);
        }
        set_current_round(e, &p, t);
        if (!round_has_tiles(e, &p))
            continue;
        struct qkv in = ring_qkv_from_q_and_kv(
            gather_rows_of_round(e, &p, &queries, saved->qkv.q, now.queries, "q_round"),
            gather_rows_of_round(e, &p, &keys, ring_own_keys_values(saved), now.keys, "kv_round"));
        const int64_t rows = capacity_of_moved_rows(e, &p, PLAN_QUERIES).packed_rows;
        struct view block = new_moved_tensor(e, &queries, "o_block", rows),
                    lse = new_moved_tensor(e, &statistics, "lse_block", rows);
        attention_tile(e, round_attention_work(e, &p, WORK_ATTENTION), &in, block, lse);
        merge_tiles(e, &p, &sum, block, lse, true);
        merge_returned_results(e, p, &sum, &returned);
        set_current_round(e, &p, t);
        returned =
            (struct returned_results){emit_return_results(e, &p, &queries, block), view_none(), t};
        if (returned.block.count > 0)
            returned.lse = emit_return_results(e, &p, &statistics, lse);
    }
    merge_returned_results(e, p, &sum, &returned);
    if (e->choices->dtype != DTYPE_F32)
        emit_cast(e, sum.o, o);
    e->op_tags.step = IR_NONE16;
}

/* ---- backward ---- */

/* Gradients of a round: those that round_backward() makes of the rows that the round reads, or those that other ranks
 * return after it. The latter are added while the next round is computed. */
struct gradients_of_round {
    struct view dq, dkv; /* empty: no rank returns any */
    uint32_t round;
};

/* Adds a round's gradients x of a rank's own rows to *sum; makes *sum if it is empty. held: this rank has computed x,
 * which is in packed order; else other ranks have returned it. */
static void add_round_gradients_to_sum(struct emit *e, const struct planned_ring *p,
                                       const struct moved_rows_format *m, struct view x,
                                       struct view *sum, bool held)
{
    const struct row_use use = {p->sequence, p->window, p->round + 1, p->pass, m->keys_or_queries};
    if (sum->count == 0) {
        const bool keys = m->keys_or_queries == PLAN_KEYS;
        *sum = emit_tensor(e, keys ? "dkv_sum" : "dq_sum", keys ? CATEGORY_KV : CATEGORY_ACTIVATION,
                           DTYPE_F32, m->parts * p->shape->rank_tokens, m->width);
        if (held && row_use_has_own_rows_only(e->ir, &use)) {
            emit_cast(e, x, *sum);
            return;
        }
        emit_zeros(e, *sum);
    }
    struct work work = {
        .kind = WORK_ADD_ROWS,
        .add_rows = {(int64_t)x.count / (m->parts * m->width), p->shape->rank_tokens, m->parts,
                     m->width, p->sequence, p->window, p->round + 1, p->pass == PLAN_BACKWARD,
                     m->keys_or_queries, held},
    };
    emit_op(e, e->stream.compute, &work, (struct view[]){x, *sum}, 2, sum, 1);
}

static void add_returned_gradients(struct emit *e, struct planned_ring p,
                                   struct gradients_of_round *g, struct view *dq, struct view *dkv)
{
    const struct moved_rows_format keys = format_of_moved_keys(e, p.shape),
                                   queries = format_of_moved_queries(e, p.shape, 1);
    set_current_round(e, &p, g->round);
    if (g->dq.count > 0)
        add_round_gradients_to_sum(e, &p, &queries, g->dq, dq, false);
    if (g->dkv.count > 0)
        add_round_gradients_to_sum(e, &p, &keys, g->dkv, dkv, false);
    g->dq = g->dkv = view_none();
}

/* The tensors of a rank's own queries that the backward reads. */
struct own_query_tensors {
    struct view q, d_o, statistics; /* statistics: log-sum-exps, and then row sums of d_o times o */
};

/* Sends keys with values as one message, queries with the gradients of their outputs as another, and the statistics of
 * the queries as a third; leaves out those of which no rank needs any rows. */
static struct rows_arrived_for_round
send_rows_for_round_backward(struct emit *e, const struct planned_ring *p,
                             const struct attention_saved *saved,
                             const struct own_query_tensors *own)
{
    const struct moved_rows_format keys = format_of_moved_keys(e, p->shape),
                                   one = format_of_moved_queries(e, p->shape, 1),
                                   two = format_of_moved_queries(e, p->shape, 2),
                                   statistics = format_of_moved_statistics(p->shape, 2);
    const struct max_rows_of_any_rank_in_round room = capacity_of_moved_rows(e, p, PLAN_QUERIES);
    struct rows_arrived_for_round arrivals = {
        .keys = send_rows(e, p, &keys, ring_own_keys_values(saved)),
        .queries = view_none(),
        .statistics = view_none()};
    if (room.received_rows == 0)
        return arrivals;
    struct view message =
        emit_tensor(e, "message", CATEGORY_COMMUNICATION, two.dtype, 2 * room.sent_rows, two.width);
    emit_take_rows(e, p, &one, TAKE_OWN_ROWS_TO_SEND, own->q, p->shape->rank_tokens, view_none(),
                   view_of_equal_part(message, 0, 2), room.sent_rows);
    emit_take_rows(e, p, &one, TAKE_OWN_ROWS_TO_SEND, own->d_o, p->shape->rank_tokens, view_none(),
                   view_of_equal_part(message, 1, 2), room.sent_rows);
    arrivals.queries = exchange_rows(e, p, &two, false, message, "arrived");
    arrivals.statistics = send_rows(e, p, &statistics, own->statistics);
    return arrivals;
}

/* Emits the backward of the tiles of a round, and returns the gradients of the rows that the round reads, in packed
 * order. */
static struct gradients_of_round round_backward(struct emit *e, const struct planned_ring *p,
                                                const struct attention_saved *saved,
                                                const struct own_query_tensors *own,
                                                const struct rows_arrived_for_round *arrived)
{
    const struct moved_rows_format keys = format_of_moved_keys(e, p->shape),
                                   queries = format_of_moved_queries(e, p->shape, 1),
                                   statistics = format_of_moved_statistics(p->shape, 2);
    struct view q_in = view_none(), d_o_in = view_none();
    if (arrived->queries.count > 0) {
        q_in = view_of_equal_part(arrived->queries, 0, 2);
        d_o_in = view_of_equal_part(arrived->queries, 1, 2);
    }
    struct view q = gather_rows_of_round(e, p, &queries, own->q, q_in, "q_round"),
                kv = gather_rows_of_round(e, p, &keys, ring_own_keys_values(saved), arrived->keys,
                                          "kv_round"),
                d_o = gather_rows_of_round(e, p, &queries, own->d_o, d_o_in, "d_o_round"),
                rows = gather_rows_of_round(e, p, &statistics, own->statistics, arrived->statistics,
                                            "statistics_round");
    struct gradients_of_round g = {
        new_moved_tensor(e, &queries, "dq_block",
                         capacity_of_moved_rows(e, p, PLAN_QUERIES).packed_rows),
        new_moved_tensor(e, &keys, "dkv_block",
                         capacity_of_moved_rows(e, p, PLAN_KEYS).packed_rows),
        p->round};
    struct qkv in = ring_qkv_from_q_and_kv(q, kv), grads = ring_qkv_from_q_and_kv(g.dq, g.dkv);
    attention_tile_backward(e, round_attention_work(e, p, WORK_ATTENTION_BACKWARD), &in,
                            view_of_equal_part(rows, 1, 2), view_of_equal_part(rows, 0, 2), d_o,
                            &grads);
    return g;
}

/* Returns the statistics of a rank's own queries (struct own_query_tensors). */
static struct view emit_lse_and_delta_of_own_queries(struct emit *e,
                                                     const struct ring_attention_sizes *z,
                                                     const struct attention_saved *saved,
                                                     struct view d_o)
{
    struct view statistics =
        emit_tensor(e, "statistics", CATEGORY_ACTIVATION, DTYPE_F32, 2 * z->rank_tokens, z->heads);
    struct view delta = view_of_equal_part(statistics, 1, 2);
    struct work work = {.kind = WORK_ROW_DOT,
                        .merge = {z->rank_tokens, z->heads, z->q_width / z->heads}};
    emit_cast(e, saved->lse, view_of_equal_part(statistics, 0, 2));
    emit_op(e, e->stream.compute, &work, (struct view[]){saved->o, d_o}, 2, &delta, 1);
    return statistics;
}

struct qkv ring_planned_backward(struct emit *e, const struct ring_attention_sizes *z,
                                 const struct attention_saved *saved, struct view d_o)
{
    const struct moved_rows_format keys = format_of_moved_keys(e, z),
                                   queries = format_of_moved_queries(e, z, 1);
    const enum dtype dtype = (enum dtype)e->choices->dtype;
    struct planned_ring p = planned_ring_of(e, z, PLAN_BACKWARD);
    set_current_round(e, &p, 0);
    const struct own_query_tensors own = {saved->qkv.q, d_o,
                                          emit_lse_and_delta_of_own_queries(e, z, saved, d_o)};
    struct view dq = view_none(), dkv = view_none();
    struct gradients_of_round returned = {view_none(), view_none(), 0};
    struct rows_arrived_for_round now = send_rows_for_round_backward(e, &p, saved, &own),
                                  next = {0};
    for (uint32_t t = 0; t < p.rounds; t++, now = next) {
        if (t + 1 < p.rounds) {
            set_current_round(e, &p, t + 1);
            next = send_rows_for_round_backward(e, &p, saved, &own);
        }
        set_current_round(e, &p, t);
        if (!round_has_tiles(e, &p))
            continue;
        struct gradients_of_round g = round_backward(e, &p, saved, &own, &now);
        add_round_gradients_to_sum(e, &p, &queries, g.dq, &dq, true);
        add_round_gradients_to_sum(e, &p, &keys, g.dkv, &dkv, true);
        add_returned_gradients(e, p, &returned, &dq, &dkv);
        set_current_round(e, &p, t);
        returned = (struct gradients_of_round){emit_return_results(e, &p, &queries, g.dq),
                                               emit_return_results(e, &p, &keys, g.dkv), t};
    }
    add_returned_gradients(e, p, &returned, &dq, &dkv);
    e->op_tags.step = IR_NONE16;
    return ring_qkv_from_q_and_kv(emit_in_dtype(e, dq, dtype, "dq", CATEGORY_ACTIVATION),
                                  emit_in_dtype(e, dkv, dtype, "dkv", CATEGORY_ACTIVATION));
}
