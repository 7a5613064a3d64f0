/* One transformer layer as every strategy emits it: norms, projections and the feed-forward part,
 * forward and backward. What lies between norm1 and wo is the attention choice's business. */
#include "schedule/layers.h"

#include <stddef.h>

/* The weight's values, or an empty view when the model has no such weight. */
static struct view optional_weight(const struct emit *e, uint32_t part, enum weight weight)
{
    return has_weight(e, weight) ? weight_view(e, part, weight) : view_none();
}

/* ---- feed-forward ---- */

static bool gated(const struct emit *e)
{
    return e->choices->model->activation == ACTIVATION_SWIGLU;
}

static void mlp_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id y)
{
    const struct transformer *model = e->choices->model;
    struct layer_saved *saved = &e->saved[layer];
    int64_t h = model->hidden, f = model->ffn, up = gated(e) ? 2 * f : f;
    for (uint32_t i = 0; i < e->choices->ffn_chunks; i++) {
        struct piece piece = emit_piece(e->rows, e->choices->ffn_chunks, i);
        buffer_id wide = saved->up[i] = emit_activation(e, "up", piece.rows, up);
        buffer_id act = saved->act[i] = emit_activation(e, "act", piece.rows, f);
        e->tags.chunk = e->choices->ffn_chunks > 1 ? (uint16_t)i : IR_NONE16;
        emit_matmul(e, MATMUL_NT, view_rows(x, piece.begin, piece.rows, h),
                    weight_view(e, layer, WEIGHT_UP), optional_weight(e, layer, WEIGHT_UP_BIAS),
                    view_all(e, wide), piece.rows, up, h);
        struct work work = {.kind = gated(e) ? WORK_SWIGLU : WORK_GELU, .rows = {piece.rows, f, 0}};
        emit_op(e, e->compute, &work, (struct view[]){view_all(e, wide)}, 1,
                (struct view[]){view_all(e, act)}, 1);
        emit_matmul(e, MATMUL_NT, view_all(e, act), weight_view(e, layer, WEIGHT_DOWN),
                    optional_weight(e, layer, WEIGHT_DOWN_BIAS),
                    view_rows(y, piece.begin, piece.rows, h), piece.rows, h, f);
    }
    e->tags.chunk = IR_NONE16;
}

static void mlp_backward(struct emit *e, uint32_t layer, buffer_id dy, buffer_id dx)
{
    const struct transformer *model = e->choices->model;
    struct layer_saved *saved = &e->saved[layer];
    int64_t h = model->hidden, f = model->ffn, up = gated(e) ? 2 * f : f;
    for (uint32_t i = 0; i < e->choices->ffn_chunks; i++) {
        struct piece piece = emit_piece(e->rows, e->choices->ffn_chunks, i);
        struct view dy_rows = view_rows(dy, piece.begin, piece.rows, h);
        struct view x_rows = view_rows(saved->norm2, piece.begin, piece.rows, h);
        buffer_id d_act = emit_activation(e, "d_act", piece.rows, f);
        buffer_id d_up = emit_activation(e, "d_up", piece.rows, up);
        e->tags.chunk = e->choices->ffn_chunks > 1 ? (uint16_t)i : IR_NONE16;
        emit_matmul(e, MATMUL_NN, dy_rows, weight_view(e, layer, WEIGHT_DOWN), view_none(),
                    view_all(e, d_act), piece.rows, f, h);
        emit_weight_grad(e, layer, WEIGHT_DOWN, dy_rows, view_all(e, saved->act[i]), h, f,
                         piece.rows);
        emit_bias_grad(e, layer, WEIGHT_DOWN_BIAS, dy_rows, piece.rows, h);
        struct work work = {.kind = gated(e) ? WORK_SWIGLU_BACKWARD : WORK_GELU_BACKWARD,
                            .rows = {piece.rows, f, 0}};
        emit_op(e, e->compute, &work,
                (struct view[]){view_all(e, d_act), view_all(e, saved->up[i])}, 2,
                (struct view[]){view_all(e, d_up)}, 1);
        emit_matmul(e, MATMUL_NN, view_all(e, d_up), weight_view(e, layer, WEIGHT_UP), view_none(),
                    view_rows(dx, piece.begin, piece.rows, h), piece.rows, h, up);
        emit_weight_grad(e, layer, WEIGHT_UP, view_all(e, d_up), x_rows, up, h, piece.rows);
        emit_bias_grad(e, layer, WEIGHT_UP_BIAS, view_all(e, d_up), piece.rows, up);
    }
    e->tags.chunk = IR_NONE16;
}

