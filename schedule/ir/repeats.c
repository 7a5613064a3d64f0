#include "schedule/ir/repeats.h"

#include "base/arena.h"

#include <assert.h>

const struct repeat_run *repeats_last_run_up_to_op(const struct repeats *r, uint32_t op)
{
    uint32_t low = 0, high = r->run_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->run[middle].first_op <= op)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &r->run[low - 1] : NULL;
}

struct repeat_place repeats_place_of_op(const struct repeats *r, uint32_t op)
{
    const struct repeat_run *run = repeats_last_run_up_to_op(r, op);
    if (run == NULL || op - run->first_op >= run->ops_per_iteration * run->iteration_count)
        return (struct repeat_place){0};
    uint32_t iteration = (op - run->first_op) / run->ops_per_iteration;
    return (struct repeat_place){.run = run,
                                 .iteration = iteration,
                                 .op_in_iteration = (op - run->first_op) % run->ops_per_iteration,
                                 .value_of_iteration =
                                     run->first_value + run->value_step * (int32_t)iteration};
}

static int32_t iteration_value_in_whole_list(const struct repeats *r, int32_t value)
{
    return value >= r->iteration_value_of_first_copy ? value + (int32_t)r->copies_per_gap : value;
}

uint32_t repeats_op_id_in_whole_list(const struct repeats *r, uint32_t op)
{
    const struct repeat_run *run = repeats_last_run_up_to_op(r, op);
    if (run == NULL)
        return op;
    bool behind = op >= run->first_op + run->gap_before_iteration * run->ops_per_iteration;
    return op + run->ops_left_out_before +
           (behind ? r->copies_per_gap * run->ops_per_iteration : 0);
}

struct repeat_place repeats_whole_list_place_of_ref(const struct repeats *r, uint32_t from,
                                                    uint32_t copy, uint32_t op)
{
    struct repeat_place a = repeats_place_of_op(r, from), b = repeats_place_of_op(r, op);
    if (b.run == NULL)
        return b;
    int32_t away = b.value_of_iteration - a.value_of_iteration,
            value = iteration_value_in_whole_list(r, b.value_of_iteration);
    if (a.run != NULL && away <= r->max_iteration_distance_of_refs &&
        away >= -r->max_iteration_distance_of_refs)
        value = iteration_value_in_whole_list(r, a.value_of_iteration) +
                (int32_t)copy * a.run->value_step + away;
    int32_t iteration =
        (value - iteration_value_in_whole_list(r, b.run->first_value)) * b.run->value_step;
    assert(iteration >= 0 && (uint32_t)iteration < b.run->iteration_count + r->copies_per_gap);
    b.iteration = (uint32_t)iteration;
    b.value_of_iteration = value;
    return b;
}

uint32_t repeats_whole_list_op_id_of_ref(const struct repeats *r, uint32_t from, uint32_t copy,
                                         uint32_t op)
{
    struct repeat_place at = repeats_whole_list_place_of_ref(r, from, copy, op);
    if (at.run == NULL)
        return repeats_op_id_in_whole_list(r, op);
    return at.run->first_op + at.run->ops_left_out_before +
           at.iteration * at.run->ops_per_iteration + at.op_in_iteration;
}

bool repeats_refs_match_over_iterations(const struct repeats *r, uint32_t op, int32_t value,
                                        uint32_t other, int32_t step)
{
    struct repeat_place a = repeats_place_of_op(r, op), b = repeats_place_of_op(r, other);
    int32_t away = a.value_of_iteration - value;
    if (a.run == NULL || away > r->max_iteration_distance_of_refs ||
        away < -r->max_iteration_distance_of_refs)
        return op == other;
    return a.run == b.run && a.op_in_iteration == b.op_in_iteration &&
           b.value_of_iteration - a.value_of_iteration == step;
}

uint32_t repeats_occurrence_count(const struct repeats *r, uint32_t op)
{
    struct repeat_place place = repeats_place_of_op(r, op);
    return place.run != NULL && place.iteration + 1 == place.run->gap_before_iteration
               ? 1 + r->copies_per_gap
               : 1;
}

uint32_t repeats_whole_op_count(const struct repeats *r, uint32_t role, uint32_t ops)
{
    for (uint32_t i = 0; i < r->run_count; i++)
        if (role == REPEATS_ALL_ROLES || r->run[i].role == role)
            ops += r->copies_per_gap * r->run[i].ops_per_iteration;
    return ops;
}

/* Appends the rows for the copies of a run's iteration before its gap, copies_per_gap times. The rows of that iteration
 * are the last ones before row `end` of the short list's table; op[]: the op of each row. Returns the array, which may
 * have moved. */
static struct whole_list_row *
append_iteration_copies(const struct repeats *r, const struct repeat_run *run, const uint32_t *op,
                        uint32_t end, struct whole_list_row *row, size_t *capacity, uint32_t *rows)
{
    uint32_t begin = end,
             first = run->first_op + (run->gap_before_iteration - 1) * run->ops_per_iteration;
    while (begin > 0 && op[begin - 1] >= first)
        begin--;
    row = heap_grow(row, capacity, *rows + (size_t)r->copies_per_gap * (end - begin) + 1,
                    sizeof *row);
    for (uint32_t copy = 1; copy <= r->copies_per_gap; copy++)
        for (uint32_t i = begin; i < end; i++)
            row[(*rows)++] = (struct whole_list_row){i, copy, end - begin};
    return row;
}

struct whole_list_row *repeats_expand_rows_to_whole_list(const struct repeats *r, uint32_t role,
                                                         const uint32_t *op, uint32_t count,
                                                         uint32_t *rows)
{
    struct whole_list_row *row = NULL;
    size_t capacity = 0;
    uint32_t i = 0;
    *rows = 0;
    for (uint32_t k = 0; k <= r->run_count; k++) {
        const struct repeat_run *run = k < r->run_count ? &r->run[k] : NULL;
        if (run != NULL && run->role != role)
            continue;
        uint32_t gap = run != NULL
                           ? run->first_op + run->gap_before_iteration * run->ops_per_iteration
                           : UINT32_MAX;
        for (; i < count && op[i] < gap; i++) {
            row = heap_grow(row, &capacity, *rows + (size_t)1, sizeof *row);
            row[(*rows)++] = (struct whole_list_row){i, 0, 0};
        }
        if (run != NULL)
            row = append_iteration_copies(r, run, op, i, row, &capacity, rows);
    }
    return row;
}
