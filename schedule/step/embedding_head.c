/* The parts of a step before and after the layers: embedding, head and loss, forward and backward. */
#include "schedule/step/embedding_head.h"
#include "schedule/choices/pieces.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/emit/emit.h"
#include "schedule/emit/tensor_parallel.h"

/* Returns the parameter `part` of work on the embedding or, if `head` is set, on the head: 1 + the group over which its
 * rows are divided; 0: every rank has all rows. */
static int64_t vocabulary_group_plus_1(const struct emit *e, bool head)
{
    bool cut = e->choices->vocabulary == VOCABULARY_CUT ||
               (head && e->choices->vocabulary == VOCABULARY_GATHERED);
    return e->tensor.size > 1 && cut ? e->tensor.group + 1 : 0;
}

/* Returns the number of columns of the logits that the loss reads: this rank's part of the vocabulary if it is cut,
 * else the whole vocabulary. */
static int64_t logit_columns_of_loss(const struct emit *e)
{
    return e->choices->vocabulary == VOCABULARY_CUT ? e->choices->model->vocab
                                                    : e->whole_model->vocab;
}

/* Returns the positions of this tensor rank's own rows in the i-th sequence of the micro-batch, and sets
 * e->unit.positions_sequence_index to i. These positions are the same for all sequences unless each is cut in its own
 * way (derived_binds_positions_by_sequence()). Where stages share a subsequence, the rank's own rows are a part of the
 * stage's piece, so they are taken from the positions of all tensor ranks. */
static struct view own_positions(struct emit *e, int64_t i)
{
    e->unit.positions_sequence_index = i;
    if (e->unit.stages.count > 1 && e->tensor.size > 1)
        return tensor_deliver_own_part(e, view_of_unit_positions(e), "own_positions");
    return view_of_tensor_rank_positions(e);
}

/* Returns the tokens or labels of the unit's rows from the buffer `bound`. The rows of a subsequence are not contiguous
 * if a micro-batch has several sequences; then they are copied into a new buffer. */
static struct view unit_tokens_or_labels(struct emit *e, buffer_id bound, const char *stem)
{
    const struct choices *c = e->choices;
    int64_t all = c->seq / c->hp / c->cp;
    if (c->micro_batch == 1 || c->subsequences == 1)
        return view_rows(bound, e->unit.first_row, e->unit.rows, 1);
    struct view y = emit_tensor(e, stem, CATEGORY_ACTIVATION, DTYPE_I32, e->unit.rows, 0);
    for (int64_t i = 0; i < c->micro_batch; i++) {
        struct view from = view_rows(bound, e->unit.first_row + i * all, e->unit.tokens, 1);
        emit_pack_or_unpack(e, WORK_PACK, from, view_slice(y, i * e->unit.tokens, e->unit.tokens),
                            e->unit.tokens, 1, 1);
    }
    return y;
}

/* Emits the look-up of `rows` rows of a table. index: the number of the table's row for each of them. */
static void emit_table_lookup(struct emit *e, enum weight weight, int64_t part, struct view index,
                              struct view to, int64_t rows)
{
    const struct weight_offset_and_shape *slot = &e->weights.slot[0][weight];
    struct work work = {.kind = WORK_EMBEDDING,
                        .embedding = {rows, slot->cols, slot->rows, .part = part}};
    struct view table = weight_view(e, part_index_of_embedding_or_head(e, PART_EMBEDDING), weight);
    emit_op(e, e->stream.compute, &work, (struct view[]){index, table}, 2, &to, 1);
}

