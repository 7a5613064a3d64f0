/* Emits the experts of a layer: the router's weights, the copies of rows in the order of experts, their grouped
 * products, the weighted sum of each token's copies, and shared experts beside them.
 *
 * If experts are spread over ranks, DISPATCHER_ALLTOALL sends copies. Each rank sends to every other rank the copies of
 * its tokens for the experts there; they are consecutive in the order of experts. A rank receives rows in the order of
 * the ranks that sent them, [ranks, experts, rows], and copies them into the order of its experts, [experts, ranks,
 * rows] (Megatron-LM, moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher: permute, all_to_all, sort_chunks_by_idxs).
 * Results return the same way.
 *
 * The other dispatchers send tokens and their weights, which the receiving rank copies. It gets the tokens of all ranks
 * (MoEAllGatherTokenDispatcher), or those that are routed to its experts (MoEFlexTokenDispatcher with DeepEP or
 * HybridEP). It makes the copies for its own experts and sums the weighted results of each token; the exchange back
 * adds the sums of all ranks.
 *
 * If the activation multiplies its results by the weights of copies (activation_weights_copies()), these weights are
 * copied and sent as the rows are, and the sums are without weights. */
#include "schedule/step/experts.h"
#include "schedule/attention/project.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/step/combined.h"

#include <math.h>

static struct view new_f32_tensor(struct emit *e, const char *stem, int64_t rows, int64_t cols)
{
    return emit_tensor(e, stem, CATEGORY_ACTIVATION, DTYPE_F32, rows, cols);
}

static struct work router_work(const struct emit *e, enum work_kind kind, struct expert_rows copies,
                               int64_t rows)
{
    const struct transformer *m = e->choices->model;
    return (struct work){.kind = (uint8_t)kind,
                         .route = {rows, m->experts, m->experts_per_token, (int64_t)m->router,
                                   m->router_norm, (int64_t)llround(m->router_scale * 1e6),
                                   copies.route}};
}

static struct work activation_work(const struct emit *e, enum work_kind kind,
                                   struct expert_rows rows, int64_t cols, bool weights)
{
    return (struct work){.kind = (uint8_t)kind,
                         .activation = {rows.capacity_rows, cols, 0, activation_function_to_emit(e),
                                        rows.route, rows.dealt, weights}};
}

/* True if the activation of experts multiplies its results by the weights of copies. If not, the op that copies the
 * input does so (router_on_input), or else the op that sums a token's results. It is false for experts with a second
 * bias, which is added after the activation and must be weighted, too. */
static bool activation_weights_copies(const struct emit *e)
{
    const struct transformer *m = e->choices->model;
    return e->choices->profile->activation_weights_copies && !m->router_on_input && !m->bias_ffn;
}

static void emit_op_on_compute_stream(struct emit *e, struct work work, const struct view *read,
                                      uint32_t reads, const struct view *write, uint32_t writes)
{
    emit_op(e, e->stream.compute, &work, read, reads, write, writes);
}

/* Returns the number of experts that a rank has. */
static int64_t own_expert_count(const struct emit *e)
{
    return e->choices->model->experts / (int64_t)e->choices->ep;
}

/* The numbers of rows that the ops of a layer's experts have, from the router's tokens to the experts of a rank. */
struct expert_route_row_counts {
    struct expert_rows own_expert_rows; /* of the rank's experts */
    int64_t tokens;                     /* that the rank routes */
    int64_t expert_copies;              /* rows of experts that these tokens fill, on all ranks */
    /* the rows from which copies are made: `tokens` rows or, if tokens are sent, those that come from all ranks */
    int64_t read_rows;
    int64_t read_rows_permute_source; /* enum permute_source: the tokens that read_rows counts */
    /* kernels read from the routing which copies there are, since some are dropped or belong to tokens of other
     * ranks */
    bool copies_are_read_from_routing;
};

