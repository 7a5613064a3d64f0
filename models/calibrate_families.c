/* The families of numbers of a device, except those of the host (calibrate_host.c): which points each is fitted to, and
 * which of its numbers are parameters of the fit. The predictions come from the formulas of
 * models/cost*.c: a fit changes the numbers in calibration->cost and calls cost_work_burst_s(), or cost_work_s() for
 * points of recorded steps. */
#include "models/calibrate_parts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* fit_param.scale of parameters that may be 0, in seconds and in bytes: a smaller change hardly
 * changes a prediction. */
static const double SCALE_S = 1e-7, SCALE_BYTES = 1e4;
/* The highest values that the reader of device files accepts (models/cost_params.def, models/cost_load_attention.c). */
static const double BANDWIDTH_MOST = 1e15, POWER_MOST = 1e5, RATE_MOST = 1e18;
/* If bandwidth shares of whole classes of kinds leave a larger root mean square error over all memory-bound points than
 * this, or if their fit is refused, each kind gets a share of its own. */
static const double CLASS_ERROR_LIMIT = 0.1;
/* If only rates are fitted, the largest accepted error of memory-bound work is multiplied by this factor: the points
 * are then all ops of recorded steps, also tiny ones, whose time is not proportional to their bytes. */
static const double SMALL_OPS_FACTOR = 4;

static enum attention_impl attention_impl_of_point(const struct point *point)
{
    return point->attention_impl < POINT_NO_IMPL ? (enum attention_impl)point->attention_impl
                                                 : (enum attention_impl)0;
}

/* Returns the predicted seconds of a point, at the lower clock of a step if it was recorded in one, else at the highest
 * clock. */
static double predict_work_s(const struct calibrate_problem *problem, const struct point *point)
{
    if (point->role == POINT_STEP)
        return cost_work_s(&problem->calibration->cost, attention_impl_of_point(point),
                           &point->work);
    return cost_work_burst_s(&problem->calibration->cost, attention_impl_of_point(point),
                             &point->work);
}

void calibrate_select_points(struct calibrate_problem *problem, calibrate_point_filter *chosen)
{
    problem->point_count = 0;
    for (size_t i = 0; i < problem->all_points->count; i++)
        if (chosen(problem, &problem->all_points->row[i]))
            problem->point[problem->point_count++] = &problem->all_points->row[i];
}

enum status calibrate_check_size_varies(const struct calibrate_problem *problem,
                                        enum cost_size size, struct diag *diag)
{
    double first = 0;
    for (size_t i = 0; i < problem->point_count; i++) {
        double sizes[COST_SIZE_COUNT] = {0};
        cost_get_sizes_of_work(&problem->calibration->cost,
                               attention_impl_of_point(problem->point[i]), &problem->point[i]->work,
                               sizes);
        if (i > 0 && sizes[size] != first)
            return STATUS_OK;
        first = sizes[size];
    }
    return diag_error(diag, (struct loc){.name = problem->point[0]->at.name}, STATUS_NO,
                      "%s: %s is %.6g in every point; the time that grows with it and the time "
                      "that does not cannot be fitted apart: %s",
                      problem->name, cost_size_names[size], first, problem->help);
}

/* ---- start of a kernel ---- */

static bool is_kernel_start_point(const struct calibrate_problem *problem,
                                  const struct point *point)
{
    (void)problem;
    return point->role == POINT_START;
}

static double predict_kernel_start_s(const struct calibrate_problem *problem,
                                     const struct point *point)
{
    (void)point;
    return problem->calibration->cost.device_kernel_start_s;
}

enum status calibrate_kernel_start(struct calibrate_problem *problem, struct diag *diag)
{
    problem->name = "device.kernel_start_s";
    problem->help = "add ops that do next to nothing, measured as 'start'";
    problem->predict = predict_kernel_start_s;
    problem->rms_error_limit *= 2;
    calibrate_select_points(problem, is_kernel_start_point);
    if (problem->point_count == 0)
        return STATUS_OK;
    calibrate_add_cost_param(problem, "device.kernel_start_s", SCALE_S, false);
    return calibrate_fit(problem, NULL, diag);
}