buffer_id embedding_forward(struct emit *e)
{
    int64_t n = e->unit.own_tokens, h = e->choices->model->hidden;
    e->op_tags.region = REGION_EMBEDDING;
    bool positions = has_weight(e, WEIGHT_POSITIONS);
    struct view x = positions
                        ? emit_compute_tensor(e, "x", CATEGORY_ACTIVATION, e->unit.own_rows, h)
                        : emit_new_residual_stream_tensor(e);
    if (vocabulary_group_plus_1(e, false) > 0) {
        struct view found = tensor_product_output(e, x, h, "found_all");
        emit_table_lookup(e, WEIGHT_EMBEDDING, vocabulary_group_plus_1(e, false),
                          unit_tokens_or_labels(e, e->tokens, "unit_tokens"), found, e->unit.rows);
        tensor_reduce_scatter(e, found, x, TENSOR_ROWS_BY_SEQUENCE);
    } else if (e->choices->sequence_parallel_ranks > 1) {
        struct view own =
            view_rows(e->tokens_own, e->unit.first_row / e->choices->sequence_parallel_ranks,
                      e->unit.own_rows, 1);
        emit_table_lookup(e, WEIGHT_EMBEDDING, 0, own, x, e->unit.own_rows);
    } else {
        emit_table_lookup(e, WEIGHT_EMBEDDING, 0,
                          unit_tokens_or_labels(e, e->tokens, "unit_tokens"), x, e->unit.rows);
    }
    if (!positions)
        return x.buffer;
    struct view sum = emit_new_residual_stream_tensor(e);
    buffer_id place = emit_activation_buffer(e, "place", e->unit.own_rows, h);
    for (int64_t i = 0; i < e->choices->micro_batch; i++)
        emit_table_lookup(e, WEIGHT_POSITIONS, 0, own_positions(e, i),
                          view_rows(place, i * n, n, h), n);
    emit_add(e, x, view_whole(e, place), sum);
    return sum.buffer;
}

/* True if each tensor rank makes the gradient of the whole embedding although it has only a part of the table: DTensor
 * cannot run embedding_dense_backward() for a part of the rows (torch/distributed/tensor/_ops/_embedding_ops.py). */
static bool makes_gradient_of_whole_table(const struct emit *e, int64_t part)
{
    return part > 0 && tensor_uses_dtensor(e->choices);
}

/* Emits the copy of this rank's rows out of the gradient of the whole embedding. In the schedule the op that made the
 * gradient has written these rows to dtable, too, so nothing reads the copy: it takes the time of the framework's copy,
 * and its buffer stands for the memory of these rows in the whole gradient. The other ranks' rows, `others`, stay in
 * memory until the copy ends. */
static void emit_copy_of_own_table_rows(struct emit *e, uint32_t bundle, struct view others,
                                        struct view dtable)
{
    const struct view rows =
        emit_tensor_like(e, dtable, (int64_t)dtable.count, "own_rows", MEMORY_HBM);
    emit_cast(e, dtable, rows);
    emit_extend_lifetime(e, others.buffer, e->last_compute);
    e->weights.bundle[bundle].gradient_rows_of_other_ranks = others;
}

/* Emits the gradient of a table from dx, which has `rows` rows. index: the number of the table's row for each of
 * them. */
static void emit_table_gradient(struct emit *e, enum weight weight, int64_t part, struct view dx,
                                struct view index, int64_t rows)
{
    bool accumulate;
    const uint32_t table = part_index_of_embedding_or_head(e, PART_EMBEDDING);
    const struct weight_offset_and_shape *slot = &e->weights.slot[0][weight];
    const struct view gradient = grad_view(e, table, weight, &accumulate);
    struct view write[2] = {gradient};
    struct work work = {.kind = WORK_EMBEDDING_BACKWARD,
                        .embedding = {rows, slot->cols, slot->rows, .part = part}};
    const bool whole = makes_gradient_of_whole_table(e, part);
    if (whole) {
        work.embedding.total = slot->rows * (int64_t)e->tensor.size;
        write[1] = emit_compute_tensor(e, "others_rows", CATEGORY_GRADIENT,
                                       work.embedding.total - slot->rows, slot->cols);
    }
    /* embedding_dense_backward() writes a gradient of its own; if the head is tied, autograd then adds it to the head's
     * gradient */
    const bool apart = accumulate && !whole && e->choices->profile->frees_gradients_between_steps;
    if (apart)
        write[0] = emit_tensor_like(e, gradient, (int64_t)gradient.count, "dense_grad", MEMORY_HBM);
    emit_op(e, e->stream.compute, &work, (struct view[]){dx, index, write[0]},
            accumulate && !apart ? 3 : 2, write, whole ? 2 : 1);
    if (apart)
        emit_add(e, gradient, write[0], gradient);
    if (whole)
        emit_copy_of_own_table_rows(e, e->weights.part[table].bundle, write[1], write[0]);
}

