#include "schedule/attention/project.h"

#include "schedule/attention/latent.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"
#include "schedule/emit/adapters.h"
#include "schedule/emit/tensor_parallel.h"

int64_t qkv_column_count(const struct emit *e)
{
    const struct transformer *model = e->choices->model;
    if (derived_sends_latents(e->choices))
        return transformer_q_columns(model) + model->kv_latent + model->rope_dim;
    return transformer_q_columns(model) + transformer_kv_columns(model) +
           transformer_v_columns(model);
}

struct view optional_weight_view(const struct emit *e, uint32_t part, enum weight weight)
{
    return weight_offset_and_shape_of(e, part, weight)->rows > 0 ? weight_view(e, part, weight)
                                                                 : view_none();
}

struct view project_qkv(struct emit *e, uint32_t layer, struct view x, int64_t rows,
                        struct adapters_saved *adapters)
{
    int64_t width = qkv_column_count(e);
    e->op_tags.region = REGION_LINEAR;
    struct view qkv = emit_compute_tensor(e, "qkv", CATEGORY_ACTIVATION, rows, width);
    tensor_matmul(e, TENSOR_ROWS_BY_SEQUENCE, e->unit.rows, MATMUL_NT, x,
                  weight_view(e, layer, WEIGHT_QKV),
                  optional_weight_view(e, layer, WEIGHT_QKV_BIAS), qkv, rows, width,
                  e->choices->model->hidden);
    adapters_forward(e, layer, ADAPTER_Q, 3, x, qkv, rows, adapters);
    return qkv;
}

bool project_has_separate_q_k_v(const struct emit *e)
{
    const struct choices *c = e->choices;
    const struct products_with_kept_results kept_products = kept_products_of(c);
    return kept_products.q && !kept_products.k && c->model->kv_latent == 0 &&
           c->products == PRODUCTS_BF16;
}

/* Returns the product of x with `width` rows of wqkv, from row *first on, and adds `width` to *first. */
static struct view project_next_rows_of_wqkv(struct emit *e, uint32_t layer, const char *stem,
                                             struct view x, int64_t rows, int64_t width,
                                             int64_t *first)
{
    const int64_t h = e->choices->model->hidden;
    struct view y = emit_compute_tensor(e, stem, CATEGORY_ACTIVATION, rows, width);
    tensor_matmul(e, TENSOR_ROWS_BY_SEQUENCE, e->unit.rows, MATMUL_NT, x,
                  view_slice(weight_view(e, layer, WEIGHT_QKV), *first * h, width * h), view_none(),
                  y, rows, width, h);
    *first += width;
    return y;
}

struct qkv project_q_k_and_v_separately(struct emit *e, uint32_t layer, struct view x, int64_t rows)
{
    const struct transformer *model = e->choices->model;
    struct qkv y;
    int64_t first = 0;
    e->op_tags.region = REGION_LINEAR;
    y.q = project_next_rows_of_wqkv(e, layer, "q", x, rows, transformer_q_columns(model), &first);
    y.k = project_next_rows_of_wqkv(e, layer, "k", x, rows, transformer_kv_columns(model), &first);
    y.v = project_next_rows_of_wqkv(e, layer, "v", x, rows, transformer_v_columns(model), &first);
    return y;
}

void project_qkv_backward(struct emit *e, uint32_t layer, struct view dqkv, struct view x,
                          struct view dx, int64_t rows, const struct adapters_saved *adapters)
{
    int64_t width = qkv_column_count(e), h = e->choices->model->hidden;
    e->op_tags.region = REGION_LINEAR;
    struct view whole = tensor_keeps_gathered(e->choices)
                            ? e->layer_saved[layer].norm1_all
                            : tensor_gather(e, x, h, TENSOR_ROWS_BY_SEQUENCE, "norm_all", true);
    struct view product = tensor_product_output(e, dx, h, "dx_all");
    emit_matmul(e, MATMUL_NN, dqkv, weight_view(e, layer, WEIGHT_QKV), view_none(), product, rows,
                h, width);
    tensor_reduce_input_gradient(e, product, dx, TENSOR_ROWS_BY_SEQUENCE, 3);
    emit_weight_grad(e, layer, WEIGHT_QKV, dqkv, whole, width, h, rows);
    emit_bias_grad(e, layer, WEIGHT_QKV_BIAS, dqkv, rows, width);
    adapters_backward(e, layer, ADAPTER_Q, 3, dqkv, x, dx, rows, adapters);
}