/* ---- memory-bound work ---- */

static bool is_memory_bound(const struct calibrate_problem *problem, const struct point *point)
{
    if (point->work.kind == WORK_MERGE &&
        problem->calibration->cost.merge_bytes_per_element[attention_impl_of_point(point)] == 0)
        return false; /* the base does not say how often a merge touches its operands */
    return point_is_of_op_running_alone(point) &&
           cost_memory_class_name((enum work_kind)point->work.kind) != NULL &&
           cost_memory_traffic_bytes(&problem->calibration->cost, attention_impl_of_point(point),
                                     &point->work) > 0;
}

/* The kind that represents each class of memory-bound work (stream, reduce, permute, gather, scatter): a simple one. */
static const enum work_kind typical[] = {WORK_ADD, WORK_RMSNORM, WORK_PACK, WORK_EMBEDDING,
                                         WORK_EMBEDDING_BACKWARD};

static bool has_points_of_kind(const struct calibrate_problem *problem, enum work_kind kind)
{
    for (size_t i = 0; i < problem->point_count; i++)
        if (problem->point[i]->work.kind == kind)
            return true;
    return false;
}

/* Returns the kind whose points are fitted for a class: its typical kind if that has points, else the first kind of the
 * class that has some; WORK_KIND_COUNT if none has. */
static enum work_kind fitted_kind_of_memory_class(const struct calibrate_problem *problem,
                                                  const char *class)
{
    for (size_t i = 0; i < ARRAY_LEN(typical); i++)
        if (cost_memory_class_name(typical[i]) == class && has_points_of_kind(problem, typical[i]))
            return typical[i];
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        if (cost_memory_class_name((enum work_kind)kind) == class &&
            has_points_of_kind(problem, (enum work_kind)kind))
            return (enum work_kind)kind;
    return WORK_KIND_COUNT;
}

/* Makes the bandwidth share of each class with points a parameter. With `kinds`, the share of a
 * class is that of fitted_kind_of_memory_class(), and every other kind with points gets a share of its own;
 * without, all kinds of a class have the share of the class. The ramp is a parameter, too, unless
 * only rates are fitted. */
static void add_bandwidth_share_params(struct calibrate_problem *problem, bool kinds)
{
    struct device_cost *cost = &problem->calibration->cost;
    problem->param_count = 0;
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        const char *class = cost_memory_class_name((enum work_kind)kind);
        if (class == NULL || !has_points_of_kind(problem, (enum work_kind)kind))
            continue;
        cost->kind_bandwidth_share[kind] = 0;
        if (fitted_kind_of_memory_class(problem, class) == (enum work_kind)kind) {
            calibrate_add_cost_param(problem, class, 0, false);
        } else if (kinds) {
            cost->kind_bandwidth_share[kind] =
                cost_bandwidth_share(cost, &(struct work){.kind = (uint8_t)kind});
            calibrate_add_param(problem,
                                arena_printf(&problem->calibration->arena, "memory.kinds.%s",
                                             work_kind_info((enum work_kind)kind)->name),
                                &cost->kind_bandwidth_share[kind], UNIT_NONE, 1e-4, 1, 0, false);
        }
    }
    if (!problem->fits_rates_only)
        calibrate_add_cost_param(problem, "memory.ramp_bytes", SCALE_BYTES, false);
}

/* Raises the device's bandwidth, which is the base's, to the highest rate that a point reaches: shares of the bandwidth
 * are at most 1, so a point above it comes from a device with faster memory. Embeddings do not count: their bytes count
 * a row of the table for each token, but a row that several tokens need is read from a cache. Points that take at
 * most two kernel starts do not count either. */
