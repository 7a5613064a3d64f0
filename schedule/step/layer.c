/* One transformer layer as every strategy emits it: norms, projections and the feed-forward part, forward and
 * backward. The attention choice emits what lies between norm1 and wo. */
#include "schedule/step/layer.h"
#include "schedule/attention/attention.h"
#include "schedule/attention/project.h"
#include "schedule/choices/pieces.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/emit/adapters.h"
#include "schedule/emit/tensor_parallel.h"
#include "schedule/step/combined.h"
#include "schedule/step/experts.h"

/* ---- norms and biases of the model; the feed-forward part ---- */

static bool is_gated(const struct emit *e)
{
    return transformer_has_gate(e->choices->model);
}

/* True if each branch of a layer (attention, feed-forward part) begins with a norm. */
static bool branches_begin_with_norm(const struct emit *e)
{
    return e->choices->model->norm_place != NORM_AFTER;
}

static bool has_norms_after(const struct emit *e)
{
    return e->choices->model->norm_place != NORM_BEFORE;
}

/* Returns the bias that a product adds: none with several tensor ranks, whose partial results are summed first. The
 * bias is then added once, together with the residual (add_branch_to_residual()). */
static struct view product_bias(const struct emit *e, uint32_t part, enum weight weight)
{
    return e->tensor.size > 1 ? view_none() : optional_weight_view(e, part, weight);
}

enum { QKV_PRODUCTS = 3 };

/* The weights of the products that make q, k and v; a model has some of them. */
static const enum weight projections[] = {WEIGHT_QKV, WEIGHT_Q_DOWN,  WEIGHT_Q_UP,
                                          WEIGHT_Q,   WEIGHT_KV_DOWN, WEIGHT_KV_UP};

/* Returns the number of products of the framework that read the normed input of the feed-forward part. */
static int mlp_input_product_count(const struct emit *e)
{
    return is_gated(e) ? 2 : 1;
}

/* True if pieces of the feed-forward part save only their input, as in FPDT and in the tiled MLP that UPipe uses (ALST,
 * arXiv 2506.13996, section 3.1). Without that, cutting into pieces would save no memory in the backward. */
static bool ffn_pieces_save_only_input(const struct emit *e)
{
    const struct choices *c = e->choices;
    return c->attention == CHOICE_ATTENTION_FPDT ||
           (c->attention == CHOICE_ATTENTION_UPIPE && c->ffn_chunks > 1);
}

enum chain { CHAIN_FORWARD, CHAIN_AGAIN, CHAIN_BACKWARD, CHAIN_COUNT };

/* Returns how many times the kernels of a chain read or write each element; 0: one kernel does everything.
 * CHAIN_FORWARD is the forward of the activation, CHAIN_AGAIN what the backward recomputes of it, CHAIN_BACKWARD its
 * gradient.
 *
 * For GELU they are those of FPDT_FFN (DeepSpeed, fpdt_layer.py), with the bias. It recomputes the bias, tanh of the
 * polynomial and the activation; its gradient is the derivative in ten operations, and the product. FPDT_FFN has no
 * SwiGLU; we assume that it would be written in the same way: silu and a product in the forward; sigmoid and two
 * products recomputed; then the gradients of both factors and their concatenation. */
static int64_t memory_accesses_per_element(const struct emit *e, enum chain chain)
{
    /* [chain][0: GELU, 1: a gated activation] */
    static const uint8_t counted[CHAIN_COUNT][2] = {
        [CHAIN_FORWARD] = {4, 5},
        [CHAIN_AGAIN] = {22, 8},
        [CHAIN_BACKWARD] = {27, 23},
    };
    return ffn_pieces_save_only_input(e) && e->choices->profile->chunk_ffn_is_eager
               ? counted[chain][is_gated(e)]
               : 0;
}

/* Returns the number of parts into which the rows of the first product are cut. It is 2 if selective checkpointing
 * saves only one of w1 and w3, unless pieces save only their input (ffn_pieces_save_only_input()). Here w1 and w3 are
 * one product, so the results of half of its rows are saved instead, which takes the same bytes and flops; the other
 * part is recomputed. Else it is 1. */
