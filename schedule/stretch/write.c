/* The long list. Blocks that are there are written with what they refer to moved to its place, and so
 * are the first two copies; of the others every number goes on as from the one to the other. */
#include "schedule/stretch/stretch.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    const struct stretch *s;
    const struct ir *in;
    struct ir *out;
    uint32_t *next_number;   /* per stem */
    uint32_t *range, *stamp; /* per range of *in: its row in the block being written, if stamped */
    uint32_t written;        /* blocks: the stamp */
    uint32_t operands;       /* of the block being written */
};

/* Where the rows of a block begin. */
struct mark {
    uint32_t op, buffer, operand, wait, range, free_op;
};

static struct mark here(const struct ir *ir)
{
    return (struct mark){ir->op.count,   ir->buffer.count, ir->operand_count,
                         ir->wait_count, ir->range_count,  ir->free_op_count};
}

/* ---- a block, or a copy of it, moved ---- */

static uint16_t layer_of(const struct stretch *s, struct stretch_from from, uint16_t layer)
{
    if (layer == IR_NONE16)
        return layer;
    uint32_t v = 0;
    while (layer - s->chunk[v].first >= s->chunk[v].layers)
        v++;
    return (uint16_t)(s->chunk[v].whole_first + (layer - s->chunk[v].first) +
                      stretch_rise(s, from) * s->left_out.storey);
}

/* `rows` elements of a column from row `from` on, behind those that are written. */
#define COPY(table, column, from, rows)                                                            \
    memcpy(w->out->table.column + w->out->table.count, w->in->table.column + (from),               \
           (rows) * sizeof *w->in->table.column)

/* All but layers and where spans begin. */
static void copy_op_columns(struct writer *w, const struct stretch_block *b)
{
    COPY(op, kind, b->op, b->ops);
    COPY(op, stream, b->op, b->ops);
    COPY(op, phase, b->op, b->ops);
    COPY(op, region, b->op, b->ops);
    COPY(op, reads, b->op, b->ops);
    COPY(op, writes, b->op, b->ops);
    COPY(op, chunk, b->op, b->ops);
    COPY(op, step, b->op, b->ops);
    COPY(op, micro, b->op, b->ops);
    COPY(op, guard, b->op, b->ops);
    COPY(op, wait_count, b->op, b->ops);
    COPY(op, shape, b->op, b->ops);
}

static void write_op_columns(struct writer *w, const struct stretch_block *b)
{
    copy_op_columns(w, b);
    uint32_t operand = w->out->operand_count, wait = w->out->wait_count, to = w->out->op.count;
    for (uint32_t i = b->op; i < b->op + b->ops; i++, to++) {
        w->out->op.operand_begin[to] = operand;
        w->out->op.wait_begin[to] = wait;
        operand += (uint32_t)w->in->op.reads[i] + w->in->op.writes[i];
        wait += w->in->op.wait_count[i];
    }
    w->operands = operand - w->out->operand_count;
}

static void write_layers(struct writer *w, struct stretch_from from)
{
    const struct stretch_block *b = &w->s->block[from.block];
    const uint16_t *in = w->in->op.layer + b->op;
    uint16_t *out = w->out->op.layer + w->out->op.count;
    for (uint32_t i = 0; i < b->ops; i++)
        out[i] = i > 0 && in[i] == in[i - 1] ? out[i - 1] : layer_of(w->s, from, in[i]);
}

/* The place of a range's buffer, in a row of its own, which all of the block's operands share that are that
 * range; IR_NONE: nobody can tell. */
static uint32_t write_range(struct writer *w, struct stretch_from from, uint32_t row, uint32_t like)
{
    struct ir *out = w->out;
    if (w->stamp[row] != w->written) {
        uint32_t to = stretch_buffer(w->s, from, w->in->range[row].buffer.i,
                                     like != IR_NONE ? ir_buffer_of(w->in, like) : IR_NONE);
        if (to == IR_NONE)
            return IR_NONE;
        w->stamp[row] = w->written;
        w->range[row] = out->range_count;
        out->range[out->range_count++] = (struct ir_range){{to}, w->in->range[row].extent};
    }
    return w->range[row] | IR_RANGE;
}

