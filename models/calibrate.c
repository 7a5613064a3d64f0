#include "models/calibrate.h"

#include "models/calibrate_parts.h"
#include "models/noise.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LIMIT = 0.25;
/* The largest size and residual that a device file takes (models/cost_reader.c). */
static const double SIZE_MOST = 1e18, RESIDUAL_MOST = 10;

void calibration_release(struct calibration *calibration)
{
    text_release(&calibration->notes);
    arena_release(&calibration->arena);
    *calibration = (struct calibration){0};
}

double calibrate_time(const struct calibrate_options *options, const struct point *point)
{
    return options->fastest ? point->p10_s : point->median_s;
}

/* ---- parameters ---- */

void calibrate_add_param(struct calibrate_problem *problem, const char *name, double *slot,
                         enum unit_kind unit, double low, double high, double scale, bool optional)
{
    assert(problem->params < FIT_PARAMS_MAX);
    size_t i = problem->params++;
    problem->param[i] = (struct fit_param){name, *slot, low, high, scale, optional};
    problem->slot[i] = slot;
    problem->unit[i] = unit;
}

void calibrate_add_cost_param(struct calibrate_problem *problem, const double *slot, double scale,
                              bool optional)
{
    char *cost = (char *)&problem->c->cost;
    for (size_t i = 0; i < cost_param_count; i++) {
        const struct cost_param *param = &cost_params[i];
        if (cost + param->offset != (const char *)slot)
            continue;
        calibrate_add_param(problem,
                            arena_printf(&problem->c->arena, "%s.%s", param->family, param->field),
                            (double *)(cost + param->offset), param->unit, param->low, param->high,
                            scale, optional);
        return;
    }
    assert(!"a number of models/cost_params.def");
}

void calibrate_derive(struct calibration *c, const char *name, double *slot, enum unit_kind unit,
                      double value, enum calibrate_origin origin, const char *how)
{
    *slot = value;
    for (size_t i = 0; i < c->numbers; i++)
        if (strcmp(c->number[i].name, name) == 0) {
            c->number[i].value = value;
            c->number[i].how = arena_text(&c->arena, how, strlen(how));
            return;
        }
    assert(c->numbers < CALIBRATE_NUMBERS_MAX);
    c->number[c->numbers++] =
        (struct calibrate_number){.name = arena_text(&c->arena, name, strlen(name)),
                                  .unit = unit,
                                  .value = value,
                                  .origin = origin,
                                  .family = -1,
                                  .how = arena_text(&c->arena, how, strlen(how))};
}

/* ---- one fit ---- */

const char calibrate_disturbed[] = "other programs disturbed these points";

static void set_values(struct calibrate_problem *problem, const double *value)
{
    for (size_t i = 0; i < problem->params; i++)
        *problem->slot[i] = value[i];
}

static double predict(void *context, const double *value, size_t point)
{
    struct calibrate_problem *problem = context;
    set_values(problem, value);
    return problem->predict(problem, problem->point[point]);
}

