/* models/calibrate_fit.c: one fit of models/calibrate.h: its parameters, its points, and what is recorded about it. */
#include "models/calibrate_parts.h"
#include "models/noise.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest size and residual that the reader of device files accepts (models/cost_reader.c). */
static const double SIZE_MOST = 1e18, RESIDUAL_MOST = 10;

double calibrate_measured_time_s(const struct calibrate_options *options, const struct point *point)
{
    return options->fits_p10_times ? point->p10_s : point->median_s;
}

/* ---- parameters ---- */

const struct cost_param *calibrate_find_param(struct calibration *c, const char *name,
                                              double **slot)
{
    struct arena *arena = &c->arena;
    for (size_t i = 0; i < cost_param_count; i++) {
        const struct cost_param *param = &cost_params[i];
        *slot = (double *)((char *)&c->cost + param->offset);
        if (strcmp(arena_printf(arena, "%s.%s", param->family, param->field), name) == 0)
            return param;
    }
    for (int k = 0; k < ATTENTION_IMPL_COUNT * ATTENTION_PASS_COUNT * COST_PASS_PARAMS; k++) {
        const struct cost_param *param = &cost_pass_params[k % COST_PASS_PARAMS];
        int pass = k / COST_PASS_PARAMS % ATTENTION_PASS_COUNT;
        int impl = k / COST_PASS_PARAMS / ATTENTION_PASS_COUNT;
        *slot = (double *)((char *)&c->cost.attention[impl][pass] + param->offset);
        if (strcmp(arena_printf(arena, "attention.%s.%s.%s",
                                attention_impl_name((enum attention_impl)impl),
                                cost_pass_names[pass], param->field),
                   name) == 0)
            return param;
    }
    return NULL;
}

void calibrate_add_param(struct calibrate_problem *problem, const char *name, double *slot,
                         enum unit_kind unit, double low, double high, double scale, bool optional)
{
    assert(problem->param_count < FIT_PARAMS_MAX);
    size_t i = problem->param_count++;
    problem->param[i] = (struct fit_param){name, *slot, low, high, scale, optional};
    problem->number_set_by_param[i] = slot;
    problem->unit[i] = unit;
}

void calibrate_add_cost_param(struct calibrate_problem *problem, const char *name, double scale,
                              bool optional)
{
    double *slot;
    const struct cost_param *param = calibrate_find_param(problem->calibration, name, &slot);
    assert(param != NULL);
    calibrate_add_param(problem, name, slot, param->unit, param->low, param->high, scale, optional);
}

void calibrate_record_derived(struct calibration *c, const char *name, double *slot,
                              enum unit_kind unit, double value, enum calibrate_origin origin,
                              const char *how)
{
    *slot = value;
    for (size_t i = 0; i < c->number_count; i++)
        if (strcmp(c->number[i].name, name) == 0) {
            c->number[i].value = value;
            c->number[i].source_text = arena_text(&c->arena, how, strlen(how));
            return;
        }
    assert(c->number_count < CALIBRATE_NUMBERS_MAX);
    c->number[c->number_count++] =
        (struct calibrate_number){.name = arena_text(&c->arena, name, strlen(name)),
                                  .unit = unit,
                                  .value = value,
                                  .origin = origin,
                                  .family_index = -1,
                                  .source_text = arena_text(&c->arena, how, strlen(how))};
}

/* ---- a fit of one family, and why it is refused ---- */

const char calibrate_disturbed[] = "other programs disturbed these points";

static void set_parameters(struct calibrate_problem *problem, const double *value)
{
    for (size_t i = 0; i < problem->param_count; i++)
        *problem->number_set_by_param[i] = value[i];
}

static double predict_point_s(void *context, const double *value, size_t point)
{
    struct calibrate_problem *problem = context;
    set_parameters(problem, value);
    return problem->predict(problem, problem->point[point]);
}

