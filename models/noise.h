/* models/noise.h: whether other programs disturbed measured points.
 *
 * Repeats of one op on an idle machine lie close together; where others take the processors, some
 * repeats wait and the slowest tenth is several times as long as the fastest. docs/measuring.md,
 * "Disturbed points", has the figures that the limits stand on. */
#ifndef MODELS_NOISE_H
#define MODELS_NOISE_H

#include "models/points.h"

#include <stdbool.h>

/* p90 over p10 of the middle one of the points that were repeated often enough to have both; 0: none
 * was. 1 is no spread at all. */
double noise_spread(const struct point *const *point, size_t count);
double noise_spread_of_all(const struct points *points);

/* Whether what a fit to some points refuses is to be put down to others: all points spread, or these
 * do by far. Spreads of 0 are unknown and say nothing. */
bool noise_disturbs(double all, double own);

#endif
