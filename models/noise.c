#include "models/noise.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <stdlib.h>

/* The fewest repeats that have a p10 and a p90 of their own. */
static const int64_t REPEATS_MIN = 5;

/* From these values of p90 / p10 on, points count as disturbed. ALL_LIMIT is for the median over all points: on an idle
 * machine it is 1.2 to 1.3; with as many busy programs as processors it is 2 or more. OWN_LIMIT is for the median over
 * the points of one fit, which may be larger on an idle machine: 1.6 for the short times of the issuing thread. */
static const double ALL_LIMIT = 1.5, OWN_LIMIT = 2;

double noise_median_p90_over_p10(const struct point *const *point, size_t count)
{
    double *spread = heap_alloc(count + 1, sizeof *spread), middle = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (point[i]->repeats >= REPEATS_MIN)
            spread[kept++] = point[i]->p90_s / point[i]->p10_s;
    if (kept > 0) {
        gsl_sort(spread, 1, kept);
        middle = gsl_stats_median_from_sorted_data(spread, 1, kept);
    }
    free(spread);
    return middle;
}

double noise_median_p90_over_p10_of_all(const struct points *points)
{
    const struct point **point = heap_alloc(points->count + 1, sizeof(const struct point *));
    for (size_t i = 0; i < points->count; i++)
        point[i] = &points->row[i];
    double spread = noise_median_p90_over_p10(point, points->count);
    free((void *)point);
    return spread;
}

bool noise_shows_disturbance(double all, double own)
{
    return all >= ALL_LIMIT || own >= OWN_LIMIT;
}