static struct expert_route_row_counts row_counts_of_expert_route(const struct emit *e,
                                                                 uint32_t layer, int64_t rows)
{
    const struct choices *c = e->choices;
    const struct routing *routing = &e->ir->routing;
    const uint32_t ranks = c->ep;
    struct expert_route_row_counts to = {.tokens = rows, .read_rows = rows};
    to.expert_copies = rows * c->model->experts_per_token;
    to.own_expert_rows.capacity_rows = to.expert_copies;
    if (routing->expert_count == 0)
        return to;
    const uint32_t list = routing->share_list_by_layer[layer];
    const struct routing_fullest_rank fullest =
        routing_find_fullest_rank(routing, list, rows, ranks);
    to.own_expert_rows =
        (struct expert_rows){fullest.copies * ranks, list + 1, to.expert_copies, 0};
    to.copies_are_read_from_routing =
        c->expert_capacity.capacity_factor_millionths > 0 || c->dispatcher != DISPATCHER_ALLTOALL;
    if (c->expert_capacity.capacity_factor_millionths > 0) {
        to.expert_copies = routing_kept_rows(routing, list, rows);
        to.own_expert_rows.kept = to.expert_copies;
    }
    if (c->dispatcher == DISPATCHER_ALLGATHER) {
        to.read_rows_permute_source = PERMUTE_GATHERED;
        to.read_rows = rows * ranks;
    } else if (dispatcher_facts[c->dispatcher].sends_once) {
        to.read_rows_permute_source = PERMUTE_ARRIVED;
        to.read_rows = routing_count_arrived_tokens(routing, list, rows, ranks, NULL) * ranks;
    }
    return to;
}

static bool sends_tokens_not_copies(const struct expert_route_row_counts *rows)
{
    return rows->read_rows_permute_source != PERMUTE_OWN;
}

static struct work permute_work(const struct emit *e, enum work_kind kind,
                                const struct expert_route_row_counts *rows, bool weights)
{
    const struct transformer *m = e->choices->model;
    struct work work = {.kind = (uint8_t)kind,
                        .permute = {.rows = rows->read_rows,
                                    .cols = m->hidden,
                                    .copies = m->experts_per_token,
                                    .weights = weights}};
    if (rows->copies_are_read_from_routing) {
        work.permute.route = rows->own_expert_rows.route;
        work.permute.dealt = rows->own_expert_rows.dealt;
        work.permute.of = rows->read_rows_permute_source;
        work.permute.to = sends_tokens_not_copies(rows) ? rows->own_expert_rows.capacity_rows
                                                        : rows->expert_copies;
    }
    return work;
}

/* Returns the work that copies the weights of tokens, [rows, copies], into the order of the rows that permute_work()
 * makes. The backward kind copies the gradients of the weights from that order back. */
static struct work permute_weights_work(const struct emit *e, enum work_kind kind,
                                        const struct expert_route_row_counts *rows)
{
    struct work work = permute_work(e, kind, rows, false);
    work.permute.cols = 1;
    return work;
}

/* Returns the number of rows that permute_work() makes. */
static int64_t permuted_row_count(const struct expert_route_row_counts *rows)
{
    return sends_tokens_not_copies(rows) ? rows->own_expert_rows.capacity_rows
                                         : rows->expert_copies;
}

static struct view emit_exchange(struct emit *e, struct work work, const char *stem,
                                 enum category category, enum dtype dtype, struct view x,
                                 int64_t rows, int64_t cols)
{
    const struct view y = emit_tensor(e, stem, category, dtype, rows, cols);
    emit_op(e, e->stream.expert_exchange_stream, &work, &x, 1, &y, 1);
    return y;
}

/* The elements that are sent for each copy of a token. */
struct token_copy_format {
    int64_t cols;
    enum dtype dtype;
};

static struct token_copy_format copy_format_of_hidden_dtype(const struct emit *e)
{
    return (struct token_copy_format){e->choices->model->hidden, e->ir->dtype};
}

static const struct token_copy_format weight_format = {1, DTYPE_F32};

/* Emits an all-to-all of copies of tokens, and returns its result. ahead: to the ranks of their experts; else back. */
static struct view all_to_all(struct emit *e, const char *stem, enum category category,
                              struct view x, struct token_copy_format format,
                              const struct expert_route_row_counts *rows, bool ahead)
{
    const int64_t sent = rows->expert_copies * format.cols;
    const struct expert_rows own = rows->own_expert_rows;
    const int64_t copy_bytes = format.cols * (int64_t)dtype_bytes(format.dtype);
    struct work work = {.kind = WORK_ALL_TO_ALL,
                        .all_to_all = {.group = e->group.ep,
                                       .bytes = own.capacity_rows * copy_bytes,
                                       .algorithm = ALGORITHM_AUTO}};
    if (own.route > 0) {
        work.all_to_all.route = own.route;
        work.all_to_all.cols = format.cols;
        work.all_to_all.ahead = ahead ? sent : 0;
        work.all_to_all.back = ahead ? 0 : sent;
        work.all_to_all.dealt = own.kept > 0 ? own.dealt : 0;
    }
    return emit_exchange(e, work, stem, category, format.dtype, x,
                         ahead ? own.capacity_rows : rows->expert_copies, format.cols);
}

