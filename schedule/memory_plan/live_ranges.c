#include "schedule/memory_plan/live_ranges.h"

#include "schedule/analysis/liveness.h"

#include <stdlib.h>
#include <string.h>

void live_ranges_release(struct live_ranges *t)
{
    free(t->buffer);
    free(t->first_use);
    free(t->first_use_class_by_range);
    free(t->end_ops_by_range_and_class);
    free(t->earliest_end_op_by_range);
    free(t->bytes);
    free(t->offset_bytes);
    *t = (struct live_ranges){0};
}

void live_ranges_reserve(struct live_ranges *t, uint32_t rows)
{
    if (rows <= t->capacity)
        return;
    t->capacity = rows;
    t->buffer = heap_realloc(t->buffer, rows, sizeof *t->buffer);
    t->first_use = heap_realloc(t->first_use, rows, sizeof *t->first_use);
    t->first_use_class_by_range =
        heap_realloc(t->first_use_class_by_range, rows, sizeof *t->first_use_class_by_range);
    t->bytes = heap_realloc(t->bytes, rows, sizeof *t->bytes);
    t->offset_bytes = heap_realloc(t->offset_bytes, rows, sizeof *t->offset_bytes);
    t->earliest_end_op_by_range =
        heap_realloc(t->earliest_end_op_by_range, rows, sizeof *t->earliest_end_op_by_range);
}

/* A first use, and its clock (schedule/analysis/first_uses.h). */
struct first_use {
    uint32_t op;
    const uint32_t *clock;
};

/* A class of first uses: those of one stream, in list order. Their clocks do not decrease from one to the next. Buffers
 * whose live range starts before their first op (schedule/analysis/first_uses.h) form a class of their own,
 * CLASS_EARLY. There clocks might decrease, so each is lowered, column by column, to the least of its own and those of
 * the first uses after it. */
struct class
{
    uint32_t begin, count; /* rows of live_range_survey.first_use */
};

enum { CLASS_EARLY = ORDER_NO_STREAM, CLASSES_MAX = ORDER_NO_STREAM + 1 };

struct live_range_survey {
    const struct ir *ir;
    const struct order *order;
    const struct first_uses *first_uses;
    struct live_ranges *t;
    uint8_t class_by_stream[CLASSES_MAX]; /* [stream], and [CLASS_EARLY]; UINT8_MAX: no class yet */
    struct class class[CLASSES_MAX];
    struct first_use *first_use; /* the first uses, class by class */
    uint32_t *lowered_clocks;    /* the lowered clocks of the class CLASS_EARLY */
    /* for each live range, the op after the last op of its free set */
    uint32_t *first_op_after_free_set_by_range;
};

uint64_t live_ranges_aligned_bytes(const struct ir *ir, uint32_t buffer)
{
    uint64_t bytes = ir_buffer_bytes(ir, (buffer_id){buffer});
    return (bytes + LIVE_RANGES_ALIGNMENT - 1) / LIVE_RANGES_ALIGNMENT * LIVE_RANGES_ALIGNMENT;
}

static void collect_ranges(struct live_range_survey *s, uint8_t memory)
{
    const struct ir *ir = s->ir;
    const struct first_uses *first_uses = s->first_uses;
    struct live_ranges *t = s->t;
    memset(s->class_by_stream, UINT8_MAX, sizeof s->class_by_stream);
    t->range_count = t->class_count = 0;
    live_ranges_reserve(t, first_uses->used_buffer_count);
    for (uint32_t i = 0; i < first_uses->used_buffer_count; i++) {
        uint32_t buffer = first_uses->buffers_by_first_use[i],
                 op = first_uses->first_op_by_buffer[buffer];
        if (ir->buffer.memory[buffer] != memory || liveness_is_persistent(ir, buffer))
            continue;
        bool early = first_uses->own_clock_row_by_buffer[buffer] != IR_NONE;
        uint8_t *class =
            &s->class_by_stream[early ? CLASS_EARLY
                                      : s->order->stream_of_op[op - s->order->first_op]];
        if (*class == UINT8_MAX)
            *class = (uint8_t)t->class_count++;
        uint32_t row = t->range_count++;
        t->buffer[row] = buffer;
        t->first_use[row] = op;
        t->first_use_class_by_range[row] = *class;
        t->bytes[row] = live_ranges_aligned_bytes(ir, buffer);
    }
}

static void lower_clocks_of_class(struct live_range_survey *s, const struct class *class)
{
    struct first_use *row = s->first_use + class->begin;
    uint32_t width = s->order->clock_column_count;
    s->lowered_clocks = heap_alloc((size_t) class->count * width, sizeof *s->lowered_clocks);
    for (uint32_t k = class->count; k-- > 0;) {
        uint32_t *clock = s->lowered_clocks + (size_t)k * width;
        memcpy(clock, row[k].clock, width * sizeof *clock);
        if (k + 1 < class->count)
            first_uses_lower_clock(clock, row[k + 1].clock, width);
        row[k].clock = clock;
    }
    /* first uses by the same op get one clock, the lowest, which is that of the first of them */
    for (uint32_t k = 1; k < class->count; k++)
        if (row[k].op == row[k - 1].op)
            row[k].clock = row[k - 1].clock;
}

/* Fills s->first_use with the first uses and their clocks, class by class, and s->class with the place of each
 * class. */
