/* The training step, layer by layer, as every strategy emits it: norms, projections, feed-forward,
 * embedding and loss. What lies between norm1 and wo is the attention choice's business. */
#include "schedule/emit.h"

#include <stddef.h>

/* The weight's values, or an empty view when the model has no such weight. */
static struct view optional_weight(const struct emit *e, uint32_t part, enum weight weight)
{
    return has_weight(e, weight) ? weight_view(e, part, weight) : view_none();
}

static void set_region(struct emit *e, enum region region)
{
    e->tags.region = (uint8_t)region;
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

/* x += wo(attention(norm1(x))); x += mlp(norm2(x)) */
static buffer_id layer_forward(struct emit *e, uint32_t layer, buffer_id x)
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

static buffer_id layer_backward(struct emit *e, uint32_t layer, buffer_id dy)
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

/* ---- before and after the layers ---- */

static buffer_id embedding_forward(struct emit *e, uint32_t micro)
{
    const struct transformer *model = e->choices->model;
    int64_t rows = e->rows, h = model->hidden;
    set_region(e, REGION_EMBEDDING);
    buffer_id x = emit_activation(e, "x", rows, h);
    struct work work = {.kind = WORK_EMBEDDING, .embedding = {rows, h, model->vocab, 0}};
    emit_op(e, e->compute, &work,
            (struct view[]){view_rows(e->tokens, micro * rows, rows, 1),
                            weight_view(e, part_embedding(e), WEIGHT_EMBEDDING)},
            2, (struct view[]){view_all(e, x)}, 1);
    if (!has_weight(e, WEIGHT_POSITIONS))
        return x;
    buffer_id sum = emit_activation(e, "x", rows, h);
    buffer_id place = emit_activation(e, "place", rows, h);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        work.embedding.rows = e->n;
        work.embedding.vocab = e->slot[WEIGHT_POSITIONS].rows;
        emit_op(e, e->compute, &work,
                (struct view[]){view_all(e, e->positions),
                                weight_view(e, part_embedding(e), WEIGHT_POSITIONS)},
                2, (struct view[]){view_rows(place, i * e->n, e->n, h)}, 1);
    }
    emit_add(e, view_all(e, x), view_all(e, place), view_all(e, sum));
    return sum;
}

/* One table's gradient from rows of dx; index holds the table row of each. */
static void table_backward(struct emit *e, enum weight weight, struct view dx, struct view index,
                           int64_t rows)
{
    bool accumulate;
    struct view dtable = grad_view(e, part_embedding(e), weight, &accumulate);
    struct work work = {.kind = WORK_EMBEDDING_BACKWARD,
                        .embedding = {rows, e->slot[weight].cols, e->slot[weight].rows, 0}};
    emit_op(e, e->compute, &work, (struct view[]){dx, index, dtable}, accumulate ? 3 : 2, &dtable,
            1);
}

static void embedding_backward(struct emit *e, uint32_t micro, buffer_id dx)
{
    int64_t rows = e->rows, h = e->choices->model->hidden;
    set_region(e, REGION_EMBEDDING);
    table_backward(e, WEIGHT_EMBEDDING, view_all(e, dx),
                   view_rows(e->tokens, micro * rows, rows, 1), rows);
    for (int64_t i = 0; has_weight(e, WEIGHT_POSITIONS) && i < e->choices->micro_batch; i++)
        table_backward(e, WEIGHT_POSITIONS, view_rows(dx, i * e->n, e->n, h),
                       view_all(e, e->positions), e->n);
}

/* Cross-entropy of one piece of rows, and its gradient with respect to the logits, in the compute
 * dtype. loss_f32: as Megatron-DeepSpeed's sequence-parallel cross entropy, which materialises fp32
 * logits, softmax and its logarithm beside the logits, 14 bytes per element, and reuses the softmax
 * for the gradient. Otherwise the kernel recomputes the softmax and writes over the logits. */
