#include "schedule/attention/latent.h"

#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"
#include "schedule/emit/tensor_parallel.h"

/* Rows of latents: their number on all tensor ranks together, and on this rank. */
struct latent_row_counts {
    int64_t all_rows, own_rows;
    /* positions of the rows if they are of one sequence; empty: each sequence has those of view_of_unit_positions() */
    struct view positions;
};

static struct latent_row_counts latent_row_counts_of(const struct emit *e, int64_t all,
                                                     struct view positions)
{
    return (struct latent_row_counts){all, all / (int64_t)e->choices->sequence_parallel_ranks,
                                      positions};
}

/* Columns of each tensor, which has a row for each token. plain: those of one head that are not rotated. q, k, v: those
 * of all heads. up: those of the tensor from which k and v are made, which is kv_b's result, or the latent if head
 * ranks send latents. latent, rotated: the two parts of kv_a's result. all: those of qkv. */
struct latent_widths {
    int64_t plain, q, k, v, up, latent, rotated, all;
};

static struct latent_widths latent_widths_of(const struct emit *e)
{
    const struct transformer *m = e->choices->model;
    const int64_t plain = m->head_dim - m->rope_dim;
    struct latent_widths w = {.plain = plain,
                              .q = transformer_q_columns(m),
                              .k = transformer_kv_columns(m),
                              .v = transformer_v_columns(m),
                              .up = m->heads * (plain + m->v_dim),
                              .latent = m->kv_latent,
                              .rotated = m->rope_dim};
    w.all = w.q + w.k + w.v;
    if (derived_sends_latents(e->choices)) {
        w.up = w.latent;
        w.all = w.q + w.latent + w.rotated;
    }
    return w;
}

/* ---- one sequence: rotates q and keys, and joins q, k and v ---- */

static struct view view_of_sequence_positions(struct emit *e, const struct latent_row_counts *rows,
                                              int64_t sequence)
{
    if (rows->positions.count > 0)
        return rows->positions;
    e->unit.positions_sequence_index = sequence;
    return view_of_unit_positions(e);
}

static void rotate_last_columns(struct emit *e, enum work_kind kind, struct view x,
                                struct view positions, struct view y, int64_t n, int64_t heads,
                                int64_t dim)
{
    const int64_t rotated = e->choices->model->rope_dim;
    const struct work work = {.kind = (uint8_t)kind,
                              .rope = {n, heads, dim, 0, dim == rotated ? 0 : rotated}};
    emit_op(e, e->stream.compute, &work, (struct view[]){x, positions}, 2, &y, 1);
}

static struct work latent_keys_work(const struct emit *e, enum work_kind kind, int64_t n)
{
    const struct transformer *m = e->choices->model;
    return (struct work){
        .kind = (uint8_t)kind,
        .latent_keys = {n, m->heads, m->head_dim - m->rope_dim, m->rope_dim, m->v_dim}};
}

/* Writes q, k and v of one sequence of n tokens to qkv. They are made from q, from `up`, the result of kv_b, and from
 * `shared`, the key columns that heads share; q and `shared` are rotated. If head ranks send latents, `up` is the
 * latents, and qkv gets the rotated q, the latents and the rotated shared columns. */
static void emit_arrange_qkv(struct emit *e, const struct latent_widths *w, int64_t n,
                             struct view positions, struct view q, struct view up,
                             struct view shared, struct view qkv)
{
    const struct transformer *m = e->choices->model;
    const struct work work = latent_keys_work(e, WORK_LATENT_KEYS, n);
    rotate_last_columns(e, WORK_ROPE, q, positions, view_slice(qkv, 0, n * w->q), n, m->heads,
                        m->head_dim);
    if (derived_sends_latents(e->choices)) {
        emit_pack_or_unpack(e, WORK_PACK, up, view_slice(qkv, n * w->q, n * w->latent), n, 1,
                            w->latent);
        rotate_last_columns(e, WORK_ROPE, shared, positions,
                            view_slice(qkv, n * (w->q + w->latent), n * w->rotated), n, 1,
                            w->rotated);
        return;
    }
    const struct view rotated =
        emit_compute_tensor(e, "rotated", CATEGORY_ACTIVATION, n, w->rotated);
    rotate_last_columns(e, WORK_ROPE, shared, positions, rotated, n, 1, w->rotated);
    emit_op(e, e->stream.compute, &work, (struct view[]){up, rotated}, 2,
            (struct view[]){view_slice(qkv, n * w->q, n * w->k),
                            view_slice(qkv, n * (w->q + w->k), n * w->v)},
            2);
}

