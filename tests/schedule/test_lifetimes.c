/* tests/schedule/test_lifetimes.c: buffers that live at the same time never overlap in the planned arena. */
#include "schedule/analysis/liveness.h"

#include "schedule/memory_plan/live_ranges.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "tests/check.h"
#include "tests/schedule/random_schedule.h"

#include <stdlib.h>

/* Returns a table for a role: touched[b * ops + op] is true if the op accesses buffer b. */
static bool *make_touch_matrix(const struct ir *ir, uint32_t role)
{
    uint32_t begin = ir->role[role].op_begin, n = ir->role[role].op_count;
    bool *touched = heap_zalloc((size_t)ir->buffer.count * n, sizeof *touched);
    for (uint32_t op = 0; op < n; op++)
        for (uint32_t k = 0;
             k < (uint32_t)ir->op.read_count[begin + op] + ir->op.write_count[begin + op]; k++)
            touched[(size_t)ir_read_view(ir, begin + op, k).buffer.i * n + op] = true;
    return touched;
}

struct touch_matrix {
    const struct ir *ir;
    uint32_t begin, ops;
    bool *before, *touched;
};

/* True if buffer a is freed, and every op of its free set comes before every op that accesses b. */
static bool buffer_ends_before(const struct touch_matrix *t, uint32_t a, uint32_t b)
{
    const struct ir *ir = t->ir;
    if (liveness_is_persistent(ir, a) || ir->buffer.free_count[a] == 0)
        return false;
    for (uint32_t k = 0; k < ir->buffer.free_count[a]; k++) {
        uint32_t f = ir_free_set(ir, a)[k].i - t->begin;
        for (uint32_t op = 0; op < t->ops; op++)
            if (t->touched[(size_t)b * t->ops + op] && !t->before[(size_t)f * t->ops + op])
                return false;
    }
    return true;
}

static bool is_buffer_touched_by_any_op(const struct touch_matrix *t, uint32_t buffer)
{
    for (uint32_t op = 0; op < t->ops; op++)
        if (t->touched[(size_t)buffer * t->ops + op])
            return true;
    return false;
}

static void check_free_sets_are_minimal(const struct touch_matrix *t, uint16_t role)
{
    const struct ir *ir = t->ir;
    uint32_t not_minimal = 0, not_covered = 0, of_persistent = 0, empty = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++) {
        const op_id *set = ir_free_set(ir, b);
        uint32_t count = ir->buffer.free_count[b];
        if (ir->buffer.role[b] != role)
            continue;
        if (liveness_is_persistent(ir, b)) {
            of_persistent += count;
            continue;
        }
        empty += (count == 0) != !is_buffer_touched_by_any_op(t, b);
        for (uint32_t op = 0; op < t->ops; op++) {
            bool in = false, earlier = false, touches = t->touched[(size_t)b * t->ops + op];
            for (uint32_t k = 0; k < count; k++) {
                in |= set[k].i - t->begin == op;
                earlier |= t->before[(size_t)op * t->ops + set[k].i - t->begin];
            }
            not_covered += touches && !in && !earlier;
            not_minimal += in && (earlier || !touches);
        }
    }
    CHECK_INT("touches not covered", not_covered, 0);
    CHECK_INT("members too many", not_minimal, 0);
    CHECK_INT("free sets of persistent buffers", of_persistent, 0);
    CHECK_INT("free sets empty for no reason", empty, 0);
}

static void check_planned_offsets(const struct touch_matrix *t, uint16_t role)
{
    const struct ir *ir = t->ir;
    uint32_t overlaps = 0, outside = 0, unaligned = 0, unplanned = 0;
    for (uint32_t a = 0; a < ir->buffer.count; a++) {
        if (ir->buffer.role[a] != role)
            continue;
        uint64_t a_begin = ir->buffer.offset[a];
        if (!liveness_is_persistent(ir, a) && !is_buffer_touched_by_any_op(t, a)) {
            unplanned += a_begin != UINT64_MAX;
            continue;
        }
        uint64_t a_end = a_begin + ir_buffer_bytes(ir, (buffer_id){a});
        unaligned += a_begin % LIVE_RANGES_ALIGNMENT != 0;
        outside += a_end > ir->planned_bytes[ir->buffer.memory[a]];
        for (uint32_t b = 0; b < a; b++) {
            if (ir->buffer.role[b] != role || ir->buffer.memory[a] != ir->buffer.memory[b] ||
                ir->buffer.offset[b] == UINT64_MAX)
                continue;
            uint64_t b_begin = ir->buffer.offset[b];
            uint64_t b_end = b_begin + ir_buffer_bytes(ir, (buffer_id){b});
            if (a_begin < b_end && b_begin < a_end)
                overlaps += !buffer_ends_before(t, a, b) && !buffer_ends_before(t, b, a);
        }
    }
    CHECK_INT("buffers that overlap while both may be live", overlaps, 0);
    CHECK_INT("buffers outside the arena", outside, 0);
    CHECK_INT("buffers out of alignment", unaligned, 0);
    CHECK_INT("untouched buffers planned", unplanned, 0);
}

