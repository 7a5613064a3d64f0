#include "models/fit.h"

#include "base/arena.h"
#include "base/text.h"

#include <assert.h>
#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS_MAX = 200 };

/* If a point has a larger leverage than this, the other points hardly determine one of the parameters, and a fit to
 * them does not predict the point. */
#define LEVERAGE_MAX 0.9

/* The points do not tell parameters apart if a singular value of the Jacobian, its columns scaled to norm 1, is at most
 * this share of the largest: a Jacobian that is computed from differences is not more exact than that. */
static const double RANK_TOLERANCE = 1e-5;
/* No point depends on a parameter if the norm of its column of the Jacobian is at most this share of the largest
 * norm. */
static const double COLUMN_TOLERANCE = 1e-7;

/* A least-squares problem while it is solved: the values of all parameters, which of them are free, and the point that
 * is left out, if one is. */
struct fit_search {
    const struct fit_problem *problem;
    double value[FIT_PARAMS_MAX];
    enum fit_state state[FIT_PARAMS_MAX];
    size_t free_index[FIT_PARAMS_MAX], free_count; /* indices of the free parameters */
    /* the point that is left out; equal to problem->point_count: none */
    size_t left_out_point;
};

/* ---- parameters as GSL sees them: logarithms or scaled values ---- */

/* Returns the number that GSL sees for a value of the parameter. unscale_value() does the reverse, and clamps the
 * value to the parameter's range. */
static double scaled_value(const struct fit_param *param, double value)
{
    return param->scale == 0 ? log(value) : value / param->scale;
}

static double unscale_value(const struct fit_param *param, double u)
{
    double value = param->scale == 0 ? exp(u) : u * param->scale;
    return fmin(fmax(value, param->low), param->high);
}

static double relative_error(const struct fit_search *search, const double *value, size_t point)
{
    const struct fit_problem *p = search->problem;
    double error = p->model(p->context, value, point) / p->measured_s[point] - 1;
    return isfinite(error) ? fmin(error, 1e6) : 1e6;
}

static size_t residual_count(const struct fit_search *search)
{
    return search->problem->point_count - (search->left_out_point < search->problem->point_count);
}

static void unscale_values(const struct fit_search *search, const gsl_vector *u, double *value)
{
    memcpy(value, search->value, sizeof search->value);
    for (size_t i = 0; i < search->free_count; i++)
        value[search->free_index[i]] =
            unscale_value(&search->problem->param[search->free_index[i]], gsl_vector_get(u, i));
}

static int compute_residuals(const gsl_vector *u, void *context, gsl_vector *f)
{
    const struct fit_search *search = context;
    double value[FIT_PARAMS_MAX];
    unscale_values(search, u, value);
    for (size_t point = 0, row = 0; point < search->problem->point_count; point++)
        if (point != search->left_out_point)
            gsl_vector_set(f, row++, relative_error(search, value, point));
    return GSL_SUCCESS;
}

/* Computes the Jacobian by central differences: the model is piecewise, and a one-sided step may miss a bend. At a
 * bound of a parameter the outward step is clamped to nothing, and the difference is one-sided. */
static int compute_jacobian(const gsl_vector *u, void *context, gsl_matrix *j)
{
    const struct fit_search *search = context;
    double low[FIT_PARAMS_MAX], high[FIT_PARAMS_MAX];
    for (size_t i = 0; i < search->free_count; i++) {
        size_t k = search->free_index[i];
        const struct fit_param *param = &search->problem->param[k];
        double at = gsl_vector_get(u, i), step = 1e-5 * fmax(1, fabs(at));
        unscale_values(search, u, low);
        unscale_values(search, u, high);
        low[k] = unscale_value(param, at - step);
        high[k] = unscale_value(param, at + step);
        double width = scaled_value(param, high[k]) - scaled_value(param, low[k]);
        for (size_t point = 0, row = 0; point < search->problem->point_count; point++)
            if (point != search->left_out_point)
                gsl_matrix_set(j, row++, i,
                               width > 0 ? (relative_error(search, high, point) -
                                            relative_error(search, low, point)) /
                                               width
                                         : 0);
    }
    return GSL_SUCCESS;
}

