/* Copies of a steady period, put in place. Ids of a copy are those of the period before it and a stride,
 * which the period and the next one tell; what stands behind moves up. */
#include "schedule/stretch/units.h"

#include "base/arena.h"
#include "schedule/ir/id_map.h"

#include <stdlib.h>
#include <string.h>

/* The ids of a period, and by how much they go on from one to the next. */
struct strides {
    uint32_t count;
    uint32_t *by;
};

struct moving { /* a range of the period that is another in the next */
    struct ir_range range;
    uint32_t buffers; /* born further */
    uint64_t elements;
};

struct writer {
    struct units *u;
    struct ir *ir;
    uint32_t op_end;             /* of the role */
    uint32_t op_cut, buffer_cut; /* the first rows behind the copied period, as ops refer to them */
    uint32_t free_cut;           /* the same buffer as free sets go on */
    uint32_t up_ops, up_buffers; /* by so much what is behind moves up */
    struct strides operand, wait, free; /* the last: of all free sets, in the order of buffers */
    struct moving *moving;
    uint32_t moving_count;
    struct id_map moving_map; /* their rows: a ring has some for each step of each layer */
    uint32_t *moving_of;      /* per operand of the period: row of `moving`; IR_NONE: none */
    uint32_t *range_to;       /* per range: the row that it became last; IR_NONE */
};

/* ---- strides ---- */

static bool same_range(struct ir_range a, struct ir_range b)
{
    return a.buffer.i == b.buffer.i && a.extent == b.extent;
}

static uint32_t moving_row(struct writer *w, struct ir_range a, struct ir_range b)
{
    const struct ir_extent *extent = w->ir->extent;
    uint32_t buffers = b.buffer.i - a.buffer.i;
    uint64_t elements = extent[b.extent].begin - extent[a.extent].begin;
    uint64_t hash = hash_word(hash_word(0, (uint64_t)a.buffer.i << 32 | a.extent), elements);
    for (struct id_probe p = id_map_start(&w->moving_map, hash); id_map_next(&w->moving_map, &p);) {
        const struct moving *m = &w->moving[p.row];
        if (same_range(m->range, a) && m->buffers == buffers && m->elements == elements)
            return p.row;
    }
    id_map_add(&w->moving_map, hash, w->moving_count);
    w->moving[w->moving_count] = (struct moving){a, buffers, elements};
    return w->moving_count++;
}

/* What every period names is not made in one of them. */
static bool find_operand_strides(struct writer *w)
{
    const struct ir *ir = w->ir;
    uint32_t begin = ir->op.operand_begin[w->u->op_at[w->u->back.cut]];
    uint32_t next = ir->op.operand_begin[w->op_cut], count = next - begin;
    w->operand = (struct strides){count, heap_zalloc(count, sizeof *w->operand.by)};
    w->moving = heap_alloc(count, sizeof *w->moving);
    w->moving_of = heap_alloc(count, sizeof *w->moving_of);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = ir->operand[begin + i], b = ir->operand[next + i];
        uint32_t buffer = ir_buffer_of(ir, a);
        w->moving_of[i] = IR_NONE;
        if (buffer == ir_buffer_of(ir, b) && buffer >= w->u->buffer_at[w->u->back.low])
            return false;
        if (!(a & IR_RANGE)) {
            w->operand.by[i] = b - a;
            continue;
        }
        struct ir_range x = ir->range[a & ~IR_RANGE], y = ir->range[b & ~IR_RANGE];
        if (!same_range(x, y))
            w->moving_of[i] = moving_row(w, x, y);
    }
    return true;
}

static bool find_wait_strides(struct writer *w)
{
    const struct ir *ir = w->ir;
    uint32_t begin = ir->op.wait_begin[w->u->op_at[w->u->back.cut]];
    uint32_t next = ir->op.wait_begin[w->op_cut];
    w->wait = (struct strides){next - begin, heap_zalloc(next - begin, sizeof *w->wait.by)};
    for (uint32_t i = 0; i < w->wait.count; i++) {
        w->wait.by[i] = ir->wait[next + i].i - ir->wait[begin + i].i;
        if (w->wait.by[i] == 0 && ir->wait[begin + i].i >= w->u->op_at[w->u->back.low])
            return false;
    }
    return true;
}

