/* The repeats of a stretched role. Copies behind the second are made by going on from one to the next,
 * so they are one repeat as they are; the blocks beside them join it when they differ by the same. */
#include "schedule/stretch/stretch.h"

#include "base/arena.h"

#include <string.h>

/* Two pairs of neighbouring blocks: does `to` lie behind `from` as `b` does behind `a`? */
struct pairs {
    const struct ir *ir;
    uint32_t a, b, from, to;
};

static bool goes_on(uint32_t a, uint32_t b, uint32_t from, uint32_t to)
{
    return to - from == b - a;
}

static bool layers_go_on(const uint16_t *layer, const struct pairs *p, uint32_t rows)
{
    const uint16_t *a = layer + p->a, *b = layer + p->b, *x = layer + p->from, *y = layer + p->to;
    for (uint32_t i = 0; i < rows; i++) {
        if (x[i] == IR_NONE16 || y[i] == IR_NONE16 ? x[i] != y[i]
                                                   : !goes_on(a[i], b[i], x[i], y[i]))
            return false;
    }
    return true;
}

static bool ids_go_on(const uint32_t *id, const struct pairs *p, uint32_t rows)
{
    const uint32_t *a = id + p->a, *b = id + p->b, *x = id + p->from, *y = id + p->to;
    for (uint32_t i = 0; i < rows; i++)
        if (!goes_on(a[i], b[i], x[i], y[i]))
            return false;
    return true;
}

/* Two operands that lie in memories of one kind, and as many elements of them. */
static bool same_elements(const struct ir *ir, uint32_t from, uint32_t to)
{
    uint8_t memory = ir->buffer.memory[ir_buffer_of(ir, from)];
    if ((from ^ to) & IR_RANGE || memory != ir->buffer.memory[ir_buffer_of(ir, to)])
        return false;
    return from & IR_RANGE ? ir->range[from & ~IR_RANGE].extent == ir->range[to & ~IR_RANGE].extent
                           : ir->buffer.dims[from] == ir->buffer.dims[to];
}

static bool operands_go_on(const struct ir *ir, const struct pairs *p, uint32_t rows)
{
    const uint32_t *a = ir->operand + p->a, *b = ir->operand + p->b, *x = ir->operand + p->from,
                   *y = ir->operand + p->to;
    for (uint32_t i = 0; i < rows; i++)
        if (!goes_on(a[i], b[i], x[i], y[i]) || !same_elements(ir, x[i], y[i]) ||
            (x[i] & IR_RANGE && !goes_on(ir_buffer_of(ir, a[i]), ir_buffer_of(ir, b[i]),
                                         ir_buffer_of(ir, x[i]), ir_buffer_of(ir, y[i]))))
            return false;
    return true;
}

#define SAME(table, column, p, rows)                                                               \
    (memcmp((table).column + (p)->from, (table).column + (p)->to,                                  \
            (rows) * sizeof *(table).column) == 0)

/* The pairs that spans of theirs begin with. */
static struct pairs spans_of(const struct ir *ir, const uint32_t *begin, const struct pairs *p)
{
    return (struct pairs){ir, begin[p->a], begin[p->b], begin[p->from], begin[p->to]};
}

/* Rows have their operands and waits one behind the other. */
static bool ops_go_on(const struct pairs *p, uint32_t rows)
{
    const struct ir *ir = p->ir;
    const struct op_table *t = &ir->op;
    uint32_t operands = 0, waits = 0;
    if (!SAME(*t, shape, p, rows) || !SAME(*t, stream, p, rows) || !SAME(*t, phase, p, rows) ||
        !SAME(*t, region, p, rows) || !SAME(*t, reads, p, rows) || !SAME(*t, writes, p, rows) ||
        !SAME(*t, chunk, p, rows) || !SAME(*t, step, p, rows) || !SAME(*t, micro, p, rows) ||
        !SAME(*t, guard, p, rows) || !SAME(*t, wait_count, p, rows) ||
        !layers_go_on(t->layer, p, rows))
        return false;
    for (uint32_t i = 0; i < rows; i++) {
        operands += (uint32_t)t->reads[p->from + i] + t->writes[p->from + i];
        waits += t->wait_count[p->from + i];
    }
    struct pairs of_operands = spans_of(ir, t->operand_begin, p);
    struct pairs of_waits = spans_of(ir, t->wait_begin, p);
    return operands_go_on(ir, &of_operands, operands) &&
           (waits == 0 || ids_go_on(&ir->wait->i, &of_waits, waits));
}

static bool buffers_go_on(const struct pairs *p, uint32_t rows)
{
    const struct ir *ir = p->ir;
    const struct buffer_table *t = &ir->buffer;
    if (!SAME(*t, memory, p, rows) || !SAME(*t, dtype, p, rows) || !SAME(*t, category, p, rows) ||
        !SAME(*t, flags, p, rows) || !SAME(*t, dims, p, rows) || !SAME(*t, stem, p, rows) ||
        !SAME(*t, free_count, p, rows) || !layers_go_on(t->layer, p, rows))
        return false;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < t->free_count[p->from + i]; k++)
            if (!goes_on(ir_free_set(ir, p->a + i)[k].i, ir_free_set(ir, p->b + i)[k].i,
                         ir_free_set(ir, p->from + i)[k].i, ir_free_set(ir, p->to + i)[k].i))
                return false;
    return true;
}

/* Is the block at a place of the run followed by the next as the first copy is by the second? */
static bool block_goes_on(const struct stretch *s, const struct stretch_run *run, uint32_t at)
{
    const struct stretch_block *block = &s->block[run->begin + run->cut - 1];
    uint32_t op = stretch_first_at(s, run, at, false),
             a = stretch_first_at(s, run, run->cut, false);
    uint32_t buffer = stretch_first_at(s, run, at, true),
             b = stretch_first_at(s, run, run->cut, true);
    return ops_go_on(&(struct pairs){s->out, a, a + block->ops, op, op + block->ops}, block->ops) &&
           buffers_go_on(
               &(struct pairs){s->out, b, b + block->buffers, buffer, buffer + block->buffers},
               block->buffers);
}

static void add(struct ir *ir, struct ir_repeat repeat)
{
    if (ir->repeat_count == ir->repeat_capacity) {
        ir->repeat_capacity =
            (uint32_t)heap_next_capacity(ir->repeat_capacity, (size_t)ir->repeat_count + 1);
        ir->repeat = heap_realloc(ir->repeat, ir->repeat_capacity, sizeof *ir->repeat);
    }
    ir->repeat[ir->repeat_count++] = repeat;
}

void stretch_repeats(const struct stretch *s)
{
    uint32_t more = s->left_out.storeys;
    for (uint32_t r = 0; r < s->run_count; r++) {
        const struct stretch_run *run = &s->run[r];
        const struct stretch_block *block = &s->block[run->begin + run->cut - 1];
        uint32_t low = run->cut, last = run->cut + more - 1; /* the copies */
        while (low > run->low && block_goes_on(s, run, low - 1))
            low--;
        while (last + 1 < run->high + more && block_goes_on(s, run, last))
            last++;
        add(s->out, (struct ir_repeat){.role = s->role,
                                       .op = stretch_first_at(s, run, low, false),
                                       .ops = block->ops,
                                       .buffer = stretch_first_at(s, run, low, true),
                                       .buffers = block->buffers,
                                       .periods = last + 1 - low});
    }
}
