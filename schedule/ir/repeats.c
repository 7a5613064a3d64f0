#include "schedule/ir/repeats.h"

#include "base/arena.h"

#include <assert.h>

const struct repeat_run *repeats_run_before(const struct repeats *r, uint32_t op)
{
    uint32_t low = 0, high = r->run_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->run[middle].begin <= op)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &r->run[low - 1] : NULL;
}

struct repeat_place repeats_place(const struct repeats *r, uint32_t op)
{
    const struct repeat_run *run = repeats_run_before(r, op);
    if (run == NULL || op - run->begin >= run->ops * run->iterations)
        return (struct repeat_place){0};
    uint32_t iteration = (op - run->begin) / run->ops;
    return (struct repeat_place){.run = run,
                                 .iteration = iteration,
                                 .at = (op - run->begin) % run->ops,
                                 .value = run->first + run->step * (int32_t)iteration};
}

static int32_t whole_value(const struct repeats *r, int32_t value)
{
    return value >= r->first_copied ? value + (int32_t)r->copies : value;
}

uint32_t repeats_whole_id(const struct repeats *r, uint32_t op)
{
    const struct repeat_run *run = repeats_run_before(r, op);
    if (run == NULL)
        return op;
    bool behind = op >= run->begin + run->gap * run->ops;
    return op + run->left_out + (behind ? r->copies * run->ops : 0);
}

struct repeat_place repeats_seen_at(const struct repeats *r, uint32_t from, uint32_t copy,
                                    uint32_t op)
{
    struct repeat_place a = repeats_place(r, from), b = repeats_place(r, op);
    if (b.run == NULL)
        return b;
    int32_t away = b.value - a.value, value = whole_value(r, b.value);
    if (a.run != NULL && away <= r->most_distance && away >= -r->most_distance)
        value = whole_value(r, a.value) + (int32_t)copy * a.run->step + away;
    int32_t iteration = (value - whole_value(r, b.run->first)) * b.run->step;
    assert(iteration >= 0 && (uint32_t)iteration < b.run->iterations + r->copies);
    b.iteration = (uint32_t)iteration;
    b.value = value;
    return b;
}

uint32_t repeats_seen_from(const struct repeats *r, uint32_t from, uint32_t copy, uint32_t op)
{
    struct repeat_place at = repeats_seen_at(r, from, copy, op);
    if (at.run == NULL)
        return repeats_whole_id(r, op);
    return at.run->begin + at.run->left_out + at.iteration * at.run->ops + at.at;
}

bool repeats_correspond(const struct repeats *r, uint32_t op, int32_t value, uint32_t other,
                        int32_t step)
{
    struct repeat_place a = repeats_place(r, op), b = repeats_place(r, other);
    int32_t away = a.value - value;
    if (a.run == NULL || away > r->most_distance || away < -r->most_distance)
        return op == other;
    return a.run == b.run && a.at == b.at && b.value - a.value == step;
}

uint32_t repeats_times(const struct repeats *r, uint32_t op)
{
    struct repeat_place place = repeats_place(r, op);
    return place.run != NULL && place.iteration + 1 == place.run->gap ? 1 + r->copies : 1;
}

uint32_t repeats_ops(const struct repeats *r, uint32_t role, uint32_t ops)
{
    for (uint32_t i = 0; i < r->run_count; i++)
        if (role == REPEATS_ALL_ROLES || r->run[i].role == role)
            ops += r->copies * r->run[i].ops;
    return ops;
}

/* Appends the rows of a run's copies. They are copies of the iteration before the gap, whose rows are the last ones of
 * the short list's table before row `end`. */
static struct repeat_row *add_copies(const struct repeats *r, const struct repeat_run *run,
                                     const uint32_t *op, uint32_t end, struct repeat_row *row,
                                     size_t *capacity, uint32_t *rows)
{
    uint32_t begin = end, first = run->begin + (run->gap - 1) * run->ops;
    while (begin > 0 && op[begin - 1] >= first)
        begin--;
    row = heap_grow(row, capacity, *rows + (size_t)r->copies * (end - begin) + 1, sizeof *row);
    for (uint32_t copy = 1; copy <= r->copies; copy++)
        for (uint32_t i = begin; i < end; i++)
            row[(*rows)++] = (struct repeat_row){i, copy, end - begin};
    return row;
}

struct repeat_row *repeats_rows(const struct repeats *r, uint32_t role, const uint32_t *op,
                                uint32_t count, uint32_t *rows)
{
    struct repeat_row *row = NULL;
    size_t capacity = 0;
    uint32_t i = 0;
    *rows = 0;
    for (uint32_t k = 0; k <= r->run_count; k++) {
        const struct repeat_run *run = k < r->run_count ? &r->run[k] : NULL;
        if (run != NULL && run->role != role)
            continue;
        uint32_t gap = run != NULL ? run->begin + run->gap * run->ops : UINT32_MAX;
        for (; i < count && op[i] < gap; i++) {
            row = heap_grow(row, &capacity, *rows + (size_t)1, sizeof *row);
            row[(*rows)++] = (struct repeat_row){i, 0, 0};
        }
        if (run != NULL)
            row = add_copies(r, run, op, i, row, &capacity, rows);
    }
    return row;
}