static void emit_arrange_qkv_backward(struct emit *e, const struct latent_widths *w, int64_t n,
                                      struct view positions, struct view dqkv, struct view dq,
                                      struct view d_up, struct view d_shared)
{
    const struct transformer *m = e->choices->model;
    const struct work work = latent_keys_work(e, WORK_LATENT_KEYS_BACKWARD, n);
    rotate_last_columns(e, WORK_ROPE_BACKWARD, view_slice(dqkv, 0, n * w->q), positions, dq, n,
                        m->heads, m->head_dim);
    if (derived_sends_latents(e->choices)) {
        emit_pack_or_unpack(e, WORK_PACK, view_slice(dqkv, n * w->q, n * w->latent), d_up, n, 1,
                            w->latent);
        rotate_last_columns(e, WORK_ROPE_BACKWARD,
                            view_slice(dqkv, n * (w->q + w->latent), n * w->rotated), positions,
                            d_shared, n, 1, w->rotated);
        return;
    }
    const struct view d_rotated =
        emit_compute_tensor(e, "d_rotated", CATEGORY_ACTIVATION, n, w->rotated);
    emit_op(e, e->stream.compute, &work,
            (struct view[]){view_slice(dqkv, n * w->q, n * w->k),
                            view_slice(dqkv, n * (w->q + w->k), n * w->v)},
            2, (struct view[]){d_up, d_rotated}, 2);
    rotate_last_columns(e, WORK_ROPE_BACKWARD, d_rotated, positions, d_shared, n, 1, w->rotated);
}

/* ---- q or keys and values: a narrow product, its norm, and a wide product ---- */

/* Returns the norm of x, the latent of this rank's rows. Sets *stats to what its backward reads. */
static struct view norm_latent(struct emit *e, uint32_t layer, enum weight weight, struct view x,
                               const struct latent_row_counts *rows, int64_t cols,
                               struct view *stats)
{
    e->op_tags.region = REGION_NORM;
    struct view y =
        emit_compute_tensor(e, "latent_norm", CATEGORY_ACTIVATION, rows->own_rows, cols);
    *stats = emit_new_norm_stats_tensor(e, weight, rows->own_rows, 0);
    emit_norm(e, layer, weight, x, y, *stats, rows->own_rows, cols);
    e->op_tags.region = REGION_LINEAR;
    return y;
}

/* Returns x[rows, from] W^T, of `to` columns, where W is the layer's weight. */
static struct view emit_product(struct emit *e, uint32_t layer, enum weight weight,
                                const char *stem, struct view x, int64_t rows, int64_t to,
                                int64_t from)
{
    struct view y = emit_compute_tensor(e, stem, CATEGORY_ACTIVATION, rows, to);
    emit_matmul(e, MATMUL_NT, x, weight_view(e, layer, weight), view_none(), y, rows, to, from);
    return y;
}

/* Emits the backward of emit_product(): writes the gradient of x to dx, and emits the weight's gradient. */
static void emit_product_backward(struct emit *e, uint32_t layer, enum weight weight,
                                  struct view dy, struct view x, struct view dx, int64_t rows,
                                  int64_t to, int64_t from)
{
    emit_matmul(e, MATMUL_NN, dy, weight_view(e, layer, weight), view_none(), dx, rows, from, to);
    emit_weight_grad(e, layer, weight, dy, x, to, from, rows);
}