/* Returns the work that exchanges tokens, rows of `cols` elements, between ranks with different experts. ahead: it
 * brings a rank the tokens that its experts read. Else it returns results, and adds up what the experts of all ranks
 * made of each token. */
static struct work token_exchange_work(const struct emit *e,
                                       const struct expert_route_row_counts *rows, int64_t cols,
                                       enum dtype dtype, bool ahead)
{
    const struct choices *c = e->choices;
    const int64_t row_bytes = cols * (int64_t)dtype_bytes(dtype), sent = rows->tokens * cols;
    if (rows->read_rows_permute_source == PERMUTE_GATHERED)
        return (struct work){
            .kind = ahead ? WORK_ALL_GATHER : WORK_REDUCE_SCATTER,
            .collective = {.group = e->group.ep,
                           .bytes = (ahead ? rows->tokens : rows->read_rows) * row_bytes,
                           .algorithm = ALGORITHM_AUTO}};
    return (struct work){.kind = WORK_ALL_TO_ALL,
                         .all_to_all = {.group = e->group.ep,
                                        .bytes = rows->read_rows * row_bytes,
                                        .channels = dispatcher_facts[c->dispatcher].exchange_sms,
                                        .route = rows->own_expert_rows.route,
                                        .cols = cols,
                                        .ahead = ahead ? sent : 0,
                                        .back = ahead ? 0 : sent,
                                        .dealt = rows->own_expert_rows.dealt,
                                        .once = c->model->experts_per_token,
                                        .experts = c->model->experts,
                                        .even = c->routing == NULL}};
}

/* Emits the exchange that brings a rank the tokens that its experts read, and returns them: rows of `cols` elements. */
static struct view emit_exchange_tokens_to_experts(struct emit *e, const char *stem, struct view x,
                                                   enum dtype dtype, int64_t cols,
                                                   const struct expert_route_row_counts *rows)
{
    return emit_exchange(e, token_exchange_work(e, rows, cols, dtype, true), stem,
                         CATEGORY_ACTIVATION, dtype, x, rows->read_rows, cols);
}

/* Does the reverse of emit_exchange_tokens_to_experts(): writes to y, for each token of this rank, the sum of what the
 * experts of all ranks made of it. */
static void emit_exchange_sums_from_experts(struct emit *e, struct view x, struct view y,
                                            enum dtype dtype, int64_t cols,
                                            const struct expert_route_row_counts *rows)
{
    const struct work work = token_exchange_work(e, rows, cols, dtype, false);
    emit_op(e, e->stream.expert_exchange_stream, &work, &x, 1, &y, 1);
}

/* Emits a PACK of rows from the order of ranks into that of experts, or an UNPACK back. If routing is not even, the
 * work names it, so that the kernel knows the number of rows of each expert. */
static void reorder_rows_ranks_to_experts(struct emit *e, enum work_kind kind, struct view x,
                                          struct view y, int64_t cols, struct expert_rows rows)
{
    const int64_t ranks = e->choices->ep;
    struct work work = {.kind = (uint8_t)kind,
                        .pack = {ranks,
                                 own_expert_count(e),
                                 {rows.capacity_rows / e->choices->model->experts * cols, 0, 0},
                                 0,
                                 0}};
    if (rows.route > 0)
        work.pack = (struct pack_size){rows.capacity_rows, 1, {cols, 0, 0}, rows.route, rows.dealt};
    emit_op_on_compute_stream(e, work, &x, 1, &y, 1);
}

/* True if copies of tokens, and not tokens, are sent to the ranks of their experts. */
static bool sends_token_copies_to_experts(const struct emit *e,
                                          const struct expert_route_row_counts *rows)
{
    return e->choices->ep > 1 && !sends_tokens_not_copies(rows);
}

/* Sends copies to the ranks of their experts, and returns what arrives, which is to be passed to
 * emit_rows_to_expert_order(). Returns x itself if no copies are sent. */
static struct view emit_dispatch(struct emit *e, struct view x, struct token_copy_format format,
                                 const struct expert_route_row_counts *rows)
{
    return sends_token_copies_to_experts(e, rows)
               ? all_to_all(e, "received", CATEGORY_COMMUNICATION, x, format, rows, true)
               : x;
}

