#include "schedule/attention/elementwise.h"

struct view emit_tensor(struct emit *e, const char *stem, enum category category, enum dtype dtype,
                        int64_t d0, int64_t d1)
{
    return view_all(e, emit_buffer(e, stem, category, dtype, d0, d1));
}

struct view emit_computed(struct emit *e, const char *stem, enum category category, int64_t d0,
                          int64_t d1)
{
    return emit_tensor(e, stem, category, (enum dtype)e->choices->dtype, d0, d1);
}

buffer_id emit_bound(struct emit *e, const char *stem, struct binding binding,
                     enum category category, enum dtype dtype, int64_t count)
{
    buffer_id buffer = emit_buffer(e, stem, category, dtype, count, 0);
    e->ir->buffer.binding[buffer.i] = ir_add_binding(e->ir, binding);
    e->ir->buffer.flags[buffer.i] = BUFFER_PERSISTENT;
    return buffer;
}

enum dtype dtype_of(const struct emit *e, struct view x)
{
    return (enum dtype)e->ir->buffer.dtype[x.buffer.i];
}

int64_t bytes_of(const struct emit *e, struct view x)
{
    return (int64_t)(x.count * dtype_bytes(dtype_of(e, x)));
}

struct view emit_zeros(struct emit *e, struct view x)
{
    struct work work = {.kind = WORK_FILL, .elements = {(int64_t)x.count, 0}};
    emit_op(e, e->stream.compute, &work, NULL, 0, &x, 1);
    return x;
}

struct view emit_cast(struct emit *e, struct view x, struct view y)
{
    struct work work = {.kind = WORK_CAST, .elements = {(int64_t)x.count, 0}};
    emit_op(e, e->stream.compute, &work, &x, 1, &y, 1);
    return y;
}

struct view emit_as(struct emit *e, struct view x, enum dtype dtype, const char *stem,
                    enum category category)
{
    if (dtype_of(e, x) == dtype)
        return x;
    return emit_cast(e, x, emit_tensor(e, stem, category, dtype, (int64_t)x.count, 0));
}

struct view emit_pack(struct emit *e, enum work_kind kind, struct view x, struct view y,
                      int64_t rows, int64_t parts, int64_t width)
{
    struct work work = {.kind = (uint8_t)kind, .pack = {rows, parts, {width, 0, 0}}};
    emit_op(e, e->stream.compute, &work, &x, 1, &y, 1);
    return y;
}

op_id emit_message(struct emit *e, enum work_kind kind, uint8_t stream, int64_t by, struct view x,
                   int64_t channel)
{
    bool sends = kind == WORK_SEND;
    struct work work = {.kind = (uint8_t)kind,
                        .p2p = {e->group.pp, by, bytes_of(e, x), channel, 0}};
    return emit_op(e, stream, &work, &x, sends, &x, !sends);
}

void emit_wait(struct emit *e, uint8_t stream)
{
    struct work work = {.kind = WORK_HOST_SYNC};
    emit_op(e, stream, &work, NULL, 0, NULL, 0);
}