static void raise_bandwidth_to_fastest_point(struct calibrate_problem *problem)
{
    struct calibration *c = problem->calibration;
    double reached = 0;
    for (size_t i = 0; i < problem->point_count; i++) {
        const struct point *point = problem->point[i];
        double bytes =
            cost_memory_traffic_bytes(&c->cost, attention_impl_of_point(point), &point->work);
        double seconds =
            calibrate_measured_time_s(problem->options, point) - c->cost.device_kernel_start_s;
        if (point->work.kind == WORK_EMBEDDING || point->work.kind == WORK_EMBEDDING_BACKWARD)
            continue;
        if (seconds > c->cost.device_kernel_start_s)
            reached = fmax(reached, bytes / seconds);
    }
    if (reached > c->cost.device_memory_bytes_per_s)
        calibrate_record_derived(
            c, "device.memory_bytes_per_s", &c->cost.device_memory_bytes_per_s, UNIT_BYTES_PER_S,
            reached, CALIBRATE_DERIVED,
            "the highest rate of any point, which is above the base's bandwidth; put "
            "the data sheet's number here");
}

/* Returns the root mean square of the relative errors of all points with the present numbers. */
static double rms_error_of_points(const struct calibrate_problem *problem)
{
    double sum = 0;
    for (size_t i = 0; i < problem->point_count; i++) {
        double error = predict_work_s(problem, problem->point[i]) /
                           calibrate_measured_time_s(problem->options, problem->point[i]) -
                       1;
        sum += error * error;
    }
    return sqrt(sum / (double)problem->point_count);
}

enum status calibrate_memory_bandwidth(struct calibrate_problem *problem, struct diag *diag)
{
    struct calibration *c = problem->calibration;
    struct device_cost before = c->cost;
    struct cost_calibrated_range *calibration = &c->cost.calibration[COST_MEMORY];
    problem->name = "memory";
    problem->help = "add points of each kind, small ones (64 KB) and large ones (16 MB)";
    problem->predict = predict_work_s;
    if (problem->fits_rates_only)
        problem->rms_error_limit *= SMALL_OPS_FACTOR;
    calibrate_select_points(problem, is_memory_bound);
    if (problem->point_count == 0)
        return STATUS_OK;
    enum status status = problem->fits_rates_only
                             ? STATUS_OK
                             : calibrate_check_size_varies(problem, COST_SIZE_BYTES, diag);
    if (status != STATUS_OK)
        return status;
    if (c->cost.memory_start_s > 0)
        calibrate_record_derived(c, "memory.start_s", &c->cost.memory_start_s, UNIT_SECONDS, 0,
                                 CALIBRATE_DERIVED,
                                 "points are of single kernels, whose ramp is fitted");
    raise_bandwidth_to_fastest_point(problem);
    double bandwidth = c->cost.device_memory_bytes_per_s;
    if (bandwidth > BANDWIDTH_MOST)
        return diag_error(diag, (struct loc){.name = problem->point[0]->at.name}, STATUS_NO,
                          "%s: a point moves %.3g TB/s, which no memory does; at most %g TB/s are "
                          "accepted",
                          problem->name, bandwidth / 1e12, BANDWIDTH_MOST / 1e12);
    size_t families = c->family_count, numbers = c->number_count, notes = c->notes.size;
    add_bandwidth_share_params(problem, false);
    struct diag quiet = {0};
    status = calibrate_fit(problem, calibration, &quiet);
    bool good = status == STATUS_OK && rms_error_of_points(problem) <= CLASS_ERROR_LIMIT;
    diag_release(&quiet);
    if (good)
        return STATUS_OK;
    c->cost = before;
    c->cost.memory_start_s = 0;
    c->cost.device_memory_bytes_per_s = bandwidth;
    c->family_count = families;
    c->number_count = numbers;
    c->notes.size = notes;
    add_bandwidth_share_params(problem, true);
    return calibrate_fit(problem, calibration, diag);
}

/* ---- products ---- */

static bool is_product_point(const struct calibrate_problem *problem, const struct point *point)
{
    (void)problem;
    return point_is_of_op_running_alone(point) && point->work.kind == WORK_MATMUL;
}

static bool has_points_of_dtype(const struct calibrate_problem *problem, enum dtype dtype)
{
    for (size_t i = 0; i < problem->point_count; i++)
        if (problem->point[i]->work.in == dtype)
            return true;
    return false;
}

