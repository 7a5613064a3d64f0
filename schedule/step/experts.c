/* Experts: the router's weights, copies of rows in the order of experts, their products in groups, and the weighted sum
 * of each token's copies; shared experts beside them.
 *
 * If experts are spread over ranks, each rank sends every other the copies that it dealt to the experts there: block r
 * of the rows in the order of experts. What comes is in the order of the ranks that sent it, [ranks, experts, rows],
 * and is packed into that of the rank's experts, [experts, ranks, rows] (Megatron-LM, moe/token_dispatcher.py,
 * MoEAlltoAllTokenDispatcher: permute, all_to_all, sort_chunks_by_idxs). Results return the same way. */
#include "schedule/step/experts.h"
#include "schedule/attention/project.h"
#include "schedule/choices/profile.h"

#include <math.h>

static struct view f32(struct emit *e, const char *stem, int64_t rows, int64_t cols)
{
    return emit_tensor(e, stem, CATEGORY_ACTIVATION, DTYPE_F32, rows, cols);
}

static struct work route_work(const struct emit *e, enum work_kind kind, struct expert_rows copies,
                              int64_t rows)
{
    const struct transformer *m = e->choices->model;
    return (struct work){.kind = (uint8_t)kind,
                         .route = {rows, m->experts, m->experts_per_token, (int64_t)m->router,
                                   m->router_norm, (int64_t)llround(m->router_scale * 1e6),
                                   copies.route}};
}

static struct work permute_work(const struct emit *e, enum work_kind kind, int64_t rows,
                                bool weights)
{
    const struct transformer *m = e->choices->model;
    return (struct work){.kind = (uint8_t)kind,
                         .permute = {rows, m->hidden, m->experts_per_token, weights}};
}

static struct work activation_work(const struct emit *e, enum work_kind kind,
                                   struct expert_rows rows, int64_t cols)
{
    return (struct work){
        .kind = (uint8_t)kind,
        .activation = {rows.all, cols, 0, emit_function(e), rows.route, rows.dealt}};
}

static void compute(struct emit *e, struct work work, const struct view *read, uint32_t reads,
                    const struct view *write, uint32_t writes)
{
    emit_op(e, e->stream.compute, &work, read, reads, write, writes);
}

/* Returns the number of experts that a rank has. */
static int64_t own_experts(const struct emit *e)
{
    return e->choices->model->experts / (int64_t)e->choices->ep;
}

/* Returns the rows that a rank's experts have room for, if each rank routes `rows` tokens. */
static struct expert_rows expert_rows(const struct emit *e, uint32_t layer, int64_t rows)
{
    const struct routing *routing = &e->ir->routing;
    const int64_t dealt = rows * e->choices->model->experts_per_token;
    if (routing->experts == 0)
        return (struct expert_rows){dealt, 0, 0};
    const uint32_t list = routing->list_of[layer], ranks = e->choices->ep;
    const struct routing_fullest fullest = routing_find_fullest(routing, list, rows, ranks);
    return (struct expert_rows){fullest.copies * ranks, list + 1, dealt};
}

/* Sends rows to the ranks of their experts (ahead), or back. */
static struct view all_to_all(struct emit *e, const char *stem, enum category category,
                              struct view x, struct expert_rows rows, int64_t dealt, bool ahead)
{
    const int64_t h = e->choices->model->hidden;
    const struct view y = emit_computed(e, stem, category, ahead ? rows.all : dealt, h);
    struct work work = {.kind = WORK_ALL_TO_ALL,
                        .all_to_all = {.group = e->group.ep,
                                       .bytes = bytes_of(e, ahead ? y : x),
                                       .algorithm = ALGORITHM_AUTO}};
    if (rows.route > 0) {
        work.all_to_all.route = rows.route;
        work.all_to_all.cols = h;
        work.all_to_all.ahead = ahead ? rows.dealt * h : 0;
        work.all_to_all.back = ahead ? 0 : rows.dealt * h;
    }
    emit_op(e, e->stream.experts, &work, &x, 1, &y, 1);
    return y;
}

