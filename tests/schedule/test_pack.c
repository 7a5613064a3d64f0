/* tests/schedule/test_pack.c: live ranges that conflict get separate bytes of an arena; each way of packing takes the
 * place that it promises. */
#include "schedule/memory_plan/pack.h"

#include "schedule/analysis/liveness.h"
#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/step/build.h"
#include "tests/check.h"
#include "tests/schedule/random_schedule.h"
#include "tests/schedule/shapes.h"

#include <stdlib.h>
#include <string.h>

enum { IN_ORDER_FIRST_FIT, IN_ORDER_BEST_FIT, BY_SIZE, WAYS };

/* Gives each live range its offset, in this way of packing. Returns the bytes of the arena. */
static uint64_t pack(struct live_ranges *t, int way)
{
    if (way == BY_SIZE)
        return pack_by_size(t, live_ranges_max_live_bytes(t));
    return pack_in_order(t, way == IN_ORDER_FIRST_FIT ? PACK_FIRST_FIT : PACK_BEST_FIT, UINT64_MAX);
}

/* Returns how many pairs of live ranges overlap in memory although they conflict, plus how many ranges end
 * above `top`. */
static uint32_t count_misplaced_live_ranges(const struct live_ranges *t, uint64_t top)
{
    uint32_t wrong = 0;
    for (uint32_t a = 0; a < t->range_count; a++) {
        wrong += t->offset_bytes[a] + t->bytes[a] > top;
        for (uint32_t b = 0; b < a; b++)
            wrong += live_ranges_conflict(t, a, b) &&
                     t->offset_bytes[a] < t->offset_bytes[b] + t->bytes[b] &&
                     t->offset_bytes[b] < t->offset_bytes[a] + t->bytes[a];
    }
    return wrong;
}

/* Returns how many pairs of live ranges count as not in conflict without reason: some op of a's free set is not
 * before b's first use. */
static uint32_t count_missed_live_range_conflicts(const struct live_ranges *t, const struct ir *ir,
                                                  const struct order *order,
                                                  const struct first_uses *first_uses)
{
    uint32_t wrong = 0;
    for (uint32_t a = 0; a < t->range_count; a++)
        for (uint32_t b = 0; b < t->range_count; b++) {
            if (t->first_use[a] > t->first_use[b] || a == b || live_ranges_conflict(t, a, b))
                continue;
            uint32_t buffer = t->buffer[a];
            wrong += !first_uses_starts_after_free_set(first_uses, order, t->buffer[b],
                                                       ir_free_set(ir, buffer),
                                                       ir->buffer.free_count[buffer]);
        }
    return wrong;
}

/* Returns for how many live ranges earliest_end_op_by_range is not the least of the range's ends. */
static uint32_t count_wrong_earliest_end_ops(const struct live_ranges *t)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < t->range_count; i++) {
        uint32_t first = LIVE_RANGES_NEVER_REUSABLE;
        for (uint32_t c = 0; c < t->class_count; c++) {
            uint32_t end = live_ranges_end_ops(t, i)[c];
            first = end < first ? end : first;
        }
        wrong += t->earliest_end_op_by_range[i] != first;
    }
    return wrong;
}

static void live_ranges_that_conflict_have_bytes_of_their_own(void)
{
    struct check_random random = check_random_make();
    for (int round = 0; round < 60; round++) {
        struct ir ir = {0};
        struct order order = {0};
        struct first_uses first_uses = {0};
        struct live_ranges t = {0};
        ir_add_role(&ir, "a", NULL, 0);
        add_random_role(&ir, &random,
                        (struct random_sizes){.ops = 120,
                                              .buffers = 60,
                                              .next_wait_percent = check_random_i64(&random, 0, 70),
                                              .host_sync_op_percent = 4});
        liveness_compute_free_sets(&ir);
        order_compute_clocks_of_role(&order, &ir, 0);
        first_uses_of_role(&first_uses, &ir, &order);
        for (int memory = 0; memory < MEMORY_COUNT; memory++) {
            live_ranges_of(&t, &ir, &order, &first_uses, (uint8_t)memory);
            CHECK("held is not less than live",
                  live_ranges_max_live_bytes(&t) >= t.peak_live_bytes);
            CHECK_INT("sharing that no order allows",
                      count_missed_live_range_conflicts(&t, &ir, &order, &first_uses), 0);
            CHECK_INT("least ends", count_wrong_earliest_end_ops(&t), 0);
            for (int way = 0; t.range_count > 0 && way < WAYS; way++) {
                uint64_t top = pack(&t, way);
                CHECK("no plan is smaller than what is held",
                      top >= live_ranges_max_live_bytes(&t));
                CHECK_INT("wrong places", count_misplaced_live_ranges(&t, top), 0);
                if (way == BY_SIZE)
                    continue;
                enum pack_fit fit = way == IN_ORDER_FIRST_FIT ? PACK_FIRST_FIT : PACK_BEST_FIT;
                CHECK("takes what it may", pack_in_order(&t, fit, top) == top);
                CHECK("gives up above that", pack_in_order(&t, fit, top - 1) == UINT64_MAX);
            }
        }
        live_ranges_release(&t);
        first_uses_release(&first_uses);
        order_release(&order);
        ir_release(&ir);
    }
}