static uint32_t up_product_row_part_count(const struct emit *e, int64_t rows)
{
    const struct products_with_kept_results keeps = kept_products_of(e->choices);
    bool halves =
        is_gated(e) && keeps.gate != keeps.up && !ffn_pieces_save_only_input(e) && rows > 1;
    return halves ? FFN_PARTS : 1;
}

/* Returns the bytes that a layer keeps besides its first product (schedule/choices/kept.h), as a number of rows that
 * are as wide as the feed-forward part. A buffer gets that many more rows. */
static int64_t rows_for_extra_kept_bytes(const struct emit *e, int64_t rows)
{
    return rows * e->kept_extra_bytes.act / 2;
}

/* True if selective checkpointing keeps the whole result of the first product. The rows of rows_for_extra_kept_bytes(),
 * which are recomputed, cannot be in its buffer then. They are added to the gradient of the activation's result, which
 * exists when the most memory is in use. */
static bool keeps_whole_up_product_result(const struct emit *e, uint32_t parts)
{
    return kept_products_of(e->choices).up && parts == 1;
}

/* Returns the first adapter target of the first product. */
static enum adapter_target adapter_target_of_first_product(const struct emit *e)
{
    return is_gated(e) ? ADAPTER_GATE : ADAPTER_UP;
}

/* Emits the first product of piece number `chunk`, which has `rows` rows, and the activation. */
static void mlp_up(struct emit *e, uint32_t layer, uint32_t chunk, struct view x, buffer_id act,
                   int64_t rows, enum chain chain)
{
    buffer_id *up = e->layer_saved[layer].up[chunk];
    const struct transformer *model = e->choices->model;
    int64_t h = model->hidden, f = model->ffn, width = is_gated(e) ? 2 * f : f;
    uint32_t parts = up_product_row_part_count(e, rows);
    /* The rows of rows_for_extra_kept_bytes() for all parts are added to the buffer of the last part: if any part is
     * recomputed, that one is. */
    int64_t beside = keeps_whole_up_product_result(e, parts) || ffn_pieces_save_only_input(e)
                         ? 0
                         : rows_for_extra_kept_bytes(e, rows);
    for (uint32_t i = 0; i < parts; i++) {
        struct piece part = piece_of_rows(rows, parts, i);
        bool last = i + 1 == parts && beside > 0;
        up[i] = last ? emit_buffer(e, "up", CATEGORY_ACTIVATION, (enum dtype)e->choices->dtype,
                                   part.rows * width + beside * f, 0)
                     : emit_activation_buffer(e, "up", part.rows, width);
        tensor_matmul(e, TENSOR_ROWS_IN_ANY_ORDER, rows, MATMUL_NT,
                      view_slice(x, part.begin * h, part.rows * h),
                      weight_view(e, layer, WEIGHT_UP),
                      optional_weight_view(e, layer, WEIGHT_UP_BIAS),
                      view_rows(up[i], 0, part.rows, width), part.rows, width, h);
        adapters_forward(
            e, layer, adapter_target_of_first_product(e), (uint32_t)mlp_input_product_count(e),
            view_slice(x, part.begin * h, part.rows * h), view_rows(up[i], 0, part.rows, width),
            part.rows, &e->layer_saved[layer].up_adapters[chunk]);
        struct work work = {.kind = is_gated(e) ? WORK_SWIGLU : WORK_GELU,
                            .activation = {part.rows, f, memory_accesses_per_element(e, chain),
                                           activation_function_to_emit(e)}};
        emit_op(e, e->stream.compute, &work, (struct view[]){view_rows(up[i], 0, part.rows, width)},
                1, (struct view[]){view_rows(act, part.begin, part.rows, f)}, 1);
    }
    if (!ffn_pieces_save_only_input(e) && (parts > 1 || keeps_whole_up_product_result(e, parts)))
        emit_record_kept_product_result(e, up[0]);
}

