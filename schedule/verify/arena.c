/* Rules on planned offsets. One walk over a role's ops puts each buffer into a map of its memory at the buffer's
 * first use, and checks the buffer that had these bytes before: is its whole free set ordered before this first use?
 * Checking the latest owner suffices, since that owner was checked against the one before it. The map is a treap of
 * disjoint byte ranges; every first use adds one and cuts at most two. */
#include "schedule/analysis/first_uses.h"
#include "schedule/analysis/liveness.h"
#include "schedule/verify/rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NIL 0u /* row 0 of the map is no range */

struct range {
    uint64_t begin, end;
    uint32_t buffer;
    uint32_t left, right;
    uint32_t weight; /* heap order; a hash of the row, so that runs repeat */
};

struct range_map {
    struct range *row;
    uint32_t count, capacity, spare;
};

static uint32_t map_new(struct range_map *m, uint64_t begin, uint64_t end, uint32_t buffer)
{
    uint32_t i = m->spare;
    if (i != NIL) {
        m->spare = m->row[i].right;
    } else {
        if (m->count + 1 >= m->capacity) {
            m->capacity = (uint32_t)heap_next_capacity(m->capacity, (size_t)m->count + 2);
            m->row = heap_realloc(m->row, m->capacity, sizeof *m->row);
        }
        i = ++m->count;
    }
    uint64_t hash = i * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    m->row[i] = (struct range){
        .begin = begin, .end = end, .buffer = buffer, .weight = (uint32_t)(hash >> 32)};
    return i;
}

/* Cuts the tree at a byte: *low gets the ranges that begin before it, *high the others. */
static void map_split(struct range_map *m, uint32_t tree, uint64_t at, uint32_t *low,
                      uint32_t *high)
{
    if (tree == NIL) {
        *low = *high = NIL;
    } else if (m->row[tree].begin < at) {
        uint32_t rest;
        map_split(m, m->row[tree].right, at, &rest, high);
        m->row[tree].right = rest;
        *low = tree;
    } else {
        uint32_t rest;
        map_split(m, m->row[tree].left, at, low, &rest);
        m->row[tree].left = rest;
        *high = tree;
    }
}

static uint32_t map_join(struct range_map *m, uint32_t low, uint32_t high)
{
    if (low == NIL || high == NIL)
        return low == NIL ? high : low;
    if (m->row[low].weight > m->row[high].weight) {
        m->row[low].right = map_join(m, m->row[low].right, high);
        return low;
    }
    m->row[high].left = map_join(m, low, m->row[high].left);
    return high;
}

static uint32_t map_last(const struct range_map *m, uint32_t tree)
{
    while (tree != NIL && m->row[tree].right != NIL)
        tree = m->row[tree].right;
    return tree;
}

/* --- the walk --- */

struct overlap_walk {
    struct verifier *v;
    const struct order *order;
    struct first_uses first_uses;
    struct range_map map;
    uint32_t tree[MEMORY_COUNT];
};

static uint64_t end_of(const struct ir *ir, uint32_t buffer)
{
    return ir->buffer.offset[buffer] + ir_buffer_bytes(ir, (buffer_id){buffer});
}

static const char *life_text(struct verifier *v, uint32_t buffer)
{
    const struct ir *ir = v->ir;
    uint32_t count = ir->buffer.free_count[buffer];
    if (lifetimes_persistent(ir, buffer))
        return "is persistent";
    if (count == 0)
        return "is never freed";
    return arena_printf(&v->arena, "is free after op %" PRIu32 "%s",
                        ir_free_set(ir, buffer)[count - 1].i, count > 1 ? " and others" : "");
}

/* Checks that `buffer` may take bytes that `other` had. */
static void check_pair(struct overlap_walk *w, uint32_t buffer, uint32_t other)
{
    struct verifier *v = w->v;
    const struct ir *ir = v->ir;
    uint32_t count = ir->buffer.free_count[other];
    if (count != 0 && !lifetimes_persistent(ir, other) && !lifetimes_persistent(ir, buffer) &&
        first_uses_after(&w->first_uses, w->order, buffer, ir_free_set(ir, other), count))
        return;
    uint64_t begin = ir->buffer.offset[buffer], end = end_of(ir, buffer);
    if (ir->buffer.offset[other] > begin)
        begin = ir->buffer.offset[other];
    if (end_of(ir, other) < end)
        end = end_of(ir, other);
    const char *first_use = "is persistent";
    if (!lifetimes_persistent(ir, buffer))
        first_use =
            arena_printf(&v->arena, "is first used by %s", op_text(v, w->first_uses.first[buffer]));
    verify_fail(
        v, "%s and %s share bytes %" PRIu64 " to %" PRIu64 " of %s: %s %s, and %s %s%s",
        buffer_text(v, other), buffer_text(v, buffer), begin, end,
        memory_name(ir->buffer.memory[buffer]), buffer_text(v, other), life_text(v, other),
        buffer_text(v, buffer), first_use,
        count != 0 && !lifetimes_persistent(ir, buffer) ? ", which is not ordered after that" : "");
}