void embedding_backward(struct emit *e, buffer_id dx)
{
    int64_t n = e->unit.own_tokens, h = e->choices->model->hidden;
    if (weight_is_frozen(e, WEIGHT_EMBEDDING))
        return;
    e->op_tags.region = REGION_EMBEDDING;
    struct view dx_all =
        tensor_gather(e, view_whole(e, dx), h, TENSOR_ROWS_BY_SEQUENCE, "dy_all", false);
    emit_table_gradient(e, WEIGHT_EMBEDDING, vocabulary_group_plus_1(e, false), dx_all,
                        unit_tokens_or_labels(e, e->tokens, "unit_tokens"), e->unit.rows);
    for (int64_t i = 0; has_weight(e, WEIGHT_POSITIONS) && i < e->choices->micro_batch; i++)
        emit_table_gradient(e, WEIGHT_POSITIONS, 0, view_rows(dx, i * n, n, h), own_positions(e, i),
                            n);
}

/* Returns a new tensor of logits [rows, columns of the loss], with a row for each label of a piece. */
static struct view new_logits_like(struct emit *e, const char *stem, enum dtype dtype,
                                   struct view labels)
{
    return emit_tensor(e, stem, CATEGORY_LOGITS, dtype, (int64_t)labels.count,
                       logit_columns_of_loss(e));
}

/* Casts `gradient` to the compute dtype. */
static struct view cast_gradient(struct emit *e, struct view gradient, struct view labels)
{
    return emit_cast(e, gradient,
                     new_logits_like(e, "d_logits", (enum dtype)e->choices->dtype, labels));
}

/* Returns the number of tokens whose losses are averaged. */
static int64_t averaged_token_count(const struct emit *e)
{
    return e->choices->global_batch * (e->choices->seq - 1);
}

/* Emits the loss of a piece of rows, added to that of earlier pieces, and returns the op. softmax, logarithm: tensors
 * that the kernel writes as well; an empty one is left out. If only one is written, it is passed as softmax. */
static op_id loss_forward(struct emit *e, struct view logits, struct view labels,
                          struct view softmax, struct view logarithm)
{
    int64_t rows = (int64_t)labels.count;
    struct view loss = view_whole(e, e->loss);
    struct view lse = emit_tensor(e, "lse", CATEGORY_LOGITS, DTYPE_F32, rows, 0);
    struct work work = {.kind = WORK_CROSS_ENTROPY,
                        .cross_entropy = {rows, logit_columns_of_loss(e), averaged_token_count(e),
                                          e->loss_is_written}};
    uint32_t reads = e->loss_is_written ? 3 : 2;
    e->loss_is_written = true;
    e->loss_lse_of_last_piece = lse;
    return emit_op(e, e->stream.compute, &work, (struct view[]){logits, labels, loss}, reads,
                   (struct view[]){loss, lse, softmax, logarithm},
                   2 + (softmax.count > 0) + (logarithm.count > 0));
}

/* Emits the gradient of the loss with respect to the logits into `to`, and returns the op. `from` has the logits, or
 * the softmax that the forward saved. `from` and `to` may be the same tensor. */
static op_id loss_backward(struct emit *e, struct view from, struct view labels, struct view to)
{
    struct work work = {.kind = WORK_CROSS_ENTROPY_BACKWARD,
                        .cross_entropy = {(int64_t)labels.count, logit_columns_of_loss(e),
                                          averaged_token_count(e), 0}};
    e->op_tags.phase = PHASE_BACKWARD;
    return emit_op(e, e->stream.compute, &work, (struct view[]){from, labels}, 2, &to, 1);
}

/* Returns `gradient` itself if it has the compute dtype, else a copy of it in that dtype. */
static struct view cast_gradient_if_wide(struct emit *e, struct view gradient, struct view labels)
{
    return dtype_of_view(e, gradient) == e->choices->dtype ? gradient
                                                           : cast_gradient(e, gradient, labels);
}

/* Emits the loss of fp32 logits as Megatron-DeepSpeed's sequence-parallel cross entropy does. The softmax, its
 * logarithm, the fp32 and the 16-bit logits are alive at once, 14 bytes per element; the gradient is written over the
 * softmax. */
