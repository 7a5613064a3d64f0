/* The repeats of a stretched role. Copies behind the second are made by going on from one to the next,
 * so they are one repeat as they are; the blocks beside them join it when they differ by the same. */
#include "schedule/stretch/stretch.h"

#include "base/arena.h"

/* Two pairs of neighbouring blocks: does `to` lie behind `from` as `b` does behind `a`? */
struct pairs {
    const struct ir *ir;
    uint32_t a, b, from, to;
};

static bool goes_on(uint32_t a, uint32_t b, uint32_t from, uint32_t to)
{
    return to - from == b - a;
}

static bool layer_goes_on(const uint16_t *layer, const struct pairs *p)
{
    if (layer[p->from] == IR_NONE16 || layer[p->to] == IR_NONE16)
        return layer[p->from] == layer[p->to];
    return goes_on(layer[p->a], layer[p->b], layer[p->from], layer[p->to]);
}

static bool operand_goes_on(const struct ir *ir, uint32_t a, uint32_t b, uint32_t from, uint32_t to)
{
    if ((from ^ to) & IR_RANGE || !goes_on(a, b, from, to))
        return false;
    struct view x = ir_view(ir, from), y = ir_view(ir, to);
    return x.begin == y.begin && x.count == y.count &&
           ir->buffer.memory[x.buffer.i] == ir->buffer.memory[y.buffer.i] &&
           goes_on(ir_buffer_of(ir, a), ir_buffer_of(ir, b), x.buffer.i, y.buffer.i);
}

static bool op_goes_on(const struct pairs *p)
{
    const struct ir *ir = p->ir;
    const struct op_table *t = &ir->op;
    uint32_t x = p->from, y = p->to, operands = (uint32_t)t->reads[x] + t->writes[x];
    if (t->shape[x] != t->shape[y] || t->stream[x] != t->stream[y] || t->phase[x] != t->phase[y] ||
        t->region[x] != t->region[y] || t->reads[x] != t->reads[y] ||
        t->writes[x] != t->writes[y] || t->chunk[x] != t->chunk[y] || t->step[x] != t->step[y] ||
        t->micro[x] != t->micro[y] || t->guard[x] != t->guard[y] ||
        t->wait_count[x] != t->wait_count[y] || !layer_goes_on(t->layer, p))
        return false;
    for (uint32_t k = 0; k < operands; k++)
        if (!operand_goes_on(ir, ir->operand[t->operand_begin[p->a] + k],
                             ir->operand[t->operand_begin[p->b] + k],
                             ir->operand[t->operand_begin[x] + k],
                             ir->operand[t->operand_begin[y] + k]))
            return false;
    for (uint32_t k = 0; k < t->wait_count[x]; k++)
        if (!goes_on(ir->wait[t->wait_begin[p->a] + k].i, ir->wait[t->wait_begin[p->b] + k].i,
                     ir->wait[t->wait_begin[x] + k].i, ir->wait[t->wait_begin[y] + k].i))
            return false;
    return true;
}

static bool buffer_goes_on(const struct pairs *p)
{
    const struct ir *ir = p->ir;
    const struct buffer_table *t = &ir->buffer;
    uint32_t x = p->from, y = p->to;
    if (t->memory[x] != t->memory[y] || t->dtype[x] != t->dtype[y] ||
        t->category[x] != t->category[y] || t->flags[x] != t->flags[y] ||
        t->dims[x] != t->dims[y] || t->stem[x] != t->stem[y] ||
        t->free_count[x] != t->free_count[y] || !layer_goes_on(t->layer, p))
        return false;
    for (uint32_t k = 0; k < t->free_count[x]; k++)
        if (!goes_on(ir_free_set(ir, p->a)[k].i, ir_free_set(ir, p->b)[k].i,
                     ir_free_set(ir, x)[k].i, ir_free_set(ir, y)[k].i))
            return false;
    return true;
}

/* Is the block at a place of the run followed by the next as the first copy is by the second? */
static bool block_goes_on(const struct stretch *s, const struct stretch_run *run, uint32_t at)
{
    const struct stretch_block *block = &s->block[run->begin + run->cut - 1];
    uint32_t op = stretch_first_at(s, run, at, false),
             a = stretch_first_at(s, run, run->cut, false);
    for (uint32_t i = 0; i < block->ops; i++)
        if (!op_goes_on(
                &(struct pairs){s->out, a + i, a + block->ops + i, op + i, op + block->ops + i}))
            return false;
    uint32_t buffer = stretch_first_at(s, run, at, true);
    a = stretch_first_at(s, run, run->cut, true);
    for (uint32_t i = 0; i < block->buffers; i++)
        if (!buffer_goes_on(&(struct pairs){s->out, a + i, a + block->buffers + i, buffer + i,
                                            buffer + block->buffers + i}))
            return false;
    return true;
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
