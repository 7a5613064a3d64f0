#include "sim/scheduler/agenda.h"

static bool is_earlier(const struct appointment *a, const struct appointment *b)
{
    if (a->date_s != b->date_s)
        return a->date_s < b->date_s;
    if (a->starts != b->starts)
        return b->starts;
    return a->number < b->number;
}

/* A heap. */
void agenda_add(struct scheduler *s, double date_s, size_t event, bool starts)
{
    struct agenda *a = &s->agenda;
    if (a->count == a->capacity) {
        a->capacity = heap_next_capacity(a->capacity, a->count + 1);
        a->row = heap_realloc(a->row, a->capacity, sizeof *a->row);
    }
    struct appointment row = {date_s, a->added++, event, starts};
    size_t place = a->count++;
    for (; place > 0 && is_earlier(&row, &a->row[(place - 1) / 2]); place = (place - 1) / 2)
        a->row[place] = a->row[(place - 1) / 2];
    a->row[place] = row;
}

void agenda_drop_first(struct scheduler *s)
{
    struct agenda *a = &s->agenda;
    struct appointment row = a->row[--a->count];
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

const struct appointment *agenda_first(struct scheduler *s)
{
    struct agenda *a = &s->agenda;
    while (a->count > 0 && !a->row[0].starts && !s->event[a->row[0].event].alone)
        agenda_drop_first(s);
    return a->count > 0 ? &a->row[0] : NULL;
}
