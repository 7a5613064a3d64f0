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

/* Loops over rows go by strips, which are vectors. */
enum { STRIP = 8 };

/* Ids so much further. */
static void move_ids(uint32_t *restrict out, const uint32_t *restrict in, size_t rows, uint32_t by)
{
    size_t i = 0;
    for (; i + STRIP <= rows; i += STRIP)
        for (size_t j = i; j < i + STRIP; j++)
            out[j] = in[j] + by;
    for (; i < rows; i++)
        out[i] = in[i] + by;
}

/* Of a block of the short list, whose rows have theirs one behind the other. */
static uint32_t operands_of(const struct ir *in, const struct stretch_block *b)
{
    uint32_t last = b->op + b->ops - 1;
    return b->ops == 0 ? 0
                       : in->op.operand_begin[last] + in->op.reads[last] + in->op.writes[last] -
                             in->op.operand_begin[b->op];
}

static uint32_t waits_of(const struct ir *in, const struct stretch_block *b)
{
    uint32_t last = b->op + b->ops - 1;
    return b->ops == 0
               ? 0
               : in->op.wait_begin[last] + in->op.wait_count[last] - in->op.wait_begin[b->op];
}

static void write_op_columns(struct writer *w, const struct stretch_block *b)
{
    const struct op_table *in = &w->in->op;
    struct op_table *out = &w->out->op;
    copy_op_columns(w, b);
    move_ids(out->operand_begin + out->count, in->operand_begin + b->op, b->ops,
             w->out->operand_count - in->operand_begin[b->op]);
    move_ids(out->wait_begin + out->count, in->wait_begin + b->op, b->ops,
             w->out->wait_count - in->wait_begin[b->op]);
}

/* Layers of one chunk are all as much higher, and nearly all of a block's are of one. */
static void write_layers(const struct writer *w, struct stretch_from from,
                         const uint16_t *restrict in, uint16_t *restrict out, size_t rows)
{
    size_t i = 0;
    while (i < rows) {
        uint16_t layer = in[i], moved = layer_of(w->s, from, layer);
        for (bool same = true; same && i + STRIP <= rows; i += same ? STRIP : 0) {
            uint16_t unlike = 0;
            for (size_t j = i; j < i + STRIP; j++) {
                unlike |= (uint16_t)(in[j] ^ layer);
                out[j] = moved;
            }
            same = unlike == 0;
        }
        for (; i < rows && in[i] == layer; i++)
            out[i] = moved;
    }
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

/* Moves a strip of references, and says whether all are a block's own. Ranges are not. */
static inline bool move_own(uint32_t *restrict out, const uint32_t *restrict id,
                            const uint32_t *restrict like, const struct own *own)
{
    uint32_t foreign = 0;
    for (size_t j = 0; j < STRIP; j++) {
        foreign |= (uint32_t)(id[j] - own->begin >= own->rows) | ((like[j] - id[j]) ^ own->next);
        out[j] = id[j] + own->to;
    }
    return foreign == 0;
}

static uint32_t write_operand(struct writer *w, struct stretch_from from, const struct own *own,
                              uint32_t operand, uint32_t like)
{
    if (operand & IR_RANGE)
        return write_range(w, from, operand & ~IR_RANGE,
                           w->s->block[from.block].like != IR_NONE ? like : IR_NONE);
    if (is_own(own, operand, like))
        return operand + own->to;
    return stretch_buffer(w->s, from, operand,
                          w->s->block[from.block].like != IR_NONE ? ir_buffer_of(w->in, like)
                                                                  : IR_NONE);
}

/* Rows of a block's ops, and of its neighbour's, have their operands one behind the other, as many. */
static bool write_operands(struct writer *w, struct stretch_from from, uint32_t like)
{
    const struct stretch_block *b = &w->s->block[from.block];
    const struct ir *in = w->in;
    const uint32_t *operand = in->operand + in->op.operand_begin[b->op];
    const uint32_t *likes =
        like != IR_NONE ? in->operand + in->op.operand_begin[w->s->block[like].op] : operand;
    uint32_t *out = w->out->operand + w->out->operand_count, count = operands_of(in, b);
    struct own own = own_buffers(w, from, like);
    for (uint32_t i = 0; i < count;) {
        if (i + STRIP <= count && move_own(out + i, operand + i, likes + i, &own)) {
            i += STRIP;
            continue;
        }
        for (uint32_t end = i + STRIP < count ? i + STRIP : count; i < end; i++) {
            out[i] = write_operand(w, from, &own, operand[i], likes[i]);
            if (out[i] == IR_NONE)
                return false;
        }
    }
    w->out->operand_count += count;
    return true;
}

/* Ids of ops, and what is like them (NULL: nothing). */
static bool write_ids(const struct writer *w, struct stretch_from from, const struct own *own,
                      op_id *out, const op_id *id, const op_id *like, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        if (i + STRIP <= count && move_own(&out[i].i, &id[i].i, &(like ? like : id)[i].i, own)) {
            i += STRIP;
            continue;
        }
        for (uint32_t end = i + STRIP < count ? i + STRIP : count; i < end; i++) {
            out[i].i = stretch_op(w->s, from, id[i].i, like ? like[i].i : IR_NONE);
            if (out[i].i == IR_NONE)
                return false;
        }
    }
    return true;
}

