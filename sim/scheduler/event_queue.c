#include "sim/scheduler/event_queue.h"

static bool is_earlier(const struct queued_event *a, const struct queued_event *b)
{
    if (a->date_s != b->date_s)
        return a->date_s < b->date_s;
    if (a->starts != b->starts)
        return b->starts;
    return a->number < b->number;
}

/* Inserts the row into the heap. */
void event_queue_add(struct scheduler *s, double date_s, size_t event, bool starts)
{
    struct event_queue *a = &s->event_queue;
    if (a->count == a->capacity) {
        a->capacity = heap_next_capacity(a->capacity, a->count + 1);
        a->row = heap_realloc(a->row, a->capacity, sizeof *a->row);
    }
    struct queued_event row = {date_s, a->added++, event, starts};
    size_t place = a->count++;
    for (; place > 0 && is_earlier(&row, &a->row[(place - 1) / 2]); place = (place - 1) / 2)
        a->row[place] = a->row[(place - 1) / 2];
    a->row[place] = row;
}

void event_queue_drop_first(struct scheduler *s)
{
    struct event_queue *a = &s->event_queue;
    struct queued_event row = a->row[--a->count];
    size_t place = 0;
    for (;;) {
        size_t below = 2 * place + 1;
        if (below + 1 < a->count && is_earlier(&a->row[below + 1], &a->row[below]))
            below++;
        if (below >= a->count || !is_earlier(&a->row[below], &row))
            break;
        a->row[place] = a->row[below];
        place = below;
    }
    if (a->count > 0)
        a->row[place] = row;
}

const struct queued_event *event_queue_first(struct scheduler *s)
{
    struct event_queue *a = &s->event_queue;
    while (a->count > 0 && !a->row[0].starts && !s->event[a->row[0].event].alone)
        event_queue_drop_first(s);
    return a->count > 0 ? &a->row[0] : NULL;
}
