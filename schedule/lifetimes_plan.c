/* Offsets by one walk over the op list. A buffer is placed when the walk meets its first touch and
 * its bytes are given back when the walk has passed its free set. Being given back is not enough
 * for another buffer to take them: the walk follows the host's issue order, and streams run
 * behind it. So a free segment carries what must have ended before it may be used, as a vector
 * clock (`after`), and serves a buffer only when the clock of the buffer's birth covers it.
 *
 * The fit is the smallest segment that is large enough and covered. Neighbouring free segments are
 * joined at once when they wait for the same streams, since the newer one then stands for both;
 * others only when a buffer that is covered by both needs the room, because a segment joined
 * with one that waits for a slow copy would have to wait for it too. */
#include "schedule/births.h"
#include "schedule/lifetimes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 32,         /* bins per doubling of size */
    BINS = 60 * STEPS,  /* all sizes below 2^64 */
    LOOK_AT_MOST = 256, /* segments looked at for one placement */
    JOIN_CREDIT = 32,   /* segments a placement may visit to join free neighbours, saved up */
};

struct segment {
    uint64_t begin, size;
    uint32_t left, right;  /* neighbours in the arena */
    uint32_t newer, older; /* in its bin, when free; older also links unused rows */
    uint32_t place;        /* in space.free */
    bool is_free;
};

/* One arena, of one role and memory. */
struct space {
    struct segment *segment;
    uint32_t *after; /* (capacity, width) */
    uint32_t count, capacity, spare, width;
    uint32_t last; /* the segment with the highest address */
    uint64_t base, top;
    uint32_t *free;  /* all free segments, in no order */
    uint32_t *visit; /* a copy of them for join_covered() */
    uint32_t free_count;
    uint32_t bin[BINS];
    uint64_t used_bins[(BINS + 63) / 64];
    uint64_t live, live_max; /* bytes, in list order */
    int64_t credit;
};

static uint32_t *after_of(const struct space *s, uint32_t segment)
{
    return s->after + (size_t)segment * s->width;
}

static void space_begin(struct space *s, uint32_t width, uint64_t base)
{
    s->count = 0;
    s->spare = s->last = IR_NONE;
    s->free_count = 0;
    s->base = s->top = base;
    s->live = s->live_max = base;
    s->credit = 0;
    if (s->width != width) {
        s->capacity = 0;
        s->width = width;
    }
    memset(s->bin, 0xff, sizeof s->bin);
    memset(s->used_bins, 0, sizeof s->used_bins);
}

static void space_release(struct space *s)
{
    free(s->segment);
    free(s->after);
    free(s->free);
    free(s->visit);
}

static uint32_t new_segment(struct space *s)
{
    uint32_t i = s->spare;
    if (i != IR_NONE) {
        s->spare = s->segment[i].older;
        return i;
    }
    if (s->count == s->capacity) {
        s->capacity = (uint32_t)heap_next_capacity(s->capacity, (size_t)s->count + 1);
        s->segment = heap_realloc(s->segment, s->capacity, sizeof *s->segment);
        s->after = heap_realloc(s->after, s->capacity, s->width * sizeof *s->after);
        s->free = heap_realloc(s->free, s->capacity, sizeof *s->free);
        s->visit = heap_realloc(s->visit, s->capacity, sizeof *s->visit);
    }
    return s->count++;
}

/* Sizes of one bin differ by less than 1 / STEPS. Monotonic in size. */
static uint32_t bin_of(uint64_t size)
{
    uint32_t log2 = 0;
    for (uint32_t half = 32; half != 0; half /= 2)
        if (size >> (log2 + half) != 0)
            log2 += half;
    if (log2 < 5)
        return (uint32_t)size;
    return (log2 - 4) * STEPS + (uint32_t)(size >> (log2 - 5)) % STEPS;
}

static void bin_add(struct space *s, uint32_t i)
{
    struct segment *g = &s->segment[i];
    uint32_t bin = bin_of(g->size);
    g->is_free = true;
    g->newer = IR_NONE;
    g->older = s->bin[bin];
    if (g->older != IR_NONE)
        s->segment[g->older].newer = i;
    s->bin[bin] = i;
    s->used_bins[bin / 64] |= UINT64_C(1) << bin % 64;
    g->place = s->free_count;
    s->free[s->free_count++] = i;
}