static void live_buffers_never_overlap(void)
{
    struct check_random random = check_random_make();
    for (int round = 0; round < 80; round++) {
        struct ir ir = {0};
        int64_t waits = check_random_i64(&random, 0, 70);
        ir_add_role(&ir, "a", NULL, 0);
        add_random_role(&ir, &random, (struct random_sizes){120, 60, waits, 4, 30, 0, 0});
        ir_add_role(&ir, "b", NULL, 0);
        add_random_role(&ir, &random, (struct random_sizes){60, 80, waits, 0, 0, 0, 0});
        struct offsets_memory_figures figures;
        liveness_compute_free_sets(&ir);
        offsets_plan(&ir, &figures);
        for (int m = 0; m < MEMORY_COUNT; m++) {
            CHECK("an arena holds what is live", figures.live_bytes[m] <= figures.planned_bytes[m]);
            CHECK_INT("arena", (int64_t)ir.planned_bytes[m], (int64_t)figures.planned_bytes[m]);
        }
        for (uint16_t role = 0; role < 2; role++) {
            struct touch_matrix t = {.ir = &ir,
                                     .begin = ir.role[role].op_begin,
                                     .ops = ir.role[role].op_count,
                                     .before = order_by_closure(&ir, role),
                                     .touched = make_touch_matrix(&ir, role)};
            check_free_sets_are_minimal(&t, role);
            check_planned_offsets(&t, role);
            free(t.before);
            free(t.touched);
        }
        ir_release(&ir);
    }
}

/* In a chain of adds on one stream each buffer is read once, by the op after its writer. So two buffers are live at a
 * time, and the arena is no larger. */
static void chain_of_adds_needs_two_live_buffers(void)
{
    struct ir ir = {0};
    ir_add_role(&ir, "all", NULL, 0);
    uint8_t compute = ir_add_stream(&ir, "compute", STREAM_COMPUTE);
    struct buffer_desc desc = {.stem = "x",
                               .number = IR_NONE,
                               .dtype = DTYPE_F32,
                               .layer = IR_NONE16,
                               .binding = IR_NONE16,
                               .dims = {.count = 1, .size = {1024}}};
    buffer_id last = ir_add_buffer(&ir, &desc);
    for (int i = 0; i < 100; i++) {
        desc.dims.size[0] = i % 2 ? 1024 : 256;
        buffer_id next = ir_add_buffer(&ir, &desc);
        struct view read[2] = {ir_whole_view(&ir, last), ir_whole_view(&ir, last)};
        struct view write = ir_whole_view(&ir, next);
        struct op_desc op = {.work = {.kind = WORK_ADD},
                             .stream = compute,
                             .read_count = 2,
                             .write_count = 1,
                             .guard = IR_NONE16,
                             .read = read,
                             .write = &write};
        ir_add_op(&ir, &op);
        last = next;
    }
    struct offsets_memory_figures figures;
    liveness_compute_free_sets(&ir);
    offsets_plan(&ir, &figures);
    CHECK_INT("live", (int64_t)figures.live_bytes[MEMORY_HBM], 4096 + 1024);
    CHECK_INT("arena", (int64_t)figures.planned_bytes[MEMORY_HBM], 4096 + 1024);
    ir_release(&ir);
}

/* Persistent buffers get offsets even when the schedule has no op, and so no role, yet. */
static void a_schedule_without_ops_is_planned(void)
{
    struct ir ir = {0};
    struct buffer_desc desc = {.stem = "x",
                               .number = IR_NONE,
                               .dtype = DTYPE_F32,
                               .flags = BUFFER_PERSISTENT,
                               .layer = IR_NONE16,
                               .binding = IR_NONE16,
                               .dims = {.count = 1, .size = {1000}}};
    ir_add_buffer(&ir, &desc);
    liveness_compute_free_sets(&ir);
    offsets_plan(&ir, NULL);
    CHECK_INT("arena", (int64_t)ir.planned_bytes[MEMORY_HBM], 4096);
    ir_release(&ir);
}

static const struct check_case cases[] = {
    {"live buffers never overlap", live_buffers_never_overlap},
    {"a chain packs without loss", chain_of_adds_needs_two_live_buffers},
    {"a schedule without ops is planned", a_schedule_without_ops_is_planned},
};
CHECK_MAIN("lifetimes", cases)