int64_t kv_heads_in_core(const struct choices *c, uint32_t ranks)
{
    if (c->profile->kv_replication == KV_COPIED_TO_QUERY_HEADS)
        return c->model->heads;
    return c->model->kv_heads % ranks == 0 ? c->model->kv_heads : (int64_t)ranks;
}

/* Returns `to`, or, if it is empty, a new buffer. */
static struct view view_or_new(struct emit *e, struct view to, const char *stem,
                               enum category category, int64_t rows, int64_t cols)
{
    return to.count > 0 ? to : emit_compute_tensor(e, stem, category, rows, cols);
}

struct view rotate_heads(struct emit *e, struct view x, struct view positions, int64_t rows,
                         int64_t heads, bool backward, struct view to)
{
    int64_t dim = e->choices->model->head_dim;
    struct view y = view_or_new(e, to, backward ? "d_rotated" : "rotated", CATEGORY_ACTIVATION,
                                rows, heads * dim);
    struct work work = {.kind = backward ? WORK_ROPE_BACKWARD : WORK_ROPE,
                        .rope = {rows, heads, dim, 0}};
    emit_op(e, e->stream.compute, &work, (struct view[]){x, positions}, 2, &y, 1);
    return y;
}

struct work attention_causal_work(const struct emit *e, enum work_kind kind, int64_t tokens,
                                  int64_t heads, int64_t kv_heads)
{
    const struct transformer *model = e->choices->model;
    struct work work = {
        .kind = (uint8_t)kind,
        .in = e->choices->dtype,
        .out = e->choices->dtype,
        .attention = {tokens, tokens, heads, kv_heads, model->head_dim, MASK_CAUSAL, 0, 0}};
    if (transformer_v_head_dim(model) != model->head_dim)
        work.attention.vdim = transformer_v_head_dim(model);
    return work;
}

struct sequence_mask sequence_mask_of(const struct emit *e, uint32_t layer, int64_t sequence,
                                      int64_t tokens)
{
    int64_t window = transformer_layer_window(e->choices->model, layer);
    struct sequence_mask mask = {.window = window < tokens ? window : 0};
    mask.has_chunked_window = mask.window > 0 && e->choices->model->window_chunks;
    if (e->sequence_document_facts != NULL) {
        const struct sequence_document_facts *d =
            &e->sequence_document_facts[e->unit.first_sequence + sequence];
        mask.sequence = d->first_sequence_with_same_documents;
        mask.has_documents = d->has_several_documents;
    }
    return mask;
}

struct work attention_masked_work(const struct emit *e, uint32_t layer, int64_t sequence,
                                  struct work causal, int64_t first)
{
    /* tokens: the number of tokens from which the window may hide some: those up to the last query, counted from the
     * first key, or, if the window is chunks, from the begin of the sequence, where the first chunk begins */
    const bool chunks = e->choices->model->window_chunks;
    int64_t tokens = causal.attention.q + (chunks ? first : causal.attention.offset);
    struct sequence_mask mask = sequence_mask_of(e, layer, sequence, tokens);
    causal.attention.window = mask.window;
    if (mask.window > 0)
        causal.attention.mask = MASK_WINDOW;
    if (mask.has_documents || mask.has_chunked_window) {
        causal.attention.mask = mask.has_chunked_window ? MASK_CHUNKS : MASK_DOCUMENTS;
        causal.attention.sequence = mask.sequence;
        causal.attention.q_first = first;
        causal.attention.kv_first = first - causal.attention.offset;
        causal.attention.offset = 0;
    }
    return causal;
}

op_id attention_tile(struct emit *e, struct work work, const struct qkv *in, struct view o,
                     struct view lse)
{
    return emit_op(e, e->stream.tile, &work, (struct view[]){in->q, in->k, in->v}, 3,
                   (struct view[]){o, lse}, 2);
}