/* As operands, but neighbours that are not steady may wait for more, or for less. */
static bool write_waits(struct writer *w, struct stretch_from from, uint32_t like)
{
    const struct stretch_block *b = &w->s->block[from.block];
    const struct op_table *t = &w->in->op;
    const op_id *wait = w->in->wait, *likes = NULL;
    op_id *out = w->out->wait + w->out->wait_count;
    uint32_t count = waits_of(w->in, b), other = like != IR_NONE ? w->s->block[like].op : IR_NONE;
    struct own own = own_ops(w, from, like);
    if (count == 0)
        return true;
    w->out->wait_count += count;
    wait += t->wait_begin[b->op];
    if (like == IR_NONE)
        return write_ids(w, from, &own, out, wait, NULL, count);
    likes = w->in->wait + t->wait_begin[other];
    if (memcmp(t->wait_count + b->op, t->wait_count + other, b->ops * sizeof *t->wait_count) == 0)
        return write_ids(w, from, &own, out, wait, likes, count);
    for (uint32_t i = 0; i < b->ops; i++) {
        uint32_t own_count = t->wait_count[b->op + i], other_count = t->wait_count[other + i];
        if (!write_ids(w, from, &own, out, wait, own_count == other_count ? likes : NULL,
                       own_count))
            return false;
        out += own_count;
        wait += own_count;
        likes += other_count;
    }
    return true;
}

static void number_buffers(struct writer *w, uint32_t count)
{
    struct buffer_table *t = &w->out->buffer;
    for (uint32_t to = t->count; to < t->count + count; to++)
        t->number[to] = w->next_number[t->stem[to]]++;
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

static bool write_free_set(struct writer *w, struct stretch_from from, const struct own *own,
                           uint32_t buffer, uint32_t other, uint32_t to)
{
    const struct buffer_table *in = &w->in->buffer;
    uint32_t count = in->free_count[buffer];
    const op_id *set = ir_free_set(w->in, buffer), *likes = NULL;
    if (other != IR_NONE && in->free_count[other] == count)
        likes = ir_free_set(w->in, other);
    ir_open_free_set(w->out, to, (uint16_t)count);
    return write_ids(w, from, own, ir_free_set(w->out, to), set, likes, count);
}

/* Most have one op, of the block's own. */
static bool write_free_sets(struct writer *w, struct stretch_from from, uint32_t like)
{
    const struct stretch_block *b = &w->s->block[from.block];
    const struct buffer_table *in = &w->in->buffer;
    struct own own = own_ops(w, from, like);
    uint32_t other = like != IR_NONE ? w->s->block[like].buffer : IR_NONE;
    uint32_t same = like != IR_NONE ? other : b->buffer, to = w->out->buffer.count;
    op_id *out = w->out->buffer.free_op + to;
    for (uint32_t i = 0; i < b->buffers;) {
        uint32_t end = i + STRIP < b->buffers ? i + STRIP : b->buffers, several = 0;
        for (uint32_t j = i; j < end; j++)
            several |= (in->free_count[b->buffer + j] ^ 1U) | (in->free_count[same + j] ^ 1U);
        if (several == 0 && end == i + STRIP &&
            move_own(&out[i].i, &in->free_op[b->buffer + i].i, &in->free_op[same + i].i, &own)) {
            i = end;
            continue;
        }
        for (; i < end; i++)
            if (!write_free_set(w, from, &own, b->buffer + i,
                                other != IR_NONE ? other + i : IR_NONE, to + i))
                return false;
    }
    return true;
}

/* What rows refer to. */
static bool write_references(struct writer *w, struct stretch_from from)
{
    uint32_t like = w->s->block[from.block].like;
    w->written++;
    return write_operands(w, from, like) && write_waits(w, from, like) &&
           write_free_sets(w, from, like);
}

static bool write_block(struct writer *w, struct stretch_from from)
{
    const struct stretch_block *b = &w->s->block[from.block];
    const struct ir *in = w->in;
    struct ir *out = w->out;
    if (b->ops > 0)
        write_op_columns(w, b);
    write_layers(w, from, in->op.layer + b->op, out->op.layer + out->op.count, b->ops);
    write_buffer_columns(w, b->buffer, b->buffers);
    write_layers(w, from, in->buffer.layer + b->buffer, out->buffer.layer + out->buffer.count,
                 b->buffers);
    if (!write_references(w, from))
        return false;
    out->op.count += b->ops;
    out->buffer.count += b->buffers;
    return true;
}

/* ---- the copies behind the second ---- */

/* Rows from `a` on, and those like them from `b` on: the next ones. Ids that differ go on differing. */
static void go_on(uint32_t *row, uint32_t to, uint32_t a, uint32_t b)
{
    const uint32_t *restrict from = row + a, *restrict next = row + b;
    uint32_t *restrict end = row + to;
    size_t count = to - b, i = 0;
    for (; i + STRIP <= count; i += STRIP)
        for (size_t j = i; j < i + STRIP; j++)
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
    size_t count = to - b, i = 0;
    for (; i + STRIP <= count; i += STRIP)
        for (size_t j = i; j < i + STRIP; j++)
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
    out->op.count += of->ops;
    out->buffer.count += of->buffers;
    out->operand_count += to.operand - b->operand;
    out->wait_count += to.wait - b->wait;
    out->range_count += to.range - b->range;
    out->free_op_count += to.free_op - b->free_op;
}

/* Are operands the same elements of the same buffers? */
static bool same_operands(const struct ir *ir, uint32_t a, uint32_t b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = ir->operand[a + i], y = ir->operand[b + i];
        if (x == y)
            continue;
        if (!(x & y & IR_RANGE))
            return false;
        struct ir_range of_x = ir->range[x & ~IR_RANGE], of_y = ir->range[y & ~IR_RANGE];
        if (of_x.buffer.i != of_y.buffer.i || of_x.extent != of_y.extent)
            return false;
    }
    return true;
}