static void bin_remove(struct space *s, uint32_t i)
{
    struct segment *g = &s->segment[i];
    uint32_t bin = bin_of(g->size);
    g->is_free = false;
    if (g->older != IR_NONE)
        s->segment[g->older].newer = g->newer;
    if (g->newer != IR_NONE)
        s->segment[g->newer].older = g->older;
    else
        s->bin[bin] = g->older;
    if (s->bin[bin] == IR_NONE)
        s->used_bins[bin / 64] &= ~(UINT64_C(1) << bin % 64);
    uint32_t moved = s->free[--s->free_count];
    s->free[g->place] = moved;
    s->segment[moved].place = g->place;
}

static uint32_t next_used_bin(const struct space *s, uint32_t bin)
{
    while (bin < BINS) {
        uint64_t word = s->used_bins[bin / 64] >> bin % 64;
        if (word == 0) {
            bin = (bin / 64 + 1) * 64;
            continue;
        }
        while ((word & 1) == 0) {
            word >>= 1;
            bin++;
        }
        return bin;
    }
    return BINS;
}

static bool covered(const struct space *s, uint32_t segment, const uint32_t *clock)
{
    const uint32_t *after = after_of(s, segment);
    bool all = true;
    for (uint32_t i = 0; i < s->width; i++)
        all &= after[i] <= clock[i];
    return all;
}

/* The smallest free segment of at least `size` bytes that is covered, or IR_NONE. */
static uint32_t find_fit(const struct space *s, uint64_t size, const uint32_t *clock)
{
    uint32_t looked = 0;
    for (uint32_t bin = next_used_bin(s, bin_of(size)); bin < BINS;
         bin = next_used_bin(s, bin + 1)) {
        uint32_t best = IR_NONE;
        for (uint32_t i = s->bin[bin]; i != IR_NONE; i = s->segment[i].older) {
            if (++looked > LOOK_AT_MOST)
                return best;
            const struct segment *g = &s->segment[i];
            if (g->size >= size && (best == IR_NONE || g->size < s->segment[best].size) &&
                covered(s, i, clock))
                best = i;
        }
        if (best != IR_NONE)
            return best;
    }
    return IR_NONE;
}

/* Joins free segment `right` to the free segment `left` of which it is the neighbour. Neither is in
 * a bin. What one of the streams must have reached may follow from another's: then it is dropped. */
static void join(struct space *s, const struct order *order, uint32_t left, uint32_t right)
{
    struct segment *l = &s->segment[left], *r = &s->segment[right];
    l->size += r->size;
    l->right = r->right;
    if (r->right != IR_NONE)
        s->segment[r->right].left = left;
    else
        s->last = left;
    uint32_t *a = after_of(s, left), *b = after_of(s, right);
    for (uint32_t i = 0; i < s->width; i++)
        a[i] = a[i] > b[i] ? a[i] : b[i];
    for (uint32_t i = 0; i < order->streams; i++)
        for (uint32_t j = 0; a[i] != 0 && j < order->streams; j++)
            if (i != j && a[j] != 0 && order_before(order, a[i] - 1, a[j] - 1))
                a[i] = 0;
    r->older = s->spare;
    s->spare = right;
}

static bool same_streams(const struct space *s, uint32_t a, uint32_t b)
{
    const uint32_t *x = after_of(s, a), *y = after_of(s, b);
    bool same = true;
    for (uint32_t i = 0; i < s->width; i++)
        same &= (x[i] == 0) == (y[i] == 0);
    return same;
}

/* Joins all free neighbours that this clock covers. */
static void join_covered(struct space *s, const struct order *order, const uint32_t *clock)
{
    uint32_t count = s->free_count;
    if (count < 2)
        return;
    memcpy(s->visit, s->free, count * sizeof *s->visit); /* joining moves rows of s->free about */
    for (uint32_t at = 0; at < count; at++) {
        uint32_t i = s->visit[at], right;
        if (!s->segment[i].is_free || !covered(s, i, clock))
            continue;
        while ((right = s->segment[i].right) != IR_NONE && s->segment[right].is_free &&
               covered(s, right, clock)) {
            bin_remove(s, right);
            bin_remove(s, i);
            join(s, order, i, right);
            bin_add(s, i);
        }
    }
}

