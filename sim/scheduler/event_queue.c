#include "sim/scheduler/event_queue.h"

/* True if a row comes before a row with this date that is added now. At equal dates ends come before starts, and of two
 * ends or two starts the row that was added first. starts: the new row starts flows; false: it ends an event. */
static bool is_earlier(const struct queued_event *row, double date_s, bool starts)
{
    return row->date_s < date_s || (row->date_s == date_s && (starts || !row->is_start_of_flows));
}

void event_queue_add(struct scheduler *s, double date_s, size_t event, bool starts)
{
    struct event_queue *a = &s->event_queue;
    a->row = heap_grow(a->row, &a->capacity, a->count + 1, sizeof *a->row);
    size_t place = a->count++;
    for (; place > 0 && is_earlier(&a->row[place - 1], date_s, starts); place--)
        a->row[place] = a->row[place - 1];
    a->row[place] = (struct queued_event){date_s, event, starts};
}

const struct queued_event *event_queue_earliest(struct scheduler *s)
{
    const struct event_queue *a = &s->event_queue;
    while (a->count > 0 && !a->row[a->count - 1].is_start_of_flows &&
           !s->event[a->row[a->count - 1].event_index].is_uncontended)
        s->event_queue.count--;
    return a->count > 0 ? &a->row[a->count - 1] : NULL;
}