/* Fills earliest_end_op_by_range from the ends. */
static void fill_earliest_end_ops(struct live_ranges *t)
{
    for (uint32_t i = 0; i < t->range_count; i++) {
        t->earliest_end_op_by_range[i] = LIVE_RANGES_NEVER_REUSABLE;
        for (uint32_t c = 0; c < t->class_count; c++) {
            uint32_t end = live_ranges_end_ops(t, i)[c];
            t->earliest_end_op_by_range[i] =
                end < t->earliest_end_op_by_range[i] ? end : t->earliest_end_op_by_range[i];
        }
    }
}

/* Draws random live ranges. About one end in a hundred is LIVE_RANGES_NEVER_REUSABLE: no first use of that class
 * may reuse the bytes. */
static void draw_live_ranges(struct live_ranges *t, struct check_random *random, uint32_t count)
{
    *t = (struct live_ranges){
        .op_count = (count + 1) / 2, .range_count = count, .capacity = count, .class_count = 3};
    t->first_use = heap_alloc(count, sizeof *t->first_use);
    t->first_use_class_by_range = heap_alloc(count, sizeof *t->first_use_class_by_range);
    t->end_ops_by_range_and_class =
        heap_alloc((size_t)count * t->class_count, sizeof *t->end_ops_by_range_and_class);
    t->bytes = heap_alloc(count, sizeof *t->bytes);
    t->offset_bytes = heap_alloc(count, sizeof *t->offset_bytes);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first_use = i / 2;
        t->first_use[i] = first_use;
        t->first_use_class_by_range[i] = (uint8_t)(check_random_i64(random, 0, 99) < 3 ? 2 : i % 2);
        t->bytes[i] = 512 * (uint64_t)check_random_i64(random, 1, 9);
        for (uint32_t c = 0; c < t->class_count; c++) {
            int64_t life = check_random_i64(random, 1, i % 16 == 0 ? count / 4 : 12);
            bool never = check_random_i64(random, 0, 99) == 0;
            uint32_t end = first_use + (uint32_t)life;
            t->end_ops_by_range_and_class[i * t->class_count + c] =
                never               ? LIVE_RANGES_NEVER_REUSABLE
                : end < t->op_count ? end
                                    : t->op_count;
        }
    }
}

/* Draws live ranges of units of work that follow each other. Of the ranges that are first used in the first half of
 * the ops, half stay to the end and a quarter end in the middle, where they leave gaps, most of them too small for
 * later ranges. All other ranges are short. First uses of a range's own class may reuse its bytes once it has ended;
 * those of other classes may do so only LATER ops later. */
static void draw_live_ranges_of_pipeline_units(struct live_ranges *t, struct check_random *random,
                                               uint32_t count)
{
    enum { LATER = 3 };
    draw_live_ranges(t, random, count);
    t->earliest_end_op_by_range = heap_alloc(count, sizeof *t->earliest_end_op_by_range);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first_use = t->first_use[i], middle = count / 4,
                 *end = t->end_ops_by_range_and_class + (size_t)i * t->class_count;
        bool stays = first_use < middle && i % 4 != 0, until_middle = stays && i % 4 == 1;
        uint32_t gone = first_use + LATER + (uint32_t)check_random_i64(random, 0, 9);
        gone = stays ? (until_middle ? middle : t->op_count) : gone;
        t->bytes[i] = 512 * (uint64_t)(until_middle ? check_random_i64(random, 1, 4)
                                                    : check_random_i64(random, 4, 12));
        t->first_use_class_by_range[i] = (uint8_t)(i % t->class_count);
        for (uint32_t c = 0; c < t->class_count; c++) {
            uint32_t learns = gone + (c == t->first_use_class_by_range[i] ? 0 : LATER);
            end[c] = learns < t->op_count ? learns : t->op_count;
        }
    }
    fill_earliest_end_ops(t);
}