/* Most references are to what a block has of its own, as its neighbour's in that place are to what that one
 * has. Of a block that is copied all are; one that has no like means itself. */
struct own {
    uint32_t begin, rows; /* of the block, in the short list */
    uint32_t to, next; /* so much further in the long list; and for the neighbour (without one 0) */
};

static struct own own_buffers(const struct writer *w, struct stretch_from from, uint32_t like)
{
    const struct stretch_block *b = &w->s->block[from.block];
    uint32_t next = like != IR_NONE ? w->s->block[like].buffer - b->buffer : 0;
    return (struct own){b->buffer, b->buffers, b->to_buffer + from.copy * b->buffers - b->buffer,
                        next};
}

static struct own own_ops(const struct writer *w, struct stretch_from from, uint32_t like)
{
    const struct stretch_block *b = &w->s->block[from.block];
    uint32_t next = like != IR_NONE ? w->s->block[like].op - b->op : 0;
    return (struct own){b->op, b->ops, b->to_op + from.copy * b->ops - b->op, next};
}

/* like: what the neighbour has in that place; without a neighbour the same. */
static bool is_own(const struct own *own, uint32_t id, uint32_t like)
{
    return id - own->begin < own->rows && like - id == own->next;
}

/* Rows of a block's ops, and of its neighbour's, have their operands one behind the other, as many. */
static bool write_operands(struct writer *w, struct stretch_from from, uint32_t like)
{
    const struct stretch_block *b = &w->s->block[from.block];
    const struct ir *in = w->in;
    struct ir *out = w->out;
    const uint32_t *operand = in->operand + in->op.operand_begin[b->op];
    bool has_like = like != IR_NONE;
    const uint32_t *likes =
        has_like ? in->operand + in->op.operand_begin[w->s->block[like].op] : operand;
    uint32_t *written = out->operand + out->operand_count, count = w->operands;
    struct own own = own_buffers(w, from, like);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to;
        if (operand[i] & IR_RANGE)
            to = write_range(w, from, operand[i] & ~IR_RANGE, has_like ? likes[i] : IR_NONE);
        else if (is_own(&own, operand[i], likes[i]))
            to = operand[i] + own.to;
        else
            to = stretch_buffer(w->s, from, operand[i],
                                has_like ? ir_buffer_of(in, likes[i]) : IR_NONE);
        if (to == IR_NONE)
            return false;
        written[i] = to;
    }
    out->operand_count += count;
    return true;
}

static bool write_waits(struct writer *w, struct stretch_from from, uint32_t like)
{
    const struct stretch_block *b = &w->s->block[from.block];
    for (uint32_t i = 0; i < b->ops; i++) {
        const op_id *wait = w->in->wait + w->in->op.wait_begin[b->op + i], *likes = NULL;
        uint32_t other = like != IR_NONE ? w->s->block[like].op + i : IR_NONE;
        if (other != IR_NONE && w->in->op.wait_count[other] == w->in->op.wait_count[b->op + i])
            likes = w->in->wait + w->in->op.wait_begin[other];
        for (uint32_t k = 0; k < w->in->op.wait_count[b->op + i]; k++) {
            uint32_t to = stretch_op(w->s, from, wait[k].i, likes ? likes[k].i : IR_NONE);
            if (to == IR_NONE)
                return false;
            w->out->wait[w->out->wait_count++].i = to;
        }
    }
    return true;
}

static void number_buffers(struct writer *w, uint32_t count)
{
    struct buffer_table *t = &w->out->buffer;
    for (uint32_t to = t->count; to < t->count + count; to++) {
        t->number[to] = w->next_number[t->stem[to]]++;
        t->offset[to] = UINT64_MAX;
    }
}

/* All but numbers and offsets. */
static void copy_buffer_columns(struct writer *w, uint32_t at, uint32_t count)
{
    COPY(buffer, memory, at, count);
    COPY(buffer, dtype, at, count);
    COPY(buffer, category, at, count);
    COPY(buffer, flags, at, count);
    COPY(buffer, role, at, count);
    COPY(buffer, binding, at, count);
    COPY(buffer, dims, at, count);
    COPY(buffer, stem, at, count);
    COPY(buffer, layer, at, count);
    COPY(buffer, free_count, at, count);
}

