#include "schedule/passes/tenants.h"

#include "schedule/passes/lifetimes.h"
#include "schedule/passes/op_marks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void tenants_release(struct tenants *t)
{
    free(t->buffer);
    free(t->birth);
    free(t->class_of);
    free(t->end);
    free(t->first_end);
    free(t->last_end);
    free(t->size);
    free(t->offset);
    *t = (struct tenants){0};
}

void tenants_reserve(struct tenants *t, uint32_t rows)
{
    if (rows <= t->capacity)
        return;
    t->capacity = rows;
    t->buffer = heap_realloc(t->buffer, rows, sizeof *t->buffer);
    t->birth = heap_realloc(t->birth, rows, sizeof *t->birth);
    t->class_of = heap_realloc(t->class_of, rows, sizeof *t->class_of);
    t->size = heap_realloc(t->size, rows, sizeof *t->size);
    t->offset = heap_realloc(t->offset, rows, sizeof *t->offset);
    t->first_end = heap_realloc(t->first_end, rows, sizeof *t->first_end);
    t->last_end = heap_realloc(t->last_end, rows, sizeof *t->last_end);
}

/* Births of one stream in list order; their clocks never fall. Buffers that are born earlier than
 * their first touch says (schedule/passes/births.h) are a class of their own, whose clocks are lowered
 * to those of later births so that they do not fall either. */
struct class
{
    uint32_t count, begin; /* rows of survey.birth */
};

struct survey {
    const struct ir *ir;
    const struct order *order;
    const struct births *births;
    struct tenants *t;
    struct class class[ORDER_ON_HOST + 1];
    uint32_t *birth;   /* ops, class by class */
    uint32_t *lowered; /* (count of the last class, width) its clocks, when has_early */
    bool has_early;
    /* (streams + 1, classes), of the class and the stream that an op of a free set is of; the last
     * stream is the host. Ops are asked about in list order. */
    struct cursor {
        uint32_t at;     /* birth of the class */
        uint32_t before; /* it is ordered behind the ops below this number */
        uint32_t birth;  /* its op */
    } * cursor;
};

static void collect(struct survey *s, uint8_t memory, uint64_t alignment)
{
    const struct ir *ir = s->ir;
    const struct births *births = s->births;
    struct tenants *t = s->t;
    uint8_t class_of_stream[ORDER_ON_HOST];
    memset(class_of_stream, ORDER_ON_HOST, sizeof class_of_stream);
    t->count = t->classes = 0;
    tenants_reserve(t, births->born_count);
    for (uint32_t i = 0; i < births->born_count; i++) {
        uint32_t buffer = births->born[i], op = births->first[buffer];
        if (ir->buffer.memory[buffer] != memory || lifetimes_persistent(ir, buffer))
            continue;
        uint8_t *class = &class_of_stream[s->order->stream[op - s->order->begin]];
        bool early = births->early[buffer] != IR_NONE;
        if (*class == ORDER_ON_HOST && !early)
            *class = (uint8_t)t->classes++;
        s->has_early |= early;
        uint64_t size = (ir_buffer_bytes(ir, (buffer_id){buffer}) + alignment - 1) & -alignment;
        uint32_t row = t->count++;
        t->buffer[row] = buffer;
        t->birth[row] = op;
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
        memcpy(row, births_clock(s->births, s->order, s->t->buffer[i]), width * sizeof *row);
        for (uint32_t j = 0; k + 1 < last->count && j < width; j++)
            row[j] = row[j] < row[j + width] ? row[j] : row[j + width];
    }
    /* Births with one op are told apart by nobody: they share the lowest clock. */
    const uint32_t *birth = s->birth + last->begin;
    for (k = 1; k < last->count; k++)
        if (birth[k] == birth[k - 1])
            memcpy(s->lowered + (size_t)k * width, s->lowered + (size_t)(k - 1) * width,
                   width * sizeof *s->lowered);
}

/* Births of one op are one row, but in the class that has clocks of its own. */
static void sort_into_classes(struct survey *s)
{
    struct tenants *t = s->t;
    uint32_t begin = 0, early = s->has_early ? t->classes - 1 : UINT32_MAX;
    for (uint32_t i = 0; i < t->count; i++)
        s->class[t->class_of[i]].count++;
    for (uint32_t c = 0; c < t->classes; c++) {
        s->class[c].begin = begin;
        begin += s->class[c].count;
        s->class[c].count = 0;
    }
    s->birth = heap_alloc(t->count, sizeof *s->birth);
    for (uint32_t i = 0; i < t->count; i++) {
        struct class *class = &s->class[t->class_of[i]];
        uint32_t *birth = s->birth + class->begin;
        if (class->count == 0 || birth[class->count - 1] != t->birth[i] || t->class_of[i] == early)
            birth[class->count++] = t->birth[i];
    }
    if (s->has_early)
        lower_clocks(s);
}