/* Returns the last part of a point's path, which sources name. */
static const char *file_of(const struct point *point)
{
    const char *name = point->at.name ? point->at.name : "points";
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Returns the files of a family's points, with dates: "cpu.csv (2025-01-02), more.csv". */
static const char *sources(const struct calibrate_problem *problem)
{
    const struct points *points = problem->all;
    struct text out = {0};
    for (size_t i = 0; i < problem->points; i++) {
        const struct point *point = problem->point[i];
        bool known = false;
        for (size_t k = 0; k < i && !known; k++)
            known = strcmp(file_of(problem->point[k]), file_of(point)) == 0;
        if (known)
            continue;
        text_printf(&out, "%s%s", out.size > 0 ? ", " : "", file_of(point));
        for (size_t k = 0; k < points->header_count; k++)
            if (strcmp(points->header[k].key, "date") == 0 && points->header[k].at.name &&
                point->at.name && strcmp(points->header[k].at.name, point->at.name) == 0)
                text_printf(&out, " (%s)", points->header[k].value);
    }
    const char *kept = arena_text(&problem->c->arena, out.data, out.size);
    text_release(&out);
    return kept;
}

static const char *describe(struct calibration *c, const struct point *point)
{
    struct text out = {0};
    text_printf(&out, "%s ", work_kind_info((enum work_kind)point->work.kind)->name);
    points_print_params(&point->work, &out);
    const char *kept = arena_text(&c->arena, out.data, out.size);
    text_release(&out);
    return kept;
}

static void find_sizes(const struct calibrate_problem *problem, struct cost_calibration *result)
{
    for (size_t i = 0; i < problem->points; i++) {
        const struct point *point = problem->point[i];
        double sizes[COST_SIZE_COUNT] = {0};
        cost_sizes(&problem->c->cost,
                   (enum attention_impl)(point->impl < POINT_NO_IMPL ? point->impl : 0),
                   &point->work, sizes);
        for (int k = 0; k < COST_SIZE_COUNT; k++) {
            if (sizes[k] == 0)
                continue;
            double size = fmin(sizes[k], SIZE_MOST);
            result->low[k] = result->high[k] == 0 ? size : fmin(result->low[k], size);
            result->high[k] = fmax(result->high[k], size);
        }
    }
}

static void record(struct calibrate_problem *problem, const struct fit *fit, const char *from)
{
    struct calibration *c = problem->c;
    assert(c->families < CALIBRATE_FAMILIES_MAX);
    struct calibrate_family *family = &c->family[c->families];
    const struct point *worst = problem->point[fit->worst_point];
    *family = (struct calibrate_family){.name = problem->name,
                                        .points = fit->points,
                                        .parameters = fit->points - fit->freedom,
                                        .rms = fit->rms,
                                        .worst = fit->worst,
                                        .leave_one_out = fit->leave_one_out,
                                        .left_out = fit->left_out,
                                        .worst_at = worst->at,
                                        .worst_what = describe(c, worst)};
    family->calibration = (struct cost_calibration){
        .known = true,
        .residual = fmin(fit->rms, RESIDUAL_MOST),
        .source = arena_printf(
            &c->arena,
            "%zu points of %s%s: root mean square %.1f %%, worst %+.1f %%, leave-one-out "
            "%.1f %%",
            fit->points, from, problem->options->fastest ? " (p10)" : "", 100 * fit->rms,
            100 * fit->worst, 100 * fit->leave_one_out)};
    find_sizes(problem, &family->calibration);
    for (size_t i = 0; i < problem->params; i++) {
        const char *name = problem->param[i].name;
        if (fit->state[i] == FIT_HELD) {
            text_printf(&c->notes, "%s: no point depends on it; it stays as the base has it\n",
                        name);
            continue;
        }
        assert(c->numbers < CALIBRATE_NUMBERS_MAX);
        struct calibrate_number *number = &c->number[c->numbers++];
        *number = (struct calibrate_number){.name = name,
                                            .unit = problem->unit[i],
                                            .value = fit->value[i],
                                            .error = fit->error[i],
                                            .at_bound = fit->state[i] == FIT_AT_BOUND,
                                            .origin = CALIBRATE_FITTED,
                                            .family = (int)c->families};
        if (fit->state[i] == FIT_AT_BOUND)
            number->how = arena_printf(&c->arena,
                                       "fitted to %zu points of %s: the best lies at this "
                                       "end of what is possible",
                                       fit->points, from);
        else if (fit->error[i] == 0)
            number->how = arena_printf(&c->arena, "measured: %zu point%s of %s", fit->points,
                                       fit->points == 1 ? "" : "s", from);
        else
            number->how =
                arena_printf(&c->arena, "fitted to %zu points of %s, +- %.2g %%", fit->points, from,
                             100 * fit->error[i] / fmax(fit->value[i], 1e-300));
    }
    c->families++;
}

enum status calibrate_fit(struct calibrate_problem *problem, struct cost_calibration *calibration,
                          struct diag *diag)
{
    struct fit fit;
    double *measured_s = heap_alloc(problem->points, sizeof *measured_s);
    double start[FIT_PARAMS_MAX];
    for (size_t i = 0; i < problem->points; i++)
        measured_s[i] = calibrate_time(problem->options, problem->point[i]);
    for (size_t i = 0; i < problem->params; i++)
        start[i] = problem->param[i].start =
            fmin(fmax(problem->param[i].start, problem->param[i].low), problem->param[i].high);
    bool disturbed =
        noise_disturbs(problem->c->spread, noise_spread(problem->point, problem->points));
    const struct fit_problem least = {
        .what = problem->name,
        .help = problem->help,
        .scatter_help = disturbed ? calibrate_disturbed : NULL,
        .param = problem->param,
        .params = problem->params,
        .points = problem->points,
        .measured_s = measured_s,
        .model = predict,
        .context = problem,
        .limit = problem->limit,
        .trial = problem->trial,
    };
    enum status status =
        fit_run(&fit, &least, (struct loc){.name = problem->point[0]->at.name}, diag);
    problem->refused_as_disturbed = disturbed && fit.scattered;
    set_values(problem, status == STATUS_OK ? fit.value : start);
    if (status == STATUS_OK) {
        record(problem, &fit, sources(problem));
        if (calibration)
            *calibration = problem->c->family[problem->c->families - 1].calibration;
    }
    free(measured_s);
    return status;
}

/* ---- the whole device ---- */

/* Returns the row of a number that describes the device or a kernel, and sets *slot to its place in the cost; NULL:
 * there is no such number. */
static const struct cost_param *find_param(struct calibration *c, const char *name, double **slot)
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

/* Reads the numbers that the header states: the key is the number's name, "device.sm_count". */
static enum status read_stated(struct calibration *c, const struct points *points,
                               struct diag *diag)
{
    for (size_t i = 0; i < points->header_count; i++) {
        const struct point_key *key = &points->header[i];
        const struct cost_fact *fact = NULL;
        for (size_t k = 0; k < c->cost.facts.count && !fact; k++)
            if (strcmp(c->cost.facts.row[k].name, key->key) == 0)
                fact = &c->cost.facts.row[k];
        double *slot, value;
        const struct cost_param *param = fact ? find_param(c, key->key, &slot) : NULL;
        if (!param)
            continue;
        enum status status =
            units_parse(key->value, strlen(key->value), fact->unit, &value, key->at, diag);
        if (status != STATUS_OK)
            return status;
        if (!(value > 0 && value >= param->low && value <= param->high))
            return diag_error(diag, key->at, STATUS_BAD_INPUT,
                              "%s=%s: expected a number from %g to %g%s%s", key->key, key->value,
                              param->low, param->high, param->low > 0 ? "" : ", but not 0",
                              param->unit == UNIT_NONE ? "" : " (in SI units)");
        calibrate_derive(c, key->key, slot, fact->unit, value, CALIBRATE_STATED,
                         "stated by the header of the points");
    }
    return STATUS_OK;
}

/* Raises the peak to the fitted rate where that is above the base's data sheet: the points are of another device. */
static void raise_peak(struct calibration *c)
{
    double reached = fmax(c->cost.matmul_flop_per_s, c->cost.matmul_f32_flop_per_s);
    bool fitted = false;
    for (size_t i = 0; i < c->numbers; i++)
        fitted |= strncmp(c->number[i].name, "matmul.", 7) == 0;
    if (fitted && reached > c->cost.device_peak_flop_per_s)
        calibrate_derive(c, "device.peak_flop_per_s", &c->cost.device_peak_flop_per_s,
                         UNIT_FLOP_PER_S, reached, CALIBRATE_DERIVED,
                         "the rate of large products, which is above the base's peak; put the data "
                         "sheet's number here");
}

static enum status check_points(const struct points *points, struct diag *diag)
{
    const char *device = NULL;
    for (size_t i = 0; i < points->header_count; i++) {
        const struct point_key *key = &points->header[i];
        if (strcmp(key->key, "device") != 0)
            continue;
        if (device && strcmp(device, key->value) != 0)
            return diag_error(diag, key->at, STATUS_BAD_INPUT,
                              "these points are of device '%s', others of '%s'; a device file "
                              "describes one device",
                              key->value, device);
        device = key->value;
    }
    return STATUS_OK;
}

/* The state of a calibration to which it returns when a fit is refused. */
struct mark {
    struct device_cost cost;
    size_t families, numbers, notes;
};

static struct mark mark_of(const struct calibration *c)
{
    return (struct mark){c->cost, c->families, c->numbers, c->notes.size};
}

static void return_to(struct calibration *c, const struct mark *mark)
{
    c->cost = mark->cost;
    c->families = mark->families;
    c->numbers = mark->numbers;
    c->notes.size = mark->notes;
    if (c->notes.data != NULL)
        c->notes.data[mark->notes] = '\0';
}

static void note_fallback(struct calibration *c, const char *name, bool to_base, bool disturbed)
{
    assert(c->fallbacks < CALIBRATE_FAMILIES_MAX);
    c->fallback[c->fallbacks++] = (struct calibrate_fallback){name, to_base, disturbed};
}

/* Fits a family whose points other programs may have disturbed. If the points lie too far from the fit, it fits their
 * fastest times; if these lie too far as well, the numbers stay as the base has them. In both cases STATUS_OK is
 * returned. Refusals for other reasons are returned, but no message is added. */
static enum status fit_despite_noise(const struct calibrate_problem *family,
                                     calibrate_family_function *function)
{
    struct calibration *c = family->c;
    struct calibrate_options fastest = *family->options;
    struct mark before = mark_of(c);
    struct calibrate_problem problem = *family;
    struct diag quiet = {0};
    fastest.fastest = true;
    enum status status = function(&problem, &quiet);
    if (status == STATUS_NO && problem.refused_as_disturbed) {
        return_to(c, &before);
        problem = *family;
        problem.options = &fastest;
        diag_clear(&quiet);
        status = function(&problem, &quiet);
        if (status == STATUS_NO)
            return_to(c, &before);
        if (status == STATUS_OK || status == STATUS_NO) {
            note_fallback(c, problem.name, status == STATUS_NO, true);
            status = STATUS_OK;
        }
    }
    diag_release(&quiet);
    if (status != STATUS_OK)
        return_to(c, &before);
    return status;
}

/* Fits a family whose points have few sizes; if that is refused, only rates and shares. Refusals are not reported. */
static enum status fit_few_sizes(const struct calibrate_problem *family,
                                 calibrate_family_function *function)
{
    struct calibration *c = family->c;
    struct mark before = mark_of(c);
    struct calibrate_problem problem = *family;
    struct diag quiet = {0};
    enum status status = function(&problem, &quiet);
    if (status == STATUS_NO) {
        return_to(c, &before);
        problem = *family;
        problem.rates = true;
        status = function(&problem, &quiet);
        if (status == STATUS_OK)
            text_printf(&c->notes,
                        "%s: the sizes of the recorded steps tell no more than rates; starts and "
                        "ramps stay as the base has them\n",
                        problem.name);
    }
    diag_release(&quiet);
    if (status != STATUS_OK)
        return_to(c, &before);
    return status;
}

/* Fits a family as the options say. A refused fit leaves the family's numbers as they were. */
static enum status fit_family(const struct calibrate_problem *family,
                              calibrate_family_function *function, struct diag *diag)
{
    struct calibration *c = family->c;
    struct mark before = mark_of(c);
    struct calibrate_problem problem = *family;
    if (family->options->few_sizes && fit_few_sizes(family, function) == STATUS_OK)
        return STATUS_OK;
    if (family->options->despite_noise && fit_despite_noise(family, function) == STATUS_OK)
        return STATUS_OK;
    enum status status = function(&problem, diag);
    if (status == STATUS_NO) {
        return_to(c, &before);
        note_fallback(c, problem.name, true, false);
    }
    return status;
}

/* True if a family, or one whose name begins with this name, was fitted or refused. */
static bool has_points(const struct calibration *c, const char *name)
{
    size_t size = strlen(name);
    bool found = false;
    for (size_t i = 0; i < c->families; i++)
        found |= strncmp(c->family[i].name, name, size) == 0;
    for (size_t i = 0; i < c->fallbacks; i++)
        found |= strncmp(c->fallback[i].name, name, size) == 0;
    return found;
}

/* Lists the families that have no points. Attention without any points is listed as a whole. If only one
 * direction of an implementation has points, the other one is listed; implementations without points are not. */
static void find_unmeasured(struct calibration *c)
{
    static const char *const names[] = {
        "device.kernel_start_s", "memory", "matmul", "attention", "host", "cpu"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!has_points(c, names[i]))
            c->unmeasured[c->unmeasureds++] = names[i];
    for (int k = 0; k < ATTENTION_IMPL_COUNT * ATTENTION_PASS_COUNT; k++) {
        const char *impl =
            arena_printf(&c->arena, "attention.%s.",
                         attention_impl_name((enum attention_impl)(k / ATTENTION_PASS_COUNT)));
        const char *name =
            arena_printf(&c->arena, "%s%s", impl, cost_pass_names[k % ATTENTION_PASS_COUNT]);
        if (has_points(c, impl) && !has_points(c, name))
            c->unmeasured[c->unmeasureds++] = name;
    }
}

/* Sets how long memory-bound kernels run in recorded steps for each second of products and attention at the highest
 * clock (cost_power_share()). Recorded seconds of these are at the clock of the step: with q of memory for each of them
 * m = q / share, which turns P share^2 - (power - M) m share = power into P share^2 = power + (power - M) q. */
static void set_memory_share(struct device_cost *cost, const struct points *points)
{
    double tensor_s = 0, memory_s = 0, limit = cost->device_power;
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->row[i];
        bool tensor = point->work.kind == WORK_MATMUL || point->work.kind == WORK_ATTENTION ||
                      point->work.kind == WORK_ATTENTION_BACKWARD;
        if (point->role == POINT_STEP)
            *(tensor ? &tensor_s : &memory_s) += point->median_s * (double)point->repeats;
    }
    bool limited = limit > 0 && cost->device_memory_power > 0 && cost->device_memory_power < limit;
    if (!limited || tensor_s <= 0)
        return;
    double q = memory_s / tensor_s, left = limit + (limit - cost->device_memory_power) * q;
    cost->memory_share = q * sqrt(fmax(1, cost->device_tensor_power / left));
}