static const struct point *find_point_of_role_like(const struct calibrate_problem *problem,
                                                   enum point_role role, const struct point *like)
{
    for (size_t i = 0; i < problem->all_points->count; i++) {
        const struct point *point = &problem->all_points->row[i];
        bool same = like == NULL || (point->work.in == like->work.in &&
                                     memcmp(point->work.p, like->work.p, sizeof like->work.p) == 0);
        if (point->role == role && point->work.kind == WORK_MATMUL && same)
            return point;
    }
    return NULL;
}

/* Derives device.tensor_power, the watts that products would draw at the highest clock, from one
 * product that was timed twice: in a run of some 60 ms, before the power limit lowers the clock
 * (burst_s), and after seconds of repeats, at the limit, where it takes `slowdown_at_limit` times as long.
 * Power grows with the square of the rate, so the product would draw limit * slowdown_at_limit^2 at the
 * highest clock. The number is for tensor cores that are busy all the time, as at the fitted rate;
 * burst_s / busy_s extrapolates to that (docs/costs.md, "What the power limit leaves"). Nothing is
 * derived from products in fp32 or fp64, if the base has no power limit, or if more than POWER_MOST
 * watts would follow. */
static void derive_tensor_core_watts(struct calibrate_problem *problem)
{
    struct device_cost *cost = &problem->calibration->cost;
    const struct point *after = find_point_of_role_like(problem, POINT_SUSTAINED, NULL);
    const struct point *before =
        after != NULL ? find_point_of_role_like(problem, POINT_WORK, after) : NULL;
    if (before == NULL || cost->device_power <= 0 || after->work.in == DTYPE_F32 ||
        after->work.in == DTYPE_F64)
        return;
    double after_s = calibrate_measured_time_s(problem->options, after);
    double before_s = calibrate_measured_time_s(problem->options, before);
    double start_s = cost->device_kernel_start_s;
    double busy_s = work_flops(&after->work) / cost->matmul_flop_per_s;
    double burst_s = fmax(before_s - start_s, busy_s);
    double slowdown_at_limit = fmax(1, (after_s - start_s) / burst_s);
    double watts = cost->device_power * slowdown_at_limit * slowdown_at_limit * burst_s / busy_s;
    if (watts > POWER_MOST) {
        text_printf(&problem->calibration->notes,
                    "device.tensor_power: a product takes %.3g times as long after seconds of "
                    "them, which is no work of the power limit; it stays as the base has it\n",
                    after_s / before_s);
        return;
    }
    calibrate_record_derived(
        problem->calibration, "device.tensor_power", &cost->device_tensor_power, UNIT_WATTS, watts,
        CALIBRATE_DERIVED,
        arena_printf(&problem->calibration->arena,
                     "measured: %.4g ms a product after seconds of them, %.4g ms before, at the "
                     "power limit of the base",
                     1e3 * after_s, 1e3 * before_s));
}

enum status calibrate_matmul(struct calibrate_problem *problem, struct diag *diag)
{
    struct device_cost *cost = &problem->calibration->cost;
    problem->name = "matmul";
    problem->help = "add products with sides and depths from 64 to 4096";
    problem->predict = predict_work_s;
    calibrate_select_points(problem, is_product_point);
    if (problem->point_count == 0)
        return STATUS_OK;
    static const enum cost_size sizes[] = {COST_SIZE_M, COST_SIZE_N, COST_SIZE_K};
    for (size_t i = 0; i < ARRAY_LEN(sizes) && !problem->fits_rates_only; i++) {
        enum status status = calibrate_check_size_varies(problem, sizes[i], diag);
        if (status != STATUS_OK)
            return status;
    }
    if (has_points_of_dtype(problem, DTYPE_BF16) || has_points_of_dtype(problem, DTYPE_F16))
        calibrate_add_cost_param(problem, "matmul.flop_per_s", 0, false);
    if (has_points_of_dtype(problem, DTYPE_F32))
        calibrate_add_cost_param(problem, "matmul.f32_flop_per_s", 0, false);
    if (has_points_of_dtype(problem, DTYPE_F64))
        calibrate_add_cost_param(problem, "matmul.f64_flop_per_s", 0, false);
    if (!problem->fits_rates_only) {
        calibrate_add_cost_param(problem, "matmul.ramp_s", SCALE_S, false);
        calibrate_add_cost_param(problem, "matmul.small_tile_rate", 0, true);
        calibrate_add_cost_param(problem, "matmul.memory_fraction", 0, true);
    }
    enum status status = calibrate_fit(problem, &cost->calibration[COST_MATMUL], diag);
    if (status == STATUS_OK)
        derive_tensor_core_watts(problem);
    return status;
}