/* A free segment of at least `size` bytes at the end of the arena. */
static uint32_t grow(struct space *s, uint64_t size, const uint32_t *clock)
{
    uint32_t last = s->last;
    if (last != IR_NONE && s->segment[last].is_free && covered(s, last, clock)) {
        bin_remove(s, last);
        s->top += size - s->segment[last].size;
        s->segment[last].size = size;
        bin_add(s, last);
        return last;
    }
    uint32_t i = new_segment(s);
    s->segment[i] = (struct segment){.begin = s->top, .size = size, .left = last, .right = IR_NONE};
    memset(after_of(s, i), 0, s->width * sizeof *s->after);
    if (last != IR_NONE)
        s->segment[last].right = i;
    s->last = i;
    s->top += size;
    bin_add(s, i);
    return i;
}

/* Takes `size` bytes for a buffer that is born with this clock; returns the segment. */
static uint32_t space_take(struct space *s, const struct order *order, uint64_t size,
                           const uint32_t *clock)
{
    s->live += size;
    if (s->live > s->live_max)
        s->live_max = s->live;
    s->credit += JOIN_CREDIT;
    uint32_t i = find_fit(s, size, clock);
    if (i == IR_NONE && s->credit >= s->free_count) {
        s->credit -= s->free_count;
        join_covered(s, order, clock);
        i = find_fit(s, size, clock);
    }
    if (i == IR_NONE)
        i = grow(s, size, clock);
    bin_remove(s, i);
    if (s->segment[i].size > size) { /* the rest stays free */
        uint32_t rest = new_segment(s);
        struct segment *g = &s->segment[i], *r = &s->segment[rest];
        *r = (struct segment){
            .begin = g->begin + size, .size = g->size - size, .left = i, .right = g->right};
        if (g->right != IR_NONE)
            s->segment[g->right].left = rest;
        else
            s->last = rest;
        g->right = rest;
        g->size = size;
        memcpy(after_of(s, rest), after_of(s, i), s->width * sizeof *s->after);
        bin_add(s, rest);
    }
    return i;
}

/* Gives a segment back, to be used after the ops of a free set. */
static void space_give(struct space *s, const struct order *order, uint32_t i, const op_id *set,
                       uint32_t set_count)
{
    s->live -= s->segment[i].size;
    uint32_t *after = after_of(s, i);
    memset(after, 0, s->width * sizeof *after);
    for (uint32_t k = 0; k < set_count; k++) {
        uint32_t op = set[k].i;
        uint8_t stream = order->stream[op - order->begin];
        /* Whatever is listed behind an op of the host is ordered behind it. */
        if (stream != ORDER_ON_HOST && after[stream] <= op)
            after[stream] = op + 1;
    }
    uint32_t right = s->segment[i].right, left = s->segment[i].left;
    if (right != IR_NONE && s->segment[right].is_free && same_streams(s, i, right)) {
        bin_remove(s, right);
        join(s, order, i, right);
    }
    if (left != IR_NONE && s->segment[left].is_free && same_streams(s, i, left)) {
        bin_remove(s, left);
        join(s, order, left, i);
        i = left;
    }
    bin_add(s, i);
}

/* --- the walk --- */

struct plan {
    struct ir *ir;
    uint64_t alignment;
    struct order order;
    struct space *space; /* one per memory */
    struct births births;
    uint32_t *segment; /* per buffer, once placed; IR_NONE before and after */
    uint32_t *next;    /* per buffer: next one freed by the same op */
    uint32_t *freed;   /* per op of the role: first buffer whose free set it ends */
};

static uint64_t rounded(const struct plan *p, uint32_t buffer)
{
    uint64_t bytes = ir_buffer_bytes(p->ir, (buffer_id){buffer});
    return (bytes + p->alignment - 1) & ~(p->alignment - 1);
}

static bool in_role(const struct order *order, uint32_t op)
{
    return op >= order->begin && op - order->begin < order->count;
}