static void find_free_strides(struct writer *w)
{
    const struct ir *ir = w->ir;
    const struct buffer_table *t = &ir->buffer;
    uint32_t buffers = units_buffers(w->u), begin = w->free_cut - buffers, count = 0;
    for (uint32_t b = begin; b < w->free_cut; b++)
        count += t->free_count[b];
    w->free = (struct strides){0, heap_zalloc(count, sizeof *w->free.by)};
    for (uint32_t b = begin; b < w->free_cut; b++)
        for (uint32_t k = 0; k < t->free_count[b]; k++)
            w->free.by[w->free.count++] =
                ir_free_set(ir, b + buffers)[k].i - ir_free_set(ir, b)[k].i;
}

/* ---- what the rows that are there refer to ---- */

static bool of_one_unit(uint16_t a, uint16_t b)
{
    return a == b && a != IR_NONE16;
}

/* To what ops behind the steady periods refer; micro: their unit. */
static uint32_t op_behind(const struct writer *w, uint32_t op, uint16_t micro)
{
    const struct units *u = w->u;
    if (op >= w->op_cut)
        return op + w->up_ops;
    if (of_one_unit(w->ir->op.micro[op], micro))
        return op >= u->op_at[u->alike] ? op + w->up_ops : IR_NONE;
    return op < u->op_at[u->alike] ? op : IR_NONE;
}

static uint32_t buffer_behind(const struct writer *w, uint32_t buffer, uint16_t micro)
{
    const struct units *u = w->u;
    if (buffer >= w->buffer_cut)
        return buffer + w->up_buffers;
    if (of_one_unit(u->micro_of[buffer - u->first_buffer], micro))
        return buffer >= u->buffer_at[u->alike] ? buffer + w->up_buffers : IR_NONE;
    return buffer < u->buffer_at[u->alike] ? buffer : IR_NONE;
}

/* An operand that names what a range has become. Others may still name the range as it was. */
static uint32_t moved_range(struct writer *w, uint32_t row, struct ir_range to)
{
    struct ir *ir = w->ir;
    if (same_range(ir->range[row], to))
        return row | IR_RANGE;
    uint32_t last = w->range_to[row];
    if (last == IR_NONE || !same_range(ir->range[last], to))
        last = w->range_to[row] = ir_add_range(ir, to);
    return last | IR_RANGE;
}

/* The same range so many elements further. */
static uint32_t extent_further(struct writer *w, uint32_t extent, uint64_t elements)
{
    struct ir_extent to = w->ir->extent[extent];
    to.begin += elements;
    return elements > 0 ? ir_add_extent(w->ir, to) : extent;
}

static void move_steady_operands(struct writer *w)
{
    struct ir *ir = w->ir;
    uint32_t begin = ir->op.operand_begin[w->op_cut], more = w->u->more;
    uint32_t end = ir->op.operand_begin[w->u->op_at[w->u->back.high]];
    for (uint32_t at = begin; at < end; at++) {
        uint32_t i = (at - begin) % w->operand.count, row = ir->operand[at] & ~IR_RANGE;
        if (w->moving_of[i] == IR_NONE) {
            ir->operand[at] += more * w->operand.by[i];
            continue;
        }
        const struct moving *m = &w->moving[w->moving_of[i]];
        struct ir_range range = ir->range[row];
        range.buffer.i += more * m->buffers;
        range.extent = extent_further(w, range.extent, more * m->elements);
        ir->operand[at] = moved_range(w, row, range);
    }
}

