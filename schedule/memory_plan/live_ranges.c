#include "schedule/memory_plan/live_ranges.h"

#include "schedule/analysis/liveness.h"
#include "schedule/analysis/op_marks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void live_ranges_release(struct live_ranges *t)
{
    free(t->buffer);
    free(t->first_use);
    free(t->class_of);
    free(t->end);
    free(t->first_end);
    free(t->last_end);
    free(t->size);
    free(t->offset);
    *t = (struct live_ranges){0};
}

void live_ranges_reserve(struct live_ranges *t, uint32_t rows)
{
    if (rows <= t->capacity)
        return;
    t->capacity = rows;
    t->buffer = heap_realloc(t->buffer, rows, sizeof *t->buffer);
    t->first_use = heap_realloc(t->first_use, rows, sizeof *t->first_use);
    t->class_of = heap_realloc(t->class_of, rows, sizeof *t->class_of);
    t->size = heap_realloc(t->size, rows, sizeof *t->size);
    t->offset = heap_realloc(t->offset, rows, sizeof *t->offset);
    t->first_end = heap_realloc(t->first_end, rows, sizeof *t->first_end);
    t->last_end = heap_realloc(t->last_end, rows, sizeof *t->last_end);
}

/* The first uses of one stream, in list order: clocks do not fall along the list. Buffers whose live range starts
 * before their first touch (schedule/analysis/first_uses.h) form a class of their own. Their clocks could fall, so
 * each is lowered to the least clock of the first uses after it. */
struct class
{
    uint32_t count, begin; /* rows of survey.first_use */
};

struct survey {
    const struct ir *ir;
    const struct order *order;
    const struct first_uses *first_uses;
    struct live_ranges *t;
    struct class class[ORDER_ON_HOST + 1];
    uint32_t *first_use; /* ops, class by class */
    uint32_t *lowered;   /* (count of the last class, width) its clocks, when has_early */
    bool has_early;
    /* (streams + 1, classes): for each class and each stream that an op of a free set may run on; the last stream is
     * the host. Cursors only move forward, because callers ask about ops in list order. */
    struct cursor {
        uint32_t at;        /* first use of the class */
        uint32_t before;    /* it is ordered after the ops below this number */
        uint32_t first_use; /* its op */
    } * cursor;
};

static void collect(struct survey *s, uint8_t memory, uint64_t alignment)
{
    const struct ir *ir = s->ir;
    const struct first_uses *first_uses = s->first_uses;
    struct live_ranges *t = s->t;
    uint8_t class_of_stream[ORDER_ON_HOST];
    memset(class_of_stream, ORDER_ON_HOST, sizeof class_of_stream);
    t->count = t->classes = 0;
    live_ranges_reserve(t, first_uses->used_count);
    for (uint32_t i = 0; i < first_uses->used_count; i++) {
        uint32_t buffer = first_uses->used[i], op = first_uses->first[buffer];
        if (ir->buffer.memory[buffer] != memory || lifetimes_persistent(ir, buffer))
            continue;
        uint8_t *class = &class_of_stream[s->order->stream[op - s->order->begin]];
        bool early = first_uses->early[buffer] != IR_NONE;
        if (*class == ORDER_ON_HOST && !early)
            *class = (uint8_t)t->classes++;
        s->has_early |= early;
        uint64_t size = (ir_buffer_bytes(ir, (buffer_id){buffer}) + alignment - 1) & -alignment;
        uint32_t row = t->count++;
        t->buffer[row] = buffer;
        t->first_use[row] = op;
        t->class_of[row] = early ? ORDER_ON_HOST : *class;
        t->size[row] = size != 0 ? size : alignment;
    }
    if (!s->has_early)
        return;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->class_of[i] == ORDER_ON_HOST)
            t->class_of[i] = (uint8_t)t->classes;
    t->classes++;
}

