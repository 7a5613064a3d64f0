/* Makes the live ranges of a whole list from those of a short list. */
#include "schedule/memory_plan/live_ranges.h"

#include <stdlib.h>

/* Returns the first row whose first use is `op` or a later op. */
static uint32_t find_first_row_from(const struct live_ranges *t, uint32_t op)
{
    uint32_t low = 0, high = t->range_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->first_use[middle] < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool rows_correspond(const struct live_ranges *t, const struct repeats *r, uint32_t a,
                            uint32_t b, int32_t step)
{
    int32_t value = repeats_place_of_op(r, t->first_use[a]).value_of_iteration;
    if (t->first_use_class_by_range[a] != t->first_use_class_by_range[b] ||
        t->bytes[a] != t->bytes[b] ||
        !repeats_refs_match_over_iterations(r, t->first_use[a], value, t->first_use[b], step))
        return false;
    for (uint32_t c = 0; c < t->class_count; c++) {
        uint32_t x = live_ranges_end_ops(t, a)[c], y = live_ranges_end_ops(t, b)[c];
        if (x == LIVE_RANGES_NEVER_REUSABLE || y == LIVE_RANGES_NEVER_REUSABLE
                ? x != y
                : !repeats_refs_match_over_iterations(r, x, value, y, step))
            return false;
    }
    return true;
}

/* True if the rows of the two iterations at a run's gap correspond. */
static bool iterations_correspond_at_gap(const struct live_ranges *t, const struct repeats *r,
                                         const struct repeat_run *run)
{
    uint32_t begin = run->first_op + (run->gap_before_iteration - 1) * run->ops_per_iteration;
    uint32_t a = find_first_row_from(t, begin),
             b = find_first_row_from(t, begin + run->ops_per_iteration),
             c = find_first_row_from(t, begin + 2 * run->ops_per_iteration);
    if (b - a != c - b)
        return false;
    for (uint32_t i = a; i < b; i++)
        if (!rows_correspond(t, r, i, i + (b - a), run->value_step))
            return false;
    return true;
}

static void append_copied_row(struct live_ranges *to, const struct live_ranges *t,
                              const struct repeats *r, struct whole_list_row at)
{
    uint32_t i = to->range_count++, first = t->first_use[at.row];
    to->buffer[i] = at.copy == 0 ? t->buffer[at.row] : IR_NONE;
    to->first_use[i] = repeats_whole_list_op_id_of_ref(r, first, at.copy, first);
    to->first_use_class_by_range[i] = t->first_use_class_by_range[at.row];
    to->bytes[i] = t->bytes[at.row];
    for (uint32_t c = 0; c < t->class_count; c++) {
        uint32_t end = live_ranges_end_ops(t, at.row)[c];
        to->end_ops_by_range_and_class[(size_t)i * t->class_count + c] =
            end == LIVE_RANGES_NEVER_REUSABLE
                ? end
                : repeats_whole_list_op_id_of_ref(r, first, at.copy, end);
    }
}

bool live_ranges_expand_repeats(struct live_ranges *t, const struct repeats *r, uint32_t role)
{
    uint32_t count;
    for (uint32_t i = 1; i < t->range_count; i++)
        if (t->first_use[i] < t->first_use[i - 1])
            return false;
    for (uint32_t i = 0; i < r->run_count; i++)
        if (r->run[i].role == role && !iterations_correspond_at_gap(t, r, &r->run[i]))
            return false;
    struct whole_list_row *row =
        repeats_expand_rows_to_whole_list(r, role, t->first_use, t->range_count, &count);
    struct live_ranges whole = {.class_count = t->class_count};
    live_ranges_reserve(&whole, count + 1);
    whole.end_ops_by_range_and_class =
        heap_alloc((size_t)count * t->class_count + 1, sizeof *whole.end_ops_by_range_and_class);
    for (uint32_t i = 0; i < count; i++)
        append_copied_row(&whole, t, r, row[i]);
    live_ranges_fill_earliest_ends(&whole, repeats_op_id_in_whole_list(r, t->first_op),
                                   repeats_whole_op_count(r, role, t->op_count));
    live_ranges_release(t);
    *t = whole;
    free(row);
    return true;
}