static bool move_operand_behind(struct writer *w, uint32_t *operand, uint16_t micro)
{
    uint32_t row = *operand & ~IR_RANGE;
    uint32_t to = buffer_behind(w, ir_buffer_of(w->ir, *operand), micro);
    if (to == IR_NONE)
        return false;
    if (!(*operand & IR_RANGE)) {
        *operand = to;
        return true;
    }
    struct ir_range range = w->ir->range[row];
    for (uint32_t k = 0; k < w->u->input_count; k++)
        if (w->u->input[k].buffer == range.buffer.i)
            range.extent = extent_further(w, range.extent, w->u->more * w->u->input[k].step);
    range.buffer.i = to;
    *operand = moved_range(w, row, range);
    return true;
}

static bool move_ops_behind(struct writer *w)
{
    struct ir *ir = w->ir;
    for (uint32_t op = w->u->op_at[w->u->back.high]; op < w->op_end; op++) {
        uint32_t *operand = ir_operands(ir, op);
        op_id *wait = ir_waits(ir, op);
        uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
        for (uint32_t k = 0; k < operands; k++)
            if (!move_operand_behind(w, &operand[k], ir->op.micro[op]))
                return false;
        for (uint32_t k = 0; k < ir->op.wait_count[op]; k++) {
            wait[k].i = op_behind(w, wait[k].i, ir->op.micro[op]);
            if (wait[k].i == IR_NONE)
                return false;
        }
    }
    return true;
}

static void move_steady_waits(struct writer *w)
{
    struct ir *ir = w->ir;
    uint32_t begin = ir->op.wait_begin[w->op_cut];
    uint32_t end = ir->op.wait_begin[w->u->op_at[w->u->back.high]];
    for (uint32_t at = begin; at < end; at++)
        ir->wait[at].i += w->u->more * w->wait.by[(at - begin) % w->wait.count];
}

/* Free sets of buffers before the steady periods. */
static bool move_first_free_sets(struct writer *w)
{
    const struct units *u = w->u;
    struct ir *ir = w->ir;
    for (uint32_t b = u->first_buffer; b < u->buffer_at[u->ahead.low]; b++)
        for (uint32_t k = 0; k < ir->buffer.free_count[b]; k++) {
            op_id *op = &ir_free_set(ir, b)[k];
            bool own = of_one_unit(ir->op.micro[op->i], u->micro_of[b - u->first_buffer]);
            if (op->i < w->op_cut)
                continue;
            if (op->i < u->op_at[u->back.high] ? !own : own)
                return false;
            if (op->i >= u->op_at[u->back.high])
                op->i += w->up_ops;
        }
    return true;
}

static bool move_steady_free_sets(struct writer *w)
{
    const struct units *u = w->u;
    struct ir *ir = w->ir;
    uint32_t i = 0;
    for (uint32_t b = u->buffer_at[u->ahead.low]; b < w->free_cut; b++)
        for (uint32_t k = 0; k < ir->buffer.free_count[b]; k++, i++) {
            op_id *op = &ir_free_set(ir, b)[k];
            if (w->free.by[i % w->free.count] != 0)
                continue;
            if (op->i < u->op_at[u->back.high])
                return false;
            op->i += w->up_ops;
        }
    return true;
}

static void move_free_sets_behind(struct writer *w)
{
    struct ir *ir = w->ir;
    for (uint32_t b = w->free_cut; b < ir->buffer.count; b++)
        for (uint32_t k = 0; k < ir->buffer.free_count[b]; k++)
            ir_free_set(ir, b)[k].i += w->up_ops;
}

/* ---- copies ---- */

/* Moves up ids from `at` on. Returns the room. */
static uint32_t *open_gap(uint32_t *id, uint32_t count, uint32_t at, uint32_t gap)
{
    memmove(id + at + gap, id + at, (count - at) * sizeof *id);
    return id + at;
}

/* So many copies, each of which is what stands before it and the strides. */
static void fill(uint32_t *to, const struct strides *s, uint32_t copies)
{
    for (uint32_t copy = 0; copy < copies; copy++, to += s->count) {
        const uint32_t *before = to - s->count;
        for (uint32_t k = 0; k < s->count; k++)
            to[k] = before[k] + s->by[k];
    }
}