static void lower_clocks(struct survey *s)
{
    struct class *last = &s->class[s->t->classes - 1];
    uint32_t width = s->order->width, k = last->count;
    s->lowered = heap_alloc((size_t)last->count * width, sizeof *s->lowered);
    for (uint32_t i = s->t->count; i-- > 0;) {
        if (s->t->class_of[i] != s->t->classes - 1)
            continue;
        uint32_t *row = s->lowered + (size_t)--k * width;
        memcpy(row, first_uses_clock(s->first_uses, s->order, s->t->buffer[i]),
               width * sizeof *row);
        for (uint32_t j = 0; k + 1 < last->count && j < width; j++)
            row[j] = row[j] < row[j + width] ? row[j] : row[j + width];
    }
    /* First uses that belong to one op are not distinguished: they share the lowest clock. */
    const uint32_t *first_use = s->first_use + last->begin;
    for (k = 1; k < last->count; k++)
        if (first_use[k] == first_use[k - 1])
            memcpy(s->lowered + (size_t)k * width, s->lowered + (size_t)(k - 1) * width,
                   width * sizeof *s->lowered);
}

/* Lists the first uses of each class. Those of one op are one row, except in the class that has clocks of its own. */
static void sort_into_classes(struct survey *s)
{
    struct live_ranges *t = s->t;
    uint32_t begin = 0, early = s->has_early ? t->classes - 1 : UINT32_MAX;
    for (uint32_t i = 0; i < t->count; i++)
        s->class[t->class_of[i]].count++;
    for (uint32_t c = 0; c < t->classes; c++) {
        s->class[c].begin = begin;
        begin += s->class[c].count;
        s->class[c].count = 0;
    }
    s->first_use = heap_alloc(t->count, sizeof *s->first_use);
    for (uint32_t i = 0; i < t->count; i++) {
        struct class *class = &s->class[t->class_of[i]];
        uint32_t *first_use = s->first_use + class->begin;
        if (class->count == 0 || first_use[class->count - 1] != t->first_use[i] ||
            t->class_of[i] == early)
            first_use[class->count++] = t->first_use[i];
    }
    if (s->has_early)
        lower_clocks(s);
}

/* Returns the first row of class c, from the cursor on, whose first use is ordered after op f of `stream`. For an op
 * on the host it is enough that the first use is listed after f; for other streams its clock must cover f too. */
static uint32_t first_use_after(const struct survey *s, const struct cursor *cursor, uint32_t c,
                                uint32_t stream, uint32_t f)
{
    const struct order *order = s->order;
    uint32_t at = cursor->at, count = s->class[c].count, width = order->width;
    const uint32_t *first_use = s->first_use + s->class[c].begin;
    while (at < count && first_use[at] <= f)
        at++;
    if (stream == order->streams)
        return at;
    if (s->has_early && c == s->t->classes - 1)
        while (at < count && s->lowered[(size_t)at * width + stream] <= f)
            at++;
    else
        while (at < count && order_row(order, first_use[at])[stream] <= f)
            at++;
    return at;
}

/* Moves a cursor to the earliest first use of class c that is ordered after op f of a stream. */
static void move_cursor(const struct survey *s, struct cursor *cursor, uint32_t c, uint32_t stream,
                        uint32_t f)
{
    const uint32_t *first_use = s->first_use + s->class[c].begin;
    uint32_t at = cursor->at = first_use_after(s, cursor, c, stream, f);
    if (at == s->class[c].count) {
        cursor->first_use = LIVE_RANGES_NEVER;
        cursor->before = UINT32_MAX;
        return;
    }
    cursor->first_use = first_use[at];
    if (stream == s->order->streams)
        cursor->before = first_use[at];
    else if (s->has_early && c == s->t->classes - 1)
        cursor->before = s->lowered[(size_t)at * s->order->width + stream];
    else
        cursor->before = order_row(s->order, first_use[at])[stream];
}

/* Ends of the live ranges that end with one op: per class, the earliest first use that is ordered after it. */
struct first_uses_after {
    uint32_t first, last; /* least and greatest */
    uint32_t end[ORDER_ON_HOST + 1];
};