void attention_tile_backward(struct emit *e, struct work work, const struct qkv *in, struct view o,
                             struct view lse, struct view d_o, const struct qkv *grads)
{
    struct view write[4] = {grads->q, grads->k, grads->v};
    int64_t workspace = work_workspace_bytes(e->choices->attention_impl, e->choices->sm, &work);
    if (workspace > 0)
        write[3] = emit_tensor(e, "workspace", CATEGORY_WORKSPACE, DTYPE_U8, workspace, 0);
    emit_op(e, e->stream.compute, &work, (struct view[]){in->q, in->k, in->v, o, lse, d_o}, 6,
            write, workspace > 0 ? 4 : 3);
}

int64_t attention_extra_kept_bytes(const struct emit *e, int64_t tokens, int64_t heads)
{
    const struct kept_bytes_row *kept = &e->kept_extra_bytes;
    const struct transformer *model = e->choices->model;
    const int64_t q = heads * model->head_dim, kv = q * model->kv_heads / model->heads,
                  o = heads * transformer_v_head_dim(model);
    return tokens * (q * kept->joint_q + kv * kept->joint_kv + o * kept->again);
}

void attention_save_output_and_make_lse(struct emit *e, struct attention_saved *saved,
                                        struct view o, int64_t tokens, int64_t heads)
{
    /* If only the core's results are kept, the statistics of the layer's first norm have these bytes
     * (schedule/step/layer.c). */
    const int64_t beside =
        kept_keeps_core_only(e->choices) ? 0 : attention_extra_kept_bytes(e, tokens, heads);
    const int64_t more = (beside + 3) / 4;
    saved->o = o;
    saved->lse = emit_tensor(e, "lse", CATEGORY_ACTIVATION, DTYPE_F32,
                             more > 0 ? tokens * heads + more : tokens, more > 0 ? 0 : heads);
    if (more > 0)
        saved->lse = view_slice(saved->lse, 0, tokens * heads);
    saved_buffers_add(&e->kept_buffers, saved->o.buffer);
    saved_buffers_add(&e->kept_buffers, saved->lse.buffer);
}

static struct work attention_sinks_work(const struct emit *e, enum work_kind kind, int64_t rows,
                                        int64_t heads, struct view sinks)
{
    const int64_t all = (int64_t)sinks.count;
    return (struct work){.kind = (uint8_t)kind,
                         .sink = {.rows = rows,
                                  .heads = heads,
                                  .dim = transformer_v_head_dim(e->choices->model),
                                  .sinks = all,
                                  .part = heads < all ? 1 + e->group.hp : 0}};
}

void attention_sinks(struct emit *e, uint32_t layer, const struct attention_saved *saved,
                     int64_t rows, int64_t heads)
{
    const struct view sinks = optional_weight_view(e, layer, WEIGHT_SINKS);
    if (sinks.count == 0)
        return;
    const struct work work = attention_sinks_work(e, WORK_SINK, rows, heads, sinks);
    emit_op(e, e->stream.compute, &work, (struct view[]){saved->o, saved->lse, sinks}, 3,
            (struct view[]){saved->o, saved->lse}, 2);
}

void attention_sinks_backward(struct emit *e, uint32_t layer, struct view o, struct view lse,
                              struct view d_o, int64_t rows, int64_t heads)
{
    const struct view sinks = optional_weight_view(e, layer, WEIGHT_SINKS);
    bool accumulate;
    if (sinks.count == 0 || weight_is_frozen(e, WEIGHT_SINKS))
        return;
    const struct view d_sinks = grad_view(e, layer, WEIGHT_SINKS, &accumulate);
    struct work work = attention_sinks_work(e, WORK_SINK_BACKWARD, rows, heads, sinks);
    work.sink.accumulate = accumulate;
    emit_op(e, e->stream.compute, &work, (struct view[]){d_o, o, lse, sinks, d_sinks},
            accumulate ? 5 : 4, &d_sinks, 1);
}