/* Returns x, which emit_dispatch() returned, in the order of the rank's experts. */
static struct view emit_rows_to_expert_order(struct emit *e, const char *stem, struct view x,
                                             struct token_copy_format format,
                                             const struct expert_route_row_counts *rows)
{
    if (!sends_token_copies_to_experts(e, rows))
        return x;
    const struct view y = emit_tensor(e, stem, CATEGORY_ACTIVATION, format.dtype,
                                      rows->own_expert_rows.capacity_rows, format.cols);
    reorder_rows_ranks_to_experts(e, WORK_PACK, x, y, format.cols, rows->own_expert_rows);
    return y;
}

/* Does the reverse of emit_rows_to_expert_order(): returns x, which is in the order of the rank's experts, in the order
 * of the ranks to which its rows return. */
static struct view emit_rows_to_rank_order(struct emit *e, struct view x,
                                           struct token_copy_format format,
                                           const struct expert_route_row_counts *rows)
{
    if (!sends_token_copies_to_experts(e, rows))
        return x;
    const struct view sent = emit_tensor(e, "sent", CATEGORY_COMMUNICATION, format.dtype,
                                         rows->own_expert_rows.capacity_rows, format.cols);
    reorder_rows_ranks_to_experts(e, WORK_UNPACK, x, sent, format.cols, rows->own_expert_rows);
    return sent;
}

/* Does the reverse of emit_dispatch(): sends results back to the ranks of their tokens and returns what arrives. */
static struct view emit_return_rows_to_token_ranks(struct emit *e, const char *stem,
                                                   struct view sent,
                                                   struct token_copy_format format,
                                                   const struct expert_route_row_counts *rows)
{
    return sends_token_copies_to_experts(e, rows)
               ? all_to_all(e, stem, CATEGORY_ACTIVATION, sent, format, rows, false)
               : sent;
}

/* Makes the host wait for the numbers of rows of the experts before it launches more, if it needs them
 * and the profile waits. */
static void wait_on_host_for_expert_counts(struct emit *e,
                                           const struct expert_route_row_counts *rows)
{
    const struct choices *c = e->choices;
    if (!c->profile->host_waits_for_expert_counts || !dispatcher_needs_counts(c))
        return;
    emit_host_wait(e, rows->read_rows_permute_source == PERMUTE_GATHERED
                          ? e->stream.expert_exchange_stream
                          : e->stream.compute);
}

/* Makes the host wait for the first product of experts before it launches their activation, if the profile runs the
 * limits of a clamped activation as operators and experts are not fused. */
static void wait_on_host_before_expert_clamps(struct emit *e)
{
    const struct choices *c = e->choices;
    if (c->profile->clamps_run_as_operators && c->model->activation == ACTIVATION_SWIGLU_CLAMPED &&
        !choices_fuse_expert_bias_and_clamp(c))
        emit_host_wait(e, e->stream.compute);
}

/* Emits the first product of the shared experts and their activation. */
static void shared_experts_up(struct emit *e, uint32_t layer, struct view x, int64_t rows,
                              struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const int64_t f = m->shared_ffn;
    saved->shared_up = emit_activation_buffer(e, "shared_up", rows, 2 * f);
    saved->shared_act = emit_activation_buffer(e, "shared_act", rows, f);
    const struct view up = view_whole(e, saved->shared_up), act = view_whole(e, saved->shared_act);
    emit_matmul(e, MATMUL_NT, x, weight_view(e, layer, WEIGHT_SHARED_UP), view_none(), up, rows,
                2 * f, m->hidden);
    emit_op_on_compute_stream(
        e, activation_work(e, WORK_SWIGLU, (struct expert_rows){.capacity_rows = rows}, f, false),
        &up, 1, &act, 1);
    emit_record_recomputed_buffer(e, RECOMPUTE_SHARED_EXPERTS, up.buffer);
    emit_record_recomputed_buffer(e, RECOMPUTE_SHARED_EXPERTS, act.buffer);
}

/* Emits the second product of the shared experts, and returns its result. */
static struct view shared_experts_down(struct emit *e, uint32_t layer, int64_t rows,
                                       const struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const struct view y = emit_compute_tensor(e, "shared", CATEGORY_ACTIVATION, rows, m->hidden);
    emit_record_recomputed_buffer(e, RECOMPUTE_SHARED_EXPERTS, y.buffer);
    emit_matmul(e, MATMUL_NT, view_whole(e, saved->shared_act),
                weight_view(e, layer, WEIGHT_SHARED_DOWN), view_none(), y, rows, m->hidden,
                m->shared_ffn);
    return y;
}