/* Emits a PACK of rows in the order of ranks into that of experts, or an UNPACK. With routing that is not even, the
 * kernel knows how many rows each expert has. */
static void reorder(struct emit *e, enum work_kind kind, struct view x, struct view y,
                    struct expert_rows rows)
{
    const int64_t ranks = e->choices->ep, h = e->choices->model->hidden;
    struct work work = {
        .kind = (uint8_t)kind,
        .pack = {ranks, own_experts(e), {rows.all / e->choices->model->experts * h, 0, 0}, 0, 0}};
    if (rows.route > 0)
        work.pack = (struct pack_size){rows.all, 1, {h, 0, 0}, rows.route, rows.dealt};
    compute(e, work, &x, 1, &y, 1);
}

/* Sends copies to the ranks of their experts, and returns the copies that arrive, in the order of the rank's experts.
 * Without other ranks it returns x. */
static struct view dispatch(struct emit *e, const char *stem, struct view x,
                            struct expert_rows rows, int64_t dealt)
{
    if (e->choices->ep == 1)
        return x;
    const struct view received =
        all_to_all(e, "received", CATEGORY_COMMUNICATION, x, rows, dealt, true);
    const struct view y =
        view_all(e, emit_activation(e, stem, rows.all, e->choices->model->hidden));
    reorder(e, WORK_PACK, received, y, rows);
    return y;
}

/* Does the reverse of dispatch(). */
static struct view combine(struct emit *e, const char *stem, struct view x, struct expert_rows rows,
                           int64_t dealt)
{
    if (e->choices->ep == 1)
        return x;
    const struct view sent =
        emit_computed(e, "sent", CATEGORY_COMMUNICATION, rows.all, e->choices->model->hidden);
    reorder(e, WORK_UNPACK, x, sent, rows);
    return all_to_all(e, stem, CATEGORY_ACTIVATION, sent, rows, dealt, false);
}

/* Emits the shared experts up to the input of their second product. */
static void shared_wide(struct emit *e, uint32_t layer, struct view x, int64_t rows,
                        struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const int64_t f = m->shared_ffn;
    saved->shared_up = emit_activation(e, "shared_up", rows, 2 * f);
    saved->shared_act = emit_activation(e, "shared_act", rows, f);
    const struct view up = view_all(e, saved->shared_up), act = view_all(e, saved->shared_act);
    emit_matmul(e, MATMUL_NT, x, weight_view(e, layer, WEIGHT_SHARED_UP), view_none(), up, rows,
                2 * f, m->hidden);
    compute(e, activation_work(e, WORK_SWIGLU, (struct expert_rows){rows, 0, 0}, f), &up, 1, &act,
            1);
}