static void place(struct plan *p, uint32_t buffer)
{
    struct ir *ir = p->ir;
    uint64_t size = rounded(p, buffer);
    if (size == 0)
        size = p->alignment;
    struct space *s = &p->space[ir->buffer.memory[buffer]];
    const uint32_t *clock = births_clock(&p->births, &p->order, buffer);
    uint32_t i = space_take(s, &p->order, size, clock);
    ir->buffer.offset[buffer] = s->segment[i].begin;
    p->segment[buffer] = i;
    if (ir->buffer.free_count[buffer] == 0)
        return;
    const op_id *set = ir->free_op + ir->buffer.free_begin[buffer];
    uint32_t end = 0;
    for (uint32_t k = 0; k < ir->buffer.free_count[buffer]; k++) {
        if (!in_role(&p->order, set[k].i))
            return; /* a wrong set: the bytes stay taken */
        end = set[k].i > end ? set[k].i : end;
    }
    if (end < p->births.first[buffer])
        return; /* the same */
    p->next[buffer] = p->freed[end - p->order.begin];
    p->freed[end - p->order.begin] = buffer;
}

static void plan_role(struct plan *p)
{
    struct ir *ir = p->ir;
    uint32_t begin = p->order.begin, end = begin + p->order.count;
    p->freed = heap_realloc(p->freed, p->order.count, sizeof *p->freed);
    memset(p->freed, 0xff, p->order.count * sizeof *p->freed);

    births_of_role(&p->births, ir, &p->order);
    for (uint32_t op = begin; op < end; op++) {
        uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
        for (uint32_t k = 0; k < operands; k++) {
            uint32_t buffer = ir_read(ir, op, k).buffer.i;
            if (ir->buffer.offset[buffer] == UINT64_MAX)
                place(p, buffer);
        }
        for (uint32_t b = p->freed[op - begin]; b != IR_NONE; b = p->next[b]) {
            space_give(&p->space[ir->buffer.memory[b]], &p->order, p->segment[b],
                       ir->free_op + ir->buffer.free_begin[b], ir->buffer.free_count[b]);
            p->segment[b] = IR_NONE;
        }
    }
}

/* Persistent buffers lie at the start of their role's arenas; base[role * MEMORY_COUNT + memory]. */
static void place_persistent(struct plan *p, uint64_t *base)
{
    struct ir *ir = p->ir;
    for (uint32_t buffer = 0; buffer < ir->buffer.count; buffer++) {
        ir->buffer.offset[buffer] = UINT64_MAX;
        if (!lifetimes_persistent(ir, buffer))
            continue;
        uint64_t *end =
            &base[(uint32_t)ir->buffer.role[buffer] * MEMORY_COUNT + ir->buffer.memory[buffer]];
        ir->buffer.offset[buffer] = *end;
        *end += rounded(p, buffer);
    }
}

static uint32_t *rows_of_none(uint32_t count)
{
    uint32_t *rows = heap_alloc(count, sizeof *rows);
    memset(rows, 0xff, count * sizeof *rows);
    return rows;
}

void lifetimes_plan(struct ir *ir, uint64_t alignment, struct lifetimes_figures *figures)
{
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    struct lifetimes_figures most = {0};
    struct plan p = {.ir = ir, .alignment = alignment};
    p.space = heap_zalloc(MEMORY_COUNT, sizeof *p.space);
    p.segment = rows_of_none(ir->buffer.count);
    p.next = rows_of_none(ir->buffer.count);
    /* A schedule without ops may have buffers and no role yet: they are of role 0. */
    uint64_t *base = heap_zalloc(((size_t)ir->role_count + 1) * MEMORY_COUNT, sizeof *base);
    place_persistent(&p, base);
    for (int m = 0; m < MEMORY_COUNT; m++)
        most.arena[m] = most.live[m] = base[m];

    for (uint32_t role = 0; role < ir->role_count; role++) {
        order_role(&p.order, ir, role);
        for (int m = 0; m < MEMORY_COUNT; m++)
            space_begin(&p.space[m], p.order.width, base[role * MEMORY_COUNT + (uint32_t)m]);
        plan_role(&p);
        for (int m = 0; m < MEMORY_COUNT; m++)
            if (p.space[m].top > most.arena[m]) {
                most.arena[m] = p.space[m].top;
                most.live[m] = p.space[m].live_max;
            }
    }
    memcpy(ir->arena_bytes, most.arena, sizeof most.arena);
    if (figures)
        *figures = most;

    for (int m = 0; m < MEMORY_COUNT; m++)
        space_release(&p.space[m]);
    order_release(&p.order);
    free(p.space);
    births_release(&p.births);
    free(p.segment);
    free(p.next);
    free(p.freed);
    free(base);
}
