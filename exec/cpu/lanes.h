/* exec/cpu/lanes.h: sums and maxima over rows in an order that compilers can vectorise.
 *
 * A row is read in groups of LANES elements, and element i of a group is added to lane i. The elements after the last
 * whole group are added one by one, and then the lanes in ascending order. So the order of additions is the same on
 * every machine, and rounding errors are those of sums of 1/16th the length. */
#ifndef EXEC_CPU_LANES_H
#define EXEC_CPU_LANES_H

#include <stdint.h>

enum { LANES = 16 };

/* Returns the largest of `count` >= 1 numbers, of which none may be NaN. */
static inline float largest_of_lanes(const float *x, int64_t count)
{
    float lane[LANES], top = x[0];
    int64_t i = 0;
    for (int k = 0; k < LANES; k++)
        lane[k] = x[0];
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (int k = 0; k < LANES; k++)
        top = lane[k] > top ? lane[k] : top;
    for (; i < count; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

static inline float sum_of_lanes(const float *x, int64_t count)
{
    float lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += x[i + k];
    for (; i < count; i++)
        sum += x[i];
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

#endif