static void copy_ranges(struct writer *w)
{
    struct ir *ir = w->ir;
    for (uint32_t copy = 1; copy <= w->u->more; copy++)
        for (uint32_t k = 0; k < w->moving_count; k++) {
            const struct moving *m = &w->moving[k];
            ir->range[ir->range_count++] =
                (struct ir_range){{m->range.buffer.i + copy * m->buffers},
                                  extent_further(w, m->range.extent, copy * m->elements)};
        }
}

static void copy_operands(struct writer *w)
{
    struct ir *ir = w->ir;
    struct strides *s = &w->operand;
    uint32_t at = ir->op.operand_begin[w->op_cut], gap = w->u->more * s->count;
    uint32_t *to = open_gap(ir->operand, ir->operand_count, at, gap);
    const uint32_t *before = to - s->count;
    for (uint32_t i = 0; i < s->count; i++)
        to[i] = w->moving_of[i] == IR_NONE ? before[i] + s->by[i]
                                           : (ir->range_count + w->moving_of[i]) | IR_RANGE;
    for (uint32_t i = 0; i < s->count; i++)
        if (w->moving_of[i] != IR_NONE)
            s->by[i] = w->moving_count;
    fill(to + s->count, s, w->u->more - 1);
    ir->operand_count += gap;
    copy_ranges(w);
}

/* An op_id is one number. */
static void copy_waits(struct writer *w)
{
    struct ir *ir = w->ir;
    uint32_t at = ir->op.wait_begin[w->op_cut], gap = w->u->more * w->wait.count;
    if (gap == 0) /* nor need there be any */
        return;
    fill(open_gap(&ir->wait->i, ir->wait_count, at, gap), &w->wait, w->u->more);
    ir->wait_count += gap;
}

static void copy_ops(struct writer *w)
{
    struct ir *ir = w->ir;
    struct op_table *t = &ir->op;
    uint32_t ops = units_ops(w->u), more = w->u->more, end = w->op_cut + more * ops;
    ir_repeat_ops(ir, (struct ir_rows){w->op_cut - ops, ops}, more);
    for (uint32_t op = w->op_cut; op < end; op++) {
        t->operand_begin[op] = t->operand_begin[op - ops] + w->operand.count;
        t->wait_begin[op] = t->wait_begin[op - ops] + w->wait.count;
        if (t->micro[op] != IR_NONE16)
            t->micro[op] = (uint16_t)(t->micro[op - ops] + w->u->step);
    }
    for (uint32_t op = end; op < t->count; op++) {
        t->operand_begin[op] += more * w->operand.count;
        t->wait_begin[op] += more * w->wait.count;
        if (t->micro[op] != IR_NONE16)
            t->micro[op] = (uint16_t)(t->micro[op] + more * w->u->step);
    }
    ir->role[w->u->role].op_count += more * ops;
}

/* The free set of a copy of a buffer, from that of the one before it. Returns its strides' end. */
static const uint32_t *copy_free_set(struct ir *ir, uint32_t from, uint32_t to, const uint32_t *by)
{
    uint16_t count = ir->buffer.free_count[from];
    ir_open_free_set(ir, to, count);
    const op_id *before = ir_free_set(ir, from);
    op_id *set = ir_free_set(ir, to);
    for (uint32_t k = 0; k < count; k++)
        set[k].i = before[k].i + by[k];
    return by + count;
}

/* Buffers of a stem are numbered in the order of their rows. */
static void copy_buffers(struct writer *w)
{
    struct ir *ir = w->ir;
    struct buffer_table *t = &ir->buffer;
    uint32_t buffers = units_buffers(w->u), more = w->u->more, at = w->free_cut;
    uint32_t *of_stem = heap_zalloc((size_t)ir->word_count + 1, sizeof *of_stem);
    for (uint32_t b = at - buffers; b < at; b++)
        of_stem[t->stem[b]]++;
    ir_repeat_buffers(ir, (struct ir_rows){at - buffers, buffers}, more);
    for (uint32_t copy = 0; copy < more; copy++) {
        const uint32_t *by = w->free.by;
        for (uint32_t end = at + buffers; at < end; at++) {
            t->number[at] = t->number[at - buffers] + of_stem[t->stem[at]];
            by = copy_free_set(ir, at - buffers, at, by);
        }
    }
    for (; at < t->count; at++)
        t->number[at] += more * of_stem[t->stem[at]];
    free(of_stem);
}