/* Emits the sum of each token's results into y. It multiplies them by the weights of copies, unless these were applied
 * to the input or by the activation. If tokens were sent, it also emits the exchange that returns the sums. */
static void emit_sum_of_results(struct emit *e, struct view made, struct view weights,
                                struct view y, const struct expert_route_row_counts *rows)
{
    const struct view read[2] = {made, weights};
    const bool weighted = !e->choices->model->router_on_input && !activation_weights_copies(e);
    if (!sends_tokens_not_copies(rows)) {
        emit_op_on_compute_stream(e, permute_work(e, WORK_UNPERMUTE, rows, weighted), read,
                                  weighted ? 2 : 1, &y, 1);
        return;
    }
    const int64_t h = e->choices->model->hidden;
    const struct view sum =
        emit_compute_tensor(e, "summed", CATEGORY_COMMUNICATION, rows->read_rows, h);
    emit_op_on_compute_stream(e, permute_work(e, WORK_UNPERMUTE, rows, weighted), read,
                              weighted ? 2 : 1, &sum, 1);
    emit_exchange_sums_from_experts(e, sum, y, e->ir->dtype, h, rows);
}

void experts_forward(struct emit *e, uint32_t layer, struct view x, struct view y, int64_t rows,
                     struct expert_saved *saved)
{
    const struct choices *c = e->choices;
    const struct transformer *m = c->model;
    const int64_t h = m->hidden, f = m->expert_ffn, copies = m->experts_per_token;
    const bool shares = m->shared_ffn > 0, whole = y.count > 0;
    const bool inside = activation_weights_copies(e);
    const struct expert_route_row_counts own = row_counts_of_expert_route(e, layer, rows);
    struct view shared = view_none(), read = x;
    if (shares && c->shared_experts == SHARED_EXPERTS_BEFORE_ROUTED) {
        shared_experts_up(e, layer, x, rows, saved);
        shared = whole ? shared_experts_down(e, layer, rows, saved) : shared;
    }
    const struct view logits = new_f32_tensor(e, "logits_router", rows, m->experts);
    struct view weights = new_f32_tensor(e, "expert_weights", rows, copies);
    saved->logits = logits.buffer;
    e->narrow.is_router = true;
    emit_matmul(e, MATMUL_NT, x, weight_view(e, layer, WEIGHT_ROUTER),
                optional_weight_view(e, layer, WEIGHT_ROUTER_BIAS), logits, rows, m->experts, h);
    e->narrow.is_router = false;
    emit_op_on_compute_stream(e, router_work(e, WORK_ROUTE, own.own_expert_rows, rows), &logits, 1,
                              &weights, 1);
    if (own.read_rows_permute_source == PERMUTE_ARRIVED)
        wait_on_host_for_expert_counts(e, &own);
    if (sends_tokens_not_copies(&own)) {
        combined_begin_part(e, FORWARD_EXCHANGE);
        read = emit_exchange_tokens_to_experts(e, "spread", x, e->ir->dtype, h, &own);
        weights =
            emit_exchange_tokens_to_experts(e, "spread_weights", weights, DTYPE_F32, copies, &own);
        combined_begin_part(e, FORWARD_EXPERTS);
    }
    saved->weights = weights.buffer;
    if (own.read_rows_permute_source == PERMUTE_GATHERED)
        wait_on_host_for_expert_counts(e, &own);

