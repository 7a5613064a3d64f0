/* models/noise.h: whether other programs disturbed measured points.
 *
 * Repeats of one op on an idle machine lie close together; if other programs use the processors, some repeats wait
 * and the slowest tenth is several times as long as the fastest. docs/measuring.md, "Disturbed points", has the
 * measurements from which the limits follow. */
#ifndef MODELS_NOISE_H
#define MODELS_NOISE_H

#include "models/points.h"

#include <stdbool.h>

/* Returns the median of p90 / p10 over the points that were repeated often enough to have both; 0: no
 * point was. 1 means that all repeats took the same time. */
double noise_spread(const struct point *const *point, size_t count);
double noise_spread_of_all(const struct points *points);

/* True if a refused fit is to be blamed on other programs: the repeats of all points lie apart (spread `all`), or
 * those of the fit's own points lie far apart (`own`). A spread of 0 is unknown and never counts. */
bool noise_disturbs(double all, double own);

#endif