/* The first birth of class c, from the cursor on, that is ordered behind op f of a stream: one that is listed behind
 * it, which is all that an op of the host asks for, and whose clock says so. */
static uint32_t birth_behind(const struct survey *s, const struct cursor *cursor, uint32_t c,
                             uint32_t stream, uint32_t f)
{
    const struct order *order = s->order;
    uint32_t at = cursor->at, count = s->class[c].count, width = order->width;
    const uint32_t *birth = s->birth + s->class[c].begin;
    while (at < count && birth[at] <= f)
        at++;
    if (stream == order->streams)
        return at;
    if (s->has_early && c == s->t->classes - 1)
        while (at < count && s->lowered[(size_t)at * width + stream] <= f)
            at++;
    else
        while (at < count && order_row(order, birth[at])[stream] <= f)
            at++;
    return at;
}

/* Moves a cursor to the first birth of class c that is ordered behind op f of a stream. */
static void move_cursor(const struct survey *s, struct cursor *cursor, uint32_t c, uint32_t stream,
                        uint32_t f)
{
    const uint32_t *birth = s->birth + s->class[c].begin;
    uint32_t at = cursor->at = birth_behind(s, cursor, c, stream, f);
    if (at == s->class[c].count) {
        cursor->birth = TENANTS_NEVER;
        cursor->before = UINT32_MAX;
        return;
    }
    cursor->birth = birth[at];
    if (stream == s->order->streams)
        cursor->before = birth[at];
    else if (s->has_early && c == s->t->classes - 1)
        cursor->before = s->lowered[(size_t)at * s->order->width + stream];
    else
        cursor->before = order_row(s->order, birth[at])[stream];
}

/* Ends of who is gone with one op: per class, the first birth that is ordered behind it. */
struct behind {
    uint32_t first, last; /* least and greatest */
    uint32_t end[ORDER_ON_HOST + 1];
};

static void note_end(struct behind *b, uint32_t c, uint32_t end)
{
    b->end[c] = end;
    b->first = end < b->first ? end : b->first;
    b->last = end > b->last ? end : b->last;
}

static void find_behind(struct survey *s, uint32_t f, struct behind *behind)
{
    uint32_t stream = s->order->stream[f - s->order->begin], classes = s->t->classes;
    if (stream == ORDER_ON_HOST)
        stream = s->order->streams;
    struct cursor *cursor = s->cursor + (size_t)stream * classes;
    behind->first = TENANTS_NEVER;
    behind->last = 0;
    for (uint32_t c = 0; c < classes; c++) {
        if (cursor[c].before <= f)
            move_cursor(s, &cursor[c], c, stream, f);
        uint32_t birth = cursor[c].birth;
        if (birth == TENANTS_NEVER && s->birth[s->class[c].begin + s->class[c].count - 1] <= f)
            birth = f + 1; /* no birth comes behind f at all */
        note_end(behind, c, birth);
    }
}

/* A member of a free set, in the list of its op. */
struct member {
    uint32_t tenant, next;
};

/* Ops that free sets name: who has them. */
struct members {
    struct op_marks ops;
    uint32_t *head; /* per marked op */
    struct member *row;
    uint32_t *missing; /* per tenant: those of several that are still to come */
};

static void list_member(struct members *m, uint32_t row, uint32_t tenant, uint32_t op)
{
    uint32_t *list = &m->head[op - m->ops.begin];
    m->row[row] = (struct member){tenant, op_marks_add(&m->ops, op) ? IR_NONE : *list};
    *list = row;
}

/* Puts the members of all free sets on the lists of their ops; a tenant without a set that is
 * right never ends. */