/* Returns the lowest offset at which live range i fits between ranges that are placed, by trying them one by
 * one. */
static uint64_t find_first_fit_offset(const struct live_ranges *t, uint32_t i,
                                      const uint32_t *placed, uint32_t count)
{
    uint64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t j = 0; j < count; j++) {
            uint32_t k = placed[j];
            if (live_ranges_conflict(t, i, k) && t->offset_bytes[k] < at + t->bytes[i] &&
                at < t->offset_bytes[k] + t->bytes[k]) {
                at = t->offset_bytes[k] + t->bytes[k];
                moved = true;
            }
        }
    }
    return at;
}

/* Returns the offset of the smallest gap that holds live range i, found by looking at every unit of 512 bytes below
 * the top of the ranges first used before it. If no gap holds it, returns the start of the free bytes at the top. */
static uint64_t find_best_fit_offset(const struct live_ranges *t, uint32_t i)
{
    enum { UNIT = 512 };
    uint64_t top = 0, best = UINT64_MAX, at = 0, size = t->bytes[i] / UNIT, begin = 0;
    for (uint32_t j = 0; j < i; j++)
        top = t->offset_bytes[j] + t->bytes[j] > top ? t->offset_bytes[j] + t->bytes[j] : top;
    top /= UNIT;
    bool *taken = heap_zalloc(top + 1, sizeof *taken);
    for (uint32_t j = 0; j < i; j++)
        if (live_ranges_conflict(t, i, j))
            memset(taken + t->offset_bytes[j] / UNIT, 1, t->bytes[j] / UNIT);
    for (uint64_t unit = 0; unit < top; unit++) {
        if (taken[unit]) {
            begin = unit + 1;
        } else if (unit + 1 == top || taken[unit + 1]) {
            uint64_t units = unit + 1 - begin;
            at = units >= size && units < best ? begin : at;
            best = units >= size && units < best ? units : best;
        }
    }
    free(taken);
    return UNIT * (best == UINT64_MAX ? begin : at);
}

static void live_ranges_take_gap_named_by_fit(void)
{
    struct check_random random = check_random_make();
    for (int round = 0; round < 2; round++) {
        struct live_ranges t;
        draw_live_ranges_of_pipeline_units(&t, &random, 6000);
        uint32_t higher = 0, elsewhere = 0, *before = heap_alloc(t.range_count, sizeof *before);
        for (uint32_t i = 0; i < t.range_count; i++)
            before[i] = i;
        uint64_t top = pack_in_order(&t, PACK_FIRST_FIT, UINT64_MAX);
        CHECK_INT("wrong places", count_misplaced_live_ranges(&t, top), 0);
        for (uint32_t i = 0; i < t.range_count; i += 5)
            higher += t.offset_bytes[i] != find_first_fit_offset(&t, i, before, i);
        CHECK_INT("are not where the lowest room is", higher, 0);
        top = pack_in_order(&t, PACK_BEST_FIT, UINT64_MAX);
        CHECK_INT("wrong places", count_misplaced_live_ranges(&t, top), 0);
        for (uint32_t i = 0; i < t.range_count; i += 7)
            elsewhere += t.offset_bytes[i] != find_best_fit_offset(&t, i);
        CHECK_INT("are not where the tightest room is", elsewhere, 0);
        free(before);
        live_ranges_release(&t);
    }
}

