#include "schedule/tenants.h"

#include "schedule/lifetimes.h"

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
 * their first touch says (schedule/births.h) are a class of their own, whose clocks are lowered
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

static void sort_into_classes(struct survey *s)
{
    struct tenants *t = s->t;
    uint32_t begin = 0;
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
        s->birth[class->begin + class->count++] = t->birth[i];
    }
    if (s->has_early)
        lower_clocks(s);
}

/* Moves a cursor to the first birth of class c that is ordered behind op f of a stream. */
static void move_cursor(struct survey *s, struct cursor *cursor, uint32_t c, uint32_t stream,
                        uint32_t f)
{
    const struct order *order = s->order;
    uint32_t count = s->class[c].count;
    const uint32_t *birth = s->birth + s->class[c].begin;
    bool lowered = s->has_early && c == s->t->classes - 1;
    for (; cursor->at < count; cursor->at++) {
        if (stream == order->streams) /* whatever is listed behind an op of the host */
            cursor->before = birth[cursor->at];
        else if (lowered)
            cursor->before = s->lowered[(size_t)cursor->at * order->width + stream];
        else
            cursor->before = order_row(order, birth[cursor->at])[stream];
        if (cursor->before > f) {
            cursor->birth = birth[cursor->at];
            return;
        }
    }
    cursor->birth = TENANTS_NEVER;
    cursor->before = UINT32_MAX;
}

/* Raises the ends of a tenant to the first births that are ordered behind op f. */
static void raise_ends(struct survey *s, uint32_t *end, uint32_t f)
{
    uint32_t stream = s->order->stream[f - s->order->begin], classes = s->t->classes;
    if (stream == ORDER_ON_HOST)
        stream = s->order->streams;
    struct cursor *cursor = s->cursor + (size_t)stream * classes;
    for (uint32_t c = 0; c < classes; c++) {
        if (cursor[c].before <= f)
            move_cursor(s, &cursor[c], c, stream, f);
        uint32_t birth = cursor[c].birth;
        if (birth == TENANTS_NEVER && s->birth[s->class[c].begin + s->class[c].count - 1] <= f)
            birth = f + 1; /* no birth comes behind f at all */
        end[c] = birth > end[c] ? birth : end[c];
    }
}

/* A member of a free set, in the list of its op. */
struct member {
    uint32_t tenant, next;
};

/* Puts the members of all free sets on the lists of their ops; a tenant without a set that is
 * right never ends. Returns the members. */
static struct member *list_members(struct survey *s, uint32_t *head)
{
    const struct ir *ir = s->ir;
    const struct order *order = s->order;
    struct tenants *t = s->t;
    uint32_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < t->count; i++)
        capacity += ir->buffer.free_count[t->buffer[i]];
    struct member *member = heap_alloc(capacity, sizeof *member);
    for (uint32_t i = t->count; i-- > 0;) {
        uint32_t set_count = ir->buffer.free_count[t->buffer[i]], last = 0;
        const op_id *set = ir_free_set(ir, t->buffer[i]);
        bool right = set_count > 0;
        for (uint32_t k = 0; k < set_count; k++) {
            right &= set[k].i >= order->begin && set[k].i - order->begin < order->count;
            last = set[k].i > last ? set[k].i : last;
        }
        uint32_t *end = t->end + (size_t)i * t->classes;
        right &= last >= t->birth[i];
        memset(end, right ? 0 : 0xff, t->classes * sizeof *end);
        for (uint32_t k = 0; right && k < set_count; k++) {
            uint32_t *list = &head[set[k].i - order->begin];
            member[count] = (struct member){i, *list};
            *list = count++;
        }
    }
    return member;
}

/* Ends of all tenants, and what is alive beside one another. */
static void find_ends(struct survey *s)
{
    struct tenants *t = s->t;
    uint32_t begin = s->order->begin, ops = s->order->count, born = 0;
    uint32_t *head = heap_alloc(ops, sizeof *head);
    uint32_t *missing = heap_alloc(t->count, sizeof *missing); /* members still to come */
    memset(head, 0xff, ops * sizeof *head);
    struct member *member = list_members(s, head);
    for (uint32_t i = 0; i < t->count; i++)
        missing[i] = s->ir->buffer.free_count[t->buffer[i]];
    s->cursor = heap_zalloc((size_t)t->classes * (s->order->streams + 1), sizeof *s->cursor);
    uint64_t live = 0;
    t->live = 0;
    for (uint32_t op = begin; op < begin + ops; op++) {
        for (; born < t->count && t->birth[born] == op; born++)
            live += t->size[born];
        t->live = live > t->live ? live : t->live;
        for (uint32_t m = head[op - begin]; m != IR_NONE; m = member[m].next) {
            uint32_t i = member[m].tenant, *end = t->end + (size_t)i * t->classes;
            raise_ends(s, end, op);
            if (--missing[i] == 0)
                live -= t->size[i];
        }
    }
    free(head);
    free(missing);
    free(member);
    free(s->cursor);
}

void tenants_settle(struct tenants *t, uint32_t begin, uint32_t ops)
{
    t->begin = begin;
    t->ops = ops;
    uint64_t *ended = heap_zalloc((size_t)ops + 1, sizeof *ended); /* bytes, per op */
    for (uint32_t i = 0; i < t->count; i++) {
        const uint32_t *end = tenants_ends(t, i);
        uint32_t first = end[0], last = end[0];
        for (uint32_t c = 1; c < t->classes; c++) {
            first = end[c] < first ? end[c] : first;
            last = end[c] > last ? end[c] : last;
        }
        t->first_end[i] = first;
        t->last_end[i] = last;
        if (first != TENANTS_NEVER)
            ended[first - begin] += t->size[i];
    }
    uint64_t held = 0;
    uint32_t at = begin;
    t->held = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        for (; at <= t->birth[i]; at++)
            held -= ended[at - begin];
        held += t->size[i];
        t->held = held > t->held ? held : t->held;
    }
    free(ended);
}

void tenants_of(struct tenants *t, const struct ir *ir, const struct order *order,
                const struct births *births, uint8_t memory, uint64_t alignment)
{
    struct survey s = {.ir = ir, .order = order, .births = births, .t = t};
    t->live = t->held = 0;
    collect(&s, memory, alignment);
    if (t->count == 0)
        return;
    t->end = heap_realloc(t->end, (size_t)t->count * t->classes, sizeof *t->end);
    sort_into_classes(&s);
    find_ends(&s);
    tenants_settle(t, order->begin, order->count);
    free(s.birth);
    free(s.lowered);
}