    saved->up = emit_activation_buffer(e, "expert_up", own.own_expert_rows.capacity_rows, 2 * f);
    saved->act = emit_activation_buffer(e, "expert_act", own.own_expert_rows.capacity_rows, f);
    const struct view dealt =
        view_whole(e, emit_activation_buffer(e, "permuted", permuted_row_count(&own), h));
    const struct view up = view_whole(e, saved->up), act = view_whole(e, saved->act);
    emit_op_on_compute_stream(e, permute_work(e, WORK_PERMUTE, &own, m->router_on_input),
                              (struct view[]){read, weights}, m->router_on_input ? 2 : 1, &dealt,
                              1);
    struct view row_weights = view_none();
    if (inside) {
        row_weights = new_f32_tensor(e, "row_weights", permuted_row_count(&own), 1);
        emit_op_on_compute_stream(e, permute_weights_work(e, WORK_PERMUTE_WEIGHTS, &own), &weights,
                                  1, &row_weights, 1);
    }
    if (!sends_tokens_not_copies(&own)) {
        wait_on_host_for_expert_counts(e, &own);
        combined_begin_part(e, FORWARD_EXCHANGE);
    }
    const struct view sent = emit_dispatch(e, dealt, copy_format_of_hidden_dtype(e), &own);
    if (inside)
        row_weights = emit_dispatch(e, row_weights, weight_format, &own);
    combined_begin_part(e, FORWARD_EXPERTS);
    if (shares && c->shared_experts == SHARED_EXPERTS_DURING_BOTH_EXCHANGES)
        shared_experts_up(e, layer, x, rows, saved);
    const struct view permuted =
        emit_rows_to_expert_order(e, "dispatched", sent, copy_format_of_hidden_dtype(e), &own);
    saved->permuted = permuted.buffer;
    if (inside) {
        row_weights =
            emit_rows_to_expert_order(e, "dispatched_weights", row_weights, weight_format, &own);
        saved->router_weight_by_row = row_weights.buffer;
    }
    emit_grouped_matmul(e, MATMUL_NT, permuted, weight_view(e, layer, WEIGHT_EXPERTS_UP),
                        optional_weight_view(e, layer, WEIGHT_EXPERTS_UP_BIAS), up,
                        own.own_expert_rows, 2 * f, h);
    wait_on_host_before_expert_clamps(e);
    emit_op_on_compute_stream(e, activation_work(e, WORK_SWIGLU, own.own_expert_rows, f, inside),
                              (struct view[]){up, row_weights}, inside ? 2 : 1, &act, 1);
    emit_record_recomputed_buffer(e, RECOMPUTE_MOE_ACT, act.buffer);
    const struct view written =
        view_whole(e, emit_activation_buffer(e, "expert_y", own.own_expert_rows.capacity_rows, h));
    emit_grouped_matmul(e, MATMUL_NT, act, weight_view(e, layer, WEIGHT_EXPERTS_DOWN),
                        optional_weight_view(e, layer, WEIGHT_EXPERTS_DOWN_BIAS), written,
                        own.own_expert_rows, h, f);
    const struct view made = emit_return_rows_to_token_ranks(
        e, "returned", emit_rows_to_rank_order(e, written, copy_format_of_hidden_dtype(e), &own),
        copy_format_of_hidden_dtype(e), &own);
    saved->y = made.buffer;
    const struct view routed =
        shares && whole ? emit_compute_tensor(e, "routed", CATEGORY_ACTIVATION, rows, h) : y;
    if (whole && sends_tokens_not_copies(&own))
        emit_sum_of_results(e, made, weights, routed, &own);
    combined_begin_part(e, FORWARD_NEXT);
    if (shares && c->shared_experts == SHARED_EXPERTS_DURING_COMBINE)
        shared_experts_up(e, layer, x, rows, saved);
    if (!whole)
        return;
    if (shares && c->shared_experts != SHARED_EXPERTS_BEFORE_ROUTED)
        shared = shared_experts_down(e, layer, rows, saved);
    if (!sends_tokens_not_copies(&own))
        emit_sum_of_results(e, made, weights, routed, &own);
    if (shares)
        emit_add(e, routed, shared, y);
}

/* Emits the backward of the second product of the shared experts and of their activation. Returns the gradient of the
 * first product's result. */
static struct view shared_experts_down_backward(struct emit *e, uint32_t layer, struct view dy,
                                                int64_t rows, const struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const int64_t h = m->hidden, f = m->shared_ffn;
    const struct view up = view_whole(e, saved->shared_up), act = view_whole(e, saved->shared_act);
    const struct view d_act = emit_compute_tensor(e, "d_shared_act", CATEGORY_ACTIVATION, rows, f);
    const struct view d_up =
        emit_compute_tensor(e, "d_shared_up", CATEGORY_ACTIVATION, rows, 2 * f);
    emit_matmul(e, MATMUL_NN, dy, weight_view(e, layer, WEIGHT_SHARED_DOWN), view_none(), d_act,
                rows, f, h);
    emit_weight_grad(e, layer, WEIGHT_SHARED_DOWN, dy, act, h, f, rows);
    emit_op_on_compute_stream(e,
                              activation_work(e, WORK_SWIGLU_BACKWARD,
                                              (struct expert_rows){.capacity_rows = rows}, f,
                                              false),
                              (struct view[]){d_act, up}, 2, &d_up, 1);
    return d_up;
}

