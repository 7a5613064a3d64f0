/* Keeps the seconds of all rounds in ascending order, so that median and interval can be read off. */
#include "bench/repeat.h"

#include <assert.h>
#include <math.h>

bool repeat_needs_more(const struct repeat *repeat)
{
    double sum_s = 0;
    for (size_t i = 0; i < repeat->round_count; i++)
        sum_s += repeat->seconds[i];
    if (repeat->round_count < REPEAT_MIN_LONG)
        return true;
    if (repeat->round_count == REPEAT_MAX || sum_s >= REPEAT_TOTAL_S)
        return false;
    return repeat->round_count < REPEAT_MIN || repeat_spread(repeat) >= REPEAT_SPREAD;
}

void repeat_add(struct repeat *repeat, double seconds)
{
    assert(repeat->round_count < REPEAT_MAX);
    size_t at = repeat->round_count++;
    for (; at > 0 && repeat->seconds[at - 1] > seconds; at--)
        repeat->seconds[at] = repeat->seconds[at - 1];
    repeat->seconds[at] = seconds;
}

double repeat_median_s(const struct repeat *repeat)
{
    const size_t n = repeat->round_count;
    assert(n > 0);
    return (repeat->seconds[(n - 1) / 2] + repeat->seconds[n / 2]) / 2;
}

double repeat_spread(const struct repeat *repeat)
{
    const double n = (double)repeat->round_count, rank = floor((n - 1.96 * sqrt(n)) / 2);
    const size_t low = rank > 0 ? (size_t)rank : 0;
    assert(repeat->round_count > 0);
    return (repeat->seconds[repeat->round_count - 1 - low] - repeat->seconds[low]) / 2 /
           repeat_median_s(repeat);
}