/* ---- attention ---- */

struct attention_kernel {
    enum attention_impl impl;
    enum attention_direction pass;
};

static bool is_point_of_kernel(const struct point *point, struct attention_kernel kernel)
{
    enum work_kind kind =
        kernel.pass == ATTENTION_FORWARD_PASS ? WORK_ATTENTION : WORK_ATTENTION_BACKWARD;
    return point_is_of_op_running_alone(point) && point->work.kind == kind &&
           point->attention_impl == kernel.impl;
}

/* Sets measured[i] to true for each row i of head_dim[] that has points. A point whose head dim is above all rows is an
 * error. */
static enum status find_measured_dims(const struct calibrate_problem *problem, bool *measured,
                                      struct diag *diag)
{
    for (size_t i = 0; i < problem->point_count; i++) {
        const struct point *point = problem->point[i];
        const struct cost_attention *attention;
        size_t dim;
        if (!cost_attention_find(&problem->calibration->cost, attention_impl_of_point(point),
                                 &point->work, &attention, &dim))
            return cost_check_attention(&problem->calibration->cost, attention_impl_of_point(point),
                                        point->work.attention.dim, point->at, diag);
        measured[dim] = true;
    }
    return STATUS_OK;
}

/* Multiplies the rate of each head dim without points by the factor by which the fit changed the rate of the nearest
 * head dim with points. before: the rates before the fit. */
static void scale_rates_of_unmeasured_dims(struct calibration *c, struct attention_kernel kernel,
                                           const bool *measured, const double *before)
{
    struct cost_attention *attention = &c->cost.attention[kernel.impl][kernel.pass];
    for (size_t i = 0; i < attention->dim_count; i++) {
        size_t nearest = attention->dim_count;
        for (size_t k = 0; k < attention->dim_count && !measured[i]; k++)
            if (measured[k] && (nearest == attention->dim_count ||
                                llabs(attention->head_dim[k] - attention->head_dim[i]) <
                                    llabs(attention->head_dim[nearest] - attention->head_dim[i])))
                nearest = k;
        if (nearest == attention->dim_count)
            continue;
        const char *impl = attention_impl_name(kernel.impl);
        calibrate_record_derived(
            c,
            arena_printf(&c->arena, "attention.%s.%s.rates.%lld", impl,
                         cost_pass_names[kernel.pass], (long long)attention->head_dim[i]),
            &attention->flop_per_s[i], UNIT_FLOP_PER_S,
            fmin(before[i] * attention->flop_per_s[nearest] / before[nearest], RATE_MOST),
            CALIBRATE_DERIVED,
            arena_printf(&c->arena, "no points; scaled as dim %lld was",
                         (long long)attention->head_dim[nearest]));
    }
}

/* Returns the root mean square error of a fit in which the kernel has this tile and this step; INFINITY if the fit
 * fails. The calibration is left as it was. */
static double fit_residual_with_tile(struct calibrate_problem *problem,
                                     struct cost_attention *attention, double tile, double step)
{
    struct calibration *c = problem->calibration;
    struct cost_attention before = *attention;
    size_t families = c->family_count, numbers = c->number_count, notes = c->notes.size;
    double limit = problem->rms_error_limit;
    struct diag quiet = {0};
    attention->tile_rows = tile;
    attention->step_columns = step;
    problem->rms_error_limit = INFINITY;
    problem->needs_only_rms_error = true;
    double rms = calibrate_fit(problem, NULL, &quiet) == STATUS_OK ? c->family[families].rms_error
                                                                   : (double)INFINITY;
    problem->rms_error_limit = limit;
    problem->needs_only_rms_error = false;
    *attention = before;
    c->family_count = families;
    c->number_count = numbers;
    c->notes.size = notes;
    diag_release(&quiet);
    return rms;
}