static void list_free_parameters(struct fit_search *search)
{
    search->free_count = 0;
    for (size_t i = 0; i < search->problem->param_count; i++)
        if (search->state[i] == FIT_FREE)
            search->free_index[search->free_count++] = i;
}

static gsl_vector *scaled_free_values(const struct fit_search *search)
{
    gsl_vector *u = gsl_vector_alloc(search->free_count);
    for (size_t i = 0; i < search->free_count; i++)
        gsl_vector_set(u, i,
                       scaled_value(&search->problem->param[search->free_index[i]],
                                    search->value[search->free_index[i]]));
    return u;
}

/* ---- one descent from a start ---- */

static void minimise_residuals(struct fit_search *search)
{
    size_t rows = residual_count(search);
    if (search->free_count == 0 || rows < search->free_count)
        return;
    gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf fdf = {.f = compute_residuals,
                                    .df = compute_jacobian,
                                    .n = rows,
                                    .p = search->free_count,
                                    .params = search};
    gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(
        gsl_multifit_nlinear_trust, &parameters, rows, search->free_count);
    gsl_vector *u = scaled_free_values(search);
    int info;
    gsl_multifit_nlinear_init(u, &fdf, w);
    gsl_multifit_nlinear_driver(ITERATIONS_MAX, 1e-10, 1e-10, 0, NULL, NULL, &info, w);
    double value[FIT_PARAMS_MAX];
    unscale_values(search, gsl_multifit_nlinear_position(w), value);
    memcpy(search->value, value, sizeof value);
    gsl_vector_free(u);
    gsl_multifit_nlinear_free(w);
}

/* Minimises the residuals. A parameter that reaches an end of its range is held there, and the others are minimised
 * again. */
static void minimise_residuals_within_bounds(struct fit_search *search)
{
    for (bool again = true; again;) {
        again = false;
        list_free_parameters(search);
        minimise_residuals(search);
        for (size_t i = 0; i < search->problem->param_count; i++) {
            const struct fit_param *param = &search->problem->param[i];
            double margin = param->scale == 0 ? 0 : 1e-9 * param->scale;
            bool low = search->value[i] <= param->low + margin;
            if (search->state[i] != FIT_FREE || (!low && search->value[i] < param->high))
                continue;
            search->value[i] = low ? param->low : param->high;
            search->state[i] = FIT_AT_BOUND;
            again = true;
        }
    }
    list_free_parameters(search);
}

/* ---- which parameters the points determine ---- */

/* Returns the Jacobian at the values of the search, with a column for each free parameter. */
static gsl_matrix *jacobian_matrix_of_search(const struct fit_search *search)
{
    gsl_matrix *j = gsl_matrix_calloc(residual_count(search), search->free_count);
    gsl_vector *u = scaled_free_values(search);
    compute_jacobian(u, (void *)search, j);
    gsl_vector_free(u);
    return j;
}

static double column_norm(const gsl_matrix *j, size_t i)
{
    gsl_vector_const_view column = gsl_matrix_const_column(j, i);
    return gsl_blas_dnrm2(&column.vector);
}

/* Sets has_no_effect[i] to true if no point depends on free parameter i, else to false. Returns the number of such
 * parameters. */
static size_t find_parameters_without_effect(const gsl_matrix *j, bool *has_no_effect)
{
    double largest = 0;
    size_t count = 0;
    for (size_t i = 0; i < j->size2; i++)
        largest = fmax(largest, column_norm(j, i));
    for (size_t i = 0; i < j->size2; i++) {
        has_no_effect[i] = !(column_norm(j, i) > COLUMN_TOLERANCE * largest);
        count += has_no_effect[i];
    }
    return count;
}

