#include "schedule/attention/project.h"

buffer_id project_qkv(struct emit *e, uint32_t layer, buffer_id x)
{
    const struct transformer *model = e->choices->model;
    int64_t width = transformer_q_width(model) + 2 * transformer_kv_width(model);
    struct view bias = {{IR_NONE}, 0, 0};
    if (has_weight(e, WEIGHT_QKV_BIAS))
        bias = weight_view(e, layer, WEIGHT_QKV_BIAS);
    e->tags.region = REGION_LINEAR;
    buffer_id qkv = emit_activation(e, "qkv", e->rows, width);
    emit_matmul(e, MATMUL_NT, view_all(e, x), weight_view(e, layer, WEIGHT_QKV), bias,
                view_all(e, qkv), e->rows, width, model->hidden);
    return qkv;
}

void project_qkv_backward(struct emit *e, uint32_t layer, buffer_id dqkv, buffer_id x, buffer_id dx)
{
    const struct transformer *model = e->choices->model;
    int64_t width = transformer_q_width(model) + 2 * transformer_kv_width(model);
    struct view none = {{IR_NONE}, 0, 0};
    e->tags.region = REGION_LINEAR;
    emit_matmul(e, MATMUL_NN, view_all(e, dqkv), weight_view(e, layer, WEIGHT_QKV), none,
                view_all(e, dx), e->rows, model->hidden, width);
    emit_weight_grad(e, layer, WEIGHT_QKV, view_all(e, dqkv), view_all(e, x), width, model->hidden,
                     e->rows);
    emit_bias_grad(e, layer, WEIGHT_QKV_BIAS, view_all(e, dqkv), e->rows, width);
}

int64_t kv_heads_sent(const struct choices *c, uint32_t ranks)
{
    if (c->profile->kv_replication == KV_TO_HEADS)
        return c->model->heads;
    return c->model->kv_heads % ranks == 0 ? c->model->kv_heads : (int64_t)ranks;
}

buffer_id rotate(struct emit *e, struct view x, struct view positions, int64_t rows, int64_t heads,
                 bool backward)
{
    int64_t dim = e->choices->model->head_dim;
    buffer_id y = emit_activation(e, backward ? "d_rotated" : "rotated", rows, heads * dim);
    struct work work = {
        .kind = backward ? WORK_ROPE_BACKWARD : WORK_ROPE, .rope = {rows, heads, dim, 0}
    };
    emit_op(e, e->compute, &work, (struct view[]){x, positions}, 2, (struct view[]){view_all(e, y)},
            1);
    return y;
}

static struct work core_work(const struct emit *e, enum work_kind kind, int64_t tokens,
                             int64_t heads, int64_t kv_heads)
{
    return (struct work){
        .kind = (uint8_t)kind,
        .in = e->choices->dtype,
        .out = e->choices->dtype,
        .attention = {tokens, tokens, heads, kv_heads, e->choices->model->head_dim, MASK_CAUSAL, 0,
                      0}
    };
}

void attention_core(struct emit *e, struct attention_saved *saved, struct view o, int64_t tokens,
                    int64_t heads, int64_t kv_heads)
{
    struct work work = core_work(e, WORK_ATTENTION, tokens, heads, kv_heads);
    saved->o = o;
    saved->lse = emit_buffer(e, "lse", CATEGORY_ACTIVATION, DTYPE_F32, tokens, heads);
    emit_op(e, e->compute, &work,
            (struct view[]){view_all(e, saved->q), view_all(e, saved->k), view_all(e, saved->v)}, 3,
            (struct view[]){o, view_all(e, saved->lse)}, 2);
}

struct qkv attention_core_backward(struct emit *e, const struct attention_saved *saved,
                                   struct view d_o, int64_t tokens, int64_t heads, int64_t kv_heads)
{
    const struct choices *c = e->choices;
    int64_t dim = c->model->head_dim;
    struct work work = core_work(e, WORK_ATTENTION_BACKWARD, tokens, heads, kv_heads);
    struct qkv grads = {
        .q = emit_activation(e, "dq", tokens, heads * dim),
        .k = emit_buffer(e, "dk", CATEGORY_KV, c->dtype, tokens, kv_heads * dim),
        .v = emit_buffer(e, "dv", CATEGORY_KV, c->dtype, tokens, kv_heads * dim),
    };
    struct view write[4] = {view_all(e, grads.q), view_all(e, grads.k), view_all(e, grads.v)};
    int64_t workspace = work_workspace_bytes(c->attention_impl, c->sm, &work);
    if (workspace > 0)
        write[3] =
            view_all(e, emit_buffer(e, "workspace", CATEGORY_WORKSPACE, DTYPE_U8, workspace, 0));
    emit_op(e, e->compute, &work,
            (struct view[]){view_all(e, saved->q), view_all(e, saved->k), view_all(e, saved->v),
                            saved->o, view_all(e, saved->lse), d_o},
            6, write, workspace > 0 ? 4 : 3);
    return grads;
}

