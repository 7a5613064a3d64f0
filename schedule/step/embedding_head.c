/* Before and after the layers: embedding, head and loss, forward and backward. */
#include "schedule/step/embedding_head.h"
#include "schedule/choices/pieces.h"
#include "schedule/choices/profile.h"
#include "schedule/emit/tensor_parallel.h"
#include "schedule/emit/wide_sum.h"
#include "schedule/step/layer.h"

/* Returns the group over which the table is cut, as a parameter of work; 0: it is whole. */
static int64_t part_of(const struct emit *e)
{
    return e->tensor.size > 1 ? e->tensor.group + 1 : 0;
}

/* Returns the positions of the rank's own rows. If stages share a subsequence, these are its part of the positions of
 * all tensor ranks. */
static struct view own_positions(struct emit *e)
{
    if (e->unit.shared.count > 1 && e->tensor.size > 1)
        return tensor_own(e, emit_positions(e), "own_positions");
    return emit_positions_own(e);
}

/* Returns the positions of the i-th sequence of the micro-batch: the same for all, unless documents say how each
 * is cut. */
static struct view positions_of_sequence(struct emit *e, struct view positions, int64_t i)
{
    if (e->choices->ring_layout != RING_ZIGZAG_DOCUMENTS)
        return positions;
    e->unit.positions_of = i;
    return own_positions(e);
}

/* Returns the tokens or labels of the unit's rows. If a micro-batch has several sequences, the rows of a subsequence
 * are not contiguous, and are copied into a buffer. */
static struct view unit_rows(struct emit *e, buffer_id bound, const char *stem)
{
    const struct choices *c = e->choices;
    int64_t all = c->seq / c->hp / c->cp;
    if (c->micro_batch == 1 || c->subsequences == 1)
        return view_rows(bound, e->unit.first_row, e->unit.rows, 1);
    struct view y =
        view_all(e, emit_buffer(e, stem, CATEGORY_ACTIVATION, DTYPE_I32, e->unit.rows, 0));
    struct work work = {.kind = WORK_PACK, .pack = {e->unit.n, 1, {1, 0, 0}}};
    for (int64_t i = 0; i < c->micro_batch; i++) {
        struct view from = view_rows(bound, e->unit.first_row + i * all, e->unit.n, 1);
        struct view to = view_part(y, i * e->unit.n, e->unit.n);
        emit_op(e, e->stream.compute, &work, &from, 1, &to, 1);
    }
    return y;
}

buffer_id embedding_forward(struct emit *e)
{
    const struct transformer *model = e->choices->model;
    int64_t rows = e->unit.rows, h = model->hidden;
    set_region(e, REGION_EMBEDDING);
    buffer_id x = emit_activation(e, "x", e->unit.own_rows, h);
    struct view found = tensor_product(e, view_all(e, x), h, "found_all");
    struct work work = {.kind = WORK_EMBEDDING,
                        .embedding = {rows, h, model->vocab, .part = part_of(e)}};
    emit_op(e, e->stream.compute, &work,
            (struct view[]){unit_rows(e, e->tokens, "unit_tokens"),
                            weight_view(e, part_embedding(e), WEIGHT_EMBEDDING)},
            2, &found, 1);
    tensor_scatter(e, found, view_all(e, x), TENSOR_SEQUENCES);
    if (!has_weight(e, WEIGHT_POSITIONS))
        return x;
    buffer_id sum = emit_activation(e, "x", e->unit.own_rows, h);
    buffer_id place = emit_activation(e, "place", e->unit.own_rows, h);
    struct view positions = own_positions(e);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        positions = positions_of_sequence(e, positions, i);
        work.embedding.rows = e->unit.own_n;
        work.embedding.vocab = e->weights.slot[WEIGHT_POSITIONS].rows;
        work.embedding.part = 0;
        emit_op(e, e->stream.compute, &work,
                (struct view[]){positions, weight_view(e, part_embedding(e), WEIGHT_POSITIONS)}, 2,
                (struct view[]){view_rows(place, i * e->unit.own_n, e->unit.own_n, h)}, 1);
    }
    emit_add(e, view_all(e, x), view_all(e, place), view_all(e, sum));
    return sum;
}

/* Emits one table's gradient from rows of dx; index holds the table row of each. */
static void table_backward(struct emit *e, enum weight weight, int64_t part, struct view dx,
                           struct view index, int64_t rows)
{
    bool accumulate;
    struct view dtable = grad_view(e, part_embedding(e), weight, &accumulate);
    struct work work = {.kind = WORK_EMBEDDING_BACKWARD,
                        .embedding = {rows, e->weights.slot[weight].cols,
                                      e->weights.slot[weight].rows, .part = part}};
    emit_op(e, e->stream.compute, &work, (struct view[]){dx, index, dtable}, accumulate ? 3 : 2,
            &dtable, 1);
}