/* True if the points determine all free parameters; else sets mixed[] for those whose effects are not independent. */
static bool has_full_rank(const gsl_matrix *j, bool *mixed)
{
    size_t n = j->size1, p = j->size2;
    bool full = true;
    gsl_matrix *a = gsl_matrix_alloc(n, p), *v = gsl_matrix_alloc(p, p);
    gsl_vector *s = gsl_vector_alloc(p), *work = gsl_vector_alloc(p);
    gsl_matrix_memcpy(a, j);
    for (size_t i = 0; i < p; i++) {
        gsl_vector_view column = gsl_matrix_column(a, i);
        gsl_vector_scale(&column.vector, 1 / column_norm(j, i));
        mixed[i] = false;
    }
    gsl_linalg_SV_decomp(a, v, s, work);
    for (size_t k = 0; k < p; k++) {
        if (gsl_vector_get(s, k) > RANK_TOLERANCE * gsl_vector_get(s, 0))
            continue;
        full = false;
        for (size_t i = 0; i < p; i++)
            mixed[i] |= fabs(gsl_matrix_get(v, i, k)) > 0.2;
    }
    gsl_matrix_free(a);
    gsl_matrix_free(v);
    gsl_vector_free(s);
    gsl_vector_free(work);
    return full;
}

static void put_parameter_names(struct text *out, const struct fit_search *search,
                                const bool *chosen)
{
    const char *separator = "";
    for (size_t i = 0; i < search->free_count; i++)
        if (chosen[i]) {
            text_printf(out, "%s%s", separator, search->problem->param[search->free_index[i]].name);
            separator = ", ";
        }
}

static enum status report_fit_refused(const struct fit_search *search, struct loc at,
                                      struct diag *diag, const char *before, const bool *chosen,
                                      const char *after)
{
    struct text names = {0};
    put_parameter_names(&names, search, chosen);
    enum status status =
        diag_error(diag, at, STATUS_NO, "%s: %s%s%s: %s", search->problem->name, before,
                   names.data ? names.data : "", after, search->problem->help);
    text_release(&names);
    return status;
}

/* Holds the optional parameters on which no point depends. Refuses the fit if no point depends on a parameter that is
 * not optional. */
static enum status fix_parameters_without_effect(struct fit_search *search, struct loc at,
                                                 struct diag *diag)
{
    bool has_no_effect[FIT_PARAMS_MAX];
    list_free_parameters(search);
    gsl_matrix *j = jacobian_matrix_of_search(search);
    size_t count = find_parameters_without_effect(j, has_no_effect), required = 0;
    gsl_matrix_free(j);
    for (size_t i = 0; i < search->free_count; i++) {
        const size_t index = search->free_index[i];
        const struct fit_param *param = &search->problem->param[index];
        const bool optional = param->is_optional;
        if (has_no_effect[i] && optional) {
            search->state[index] = FIT_FIXED;
            search->value[index] = param->start; /* not what scale_rates_to_measured() made of it */
        }
        has_no_effect[i] = has_no_effect[i] && !optional;
        required += has_no_effect[i];
    }
    if (required > 0)
        return report_fit_refused(search, at, diag, "no point depends on ", has_no_effect, "");
    if (count > 0)
        list_free_parameters(search);
    return STATUS_OK;
}

static enum status check_points_tell_parameters_apart(const struct fit_search *search,
                                                      struct loc at, struct diag *diag)
{
    bool chosen[FIT_PARAMS_MAX];
    if (search->free_count == 0)
        return STATUS_OK;
    gsl_matrix *j = jacobian_matrix_of_search(search);
    enum status status = STATUS_OK;
    if (find_parameters_without_effect(j, chosen) > 0)
        status = report_fit_refused(search, at, diag, "no point depends on ", chosen, "");
    else if (!has_full_rank(j, chosen))
        status = report_fit_refused(search, at, diag, "the points cannot tell ", chosen, " apart");
    gsl_matrix_free(j);
    return status;
}

/* ---- errors of the fit, and the fit ---- */