static void mlp_up_backward(struct emit *e, const buffer_id up[FFN_PARTS], buffer_id d_act,
                            buffer_id d_up, int64_t rows)
{
    int64_t f = e->choices->model->ffn, width = is_gated(e) ? 2 * f : f;
    uint32_t parts = up_product_row_part_count(e, rows);
    for (uint32_t i = 0; i < parts; i++) {
        struct piece part = piece_of_rows(rows, parts, i);
        struct work work = {.kind = is_gated(e) ? WORK_SWIGLU_BACKWARD : WORK_GELU_BACKWARD,
                            .activation = {part.rows, f,
                                           memory_accesses_per_element(e, CHAIN_BACKWARD),
                                           activation_function_to_emit(e)}};
        emit_op(e, e->stream.compute, &work,
                (struct view[]){view_rows(d_act, part.begin, part.rows, f),
                                view_rows(up[i], 0, part.rows, width)},
                2, (struct view[]){view_rows(d_up, part.begin, part.rows, width)}, 1);
    }
}

static void mlp_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id y)
{
    const struct transformer *model = e->choices->model;
    struct layer_saved *saved = &e->layer_saved[layer];
    int64_t h = model->hidden, f = model->ffn;
    const struct emitted_counts before = emit_counts_so_far(e);
    for (uint32_t i = 0; i < e->choices->ffn_chunks; i++) {
        struct piece piece = piece_of_rows(e->unit.own_rows, e->choices->ffn_chunks, i);
        if (piece.rows == 0) /* a short subsequence may have no rows in the last pieces */
            break;
        int64_t rows = piece.rows * (int64_t)e->choices->sequence_parallel_ranks;
        buffer_id act = saved->act[i] = emit_activation_buffer(e, "act", rows, f);
        struct view y_rows = view_rows(y, piece.begin, piece.rows, h);
        e->op_tags.chunk = e->choices->ffn_chunks > 1 ? (uint16_t)i : IR_NONE16;
        struct view x_rows =
            tensor_gather_input(e, view_rows(x, piece.begin, piece.rows, h), h,
                                TENSOR_ROWS_IN_ANY_ORDER, mlp_input_product_count(e));
        saved->norm2_all[i] = x_rows;
        mlp_up(e, layer, i, x_rows, act, rows, CHAIN_FORWARD);
        struct view product = tensor_product_output(e, y_rows, h, "ffn_all");
        tensor_matmul(e, TENSOR_ROWS_IN_ANY_ORDER, rows, MATMUL_NT, view_rows(act, 0, rows, f),
                      weight_view(e, layer, WEIGHT_DOWN), product_bias(e, layer, WEIGHT_DOWN_BIAS),
                      product, rows, h, f);
        adapters_forward(e, layer, ADAPTER_DOWN, 1, view_rows(act, 0, rows, f), product, rows,
                         &saved->down_adapters[i]);
        tensor_reduce_scatter(e, product, y_rows, TENSOR_ROWS_IN_ANY_ORDER);
    }
    e->op_tags.chunk = IR_NONE16;
    emit_record_recomputed_module(e, RECOMPUTE_MLP, before, y);
}

