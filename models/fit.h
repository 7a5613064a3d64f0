/* models/fit.h: non-linear least squares over measured times, through GSL.
 *
 * The fit minimises the sum of squares of (predicted / measured - 1) over the parameters of a
 * model.
 *
 * A fit is refused if there are fewer points than parameters that are fitted, if no point depends on a parameter
 * that is not optional, if points cannot tell parameters apart (the Jacobian's rank), or if the fit
 * lies too far from its points. No value is guessed for a parameter that the points do not determine.
 * A refusal is STATUS_NO with one message that says what is wrong and what would help. */
#ifndef MODELS_FIT_H
#define MODELS_FIT_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

enum { FIT_PARAMS_MAX = 48 };

struct fit_param {
    const char *name;
    double start, low, high; /* start within low..high */
    /* 0: the fit works with the logarithm of the parameter, as rates and shares need it; `low` must be above 0. Else it
     * works with the parameter divided by `scale`, for parameters that may be 0; `scale` is then about the smallest
     * change of the parameter that changes a prediction noticeably. */
    double scale;
    /* if no point depends on the parameter, it is not fitted; false: the fit is then refused */
    bool is_optional;
};

/* Returns the predicted seconds of one point, above 0. */
typedef double fit_model(void *context, const double *value, size_t point);

struct fit_problem {
    const char *name; /* "matmul", for messages */
    const char *help; /* which points would help, for messages: "add products of other depths" */
    /* replaces `help` in the refusal of points that lie too far from the fit; NULL: `help` is used */
    const char *scatter_refusal_advice;
    const struct fit_param *param;
    size_t param_count, point_count;
    const double *measured_s; /* (points) */
    fit_model *model;
    void *context;
    double rms_error_limit;    /* largest root mean square that is accepted */
    bool needs_only_rms_error; /* no leave-one-out error is computed */
};

enum fit_state {
    FIT_FREE,     /* fitted */
    FIT_AT_BOUND, /* the best value is low or high, so the parameter is held there */
    FIT_FIXED     /* no point depends on it, so it is not fitted */
};

struct fit {
    double value[FIT_PARAMS_MAX];
    double standard_error[FIT_PARAMS_MAX]; /* standard error of a free parameter; else 0 */
    enum fit_state state[FIT_PARAMS_MAX];
    /* degrees_of_freedom: the number of points minus the number of free parameters */
    size_t point_count, degrees_of_freedom;
    double rms_error, worst_error; /* relative, over the points */
    bool is_refused_as_scattered;  /* the fit was refused because rms exceeds the limit */
    size_t worst_point;
    /* The root mean square of relative errors, where each point is predicted by a fit to all other points. Only points
     * count that the others can predict, those with leverage at most 0.9; 0: no point counts. */
    double leave_one_out_error;
    /* number of points that count; 0 with fit_problem.needs_only_rms_error */
    size_t points_left_out_one_by_one;
};

enum status fit_run(struct fit *fit, const struct fit_problem *problem, struct loc at,
                    struct diag *diag);

#endif