/* Emits the backward of a wide product, of `to` columns, whose input of `from` columns was gathered from the tensor
 * ranks: the gradient of the weight, and that of `own`, this rank's rows of the input, which is reduce-scattered.
 * Writes the second of these to dx, or to a new tensor if dx is empty, and returns it. gathered: the gathered input, if
 * tensor ranks keep such inputs; else it is gathered again. */
static struct view
emit_gathered_product_backward(struct emit *e, uint32_t layer, enum weight weight, struct view dy,
                               struct view own, struct view gathered, struct view dx,
                               const struct latent_row_counts *rows, int64_t to, int64_t from)
{
    if (dx.count == 0)
        dx = emit_compute_tensor(e, "d_latent_norm", CATEGORY_ACTIVATION, rows->own_rows, from);
    struct view whole =
        tensor_keeps_gathered(e->choices)
            ? gathered
            : tensor_gather(e, own, from, TENSOR_ROWS_BY_SEQUENCE, "latent_all", false);
    struct view all = tensor_product_output(e, dx, from, "d_latent_all");
    emit_matmul(e, MATMUL_NN, dy, weight_view(e, layer, weight), view_none(), all, rows->all_rows,
                from, to);
    tensor_reduce_scatter_rows_of_width(e, all, dx, from, TENSOR_ROWS_BY_SEQUENCE);
    emit_weight_grad(e, layer, weight, dy, whole, to, from, rows->all_rows);
    return dx;
}

static struct view emit_latent_norm_backward(struct emit *e, uint32_t layer, enum weight weight,
                                             struct view dy, struct view x, struct view stats,
                                             const struct latent_row_counts *rows, int64_t cols)
{
    e->op_tags.region = REGION_NORM;
    struct view dx = emit_compute_tensor(e, "d_latent", CATEGORY_ACTIVATION, rows->own_rows, cols);
    emit_norm_backward(e, layer, weight, dy, x, stats, dx, rows->own_rows, cols);
    e->op_tags.region = REGION_LINEAR;
    return dx;
}

static struct view gather_over_tensor_ranks(struct emit *e, struct view x, int64_t cols)
{
    return tensor_gather(e, x, cols, TENSOR_ROWS_BY_SEQUENCE, "latent_all", false);
}

/* ---- queries ---- */

static struct view emit_latent_queries(struct emit *e, uint32_t layer, struct view x,
                                       const struct latent_row_counts *rows, struct latent_saved *s)
{
    const struct transformer *m = e->choices->model;
    const int64_t width = transformer_q_columns(m);
    if (m->q_latent == 0) {
        s->q_norm_gathered = gather_over_tensor_ranks(e, x, m->hidden);
        return emit_product(e, layer, WEIGHT_Q, "q_up", s->q_norm_gathered, rows->all_rows, width,
                            m->hidden);
    }
    s->q = emit_product(e, layer, WEIGHT_Q_DOWN, "q_latent", x, rows->own_rows, m->q_latent,
                        m->hidden);
    s->q_norm = norm_latent(e, layer, WEIGHT_Q_DOWN_NORM, s->q, rows, m->q_latent, &s->q_stats);
    s->q_norm_gathered = gather_over_tensor_ranks(e, s->q_norm, m->q_latent);
    struct view q = emit_product(e, layer, WEIGHT_Q_UP, "q_up", s->q_norm_gathered, rows->all_rows,
                                 width, m->q_latent);
    emit_record_kept_product_result(e, q.buffer);
    return q;
}

/* Writes to dx the gradient of x through the queries, and emits the gradients of the weights that make them. */
static void emit_queries_backward(struct emit *e, uint32_t layer, struct view dq, struct view x,
                                  struct view dx, const struct latent_row_counts *rows,
                                  const struct latent_saved *s)
{
    const struct transformer *m = e->choices->model;
    const int64_t width = transformer_q_columns(m), latent = m->q_latent;
    if (latent == 0) {
        emit_gathered_product_backward(e, layer, WEIGHT_Q, dq, x, s->q_norm_gathered, dx, rows,
                                       width, m->hidden);
        return;
    }
    struct view d = emit_gathered_product_backward(
        e, layer, WEIGHT_Q_UP, dq, s->q_norm, s->q_norm_gathered, view_none(), rows, width, latent);
    d = emit_latent_norm_backward(e, layer, WEIGHT_Q_DOWN_NORM, d, s->q, s->q_stats, rows, latent);
    emit_product_backward(e, layer, WEIGHT_Q_DOWN, d, x, dx, rows->own_rows, latent, m->hidden);
}