static struct view loss_and_gradient_by_softmax(struct emit *e, struct view logits,
                                                struct view labels)
{
    struct view wide = emit_cast(e, logits, new_logits_like(e, "logits_wide", DTYPE_F32, labels));
    struct view softmax = new_logits_like(e, "softmax", DTYPE_F32, labels);
    struct view logarithm =
        emit_tensor(e, "log_softmax", CATEGORY_LOGITS, DTYPE_U8, (int64_t)wide.count, 4);
    emit_extend_lifetime(e, logits.buffer, loss_forward(e, wide, labels, softmax, logarithm));
    loss_backward(e, softmax, labels, softmax);
    return softmax;
}

/* Emits the loss of fp32 logits as PyTorch's cross_entropy does. Its forward saves only the log-softmax; our kernel
 * writes the softmax to that buffer. The caller keeps the 16-bit logits until the forward has ended: 10 bytes per
 * element. In the backward nll_loss_backward() fills a dense gradient of the log-softmax, and
 * _log_softmax_backward_data() computes the gradient of the logits from it while both exist: 12 bytes per element, or
 * 14 if the caller still holds the 16-bit logits (LOSS_HF). */
static struct view loss_and_gradient_by_torch(struct emit *e, struct view logits,
                                              struct view labels)
{
    struct view wide = emit_cast(e, logits, new_logits_like(e, "logits_wide", DTYPE_F32, labels));
    struct view logarithm = new_logits_like(e, "log_softmax", DTYPE_F32, labels);
    op_id forward = loss_forward(e, wide, labels, logarithm, (struct view){0});
    e->op_tags.phase = PHASE_BACKWARD;
    struct view dense = emit_zeros(e, new_logits_like(e, "d_log_softmax", DTYPE_F32, labels));
    struct view gradient = new_logits_like(e, "d_logits_wide", DTYPE_F32, labels);
    op_id done = loss_backward(e, logarithm, labels, gradient);
    emit_extend_lifetime(e, dense.buffer, done);
    emit_extend_lifetime(e, logits.buffer, e->choices->loss == LOSS_HF ? done : forward);
    return gradient;
}

/* Emits the loss of 16-bit logits as PyTorch's cross_entropy does in a loop that holds the logits. The forward saves
 * the logarithm of the softmax in 16 bits. In the backward the logits, that logarithm, its dense gradient and the
 * gradient of the logits are alive, 8 bytes per element. Our kernel computes the gradient from the logits. */
static struct view loss_and_gradient_of_16bit_logits(struct emit *e, struct view logits,
                                                     struct view labels)
{
    enum dtype dtype = (enum dtype)e->choices->dtype;
    struct view logarithm =
        emit_tensor(e, "log_softmax", CATEGORY_LOGITS, DTYPE_U8, (int64_t)logits.count, 2);
    loss_forward(e, logits, labels, logarithm, (struct view){0});
    e->op_tags.phase = PHASE_BACKWARD;
    struct view dense = emit_zeros(e, new_logits_like(e, "d_log_softmax", dtype, labels));
    struct view gradient = new_logits_like(e, "d_logits", dtype, labels);
    op_id done = loss_backward(e, logits, labels, gradient);
    emit_extend_lifetime(e, logarithm.buffer, done);
    emit_extend_lifetime(e, dense.buffer, done);
    return gradient;
}

/* Emits the loss by one kernel, which recomputes the softmax and writes the gradient over the logits. Returns that
 * gradient. */
static struct view loss_and_gradient_in_place(struct emit *e, struct view logits,
                                              struct view labels)
{
    loss_forward(e, logits, labels, (struct view){0}, (struct view){0});
    loss_backward(e, logits, labels, logits);
    return logits;
}

/* Emits a compiled loss: like loss_and_gradient_in_place(), but the gradient, which is returned, has a buffer of
 * its own. */
static struct view loss_and_gradient_compiled(struct emit *e, struct view logits,
                                              struct view labels)
{
    struct view to = new_logits_like(e, "d_logits", (enum dtype)e->choices->dtype, labels);
    loss_forward(e, logits, labels, (struct view){0}, (struct view){0});
    loss_backward(e, logits, labels, to);
    return to;
}