/* Lets `buffer` take over all ranges of a cut-out tree; gives their rows back. */
static void take_over(struct overlap_walk *w, uint32_t tree, uint32_t buffer)
{
    if (tree == NIL)
        return;
    take_over(w, w->map.row[tree].left, buffer);
    take_over(w, w->map.row[tree].right, buffer);
    check_pair(w, buffer, w->map.row[tree].buffer);
    w->map.row[tree].right = w->map.spare;
    w->map.spare = tree;
}

static void put(struct overlap_walk *w, uint32_t buffer)
{
    const struct ir *ir = w->v->ir;
    struct range_map *m = &w->map;
    uint32_t *tree = &w->tree[ir->buffer.memory[buffer]], low, middle, high;
    uint64_t begin = ir->buffer.offset[buffer], end = end_of(ir, buffer);
    map_split(m, *tree, begin, &low, &high);
    map_split(m, high, end, &middle, &high);

    /* ranges that begin before the buffer and reach into it, or begin in it and reach past it, are cut */
    uint32_t last = map_last(m, low), rest = NIL;
    if (last != NIL && m->row[last].end > begin) {
        uint32_t other = m->row[last].buffer;
        uint64_t other_end = m->row[last].end;
        check_pair(w, buffer, other);
        m->row[last].end = begin;
        if (other_end > end)
            rest = map_new(m, end, other_end, other);
    }
    last = map_last(m, middle);
    if (last != NIL && m->row[last].end > end)
        rest = map_new(m, end, m->row[last].end, m->row[last].buffer);
    take_over(w, middle, buffer);
    uint32_t mine = map_new(m, begin, end, buffer);
    *tree = map_join(m, map_join(m, low, mine), map_join(m, rest, high));
}

/* Puts a buffer in its place, if that is in the arena. */
static void place(struct overlap_walk *w, uint32_t buffer)
{
    struct verifier *v = w->v;
    const struct ir *ir = v->ir;
    enum memory memory = ir->buffer.memory[buffer];
    uint64_t offset = ir->buffer.offset[buffer];
    if (offset == UINT64_MAX) {
        verify_fail(v, "%s has no offset in the arena, but other buffers have",
                    buffer_text(v, buffer));
        return;
    }
    uint64_t bytes = ir_buffer_bytes(ir, (buffer_id){buffer});
    if (offset > ir->arena_bytes[memory] || bytes > ir->arena_bytes[memory] - offset) {
        verify_fail(
            v,
            "%s of %" PRIu64 " bytes at %" PRIu64 " ends outside the %s arena of %" PRIu64 " bytes",
            buffer_text(v, buffer), bytes, offset, memory_name(memory), ir->arena_bytes[memory]);
        return;
    }
    put(w, buffer);
}

static void walk_role(struct overlap_walk *w, uint32_t role)
{
    const struct ir *ir = w->v->ir;
    w->map.count = 0;
    w->map.spare = NIL;
    memset(w->tree, 0, sizeof w->tree);
    w->order = verify_order_of(w->v, role);
    first_uses_of_role(&w->first_uses, ir, w->order);
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.role[b] == role && lifetimes_persistent(ir, b))
            place(w, b);
    for (uint32_t op = w->order->begin; op < w->order->begin + w->order->count; op++) {
        uint32_t operands = (uint32_t)ir->op.reads[op] + ir->op.writes[op];
        for (uint32_t k = 0; k < operands; k++) {
            uint32_t b = ir_touched(ir, op, k);
            if (w->first_uses.first[b] != op || lifetimes_persistent(ir, b))
                continue;
            bool again = false; /* an op that touches it twice comes here twice */
            for (uint32_t i = 0; i < k; i++)
                again |= ir_touched(ir, op, i) == b;
            if (!again)
                place(w, b);
        }
    }
}

void check_overlap(struct verifier *v)
{
    const struct ir *ir = v->ir;
    uint32_t planned = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        planned += ir->buffer.offset[b] != UINT64_MAX;
    if (planned == 0) {
        verify_checked(v, "no offsets are planned");
        return;
    }
    struct overlap_walk w = {.v = v};
    for (uint32_t role = 0; role < ir->role_count; role++)
        walk_role(&w, role);
    first_uses_release(&w.first_uses);
    free(w.map.row);
    verify_checked(v, "%" PRIu32 " planned buffers", planned);
}

void check_capacity(struct verifier *v)
{
    const struct ir *ir = v->ir;
    bool limited = false;
    for (int m = 0; m < MEMORY_COUNT && v->limits; m++) {
        uint64_t limit = v->limits->bytes[m], arena = ir->arena_bytes[m];
        limited |= limit != 0;
        if (limit != 0 && arena > limit)
            verify_fail(v,
                        "the %s arena takes %" PRIu64 " bytes, %" PRIu64 " more than the %" PRIu64
                        " there are",
                        memory_name((enum memory)m), arena, arena - limit, limit);
    }
    verify_checked(v, limited ? "arenas against limits" : "no limits were given");
}