static void list_members(const struct survey *s, struct members *m)
{
    const struct ir *ir = s->ir;
    const struct order *order = s->order;
    struct tenants *t = s->t;
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
        right &= last >= t->birth[i];
        m->missing[i] = set_count == 1 ? 0 : set_count;
        t->first_end[i] = t->last_end[i] = TENANTS_NEVER;
        uint32_t *end = t->end + (size_t)i * t->classes;
        for (uint32_t c = 0; !(right && set_count == 1) && c < t->classes; c++)
            end[c] = right ? 0 : TENANTS_NEVER;
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

static void end_alone(const struct tenants *t, uint32_t i, const struct behind *behind)
{
    uint32_t *end = t->end + (size_t)i * t->classes;
    for (uint32_t c = 0; c < t->classes; c++)
        end[c] = behind->end[c];
    t->first_end[i] = behind->first;
    t->last_end[i] = behind->last;
}

/* The same of a tenant that others of its ops may hold for longer. */
static void end_later(const struct tenants *t, uint32_t i, const struct behind *behind)
{
    uint32_t *end = t->end + (size_t)i * t->classes;
    t->first_end[i] = TENANTS_NEVER;
    t->last_end[i] = 0;
    for (uint32_t c = 0; c < t->classes; c++) {
        end[c] = behind->end[c] > end[c] ? behind->end[c] : end[c];
        t->first_end[i] = end[c] < t->first_end[i] ? end[c] : t->first_end[i];
        t->last_end[i] = end[c] > t->last_end[i] ? end[c] : t->last_end[i];
    }
}

/* Ends of all tenants, and what is alive beside one another. */
static void find_ends(struct survey *s)
{
    struct tenants *t = s->t;
    struct members members;
    struct behind behind;
    uint32_t begin = s->order->begin, born = 0;
    list_members(s, &members);
    s->cursor = heap_zalloc((size_t)t->classes * (s->order->streams + 1), sizeof *s->cursor);
    uint64_t live = 0;
    t->live = 0;
    for (uint32_t op = op_marks_next(&members.ops, begin); op != UINT32_MAX;
         op = op_marks_next(&members.ops, op + 1)) {
        for (; born < t->count && t->birth[born] <= op; born++)
            live += t->size[born];
        t->live = live > t->live ? live : t->live;
        find_behind(s, op, &behind);
        for (uint32_t m = members.head[op - begin]; m != IR_NONE; m = members.row[m].next) {
            uint32_t i = members.row[m].tenant, missing = members.missing[i];
            if (missing == 0)
                end_alone(t, i, &behind);
            else
                end_later(t, i, &behind);
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

void tenants_settle(struct tenants *t, uint32_t begin, uint32_t ops)
{
    t->begin = begin;
    t->ops = ops;
    for (uint32_t i = 0; i < t->count; i++) {
        const uint32_t *end = tenants_ends(t, i);
        uint32_t first = end[0], last = end[0];
        for (uint32_t c = 1; c < t->classes; c++) {
            first = end[c] < first ? end[c] : first;
            last = end[c] > last ? end[c] : last;
        }
        t->first_end[i] = first;
        t->last_end[i] = last;
    }
}

uint64_t tenants_held(const struct tenants *t)
{
    struct op_marks marks = op_marks_none(t->begin, t->ops);
    uint64_t *ended = heap_alloc((size_t)t->ops + 1, sizeof *ended); /* bytes, per marked op */
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t first = t->first_end[i];
        if (first == TENANTS_NEVER)
            continue;
        uint64_t *bytes = &ended[first - t->begin];
        *bytes = op_marks_add(&marks, first) ? t->size[i] : *bytes + t->size[i];
    }
    uint64_t held = 0, most = 0;
    uint32_t next = op_marks_next(&marks, t->begin);
    for (uint32_t i = 0; i < t->count; i++) {
        for (; next <= t->birth[i]; next = op_marks_next(&marks, next + 1))
            held -= ended[next - t->begin];
        held += t->size[i];
        most = held > most ? held : most;
    }
    free(marks.bit);
    free(ended);
    return most;
}

void tenants_of(struct tenants *t, const struct ir *ir, const struct order *order,
                const struct births *births, uint8_t memory, uint64_t alignment)
{
    struct survey s = {.ir = ir, .order = order, .births = births, .t = t};
    t->live = 0;
    t->begin = order->begin;
    t->ops = order->count;
    collect(&s, memory, alignment);
    if (t->count == 0)
        return;
    t->end = heap_realloc(t->end, (size_t)t->count * t->classes, sizeof *t->end);
    sort_into_classes(&s);
    find_ends(&s);
    free(s.birth);
    free(s.lowered);
}
