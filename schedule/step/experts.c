/* Experts: the router's weights, copies of rows in the order of experts, their products in groups, and the weighted sum
 * of each token's copies; shared experts beside them.
 *
 * If experts are spread over ranks, each rank sends every other the copies that it dealt to the experts there: block r of
 * the rows in the order of experts. What comes is in the order of the ranks that sent it, [ranks, experts, rows], and is
 * packed into that of the rank's experts, [experts, ranks, rows] (Megatron-LM, moe/token_dispatcher.py,
 * MoEAlltoAllTokenDispatcher: permute, all_to_all, sort_chunks_by_idxs). Results return the same way. */
#include "schedule/step/experts.h"
#include "schedule/choices/profile.h"

#include <math.h>

static struct view f32(struct emit *e, const char *stem, int64_t rows, int64_t cols)
{
    return emit_tensor(e, stem, CATEGORY_ACTIVATION, DTYPE_F32, rows, cols);
}

static struct work route_work(const struct emit *e, enum work_kind kind, int64_t rows)
{
    const struct transformer *m = e->choices->model;
    return (struct work){.kind = (uint8_t)kind,
                         .route = {rows, m->experts, m->experts_per_token, (int64_t)m->router,
                                   m->router_norm, (int64_t)llround(m->router_scale * 1e6)}};
}

static struct work permute_work(const struct emit *e, enum work_kind kind, int64_t rows,
                                bool weights)
{
    const struct transformer *m = e->choices->model;
    return (struct work){.kind = (uint8_t)kind,
                         .permute = {rows, m->hidden, m->experts_per_token, weights}};
}

