#include "schedule/emit/tensor_parallel.h"

#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/pipeline/pipeline.h"

#include <assert.h>

/* Returns the rows of the longest unit, on all tensor ranks together. */
static int64_t rows_of_longest_unit(const struct choices *c)
{
    int64_t most = 0;
    for (uint32_t s = 0; s < c->subsequences; s++) {
        int64_t tokens =
            pipeline_tokens_before_subsequence(c, s + 1) - pipeline_tokens_before_subsequence(c, s);
        most = tokens > most ? tokens : most;
    }
    return most / c->cp / c->hp * c->micro_batch;
}

static bool tokens_are_replicated(const struct emit *e)
{
    return e->choices->tensor_plan == TENSOR_PLAN_REPLICATED;
}

/* True if the op that is emitted now belongs to a layer compiled with async tensor parallelism. Embedding, head and
 * layers that multiply in 8 or 4 bits do not have it. */
static bool uses_async_plan(const struct emit *e)
{
    return e->choices->tensor_plan == TENSOR_PLAN_ASYNC && e->op_tags.layer != IR_NONE16 &&
           !products_layer_is_narrow(e->choices, e->op_tags.layer);
}

/* Returns the number of pieces in which `own` rows of each tensor rank are gathered or reduced. For
 * TENSOR_ROWS_BY_SEQUENCE each sequence is a piece, since its rows are in order only if it is gathered by itself. For
 * TENSOR_ROWS_IN_ANY_ORDER async TP has a piece for each rank, as PyTorch's _pipelined_all_gather_and_consume() has, if
 * `own` divides evenly; else there is one piece. */
static int64_t piece_count_of_collective(const struct emit *e, int64_t own,
                                         enum tensor_row_order order)
{
    if (order == TENSOR_ROWS_BY_SEQUENCE)
        return e->choices->micro_batch;
    return uses_async_plan(e) && own % (int64_t)e->tensor.size == 0 ? (int64_t)e->tensor.size : 1;
}

void tensor_make_shared_gather_buffer(struct emit *e, bool layers)
{
    e->tensor.shared_gather_buffer.i = IR_NONE;
    if (e->tensor.size == 1)
        return;
    e->tensor.tensor_comm_stream = ir_add_stream(e->ir, "comm.tp", STREAM_COMM);
    if (!layers || !e->choices->profile->tensor_gathers_share_buffer ||
        tensor_keeps_gathered(e->choices))
        return;
    e->tensor.shared_gather_buffer =
        emit_buffer(e, "gathered_rows", CATEGORY_COMMUNICATION, e->choices->dtype,
                    rows_of_longest_unit(e->choices), e->choices->model->hidden);
    e->ir->buffer.flags[e->tensor.shared_gather_buffer.i] |= BUFFER_PERSISTENT;
}

/* Emits one collective from x to y over the tensor group, on its stream. With the profile's switch
 * tensor_comm_after_compute, it starts after all compute ops that were emitted before. */
static op_id emit_tensor_group_collective(struct emit *e, enum work_kind kind, struct view x,
                                          struct view y)
{
    struct work work = {.kind = (uint8_t)kind,
                        .collective = {e->tensor.group, bytes_of_view(e, x), ALGORITHM_AUTO, 0}};
    op_id after =
        e->choices->profile->tensor_comm_after_compute ? e->last_compute : (op_id){IR_NONE};
    return emit_op_after(e, after, e->tensor.tensor_comm_stream, &work, &x, 1, &y, 1);
}

/* Emits the collective from x to y, one op for each piece (piece_count_of_collective()). cols: the columns of x and
 * y. */
static void emit_collective_by_pieces(struct emit *e, enum work_kind kind, struct view x,
                                      struct view y, int64_t cols, enum tensor_row_order order)
{
    const struct view own = x.count < y.count ? x : y;
    int64_t pieces = piece_count_of_collective(e, (int64_t)own.count / cols, order);
    int64_t from = (int64_t)x.count / pieces, to = (int64_t)y.count / pieces;
    for (int64_t i = 0; i < pieces; i++)
        emit_tensor_group_collective(e, kind, view_slice(x, i * from, from),
                                     view_slice(y, i * to, to));
}

/* Emits the copy of a tensor from the order of pieces (piece_count_of_collective()), [pieces, ranks, part], to that of
 * tensor ranks, [ranks, pieces, part] (kind WORK_PACK), or back (WORK_UNPACK). If there is one piece, the copy keeps
 * the order, and takes the same time. */
static struct view reorder_rows(struct emit *e, struct view x, enum work_kind kind,
                                enum tensor_row_order order, int64_t cols)
{
    int64_t ranks = (int64_t)e->tensor.size, count = (int64_t)x.count;
    int64_t sequences = piece_count_of_collective(e, count / cols / ranks, order);
    struct view y =
        emit_tensor(e, "moved", CATEGORY_COMMUNICATION, dtype_of_view(e, x), count / cols, cols);
    if (e->choices->micro_batch == 1 && sequences == 1) /* torch.cat of contiguous chunks */
        return emit_cast(e, x, y);
    return emit_pack_or_unpack(e, kind, x, y, sequences, ranks, count / sequences / ranks);
}