static void the_largest_take_the_lowest_room(void)
{
    enum { COUNT = 700 };
    struct check_random random = check_random_make();
    for (int round = 0; round < 4; round++) {
        struct live_ranges t;
        uint32_t placed[COUNT], count = 0, higher = 0;
        draw_live_ranges(&t, &random, COUNT);
        uint64_t first_top = pack_by_size(&t, INT64_MAX); /* by size one round is enough */
        for (bool taken[COUNT] = {0}; count < COUNT; count++) {
            uint32_t next = 0;
            for (uint32_t i = 0; i < COUNT; i++)
                if (!taken[i] && (taken[next] || t.bytes[i] > t.bytes[next]))
                    next = i;
            taken[next] = true;
            higher += t.offset_bytes[next] != find_first_fit_offset(&t, next, placed, count);
            placed[count] = next;
        }
        CHECK_INT("are not where the lowest room is", higher, 0);
        uint64_t top = pack_by_size(&t, 0);
        CHECK("more rounds never take more", top <= first_top);
        CHECK_INT("wrong places", count_misplaced_live_ranges(&t, top), 0);
        live_ranges_release(&t);
    }
}

/* A temporary buffer of size 2 is followed by a saved one of size 2, a temporary one of size 1, and saved ones of
 * sizes 3 and 1. In order of first use the first saved buffer is placed above the first temporary one, whose bytes
 * are then too few for the buffer of size 3. */
static void packing_by_size_rounds_wastes_less(void)
{
    struct live_ranges t;
    struct check_random random = check_random_make();
    draw_live_ranges(&t, &random, 5);
    static const struct {
        uint32_t first_use, end;
        uint64_t size;
    } of[] = {{0, 2, 2}, {1, 6, 2}, {2, 3, 1}, {3, 6, 3}, {4, 6, 1}};
    t.earliest_end_op_by_range = heap_alloc(t.range_count, sizeof *t.earliest_end_op_by_range);
    t.op_count = 6;
    for (uint32_t i = 0; i < t.range_count; i++) {
        t.first_use[i] = of[i].first_use;
        t.first_use_class_by_range[i] = 0;
        t.bytes[i] = 512 * of[i].size;
        for (uint32_t c = 0; c < t.class_count; c++)
            t.end_ops_by_range_and_class[i * t.class_count + c] = of[i].end;
    }
    fill_earliest_end_ops(&t);
    CHECK_INT("held", (int64_t)live_ranges_max_live_bytes(&t), (int64_t)512 * 6);
    CHECK_INT("in order", (int64_t)pack_in_order(&t, PACK_FIRST_FIT, UINT64_MAX), (int64_t)512 * 7);
    CHECK_INT("by size", (int64_t)pack_by_size(&t, (uint64_t)512 * 6), (int64_t)512 * 6);
    live_ranges_release(&t);
}

static void add_held_bytes_between_ops(const struct live_ranges *t, int64_t *change, uint32_t from,
                                       uint32_t until, uint64_t bytes)
{
    if (from >= until)
        return;
    change[from - t->first_op] += (int64_t)bytes;
    change[(until - t->first_op < t->op_count ? until - t->first_op : t->op_count)] -=
        (int64_t)bytes;
}

/* Returns the op at which the most bytes are held and raises *most to their number; if no op exceeds *most, returns
 * the first op. */
static uint32_t op_with_most_bytes(const struct live_ranges *t, const int64_t *change,
                                   uint64_t *most)
{
    uint32_t at = t->first_op;
    int64_t held = 0;
    for (uint32_t op = 0; op < t->op_count; op++) {
        held += change[op];
        if (held <= (int64_t)*most)
            continue;
        *most = (uint64_t)held;
        at = t->first_op + op;
    }
    return at;
}

/* Returns a lower bound of every packing, the larger of two numbers. The first is the most bytes held at one op,
 * `full`. The second is the most, over all ops before `full` and all classes of first uses (live_ranges.h), of the
 * bytes that are held at the op and get free for the class only after `full`, plus those that begin after the op with a
 * first use of the class and are held at `full`: all of these conflict with one another. Buffers that a stream of
 * copies uses in turns are an example. */
