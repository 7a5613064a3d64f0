/* Fills in the times of the periods that were left out. */
#include "sim/plan/depth.h"

#include "base/arena.h"

#include <stdlib.h>

static void move_on(double *row, uint32_t begin, uint32_t end, double by_s)
{
    for (uint32_t op = begin; by_s != 0 && op < end; op++)
        row[op] += by_s;
}

/* Fills rows [begin, end) of the left-out periods: each repeats period first_kept - 1, a whole number of periods
 * later. */
static void fill_gap(const struct depth_run *run, double *row, uint32_t begin, uint32_t end)
{
    double period_s = run->period_s;
    const double *of = row + begin - run->ops;
    for (uint32_t op = begin, i = 0, p = 1; op < end; op++) {
        row[op] = of[i] + p * period_s;
        if (++i == run->ops) {
            i = 0;
            p++;
        }
    }
}

/* Writes all start times, or all end times, of one class: fills each run's gap and shifts the ops after it. */
static void write_class(const struct depth_run *run, uint32_t run_count, double *row, uint32_t ops)
{
    double shift_s = 0;
    uint32_t op = 0;
    for (uint32_t r = 0; r < run_count; r++, run++) {
        uint32_t left_out = run->periods - run->kept;
        if (left_out == 0)
            continue;
        uint32_t begin = run->begin + run->first_kept * run->ops, end = begin + left_out * run->ops;
        move_on(row, op, begin, shift_s);
        fill_gap(run, row, begin, end);
        shift_s += left_out * run->period_s;
        op = end;
    }
    move_on(row, op, ops, shift_s);
}

static struct steady_run *gaps_of(const struct depth_run *run, uint32_t run_count, uint32_t *count)
{
    struct steady_run *gap = heap_alloc(run_count + 1u, sizeof *gap);
    *count = 0;
    for (uint32_t r = 0; r < run_count; r++)
        if (run[r].kept < run[r].periods)
            gap[(*count)++] = (struct steady_run){.begin = run[r].begin,
                                                  .ops = run[r].ops,
                                                  .gap = run[r].first_kept,
                                                  .left_out = run[r].periods - run[r].kept};
    return gap;
}

bool depth_expand(const struct sim_plan *plan, const struct fold *fold, struct depth_run *run,
                  uint32_t run_count, struct steady_times times)
{
    struct steady x = {.plan = plan, .fold = fold, .times = times, .run_count = 0};
    uint32_t ops = plan->ir->op.count, gap = 0;
    double step_s;
    x.run = gaps_of(run, run_count, &x.run_count);
    steady_begin(&x);
    bool right = steady_find_periods(&x);
    for (uint32_t r = 0; right && r < run_count; r++)
        if (run[r].kept < run[r].periods)
            run[r].period_s = x.run[gap++].period_s;
    for (size_t row = 0; right && row < x.row[fold->class_count]; row += ops) {
        write_class(run, run_count, times.start_s + row, ops);
        write_class(run, run_count, times.end_s + row, ops);
    }
    right = right && steady_starts_are_right(&x, &step_s);
    steady_release(&x);
    free(x.run);
    return right;
}
