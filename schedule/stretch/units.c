/* Periods, and what of them is steady. */
#include "schedule/stretch/units.h"

#include "base/arena.h"
#include "schedule/passes/lifetimes.h"

#include <stdlib.h>
#include <string.h>

enum { STEADY_MIN = 3 }; /* periods in a row that must be the same */

void units_release(struct units *u)
{
    free(u->op_at);
    free(u->buffer_at);
    free(u->micro_of);
    *u = (struct units){0};
}

/* ---- periods ---- */

static uint32_t first_buffer_of(const struct ir *ir, uint16_t role)
{
    uint32_t first = ir->buffer.count;
    while (first > 0 && ir->buffer.role[first - 1] == role)
        first--;
    return first;
}

/* A period begins with the first op of every step-th unit. The last such op begins what is no period. Rows of
 * buffers stand in the order of births, behind those of states. */
static void find_periods(struct units *u)
{
    const struct ir *ir = u->ir;
    uint32_t born = u->first_buffer, begun = 0, capacity = 0;
    uint32_t op = ir->role[u->role].op_begin, end = op + ir->role[u->role].op_count;
    while (born < ir->buffer.count && lifetimes_persistent(ir, born))
        u->micro_of[born++ - u->first_buffer] = IR_NONE16;
    for (; op < end; op++) {
        if (ir->op.micro[op] == begun * u->step) {
            if (begun == capacity) {
                capacity = (uint32_t)heap_next_capacity(capacity, (size_t)begun + 1);
                u->op_at = heap_realloc(u->op_at, capacity, sizeof *u->op_at);
                u->buffer_at = heap_realloc(u->buffer_at, capacity, sizeof *u->buffer_at);
            }
            u->op_at[begun] = op;
            u->buffer_at[begun++] = born;
        }
        uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
        for (uint32_t k = 0; k < operands; k++)
            if (ir_touched(ir, op, k) == born)
                u->micro_of[born++ - u->first_buffer] = ir->op.micro[op];
    }
    u->periods = begun > 0 ? begun - 1 : 0;
}

/* ---- what is steady ---- */

#define SAME(column, a, b, count)                                                                  \
    (memcmp((column) + (a), (column) + (b), (count) * sizeof *(column)) == 0)

static bool micros_go_on(const struct units *u, uint32_t a, uint32_t b, uint32_t ops)
{
    const uint16_t *micro = u->ir->op.micro;
    for (uint32_t i = 0; i < ops; i++)
        if (micro[a + i] == IR_NONE16 ? micro[b + i] != IR_NONE16
                                      : micro[b + i] != micro[a + i] + u->step)
            return false;
    return true;
}

/* Has the next period the same rows, whatever they refer to? */
static bool same_rows(const struct units *u, uint32_t p)
{
    const struct op_table *op = &u->ir->op;
    const struct buffer_table *buffer = &u->ir->buffer;
    uint32_t a = u->op_at[p], b = u->op_at[p + 1], ops = b - a;
    uint32_t x = u->buffer_at[p], y = u->buffer_at[p + 1], buffers = y - x;
    return ops == u->op_at[p + 2] - b && buffers == u->buffer_at[p + 2] - y &&
           SAME(op->shape, a, b, ops) && SAME(op->stream, a, b, ops) &&
           SAME(op->phase, a, b, ops) && SAME(op->region, a, b, ops) &&
           SAME(op->reads, a, b, ops) && SAME(op->writes, a, b, ops) &&
           SAME(op->layer, a, b, ops) && SAME(op->chunk, a, b, ops) && SAME(op->step, a, b, ops) &&
           SAME(op->guard, a, b, ops) && micros_go_on(u, a, b, ops) &&
           SAME(buffer->memory, x, y, buffers) && SAME(buffer->dtype, x, y, buffers) &&
           SAME(buffer->category, x, y, buffers) && SAME(buffer->flags, x, y, buffers) &&
           SAME(buffer->layer, x, y, buffers) && SAME(buffer->binding, x, y, buffers) &&
           SAME(buffer->dims, x, y, buffers) && SAME(buffer->stem, x, y, buffers);
}

/* Ids of three periods in a row, or of two: the same thing, or each one period further. */
struct thrice {
    uint32_t a, b, c;
    bool two; /* there is no c yet */
};

static bool goes_on(struct thrice ids, uint32_t by)
{
    return (ids.b == ids.a || ids.b - ids.a == by) && (ids.two || ids.c - ids.b == ids.b - ids.a);
}

static bool range_goes_on(const struct ir *ir, struct thrice ids, uint32_t buffers)
{
    if (!(ids.a & ids.b & IR_RANGE) || !(ids.two || ids.c & IR_RANGE))
        return false;
    struct view a = ir_view(ir, ids.a), b = ir_view(ir, ids.b),
                c = ids.two ? b : ir_view(ir, ids.c);
    struct thrice of = {a.buffer.i, b.buffer.i, c.buffer.i, ids.two};
    return a.count == b.count && b.count == c.count && goes_on(of, buffers) &&
           (ids.two || c.begin - b.begin == b.begin - a.begin) &&
           (b.begin == a.begin || b.buffer.i == a.buffer.i);
}

/* Where the spans of three periods' first rows begin; two: see struct thrice. */
static struct thrice begins(const uint32_t *begin, const uint32_t *at, uint32_t p, bool two)
{
    return (struct thrice){begin[at[p]], begin[at[p + 1]], two ? 0 : begin[at[p + 2]], two};
}

static struct thrice thrice_at(const uint32_t *id, struct thrice begin, uint32_t i)
{
    return (struct thrice){id[begin.a + i], id[begin.b + i], begin.two ? 0 : id[begin.c + i],
                           begin.two};
}

