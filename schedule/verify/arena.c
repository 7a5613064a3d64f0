/* Rules on planned offsets. One walk over a role's ops puts each buffer into a map of its memory at the buffer's
 * first use, and checks the buffer that had these bytes before: is its whole free set ordered before this first use?
 * Checking the latest owner suffices, since that owner was checked against the one before it. The map is a sorted
 * array of disjoint byte ranges; every first use adds one and cuts at most two. */
#include "schedule/analysis/first_uses.h"
#include "schedule/analysis/liveness.h"
#include "schedule/verify/rules.h"
#include "schedule/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A range of bytes of an arena, and the buffer that had them last. */
struct arena_byte_range {
    uint64_t begin, end;
    uint32_t buffer;
};

struct arena_byte_ranges {
    struct arena_byte_range *row; /* sorted by address */
    size_t count, capacity;
};

/* ---- the walk ---- */

struct overlap_check {
    struct verifier *v;
    const struct order *order;
    struct first_uses first_uses;
    struct arena_byte_ranges map[MEMORY_COUNT];
};

static uint64_t end_byte_of_buffer(const struct ir *ir, uint32_t buffer)
{
    return ir->buffer.offset[buffer] + ir_buffer_bytes(ir, (buffer_id){buffer});
}

static const char *live_range_text(struct verifier *v, uint32_t buffer)
{
    const struct ir *ir = v->ir;
    uint32_t count = ir->buffer.free_count[buffer];
    if (liveness_is_persistent(ir, buffer))
        return "is persistent";
    if (count == 0)
        return "is never freed";
    return arena_printf(&v->arena, "is free after op %" PRIu32 "%s",
                        ir_free_set(ir, buffer)[count - 1].i, count > 1 ? " and others" : "");
}

/* Reports a fault unless `buffer` may use bytes that `other` had before: neither is persistent, and the first use of
 * `buffer` comes after every op of the free set of `other`, which must not be empty. */
static void check_buffer_may_reuse_bytes(struct overlap_check *w, uint32_t buffer, uint32_t other)
{
    struct verifier *v = w->v;
    const struct ir *ir = v->ir;
    uint32_t count = ir->buffer.free_count[other];
    const bool persistent = liveness_is_persistent(ir, buffer);
    if (count != 0 && !persistent && !liveness_is_persistent(ir, other) &&
        first_uses_starts_after_free_set(&w->first_uses, w->order, buffer, ir_free_set(ir, other),
                                         count))
        return;
    uint64_t begin = ir->buffer.offset[buffer], end = end_byte_of_buffer(ir, buffer);
    if (ir->buffer.offset[other] > begin)
        begin = ir->buffer.offset[other];
    if (end_byte_of_buffer(ir, other) < end)
        end = end_byte_of_buffer(ir, other);
    const char *first_use = "is persistent";
    if (!persistent)
        first_use = arena_printf(&v->arena, "is first used by %s",
                                 op_text(v, w->first_uses.first_op_by_buffer[buffer]));
    verify_fail(v, "%s and %s share bytes %" PRIu64 " to %" PRIu64 " of %s: %s %s, and %s %s%s",
                buffer_text(v, other), buffer_text(v, buffer), begin, end,
                memory_names[ir->buffer.memory[buffer]], buffer_text(v, other),
                live_range_text(v, other), buffer_text(v, buffer), first_use,
                count != 0 && !persistent ? ", which is not ordered after that" : "");
}

