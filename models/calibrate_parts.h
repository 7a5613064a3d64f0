/* models/calibrate_parts.h: types and functions that the files of models/calibrate*.c share; private to them. */
#ifndef MODELS_CALIBRATE_PARTS_H
#define MODELS_CALIBRATE_PARTS_H

#include "base/json_write.h"
#include "models/calibrate.h"
#include "models/cost_parts.h"

/* The least and the greatest relative spread that is written into a file. A fit of a few points is never more certain
 * than the least; a number that a fit leaves undetermined is still known within a factor of e. */
#define CALIBRATE_WRITTEN_SPREAD_MIN 0.01
#define CALIBRATE_WRITTEN_SPREAD_MAX 1.0

/* A family while it is fitted: its points, and for each parameter the number it sets. */
struct calibrate_problem {
    struct calibration *calibration;
    const struct calibrate_options *options;
    const char *name, *help;
    const struct points *all_points;
    const struct point **point; /* room for all points */
    size_t point_count;
    struct fit_param param[FIT_PARAMS_MAX];
    double *number_set_by_param
        [FIT_PARAMS_MAX]; /* the number in calibration->cost that a parameter sets */
    enum unit_kind unit[FIT_PARAMS_MAX];
    size_t param_count;
    double rms_error_limit;
    bool needs_only_rms_error; /* no leave-one-out error is computed */
    /* only rates and shares are fitted (calibrate_options.fits_rates_only_if_few_sizes) */
    bool fits_rates_only;
    int impl, direction; /* for attention: enum attention_impl, enum attention_direction */
    /* the last fit was refused because other programs disturbed its points */
    bool was_refused_as_disturbed;
    double (*predict)(const struct calibrate_problem *problem, const struct point *point);
    double host_memory_bytes_per_s;
};

/* Adds a parameter that starts at the cost's present value *slot. scale: as in struct fit_param. */
void calibrate_add_param(struct calibrate_problem *problem, const char *name, double *slot,
                         enum unit_kind unit, double low, double high, double scale, bool optional);

/* Finds a number by its name ("matmul.ramp_s", "attention.cpu.forward.tile"). Returns its row, and sets *slot to
 * the member of c->cost that holds it; returns NULL if there is no such number. */
const struct cost_param *calibrate_find_param(struct calibration *c, const char *name,
                                              double **slot);

/* Adds a parameter, whose name must be that of a row of models/cost_params.def, with the row's unit and range. The name
 * is borrowed. */
void calibrate_add_cost_param(struct calibrate_problem *problem, const char *name, double scale,
                              bool optional);

/* Fits the problem. On success the costs and tables of problem->calibration hold the result. calibration: where the
 * ranges of sizes and the error of this family's fit are stored; NULL: they are not stored. */
enum status calibrate_fit(struct calibrate_problem *problem,
                          struct cost_calibrated_range *calibration, struct diag *diag);

/* Sets *slot to a number that was not fitted, and records it with its origin. how: the source of the number in
 * words. */
void calibrate_record_derived(struct calibration *c, const char *name, double *slot,
                              enum unit_kind unit, double value, enum calibrate_origin origin,
                              const char *how);

/* Returns the seconds of a point that are fitted: p10_s or median_s, as the options say. */
double calibrate_measured_time_s(const struct calibrate_options *options,
                                 const struct point *point);

/* The help text that replaces the problem's own if other programs disturbed the points
 * (fit_problem.scatter_refusal_advice). */
extern const char calibrate_disturbed[];

/* Each function fits one family, if it has points; calibrate_attention() that of problem->impl and problem->direction.
 * They are called in this order, since a family's fit uses the numbers of the families before it. */
typedef enum status calibrate_family_function(struct calibrate_problem *problem, struct diag *diag);
calibrate_family_function calibrate_kernel_start, calibrate_memory_bandwidth, calibrate_matmul,
    calibrate_attention, calibrate_host_issue, calibrate_host_work;

/* Sets problem->point to those of all points for which the filter returns true. */
typedef bool calibrate_point_filter(const struct calibrate_problem *problem,
                                    const struct point *point);
void calibrate_select_points(struct calibrate_problem *problem, calibrate_point_filter *chosen);

/* Refuses points that all have the same size; the message names the size. */
enum status calibrate_check_size_varies(const struct calibrate_problem *problem,
                                        enum cost_size size, struct diag *diag);

/* Derives the device's jitter from points that were repeated often enough. */
void calibrate_jitter(struct calibration *c, const struct points *points);

/* Appends a line with `head` and the names, separated by commas, of the fits whose has_kept_base_numbers and
 * is_due_to_disturbed_points have these values; appends nothing if there are none. */
void calibrate_append_line_of_fallbacks(const struct calibrate_fallback *fallback, size_t count,
                                        bool has_kept_base_numbers, bool disturbed,
                                        const char *head, struct text *out);

/* Appends a value with its unit and six digits: "12.3456 GFLOP/s". */
void calibrate_append_quantity_to_text(struct text *out, enum unit_kind unit, double value);

/* Writes a number of a device or cluster file as a member: {"value": ..., "source": ..., "spread": ...}. spread 0:
 * there is no member "spread". */
void calibrate_write_number_as_json(struct json_out *json, const char *name, enum unit_kind unit,
                                    double value, const char *source, double spread);

#endif
