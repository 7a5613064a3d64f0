/* models/calibrate.h: fits the numbers of a device file to measured points.
 *
 * Each family of numbers (start of a kernel, memory-bound work, products, each direction of each
 * implementation of attention, the issuing thread, the host's processors) that has points is
 * fitted to them by least squares of relative errors (models/fit.h); the others stay as the base
 * device has them. Numbers that describe a kernel's form (tiles, multiprocessors) are never
 * fitted: the base has them, or the header of the points states them (models/points.h).
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
    CALIBRATE_OTHER_FAMILIES = 5, /* families of points besides those of attention */
    CALIBRATE_FAMILIES_MAX =
        CALIBRATE_OTHER_FAMILIES + (int)ATTENTION_IMPL_COUNT * (int)ATTENTION_PASS_COUNT,
    CALIBRATE_NUMBERS_MAX = 128
};

struct calibrate_options {
    /* A fit whose relative errors have a larger root mean square than this is refused; 0: 0.25. Twice as much is
     * allowed for the start of a kernel and for the host's time, and 4 times as much for memory-bound work if only
     * rates are fitted. */
    double rms_error_limit;
    /* the p10_s of points are fitted, for machines on which other programs run; false: their median_s */
    bool fits_fastest_times;
    /* Other programs may have disturbed points (models/noise.h). If the points lie too far from a fit for that reason,
     * the fit is made again with p10_s, the fast times; if that is refused as well, the fit's numbers stay as in the
     * base. calibration.fallback lists these fits. */
    bool despite_noise;
    /* Recorded steps have points of few sizes. Where these cannot tell time that grows with the size from time that
     * does not, only rates and shares are fitted; starts and ramps stay as in the base, and a note says so. */
    bool rates_only_if_few_sizes;
    bool reduce_scatter_as_all_reduce; /* the cluster's fabric.reduce_scatter_as_all_reduce */
    double host_memory_bytes_per_s;    /* the cluster's; 0: the header's host_memory_bytes_per_s */
};

enum calibrate_origin {
    CALIBRATE_FITTED,
    CALIBRATE_STATED, /* the header of the points states the number */
    CALIBRATE_DERIVED /* the number follows from fitted ones; `source_text` says which */
};

/* A number of the device that the calibration has set; all other numbers are the base's. */
struct calibrate_number {
    const char *name; /* "matmul.ramp_s", "attention.cpu.forward.rates.64" */
    enum unit_kind unit;
    double value, standard_error; /* standard_error: in the value's unit; 0: it is not known */
    bool is_at_bound;             /* the best value lies at an end of the allowed range */
    enum calibrate_origin origin;
    int family_index;        /* for FITTED: index in calibration.family[] */
    const char *source_text; /* the source of the number in words */
};

struct calibrate_family {
    const char *name; /* "matmul", "attention.cpu.forward" */
    struct cost_calibration calibration;
    size_t point_count, parameter_count;
    double rms_error, worst_error, leave_one_out_error;
    size_t leave_one_out_points;
    struct loc worst_point_loc;
    const char *worst_point_text; /* "matmul m=64 n=512 k=512" */
};

/* A family whose first fit was refused, and the numbers that were used instead. */
struct calibrate_fallback {
    const char *name;
    /* the family keeps the base's numbers; false: they are fitted to the fastest times */
    bool keeps_base_numbers;
    /* other programs disturbed its points, and the caller asked to go on; false: the fit is refused with a
     * message */
    bool is_disturbed;
};

struct calibration {
    struct arena arena;
    struct device_cost cost; /* the base's costs with the fitted numbers */
    size_t family_count, number_count;
    struct calibrate_family family[CALIBRATE_FAMILIES_MAX];
    struct calibrate_number number[CALIBRATE_NUMBERS_MAX];
    /* one line, with the reason, for each number that was left as in the base */
    struct text notes;
    double point_spread; /* the spread of all points (models/noise.h) */
    size_t fallback_count;
    struct calibrate_fallback fallback[CALIBRATE_FAMILIES_MAX];
    size_t unmeasured_count; /* number of families without a point, which keep the base's numbers */
    const char *unmeasured_family[CALIBRATE_FAMILIES_MAX];
    /* the file of points that the device file names, and the source of these points; NULL: no file is named */
    const char *points_file, *points_source;
};

void calibration_release(struct calibration *calibration);

/* Fits every family that has points. Returns STATUS_NO if a fit was refused, or if no point is of use; all refusals are
 * reported, and say whether the points were disturbed. *calibration still has what could be fitted; if nothing could,
 * it has no families. base and points must live as long as *calibration. */
enum status calibrate_device(struct calibration *calibration, const struct points *points,
                             const struct device_cost *base,
                             const struct calibrate_options *options, struct diag *diag);

/* Returns the spread that the device file states for a number: the relative standard deviation of the times that are
 * predicted with it. 0: the number was stated by the points' header, or follows from other numbers. */
double calibration_number_spread(const struct calibration *calibration,
                                 const struct calibrate_number *number);

/* Appends the device file: what differs from the preset `base`. cost_parse() reads it back. */
void calibration_print_device(const struct calibration *calibration, const char *name,
                              const char *base, const char *note, struct text *out);

/* Appends a table of the fits: numbers with standard errors and spreads, residuals, leave-one-out errors. */
void calibration_print_report(const struct calibration *calibration, struct text *out);

/* Appends four lines. "spread": how much repeats of points differ, and whether other programs caused it. "fastest": the
 * fits that used the fastest times for this reason. "refused": the fits that were refused, for disturbed points or for
 * other reasons. "unmeasured": the families without points. base: the preset that numbers come from which were not
 * fitted. */
void calibration_print_noise(const struct calibration *calibration, const char *base,
                             struct text *out);

#endif