void experts_forward(struct emit *e, uint32_t layer, struct view x, struct view y, int64_t rows,
                     struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const int64_t h = m->hidden, f = m->expert_ffn, copies = m->experts_per_token;
    const struct view logits = f32(e, "logits_router", rows, m->experts);
    const struct view weights = f32(e, "expert_weights", rows, copies);
    const int64_t all = rows * copies;
    const struct expert_rows own = expert_rows(e, layer, rows);
    saved->logits = logits.buffer;
    saved->weights = weights.buffer;
    e->narrow.router = true;
    emit_matmul(e, MATMUL_NT, x, weight_view(e, layer, WEIGHT_ROUTER),
                optional_weight(e, layer, WEIGHT_ROUTER_BIAS), logits, rows, m->experts, h);
    e->narrow.router = false;
    compute(e, route_work(e, WORK_ROUTE, own, rows), &logits, 1, &weights, 1);

    saved->up = emit_activation(e, "expert_up", own.all, 2 * f);
    saved->act = emit_activation(e, "expert_act", own.all, f);
    const struct view dealt = view_all(e, emit_activation(e, "permuted", all, h));
    const struct view up = view_all(e, saved->up), act = view_all(e, saved->act);
    compute(e, permute_work(e, WORK_PERMUTE, rows, m->router_on_input), (struct view[]){x, weights},
            m->router_on_input ? 2 : 1, &dealt, 1);
    if (e->choices->profile->experts_sync)
        emit_wait(e, e->stream.compute);
    const struct view permuted = dispatch(e, "dispatched", dealt, own, all);
    saved->permuted = permuted.buffer;
    emit_grouped(e, MATMUL_NT, permuted, weight_view(e, layer, WEIGHT_EXPERTS_UP),
                 optional_weight(e, layer, WEIGHT_EXPERTS_UP_BIAS), up, own, 2 * f, h);
    compute(e, activation_work(e, WORK_SWIGLU, own, f), &up, 1, &act, 1);
    const struct view written = view_all(e, emit_activation(e, "expert_y", own.all, h));
    emit_grouped(e, MATMUL_NT, act, weight_view(e, layer, WEIGHT_EXPERTS_DOWN),
                 optional_weight(e, layer, WEIGHT_EXPERTS_DOWN_BIAS), written, own, h, f);
    const struct view made = combine(e, "returned", written, own, all);
    saved->y = made.buffer;
    if (m->shared_ffn > 0)
        shared_wide(e, layer, x, rows, saved);
    if (y.count == 0)
        return;
    const struct work sum = permute_work(e, WORK_UNPERMUTE, rows, !m->router_on_input);
    const struct view read[2] = {made, weights};
    const uint32_t reads = m->router_on_input ? 1 : 2;
    if (m->shared_ffn == 0) {
        compute(e, sum, read, reads, &y, 1);
        return;
    }
    const struct view routed = emit_computed(e, "routed", CATEGORY_ACTIVATION, rows, h);
    const struct view shared = emit_computed(e, "shared", CATEGORY_ACTIVATION, rows, h);
    compute(e, sum, read, reads, &routed, 1);
    emit_matmul(e, MATMUL_NT, view_all(e, saved->shared_act),
                weight_view(e, layer, WEIGHT_SHARED_DOWN), view_none(), shared, rows, h,
                m->shared_ffn);
    emit_add(e, routed, shared, y);
}

/* Emits the backward of the shared experts and adds their gradient of x to dx. */
static void shared_backward(struct emit *e, uint32_t layer, struct view x, struct view dy,
                            struct view dx, int64_t rows, const struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const int64_t h = m->hidden, f = m->shared_ffn;
    const struct view up = view_all(e, saved->shared_up), act = view_all(e, saved->shared_act);
    const struct view d_act = emit_computed(e, "d_shared_act", CATEGORY_ACTIVATION, rows, f);
    const struct view d_up = emit_computed(e, "d_shared_up", CATEGORY_ACTIVATION, rows, 2 * f);
    const struct view d_shared = emit_computed(e, "dx_shared", CATEGORY_ACTIVATION, rows, h);
    emit_matmul(e, MATMUL_NN, dy, weight_view(e, layer, WEIGHT_SHARED_DOWN), view_none(), d_act,
                rows, f, h);
    emit_weight_grad(e, layer, WEIGHT_SHARED_DOWN, dy, act, h, f, rows);
    compute(e, activation_work(e, WORK_SWIGLU_BACKWARD, (struct expert_rows){rows, 0, 0}, f),
            (struct view[]){d_act, up}, 2, &d_up, 1);
    emit_matmul(e, MATMUL_NN, d_up, weight_view(e, layer, WEIGHT_SHARED_UP), view_none(), d_shared,
                rows, h, 2 * f);
    emit_weight_grad(e, layer, WEIGHT_SHARED_UP, d_up, x, 2 * f, h, rows);
    emit_add(e, dx, d_shared, dx);
}