static uint32_t end_of(const struct ir_repeat *repeat)
{
    return repeat->op + repeat->ops * repeat->periods;
}

/* Periods whose ops and buffers both go on; repeats within the steady ones are part of this one. */
static void note_repeat(struct writer *w)
{
    const struct units *u = w->u;
    struct ir *ir = w->ir;
    uint32_t low = u->back.low > u->ahead.low ? u->back.low : u->ahead.low;
    uint32_t high = u->back.high < u->ahead.high ? u->back.high : u->ahead.high;
    uint32_t end = high + u->more > low ? high + u->more : low;
    struct ir_repeat own = {.role = u->role,
                            .op = u->op_at[low],
                            .ops = units_ops(u),
                            .buffer = u->buffer_at[low],
                            .buffers = units_buffers(u),
                            .periods = end - low};
    uint32_t count = 0, before = own.op < w->op_cut ? own.op : w->op_cut, first = 0;
    struct ir_repeat *row = heap_alloc((size_t)ir->repeat_count + 1, sizeof *row);
    for (; first < ir->repeat_count && end_of(&ir->repeat[first]) <= before; first++)
        row[count++] = ir->repeat[first];
    if (own.periods > 1)
        row[count++] = own;
    for (; first < ir->repeat_count; first++) {
        struct ir_repeat moved = ir->repeat[first];
        moved.op += w->up_ops;
        moved.buffer += w->up_buffers;
        if (ir->repeat[first].op >= w->op_cut && moved.op >= end_of(&own))
            row[count++] = moved;
    }
    free(ir->repeat);
    ir->repeat = row;
    ir->repeat_count = ir->repeat_capacity = count;
}

/* ---- all of it ---- */

static void reserve(struct writer *w)
{
    struct ir *ir = w->ir;
    uint64_t more = w->u->more, behind = ir->operand_count - ir->op.operand_begin[w->op_cut];
    uint64_t frees = 0;
    for (uint32_t b = w->free_cut - units_buffers(w->u); b < w->free_cut; b++)
        frees += ir->buffer.free_count[b] > 1 ? ir->buffer.free_count[b] : 0;
    ir_reserve(ir, &(struct ir_room){.operands = more * w->operand.count,
                                     .waits = more * w->wait.count,
                                     .ranges = more * w->moving_count + behind,
                                     .free_ops = more * frees});
    w->range_to = heap_alloc((size_t)ir->range_count + 1, sizeof *w->range_to);
    memset(w->range_to, 0xff, ir->range_count * sizeof *w->range_to);
}

bool units_insert(struct units *u)
{
    struct ir *ir = u->ir;
    struct writer w = {.u = u,
                       .ir = ir,
                       .op_end = ir->op.count,
                       .op_cut = u->op_at[u->back.cut + 1],
                       .buffer_cut = u->buffer_at[u->back.cut + 1],
                       .free_cut = u->buffer_at[u->ahead.cut + 1],
                       .up_ops = u->more * units_ops(u),
                       .up_buffers = u->more * units_buffers(u)};
    bool told = find_operand_strides(&w) && find_wait_strides(&w);
    if (told) {
        find_free_strides(&w);
        reserve(&w);
        told = move_ops_behind(&w) && move_first_free_sets(&w) && move_steady_free_sets(&w);
    }
    if (told) {
        move_steady_operands(&w);
        move_steady_waits(&w);
        move_free_sets_behind(&w);
        copy_operands(&w);
        copy_waits(&w);
        copy_ops(&w);
        copy_buffers(&w);
        note_repeat(&w);
    }
    free(w.operand.by);
    free(w.wait.by);
    free(w.free.by);
    free(w.moving);
    id_map_release(&w.moving_map);
    free(w.moving_of);
    free(w.range_to);
    return told;
}