static void note_end(struct first_uses_after *b, uint32_t c, uint32_t end)
{
    b->end[c] = end;
    b->first = end < b->first ? end : b->first;
    b->last = end > b->last ? end : b->last;
}

static void find_first_uses_after(struct survey *s, uint32_t f, struct first_uses_after *after)
{
    uint32_t stream = s->order->stream[f - s->order->begin], classes = s->t->classes;
    if (stream == ORDER_ON_HOST)
        stream = s->order->streams;
    struct cursor *cursor = s->cursor + (size_t)stream * classes;
    after->first = LIVE_RANGES_NEVER;
    after->last = 0;
    for (uint32_t c = 0; c < classes; c++) {
        if (cursor[c].before <= f)
            move_cursor(s, &cursor[c], c, stream, f);
        uint32_t first_use = cursor[c].first_use;
        if (first_use == LIVE_RANGES_NEVER &&
            s->first_use[s->class[c].begin + s->class[c].count - 1] <= f)
            first_use = f + 1; /* no first use comes after f at all */
        note_end(after, c, first_use);
    }
}

/* A member of a free set, in the list of its op. */
struct member {
    uint32_t live_range, next;
};

/* The ops that free sets name, with the live ranges whose sets they are in. */
struct members {
    struct op_marks ops;
    uint32_t *head; /* per marked op */
    struct member *row;
    uint32_t *missing; /* per live range: those of several that are still to come */
};

static void list_member(struct members *m, uint32_t row, uint32_t live_range, uint32_t op)
{
    uint32_t *list = &m->head[op - m->ops.begin];
    m->row[row] = (struct member){live_range, op_marks_add(&m->ops, op) ? IR_NONE : *list};
    *list = row;
}

/* Puts the members of all free sets on the lists of their ops; a live range without a correct set never ends. */
static void list_members(const struct survey *s, struct members *m)
{
    const struct ir *ir = s->ir;
    const struct order *order = s->order;
    struct live_ranges *t = s->t;
    uint32_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < t->count; i++)
        capacity += ir->buffer.free_count[t->buffer[i]];
    m->ops = op_marks_none(order->begin, order->count);
    m->head = heap_alloc(order->count, sizeof *m->head);
    m->row = heap_alloc(capacity, sizeof *m->row);
    m->missing = heap_alloc(t->count, sizeof *m->missing);
    for (uint32_t i = t->count; i-- > 0;) {
        uint32_t set_count = ir->buffer.free_count[t->buffer[i]], last = 0;
        const op_id *set = ir_free_set(ir, t->buffer[i]);
        bool right = set_count > 0;
        for (uint32_t k = 0; k < set_count; k++) {
            right &= set[k].i >= order->begin && set[k].i - order->begin < order->count;
            last = set[k].i > last ? set[k].i : last;
        }
        right &= last >= t->first_use[i];
        m->missing[i] = set_count == 1 ? 0 : set_count;
        t->first_end[i] = t->last_end[i] = LIVE_RANGES_NEVER;
        uint32_t *end = t->end + (size_t)i * t->classes;
        for (uint32_t c = 0; !(right && set_count == 1) && c < t->classes; c++)
            end[c] = right ? 0 : LIVE_RANGES_NEVER;
        for (uint32_t k = 0; right && k < set_count; k++)
            list_member(m, count++, i, set[k].i);
    }
}

static void members_release(struct members *m)
{
    free(m->ops.bit);
    free(m->head);
    free(m->row);
    free(m->missing);
}

static void end_alone(const struct live_ranges *t, uint32_t i, const struct first_uses_after *after)
{
    uint32_t *end = t->end + (size_t)i * t->classes;
    for (uint32_t c = 0; c < t->classes; c++)
        end[c] = after->end[c];
    t->first_end[i] = after->first;
    t->last_end[i] = after->last;
}