enum status calibrate_device(struct calibration *c, const struct points *points,
                             const struct device_cost *base,
                             const struct calibrate_options *options, struct diag *diag)
{
    static const struct {
        calibrate_family_function *fit;
        int impls, passes;
    } families[] = {
        {calibrate_start, 1, 1},  {calibrate_memory, 1, 1},
        {calibrate_matmul, 1, 1}, {calibrate_attention, ATTENTION_IMPL_COUNT, ATTENTION_PASS_COUNT},
        {calibrate_host, 1, 1},   {calibrate_cpu, 1, 1},
    };
    *c = (struct calibration){.cost = *base, .spread = noise_spread_of_all(points)};
    c->cost.points = (struct cost_points){0}; /* the formula is fitted, without its correction by
                                                 measured points */
    enum status status = check_points(points, diag);
    if (status == STATUS_OK && base->ideal)
        status = diag_error(diag, (struct loc){.name = base->name}, STATUS_BAD_INPUT,
                            "an ideal device has nothing to calibrate");
    if (status == STATUS_OK)
        status = read_stated(c, points, diag);
    if (status != STATUS_OK)
        return status;
    set_memory_share(&c->cost, points);
    const struct point **point = heap_alloc(points->count + 1, sizeof(const struct point *));
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        for (int k = 0; k < families[i].impls * families[i].passes; k++) {
            const struct calibrate_problem problem = {
                .c = c,
                .options = options,
                .all = points,
                .point = point,
                .limit = options->limit > 0 ? options->limit : LIMIT,
                .impl = k / families[i].passes,
                .pass = k % families[i].passes,
            };
            enum status one = fit_family(&problem, families[i].fit, diag);
            if (status == STATUS_OK || (status == STATUS_NO && one != STATUS_OK))
                status = one; /* bad input is a worse fault than a refused fit */
        }
    free((void *)point);
    if (status == STATUS_OK && c->families + c->fallbacks == 0)
        status = diag_error(diag, (struct loc){0}, STATUS_NO,
                            "no point measures work that a device file describes");
    if ((status == STATUS_OK || status == STATUS_NO) && c->families > 0) {
        find_unmeasured(c);
        raise_peak(c);
        if (noise_disturbs(c->spread, 0))
            text_puts(&c->notes,
                      "device.jitter: what others disturbed says nothing of it; it stays "
                      "as the base has it\n");
        else
            calibrate_jitter(c, points);
    }
    return status;
}