static struct work activation_work(const struct emit *e, enum work_kind kind, int64_t rows,
                                   int64_t cols)
{
    const bool geglu = e->choices->model->activation == ACTIVATION_GEGLU;
    return (struct work){.kind = (uint8_t)kind,
                         .activation = {rows, cols, 0, geglu ? FUNCTION_GELU : FUNCTION_OWN}};
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

static struct view all_to_all(struct emit *e, const char *stem, enum category category,
                              struct view x, int64_t rows)
{
    const struct view y = emit_computed(e, stem, category, rows, e->choices->model->hidden);
    const struct work work = {.kind = WORK_ALL_TO_ALL,
                              .collective = {e->group.ep, bytes_of(e, x), ALGORITHM_AUTO, false}};
    emit_op(e, e->stream.experts, &work, &x, 1, &y, 1);
    return y;
}

/* Sends `rows` copies to the ranks of their experts, and returns the copies that arrive, in the order of the rank's
 * experts. Without other ranks it returns x. */
static struct view dispatch(struct emit *e, const char *stem, struct view x, int64_t rows)
{
    const int64_t ranks = e->choices->ep, h = e->choices->model->hidden;
    if (ranks == 1)
        return x;
    const struct view received = all_to_all(e, "received", CATEGORY_COMMUNICATION, x, rows);
    return emit_pack(e, WORK_PACK, received, view_all(e, emit_activation(e, stem, rows, h)), ranks,
                     own_experts(e), rows / e->choices->model->experts * h);
}

/* Does the reverse of dispatch(). */
static struct view combine(struct emit *e, const char *stem, struct view x, int64_t rows)
{
    const int64_t ranks = e->choices->ep, h = e->choices->model->hidden;
    if (ranks == 1)
        return x;
    const struct view sent = emit_computed(e, "sent", CATEGORY_COMMUNICATION, rows, h);
    emit_pack(e, WORK_UNPACK, x, sent, ranks, own_experts(e),
              rows / e->choices->model->experts * h);
    return all_to_all(e, stem, CATEGORY_ACTIVATION, sent, rows);
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
    compute(e, activation_work(e, WORK_SWIGLU, rows, f), &up, 1, &act, 1);
}

void experts_forward(struct emit *e, uint32_t layer, struct view x, struct view y, int64_t rows,
                     struct expert_saved *saved)
{
    const struct transformer *m = e->choices->model;
    const int64_t h = m->hidden, f = m->expert_ffn, copies = m->experts_per_token;
    const struct view logits = f32(e, "logits_router", rows, m->experts);
    const struct view weights = f32(e, "expert_weights", rows, copies);
    const int64_t all = rows * copies;
    saved->logits = logits.buffer;
    saved->weights = weights.buffer;
    emit_matmul(e, MATMUL_NT, x, weight_view(e, layer, WEIGHT_ROUTER), view_none(), logits, rows,
                m->experts, h);
    compute(e, route_work(e, WORK_ROUTE, rows), &logits, 1, &weights, 1);

    saved->up = emit_activation(e, "expert_up", all, 2 * f);
    saved->act = emit_activation(e, "expert_act", all, f);
    const struct view dealt = view_all(e, emit_activation(e, "permuted", all, h));
    const struct view up = view_all(e, saved->up), act = view_all(e, saved->act);
    compute(e, permute_work(e, WORK_PERMUTE, rows, false), &x, 1, &dealt, 1);
    if (e->choices->profile->experts_sync)
        emit_wait(e, e->stream.compute);
    const struct view permuted = dispatch(e, "dispatched", dealt, all);
    saved->permuted = permuted.buffer;
    emit_grouped(e, MATMUL_NT, permuted, weight_view(e, layer, WEIGHT_EXPERTS_UP), up, all, 2 * f,
                 h, own_experts(e));
    compute(e, activation_work(e, WORK_SWIGLU, all, f), &up, 1, &act, 1);
    const struct view written = view_all(e, emit_activation(e, "expert_y", all, h));
    emit_grouped(e, MATMUL_NT, act, weight_view(e, layer, WEIGHT_EXPERTS_DOWN), written, all, h, f,
                 own_experts(e));
    const struct view made = combine(e, "returned", written, all);
    saved->y = made.buffer;
    if (m->shared_ffn > 0)
        shared_wide(e, layer, x, rows, saved);
    if (y.count == 0)
        return;
    const struct work sum = permute_work(e, WORK_UNPERMUTE, rows, true);
    const struct view read[2] = {made, weights};
    if (m->shared_ffn == 0) {
        compute(e, sum, read, 2, &y, 1);
        return;
    }
    const struct view routed = emit_computed(e, "routed", CATEGORY_ACTIVATION, rows, h);
    const struct view shared = emit_computed(e, "shared", CATEGORY_ACTIVATION, rows, h);
    compute(e, sum, read, 2, &routed, 1);
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
    compute(e, activation_work(e, WORK_SWIGLU_BACKWARD, rows, f), (struct view[]){d_act, up}, 2,
            &d_up, 1);
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
    const struct view logits = view_all(e, saved->logits), weights = view_all(e, saved->weights);
    const struct view permuted = view_all(e, saved->permuted), up = view_all(e, saved->up);
    const struct view act = view_all(e, saved->act), made = view_all(e, saved->y);
    const struct view d_made = emit_computed(e, "d_expert_y", CATEGORY_ACTIVATION, all, h);
    const struct view d_weights = f32(e, "d_expert_weights", rows, m->experts_per_token);
    compute(e, permute_work(e, WORK_UNPERMUTE_BACKWARD, rows, false),
            (struct view[]){dy, made, weights}, 3, (struct view[]){d_made, d_weights}, 2);

    const struct view d_act = emit_computed(e, "d_expert_act", CATEGORY_ACTIVATION, all, f);
    const struct view d_up = emit_computed(e, "d_expert_up", CATEGORY_ACTIVATION, all, 2 * f);
    const struct view d_read = emit_computed(e, "d_permuted", CATEGORY_ACTIVATION, all, h);
    const struct view d_written = dispatch(e, "d_dispatched", d_made, all);
    emit_grouped(e, MATMUL_NN, d_written, weight_view(e, layer, WEIGHT_EXPERTS_DOWN), d_act, all, f,
                 h, own_experts(e));
    emit_weight_grad(e, layer, WEIGHT_EXPERTS_DOWN, d_written, act, h, f, all);
    compute(e, activation_work(e, WORK_SWIGLU_BACKWARD, all, f), (struct view[]){d_act, up}, 2,
            &d_up, 1);
    emit_grouped(e, MATMUL_NN, d_up, weight_view(e, layer, WEIGHT_EXPERTS_UP), d_read, all, h,
                 2 * f, own_experts(e));
    emit_weight_grad(e, layer, WEIGHT_EXPERTS_UP, d_up, permuted, 2 * f, h, all);
    const struct view d_permuted = combine(e, "d_returned", d_read, all);

    const struct view d_logits =
        emit_computed(e, "d_logits_router", CATEGORY_ACTIVATION, rows, m->experts);
    const struct view d_rows = emit_computed(e, "dx_experts", CATEGORY_ACTIVATION, rows, h);
    const struct view d_router = emit_computed(e, "dx_router", CATEGORY_ACTIVATION, rows, h);
    compute(e, permute_work(e, WORK_UNPERMUTE, rows, false), &d_permuted, 1, &d_rows, 1);
    compute(e, route_work(e, WORK_ROUTE_BACKWARD, rows), (struct view[]){d_weights, logits}, 2,
            &d_logits, 1);
    emit_matmul(e, MATMUL_NN, d_logits, weight_view(e, layer, WEIGHT_ROUTER), view_none(), d_router,
                rows, h, m->experts);
    emit_weight_grad(e, layer, WEIGHT_ROUTER, d_logits, x, m->experts, h, rows);
    emit_add(e, d_rows, d_router, dx);
    if (m->shared_ffn > 0)
        shared_backward(e, layer, x, dy, dx, rows, saved);
}