void experts_backward(struct emit *e, uint32_t layer, struct view x, struct view dy, struct view dx,
                      int64_t rows, const struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const int64_t h = m->hidden, f = m->expert_ffn, all = rows * m->experts_per_token;
    const struct expert_rows own = expert_rows(e, layer, rows);
    const struct view logits = view_all(e, saved->logits), weights = view_all(e, saved->weights);
    const struct view permuted = view_all(e, saved->permuted), up = view_all(e, saved->up);
    const struct view act = view_all(e, saved->act);
    const struct view d_made = emit_computed(e, "d_expert_y", CATEGORY_ACTIVATION, all, h);
    const struct view d_weights = f32(e, "d_expert_weights", rows, m->experts_per_token);
    if (m->router_on_input)
        compute(e, permute_work(e, WORK_PERMUTE, rows, false), &dy, 1, &d_made, 1);
    else
        compute(e, permute_work(e, WORK_UNPERMUTE_BACKWARD, rows, false),
                (struct view[]){dy, view_all(e, saved->y), weights}, 3,
                (struct view[]){d_made, d_weights}, 2);

    const struct view d_act = emit_computed(e, "d_expert_act", CATEGORY_ACTIVATION, own.all, f);
    const struct view d_up = emit_computed(e, "d_expert_up", CATEGORY_ACTIVATION, own.all, 2 * f);
    const struct view d_read = emit_computed(e, "d_permuted", CATEGORY_ACTIVATION, own.all, h);
    const struct view d_written = dispatch(e, "d_dispatched", d_made, own, all);
    emit_grouped(e, MATMUL_NN, d_written, weight_view(e, layer, WEIGHT_EXPERTS_DOWN), view_none(),
                 d_act, own, f, h);
    emit_expert_grad(e, layer, WEIGHT_EXPERTS_DOWN, d_written, act, h, f, own);
    emit_expert_bias_grad(e, layer, WEIGHT_EXPERTS_DOWN_BIAS, d_written, own, h);
    compute(e, activation_work(e, WORK_SWIGLU_BACKWARD, own, f), (struct view[]){d_act, up}, 2,
            &d_up, 1);
    emit_grouped(e, MATMUL_NN, d_up, weight_view(e, layer, WEIGHT_EXPERTS_UP), view_none(), d_read,
                 own, h, 2 * f);
    emit_expert_grad(e, layer, WEIGHT_EXPERTS_UP, d_up, permuted, 2 * f, h, own);
    emit_expert_bias_grad(e, layer, WEIGHT_EXPERTS_UP_BIAS, d_up, own, 2 * f);
    const struct view d_permuted = combine(e, "d_returned", d_read, own, all);

    const struct view d_logits =
        emit_computed(e, "d_logits_router", CATEGORY_ACTIVATION, rows, m->experts);
    const struct view d_rows = emit_computed(e, "dx_experts", CATEGORY_ACTIVATION, rows, h);
    const struct view d_router = emit_computed(e, "dx_router", CATEGORY_ACTIVATION, rows, h);
    compute(e, permute_work(e, WORK_UNPERMUTE, rows, m->router_on_input),
            (struct view[]){d_permuted, weights}, m->router_on_input ? 2 : 1, &d_rows, 1);
    if (m->router_on_input) /* a token has one copy, whose row is the token's */
        compute(e, (struct work){.kind = WORK_ROW_DOT, .merge = {rows, 1, h}},
                (struct view[]){x, d_permuted}, 2, &d_weights, 1);
    compute(e, route_work(e, WORK_ROUTE_BACKWARD, own, rows), (struct view[]){d_weights, logits}, 2,
            &d_logits, 1);
    e->narrow.router = true;
    emit_matmul(e, MATMUL_NN, d_logits, weight_view(e, layer, WEIGHT_ROUTER), view_none(), d_router,
                rows, h, m->experts);
    e->narrow.router = false;
    emit_weight_grad(e, layer, WEIGHT_ROUTER, d_logits, x, m->experts, h, rows);
    emit_bias_grad(e, layer, WEIGHT_ROUTER_BIAS, d_logits, rows, m->experts);
    emit_add(e, d_rows, d_router, dx);
    if (m->shared_ffn > 0)
        shared_backward(e, layer, x, dy, dx, rows, saved);
}