/* Returns the fp32 logits over which the loss will write: `wide` or, if the profile makes a copy, a copy of it. */
static struct view fp32_logits_to_overwrite(struct emit *e, struct view wide, struct view labels)
{
    if (!e->choices->profile->loss_copies_logits)
        return wide;
    return emit_cast(e, wide, new_logits_like(e, "logits_less_maximum", DTYPE_F32, labels));
}

/* Emits Megatron-LM's loss: the softmax, and then the gradient, which is returned, are written over fp32 logits. The
 * 16-bit logits live until they have been cast, 6 bytes per element; if the fp32 logits are copied, both fp32 tensors
 * live at once, 8 bytes. */
static struct view loss_and_gradient_of_fp32_logits(struct emit *e, struct view logits,
                                                    struct view labels)
{
    return loss_and_gradient_in_place(
        e,
        fp32_logits_to_overwrite(
            e, emit_cast(e, logits, new_logits_like(e, "logits_wide", DTYPE_F32, labels)), labels),
        labels);
}

/* Emits the cross-entropy of one piece of rows, and returns its gradient with respect to the logits, in the compute
 * dtype. */
static struct view loss_and_gradient_of_piece(struct emit *e, struct view logits,
                                              struct view labels)
{
    static struct view (*const losses[LOSS_COUNT])(struct emit *, struct view, struct view) = {
        [LOSS_EAGER] = loss_and_gradient_by_torch,
        [LOSS_HF] = loss_and_gradient_by_torch,
        [LOSS_COMPILED] = loss_and_gradient_compiled,
        [LOSS_FUSED] = loss_and_gradient_in_place,
        [LOSS_TE] = loss_and_gradient_in_place,
        [LOSS_MEGATRON] = loss_and_gradient_of_fp32_logits,
        [LOSS_BY_FP32_SOFTMAX] = loss_and_gradient_by_softmax,
        [LOSS_OF_16BIT_LOGITS] = loss_and_gradient_of_16bit_logits};
    return cast_gradient_if_wide(e, losses[e->choices->loss](e, logits, labels), labels);
}

/* Returns a tensor for `count` further fp32 numbers for each logit, which an op of the loss writes besides its
 * result. */
static struct view new_loss_temporary_beside_logits(struct emit *e, struct view labels,
                                                    int64_t count)
{
    return emit_tensor(e, "loss_temporary", CATEGORY_LOGITS, DTYPE_U8,
                       (int64_t)labels.count * logit_columns_of_loss(e), 4 * count);
}

/* Does what loss_and_gradient_of_piece() does, where each tensor rank has a part of the vocabulary (Megatron's
 * vocabulary-parallel cross entropy). The statistics of all parts are gathered, so every rank has the whole loss and
 * computes the gradient of its own logits. Where the gradient is written, and the bytes per element of logits, gradient
 * and temporaries together:
 *
 * LOSS_TE        over the 16-bit logits
 * LOSS_COMPILED  to a 16-bit buffer of its own, 4 bytes
 * LOSS_MEGATRON  over the fp32 copy of the logits, 6 bytes while both exist
 * LOSS_BY_FP32_SOFTMAX   to an fp32 buffer of its own, while the logits exist in fp32 and in 16 bits
 * LOSS_PARALLEL  to an fp32 buffer of its own, 16 bytes
 *
 * LOSS_PARALLEL is PyTorch's loss_parallel(), which computes each operator in fp32. Temporaries of its forward are the
 * logits less their maximum and the exponentials; those of its backward are the gradient of the log-softmax, which
 * begins as zeros, and the exponentials again. */