static void write_buffer_columns(struct writer *w, uint32_t at, uint32_t count)
{
    copy_buffer_columns(w, at, count);
    number_buffers(w, count);
}

static bool write_buffers(struct writer *w, struct stretch_from from, uint32_t like)
{
    const struct stretch_block *b = &w->s->block[from.block];
    const struct buffer_table *in = &w->in->buffer;
    struct ir *out = w->out;
    struct own own = own_ops(w, from, like);
    write_buffer_columns(w, b->buffer, b->buffers);
    for (uint32_t i = 0; i < b->buffers; i++) {
        uint32_t buffer = b->buffer + i, to = out->buffer.count + i;
        uint32_t other = like != IR_NONE ? w->s->block[like].buffer + i : IR_NONE;
        out->buffer.layer[to] = i > 0 && in->layer[buffer] == in->layer[buffer - 1]
                                    ? out->buffer.layer[to - 1]
                                    : layer_of(w->s, from, in->layer[buffer]);
        uint32_t last = in->free_op[buffer].i, same = other != IR_NONE ? other : buffer;
        if (in->free_count[buffer] == 1 && in->free_count[same] == 1 &&
            is_own(&own, last, in->free_op[same].i)) {
            out->buffer.free_op[to].i = last + own.to; /* most have one, of the block's own ops */
            continue;
        }
        const op_id *set = ir_free_set(w->in, buffer), *likes = NULL;
        if (other != IR_NONE && in->free_count[other] == in->free_count[buffer])
            likes = ir_free_set(w->in, other);
        ir_open_free_set(out, to, in->free_count[buffer]);
        op_id *moved = ir_free_set(out, to);
        for (uint32_t k = 0; k < in->free_count[buffer]; k++) {
            moved[k].i = stretch_op(w->s, from, set[k].i, likes ? likes[k].i : IR_NONE);
            if (moved[k].i == IR_NONE)
                return false;
        }
    }
    return true;
}

static bool write_block(struct writer *w, struct stretch_from from)
{
    const struct stretch_block *b = &w->s->block[from.block];
    uint32_t like = w->s->block[from.block].like;
    w->written++;
    write_op_columns(w, b);
    write_layers(w, from);
    if (!write_operands(w, from, like) || !write_waits(w, from, like) ||
        !write_buffers(w, from, like))
        return false;
    w->out->op.count += b->ops;
    w->out->buffer.count += b->buffers;
    return true;
}

/* ---- the copies behind the second ---- */

/* Rows from `a` on, and those like them from `b` on: the next ones. Ids that differ go on differing. By
 * strips, which are vectors. */
enum { STRIP = 8 };

static void go_on(uint32_t *row, uint32_t to, uint32_t a, uint32_t b)
{
    const uint32_t *restrict from = row + a, *restrict next = row + b;
    uint32_t *restrict end = row + to, count = to - b, i = 0;
    for (; i + STRIP <= count; i += STRIP)
        for (uint32_t j = i; j < i + STRIP; j++)
            end[j] = 2 * next[j] - from[j];
    for (; i < count; i++)
        end[i] = 2 * next[i] - from[i];
}

/* There need be none, nor a row then. */
static void go_on_ops(op_id *row, uint32_t to, uint32_t a, uint32_t b)
{
    if (to > b)
        go_on(&row->i, to, a, b);
}

static void go_on_layers(uint16_t *row, uint32_t to, uint32_t a, uint32_t b)
{
    const uint16_t *restrict from = row + a, *restrict next = row + b;
    uint16_t *restrict end = row + to;
    uint32_t count = to - b, i = 0;
    for (; i + STRIP <= count; i += STRIP)
        for (uint32_t j = i; j < i + STRIP; j++)
            end[j] = (uint16_t)(2 * next[j] - from[j]);
    for (; i < count; i++)
        end[i] = (uint16_t)(2 * next[i] - from[i]);
}