/* Emits the backward of the first product of the shared experts, and returns the gradient of x. */
static struct view shared_experts_up_backward(struct emit *e, uint32_t layer, struct view x,
                                              struct view d_up, int64_t rows)
{
    const struct transformer *m = e->choices->model;
    const int64_t h = m->hidden, f = m->shared_ffn;
    const struct view d_shared_input =
        emit_compute_tensor(e, "dx_shared", CATEGORY_ACTIVATION, rows, h);
    emit_matmul(e, MATMUL_NN, d_up, weight_view(e, layer, WEIGHT_SHARED_UP), view_none(),
                d_shared_input, rows, h, 2 * f);
    emit_weight_grad(e, layer, WEIGHT_SHARED_UP, d_up, x, 2 * f, h, rows);
    return d_shared_input;
}

void experts_backward(struct emit *e, uint32_t layer, struct view x, struct view dy, struct view dx,
                      int64_t rows, const struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const int64_t h = m->hidden, f = m->expert_ffn, copies = m->experts_per_token;
    const bool both =
        m->shared_ffn > 0 && e->choices->shared_experts == SHARED_EXPERTS_DURING_BOTH_EXCHANGES;
    const bool inside = activation_weights_copies(e);
    const struct expert_route_row_counts own = row_counts_of_expert_route(e, layer, rows);
    const struct view logits = view_whole(e, saved->logits),
                      weights = view_whole(e, saved->weights);
    const struct view permuted = view_whole(e, saved->permuted), up = view_whole(e, saved->up);
    const struct view act = view_whole(e, saved->act);
    const struct view d_result =
        sends_tokens_not_copies(&own)
            ? emit_exchange_tokens_to_experts(e, "d_spread", dy, e->ir->dtype, h, &own)
            : dy;
    if (sends_tokens_not_copies(&own))
        combined_begin_part(e, BACKWARD_EXPERTS);
    const struct view d_made =
        emit_compute_tensor(e, "d_expert_y", CATEGORY_ACTIVATION, permuted_row_count(&own), h);
    struct view d_weights = new_f32_tensor(e, "d_expert_weights", own.read_rows, copies),
                d_shared = view_none();
    if (m->router_on_input || inside)
        emit_op_on_compute_stream(e, permute_work(e, WORK_PERMUTE, &own, false), &d_result, 1,
                                  &d_made, 1);
    else
        emit_op_on_compute_stream(e, permute_work(e, WORK_UNPERMUTE_BACKWARD, &own, false),
                                  (struct view[]){d_result, view_whole(e, saved->y), weights}, 3,
                                  (struct view[]){d_made, d_weights}, 2);

    const struct expert_rows all = own.own_expert_rows;
    const struct view d_act =
        emit_compute_tensor(e, "d_expert_act", CATEGORY_ACTIVATION, all.capacity_rows, f);
    const struct view d_up =
        emit_compute_tensor(e, "d_expert_up", CATEGORY_ACTIVATION, all.capacity_rows, 2 * f);
    const struct view d_read =
        emit_compute_tensor(e, "d_permuted", CATEGORY_ACTIVATION, all.capacity_rows, h);
    const struct view d_sent = emit_dispatch(e, d_made, copy_format_of_hidden_dtype(e), &own);
    combined_begin_part(e, BACKWARD_EXPERTS);
    if (both)
        d_shared = shared_experts_down_backward(e, layer, dy, rows, saved);
    const struct view d_written =
        emit_rows_to_expert_order(e, "d_dispatched", d_sent, copy_format_of_hidden_dtype(e), &own);
    emit_grouped_matmul(e, MATMUL_NN, d_written, weight_view(e, layer, WEIGHT_EXPERTS_DOWN),
                        view_none(), d_act, all, f, h);
    emit_expert_grad(e, layer, WEIGHT_EXPERTS_DOWN, d_written, act, h, f, all);
    emit_expert_bias_grad(e, layer, WEIGHT_EXPERTS_DOWN_BIAS, d_written, all, h);
    struct view d_row_weights = view_none(), row_weights = view_none();
    if (inside) {
        row_weights = view_whole(e, saved->router_weight_by_row);
        d_row_weights = new_f32_tensor(e, "d_row_weights", all.capacity_rows, 1);
    }
    emit_op_on_compute_stream(e, activation_work(e, WORK_SWIGLU_BACKWARD, all, f, inside),
                              (struct view[]){d_act, up, row_weights}, inside ? 3 : 2,
                              (struct view[]){d_up, d_row_weights}, inside ? 2 : 1);
    emit_grouped_matmul(e, MATMUL_NN, d_up, weight_view(e, layer, WEIGHT_EXPERTS_UP), view_none(),
                        d_read, all, h, 2 * f);
    emit_expert_grad(e, layer, WEIGHT_EXPERTS_UP, d_up, permuted, 2 * f, h, all);
    emit_expert_bias_grad(e, layer, WEIGHT_EXPERTS_UP_BIAS, d_up, all, 2 * f);
    const struct view d_ranks =
        emit_rows_to_rank_order(e, d_read, copy_format_of_hidden_dtype(e), &own);
    const bool sums = sends_tokens_not_copies(&own);
    const struct view sum =
        sums ? emit_compute_tensor(e, "d_summed", CATEGORY_COMMUNICATION, own.read_rows, h)
             : view_none();
    if (sums)
        emit_op_on_compute_stream(e, permute_work(e, WORK_UNPERMUTE, &own, false), &d_ranks, 1,
                                  &sum, 1);
    const struct work weights_back = permute_weights_work(e, WORK_PERMUTE_WEIGHTS_BACKWARD, &own);
    if (inside)
        d_row_weights = emit_rows_to_rank_order(e, d_row_weights, weight_format, &own);
    if (inside && sums)
        emit_op_on_compute_stream(e, weights_back, &d_row_weights, 1, &d_weights, 1);
    combined_begin_part(e, BACKWARD_EXPERT_WEIGHTS);
    emit_gradients_delayed_for_overlap(e);
    combined_begin_part(e, BACKWARD_EXCHANGE);
    const struct view d_permuted = emit_return_rows_to_token_ranks(
        e, "d_returned", d_ranks, copy_format_of_hidden_dtype(e), &own);
    if (inside)
        d_row_weights = emit_return_rows_to_token_ranks(e, "d_returned_weights", d_row_weights,
                                                        weight_format, &own);
    if (both)
        d_shared = shared_experts_up_backward(e, layer, x, d_shared, rows);

    const struct view d_logits =
        emit_compute_tensor(e, "d_logits_router", CATEGORY_ACTIVATION, rows, m->experts);
    const struct view d_rows = emit_compute_tensor(e, "dx_experts", CATEGORY_ACTIVATION, rows, h);
    const struct view d_router = emit_compute_tensor(e, "dx_router", CATEGORY_ACTIVATION, rows, h);
    if (sums) {
        const struct view total = new_f32_tensor(e, "d_weights_summed", rows, copies);
        emit_exchange_sums_from_experts(e, sum, d_rows, e->ir->dtype, h, &own);
        emit_exchange_sums_from_experts(e, d_weights, total, DTYPE_F32, copies, &own);
        d_weights = total;
    }
    combined_begin_part(e, COMBINED_BACKWARD_OF_ATTENTION);
    if (inside && !sums)
        emit_op_on_compute_stream(e, weights_back, &d_row_weights, 1, &d_weights, 1);
    if (!sums)
        emit_op_on_compute_stream(e, permute_work(e, WORK_UNPERMUTE, &own, m->router_on_input),
                                  (struct view[]){d_permuted, weights}, m->router_on_input ? 2 : 1,
                                  &d_rows, 1);
    if (m->router_on_input) /* a token has one copy, whose row is the token's */
        emit_op_on_compute_stream(e, (struct work){.kind = WORK_ROW_DOT, .merge = {rows, 1, h}},
                                  (struct view[]){x, d_permuted}, 2, &d_weights, 1);
    emit_op_on_compute_stream(e, router_work(e, WORK_ROUTE_BACKWARD, all, rows),
                              (struct view[]){d_weights, logits}, 2, &d_logits, 1);
    e->narrow.is_router = true;
    emit_matmul(e, MATMUL_NN, d_logits, weight_view(e, layer, WEIGHT_ROUTER), view_none(), d_router,
                rows, h, m->experts);
    e->narrow.is_router = false;
    emit_weight_grad(e, layer, WEIGHT_ROUTER, d_logits, x, m->experts, h, rows);
    emit_bias_grad(e, layer, WEIGHT_ROUTER_BIAS, d_logits, rows, m->experts);
    emit_add(e, d_rows, d_router, dx);
    if (m->shared_ffn == 0)
        return;
    if (!both) {
        d_shared = shared_experts_down_backward(e, layer, dy, rows, saved);
        d_shared = shared_experts_up_backward(e, layer, x, d_shared, rows);
    }
    emit_add(e, dx, d_shared, dx);
}
