#include "models/calibrate_parts.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <stdlib.h>

/* A point with fewer repeats does not count: its p10 and p90 say too little of the spread. */
static const int64_t REPEATS_MIN = 10;

/* p90 - p10 of a normal distribution, in standard deviations. */
static const double P10_TO_P90 = 2.563;

/* Sets the jitter to the median, over the points of kernels with REPEATS_MIN repeats or more, of the relative spread of
 * the repeats; if there are no such points, it stays. The median does not change when other programs disturb a few
 * points. */
void calibrate_jitter(struct calibration *c, const struct points *points)
{
    double *relative = heap_alloc(points->count + 1, sizeof *relative);
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->row[i];
        if (point_is_of_op_running_alone(point) && point->repeats >= REPEATS_MIN &&
            work_kind_info((enum work_kind)point->work.kind)->stream == STREAM_COMPUTE)
            relative[count++] = (point->p90_s - point->p10_s) / P10_TO_P90 / point->median_s;
    }
    if (count > 0) {
        gsl_sort(relative, 1, count);
        double middle = gsl_stats_median_from_sorted_data(relative, 1, count);
        calibrate_record_derived(c, "device.jitter", &c->cost.device_jitter, UNIT_NONE,
                                 middle < 1 ? middle : 1, CALIBRATE_DERIVED,
                                 arena_printf(&c->arena,
                                              "(p90 - p10) / 2.563 over the median of %zu points "
                                              "with %lld repeats or more; the median of them",
                                              count, (long long)REPEATS_MIN));
    }
    free(relative);
}