static bool same_ids(const op_id *row, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < b - a; i++)
        if (row[a + i].i != row[b + i].i)
            return false;
    return true;
}

/* Every column is long, and is copied or goes on by itself. */
static void copy_block(struct writer *w, uint32_t block, const struct mark *a, const struct mark *b)
{
    const struct stretch_block *of = &w->s->block[block];
    struct ir *out = w->out;
    struct mark to = here(out);
    copy_op_columns(w, of);
    go_on(out->op.operand_begin, to.op, a->op, b->op);
    go_on(out->op.wait_begin, to.op, a->op, b->op);
    go_on_layers(out->op.layer, to.op, a->op, b->op);
    go_on(out->operand, to.operand, a->operand, b->operand);
    go_on_ops(out->wait, to.wait, a->wait, b->wait);
    for (uint32_t i = 0; i < to.range - b->range; i++) {
        struct ir_range range = out->range[b->range + i];
        range.buffer.i = 2 * range.buffer.i - out->range[a->range + i].buffer.i;
        out->range[to.range + i] = range;
    }
    copy_buffer_columns(w, of->buffer, of->buffers);
    go_on(out->buffer.number, to.buffer, a->buffer, b->buffer);
    go_on_layers(out->buffer.layer, to.buffer, a->buffer, b->buffer);
    go_on_ops(out->buffer.free_op, to.buffer, a->buffer, b->buffer); /* or where sets begin */
    go_on_ops(out->free_op, to.free_op, a->free_op, b->free_op);
    for (uint32_t i = to.buffer; i < to.buffer + of->buffers; i++)
        out->buffer.offset[i] = UINT64_MAX;
    out->op.count += of->ops;
    out->buffer.count += of->buffers;
    out->operand_count += to.operand - b->operand;
    out->wait_count += to.wait - b->wait;
    out->range_count += to.range - b->range;
    out->free_op_count += to.free_op - b->free_op;
}

/* Does the last copy mean what it would mean if it had been written by itself? */
static bool last_is_right(struct writer *w, uint32_t block, const struct mark *last)
{
    struct ir *out = w->out;
    struct mark end = here(out);
    if (!write_block(w, (struct stretch_from){block, w->s->left_out.storeys, false}))
        return false;
    bool right = same_ids(out->wait, last->wait, end.wait) &&
                 same_ids(out->free_op, last->free_op, end.free_op);
    for (uint32_t i = 0; right && i < end.buffer - last->buffer; i++)
        right = out->buffer.free_count[end.buffer + i] != 1 ||
                out->buffer.free_op[end.buffer + i].i == out->buffer.free_op[last->buffer + i].i;
    for (uint32_t i = 0; right && i < end.operand - last->operand; i++) {
        struct view x = ir_view(out, out->operand[last->operand + i]);
        struct view y = ir_view(out, out->operand[end.operand + i]);
        right = x.buffer.i == y.buffer.i && x.begin == y.begin && x.count == y.count;
    }
    for (uint32_t i = end.buffer; i < out->buffer.count; i++)
        w->next_number[out->buffer.stem[i]]--;
    out->op.count = end.op;
    out->buffer.count = end.buffer;
    out->operand_count = end.operand;
    out->wait_count = end.wait;
    out->range_count = end.range;
    out->free_op_count = end.free_op;
    return right;
}

static bool write_copies(struct writer *w, uint32_t block)
{
    struct mark a = {0}, b = {0};
    for (uint32_t copy = 1; copy <= w->s->left_out.storeys; copy++) {
        struct mark now = here(w->out);
        if (copy > 2)
            copy_block(w, block, &a, &b);
        else if (!write_block(w, (struct stretch_from){block, copy, false}))
            return false;
        a = b;
        b = now;
    }
    const struct stretch_block *of = &w->s->block[block];
    for (uint32_t i = of->buffer; i < of->buffer + of->buffers && w->s->left_out.storeys > 2; i++)
        w->next_number[w->in->buffer.stem[i]] += w->s->left_out.storeys - 2;
    return last_is_right(w, block, &b);
}

/* ---- all of it ---- */