static struct view vocab_parallel_loss_and_gradient(struct emit *e, struct view logits,
                                                    struct view labels)
{
    const struct choices *c = e->choices;
    int64_t rows = (int64_t)labels.count, vocab = c->model->vocab,
            counted = averaged_token_count(e);
    int64_t total = e->whole_model->vocab, part = vocabulary_group_plus_1(e, true);
    struct view loss = view_whole(e, e->loss), from = logits, to = logits;
    struct view lse = emit_tensor(e, "lse", CATEGORY_LOGITS, DTYPE_F32, rows, 0);
    struct view own = emit_tensor(e, "statistics", CATEGORY_LOGITS, DTYPE_F32, rows, 3);
    struct view all = emit_tensor(e, "statistics_all", CATEGORY_LOGITS, DTYPE_F32,
                                  rows * (int64_t)e->tensor.size, 3);
    if (c->loss == LOSS_COMPILED)
        to = new_logits_like(e, "d_logits", (enum dtype)c->dtype, labels);
    else if (c->loss != LOSS_TE && c->loss != LOSS_FUSED)
        to = from = fp32_logits_to_overwrite(
            e, emit_cast(e, logits, new_logits_like(e, "logits_wide", DTYPE_F32, labels)), labels);
    bool parallel = c->loss == LOSS_PARALLEL;
    struct view written[2] = {own};
    if (parallel)
        written[1] = new_loss_temporary_beside_logits(e, labels, 2);
    struct work partial = {.kind = WORK_CROSS_ENTROPY_PARTIAL,
                           .loss_partial = {rows, vocab, 0, total, part}};
    op_id summed = emit_op(e, e->stream.compute, &partial, (struct view[]){from, labels}, 2,
                           written, parallel ? 2 : 1);
    if (parallel)
        emit_extend_lifetime(e, logits.buffer, summed);
    /* loss_parallel() reduces the maximum, the sum and the label's logit by three collectives. Here they are two
     * all-reduces whose results nothing reads, and the gather. */
    for (int i = 1; parallel && i < 3; i++)
        tensor_emit_unread_reduction(e, view_slice(own, 0, rows));
    tensor_gather_to(e, own, all);
    struct work finish = {.kind = WORK_CROSS_ENTROPY_FINISH,
                          .p = {rows, vocab, counted, 0, e->loss_is_written}};
    emit_op(e, e->stream.compute, &finish, (struct view[]){from, labels, all, loss},
            e->loss_is_written ? 4 : 3, (struct view[]){loss, lse}, 2);
    e->loss_is_written = true;
    e->op_tags.phase = PHASE_BACKWARD;
    struct view zeros = {0};
    if (parallel) {
        zeros = emit_zeros(e, new_logits_like(e, "d_log_softmax", DTYPE_F32, labels));
        written[1] = new_loss_temporary_beside_logits(e, labels, 1);
    }
    if (parallel || c->loss == LOSS_BY_FP32_SOFTMAX)
        to = new_logits_like(e, "softmax", DTYPE_F32, labels);
    written[0] = to;
    struct work backward = {.kind = WORK_CROSS_ENTROPY_PARTIAL_BACKWARD,
                            .loss_backward = {rows, vocab, counted, 0, total, part}};
    op_id done = emit_op(e, e->stream.compute, &backward, (struct view[]){from, labels, lse}, 3,
                         written, parallel ? 2 : 1);
    if (parallel)
        emit_extend_lifetime(e, zeros.buffer, done);
    if (c->loss == LOSS_BY_FP32_SOFTMAX)
        emit_extend_lifetime(e, logits.buffer, done);
    return cast_gradient_if_wide(e, to, labels);
}

/* Emits the loss of logits that are gathered from all tensor ranks, and returns the gradient of this rank's own
 * columns, which the backward of the head reads. Each rank computes the loss and the gradient of whole rows. An op
 * cannot select columns by rank, so a further op computes the gradient of the own columns from the rank's own logits;
 * it moves as many bytes as a copy of these columns would. */
static struct view loss_and_gradient_of_gathered_logits(struct emit *e, struct view logits,
                                                        struct view labels)
{
    int64_t rows = (int64_t)labels.count, ranks = (int64_t)e->tensor.size;
    int64_t vocab = e->choices->model->vocab;
    struct view arrived =
        emit_compute_tensor(e, "logits_arrived", CATEGORY_LOGITS, ranks * rows, vocab);
    tensor_gather_to(e, logits, arrived);
    struct view all = new_logits_like(e, "logits_all", (enum dtype)e->choices->dtype, labels);
    loss_and_gradient_of_piece(
        e, emit_pack_or_unpack(e, WORK_UNPACK, arrived, all, rows, ranks, vocab), labels);
    struct view own = emit_compute_tensor(e, "d_logits_own", CATEGORY_LOGITS, rows, vocab);
    struct work backward = {.kind = WORK_CROSS_ENTROPY_PARTIAL_BACKWARD,
                            .loss_backward = {rows, vocab, averaged_token_count(e), 0,
                                              e->whole_model->vocab,
                                              vocabulary_group_plus_1(e, true)}};
    emit_op(e, e->stream.compute, &backward,
            (struct view[]){logits, labels, e->loss_lse_of_last_piece}, 3, &own, 1);
    return own;
}

