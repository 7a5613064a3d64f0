/* models/calibrate.h: fits the numbers of a device file to measured points.
 *
 * Each family of numbers (start of a kernel, memory-bound work, products, each direction of each
 * implementation of attention, the issuing thread, the host's processors) that has points is
 * fitted to them by least squares of relative errors (models/fit.h); the others stay as the base
 * device has them. Numbers that describe a kernel's form (tiles, multiprocessors) are not
 * fitted: the base has them, or the header of the points states them (models/points.h). Only the
 * tile and the step of attention on the host's processors are chosen by the points.
 * docs/measuring.md, "Calibration", says what is fitted to what.
 *
 * The folder models/ describes transformers and clusters, and computes what each piece of work costs on a device; the
 * fits of these costs to measurements are here too. */
#ifndef MODELS_CALIBRATE_H
#define MODELS_CALIBRATE_H

#include "models/cost.h"
#include "models/fit.h"
#include "models/points.h"

enum {
    CALIBRATE_NON_ATTENTION_FAMILIES = 5, /* families of points besides those of attention */
    CALIBRATE_FAMILIES_MAX =
        CALIBRATE_NON_ATTENTION_FAMILIES + (int)ATTENTION_IMPL_COUNT * (int)ATTENTION_PASS_COUNT,
    CALIBRATE_NUMBERS_MAX = 128
};

struct calibrate_options {
    /* A fit whose relative errors have a larger root mean square than this is refused; 0: 0.25. Twice as much is
     * allowed for the start of a kernel and for the issuing thread, and 4 times as much for memory-bound work if only
     * rates are fitted. */
    double rms_error_limit;
    /* the p10_s of points are fitted, for machines on which other programs run; false: their median_s */
    bool fits_p10_times;
    /* For points that other programs may have disturbed (models/noise.h). If a family is refused because disturbed
     * points lie too far from the fit, it is fitted again to the fast times, p10_s. If that fit is refused as well, the
     * family keeps the base's numbers. Neither counts as a refusal; calibration.fallback lists both. */
    bool falls_back_if_disturbed;
    /* For points of recorded steps, which have few sizes. If the fit of all numbers of a family is refused, only rates
     * and shares are fitted. If that fit is good, ramps stay as in the base, and calibration.notes says so. */
    bool fits_rates_only_if_few_sizes;
    bool reduce_scatter_as_all_reduce; /* the cluster's fabric.reduce_scatter_as_all_reduce */
    double host_memory_bytes_per_s;    /* the cluster's; 0: the header's host_memory_bytes_per_s */
};

enum calibrate_origin {
    CALIBRATE_FITTED,
    CALIBRATE_STATED, /* the header of the points states the number */
    CALIBRATE_DERIVED /* the number follows from points or from fitted numbers; `source_text` says how */
};

/* A number of the device that the calibration has set; all other numbers are the base's. */
struct calibrate_number {
    const char *name; /* "matmul.ramp_s", "attention.cpu.forward.rates.64" */
    enum unit_kind unit;
    double value, standard_error; /* standard_error: in the value's unit; 0: it is not known */
    bool is_best_value_at_bound;  /* the best value lies at an end of the allowed range */
    enum calibrate_origin origin;
    int family_index;        /* index in calibration.family[]; -1: the number was not fitted */
    const char *source_text; /* the source of the number in words */
};

struct calibrate_family {
    const char *name; /* "matmul", "attention.cpu.forward" */
    struct cost_calibrated_range calibration;
    size_t point_count, parameter_count;
    double rms_error, worst_error, leave_one_out_error;
    size_t points_left_out_one_by_one;
    struct loc worst_point_loc;
    const char *worst_point_text; /* "matmul m=64 n=512 k=512" */
};

/* A family whose fit was refused, and the numbers that it has now. */
struct calibrate_fallback {
    const char *name;
    /* the numbers are the base's; false: they are fitted to the fastest times (p10_s) */
    bool has_kept_base_numbers;
    /* The cause was points that other programs disturbed, which options.falls_back_if_disturbed allows. False: the
     * refusal is reported, and has_kept_base_numbers is true. */
    bool is_due_to_disturbed_points;
};

struct calibration {
    struct arena arena;
    struct device_cost cost; /* the base's costs with the fitted numbers */
    size_t family_count, number_count;
    struct calibrate_family family[CALIBRATE_FAMILIES_MAX];
    struct calibrate_number number[CALIBRATE_NUMBERS_MAX];
    /* lines that say which numbers were left as in the base, and why */
    struct text notes;
    /* p90 / p10 of the repeats of a point, the median over all points (noise_median_p90_over_p10_of_all()); 0: no point
     * was repeated often enough */
    double median_p90_over_p10_of_points;
    size_t fallback_count;
    struct calibrate_fallback fallback[CALIBRATE_FAMILIES_MAX];
    /* number of families without a point, which keep the base's numbers */
    size_t unmeasured_family_count;
    const char *unmeasured_families[CALIBRATE_FAMILIES_MAX];
    /* The caller sets these: the file of points that calibration_print_device() puts into the device file as "points",
     * and the source of these points. NULL: the device file has no points. */
    const char *points_file, *points_source;
};

void calibration_release(struct calibration *calibration);

/* Fits every family that has points. Returns STATUS_NO if a fit was refused, or if no family has
 * points. Each refusal is reported; if the points scatter too much, the message says whether other
 * programs disturbed them. *calibration then still has the families that could be fitted. Points of several devices,
 * a header line out of range, or an ideal base are STATUS_BAD_INPUT. base and points must live as
 * long as *calibration. */
enum status calibrate_device(struct calibration *calibration, const struct points *points,
                             const struct device_cost *base,
                             const struct calibrate_options *options, struct diag *diag);

/* Returns the spread that the device file states for a number: the relative standard deviation of the times that are
 * predicted with it. Returns 0 if the number was not fitted. */
double calibration_number_spread(const struct calibration *calibration,
                                 const struct calibrate_number *number);

/* Appends the device file: what differs from the preset `base`. cost_parse() reads it back. */
void calibration_print_device(const struct calibration *calibration, const char *name,
                              const char *base, const char *note, struct text *out);

/* Appends a table of the fits: numbers with standard errors and spreads, residuals, leave-one-out errors. */
void calibration_print_report(const struct calibration *calibration, struct text *out);

/* Appends these lines; all but the first are left out if they would name no family:
 *   spread      how much the repeats of points differ, and whether other programs caused that
 *   fastest     the families that were fitted to the fastest times
 *   refused     the refused families with disturbed points; a second such line has the other refused families
 *   unmeasured  the families without points
 * base: the name of the preset from which numbers that were not fitted come. */
void calibration_print_noise(const struct calibration *calibration, const char *base,
                             struct text *out);

#endif