void embedding_backward(struct emit *e, buffer_id dx)
{
    int64_t rows = e->unit.rows, h = e->choices->model->hidden;
    set_region(e, REGION_EMBEDDING);
    struct view dx_all = tensor_gather(e, view_all(e, dx), h, TENSOR_SEQUENCES, "dy_all", false);
    table_backward(e, WEIGHT_EMBEDDING, part_of(e), dx_all, unit_rows(e, e->tokens, "unit_tokens"),
                   rows);
    if (!has_weight(e, WEIGHT_POSITIONS))
        return;
    struct view positions = own_positions(e);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        positions = positions_of_sequence(e, positions, i);
        table_backward(e, WEIGHT_POSITIONS, 0, view_rows(dx, i * e->unit.own_n, e->unit.own_n, h),
                       positions, e->unit.own_n);
    }
}

/* Emits the loss of fp32 logits as Megatron-DeepSpeed's sequence-parallel cross entropy. The softmax, its logarithm,
 * the fp32 and the 16-bit logits are alive at once, 14 bytes per element, and the softmax becomes the gradient. */
static buffer_id loss_by_softmax(struct emit *e, struct view *read, uint32_t reads, buffer_id lse,
                                 const struct work *forward, const struct work *backward,
                                 buffer_id logits)
{
    int64_t rows = forward->cross_entropy.rows, vocab = forward->cross_entropy.vocab;
    buffer_id softmax = emit_buffer(e, "softmax", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
    buffer_id logarithm = emit_buffer(e, "log_softmax", CATEGORY_LOGITS, DTYPE_U8, rows * vocab, 4);
    op_id done = emit_op(e, e->stream.compute, forward, read, reads,
                         (struct view[]){view_all(e, e->loss), view_all(e, lse),
                                         view_all(e, softmax), view_all(e, logarithm)},
                         4);
    emit_extend_lifetime(e, logits, done);
    e->tags.phase = PHASE_BACKWARD;
    read[0] = view_all(e, softmax);
    emit_op(e, e->stream.compute, backward, read, 2, (struct view[]){view_all(e, softmax)}, 1);
    return softmax;
}

/* Emits the loss of fp32 logits as PyTorch's cross_entropy. The forward saves the logarithm of the softmax only; our
 * kernel writes the softmax itself to that buffer. In the backward nll_loss_backward() fills a dense gradient of the
 * logarithm, and _log_softmax_backward_data() computes the gradient of the logits while both are alive, 12 bytes per
 * element. */
static buffer_id loss_by_torch(struct emit *e, struct view *read, uint32_t reads, buffer_id lse,
                               const struct work *forward, const struct work *backward)
{
    int64_t rows = forward->cross_entropy.rows, vocab = forward->cross_entropy.vocab;
    buffer_id logarithm = emit_buffer(e, "log_softmax", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
    emit_op(e, e->stream.compute, forward, read, reads,
            (struct view[]){view_all(e, e->loss), view_all(e, lse), view_all(e, logarithm)}, 3);
    e->tags.phase = PHASE_BACKWARD;
    buffer_id dense = emit_buffer(e, "d_log_softmax", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
    buffer_id gradient = emit_buffer(e, "d_logits_wide", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
    struct work fill = {.kind = WORK_FILL, .elements = {rows * vocab}};
    emit_op(e, e->stream.compute, &fill, NULL, 0, (struct view[]){view_all(e, dense)}, 1);
    read[0] = view_all(e, logarithm);
    op_id done =
        emit_op(e, e->stream.compute, backward, read, 2, (struct view[]){view_all(e, gradient)}, 1);
    emit_extend_lifetime(e, dense, done);
    return gradient;
}

/* Emits the cross-entropy of one piece of rows, and returns its gradient with respect to the logits, in the compute
 * dtype. With loss_f32 the loss is that of fp32 logits, by one of the two functions above. Otherwise the kernel
 * recomputes the softmax and writes the gradient over the logits, or, with loss_apart, to a buffer of their size. */
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
        emit_op(e, e->stream.compute, &forward, read, reads,
                (struct view[]){loss, view_all(e, lse)}, 2);
        e->tags.phase = PHASE_BACKWARD;
        buffer_id to = c->profile->loss_apart
                           ? emit_buffer(e, "d_logits", CATEGORY_LOGITS, c->dtype, rows, vocab)
                           : logits;
        emit_op(e, e->stream.compute, &backward, read, 2, (struct view[]){view_all(e, to)}, 1);
        return to;
    }
    struct work cast = {.kind = WORK_CAST, .elements = {rows * vocab}};
    buffer_id wide = emit_buffer(e, "logits_wide", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
    emit_op(e, e->stream.compute, &cast, (struct view[]){view_all(e, logits)}, 1,
            (struct view[]){view_all(e, wide)}, 1);
    read[0] = view_all(e, wide);
    buffer_id gradient_wide =
        c->profile->loss_torch ? loss_by_torch(e, read, reads, lse, &forward, &backward)
                               : loss_by_softmax(e, read, reads, lse, &forward, &backward, logits);
    buffer_id gradient = emit_buffer(e, "d_logits", CATEGORY_LOGITS, c->dtype, rows, vocab);
    emit_op(e, e->stream.compute, &cast, (struct view[]){view_all(e, gradient_wide)}, 1,
            (struct view[]){view_all(e, gradient)}, 1);
    return gradient;
}

/* Does the same as loss_of(), where each tensor rank has a part of the vocabulary (Megatron's vocabulary-parallel
 * cross entropy): the statistics of all parts are gathered, and every rank has the whole loss and the gradient of its
 * own logits. loss_f32: fp32 logits, and an fp32 buffer for the gradient, exist in addition to the 16-bit logits:
 * together 10 bytes per element. */
static buffer_id loss_of_part(struct emit *e, buffer_id logits, struct view labels, int64_t rows)
{
    const struct choices *c = e->choices;
    int64_t vocab = c->model->vocab, counted = c->global_batch * (c->seq - 1);
    int64_t total = e->whole->vocab, part = part_of(e);
    struct view loss = view_all(e, e->loss);
    buffer_id lse = emit_buffer(e, "lse", CATEGORY_LOGITS, DTYPE_F32, rows, 0);
    buffer_id own = emit_buffer(e, "statistics", CATEGORY_LOGITS, DTYPE_F32, rows, 3);
    buffer_id all = emit_buffer(e, "statistics_all", CATEGORY_LOGITS, DTYPE_F32,
                                rows * (int64_t)e->tensor.size, 3);
    buffer_id from = logits, to = logits;
    struct work cast = {.kind = WORK_CAST, .elements = {rows * vocab}};
    if (c->profile->loss_f32) {
        from = emit_buffer(e, "logits_wide", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
        to = emit_buffer(e, "softmax", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
        emit_op(e, e->stream.compute, &cast, (struct view[]){view_all(e, logits)}, 1,
                (struct view[]){view_all(e, from)}, 1);
    }
    struct work partial = {.kind = WORK_CROSS_ENTROPY_PARTIAL,
                           .loss_partial = {rows, vocab, 0, total, part}};
    emit_op(e, e->stream.compute, &partial, (struct view[]){view_all(e, from), labels}, 2,
            (struct view[]){view_all(e, own)}, 1);
    struct work gather = {
        .kind = WORK_ALL_GATHER,
        .collective = {e->tensor.group, (int64_t)ir_buffer_bytes(e->ir, own), ALGORITHM_AUTO, 0}};
    emit_op(e, e->tensor.comm, &gather, (struct view[]){view_all(e, own)}, 1,
            (struct view[]){view_all(e, all)}, 1);
    struct work finish = {.kind = WORK_CROSS_ENTROPY_FINISH,
                          .p = {rows, vocab, counted, 0, e->loss_touched}};
    emit_op(e, e->stream.compute, &finish,
            (struct view[]){view_all(e, from), labels, view_all(e, all), loss},
            e->loss_touched ? 4 : 3, (struct view[]){loss, view_all(e, lse)}, 2);
    e->loss_touched = true;
    e->tags.phase = PHASE_BACKWARD;
    struct work backward = {.kind = WORK_CROSS_ENTROPY_PARTIAL_BACKWARD,
                            .loss_backward = {rows, vocab, counted, 0, total, part}};
    op_id done = emit_op(e, e->stream.compute, &backward,
                         (struct view[]){view_all(e, from), labels, view_all(e, lse)}, 3,
                         (struct view[]){view_all(e, to)}, 1);
    if (to.i == logits.i)
        return logits;
    emit_extend_lifetime(e, logits, done);
    buffer_id gradient = emit_buffer(e, "d_logits", CATEGORY_LOGITS, c->dtype, rows, vocab);
    emit_op(e, e->stream.compute, &cast, (struct view[]){view_all(e, to)}, 1,
            (struct view[]){view_all(e, gradient)}, 1);
    return gradient;
}

static buffer_id logits_of(struct emit *e, struct view x, int64_t rows)
{
    int64_t vocab = e->choices->model->vocab;
    buffer_id logits = emit_buffer(e, "logits", CATEGORY_LOGITS, e->choices->dtype, rows, vocab);
    emit_matmul(e, MATMUL_NT, x, weight_view(e, part_head(e), WEIGHT_HEAD), view_none(),
                view_all(e, logits), rows, vocab, e->choices->model->hidden);
    return logits;
}

/* Returns the logits of a piece in fp32, where the implementation makes them so. */
static buffer_id widened(struct emit *e, buffer_id logits, int64_t rows)
{
    if (!e->choices->profile->loss_f32 || e->choices->dtype == DTYPE_F32)
        return logits;
    int64_t vocab = e->choices->model->vocab;
    buffer_id wide = emit_buffer(e, "logits_wide", CATEGORY_LOGITS, DTYPE_F32, rows, vocab);
    struct work cast = {.kind = WORK_CAST, .elements = {rows * vocab}};
    emit_op(e, e->stream.compute, &cast, (struct view[]){view_all(e, logits)}, 1,
            (struct view[]){view_all(e, wide)}, 1);
    return wide;
}

/* True if the loss saves only its input (FPDT_LogitsLoss): the forward of all pieces comes first, and the backward of
 * each piece computes its logits, and from them the softmax, again. */
static bool goes_twice(const struct emit *e)
{
    return e->choices->attention == CHOICE_ATTENTION_FPDT && e->choices->profile->loss_again;
}

static void loss_first(struct emit *e, struct view x, struct view labels, int64_t rows)
{
    const struct choices *c = e->choices;
    int64_t vocab = c->model->vocab, counted = c->global_batch * (c->seq - 1);
    struct view loss = view_all(e, e->loss);
    buffer_id lse = emit_buffer(e, "lse", CATEGORY_LOGITS, DTYPE_F32, rows, 0);
    buffer_id logits = widened(e, logits_of(e, x, rows), rows);
    struct work forward = {.kind = WORK_CROSS_ENTROPY,
                           .cross_entropy = {rows, vocab, counted, e->loss_touched}};
    emit_op(e, e->stream.compute, &forward, (struct view[]){view_all(e, logits), labels, loss},
            e->loss_touched ? 3 : 2, (struct view[]){loss, view_all(e, lse)}, 2);
    e->loss_touched = true;
}

static buffer_id loss_again(struct emit *e, struct view x, struct view labels, int64_t rows)
{
    const struct choices *c = e->choices;
    int64_t vocab = c->model->vocab, counted = c->global_batch * (c->seq - 1);
    e->tags.phase = PHASE_RECOMPUTE;
    buffer_id logits = widened(e, logits_of(e, x, rows), rows);
    e->tags.phase = PHASE_BACKWARD;
    struct work backward = {.kind = WORK_CROSS_ENTROPY_BACKWARD,
                            .cross_entropy = {rows, vocab, counted, 0}};
    emit_op(e, e->stream.compute, &backward, (struct view[]){view_all(e, logits), labels}, 2,
            (struct view[]){view_all(e, logits)}, 1);
    if (e->ir->buffer.dtype[logits.i] == c->dtype)
        return logits;
    buffer_id gradient = emit_buffer(e, "d_logits", CATEGORY_LOGITS, c->dtype, rows, vocab);
    struct work cast = {.kind = WORK_CAST, .elements = {rows * vocab}};
    emit_op(e, e->stream.compute, &cast, (struct view[]){view_all(e, logits)}, 1,
            (struct view[]){view_all(e, gradient)}, 1);
    return gradient;
}

/* Emits a copy on the current stream: it starts when that has done what it has, and the host waits. */
static void copy_blocking(struct emit *e, enum work_kind kind, struct view from, struct view to)
{
    struct work work = {.kind = (uint8_t)kind,
                        .copy = {(int64_t)from.count * (int64_t)dtype_bytes(e->choices->dtype), 1}};
    op_id last = e->last_compute;
    op_id op =
        emit_op(e, kind == WORK_D2H ? e->stream.d2h : e->stream.h2d, &work, &from, 1, &to, 1);
    emit_add_dependency(e, op, last);
}

static buffer_id to_host(struct emit *e, struct view x)
{
    buffer_id host = emit_activation(e, "norm_host", e->unit.own_rows, e->choices->model->hidden);
    e->ir->buffer.memory[host.i] = MEMORY_PAGEABLE;
    copy_blocking(e, WORK_D2H, x, view_all(e, host));
    return host;
}

static struct view from_host(struct emit *e, struct view host, int64_t rows)
{
    struct view x = view_all(e, emit_activation(e, "norm", rows, e->choices->model->hidden));
    copy_blocking(e, WORK_H2D, host, x);
    return x;
}

static buffer_id loss_piece(struct emit *e, struct view x, struct view labels, int64_t rows)
{
    if (goes_twice(e))
        return loss_again(e, x, labels, rows);
    buffer_id logits = logits_of(e, x, rows);
    return e->tensor.size > 1 ? loss_of_part(e, logits, labels, rows)
                              : loss_of(e, logits, labels, rows);
}

struct loss_rows {
    struct piece piece;
    struct view x, labels;
    struct view all_labels; /* of all rows */
};

/* Fills piece i of the rows of x; false: there are no rows left (of a short subsequence). */
static bool loss_rows(struct emit *e, buffer_id x, uint32_t i, struct loss_rows *rows)
{
    rows->piece = emit_piece(e->unit.rows, e->choices->loss_chunks, i);
    if (rows->piece.rows == 0)
        return false;
    rows->x = view_rows(x, rows->piece.begin, rows->piece.rows, e->choices->model->hidden);
    rows->labels = view_part(rows->all_labels, rows->piece.begin, rows->piece.rows);
    e->tags.chunk = e->choices->loss_chunks > 1 ? (uint16_t)i : IR_NONE16;
    e->tags.phase = PHASE_FORWARD;
    return true;
}

buffer_id head(struct emit *e, buffer_id x)
{
    const struct transformer *model = e->choices->model;
    int64_t h = model->hidden, vocab = model->vocab;
    uint32_t part = part_head(e);
    buffer_id normed = emit_activation(e, "norm", e->unit.own_rows, h);
    buffer_id d_normed = emit_activation(e, "d_norm", e->unit.own_rows, h);
    buffer_id stats = emit_norm_stats(e, e->unit.own_rows);
    buffer_id dx = emit_activation(e, "dx", e->unit.own_rows, h);

    set_region(e, REGION_NORM);
    emit_norm(e, part, WEIGHT_FINAL_NORM, view_all(e, x), view_all(e, normed), view_all(e, stats),
              e->unit.own_rows, h);
    set_region(e, REGION_LOSS);
    struct loss_rows r = {.all_labels = unit_rows(e, e->labels, "unit_labels")};
    struct view x_all =
        tensor_gather(e, view_all(e, normed), h, TENSOR_SEQUENCES, "norm_all", true);
    struct view product = tensor_product(e, view_all(e, d_normed), h, "dx_all");
    buffer_id source = x_all.buffer;
    for (uint32_t i = 0;
         goes_twice(e) && i < e->choices->loss_chunks && loss_rows(e, source, i, &r); i++)
        loss_first(e, r.x, r.labels, r.piece.rows);
    bool on_host = goes_twice(e) && e->choices->profile->loss_host;
    if (on_host)
        source = to_host(e, x_all);
    emit_wide_sum_begin(e, part, WEIGHT_HEAD);
    for (uint32_t i = 0; i < e->choices->loss_chunks && loss_rows(e, source, i, &r); i++) {
        if (on_host)
            r.x = from_host(e, r.x, r.piece.rows);
        buffer_id d_logits = loss_piece(e, r.x, r.labels, r.piece.rows);
        emit_matmul(e, MATMUL_NN, view_all(e, d_logits), weight_view(e, part, WEIGHT_HEAD),
                    view_none(), view_rows(product.buffer, r.piece.begin, r.piece.rows, h),
                    r.piece.rows, h, vocab);
        if (r.piece.begin + r.piece.rows == e->unit.rows)
            tensor_scatter(e, product, view_all(e, d_normed), TENSOR_SEQUENCES);
        emit_weight_grad(e, part, WEIGHT_HEAD, view_all(e, d_logits), r.x, vocab, h, r.piece.rows);
    }
    e->tags.chunk = IR_NONE16;
    e->tags.phase = PHASE_BACKWARD;
    emit_wide_sum_end(e, part, WEIGHT_HEAD);
    set_region(e, REGION_NORM);
    emit_norm_backward(e, part, WEIGHT_FINAL_NORM, view_all(e, d_normed), view_all(e, x),
                       view_all(e, stats), view_all(e, dx), e->unit.own_rows, h);
    return dx;
}