static struct view emit_logits(struct emit *e, struct view x, struct view labels)
{
    int64_t rows = (int64_t)labels.count;
    struct view logits =
        emit_compute_tensor(e, "logits", CATEGORY_LOGITS, rows, e->choices->model->vocab);
    emit_matmul(e, MATMUL_NT, x,
                weight_view(e, part_index_of_embedding_or_head(e, PART_HEAD), WEIGHT_HEAD),
                view_none(), logits, rows, e->choices->model->vocab, e->choices->model->hidden);
    return logits;
}

/* True if the loss is FPDT_LogitsLoss. */
static bool is_fpdt_loss(const struct emit *e)
{
    return e->choices->attention == CHOICE_ATTENTION_FPDT &&
           e->choices->profile->loss_recomputes_logits;
}

/* True if the loss saves only its input, as cut cross entropy and FPDT_LogitsLoss do. The forward of all pieces comes
 * first; then the backward of each piece computes its logits and its softmax again. */
static bool recomputes_logits(const struct emit *e)
{
    return is_fpdt_loss(e) || e->choices->loss == LOSS_CUT_CROSS_ENTROPY;
}

/* Returns the logits of a piece, in fp32 with LOSS_BY_FP32_SOFTMAX, else in the compute dtype. */
static struct view logits_for_softmax(struct emit *e, struct view x, struct view labels)
{
    struct view logits = emit_logits(e, x, labels);
    if (e->choices->loss != LOSS_BY_FP32_SOFTMAX || e->choices->dtype == DTYPE_F32)
        return logits;
    return emit_cast(e, logits, new_logits_like(e, "logits_wide", DTYPE_F32, labels));
}

static struct view gradient_of_recomputed_logits(struct emit *e, struct view x, struct view labels)
{
    e->op_tags.phase = PHASE_RECOMPUTE;
    struct view logits = logits_for_softmax(e, x, labels);
    loss_backward(e, logits, labels, logits);
    return cast_gradient_if_wide(e, logits, labels);
}

/* Emits a copy that starts after the last compute op so far has ended. The host waits until the copy has ended. */
static void emit_copy_that_blocks_host(struct emit *e, enum work_kind kind, struct view from,
                                       struct view to)
{
    op_id last = e->last_compute;
    emit_add_dependency(e, emit_host_device_copy(e, kind, true, from, to), last);
}

static buffer_id copy_to_host(struct emit *e, struct view x)
{
    buffer_id host =
        emit_activation_buffer(e, "norm_host", e->unit.own_rows, e->choices->model->hidden);
    e->ir->buffer.memory[host.i] = MEMORY_PAGEABLE;
    emit_copy_that_blocks_host(e, WORK_D2H, x, view_whole(e, host));
    return host;
}

static struct view copy_from_host(struct emit *e, struct view host, int64_t rows)
{
    struct view x =
        emit_compute_tensor(e, "norm", CATEGORY_ACTIVATION, rows, e->choices->model->hidden);
    emit_copy_that_blocks_host(e, WORK_H2D, host, x);
    return x;
}

static struct view logits_gradient_of_piece(struct emit *e, struct view x, struct view labels)
{
    if (recomputes_logits(e))
        return gradient_of_recomputed_logits(e, x, labels);
    struct view logits = emit_logits(e, x, labels);
    if (vocabulary_group_plus_1(e, true) == 0)
        return loss_and_gradient_of_piece(e, logits, labels);
    return e->choices->vocabulary == VOCABULARY_GATHERED
               ? loss_and_gradient_of_gathered_logits(e, logits, labels)
               : vocab_parallel_loss_and_gradient(e, logits, labels);
}

struct rows_of_loss_piece {
    struct piece piece;
    struct view x, labels;
    struct view labels_of_all_rows; /* the labels of all rows */
};

