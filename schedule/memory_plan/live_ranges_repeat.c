/* Makes the live ranges of a whole list from those of a short list. */
#include "schedule/memory_plan/live_ranges.h"

#include <stdlib.h>

/* Returns the first row whose first use is `op` or a later op. */
static uint32_t first_row_from(const struct live_ranges *t, uint32_t op)
{
    uint32_t low = 0, high = t->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->first_use[middle] < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool corresponding_rows(const struct live_ranges *t, const struct repeats *r, uint32_t a,
                               uint32_t b, int32_t step)
{
    int32_t value = repeats_place(r, t->first_use[a]).value;
    if (t->class_of[a] != t->class_of[b] || t->size[a] != t->size[b] ||
        !repeats_correspond(r, t->first_use[a], value, t->first_use[b], step))
        return false;
    for (uint32_t c = 0; c < t->classes; c++) {
        uint32_t x = live_ranges_ends(t, a)[c], y = live_ranges_ends(t, b)[c];
        if (x == LIVE_RANGES_NEVER || y == LIVE_RANGES_NEVER
                ? x != y
                : !repeats_correspond(r, x, value, y, step))
            return false;
    }
    return true;
}

/* True if the rows of the two iterations at a run's gap correspond. */
static bool isomorphic_around(const struct live_ranges *t, const struct repeats *r,
                              const struct repeat_run *run)
{
    uint32_t begin = run->begin + (run->gap - 1) * run->ops;
    uint32_t a = first_row_from(t, begin), b = first_row_from(t, begin + run->ops),
             c = first_row_from(t, begin + 2 * run->ops);
    if (b - a != c - b)
        return false;
    for (uint32_t i = a; i < b; i++)
        if (!corresponding_rows(t, r, i, i + (b - a), run->step))
            return false;
    return true;
}

static void take_row(struct live_ranges *to, const struct live_ranges *t, const struct repeats *r,
                     struct repeat_row at)
{
    uint32_t i = to->count++, first = t->first_use[at.row];
    to->buffer[i] = at.copy == 0 ? t->buffer[at.row] : IR_NONE;
    to->first_use[i] = repeats_seen_from(r, first, at.copy, first);
    to->class_of[i] = t->class_of[at.row];
    to->size[i] = t->size[at.row];
    for (uint32_t c = 0; c < t->classes; c++) {
        uint32_t end = live_ranges_ends(t, at.row)[c];
        to->end[(size_t)i * t->classes + c] =
            end == LIVE_RANGES_NEVER ? end : repeats_seen_from(r, first, at.copy, end);
    }
}

bool live_ranges_repeat(struct live_ranges *t, const struct repeats *r, uint32_t role)
{
    uint32_t count;
    for (uint32_t i = 1; i < t->count; i++)
        if (t->first_use[i] < t->first_use[i - 1])
            return false;
    for (uint32_t i = 0; i < r->run_count; i++)
        if (r->run[i].role == role && !isomorphic_around(t, r, &r->run[i]))
            return false;
    struct repeat_row *row = repeats_rows(r, role, t->first_use, t->count, &count);
    struct live_ranges whole = {.classes = t->classes};
    live_ranges_reserve(&whole, count + 1);
    whole.end = heap_alloc((size_t)count * t->classes + 1, sizeof *whole.end);
    for (uint32_t i = 0; i < count; i++)
        take_row(&whole, t, r, row[i]);
    live_ranges_settle(&whole, repeats_whole_id(r, t->begin), repeats_ops(r, role, t->ops));
    live_ranges_release(t);
    *t = whole;
    free(row);
    return true;
}