static uint64_t count_ranges(const uint32_t *operand, uint32_t count)
{
    uint32_t ranges[STRIP] = {0}, i = 0;
    uint64_t sum = 0;
    for (; i + STRIP <= count; i += STRIP)
        for (uint32_t j = 0; j < STRIP; j++)
            ranges[j] += (operand[i + j] & IR_RANGE) != 0;
    for (; i < count; i++)
        sum += (operand[i] & IR_RANGE) != 0;
    for (uint32_t j = 0; j < STRIP; j++)
        sum += ranges[j];
    return sum;
}

/* As much of the rows that have no count of their own as so many copies of a block may have. */
static void reserve_copies(struct writer *w, const struct stretch_block *block, uint64_t times,
                           struct ir_room *room)
{
    const struct ir *in = w->in;
    uint64_t frees = 0, ranges = 0, waits = 0;
    uint32_t operand = in->op.operand_begin[block->op], begin = operand;
    w->written++;
    for (uint32_t op = block->op; op < block->op + block->ops; op++) {
        uint32_t end = operand + in->op.reads[op] + in->op.writes[op];
        waits += in->op.wait_count[op];
        for (; operand < end; operand++) {
            uint32_t row = in->operand[operand] & ~IR_RANGE;
            if (row == in->operand[operand] || w->stamp[row] == w->written)
                continue;
            w->stamp[row] = w->written;
            ranges++;
        }
    }
    for (uint32_t i = block->buffer; i < block->buffer + block->buffers; i++)
        frees += in->buffer.free_count[i] > 1 ? in->buffer.free_count[i] : 0;
    room->operands += times * (operand - begin);
    room->waits += times * waits;
    room->ranges += times * ranges;
    room->free_ops += times * frees;
}

/* The same of the long list. One copy of a block is written twice, to be compared. */
static void reserve(struct writer *w)
{
    const struct stretch *s = w->s;
    const struct ir *in = w->in;
    struct ir_room room = {.operands = in->operand_count,
                           .waits = in->wait_count,
                           .ranges = count_ranges(in->operand, in->operand_count),
                           .free_ops = in->free_op_count};
    uint32_t widest = 0;
    for (uint32_t b = 0; b < s->block_count; b++) {
        const struct stretch_block *block = &s->block[b];
        const struct stretch_run *run = block->run != IR_NONE ? &s->run[block->run] : NULL;
        if (run && b - run->begin + 1 == run->cut)
            reserve_copies(w, block, s->left_out.storeys + 1, &room);
        widest = block->ops > widest ? block->ops : widest;
        widest = block->buffers > widest ? block->buffers : widest;
    }
    room.ops = s->op_count + widest;
    room.buffers = s->buffer_count + widest;
    ir_reserve(w->out, &room);
}

static void write_states(struct writer *w)
{
    write_buffer_columns(w, 0, w->s->states);
    memset(w->out->buffer.free_op + w->out->buffer.count, 0,
           w->s->states * sizeof *w->out->buffer.free_op);
    w->out->buffer.count += w->s->states;
}

bool stretch_write(struct stretch *s)
{
    struct writer w = {.s = s, .in = s->in, .out = s->out};
    bool right = true;
    w.next_number = heap_zalloc((size_t)s->out->word_count + 1, sizeof *w.next_number);
    for (uint32_t b = 0; b < s->out->buffer.count; b++)
        w.next_number[s->out->buffer.stem[b]]++;
    w.range = heap_alloc((size_t)s->in->range_count + 1, sizeof *w.range);
    w.stamp = heap_zalloc((size_t)s->in->range_count + 1, sizeof *w.stamp);
    reserve(&w);
    write_states(&w);
    for (uint32_t b = 0; right && b < s->block_count; b++) {
        const struct stretch_run *run =
            s->block[b].run != IR_NONE ? &s->run[s->block[b].run] : NULL;
        assert(s->block[b].to_op == s->out->op.count);
        right = write_block(&w, (struct stretch_from){b, 0, false});
        if (right && run && b - run->begin + 1 == run->cut)
            right = write_copies(&w, b);
    }
    free(w.next_number);
    free(w.range);
    free(w.stamp);
    if (right)
        stretch_repeats(s);
    return right;
}