static void mlp_backward(struct emit *e, uint32_t layer, buffer_id dy, buffer_id dx)
{
    const struct transformer *model = e->choices->model;
    struct layer_saved *saved = &e->layer_saved[layer];
    int64_t h = model->hidden, f = model->ffn, up = is_gated(e) ? 2 * f : f;
    emit_fp32_sum_begin(e, layer, WEIGHT_DOWN);
    emit_fp32_sum_begin(e, layer, WEIGHT_UP);
    for (uint32_t i = 0; i < e->choices->ffn_chunks; i++) {
        struct piece piece = piece_of_rows(e->unit.own_rows, e->choices->ffn_chunks, i);
        if (piece.rows == 0) /* a short subsequence may have no rows in the last pieces */
            break;
        int64_t rows = piece.rows * (int64_t)e->choices->sequence_parallel_ranks;
        struct view own = view_rows(dy, piece.begin, piece.rows, h);
        struct view dx_rows = view_rows(dx, piece.begin, piece.rows, h);
        int64_t more = ffn_pieces_save_only_input(e) ? 0 : rows * e->kept_extra_bytes.d_act / 2;
        if (keeps_whole_up_product_result(e, up_product_row_part_count(e, rows)))
            more += rows_for_extra_kept_bytes(e, rows);
        buffer_id d_act = emit_activation_buffer(e, "d_act", rows + more, f);
        buffer_id d_up = emit_activation_buffer(e, "d_up", rows, up);
        e->op_tags.chunk = e->choices->ffn_chunks > 1 ? (uint16_t)i : IR_NONE16;
        if (ffn_pieces_save_only_input(e)) {
            saved->act[i] = emit_activation_buffer(e, "act", rows, f);
            e->op_tags.phase = PHASE_RECOMPUTE;
            mlp_up(e, layer, i, view_rows(saved->norm2, piece.begin, piece.rows, h), saved->act[i],
                   rows, CHAIN_AGAIN);
            e->op_tags.phase = PHASE_BACKWARD;
        }
        struct view dy_rows = tensor_gather(e, own, h, TENSOR_ROWS_IN_ANY_ORDER, "dy_all", false);
        tensor_matmul(e, TENSOR_ROWS_IN_ANY_ORDER, rows, MATMUL_NN, dy_rows,
                      weight_view(e, layer, WEIGHT_DOWN), view_none(), view_rows(d_act, 0, rows, f),
                      rows, f, h);
        emit_weight_grad(e, layer, WEIGHT_DOWN, dy_rows, view_rows(saved->act[i], 0, rows, f), h, f,
                         rows);
        emit_bias_grad(e, layer, WEIGHT_DOWN_BIAS, own, piece.rows, h);
        adapters_backward(e, layer, ADAPTER_DOWN, 1, dy_rows, view_rows(saved->act[i], 0, rows, f),
                          view_rows(d_act, 0, rows, f), rows, &saved->down_adapters[i]);
        mlp_up_backward(e, saved->up[i], d_act, d_up, rows);
        /* The input of the weight gradient, if it is not kept gathered, is gathered while the product for dx runs, and
         * dx is reduce-scattered while the weight gradient is computed. */
        struct view x_rows = saved->norm2_all[i];
        if (!tensor_keeps_gathered(e->choices))
            x_rows = tensor_gather(e, view_rows(saved->norm2, piece.begin, piece.rows, h), h,
                                   TENSOR_ROWS_IN_ANY_ORDER, "norm_all", true);
        struct view product = tensor_product_output(e, dx_rows, h, "dx_all");
        emit_matmul(e, MATMUL_NN, view_whole(e, d_up), weight_view(e, layer, WEIGHT_UP),
                    view_none(), product, rows, h, up);
        tensor_reduce_input_gradient(e, product, dx_rows, TENSOR_ROWS_IN_ANY_ORDER,
                                     mlp_input_product_count(e));
        emit_weight_grad(e, layer, WEIGHT_UP, view_whole(e, d_up), x_rows, up, h, rows);
        emit_bias_grad(e, layer, WEIGHT_UP_BIAS, view_whole(e, d_up), rows, up);
        adapters_backward(e, layer, adapter_target_of_first_product(e),
                          (uint32_t)mlp_input_product_count(e), view_whole(e, d_up), x_rows,
                          dx_rows, rows, &saved->up_adapters[i]);
    }
    e->op_tags.chunk = IR_NONE16;
    emit_fp32_sum_end(e, layer, WEIGHT_DOWN);
    emit_fp32_sum_end(e, layer, WEIGHT_UP);
}

/* ---- the feed-forward part with experts, in pieces of rows ---- */

