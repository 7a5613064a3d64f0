/* models/noise.h: decides whether other programs disturbed measured points. */
#ifndef MODELS_NOISE_H
#define MODELS_NOISE_H

#include "models/points.h"

#include <stdbool.h>

/* Return the median of p90 / p10 over those points that were repeated often enough to have both; 0 if none was. 1 means
 * that all repeats took the same time. */
double noise_median_p90_over_p10(const struct point *const *point, size_t count);
double noise_median_p90_over_p10_of_all(const struct points *points);

/* True if the repeats of points differ so much that other programs probably disturbed them. all: the result of
 * noise_median_p90_over_p10_of_all(); own: that of noise_median_p90_over_p10() for the points of a fit. One that is 0
 * does not count. */
bool noise_shows_disturbance(double all, double own);

#endif