static void set_rms_and_worst_error(struct fit *fit, const struct fit_search *search)
{
    double sum = 0;
    for (size_t point = 0; point < fit->point_count; point++) {
        double error = relative_error(search, search->value, point);
        sum += error * error;
        if (point == 0 || fabs(error) > fabs(fit->worst_error)) {
            fit->worst_error = error;
            fit->worst_point = point;
        }
    }
    fit->rms_error = sqrt(sum / (double)fit->point_count);
}

/* Sets the standard errors of the free parameters: from the covariance of the Jacobian and the variance of the
 * residuals. Sets none if there are as many parameters as points. */
static void set_standard_errors(struct fit *fit, const struct fit_search *search)
{
    if (search->free_count == 0 || fit->degrees_of_freedom == 0)
        return;
    gsl_matrix *j = jacobian_matrix_of_search(search);
    gsl_matrix *covariance = gsl_matrix_alloc(search->free_count, search->free_count);
    gsl_multifit_nlinear_covar(j, 0, covariance);
    double variance = fit->rms_error * fit->rms_error * (double)fit->point_count /
                      (double)fit->degrees_of_freedom;
    for (size_t i = 0; i < search->free_count; i++) {
        size_t k = search->free_index[i];
        double error = sqrt(variance * gsl_matrix_get(covariance, i, i));
        double scale = search->problem->param[k].scale;
        fit->standard_error[k] = error * (scale == 0 ? search->value[k] : scale);
    }
    gsl_matrix_free(covariance);
    gsl_matrix_free(j);
}

/* Sets leverage[i], from 0 to 1, for each point i: if the measured time of point i changes, the fit's prediction of
 * point i changes by leverage[i] times that change. All leverages add up to the number of free parameters. A point with
 * leverage 1 determines one of the parameters by itself. Returns false if there are no free parameters. */
static bool compute_leverages(double *leverage, const struct fit_search *all, size_t points)
{
    if (all->free_count == 0)
        return false;
    gsl_matrix *j = jacobian_matrix_of_search(all);
    gsl_matrix *covariance = gsl_matrix_alloc(all->free_count, all->free_count);
    gsl_multifit_nlinear_covar(j, 0, covariance);
    for (size_t point = 0; point < points; point++) {
        leverage[point] = 0;
        for (size_t a = 0; a < all->free_count; a++)
            for (size_t b = 0; b < all->free_count; b++)
                leverage[point] += gsl_matrix_get(j, point, a) * gsl_matrix_get(covariance, a, b) *
                                   gsl_matrix_get(j, point, b);
    }
    gsl_matrix_free(covariance);
    gsl_matrix_free(j);
    return true;
}

static void leave_one_out(struct fit *fit, const struct fit_search *all)
{
    double sum = 0, *leverage = heap_alloc(fit->point_count + 1, sizeof *leverage);
    bool known = compute_leverages(leverage, all, fit->point_count);
    for (size_t point = 0; point < fit->point_count && fit->point_count > all->free_count;
         point++) {
        if (known && leverage[point] > LEVERAGE_MAX)
            continue;
        struct fit_search search = *all;
        search.left_out_point = point;
        minimise_residuals_within_bounds(&search);
        double error = relative_error(&search, search.value, point);
        sum += error * error;
        fit->points_left_out_one_by_one++;
    }
    free(leverage);
    fit->leave_one_out_error = fit->points_left_out_one_by_one > 0
                                   ? sqrt(sum / (double)fit->points_left_out_one_by_one)
                                   : 0;
}

/* Multiplies all rates and shares (parameters with scale 0) by one common factor: the one from 1e-4 to 1e4, in steps of
 * a tenth of a decade, with which the predictions are nearest to the measured times. Without this, a start whose rates
 * are far too high would predict times near 0: every relative error is then about -1, and no small step improves it. */