static void experts_forward_pieces(struct emit *e, uint32_t layer, buffer_id x, buffer_id y)
{
    int64_t h = e->choices->model->hidden;
    const struct emitted_counts before = emit_counts_so_far(e);
    for (uint32_t i = 0; i < e->choices->ffn_chunks; i++) {
        struct piece piece = piece_of_rows(e->unit.own_rows, e->choices->ffn_chunks, i);
        if (piece.rows == 0) /* a short subsequence may have no rows in the last pieces */
            break;
        e->op_tags.chunk = e->choices->ffn_chunks > 1 ? (uint16_t)i : IR_NONE16;
        experts_forward(e, layer, view_rows(x, piece.begin, piece.rows, h),
                        view_rows(y, piece.begin, piece.rows, h), piece.rows,
                        &e->layer_saved[layer].experts[i]);
    }
    e->op_tags.chunk = IR_NONE16;
    emit_record_recomputed_module(e, RECOMPUTE_MOE, before, y);
}

static void experts_backward_pieces(struct emit *e, uint32_t layer, buffer_id dy, buffer_id dx)
{
    int64_t h = e->choices->model->hidden;
    for (uint32_t i = 0; i < e->choices->ffn_chunks; i++) {
        struct piece piece = piece_of_rows(e->unit.own_rows, e->choices->ffn_chunks, i);
        if (piece.rows == 0) /* a short subsequence may have no rows in the last pieces */
            break;
        struct expert_saved *saved = &e->layer_saved[layer].experts[i];
        struct view x = view_rows(e->layer_saved[layer].norm2, piece.begin, piece.rows, h);
        e->op_tags.chunk = e->choices->ffn_chunks > 1 ? (uint16_t)i : IR_NONE16;
        if (ffn_pieces_save_only_input(e)) {
            e->op_tags.phase = PHASE_RECOMPUTE;
            experts_forward(e, layer, x, view_none(), piece.rows, saved);
            e->op_tags.phase = PHASE_BACKWARD;
        }
        experts_backward(e, layer, x, view_rows(dy, piece.begin, piece.rows, h),
                         view_rows(dx, piece.begin, piece.rows, h), piece.rows, saved);
    }
    e->op_tags.chunk = IR_NONE16;
}

/* ---- norms, attention and the feed-forward part of one layer ---- */

/* Returns the bytes per element of the layer's input that exist beside the fp32 copy of it while the layer is
 * recomputed: 2, if checkpointing keeps the input in 16 bits and the recomputed layer makes such a copy; else 0. */
static int64_t input_bytes_per_element_beside_fp32(const struct emit *e)
{
    const bool repeats =
        e->choices->activations == CHOICE_ACTIVATIONS_FULL || kept_keeps_core_only(e->choices);
    return repeats && e->kept_extra_bytes.input == 0 && e->kept_extra_bytes.first >= 2 ? 2 : 0;
}

/* Returns the bytes per element that an implementation keeps for a norm, in addition to the norm's input and its
 * result. */
static int64_t extra_kept_bytes_per_norm_element(const struct emit *e, enum weight weight)
{
    const struct kept_bytes_row *kept = &e->kept_extra_bytes;
    return weight == WEIGHT_NORM1
               ? kept->first + kept->inputs1 + input_bytes_per_element_beside_fp32(e)
           : weight == WEIGHT_NORM2 ? kept->second + kept->inputs2
                                    : kept->after;
}

static buffer_id emit_norm_of_layer(struct emit *e, uint32_t layer, enum weight weight,
                                    const char *name, buffer_id x, struct view *stats)
{
    int64_t rows = e->unit.own_rows, h = e->choices->model->hidden;
    e->op_tags.region = REGION_NORM;
    buffer_id y = emit_activation_buffer(e, name, rows, h);
    int64_t beside = rows * h * extra_kept_bytes_per_norm_element(e, weight);
    if (weight == WEIGHT_NORM1 && kept_keeps_core_only(e->choices))
        beside += attention_extra_kept_bytes(e, e->unit.rows, e->choices->model->heads);
    *stats = emit_new_norm_stats_tensor(e, weight, rows, beside);
    emit_norm(e, layer, weight, view_of_residual(e, x), view_whole(e, y), *stats, rows, h);
    return y;
}