/* ---- one layer ---- */

buffer_id layer_forward(struct emit *e, uint32_t layer, buffer_id x)
{
    const struct transformer *model = e->choices->model;
    struct layer_saved *saved = &e->saved[layer];
    int64_t rows = e->rows, h = model->hidden, q = transformer_q_width(model);

    saved->x = x;
    set_region(e, REGION_NORM);
    saved->norm1 = emit_activation(e, "norm", rows, h);
    saved->norm1_stats = emit_norm_stats(e, rows);
    emit_norm(e, layer, WEIGHT_NORM1, view_all(e, x), view_all(e, saved->norm1),
              view_all(e, saved->norm1_stats), rows, h);

    saved->attention_out = emit_activation(e, "attention", rows, q);
    attention_emitters[e->choices->attention].forward(e, layer, saved->norm1, saved->attention_out);

    set_region(e, REGION_LINEAR);
    buffer_id projected = emit_activation(e, "projected", rows, h);
    emit_matmul(e, MATMUL_NT, view_all(e, saved->attention_out), weight_view(e, layer, WEIGHT_O),
                optional_weight(e, layer, WEIGHT_O_BIAS), view_all(e, projected), rows, h, q);
    saved->x2 = emit_activation(e, "x", rows, h);
    emit_add(e, view_all(e, x), view_all(e, projected), view_all(e, saved->x2));

    set_region(e, REGION_NORM);
    saved->norm2 = emit_activation(e, "norm", rows, h);
    saved->norm2_stats = emit_norm_stats(e, rows);
    emit_norm(e, layer, WEIGHT_NORM2, view_all(e, saved->x2), view_all(e, saved->norm2),
              view_all(e, saved->norm2_stats), rows, h);

    set_region(e, REGION_LINEAR);
    buffer_id ffn = emit_activation(e, "ffn", rows, h);
    mlp_forward(e, layer, saved->norm2, ffn);
    buffer_id out = emit_activation(e, "x", rows, h);
    emit_add(e, view_all(e, saved->x2), view_all(e, ffn), view_all(e, out));
    return out;
}

buffer_id layer_backward(struct emit *e, uint32_t layer, buffer_id dy)
{
    const struct transformer *model = e->choices->model;
    struct layer_saved *saved = &e->saved[layer];
    int64_t rows = e->rows, h = model->hidden, q = transformer_q_width(model);

    set_region(e, REGION_LINEAR);
    buffer_id d_norm2 = emit_activation(e, "d_norm", rows, h);
    mlp_backward(e, layer, dy, d_norm2);
    set_region(e, REGION_NORM);
    buffer_id d_x2_norm = emit_activation(e, "dx_norm", rows, h);
    emit_norm_backward(e, layer, WEIGHT_NORM2, view_all(e, d_norm2), view_all(e, saved->x2),
                       view_all(e, saved->norm2_stats), view_all(e, d_x2_norm), rows, h);
    buffer_id dx2 = emit_activation(e, "dx", rows, h);
    emit_add(e, view_all(e, d_x2_norm), view_all(e, dy), view_all(e, dx2));

    set_region(e, REGION_LINEAR);
    buffer_id d_attention = emit_activation(e, "d_attention", rows, q);
    emit_matmul(e, MATMUL_NN, view_all(e, dx2), weight_view(e, layer, WEIGHT_O), view_none(),
                view_all(e, d_attention), rows, q, h);
    emit_weight_grad(e, layer, WEIGHT_O, view_all(e, dx2), view_all(e, saved->attention_out), h, q,
                     rows);
    emit_bias_grad(e, layer, WEIGHT_O_BIAS, view_all(e, dx2), rows, h);

    buffer_id d_norm1 = emit_activation(e, "d_norm", rows, h);
    attention_emitters[e->choices->attention].backward(e, layer, d_attention, d_norm1);

    set_region(e, REGION_NORM);
    buffer_id dx_norm = emit_activation(e, "dx_norm", rows, h);
    emit_norm_backward(e, layer, WEIGHT_NORM1, view_all(e, d_norm1), view_all(e, saved->x),
                       view_all(e, saved->norm1_stats), view_all(e, dx_norm), rows, h);
    buffer_id dx = emit_activation(e, "dx", rows, h);
    emit_add(e, view_all(e, dx_norm), view_all(e, dx2), view_all(e, dx));
    return dx;
}