/* Fills *rows with piece i of the rows of x, and sets the chunk and the phase (forward) of the ops that follow. Returns
 * false if no rows are left for piece i, as in a short subsequence; then only rows->piece is set. */
static bool begin_loss_piece(struct emit *e, buffer_id x, uint32_t i,
                             struct rows_of_loss_piece *rows)
{
    rows->piece = piece_of_rows(e->unit.rows, e->choices->loss_chunks, i);
    if (rows->piece.rows == 0)
        return false;
    rows->x = view_rows(x, rows->piece.begin, rows->piece.rows, e->choices->model->hidden);
    rows->labels = view_slice(rows->labels_of_all_rows, rows->piece.begin, rows->piece.rows);
    e->op_tags.chunk = e->choices->loss_chunks > 1 ? (uint16_t)i : IR_NONE16;
    e->op_tags.phase = PHASE_FORWARD;
    return true;
}

buffer_id head_and_loss(struct emit *e, buffer_id x)
{
    const struct transformer *model = e->choices->model;
    int64_t h = model->hidden, vocab = model->vocab;
    uint32_t part = part_index_of_embedding_or_head(e, PART_HEAD);
    buffer_id normed = emit_activation_buffer(e, "norm", e->unit.own_rows, h);
    buffer_id d_normed = emit_activation_buffer(e, "d_norm", e->unit.own_rows, h);
    struct view stats = emit_new_norm_stats_tensor(
        e, WEIGHT_FINAL_NORM, e->unit.own_rows, e->unit.own_rows * h * e->kept_extra_bytes.first);
    buffer_id dx = emit_activation_buffer(e, "dx", e->unit.own_rows, h);

    e->op_tags.region = REGION_NORM;
    emit_norm(e, part, WEIGHT_FINAL_NORM, view_of_residual(e, x), view_whole(e, normed), stats,
              e->unit.own_rows, h);
    e->op_tags.region = REGION_LOSS;
    struct rows_of_loss_piece r = {.labels_of_all_rows =
                                       unit_tokens_or_labels(e, e->labels, "unit_labels")};
    struct view x_all =
        tensor_gather(e, view_whole(e, normed), h, TENSOR_ROWS_BY_SEQUENCE, "norm_all", true);
    struct view product = tensor_product_output(e, view_whole(e, d_normed), h, "dx_all");
    buffer_id source = x_all.buffer;
    for (uint32_t i = 0;
         recomputes_logits(e) && i < e->choices->loss_chunks && begin_loss_piece(e, source, i, &r);
         i++)
        loss_forward(e, logits_for_softmax(e, r.x, r.labels), r.labels, view_none(), view_none());
    bool on_host = is_fpdt_loss(e) && e->choices->profile->loss_offloads_input;
    if (on_host)
        source = copy_to_host(e, x_all);
    emit_fp32_sum_begin(e, part, WEIGHT_HEAD);
    for (uint32_t i = 0; i < e->choices->loss_chunks && begin_loss_piece(e, source, i, &r); i++) {
        if (on_host)
            r.x = copy_from_host(e, r.x, r.piece.rows);
        struct view d_logits = logits_gradient_of_piece(e, r.x, r.labels);
        emit_matmul(e, MATMUL_NN, d_logits, weight_view(e, part, WEIGHT_HEAD), view_none(),
                    view_rows(product.buffer, r.piece.begin, r.piece.rows, h), r.piece.rows, h,
                    vocab);
        if (r.piece.begin + r.piece.rows == e->unit.rows && vocabulary_group_plus_1(e, true) > 0)
            tensor_reduce_scatter(e, product, view_whole(e, d_normed), TENSOR_ROWS_BY_SEQUENCE);
        emit_weight_grad(e, part, WEIGHT_HEAD, d_logits, r.x, vocab, h, r.piece.rows);
    }
    e->op_tags.chunk = IR_NONE16;
    e->op_tags.phase = PHASE_BACKWARD;
    emit_fp32_sum_end(e, part, WEIGHT_HEAD);
    e->op_tags.region = REGION_NORM;
    emit_norm_backward(e, part, WEIGHT_FINAL_NORM, view_whole(e, d_normed), view_of_residual(e, x),
                       stats, view_whole(e, dx), e->unit.own_rows, h);
    return dx;
}