static buffer_id norm_backward(struct emit *e, uint32_t layer, enum weight weight, const char *name,
                               buffer_id dy, buffer_id x, struct view stats)
{
    int64_t rows = e->unit.own_rows, h = e->choices->model->hidden;
    buffer_id dx = emit_activation_buffer(e, name, rows, h);
    emit_norm_backward(e, layer, weight, view_whole(e, dy), view_of_residual(e, x), stats,
                       view_whole(e, dx), rows, h);
    return dx;
}

/* True if the norm at the beginning of a branch is an operator of its own, and not part of the product after it. Only
 * then can its result be dropped. */
static bool norm_is_an_operator(const struct emit *e, uint32_t layer, enum weight weight)
{
    const struct transformer *m = e->choices->model;
    return !e->choices->profile->fuses_norms_into_products ||
           (weight == WEIGHT_NORM1 ? m->kv_latent > 0 : transformer_layer_has_experts(m, layer));
}

/* Emits the norm at the beginning of a branch, and returns its result; returns x if the branch begins without a
 * norm. */
static buffer_id emit_norm_before(struct emit *e, uint32_t layer, enum weight weight, buffer_id x,
                                  struct view *stats)
{
    if (!branches_begin_with_norm(e))
        return x;
    const buffer_id y = emit_norm_of_layer(e, layer, weight, "norm", x, stats);
    if (norm_is_an_operator(e, layer, weight)) {
        emit_record_recomputed_buffer(e, RECOMPUTE_LAYERNORM, y);
        emit_record_recomputed_buffer(e, RECOMPUTE_LAYERNORM, stats->buffer);
    }
    return y;
}

/* Emits the backward of emit_norm_before(), and adds d_residual, the gradient that comes through the residual. Returns
 * the sum. */
static buffer_id emit_norm_before_backward(struct emit *e, uint32_t layer, enum weight weight,
                                           buffer_id dy, buffer_id x, struct view stats,
                                           buffer_id d_residual)
{
    int64_t rows = e->unit.own_rows, h = e->choices->model->hidden;
    e->op_tags.region = REGION_NORM;
    buffer_id d_norm = dy;
    if (branches_begin_with_norm(e))
        d_norm = norm_backward(e, layer, weight, "dx_norm", dy, x, stats);
    buffer_id dx = emit_activation_buffer(e, "dx", rows, h);
    emit_add(e, view_whole(e, d_norm), view_whole(e, d_residual), view_whole(e, dx));
    return dx;
}

/* Emits the norm at the end of a branch, if there is one. Returns the sum of the residual x, the branch, and the bias
 * of the branch's last product, if that product does not add it (product_bias()). */
static buffer_id add_branch_to_residual(struct emit *e, uint32_t layer, enum weight norm,
                                        enum weight bias, buffer_id x, buffer_id branch,
                                        struct view *stats)
{
    if (has_norms_after(e)) {
        branch = emit_norm_of_layer(e, layer, norm, "norm_after", branch, stats);
        e->op_tags.region = REGION_LINEAR;
    }
    /* A framework may keep the sum in fp32, too. The sum after attention has the room for that in the statistics of the
     * norm that reads it (extra_kept_bytes_per_norm_element()), the sum after the feed-forward part in its
     * own buffer. */
    struct view sum = bias == WEIGHT_O_BIAS
                          ? emit_compute_tensor(e, "x", CATEGORY_ACTIVATION, e->unit.own_rows,
                                                e->choices->model->hidden)
                          : emit_new_residual_stream_tensor(e);
    emit_add_bias(e, view_of_residual(e, x), view_whole(e, branch),
                  e->tensor.size > 1 ? optional_weight_view(e, layer, bias) : view_none(), sum);
    return sum.buffer;
}

/* True if the backward makes the sum of the residual and of attention's branch again. Compiled code keeps the input of
 * the norm at the end of the branch, and not the sum, which it computes from that input. */
static bool recomputes_residual_sum(const struct emit *e)
{
    const struct choices *c = e->choices;
    return c->kernels == KERNELS_COMPILED && c->model->norm_place == NORM_BOTH &&
           c->activations == CHOICE_ACTIVATIONS_KEEP;
}