/* Chooses the tile and the step of the attention kernel that runs on the host's processors. The formula for thread
 * blocks describes this kernel only roughly: it trims its tiles to the mask, and computes exponentials for visible
 * pairs only, but products for all pairs of a tile. So all pairs of the sizes below are tried. The best ones are used
 * if their error is less than 0.9 times the error with the present sizes. */
static void find_best_tile(struct calibrate_problem *problem, struct attention_kernel kernel)
{
    static const double sizes[] = {16, 32, 64, 128, 256};
    struct calibration *c = problem->calibration;
    struct cost_attention *attention = &c->cost.attention[kernel.impl][kernel.pass];
    double tile = attention->tile_rows, step = attention->step_columns;
    double best = 0.9 * fit_residual_with_tile(problem, attention, tile, step);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (size_t k = 0; k <= i; k++) { /* a tile consists of whole steps */
            double rms = fit_residual_with_tile(problem, attention, sizes[i], sizes[k]);
            if (rms >= best)
                continue;
            best = rms;
            tile = sizes[i];
            step = sizes[k];
        }
    if (tile == attention->tile_rows && step == attention->step_columns)
        return;
    static const char how[] = "of the forms 16 to 256, the one that fits the points best";
    calibrate_record_derived(c, arena_printf(&c->arena, "%s.tile", problem->name),
                             &attention->tile_rows, UNIT_NONE, tile, CALIBRATE_DERIVED, how);
    calibrate_record_derived(c, arena_printf(&c->arena, "%s.step", problem->name),
                             &attention->step_columns, UNIT_NONE, step, CALIBRATE_DERIVED, how);
}

enum status calibrate_attention(struct calibrate_problem *problem, struct diag *diag)
{
    struct attention_kernel kernel = {(enum attention_impl)problem->impl,
                                      (enum attention_direction)problem->direction};
    struct calibration *c = problem->calibration;
    const char *impl = attention_impl_name(kernel.impl);
    struct cost_attention *attention = &c->cost.attention[kernel.impl][kernel.pass];
    problem->name = arena_printf(&c->arena, "attention.%s.%s", impl, cost_pass_names[kernel.pass]);
    problem->help = "add points of several lengths per head dim, causal and full";
    problem->predict = predict_work_s;
    problem->param_count = problem->point_count = 0;
    for (size_t i = 0; i < problem->all_points->count; i++)
        if (is_point_of_kernel(&problem->all_points->row[i], kernel))
            problem->point[problem->point_count++] = &problem->all_points->row[i];
    if (problem->point_count == 0)
        return STATUS_OK;
    if (!attention->is_family_present)
        return cost_check_attention(&c->cost, kernel.impl, problem->point[0]->work.attention.dim,
                                    problem->point[0]->at, diag);
    bool measured[COST_MAX_DIMS] = {false};
    double rates_before_fit[COST_MAX_DIMS];
    memcpy(rates_before_fit, attention->flop_per_s, sizeof rates_before_fit);
    enum status status = find_measured_dims(problem, measured, diag);
    if (status == STATUS_OK && !problem->fits_rates_only)
        status = calibrate_check_size_varies(problem, COST_SIZE_KV, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < attention->dim_count; i++)
        if (measured[i])
            calibrate_add_param(problem,
                                arena_printf(&c->arena, "%s.rates.%lld", problem->name,
                                             (long long)attention->head_dim[i]),
                                &attention->flop_per_s[i], UNIT_FLOP_PER_S, 1, 1e18, 0, false);
    if (!problem->fits_rates_only) {
        calibrate_add_param(problem, arena_printf(&c->arena, "%s.ramp_s", problem->name),
                            &attention->ramp_s, UNIT_SECONDS, 0, 1e-3, SCALE_S, false);
        if (kernel.impl == ATTENTION_CPU)
            find_best_tile(problem, kernel);
    }
    status = calibrate_fit(problem, &attention->calibration, diag);
    if (status == STATUS_OK)
        scale_rates_of_unmeasured_dims(c, kernel, measured, rates_before_fit);
    return status;
}