/* Gathers x from all tensor ranks along the first dimension, as PyTorch does, and returns the result. The tokens are
 * the second dimension: with several sequences, torch.cat then copies the parts to join them along it. With one
 * sequence no copy is needed. */
static struct view emit_torch_gather(struct emit *e, struct view x, int64_t cols,
                                     enum tensor_row_order order, const char *stem)
{
    int64_t rows = (int64_t)x.count / cols * (int64_t)e->tensor.size;
    bool copied = e->choices->micro_batch > 1;
    struct view y = emit_tensor(e, copied ? "arrived" : stem, CATEGORY_COMMUNICATION,
                                dtype_of_view(e, x), rows, cols);
    e->awaited_by_next_compute = emit_tensor_group_collective(e, WORK_ALL_GATHER, x, y);
    return copied ? reorder_rows(e, y, WORK_UNPACK, order, cols) : y;
}

static struct view gather_from_tensor_ranks(struct emit *e, struct view x, int64_t cols,
                                            enum tensor_row_order order, const char *stem,
                                            bool held)
{
    if (tensor_uses_dtensor(e->choices) && !uses_async_plan(e))
        return emit_torch_gather(e, x, cols, order, stem);
    int64_t rows = (int64_t)x.count / cols * (int64_t)e->tensor.size;
    struct view y;
    /* The gradient of a weight that is deferred reads the gathered rows after later gathers, so it needs them in a
     * buffer of their own. */
    if (held && e->tensor.shared_gather_buffer.i != IR_NONE && e->weights.deferred == NULL)
        y = view_rows(e->tensor.shared_gather_buffer, 0, rows, cols);
    else
        y = emit_tensor(e, stem, CATEGORY_COMMUNICATION, dtype_of_view(e, x), rows, cols);
    e->narrow.last_gathered_buffer = y.buffer;
    emit_collective_by_pieces(e, WORK_ALL_GATHER, x, y, cols, order);
    return y;
}

struct view tensor_gather_unquantised(struct emit *e, struct view x, int64_t cols,
                                      enum tensor_row_order order, const char *stem)
{
    return e->tensor.size == 1 || tokens_are_replicated(e)
               ? x
               : gather_from_tensor_ranks(e, x, cols, order, stem, false);
}

struct view tensor_gather(struct emit *e, struct view x, int64_t cols, enum tensor_row_order order,
                          const char *stem, bool held)
{
    if (e->tensor.size == 1 || tokens_are_replicated(e))
        return x;
    if (!emit_narrow_gathers_in_8_bits(e))
        return gather_from_tensor_ranks(e, x, cols, order, stem, held);
    const bool gradient = e->op_tags.phase == PHASE_BACKWARD && !held;
    struct view part = emit_narrow_copy_of_own_rows(e, gradient, x, cols,
                                                    e->tensor.tensor_comm_stream, e->tensor.group);
    struct view y = emit_compute_tensor(e, stem, CATEGORY_COMMUNICATION,
                                        (int64_t)x.count / cols * (int64_t)e->tensor.size, cols);
    emit_narrow_set_gathered_copy(e, x, y,
                                  gather_from_tensor_ranks(e, part, cols, order, stem, false));
    return y;
}

struct view tensor_gather_input(struct emit *e, struct view x, int64_t cols,
                                enum tensor_row_order order, int products)
{
    bool each = e->choices->tensor_plan == TENSOR_PLAN_GATHER_PER_LINEAR &&
                e->choices->kernels != KERNELS_COMPILED;
    struct view y = tensor_gather(e, x, cols, order, "norm_all", true);
    for (int i = 1; each && e->tensor.size > 1 && i < products; i++)
        tensor_gather(e, x, cols, order, "norm_again", false);
    return y;
}

void tensor_emit_unread_reduction(struct emit *e, struct view x)
{
    struct view y = emit_tensor_like(e, x, (int64_t)x.count, "reduced_apart", MEMORY_HBM);
    e->awaited_by_next_compute = emit_tensor_group_collective(e, WORK_ALL_REDUCE, x, y);
}

void tensor_gather_to(struct emit *e, struct view x, struct view y)
{
    assert(e->tensor.size > 1);
    emit_tensor_group_collective(e, WORK_ALL_GATHER, x, y);
}

struct view tensor_deliver_own_part(struct emit *e, struct view x, const char *stem)
{
    assert(e->tensor.size > 1);
    struct view y =
        emit_tensor(e, stem, CATEGORY_COMMUNICATION, dtype_of_view(e, x), (int64_t)x.count, 0);
    emit_tensor_group_collective(e, WORK_ALL_TO_ALL, x, y);
    return view_slice(y, 0, (int64_t)(x.count / e->tensor.size));
}

struct view tensor_product_output(struct emit *e, struct view y, int64_t cols, const char *stem)
{
    if (e->tensor.size == 1 || tokens_are_replicated(e))
        return y;
    return emit_compute_tensor(e, stem, CATEGORY_COMMUNICATION,
                               (int64_t)y.count / cols * (int64_t)e->tensor.size, cols);
}