/* ---- keys and values ---- */

/* Returns kv_b's result for all rows, or, if head ranks send latents, the normed latents of all rows. Sets *own (this
 * rank's rows) and *shared (all rows) to the key columns that heads share, before their rotation. */
static struct view emit_latent_keys(struct emit *e, uint32_t layer, struct view x,
                                    const struct latent_row_counts *rows,
                                    const struct latent_widths *w, struct latent_saved *s,
                                    struct view *own, struct view *shared)
{
    const struct work apart = {.kind = WORK_PACK,
                               .pack = {rows->own_rows, 1, {w->latent, w->rotated, 0}}};
    const struct view both = emit_product(e, layer, WEIGHT_KV_DOWN, "kv_latents", x, rows->own_rows,
                                          w->latent + w->rotated, e->choices->model->hidden);
    s->kv = emit_compute_tensor(e, "kv_latent", CATEGORY_ACTIVATION, rows->own_rows, w->latent);
    *own = emit_compute_tensor(e, "k_shared", CATEGORY_ACTIVATION, rows->own_rows, w->rotated);
    emit_op(e, e->stream.compute, &apart, &both, 1, (struct view[]){s->kv, *own}, 2);
    s->kv_norm = norm_latent(e, layer, WEIGHT_KV_DOWN_NORM, s->kv, rows, w->latent, &s->kv_stats);
    s->kv_norm_gathered = gather_over_tensor_ranks(e, s->kv_norm, w->latent);
    *shared = tensor_gather_unquantised(e, *own, w->rotated, TENSOR_ROWS_BY_SEQUENCE, "latent_all");
    if (derived_sends_latents(e->choices))
        return s->kv_norm_gathered;
    struct view up = emit_product(e, layer, WEIGHT_KV_UP, "kv_up", s->kv_norm_gathered,
                                  rows->all_rows, w->up, w->latent);
    emit_record_kept_product_result(e, up.buffer);
    return up;
}

/* Returns the gradient of the normed latents of this rank's rows. Emits the gradient of kv_b, too, unless head ranks
 * send latents. d_up: the gradient of what emit_latent_keys() returned. */
static struct view emit_kv_up_projection_backward(struct emit *e, uint32_t layer, struct view d_up,
                                                  const struct latent_row_counts *rows,
                                                  const struct latent_widths *w,
                                                  const struct latent_saved *s)
{
    if (!derived_sends_latents(e->choices))
        return emit_gathered_product_backward(e, layer, WEIGHT_KV_UP, d_up, s->kv_norm,
                                              s->kv_norm_gathered, view_none(), rows, w->up,
                                              w->latent);
    struct view d = d_up;
    if (e->choices->sequence_parallel_ranks > 1)
        d = emit_compute_tensor(e, "d_latent_norm", CATEGORY_ACTIVATION, rows->own_rows, w->latent);
    tensor_reduce_scatter_rows_of_width(e, d_up, d, w->latent, TENSOR_ROWS_BY_SEQUENCE);
    return d;
}

/* Writes to dx the gradient of x through keys and values, and emits the gradients of kv_a, of the latent's norm and,
 * unless head ranks send latents, of kv_b. d_up: the gradient of what emit_latent_keys() returned; d_shared: that of
 * *shared. */