/* Moves the ends of a live range back to these, where they are later: other ops of its set may hold it for longer. */
static void end_later(const struct live_ranges *t, uint32_t i, const struct first_uses_after *after)
{
    uint32_t *end = t->end + (size_t)i * t->classes;
    t->first_end[i] = LIVE_RANGES_NEVER;
    t->last_end[i] = 0;
    for (uint32_t c = 0; c < t->classes; c++) {
        end[c] = after->end[c] > end[c] ? after->end[c] : end[c];
        t->first_end[i] = end[c] < t->first_end[i] ? end[c] : t->first_end[i];
        t->last_end[i] = end[c] > t->last_end[i] ? end[c] : t->last_end[i];
    }
}

/* Finds the ends of all live ranges, and the most bytes that are live at once. */
static void find_ends(struct survey *s)
{
    struct live_ranges *t = s->t;
    struct members members;
    struct first_uses_after after;
    uint32_t begin = s->order->begin, born = 0;
    list_members(s, &members);
    s->cursor = heap_zalloc((size_t)t->classes * (s->order->streams + 1), sizeof *s->cursor);
    uint64_t live = 0;
    t->live = 0;
    for (uint32_t op = op_marks_next(&members.ops, begin); op != UINT32_MAX;
         op = op_marks_next(&members.ops, op + 1)) {
        for (; born < t->count && t->first_use[born] <= op; born++)
            live += t->size[born];
        t->live = live > t->live ? live : t->live;
        find_first_uses_after(s, op, &after);
        for (uint32_t m = members.head[op - begin]; m != IR_NONE; m = members.row[m].next) {
            uint32_t i = members.row[m].live_range, missing = members.missing[i];
            if (missing == 0)
                end_alone(t, i, &after);
            else
                end_later(t, i, &after);
            live -= missing <= 1 ? t->size[i] : 0;
            members.missing[i] = missing > 0 ? missing - 1 : 0;
        }
    }
    for (; born < t->count; born++)
        live += t->size[born];
    t->live = live > t->live ? live : t->live;
    members_release(&members);
    free(s->cursor);
}

void live_ranges_settle(struct live_ranges *t, uint32_t begin, uint32_t ops)
{
    t->begin = begin;
    t->ops = ops;
    for (uint32_t i = 0; i < t->count; i++) {
        const uint32_t *end = live_ranges_ends(t, i);
        uint32_t first = end[0], last = end[0];
        for (uint32_t c = 1; c < t->classes; c++) {
            first = end[c] < first ? end[c] : first;
            last = end[c] > last ? end[c] : last;
        }
        t->first_end[i] = first;
        t->last_end[i] = last;
    }
}

uint64_t live_ranges_held(const struct live_ranges *t)
{
    struct op_marks marks = op_marks_none(t->begin, t->ops);
    uint64_t *ended = heap_alloc((size_t)t->ops + 1, sizeof *ended); /* bytes, per marked op */
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t first = t->first_end[i];
        if (first == LIVE_RANGES_NEVER)
            continue;
        uint64_t *bytes = &ended[first - t->begin];
        *bytes = op_marks_add(&marks, first) ? t->size[i] : *bytes + t->size[i];
    }
    uint64_t held = 0, most = 0;
    uint32_t next = op_marks_next(&marks, t->begin);
    for (uint32_t i = 0; i < t->count; i++) {
        for (; next <= t->first_use[i]; next = op_marks_next(&marks, next + 1))
            held -= ended[next - t->begin];
        held += t->size[i];
        most = held > most ? held : most;
    }
    free(marks.bit);
    free(ended);
    return most;
}

void live_ranges_of(struct live_ranges *t, const struct ir *ir, const struct order *order,
                    const struct first_uses *first_uses, uint8_t memory, uint64_t alignment)
{
    struct survey s = {.ir = ir, .order = order, .first_uses = first_uses, .t = t};
    t->live = 0;
    t->begin = order->begin;
    t->ops = order->count;
    collect(&s, memory, alignment);
    if (t->count == 0)
        return;
    t->end = heap_realloc(t->end, (size_t)t->count * t->classes, sizeof *t->end);
    sort_into_classes(&s);
    find_ends(&s);
    free(s.first_use);
    free(s.lowered);
}