static void scale_rates_to_measured(struct fit_search *search)
{
    const struct fit_problem *p = search->problem;
    double best = INFINITY, start[FIT_PARAMS_MAX], value[FIT_PARAMS_MAX];
    memcpy(start, search->value, sizeof start);
    for (int tenth = -40; tenth <= 40; tenth++) {
        double sum = 0;
        memcpy(value, start, sizeof value);
        for (size_t i = 0; i < p->param_count; i++)
            if (p->param[i].scale == 0)
                value[i] =
                    fmin(fmax(start[i] * pow(10, tenth / 10.0), p->param[i].low), p->param[i].high);
        for (size_t point = 0; point < p->point_count; point++)
            sum += fabs(log(p->model(p->context, value, point) / p->measured_s[point]));
        if (sum < best) {
            best = sum;
            memcpy(search->value, value, sizeof value);
        }
    }
}

/* Fits the problem. Whether points depend on an optional parameter may change with the values, so it is decided anew
 * before each fit. The fit is repeated until these decisions no longer change, at most four times in all. */
static enum status refit_until_optional_params_settle(struct fit_search *search, struct loc at,
                                                      struct diag *diag)
{
    for (int pass = 0; pass < 4; pass++) {
        enum fit_state before[FIT_PARAMS_MAX];
        memcpy(before, search->state, sizeof before);
        for (size_t i = 0; i < search->problem->param_count; i++)
            if (search->state[i] == FIT_FIXED)
                search->state[i] = FIT_FREE;
        enum status status = fix_parameters_without_effect(search, at, diag);
        if (status != STATUS_OK)
            return status;
        if (pass > 0 && memcmp(before, search->state, sizeof before) == 0)
            break;
        if (search->problem->point_count < search->free_count)
            return diag_error(diag, at, STATUS_NO,
                              "%s: %zu points are too few to fit %zu parameters: %s",
                              search->problem->name, search->problem->point_count,
                              search->free_count, search->problem->help);
        minimise_residuals_within_bounds(search);
    }
    return check_points_tell_parameters_apart(search, at, diag);
}

/* Ends the program if GSL has no memory; all its other errors are return codes. */
static void exit_without_memory(const char *reason, const char *file, int line, int error)
{
    (void)reason;
    (void)file;
    (void)line;
    if (error == GSL_ENOMEM)
        heap_out_of_memory();
}

enum status fit_run(struct fit *fit, const struct fit_problem *problem, struct loc at,
                    struct diag *diag)
{
    assert(problem->param_count <= FIT_PARAMS_MAX && problem->point_count > 0);
    gsl_error_handler_t *handler = gsl_set_error_handler(exit_without_memory);
    *fit = (struct fit){.point_count = problem->point_count};
    struct fit_search search = {.problem = problem, .left_out_point = problem->point_count};
    for (size_t i = 0; i < problem->param_count; i++)
        search.value[i] = problem->param[i].start;
    scale_rates_to_measured(&search);
    enum status status = refit_until_optional_params_settle(&search, at, diag);
    if (status != STATUS_OK)
        goto out;
    memcpy(fit->value, search.value, sizeof fit->value);
    memcpy(fit->state, search.state, sizeof fit->state);
    fit->degrees_of_freedom = problem->point_count - search.free_count;
    set_rms_and_worst_error(fit, &search);
    set_standard_errors(fit, &search);
    fit->is_refused_as_scattered = fit->rms_error > problem->rms_error_limit;
    if (fit->is_refused_as_scattered) {
        status = diag_error(diag, at, STATUS_NO,
                            "%s: the fit lies %.1f %% from its %zu points (root mean square; at "
                            "most %.0f %% is accepted), %+.0f %% from the worst: %s",
                            problem->name, 100 * fit->rms_error, fit->point_count,
                            100 * problem->rms_error_limit, 100 * fit->worst_error,
                            problem->scatter_refusal_advice ? problem->scatter_refusal_advice
                                                            : problem->help);
        goto out;
    }
    if (!problem->needs_only_rms_error)
        leave_one_out(fit, &search);
out:
    gsl_set_error_handler(handler);
    return status;
}
