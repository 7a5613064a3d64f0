/* The last pass: rows in list order, waits, free sets, offsets.
 *
 * Waits are inferred from the data. Every buffer keeps the accesses that a later op may have to
 * wait for: writes, and reads since. An op waits for each overlapping access of another stream
 * that conflicts with its own, unless the clocks say that it is ordered already. Accesses that a
 * later access of the same stream or a covering write has superseded are forgotten, so the lists
 * stay short and the pass is near-linear. */
#include "schedule/lifetimes.h"
#include "schedule/order.h"
#include "schedule/program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct access {
    uint32_t op, next; /* id in the finished list; next access of the buffer, or IR_NONE */
    uint64_t begin, end;
    uint8_t stream, write;
};

struct finish {
    const struct emit *e;
    const struct ir *in;
    struct ir *out;
    struct order order;
    uint32_t *buffer;     /* old id -> new id, or IR_NONE */
    uint32_t *op;         /* old id -> new id */
    uint32_t *held_until; /* old op id -> the op it is held back by (old id), or IR_NONE */
    uint32_t *head;       /* new buffer id -> first access */
    struct access *access;
    uint32_t access_count, access_capacity;
    uint32_t spare; /* forgotten accesses, linked */
    uint32_t *wait; /* of the op at hand, new ids */
    op_id *kept;    /* those of them that no other implies */
    uint32_t wait_count, wait_capacity;
};

static void copy_tables(const struct ir *in, struct ir *out)
{
    out->mesh = in->mesh;
    out->layout = in->layout;
    out->global_batch = in->global_batch;
    out->micro_batch = in->micro_batch;
    out->dtype = in->dtype;
    for (uint32_t i = 0; i < in->group_count; i++)
        ir_add_group(out, in->group[i].name, in->group[i].axis, in->group[i].axis_count);
    for (uint32_t i = 0; i < in->guard_count; i++)
        ir_add_guard(out, in->guard[i]);
    for (uint32_t i = 0; i < in->stream_count; i++)
        ir_add_stream(out, in->stream[i].name, in->stream[i].stream_class);
    for (uint32_t i = 0; i < in->tensor_count; i++)
        ir_add_tensor(out, in->tensor[i]);
    for (uint32_t i = 0; i < in->bundle_count; i++)
        ir_add_bundle(out, in->bundle[i]);
    for (uint32_t i = 0; i < in->binding_count; i++)
        ir_add_binding(out, in->binding[i]);
}

static buffer_id carry_buffer(struct finish *f, uint32_t i)
{
    if (f->buffer[i] != IR_NONE)
        return (buffer_id){f->buffer[i]};
    const struct buffer_table *table = &f->in->buffer;
    struct buffer_desc desc = {
        .stem = f->in->word[table->stem[i]],
        .number = IR_NONE,
        .memory = table->memory[i],
        .dtype = table->dtype[i],
        .category = table->category[i],
        .flags = table->flags[i],
        .role = table->role[i],
        .layer = table->layer[i],
        .binding = table->binding[i],
        .dims = f->in->dims[table->dims[i]],
    };
    buffer_id id = ir_add_buffer(f->out, &desc);
    f->buffer[i] = id.i;
    f->head[id.i] = IR_NONE;
    return id;
}

static void add_wait(struct finish *f, uint32_t op)
{
    for (uint32_t i = 0; i < f->wait_count; i++)
        if (f->wait[i] == op)
            return;
    if (f->wait_count == f->wait_capacity) {
        f->wait_capacity =
            (uint32_t)heap_next_capacity(f->wait_capacity, (size_t)f->wait_count + 1);
        f->wait = heap_realloc(f->wait, f->wait_capacity, sizeof *f->wait);
        f->kept = heap_realloc(f->kept, f->wait_capacity, sizeof *f->kept);
    }
    f->wait[f->wait_count++] = op;
}

/* Collects the accesses that conflict with one to come, and that are not ordered before it yet. */
static void conflicts(struct finish *f, struct view view, bool write)
{
    uint64_t end = view.begin + view.count;
    for (uint32_t i = f->head[view.buffer.i]; i != IR_NONE; i = f->access[i].next) {
        const struct access *a = &f->access[i];
        if ((write || a->write) && a->begin < end && view.begin < a->end &&
            !order_covers(&f->order, a->op))
            add_wait(f, a->op);
    }
}

static void note_access(struct finish *f, struct view view, uint8_t stream, uint32_t op, bool write)
{
    uint64_t end = view.begin + view.count;
    uint32_t *link = &f->head[view.buffer.i];
    while (*link != IR_NONE) {
        struct access *a = &f->access[*link];
        bool inside = view.begin <= a->begin && a->end <= end;
        if (inside && (write || (!a->write && a->stream == stream))) {
            uint32_t gone = *link;
            *link = a->next;
            a->next = f->spare;
            f->spare = gone;
        } else {
            link = &a->next;
        }
    }
    uint32_t row = f->spare;
    if (row != IR_NONE) {
        f->spare = f->access[row].next;
    } else {
        if (f->access_count == f->access_capacity) {
            f->access_capacity =
                (uint32_t)heap_next_capacity(f->access_capacity, (size_t)f->access_count + 1);
            f->access = heap_realloc(f->access, f->access_capacity, sizeof *f->access);
        }
        row = f->access_count++;
    }
    f->access[row] = (struct access){op, f->head[view.buffer.i], view.begin, end, stream, write};
    f->head[view.buffer.i] = row;
}