static uint64_t arena_lower_bound(const struct live_ranges *t)
{
    int64_t *change = heap_zalloc(t->op_count + 1, sizeof *change);
    uint64_t most = 0;
    for (uint32_t i = 0; i < t->range_count; i++)
        add_held_bytes_between_ops(t, change, t->first_use[i], t->earliest_end_op_by_range[i],
                                   t->bytes[i]);
    uint32_t full = op_with_most_bytes(t, change, &most);
    CHECK_INT("most that is held", (int64_t)most, (int64_t)live_ranges_max_live_bytes(t));
    for (uint32_t c = 0; c < t->class_count; c++) {
        memset(change, 0, ((size_t)t->op_count + 1) * sizeof *change);
        for (uint32_t i = 0; i < t->range_count; i++) {
            uint32_t first_use = t->first_use[i], end = t->earliest_end_op_by_range[i];
            if (live_ranges_end_ops(t, i)[c] > full)
                add_held_bytes_between_ops(t, change, first_use, end < full + 1 ? end : full + 1,
                                           t->bytes[i]);
            if (t->first_use_class_by_range[i] == c && first_use <= full && end > full)
                add_held_bytes_between_ops(t, change, t->first_op, first_use, t->bytes[i]);
        }
        op_with_most_bytes(t, change, &most);
    }
    free(change);
    return most;
}

/* Returns the lower bound of the arena of role 0, in which at most `held` bytes are held at one
 * time. */
static uint64_t arena_lower_bound_of_role(const struct ir *ir, uint8_t memory, uint64_t held)
{
    struct order order = {0};
    struct first_uses first_uses = {0};
    struct live_ranges t = {0};
    order_compute_clocks_of_role(&order, ir, 0);
    first_uses_of_role(&first_uses, ir, &order);
    live_ranges_of(&t, ir, &order, &first_uses, memory);
    uint64_t lower_bound_bytes =
        t.range_count > 0 ? held - live_ranges_max_live_bytes(&t) + arena_lower_bound(&t) : held;
    live_ranges_release(&t);
    first_uses_release(&first_uses);
    order_release(&order);
    return lower_bound_bytes;
}

/* Packs schedules of random requests, whose models are the tests' shapes enlarged to real sizes so that
 * alignment does not matter. */
static void packed_schedules_waste_little_memory(void)
{
    /* the arena over its lower bound, at most: chunks of which the last has another size leave
     * gaps; on the host gradients in fp32 and parameters in 16 bits take turns */
    static const double most[MEMORY_COUNT] = {1.22, 1.2, 1.05};
    struct check_random random = check_random_make();
    int refused = 0;
    for (int i = 0; i < 60; i++) {
        struct request request = shapes_random_request(&random, 8, false);
        struct transformer large = *request.model;
        large.layers *= 4;
        large.hidden *= 32;
        large.head_dim *= 8;
        large.ffn *= 32;
        large.vocab *= 64;
        large.max_positions *= 4096;
        request.model = &large;
        request.seq *= 4096;
        request.chunk_tokens *= 4096;
        char label[256];
        shapes_request_label(&request, label, sizeof label);
        struct choices choices;
        struct diag diag = {0};
        struct ir ir = {0};
        struct offsets_memory_figures figures;
        /* a longer sequence is cut into more subsequences, which a plan of tensor ranks may not allow */
        if (resolve_choices(&choices, &request, NULL, &diag) != STATUS_OK) {
            refused++;
            diag_release(&diag);
            continue;
        }
        CHECK(label, step_build(&ir, &choices, &diag) == STATUS_OK);
        offsets_plan(&ir, &figures);
        for (int m = 0; m < MEMORY_COUNT; m++) {
            uint64_t lower_bound_bytes =
                ir.role_count == 1
                    ? arena_lower_bound_of_role(&ir, (uint8_t)m, figures.max_live_bytes[m])
                    : figures.max_live_bytes[m];
            CHECK(label, figures.planned_bytes[m] >= lower_bound_bytes);
            CHECK(label, (double)figures.planned_bytes[m] <= most[m] * (double)lower_bound_bytes);
        }
        diag_release(&diag);
        ir_release(&ir);
    }
    CHECK("nearly all are packed", refused <= 6);
}

static const struct check_case cases[] = {
    {"live ranges that conflict have bytes of their own",
     live_ranges_that_conflict_have_bytes_of_their_own},
    {"each takes the free run that its fit names", live_ranges_take_gap_named_by_fit},
    {"the largest take the lowest room", the_largest_take_the_lowest_room},
    {"rounds and order by size waste less", packing_by_size_rounds_wastes_less},
    {"products waste little", packed_schedules_waste_little_memory},
};
CHECK_MAIN("pack", cases)
