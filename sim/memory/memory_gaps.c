#include "sim/memory/memory_gaps.h"

#include "base/arena.h"

#include <math.h>

/* Returns the row of the first change at a date or later; the number of changes if there is none. */
static size_t first_change_from(const struct memory_changes *c, double date_s)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->row[middle].time_s < date_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the middle of the longest time without changes within half a period of a date. */
static double middle_of_longest_quiet_s(const struct memory_changes *c, double date_s,
                                        double period_s)
{
    double from_s = date_s - period_s / 2, to_s = date_s + period_s / 2, most_s = 0,
           middle_s = date_s;
    for (size_t i = first_change_from(c, from_s); from_s < to_s; i++) {
        double next_s = i < c->count && c->row[i].time_s < to_s ? c->row[i].time_s : to_s;
        if (next_s - from_s > most_s) {
            most_s = next_s - from_s;
            middle_s = from_s + most_s / 2;
        }
        from_s = next_s;
    }
    return middle_s;
}

/* True if change b is the same as change a, one period later. */
static bool is_repeated_change(const struct live_buffers *l, const struct memory_change *a,
                               const struct memory_change *b, double period_s, double same_s)
{
    const struct live_buffer *of_a = &l->row[a->row], *of_b = &l->row[b->row];
    return a->kind == b->kind && of_a->bytes == of_b->bytes && of_a->memory == of_b->memory &&
           of_a->category == of_b->category && fabs(b->time_s - a->time_s - period_s) <= 4 * same_s;
}

/* Sets *gap to the place near date_s at which `copies` periods of a repeated run are left out, with the bytes by which
 * these periods grow the live bytes. Returns false if the changes of the period before it are not those of the period
 * after it, up to a few times same_s, which is rounding: the memory of the run does not repeat then. */
static bool find_memory_gap_of_run(struct memory_gap *gap, const struct memory_changes *c,
                                   const struct live_buffers *l, double date_s, double period_s,
                                   double same_s, uint32_t copies)
{
    double cut_s = middle_of_longest_quiet_s(c, date_s, period_s);
    size_t begin = first_change_from(c, cut_s - period_s),
           end = first_change_from(c, cut_s + period_s);
    *gap = (struct memory_gap){.next_change_row = first_change_from(c, cut_s),
                               .left_out_copies_s = copies * period_s};
    if (gap->next_change_row - begin != end - gap->next_change_row)
        return false;
    for (size_t i = begin; i < gap->next_change_row; i++) {
        const struct memory_change *change = &c->row[i];
        if (!is_repeated_change(l, change, change + (gap->next_change_row - begin), period_s,
                                same_s))
            return false;
        const struct live_buffer *of = &l->row[change->row];
        gap->growth_bytes[of->memory][of->category] += copies * memory_change_bytes(change, l);
    }
    return true;
}

bool memory_gaps_find(const struct memory_changes *c, const struct live_buffers *l,
                      const struct ir *ir, const struct sim_result *result,
                      const struct sim_class *class, struct memory_gap **gaps, uint32_t *count)
{
    const struct repeats *r = &ir->repeats;
    double same_s = memory_changes_tolerance_s(result);
    bool found = true;
    *gaps = heap_alloc(r->run_count + 1u, sizeof **gaps);
    *count = 0;
    for (uint32_t i = 0; found && i < r->run_count; i++) {
        const struct repeat_run *run = &r->run[i];
        if (run->role != class->role)
            continue;
        double date_s =
            result->start_s[class->first_row + run->first_op +
                            run->gap_before_iteration * run->ops_per_iteration - class->op_begin];
        found = find_memory_gap_of_run(&(*gaps)[(*count)++], c, l, date_s,
                                       result->period_s_by_run[i], same_s, r->copies_per_gap);
    }
    return found;
}
