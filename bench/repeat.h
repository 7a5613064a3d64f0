/* bench/repeat.h: a measurement that is repeated until its median is stable.
 *
 *     struct repeat repeat = {0};
 *     while (repeat_needs_more(&repeat))
 *         repeat_add(&repeat, processor_s());
 *
 * The spread is half the width of the median's 95 % interval, relative to the median. The ends of the interval are
 * the values at position (n - 1.96 sqrt(n)) / 2, rounded down and counted from 0, from either end (the binomial
 * distribution's normal approximation); with up to seven values, they are the least and the greatest. */
#ifndef BENCH_REPEAT_H
#define BENCH_REPEAT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    REPEAT_MIN = 5, /* with 5 values, 94 % of the intervals hold the median */
    REPEAT_MAX = 25,
    REPEAT_MIN_LONG = 2 /* rounds, if they take longer than REPEAT_TOTAL_S */
};

#define REPEAT_SPREAD 0.02  /* the median counts as stable when repeat_spread() is below this */
#define REPEAT_TOTAL_S 20.0 /* no more rounds once REPEAT_MIN_LONG or more values sum up to this */

struct repeat {
    double seconds[REPEAT_MAX]; /* seconds, in ascending order */
    size_t round_count;
};

/* True if another round is due: the median is not stable yet, and rounds and time are left. */
bool repeat_needs_more(const struct repeat *repeat);

/* Adds the seconds of one round, above 0. There is room as long as repeat_needs_more() is true. */
void repeat_add(struct repeat *repeat, double seconds);

/* Returns the median of the values; there must be at least one. */
double repeat_median_s(const struct repeat *repeat);
double repeat_spread(const struct repeat *repeat);

#endif