static void sort_first_uses_into_classes(struct live_range_survey *s)
{
    struct live_ranges *t = s->t;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < t->range_count; i++)
        s->class[t->first_use_class_by_range[i]].count++;
    for (uint32_t c = 0; c < t->class_count; c++) {
        s->class[c].begin = begin;
        begin += s->class[c].count;
        s->class[c].count = 0;
    }
    s->first_use = heap_alloc(t->range_count, sizeof *s->first_use);
    for (uint32_t i = 0; i < t->range_count; i++) {
        struct class *class = &s->class[t->first_use_class_by_range[i]];
        s->first_use[class->begin + class->count++] = (struct first_use){
            t->first_use[i], first_uses_clock(s->first_uses, s->order, t->buffer[i])};
    }
    if (s->class_by_stream[CLASS_EARLY] != UINT8_MAX)
        lower_clocks_of_class(s, &s->class[s->class_by_stream[CLASS_EARLY]]);
}

/* Returns the op from which on every first use of class c is ordered after op f of `stream`. (If f is on the host, a
 * first use is ordered after f if it is listed later; else if its clock is beyond f.) If the class has first uses after
 * f in the list, but none is ordered after f, returns LIVE_RANGES_NEVER_REUSABLE. If it has none after f in the list,
 * returns f + 1. */
static uint32_t op_from_which_first_uses_are_after(const struct live_range_survey *s, uint32_t c,
                                                   uint32_t stream, uint32_t f)
{
    const struct first_use *row = s->first_use + s->class[c].begin;
    uint32_t low = 0, high = s->class[c].count, count = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((stream == ORDER_NO_STREAM ? row[middle].op : row[middle].clock[stream]) <= f)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count)
        return row[low].op;
    /* no first use of the class is ordered after f */
    return row[count - 1].op <= f ? f + 1 : LIVE_RANGES_NEVER_REUSABLE;
}

/* Finds the ends of all live ranges: for each class, the latest of the ends that the ops of the free set allow. A live
 * range never ends if its free set is empty, has ops of other roles, or has only ops listed before the first use. */
static void find_end_ops_of_live_ranges(struct live_range_survey *s)
{
    const struct ir *ir = s->ir;
    const struct order *order = s->order;
    struct live_ranges *t = s->t;
    s->first_op_after_free_set_by_range =
        heap_alloc(t->range_count, sizeof *s->first_op_after_free_set_by_range);
    for (uint32_t i = 0; i < t->range_count; i++) {
        uint32_t set_count = ir->buffer.free_count[t->buffer[i]], last = 0;
        uint32_t *end = t->end_ops_by_range_and_class + (size_t)i * t->class_count;
        const op_id *set = ir_free_set(ir, t->buffer[i]);
        bool right = set_count > 0;
        for (uint32_t k = 0; k < set_count; k++) {
            right &= set[k].i >= order->first_op && set[k].i - order->first_op < order->op_count;
            last = set[k].i > last ? set[k].i : last;
        }
        right &= last >= t->first_use[i];
        s->first_op_after_free_set_by_range[i] = right ? last + 1 : LIVE_RANGES_NEVER_REUSABLE;
        memset(end, right ? 0 : 0xff, t->class_count * sizeof *end);
        for (uint32_t k = 0; right && k < set_count; k++)
            for (uint32_t c = 0; c < t->class_count; c++) {
                uint32_t stream = order->stream_of_op[set[k].i - order->first_op];
                uint32_t after = op_from_which_first_uses_are_after(s, c, stream, set[k].i);
                end[c] = after > end[c] ? after : end[c];
            }
    }
}

void live_ranges_fill_earliest_ends(struct live_ranges *t, uint32_t begin, uint32_t ops)
{
    t->first_op = begin;
    t->op_count = ops;
    for (uint32_t i = 0; i < t->range_count; i++) {
        const uint32_t *end = live_ranges_end_ops(t, i);
        t->earliest_end_op_by_range[i] = end[0];
        for (uint32_t c = 1; c < t->class_count; c++)
            t->earliest_end_op_by_range[i] =
                end[c] < t->earliest_end_op_by_range[i] ? end[c] : t->earliest_end_op_by_range[i];
    }
}

/* Returns the most bytes live at once if each live range is free from op end[i] on. */
static uint64_t max_live_bytes(const struct live_ranges *t, const uint32_t *end)
{
    /* [op] the bytes of the live ranges that are free from this op on */
    uint64_t *ended = heap_zalloc((size_t)t->op_count + 1, sizeof *ended);
    uint64_t live = 0, most = 0;
    for (uint32_t i = 0; i < t->range_count; i++)
        if (end[i] != LIVE_RANGES_NEVER_REUSABLE)
            ended[end[i] - t->first_op] += t->bytes[i];
    uint32_t op = t->first_op;
    for (uint32_t i = 0; i < t->range_count; i++) {
        for (; op <= t->first_use[i]; op++)
            live -= ended[op - t->first_op];
        live += t->bytes[i];
        most = live > most ? live : most;
    }
    free(ended);
    return most;
}

uint64_t live_ranges_max_live_bytes(const struct live_ranges *t)
{
    return max_live_bytes(t, t->earliest_end_op_by_range);
}

void live_ranges_of(struct live_ranges *t, const struct ir *ir, const struct order *order,
                    const struct first_uses *first_uses, uint8_t memory)
{
    struct live_range_survey s = {.ir = ir, .order = order, .first_uses = first_uses, .t = t};
    collect_ranges(&s, memory);
    t->end_ops_by_range_and_class =
        heap_realloc(t->end_ops_by_range_and_class, (size_t)t->range_count * t->class_count,
                     sizeof *t->end_ops_by_range_and_class);
    sort_first_uses_into_classes(&s);
    find_end_ops_of_live_ranges(&s);
    live_ranges_fill_earliest_ends(t, order->first_op, order->op_count);
    t->peak_live_bytes = max_live_bytes(t, s.first_op_after_free_set_by_range);
    free(s.first_use);
    free(s.lowered_clocks);
    free(s.first_op_after_free_set_by_range);
}