/* Returns the index of the first range that ends after `begin`; the number of ranges if none does. */
static size_t first_range_after(const struct arena_byte_ranges *m, uint64_t begin)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->row[middle].end <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Checks the buffer against those that have had its bytes, and then records it as the last that has them. */
static void check_and_record_range(struct overlap_check *w, uint32_t buffer)
{
    const struct ir *ir = w->v->ir;
    struct arena_byte_ranges *m = &w->map[ir->buffer.memory[buffer]];
    uint64_t begin = ir->buffer.offset[buffer], end = end_byte_of_buffer(ir, buffer);
    size_t first = first_range_after(m, begin),
           last = first; /* rows [first, last) share bytes with the buffer */
    for (; last < m->count && m->row[last].begin < end; last++)
        check_buffer_may_reuse_bytes(w, buffer, m->row[last].buffer);
    /* the rest of the first range, the buffer's range, and the rest of the last range */
    struct arena_byte_range new[3];
    size_t count = 0;
    if (last > first && m->row[first].begin < begin)
        new[count++] = (struct arena_byte_range){m->row[first].begin, begin, m->row[first].buffer};
    new[count++] = (struct arena_byte_range){begin, end, buffer};
    if (last > first && m->row[last - 1].end > end)
        new[count++] =
            (struct arena_byte_range){end, m->row[last - 1].end, m->row[last - 1].buffer};
    m->row = heap_grow(m->row, &m->capacity, m->count + count, sizeof *m->row);
    memmove(m->row + first + count, m->row + last, (m->count - last) * sizeof *m->row);
    memcpy(m->row + first, new, count * sizeof *new);
    m->count += count + first - last;
}

/* Checks that a buffer has an offset and lies inside the arena. If so, checks it against the buffers that have had its
 * bytes (check_and_record_range()). */
static void check_offset_of_buffer(struct overlap_check *w, uint32_t buffer)
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
    if (offset > ir->planned_bytes[memory] || bytes > ir->planned_bytes[memory] - offset) {
        verify_fail(
            v,
            "%s of %" PRIu64 " bytes at %" PRIu64 " ends outside the %s arena of %" PRIu64 " bytes",
            buffer_text(v, buffer), bytes, offset, memory_names[memory], ir->planned_bytes[memory]);
        return;
    }
    check_and_record_range(w, buffer);
}

static void check_overlaps_of_role(struct overlap_check *w, uint32_t role)
{
    const struct ir *ir = w->v->ir;
    for (int memory = 0; memory < MEMORY_COUNT; memory++)
        w->map[memory].count = 0;
    w->order = verifier_order_of_role(w->v, role);
    first_uses_of_role(&w->first_uses, ir, w->order);
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.role[b] == role && liveness_is_persistent(ir, b))
            check_offset_of_buffer(w, b);
    for (uint32_t op = w->order->first_op; op < w->order->first_op + w->order->op_count; op++) {
        for (uint32_t k = 0; k < ir_operand_count(ir, op); k++) {
            uint32_t b = ir_touched_buffer(ir, op, k);
            if (w->first_uses.first_op_by_buffer[b] == op && !liveness_is_persistent(ir, b) &&
                !buffer_is_touched_by_earlier_operand(ir, op, k))
                check_offset_of_buffer(w, b);
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
        verify_set_what_was_checked_text(v, "no offsets are planned");
        return;
    }
    struct overlap_check w = {.v = v};
    for (uint32_t role = 0; role < ir->role_count; role++)
        check_overlaps_of_role(&w, role);
    first_uses_release(&w.first_uses);
    for (int memory = 0; memory < MEMORY_COUNT; memory++)
        free(w.map[memory].row);
    verify_set_what_was_checked_text(v, "%" PRIu32 " planned buffers", planned);
}

/* ---- the sizes of arenas ---- */

void check_capacity(struct verifier *v)
{
    const struct ir *ir = v->ir;
    bool limited = false;
    for (int m = 0; m < MEMORY_COUNT && v->limits; m++) {
        uint64_t limit = v->limits->bytes[m], arena = ir->planned_bytes[m];
        limited |= limit != 0;
        if (limit != 0 && arena > limit)
            verify_fail(v,
                        "the %s arena takes %" PRIu64 " bytes, %" PRIu64 " more than the %" PRIu64
                        " there are",
                        memory_names[m], arena, arena - limit, limit);
    }
    verify_set_what_was_checked_text(v, limited ? "arenas against limits" : "no limits were given");
}
