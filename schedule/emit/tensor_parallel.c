#include "schedule/emit/tensor_parallel.h"

#include "schedule/choices/profile.h"
#include "schedule/pipeline/pipeline.h"

#include <assert.h>

/* Returns the rows of the longest unit. */
static int64_t most_rows(const struct choices *c)
{
    int64_t most = 0;
    for (uint32_t s = 0; s < c->subsequences; s++) {
        int64_t tokens = pipeline_prefix(c, s + 1) - pipeline_prefix(c, s);
        most = tokens > most ? tokens : most;
    }
    return most / c->cp / c->hp * c->micro_batch;
}

void tensor_setup(struct emit *e, bool layers)
{
    e->tensor.held.i = IR_NONE;
    if (e->tensor.size == 1)
        return;
    e->tensor.comm = ir_add_stream(e->ir, "comm.tp", STREAM_COMM);
    if (!layers || !e->choices->profile->tensor_buffer)
        return;
    e->tensor.held = emit_buffer(e, "gathered_rows", CATEGORY_COMMUNICATION, e->choices->dtype,
                                 most_rows(e->choices), e->choices->model->hidden);
    e->ir->buffer.flags[e->tensor.held.i] |= BUFFER_PERSISTENT;
}

/* Emits a collective of the tensor group: one for each sequence of a micro-batch, or one for all rows. In an
 * implementation that launches it from its compute stream, it starts after all ops that were launched there before. */
static void collective(struct emit *e, enum work_kind kind, struct view x, struct view y,
                       enum tensor_rows order)
{
    int64_t pieces = order == TENSOR_SEQUENCES ? e->choices->micro_batch : 1;
    int64_t from = (int64_t)x.count / pieces, to = (int64_t)y.count / pieces;
    int64_t each = (int64_t)dtype_bytes(dtype_of(e, x));
    struct work work = {.kind = (uint8_t)kind,
                        .collective = {e->tensor.group, from * each, ALGORITHM_AUTO, 0}};
    op_id after = e->choices->profile->tensor_after ? e->last_compute : (op_id){IR_NONE};
    for (int64_t i = 0; i < pieces; i++) {
        struct view read = view_part(x, i * from, from), write = view_part(y, i * to, to);
        emit_op_after(e, after, e->tensor.comm, &work, &read, 1, &write, 1);
    }
}

struct view tensor_gather(struct emit *e, struct view x, int64_t cols, enum tensor_rows order,
                          const char *stem, bool held)
{
    if (e->tensor.size == 1)
        return x;
    int64_t rows = (int64_t)x.count / cols * (int64_t)e->tensor.size;
    struct view y;
    /* gradients of weights that are put off read it when others have been gathered since */
    if (held && e->tensor.held.i != IR_NONE && e->weights.defers == NULL)
        y = view_rows(e->tensor.held, 0, rows, cols);
    else
        y = emit_computed(e, stem, CATEGORY_COMMUNICATION, rows, cols);
    collective(e, WORK_ALL_GATHER, x, y, order);
    return y;
}

void tensor_gather_to(struct emit *e, struct view x, struct view y)
{
    assert(e->tensor.size > 1);
    collective(e, WORK_ALL_GATHER, x, y, TENSOR_ANY);
}

struct view tensor_own(struct emit *e, struct view x, const char *stem)
{
    assert(e->tensor.size > 1);
    struct view y =
        emit_tensor(e, stem, CATEGORY_COMMUNICATION, dtype_of(e, x), (int64_t)x.count, 0);
    collective(e, WORK_ALL_TO_ALL, x, y, TENSOR_ANY);
    return view_part(y, 0, (int64_t)(x.count / e->tensor.size));
}

struct view tensor_product(struct emit *e, struct view y, int64_t cols, const char *stem)
{
    if (e->tensor.size == 1)
        return y;
    return emit_computed(e, stem, CATEGORY_COMMUNICATION,
                         (int64_t)y.count / cols * (int64_t)e->tensor.size, cols);
}

void tensor_scatter(struct emit *e, struct view x, struct view y, enum tensor_rows order)
{
    if (e->tensor.size > 1)
        collective(e, WORK_REDUCE_SCATTER, x, y, order);
    else
        assert(x.buffer.i == y.buffer.i && "with one tensor rank a product writes its result");
}