struct qkv new_qkv_gradients(struct emit *e, int64_t rows, int64_t width, int64_t kv_rows,
                             int64_t kv_width, int64_t v_width)
{
    return (struct qkv){emit_compute_tensor(e, "dq", CATEGORY_ACTIVATION, rows, width),
                        emit_compute_tensor(e, "dk", CATEGORY_KV, kv_rows, kv_width),
                        emit_compute_tensor(e, "dv", CATEGORY_KV, kv_rows, v_width)};
}

/* Returns how many of a token's `width` columns one norm covers: those of a head, or all. */
static int64_t columns_per_norm(const struct emit *e, int64_t width)
{
    return e->choices->model->qk_norm_wide ? width : e->choices->model->head_dim;
}

static struct view head_norm(struct emit *e, uint32_t layer, enum weight weight, struct view x,
                             struct view *rstd, int64_t rows)
{
    int64_t cols = columns_per_norm(e, (int64_t)x.count / rows), norms = (int64_t)x.count / cols;
    struct view y =
        view_whole(e, emit_activation_buffer(e, "head_norm", rows, (int64_t)x.count / rows));
    *rstd = emit_new_norm_stats_tensor(e, weight, norms, norms * cols * e->kept_extra_bytes.heads);
    emit_norm(e, layer, weight, x, y, *rstd, norms, cols);
    return y;
}

void head_norms(struct emit *e, uint32_t layer, struct qkv *parts, struct attention_saved *saved,
                int64_t rows)
{
    saved->q_before_norm = parts->q;
    saved->k_before_norm = parts->k;
    parts->q = head_norm(e, layer, WEIGHT_Q_NORM, parts->q, &saved->q_rstd, rows);
    parts->k = head_norm(e, layer, WEIGHT_K_NORM, parts->k, &saved->k_rstd, rows);
}

static struct view head_norm_backward(struct emit *e, uint32_t layer, enum weight weight,
                                      struct view dy, struct view x, struct view rstd, int64_t rows)
{
    int64_t width = (int64_t)x.count / rows, cols = columns_per_norm(e, width);
    struct view dx = view_whole(e, emit_activation_buffer(e, "d_head_norm", rows, width));
    emit_norm_backward(e, layer, weight, dy, x, rstd, dx, (int64_t)x.count / cols, cols);
    return dx;
}

void head_norms_backward(struct emit *e, uint32_t layer, struct qkv *grads,
                         const struct attention_saved *saved, int64_t rows)
{
    grads->q = head_norm_backward(e, layer, WEIGHT_Q_NORM, grads->q, saved->q_before_norm,
                                  saved->q_rstd, rows);
    grads->k = head_norm_backward(e, layer, WEIGHT_K_NORM, grads->k, saved->k_before_norm,
                                  saved->k_rstd, rows);
}

static struct work qkv_layout_work(const struct emit *e, enum work_kind kind, int64_t rows,
                                   int64_t parts)
{
    const struct transformer *model = e->choices->model;
    int64_t q = transformer_q_columns(model) / parts, kv = transformer_kv_columns(model) / parts;
    return (struct work){.kind = (uint8_t)kind, .pack = {rows, parts, {q, kv, kv}}};
}

struct qkv split_qkv(struct emit *e, struct view qkv, int64_t rows, int64_t parts, struct qkv to)
{
    struct work work = qkv_layout_work(e, WORK_PACK, rows, parts);
    enum category category = parts > 1 ? CATEGORY_COMMUNICATION : CATEGORY_ACTIVATION;
    struct view y[3] = {
        view_or_new(e, to.q, "q", category, parts * rows, work.pack.w[0]),
        view_or_new(e, to.k, "k", category, parts * rows, work.pack.w[1]),
        view_or_new(e, to.v, "v", category, parts * rows, work.pack.w[2]),
    };
    emit_op(e, e->stream.compute, &work, &qkv, 1, y, 3);
    return (struct qkv){y[0], y[1], y[2]};
}

void join_qkv(struct emit *e, const struct qkv *parts, struct view qkv, int64_t rows,
              int64_t pieces)
{
    struct work work = qkv_layout_work(e, WORK_UNPACK, rows, pieces);
    emit_op(e, e->stream.compute, &work, (struct view[]){parts->q, parts->k, parts->v}, 3, &qkv, 1);
}