static void emit_keys_backward(struct emit *e, uint32_t layer, struct view d_up,
                               struct view d_shared, struct view x, struct view dx,
                               const struct latent_row_counts *rows, const struct latent_widths *w,
                               const struct latent_saved *s)
{
    const int64_t both = w->latent + w->rotated;
    const struct work join = {.kind = WORK_UNPACK,
                              .pack = {rows->own_rows, 1, {w->latent, w->rotated, 0}}};
    struct view d = emit_kv_up_projection_backward(e, layer, d_up, rows, w, s);
    d = emit_latent_norm_backward(e, layer, WEIGHT_KV_DOWN_NORM, d, s->kv, s->kv_stats, rows,
                                  w->latent);
    struct view own = d_shared, d_both = emit_compute_tensor(e, "d_kv_latents", CATEGORY_ACTIVATION,
                                                             rows->own_rows, both);
    if (e->tensor.size > 1) { /* a rank's gradient is of its own heads */
        own = e->choices->sequence_parallel_ranks > 1
                  ? emit_compute_tensor(e, "d_k_shared", CATEGORY_ACTIVATION, rows->own_rows,
                                        w->rotated)
                  : d_shared;
        tensor_reduce_scatter_rows_of_width(e, d_shared, own, w->rotated, TENSOR_ROWS_BY_SEQUENCE);
    }
    emit_op(e, e->stream.compute, &join, (struct view[]){d, own}, 2, &d_both, 1);
    emit_product_backward(e, layer, WEIGHT_KV_DOWN, d_both, x, dx, rows->own_rows, both,
                          e->choices->model->hidden);
}

/* ---- queries, keys and values together ---- */

/* Marks all buffers from number `first` on, except the narrow results, as dropped after the forward and computed again
 * for the backward, if Megatron-LM's module mla_up_proj is recomputed. */
static void mark_expanded_as_recomputed(struct emit *e, uint32_t first,
                                        const struct latent_saved *s, struct view shared)
{
    const uint32_t narrow[] = {s->q.buffer.i, s->kv.buffer.i, shared.buffer.i};
    for (uint32_t b = first; b < e->ir->buffer.count; b++) {
        bool stays = false;
        for (size_t i = 0; i < ARRAY_LEN(narrow); i++)
            stays = stays || b == narrow[i];
        if (!stays)
            emit_record_recomputed_buffer(e, RECOMPUTE_MLA_UP_PROJ, (buffer_id){b});
    }
}

/* Sets *work to the work that separates kv_b's result into keys and values for the heads of this head rank, and returns
 * the number of columns of that result. */
static int64_t kv_b_to_keys_values_work(const struct emit *e, enum work_kind kind, int64_t rows,
                                        struct work *work)
{
    const struct transformer *m = e->choices->model;
    *work = latent_keys_work(e, kind, rows);
    work->latent_keys.heads = m->heads / (int64_t)e->choices->hp;
    return work->latent_keys.heads * (m->head_dim - m->rope_dim + m->v_dim);
}

void latent_expand(struct emit *e, uint32_t layer, struct view latents, struct view shared,
                   struct view k, struct view v)
{
    const int64_t latent = e->choices->model->kv_latent, rows = (int64_t)latents.count / latent;
    const uint8_t region = e->op_tags.region;
    struct work work;
    const int64_t width = kv_b_to_keys_values_work(e, WORK_LATENT_KEYS, rows, &work);
    e->op_tags.region = REGION_LINEAR;
    const struct view up = emit_compute_tensor(e, "kv_up", CATEGORY_ACTIVATION, rows, width);
    emit_matmul_with_own_head_rows(e, MATMUL_NT, latents, weight_view(e, layer, WEIGHT_KV_UP), up,
                                   rows, width, latent);
    e->op_tags.region = region;
    emit_op(e, e->stream.compute, &work, (struct view[]){up, shared}, 2, (struct view[]){k, v}, 2);
    const buffer_id made[] = {up.buffer, k.buffer, v.buffer};
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        emit_record_recomputed_buffer(e, RECOMPUTE_MLA_UP_PROJ, made[i]);
}