/* Writes this rank's rows of the sum of x to y, as PyTorch's reduce_scatter_tensor() does along dimension 1: a copy
 * first brings the rows of each rank together. */
static void emit_torch_reduce_scatter(struct emit *e, struct view x, struct view y, int64_t cols,
                                      enum tensor_row_order order)
{
    e->awaited_by_next_compute = emit_tensor_group_collective(
        e, WORK_REDUCE_SCATTER, reorder_rows(e, x, WORK_PACK, order, cols), y);
}

/* Writes the sum over tensor ranks of this rank's rows of x to y, piece by piece: an all-to-all sends each rank its
 * rows from every rank, and a compute op adds them (_pipelined_produce_and_all2all() and reduce_partials()). */
static void emit_send_rows_and_sum(struct emit *e, struct view x, struct view y, int64_t cols,
                                   enum tensor_row_order order)
{
    int64_t pieces = piece_count_of_collective(e, (int64_t)y.count / cols, order),
            ranks = (int64_t)e->tensor.size;
    int64_t from = (int64_t)x.count / pieces, to = (int64_t)y.count / pieces;
    struct view partials = emit_tensor(e, "partials", CATEGORY_COMMUNICATION, dtype_of_view(e, x),
                                       (int64_t)x.count / cols, cols);
    struct work sum = {.kind = WORK_HEAD_REDUCE, .heads = {1, 1, to, ranks}};
    for (int64_t i = 0; i < pieces; i++)
        emit_tensor_group_collective(e, WORK_ALL_TO_ALL, view_slice(x, i * from, from),
                                     view_slice(partials, i * from, from));
    for (int64_t i = 0; i < pieces; i++) {
        struct view of_piece = view_slice(partials, i * from, from),
                    own = view_slice(y, i * to, to);
        emit_op(e, e->stream.compute, &sum, &of_piece, 1, &own, 1);
    }
}

void tensor_reduce_scatter(struct emit *e, struct view x, struct view y,
                           enum tensor_row_order order)
{
    tensor_reduce_scatter_rows_of_width(e, x, y, e->choices->model->hidden, order);
}

void tensor_reduce_scatter_rows_of_width(struct emit *e, struct view x, struct view y, int64_t cols,
                                         enum tensor_row_order order)
{
    if (e->tensor.size == 1 || tokens_are_replicated(e))
        assert(x.buffer.i == y.buffer.i && "a product that is not cut writes its result");
    if (e->tensor.size == 1)
        return;
    if (tokens_are_replicated(e))
        e->awaited_by_next_compute = emit_tensor_group_collective(e, WORK_ALL_REDUCE, x, y);
    else if (uses_async_plan(e))
        emit_send_rows_and_sum(e, x, y, cols, order);
    else if (tensor_uses_dtensor(e->choices))
        emit_torch_reduce_scatter(e, x, y, cols, order);
    else
        emit_collective_by_pieces(e, WORK_REDUCE_SCATTER, x, y, cols, order);
}

void tensor_matmul(struct emit *e, enum tensor_row_order order, int64_t rows, enum matmul_form form,
                   struct view a, struct view b, struct view bias, struct view y, int64_t m,
                   int64_t n, int64_t k)
{
    int64_t pieces = 1;
    if (e->tensor.size > 1 && uses_async_plan(e)) {
        const int64_t all = piece_count_of_collective(e, rows / (int64_t)e->tensor.size, order),
                      of_piece = rows / all;
        pieces = m % of_piece == 0 ? m / of_piece : 1;
    }
    if (pieces == 1)
        emit_matmul(e, form, a, b, bias, y, m, n, k);
    for (int64_t i = 0, part = m / pieces; i < pieces && pieces > 1; i++)
        emit_matmul(e, form, view_slice(a, i * part * k, part * k), b, bias,
                    view_slice(y, i * part * n, part * n), part, n, k);
}

void tensor_reduce_input_gradient(struct emit *e, struct view x, struct view y,
                                  enum tensor_row_order order, int products)
{
    bool each =
        e->choices->tensor_plan == TENSOR_PLAN_GATHER_PER_LINEAR || tokens_are_replicated(e);
    for (int i = 1; each && e->tensor.size > 1 && i < products; i++) {
        struct view dropped = emit_compute_tensor(e, "dx_part", CATEGORY_COMMUNICATION,
                                                  (int64_t)y.count / e->choices->model->hidden,
                                                  e->choices->model->hidden);
        if (tokens_are_replicated(e))
            e->awaited_by_next_compute =
                emit_tensor_group_collective(e, WORK_ALL_REDUCE, x, dropped);
        else
            tensor_reduce_scatter(e, x, dropped, order);
    }
    /* inductor fuses a product with its reduce-scatter, but not if the input of the reduce-scatter is the sum of
     * several products (_find_producer_matmul()) */
    if (e->tensor.size > 1 && uses_async_plan(e))
        emit_torch_reduce_scatter(e, x, y, e->choices->model->hidden, order);
    else
        tensor_reduce_scatter(e, x, y, order);
}