/* Emits again, in the backward, the sum that the norm before the feed-forward part reads, and returns it. */
static buffer_id emit_residual_sum_again(struct emit *e, uint32_t layer)
{
    const struct layer_saved *saved = &e->layer_saved[layer];
    struct view stats;
    e->op_tags.phase = PHASE_RECOMPUTE;
    const buffer_id sum = add_branch_to_residual(e, layer, WEIGHT_NORM1_AFTER, WEIGHT_O_BIAS,
                                                 saved->x, saved->output_projection_result, &stats);
    e->op_tags.phase = PHASE_BACKWARD;
    return sum;
}

static buffer_id emit_norm_after_backward(struct emit *e, uint32_t layer, enum weight weight,
                                          buffer_id dy, buffer_id x, struct view stats)
{
    if (!has_norms_after(e))
        return dy;
    e->op_tags.region = REGION_NORM;
    buffer_id dx = norm_backward(e, layer, weight, "d_norm_after", dy, x, stats);
    e->op_tags.region = REGION_LINEAR;
    return dx;
}

buffer_id layer_forward(struct emit *e, uint32_t layer, buffer_id x)
{
    const struct transformer *model = e->choices->model;
    struct layer_saved *saved = &e->layer_saved[layer];
    int64_t rows = e->unit.own_rows, h = model->hidden, o = transformer_o_columns(model);

    combined_begin_part(e, COMBINED_FORWARD_TO_EXCHANGE);
    saved->x = x;
    saved->norm1 = emit_norm_before(e, layer, WEIGHT_NORM1, x, &saved->norm1_stats);

    saved->attention_out = emit_activation_buffer(e, "attention", e->unit.rows, o);
    e->op_tags.region = REGION_LINEAR;
    struct view normed = view_whole(e, saved->norm1);
    if (model->kv_latent == 0) /* else tensor ranks gather the narrow results */
        normed = tensor_gather_input(e, normed, h, TENSOR_ROWS_BY_SEQUENCE, QKV_PRODUCTS);
    saved->norm1_all = normed;
    attention_emitters[e->choices->attention].forward(e, layer, normed.buffer,
                                                      saved->attention_out);

    e->op_tags.region = REGION_LINEAR;
    saved->output_projection_result = emit_activation_buffer(e, "projected", rows, h);
    struct view projected = view_whole(e, saved->output_projection_result);
    struct view product = tensor_product_output(e, projected, h, "projected_all");
    tensor_matmul(e, TENSOR_ROWS_BY_SEQUENCE, e->unit.rows, MATMUL_NT,
                  view_whole(e, saved->attention_out), weight_view(e, layer, WEIGHT_O),
                  product_bias(e, layer, WEIGHT_O_BIAS), product, e->unit.rows, h, o);
    adapters_forward(e, layer, ADAPTER_O, 1, view_whole(e, saved->attention_out), product,
                     e->unit.rows, &saved->o_adapters);
    tensor_reduce_scatter(e, product, projected, TENSOR_ROWS_BY_SEQUENCE);
    if (kept_products_of(e->choices).o)
        emit_record_kept_product_result(e, saved->output_projection_result);
    saved->x2 = add_branch_to_residual(e, layer, WEIGHT_NORM1_AFTER, WEIGHT_O_BIAS, x,
                                       saved->output_projection_result, &saved->norm1_after_stats);

    saved->norm2 = emit_norm_before(e, layer, WEIGHT_NORM2, saved->x2, &saved->norm2_stats);

    e->op_tags.region = REGION_LINEAR;
    buffer_id ffn = saved->ffn_out = emit_activation_buffer(e, "ffn", rows, h);
    if (transformer_layer_has_experts(model, layer))
        experts_forward_pieces(e, layer, saved->norm2, ffn);
    else {
        combined_begin_part(e, FORWARD_EXPERTS);
        mlp_forward(e, layer, saved->norm2, ffn);
        if (kept_products_of(e->choices).down && has_norms_after(e))
            emit_record_kept_product_result(e, ffn);
    }
    return add_branch_to_residual(e, layer, WEIGHT_NORM2_AFTER, WEIGHT_DOWN_BIAS, saved->x2, ffn,
                                  &saved->norm2_after_stats);
}