bool has_head_norms(const struct emit *e)
{
    return e->choices->model->qk_norm;
}

static buffer_id head_norm(struct emit *e, uint32_t layer, enum weight weight, buffer_id x,
                           buffer_id *rstd, int64_t rows, int64_t heads)
{
    int64_t dim = e->choices->model->head_dim;
    buffer_id y = emit_activation(e, "head_norm", rows, heads * dim);
    *rstd = emit_buffer(e, "stats", CATEGORY_ACTIVATION, DTYPE_F32, rows * heads, 0);
    emit_rmsnorm(e, layer, weight, view_all(e, x), view_all(e, y), view_all(e, *rstd), rows * heads,
                 dim);
    return y;
}

void head_norms(struct emit *e, uint32_t layer, struct qkv *parts, struct attention_saved *saved,
                int64_t rows)
{
    const struct transformer *model = e->choices->model;
    saved->q_raw = parts->q;
    saved->k_raw = parts->k;
    parts->q = head_norm(e, layer, WEIGHT_Q_NORM, parts->q, &saved->q_rstd, rows, model->heads);
    parts->k = head_norm(e, layer, WEIGHT_K_NORM, parts->k, &saved->k_rstd, rows, model->kv_heads);
}

static buffer_id head_norm_backward(struct emit *e, uint32_t layer, enum weight weight,
                                    buffer_id dy, buffer_id x, buffer_id rstd, int64_t rows,
                                    int64_t heads)
{
    int64_t dim = e->choices->model->head_dim;
    buffer_id dx = emit_activation(e, "d_head_norm", rows, heads * dim);
    emit_rmsnorm_backward(e, layer, weight, view_all(e, dy), view_all(e, x), view_all(e, rstd),
                          view_all(e, dx), rows * heads, dim);
    return dx;
}

void head_norms_backward(struct emit *e, uint32_t layer, struct qkv *grads,
                         const struct attention_saved *saved, int64_t rows)
{
    const struct transformer *model = e->choices->model;
    grads->q = head_norm_backward(e, layer, WEIGHT_Q_NORM, grads->q, saved->q_raw, saved->q_rstd,
                                  rows, model->heads);
    grads->k = head_norm_backward(e, layer, WEIGHT_K_NORM, grads->k, saved->k_raw, saved->k_rstd,
                                  rows, model->kv_heads);
}

static struct work qkv_layout(const struct emit *e, enum work_kind kind, int64_t rows,
                              int64_t parts)
{
    const struct transformer *model = e->choices->model;
    int64_t q = transformer_q_width(model) / parts, kv = transformer_kv_width(model) / parts;
    return (struct work){
        .kind = (uint8_t)kind, .pack = {rows, parts, {q, kv, kv}}
    };
}

struct qkv split_qkv(struct emit *e, struct view qkv, int64_t rows, int64_t parts)
{
    struct work work = qkv_layout(e, WORK_PACK, rows, parts);
    enum category category = parts > 1 ? CATEGORY_COMMUNICATION : CATEGORY_ACTIVATION;
    struct qkv out = {
        .q = emit_buffer(e, "q", category, e->choices->dtype, parts * rows, work.pack.w[0]),
        .k = emit_buffer(e, "k", category, e->choices->dtype, parts * rows, work.pack.w[1]),
        .v = emit_buffer(e, "v", category, e->choices->dtype, parts * rows, work.pack.w[2]),
    };
    emit_op(e, e->compute, &work, &qkv, 1,
            (struct view[]){view_all(e, out.q), view_all(e, out.k), view_all(e, out.v)}, 3);
    return out;
}

void join_qkv(struct emit *e, const struct qkv *parts, struct view qkv, int64_t rows,
              int64_t pieces)
{
    struct work work = qkv_layout(e, WORK_UNPACK, rows, pieces);
    emit_op(e, e->compute, &work,
            (struct view[]){view_all(e, parts->q), view_all(e, parts->k), view_all(e, parts->v)}, 3,
            &qkv, 1);
}