/* Returns the name, without its folder, of the file that a point comes from; "points" if the point has none. */
static const char *file_name_of_point(const struct point *point)
{
    const char *name = point->at.name ? point->at.name : "points";
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Returns the names of the files that a family's points come from, with the date that their headers give: "cpu.csv
 * (2025-01-02), more.csv". */
static const char *source_files_text(const struct calibrate_problem *problem)
{
    const struct points *points = problem->all_points;
    struct text out = {0};
    for (size_t i = 0; i < problem->point_count; i++) {
        const struct point *point = problem->point[i];
        bool known = false;
        for (size_t k = 0; k < i && !known; k++)
            known = strcmp(file_name_of_point(problem->point[k]), file_name_of_point(point)) == 0;
        if (known)
            continue;
        text_printf(&out, "%s%s", out.size > 0 ? ", " : "", file_name_of_point(point));
        for (size_t k = 0; k < points->header_count; k++)
            if (strcmp(points->header_line[k].key, "date") == 0 && points->header_line[k].at.name &&
                point->at.name && strcmp(points->header_line[k].at.name, point->at.name) == 0)
                text_printf(&out, " (%s)", points->header_line[k].value);
    }
    const char *kept = arena_text(&problem->calibration->arena, out.data, out.size);
    text_release(&out);
    return kept;
}

static const char *describe_point(struct calibration *c, const struct point *point)
{
    struct text out = {0};
    text_printf(&out, "%s ", work_kind_info((enum work_kind)point->work.kind)->name);
    points_print_params(&point->work, &out);
    const char *kept = arena_text(&c->arena, out.data, out.size);
    text_release(&out);
    return kept;
}

static void find_size_ranges(const struct calibrate_problem *problem,
                             struct cost_calibrated_range *result)
{
    for (size_t i = 0; i < problem->point_count; i++) {
        const struct point *point = problem->point[i];
        double sizes[COST_SIZE_COUNT] = {0};
        cost_get_sizes_of_work(&problem->calibration->cost,
                               (enum attention_impl)(point->attention_impl < POINT_NO_IMPL
                                                         ? point->attention_impl
                                                         : 0),
                               &point->work, sizes);
        for (int k = 0; k < COST_SIZE_COUNT; k++) {
            if (sizes[k] == 0)
                continue;
            double size = fmin(sizes[k], SIZE_MOST);
            result->smallest_size[k] =
                result->largest_size[k] == 0 ? size : fmin(result->smallest_size[k], size);
            result->largest_size[k] = fmax(result->largest_size[k], size);
        }
    }
}

static void add_fit_to_calibration(struct calibrate_problem *problem, const struct fit *fit,
                                   const char *from)
{
    struct calibration *c = problem->calibration;
    assert(c->family_count < CALIBRATE_FAMILIES_MAX);
    struct calibrate_family *family = &c->family[c->family_count];
    const struct point *worst = problem->point[fit->worst_point];
    *family =
        (struct calibrate_family){.name = problem->name,
                                  .point_count = fit->point_count,
                                  .parameter_count = fit->point_count - fit->degrees_of_freedom,
                                  .rms_error = fit->rms_error,
                                  .worst_error = fit->worst_error,
                                  .leave_one_out_error = fit->leave_one_out_error,
                                  .points_left_out_one_by_one = fit->points_left_out_one_by_one,
                                  .worst_point_loc = worst->at,
                                  .worst_point_text = describe_point(c, worst)};
    family->calibration = (struct cost_calibrated_range){
        .is_calibrated = true,
        .rms_relative_error = fmin(fit->rms_error, RESIDUAL_MOST),
        .source = arena_printf(
            &c->arena,
            "%zu points of %s%s: root mean square %.1f %%, worst %+.1f %%, leave-one-out "
            "%.1f %%",
            fit->point_count, from, problem->options->fits_p10_times ? " (p10)" : "",
            100 * fit->rms_error, 100 * fit->worst_error, 100 * fit->leave_one_out_error)};
    find_size_ranges(problem, &family->calibration);
    for (size_t i = 0; i < problem->param_count; i++) {
        const char *name = problem->param[i].name;
        if (fit->state[i] == FIT_FIXED) {
            text_printf(&c->notes, "%s: no point depends on it; it stays as the base has it\n",
                        name);
            continue;
        }
        assert(c->number_count < CALIBRATE_NUMBERS_MAX);
        struct calibrate_number *number = &c->number[c->number_count++];
        *number = (struct calibrate_number){.name = name,
                                            .unit = problem->unit[i],
                                            .value = fit->value[i],
                                            .standard_error = fit->standard_error[i],
                                            .is_best_value_at_bound = fit->state[i] == FIT_AT_BOUND,
                                            .origin = CALIBRATE_FITTED,
                                            .family_index = (int)c->family_count};
        if (fit->state[i] == FIT_AT_BOUND)
            number->source_text = arena_printf(&c->arena,
                                               "fitted to %zu points of %s: the best lies at this "
                                               "end of what is possible",
                                               fit->point_count, from);
        else if (fit->standard_error[i] == 0)
            number->source_text =
                arena_printf(&c->arena, "measured: %zu point%s of %s", fit->point_count,
                             fit->point_count == 1 ? "" : "s", from);
        else
            number->source_text =
                arena_printf(&c->arena, "fitted to %zu points of %s, +- %.2g %%", fit->point_count,
                             from, 100 * fit->standard_error[i] / fmax(fit->value[i], 1e-300));
    }
    c->family_count++;
}

enum status calibrate_fit(struct calibrate_problem *problem,
                          struct cost_calibrated_range *calibration, struct diag *diag)
{
    struct fit fit;
    double *measured_s = heap_alloc(problem->point_count, sizeof *measured_s);
    double start[FIT_PARAMS_MAX];
    for (size_t i = 0; i < problem->point_count; i++)
        measured_s[i] = calibrate_measured_time_s(problem->options, problem->point[i]);
    for (size_t i = 0; i < problem->param_count; i++)
        start[i] = problem->param[i].start =
            fmin(fmax(problem->param[i].start, problem->param[i].low), problem->param[i].high);
    bool disturbed =
        noise_shows_disturbance(problem->calibration->median_p90_over_p10_of_points,
                                noise_median_p90_over_p10(problem->point, problem->point_count));
    const struct fit_problem least = {
        .name = problem->name,
        .help = problem->help,
        .scatter_refusal_advice = disturbed ? calibrate_disturbed : NULL,
        .param = problem->param,
        .param_count = problem->param_count,
        .point_count = problem->point_count,
        .measured_s = measured_s,
        .model = predict_point_s,
        .context = problem,
        .rms_error_limit = problem->rms_error_limit,
        .needs_only_rms_error = problem->needs_only_rms_error,
    };
    enum status status =
        fit_run(&fit, &least, (struct loc){.name = problem->point[0]->at.name}, diag);
    problem->was_refused_as_disturbed = disturbed && fit.is_refused_as_scattered;
    set_parameters(problem, status == STATUS_OK ? fit.value : start);
    if (status == STATUS_OK) {
        add_fit_to_calibration(problem, &fit, source_files_text(problem));
        if (calibration)
            *calibration =
                problem->calibration->family[problem->calibration->family_count - 1].calibration;
    }
    free(measured_s);
    return status;
}