static bool operands_go_on(const struct units *u, uint32_t p, bool two)
{
    const struct ir *ir = u->ir;
    struct thrice begin = begins(ir->op.operand_begin, u->op_at, p, two);
    uint32_t buffers = u->buffer_at[p + 1] - u->buffer_at[p];
    for (uint32_t i = 0; i < begin.b - begin.a; i++) {
        struct thrice ids = thrice_at(ir->operand, begin, i);
        if (ids.a & IR_RANGE ? !range_goes_on(ir, ids, buffers)
                             : (ids.b & IR_RANGE) != 0 || !goes_on(ids, buffers))
            return false;
    }
    return true;
}

static bool waits_go_on(const struct units *u, uint32_t p, bool two)
{
    const struct ir *ir = u->ir;
    const uint32_t *at = u->op_at;
    uint32_t ops = at[p + 1] - at[p];
    struct thrice begin = begins(ir->op.wait_begin, at, p, two);
    if (!SAME(ir->op.wait_count, at[p], at[p + 1], ops))
        return false;
    for (uint32_t i = 0; i < begin.b - begin.a; i++) {
        struct thrice ids = {ir->wait[begin.a + i].i, ir->wait[begin.b + i].i,
                             two ? 0 : ir->wait[begin.c + i].i, two};
        if (!goes_on(ids, ops))
            return false;
    }
    return true;
}

static bool free_sets_go_on(const struct units *u, uint32_t p, bool two)
{
    const struct buffer_table *t = &u->ir->buffer;
    uint32_t ops = u->op_at[p + 1] - u->op_at[p];
    uint32_t x = u->buffer_at[p], buffers = u->buffer_at[p + 1] - x;
    if (!SAME(t->free_count, x, x + buffers, buffers))
        return false;
    for (uint32_t i = x; i < x + buffers; i++) {
        const op_id *a = ir_free_set(u->ir, i), *b = ir_free_set(u->ir, i + buffers);
        const op_id *c = two ? b : ir_free_set(u->ir, i + 2 * buffers);
        for (uint32_t k = 0; k < t->free_count[i]; k++) {
            struct thrice ids = {a[k].i, b[k].i, c[k].i, two};
            if (!goes_on(ids, ops))
                return false;
        }
    }
    return true;
}

/* Do references go on from a period to the next (two), and to the one behind that as well? */
typedef bool refs_go_on(const struct units *u, uint32_t p, bool two);

static bool back_goes_on(const struct units *u, uint32_t p, bool two)
{
    return operands_go_on(u, p, two) && waits_go_on(u, p, two);
}

/* The longest run of periods from `low` to `high` in which each goes on from the one before. False: it is
 * short. */
static bool find_steady(const struct units *u, uint32_t low, uint32_t high, refs_go_on *go_on,
                        struct units_steady *steady)
{
    for (uint32_t p = low; p + 1 < high; p++) {
        if (!go_on(u, p, true)) {
            low = p + 1;
            continue;
        }
        if (p > low && !go_on(u, p - 1, false))
            low = p;
        if (p + 2 - low > steady->high - steady->low) {
            steady->low = low;
            steady->high = p + 2;
        }
    }
    steady->cut = steady->low + (steady->high - steady->low - 1) / 2;
    return steady->high - steady->low >= STEADY_MIN;
}

/* The longest run of periods with the same rows, and what of it is steady. */
static bool find_alike(struct units *u)
{
    uint32_t low = 0, high = 0;
    for (uint32_t p = 0; p + 2 <= u->periods; p++) {
        if (!same_rows(u, p))
            low = p + 1;
        else if (p + 2 - low > high - u->alike) {
            u->alike = low;
            high = p + 2;
        }
    }
    return high - u->alike >= STEADY_MIN &&
           find_steady(u, u->alike, high, back_goes_on, &u->back) &&
           find_steady(u, u->alike, high, free_sets_go_on, &u->ahead);
}

/* Inputs of which each period reads another part: by the same from each, whoever reads it. */
static bool find_inputs(struct units *u)
{
    const struct ir *ir = u->ir;
    struct thrice begin = begins(ir->op.operand_begin, u->op_at, u->back.cut, true);
    uint32_t operands = begin.b - begin.a;
    for (uint32_t i = 0; i < 2 * operands; i++) { /* the second time all of them are known */
        uint32_t operand = ir->operand[begin.a + i % operands], k = 0;
        if (!(operand & IR_RANGE))
            continue;
        struct view a = ir_view(ir, operand), b = ir_view(ir, ir->operand[begin.b + i % operands]);
        if (a.buffer.i != b.buffer.i)
            continue;
        while (k < u->input_count && u->input[k].buffer != a.buffer.i)
            k++;
        if (k == u->input_count && a.begin == b.begin)
            continue;
        if (k == UNITS_INPUTS_MAX)
            return false;
        if (k == u->input_count)
            u->input[u->input_count++] = (struct units_input){a.buffer.i, b.begin - a.begin};
        if (b.begin - a.begin != u->input[k].step)
            return false;
    }
    return true;
}

bool units_survey(struct units *u, struct ir *ir, uint16_t role, uint32_t step, uint32_t more)
{
    *u = (struct units){.ir = ir, .role = role, .step = step, .more = more};
    if (role >= ir->role_count)
        return false;
    u->first_buffer = first_buffer_of(ir, role);
    u->micro_of = heap_alloc(ir->buffer.count - u->first_buffer + 1, sizeof *u->micro_of);
    find_periods(u);
    return find_alike(u) && find_inputs(u);
}