static buffer_id loss_of(struct emit *e, buffer_id logits, struct view labels, int64_t rows)
{
    const struct choices *c = e->choices;
    int64_t vocab = c->model->vocab, counted = c->global_batch * (c->seq - 1);
    struct view loss = view_all(e, e->loss);
    buffer_id lse = emit_buffer(e, "lse", CATEGORY_LOGITS, DTYPE_F32, rows, 0);
    struct work forward = {.kind = WORK_CROSS_ENTROPY,
                           .cross_entropy = {rows, vocab, counted, e->loss_touched}};
    struct work backward = {.kind = WORK_CROSS_ENTROPY_BACKWARD,
                            .cross_entropy = {rows, vocab, counted, 0}};
    struct view read[3] = {view_all(e, logits), labels, loss};
    uint32_t reads = e->loss_touched ? 3 : 2;
    e->loss_touched = true;

    if (!c->profile->loss_f32) {
        emit_op(e, e->compute, &forward, read, reads, (struct view[]){loss, view_all(e, lse)}, 2);
        e->tags.phase = PHASE_BACKWARD;
        emit_op(e, e->compute, &backward, read, 2, (struct view[]){view_all(e, logits)}, 1);
        return logits;
    }
    buffer_id wide = emit_buffer(e, "logits_wide", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
    buffer_id softmax = emit_buffer(e, "softmax", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
    buffer_id logarithm = emit_buffer(e, "log_softmax", CATEGORY_LOGITS, DTYPE_U8, rows * vocab, 4);
    buffer_id gradient = emit_buffer(e, "d_logits", CATEGORY_LOGITS, c->dtype, rows, vocab);
    struct work cast = {.kind = WORK_CAST, .elements = {rows * vocab}};
    emit_op(e, e->compute, &cast, (struct view[]){view_all(e, logits)}, 1,
            (struct view[]){view_all(e, wide)}, 1);
    read[0] = view_all(e, wide);
    op_id done = emit_op(
        e, e->compute, &forward, read, reads,
        (struct view[]){loss, view_all(e, lse), view_all(e, softmax), view_all(e, logarithm)}, 4);
    emit_hold(e, logits, done);
    e->tags.phase = PHASE_BACKWARD;
    read[0] = view_all(e, softmax);
    emit_op(e, e->compute, &backward, read, 2, (struct view[]){view_all(e, softmax)}, 1);
    emit_op(e, e->compute, &cast, (struct view[]){view_all(e, softmax)}, 1,
            (struct view[]){view_all(e, gradient)}, 1);
    return gradient;
}

/* Final norm, head and loss, forward and backward, piece by piece; returns the gradient of x. */
static buffer_id head(struct emit *e, uint32_t micro, buffer_id x)
{
    const struct transformer *model = e->choices->model;
    int64_t rows = e->rows, h = model->hidden, vocab = model->vocab;
    uint32_t part = part_head(e);
    buffer_id normed = emit_activation(e, "norm", rows, h);
    buffer_id d_normed = emit_activation(e, "d_norm", rows, h);
    buffer_id stats = emit_norm_stats(e, rows);
    buffer_id dx = emit_activation(e, "dx", rows, h);

    set_region(e, REGION_NORM);
    emit_norm(e, part, WEIGHT_FINAL_NORM, view_all(e, x), view_all(e, normed), view_all(e, stats),
              rows, h);
    set_region(e, REGION_LOSS);
    for (uint32_t i = 0; i < e->choices->loss_chunks; i++) {
        struct piece piece = emit_piece(rows, e->choices->loss_chunks, i);
        struct view x_rows = view_rows(normed, piece.begin, piece.rows, h);
        e->tags.chunk = e->choices->loss_chunks > 1 ? (uint16_t)i : IR_NONE16;
        e->tags.phase = PHASE_FORWARD;
        buffer_id logits =
            emit_buffer(e, "logits", CATEGORY_LOGITS, e->choices->dtype, piece.rows, vocab);
        emit_matmul(e, MATMUL_NT, x_rows, weight_view(e, part, WEIGHT_HEAD), view_none(),
                    view_all(e, logits), piece.rows, vocab, h);
        buffer_id d_logits = loss_of(
            e, logits, view_rows(e->labels, micro * rows + piece.begin, piece.rows, 1), piece.rows);
        emit_matmul(e, MATMUL_NN, view_all(e, d_logits), weight_view(e, part, WEIGHT_HEAD),
                    view_none(), view_rows(d_normed, piece.begin, piece.rows, h), piece.rows, h,
                    vocab);
        emit_weight_grad(e, part, WEIGHT_HEAD, view_all(e, d_logits), x_rows, vocab, h, piece.rows);
    }
    e->tags.chunk = IR_NONE16;
    e->tags.phase = PHASE_BACKWARD;
    set_region(e, REGION_NORM);
    emit_norm_backward(e, part, WEIGHT_FINAL_NORM, view_all(e, d_normed), view_all(e, x),
                       view_all(e, stats), view_all(e, dx), rows, h);
    return dx;
}

/* ---- the step ---- */

static void saved_init(struct emit *e)
{
    const struct choices *c = e->choices;
    size_t layers = (size_t)c->model->layers;
    e->saved = arena_array(&e->arena, layers, sizeof *e->saved);
    for (size_t l = 0; l < layers; l++) {
        struct layer_saved *saved = &e->saved[l];
        saved->attention = arena_array(&e->arena, (size_t)c->micro_batch, sizeof *saved->attention);
        saved->up = arena_array(&e->arena, c->ffn_chunks, sizeof *saved->up);
        saved->act = arena_array(&e->arena, c->ffn_chunks, sizeof *saved->act);
    }
}

void emit_step(struct emit *e)
{
    const struct choices *c = e->choices;
    uint32_t layers = (uint32_t)c->model->layers;
    saved_init(e);
    for (uint32_t micro = 0; micro < c->accumulation; micro++) {
        e->tags = (struct op_tags){PHASE_FORWARD, REGION_NONE, IR_NONE16,
                                   IR_NONE16,     IR_NONE16,   (uint16_t)micro};
        weights_begin_micro_batch(e, micro);
        buffer_id x = embedding_forward(e, micro);
        for (uint32_t l = 0; l < layers; l++) {
            e->tags.layer = (uint16_t)l;
            x = layer_forward(e, l, x);
        }
        e->tags.layer = IR_NONE16;
        buffer_id dx = head(e, micro, x);
        e->tags.phase = PHASE_BACKWARD;
        for (uint32_t l = layers; l-- > 0;) {
            e->tags.layer = (uint16_t)l;
            dx = layer_backward(e, l, dx);
        }
        e->tags.layer = IR_NONE16;
        embedding_backward(e, micro, dx);
    }
}

/* ---- one operator ---- */

static buffer_id filled(struct emit *e, const char *stem, int64_t rows, int64_t cols)
{
    buffer_id x = emit_activation(e, stem, rows, cols);
    struct work work = {.kind = WORK_FILL, .elements = {rows * cols}};
    emit_op(e, e->compute, &work, NULL, 0, (struct view[]){view_all(e, x)}, 1);
    return x;
}

void emit_operator(struct emit *e)
{
    const struct transformer *model = e->choices->model;
    const struct attention_emitter *emitter = &attention_emitters[e->choices->attention];
    int64_t q = transformer_q_width(model), width = q + 2 * transformer_kv_width(model);
    saved_init(e);
    e->tags = (struct op_tags){PHASE_FORWARD, REGION_NONE, 0, IR_NONE16, IR_NONE16, IR_NONE16};
    buffer_id qkv = filled(e, "qkv", e->rows, width), d_out = {IR_NONE};
    if (e->choices->scope == SCOPE_ATTENTION)
        d_out = filled(e, "d_out", e->rows, q);
    buffer_id out = emit_activation(e, "attention", e->rows, q);
    set_region(e, REGION_ATTENTION);
    emitter->operator_forward(e, 0, qkv, out);
    if (e->choices->scope == SCOPE_ATTENTION_FORWARD)
        return;
    e->tags.phase = PHASE_BACKWARD;
    if (e->choices->scope == SCOPE_ATTENTION_BACKWARD) {
        set_region(e, REGION_NONE);
        d_out = filled(e, "d_out", e->rows, q);
        set_region(e, REGION_ATTENTION);
    }
    buffer_id dqkv = emit_activation(e, "dqkv", e->rows, width);
    emitter->operator_backward(e, 0, d_out, dqkv);
}