/* Does the last copy mean what it would mean if it had been written by itself? Its columns are copies. */
static bool last_is_right(struct writer *w, uint32_t block, const struct mark *last)
{
    struct ir *out = w->out;
    struct mark end = here(out);
    if (!write_references(w, (struct stretch_from){block, w->s->left_out.storeys, false}))
        return false;
    bool right = same_ids(out->wait, last->wait, end.wait) &&
                 same_ids(out->free_op, last->free_op, end.free_op) &&
                 same_operands(out, last->operand, end.operand, end.operand - last->operand);
    for (uint32_t i = 0; right && i < end.buffer - last->buffer; i++)
        right = out->buffer.free_count[last->buffer + i] != 1 ||
                out->buffer.free_op[end.buffer + i].i == out->buffer.free_op[last->buffer + i].i;
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

/* As much of the rows that have no count of their own as so many copies of a block may have. stamp: per range of
 * *in, the last block that was seen to have it. */
static void reserve_copies(const struct ir *in, uint32_t *stamp, uint32_t number,
                           const struct stretch_block *block, uint64_t times, struct ir_room *room)
{
    uint64_t frees = 0, ranges = 0, waits = 0;
    uint32_t operand = in->op.operand_begin[block->op], begin = operand;
    for (uint32_t op = block->op; op < block->op + block->ops; op++) {
        uint32_t end = operand + in->op.reads[op] + in->op.writes[op];
        waits += in->op.wait_count[op];
        for (; operand < end; operand++) {
            uint32_t row = in->operand[operand] & ~IR_RANGE;
            if (row == in->operand[operand] || stamp[row] == number)
                continue;
            stamp[row] = number;
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

/* One copy of a block is written twice, to be compared. */
void stretch_reserve(const struct stretch *s)
{
    const struct ir *in = s->in;
    struct ir_room room = {.operands = in->operand_count,
                           .waits = in->wait_count,
                           .ranges = count_ranges(in->operand, in->operand_count),
                           .free_ops = in->free_op_count};
    uint32_t widest = 0, *stamp = heap_zalloc((size_t)in->range_count + 1, sizeof *stamp);
    for (uint32_t b = 0; b < s->block_count; b++) {
        const struct stretch_block *block = &s->block[b];
        const struct stretch_run *run = block->run != IR_NONE ? &s->run[block->run] : NULL;
        if (run && b - run->begin + 1 == run->cut)
            reserve_copies(in, stamp, b + 1, block, s->left_out.storeys + 1, &room);
        widest = block->ops > widest ? block->ops : widest;
        widest = block->buffers > widest ? block->buffers : widest;
    }
    room.ops = s->op_count + widest;
    room.buffers = s->buffer_count + widest;
    ir_reserve(s->out, &room);
    free(stamp);
    memset(s->out->buffer.offset + s->to_states, 0xff,
           s->buffer_count * sizeof *s->out->buffer.offset);
}

static void write_states(struct writer *w)
{
    write_buffer_columns(w, 0, w->s->states);
    memset(w->out->buffer.free_op + w->out->buffer.count, 0,
           w->s->states * sizeof *w->out->buffer.free_op);
    w->out->buffer.count += w->s->states;
}

bool stretch_write(const struct stretch *s)
{
    struct writer w = {.s = s, .in = s->in, .out = s->out};
    bool right = true;
    w.next_number = heap_zalloc((size_t)s->out->word_count + 1, sizeof *w.next_number);
    for (uint32_t b = 0; b < s->out->buffer.count; b++)
        w.next_number[s->out->buffer.stem[b]]++;
    w.range = heap_alloc((size_t)s->in->range_count + 1, sizeof *w.range);
    w.stamp = heap_zalloc((size_t)s->in->range_count + 1, sizeof *w.stamp);
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
