#include "bench/repeat.h"

#include <assert.h>
#include <math.h>

bool repeat_goes_on(const struct repeat *repeat)
{
    double sum_s = 0;
    for (size_t i = 0; i < repeat->count; i++)
        sum_s += repeat->value[i];
    if (repeat->count < REPEAT_LONG)
        return true;
    if (repeat->count == REPEAT_MAX || sum_s >= REPEAT_TOTAL_S)
        return false;
    return repeat->count < REPEAT_MIN || repeat_spread(repeat) >= REPEAT_SPREAD;
}

void repeat_add(struct repeat *repeat, double seconds)
{
    assert(repeat->count < REPEAT_MAX);
    size_t at = repeat->count++;
    for (; at > 0 && repeat->value[at - 1] > seconds; at--)
        repeat->value[at] = repeat->value[at - 1];
    repeat->value[at] = seconds;
}

double repeat_median_s(const struct repeat *repeat)
{
    const size_t n = repeat->count;
    assert(n > 0);
    return (repeat->value[(n - 1) / 2] + repeat->value[n / 2]) / 2;
}

double repeat_spread(const struct repeat *repeat)
{
    const double n = (double)repeat->count, rank = floor((n - 1.96 * sqrt(n)) / 2);
    const size_t low = rank > 0 ? (size_t)rank : 0;
    assert(repeat->count > 0);
    return (repeat->value[repeat->count - 1 - low] - repeat->value[low]) / 2 /
           repeat_median_s(repeat);
}