buffer_id layer_backward(struct emit *e, uint32_t layer, buffer_id dy)
{
    const struct transformer *model = e->choices->model;
    struct layer_saved *saved = &e->layer_saved[layer];
    int64_t rows = e->unit.own_rows, h = model->hidden, o = transformer_o_columns(model);

    e->op_tags.region = REGION_LINEAR;
    combined_begin_part(e, COMBINED_BACKWARD_TO_EXCHANGE);
    buffer_id d_ffn = emit_norm_after_backward(e, layer, WEIGHT_NORM2_AFTER, dy, saved->ffn_out,
                                               saved->norm2_after_stats);
    buffer_id d_norm2 = emit_activation_buffer(e, "d_norm", rows, h);
    if (transformer_layer_has_experts(model, layer))
        experts_backward_pieces(e, layer, d_ffn, d_norm2);
    else {
        combined_begin_part(e, BACKWARD_EXPERTS);
        mlp_backward(e, layer, d_ffn, d_norm2);
        combined_begin_part(e, BACKWARD_EXPERT_WEIGHTS);
        emit_gradients_delayed_for_overlap(e);
        combined_begin_part(e, COMBINED_BACKWARD_OF_ATTENTION);
    }
    /* without a norm that reads the kept result, its bytes stay in use until here */
    if (kept_products_of(e->choices).down && !has_norms_after(e))
        emit_extend_lifetime(e, saved->ffn_out, e->last_compute);
    const buffer_id x2 = recomputes_residual_sum(e) ? emit_residual_sum_again(e, layer) : saved->x2;
    buffer_id dx2 =
        emit_norm_before_backward(e, layer, WEIGHT_NORM2, d_norm2, x2, saved->norm2_stats, dy);

    e->op_tags.region = REGION_LINEAR;
    e->last_compute_before_wo_backward = e->last_compute;
    buffer_id d_attention = emit_activation_buffer(e, "d_attention", e->unit.rows, o);
    struct view d_projected = view_whole(
        e, emit_norm_after_backward(e, layer, WEIGHT_NORM1_AFTER, dx2,
                                    saved->output_projection_result, saved->norm1_after_stats));
    struct view dx2_all =
        tensor_gather(e, d_projected, h, TENSOR_ROWS_BY_SEQUENCE, "dy_all", false);
    tensor_matmul(e, TENSOR_ROWS_BY_SEQUENCE, e->unit.rows, MATMUL_NN, dx2_all,
                  weight_view(e, layer, WEIGHT_O), view_none(), view_whole(e, d_attention),
                  e->unit.rows, o, h);
    emit_weight_grad(e, layer, WEIGHT_O, dx2_all, view_whole(e, saved->attention_out), h, o,
                     e->unit.rows);
    emit_bias_grad(e, layer, WEIGHT_O_BIAS, d_projected, rows, h);
    adapters_backward(e, layer, ADAPTER_O, 1, dx2_all, view_whole(e, saved->attention_out),
                      view_whole(e, d_attention), e->unit.rows, &saved->o_adapters);

    buffer_id d_norm1 = emit_activation_buffer(e, "d_norm", rows, h);
    for (size_t i = 0; i < ARRAY_LEN(projections); i++)
        if (has_weight(e, projections[i]))
            emit_fp32_sum_begin(e, layer, projections[i]);
    attention_emitters[e->choices->attention].backward(e, layer, d_attention, d_norm1);
    for (size_t i = 0; i < ARRAY_LEN(projections); i++)
        emit_fp32_sum_end(e, layer, projections[i]);

    return emit_norm_before_backward(e, layer, WEIGHT_NORM1, d_norm1, saved->x, saved->norm1_stats,
                                     dx2);
}