static enum order_place place_of(const struct work *work)
{
    switch (work->kind) {
    case WORK_HOST_SYNC:
        return ORDER_SYNC;
    case WORK_BARRIER:
        return ORDER_HOST;
    case WORK_H2D:
    case WORK_D2H:
        return work->copy.blocking ? ORDER_BLOCKING : ORDER_STREAM;
    default:
        return ORDER_STREAM;
    }
}

/* Joins waits from the latest op to the earliest, so that none is kept which another implies. */
static uint32_t settle_waits(struct finish *f)
{
    op_id *kept = f->kept;
    uint32_t count = 0;
    for (uint32_t i = 1; i < f->wait_count; i++) /* few: insertion sort, descending */
        for (uint32_t k = i; k > 0 && f->wait[k - 1] < f->wait[k]; k--) {
            uint32_t swap = f->wait[k];
            f->wait[k] = f->wait[k - 1];
            f->wait[k - 1] = swap;
        }
    for (uint32_t i = 0; i < f->wait_count; i++) {
        if (order_covers(&f->order, f->wait[i]))
            continue;
        order_join(&f->order, f->wait[i]);
        kept[count++].i = f->wait[i];
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        op_id swap = kept[i];
        kept[i] = kept[count - 1 - i];
        kept[count - 1 - i] = swap;
    }
    return count;
}

static void carry_op(struct finish *f, uint32_t op)
{
    const struct ir *in = f->in;
    struct view view[16];
    uint32_t reads = in->op.reads[op], operands = reads + in->op.writes[op];
    uint8_t stream = in->op.stream[op];
    const struct work *work = ir_work(in, op);
    assert(operands <= ARRAY_LEN(view));

    order_start(&f->order, place_of(work), stream);
    f->wait_count = 0;
    for (uint32_t k = 0; k < in->op.wait_count[op]; k++)
        add_wait(f, f->op[in->wait[in->op.wait_begin[op] + k].i]);
    if (f->held_until[op] != IR_NONE)
        add_wait(f, f->op[f->held_until[op]]);
    for (uint32_t k = 0; k < operands; k++) {
        view[k] = ir_view(in, in->operand[in->op.operand_begin[op] + k]);
        view[k].buffer = carry_buffer(f, view[k].buffer.i);
        conflicts(f, view[k], k >= reads);
    }
    struct op_desc desc = {
        .work = *work,
        .stream = stream,
        .read_count = (uint8_t)reads,
        .write_count = (uint8_t)(operands - reads),
        .guard = in->op.guard[op],
        .tags = {in->op.phase[op], in->op.region[op], in->op.layer[op], in->op.chunk[op],
                 in->op.step[op], in->op.micro[op]},
        .read = view,
        .write = view + reads,
    };
    desc.wait_count = (uint16_t)settle_waits(f);
    desc.wait = f->kept;
    order_finish(&f->order);
    uint32_t id = ir_add_op(f->out, &desc).i;
    f->op[op] = id;
    for (uint32_t k = 0; k < operands; k++)
        note_access(f, view[k], stream, id, k >= reads);
}

/* Adds ops to free sets: what an implementation holds longer than its last use. */
static void add_holds(struct finish *f)
{
    struct ir *out = f->out;
    for (uint32_t i = 0; i < f->e->hold_count; i++) {
        uint32_t buffer = f->buffer[f->e->hold[i].buffer.i], until = f->op[f->e->hold[i].until.i];
        uint32_t begin = out->buffer.free_begin[buffer], count = out->buffer.free_count[buffer];
        if (out->free_op_count + count + 1 > out->free_op_capacity) {
            out->free_op_capacity = (uint32_t)heap_next_capacity(
                out->free_op_capacity, (size_t)out->free_op_count + count + 1);
            out->free_op = heap_realloc(out->free_op, out->free_op_capacity, sizeof *out->free_op);
        }
        out->buffer.free_begin[buffer] = out->free_op_count;
        for (uint32_t k = 0; k < count; k++)
            if (out->free_op[begin + k].i != until)
                out->free_op[out->free_op_count++] = out->free_op[begin + k];
        out->free_op[out->free_op_count++].i = until;
        out->buffer.free_count[buffer] =
            (uint16_t)(out->free_op_count - out->buffer.free_begin[buffer]);
    }
}

void finish(const struct emit *e, const struct program *program, struct ir *out)
{
    const struct ir *in = e->ir;
    struct finish f = {
        .e = e,
        .in = in,
        .out = out,
        .buffer = heap_alloc(in->buffer.count, sizeof *f.buffer),
        .head = heap_alloc(in->buffer.count, sizeof *f.head),
        .op = heap_alloc(in->op.count, sizeof *f.op),
        .held_until = heap_alloc(in->op.count, sizeof *f.held_until),
        .spare = IR_NONE,
    };
    memset(f.buffer, 0xff, in->buffer.count * sizeof *f.buffer);
    memset(f.held_until, 0xff, in->op.count * sizeof *f.held_until);
    for (uint32_t i = 0; i < e->hold_back_count; i++)
        f.held_until[e->hold_back[i].op.i] = e->hold_back[i].until.i;

    copy_tables(in, out);
    order_begin(&f.order, in->stream_count, 0);
    for (uint32_t b = 0; b < in->buffer.count; b++) /* states first, in the order of their making */
        if (lifetimes_persistent(in, b))
            carry_buffer(&f, b);
    for (uint32_t i = 0; i < program->count; i++)
        carry_op(&f, program->op[i]);
    order_release(&f.order);
    lifetimes_free_sets(out);
    add_holds(&f);
    lifetimes_plan(out, LIFETIMES_ALIGNMENT, NULL);
    ir_shrink(out);
    free(f.buffer);
    free(f.head);
    free(f.op);
    free(f.held_until);
    free(f.access);
    free(f.wait);
    free(f.kept);
}