void latent_expand_backward(struct emit *e, uint32_t layer, struct view latents, struct view dk,
                            struct view dv, struct view d_latents, struct view d_shared)
{
    const int64_t latent = e->choices->model->kv_latent, rows = (int64_t)latents.count / latent;
    const uint8_t region = e->op_tags.region;
    struct work work;
    const int64_t width = kv_b_to_keys_values_work(e, WORK_LATENT_KEYS_BACKWARD, rows, &work);
    const struct view d_up = emit_compute_tensor(e, "d_kv_up", CATEGORY_ACTIVATION, rows, width);
    emit_op(e, e->stream.compute, &work, (struct view[]){dk, dv}, 2,
            (struct view[]){d_up, d_shared}, 2);
    e->op_tags.region = REGION_LINEAR;
    emit_matmul_with_own_head_rows(e, MATMUL_NN, d_up, weight_view(e, layer, WEIGHT_KV_UP),
                                   d_latents, rows, latent, width);
    emit_grad_of_own_head_rows(e, layer, WEIGHT_KV_UP, d_up, latents, width, latent, rows);
    e->op_tags.region = region;
}

struct view latent_project(struct emit *e, uint32_t layer, struct view x, int64_t count,
                           struct view positions, struct latent_saved *saved)
{
    const struct latent_row_counts rows = latent_row_counts_of(e, count, positions);
    const struct latent_widths w = latent_widths_of(e);
    const int64_t sequences = positions.count > 0 ? 1 : e->choices->micro_batch;
    const int64_t n = count / sequences, width = w.all;
    const uint32_t first = e->ir->buffer.count;
    struct view shared, own;
    e->op_tags.region = REGION_LINEAR;
    const struct view q = emit_latent_queries(e, layer, x, &rows, saved);
    const struct view up = emit_latent_keys(e, layer, x, &rows, &w, saved, &own, &shared);
    e->op_tags.region = REGION_ATTENTION;
    const struct view qkv = emit_compute_tensor(e, "qkv", CATEGORY_ACTIVATION, count, width);
    for (int64_t i = 0; i < sequences; i++)
        emit_arrange_qkv(e, &w, n, view_of_sequence_positions(e, &rows, i),
                         view_slice(q, i * n * w.q, n * w.q),
                         view_slice(up, i * n * w.up, n * w.up),
                         view_slice(shared, i * n * w.rotated, n * w.rotated),
                         view_slice(qkv, i * n * width, n * width));
    mark_expanded_as_recomputed(e, first, saved, own);
    return qkv;
}

void latent_project_backward(struct emit *e, uint32_t layer, struct view dqkv, struct view x,
                             struct view dx, int64_t count, struct view positions,
                             const struct latent_saved *saved)
{
    const struct latent_row_counts rows = latent_row_counts_of(e, count, positions);
    const struct latent_widths w = latent_widths_of(e);
    const int64_t sequences = positions.count > 0 ? 1 : e->choices->micro_batch;
    const int64_t n = count / sequences, width = w.all, h = e->choices->model->hidden;
    e->op_tags.region = REGION_ATTENTION;
    const struct view dq = emit_compute_tensor(e, "dq_up", CATEGORY_ACTIVATION, count, w.q);
    const struct view d_up = emit_compute_tensor(e, "d_kv_up", CATEGORY_ACTIVATION, count, w.up);
    const struct view d_shared =
        emit_compute_tensor(e, "d_k_shared", CATEGORY_ACTIVATION, count, w.rotated);
    for (int64_t i = 0; i < sequences; i++)
        emit_arrange_qkv_backward(e, &w, n, view_of_sequence_positions(e, &rows, i),
                                  view_slice(dqkv, i * n * width, n * width),
                                  view_slice(dq, i * n * w.q, n * w.q),
                                  view_slice(d_up, i * n * w.up, n * w.up),
                                  view_slice(d_shared, i * n * w.rotated, n * w.rotated));
    e->op_tags.region = REGION_LINEAR;
    const struct view of_q = emit_compute_tensor(e, "dx_q", CATEGORY_ACTIVATION, rows.own_rows, h);
    const struct view of_kv =
        emit_compute_tensor(e, "dx_kv", CATEGORY_ACTIVATION, rows.own_rows, h);
    emit_queries_backward(e, layer, dq, x, of_q, &rows, saved);
    emit_keys_backward(e, layer, d_up, d_shared, x, of_kv, &rows, &w, saved);
    emit_add(e, of_q, of_kv, dx);
}
