#include "models/calibrate.h"

#include "models/calibrate_parts.h"
#include "models/noise.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* the root mean square error up to which a fit is accepted, if the caller sets no calibrate_options.rms_error_limit */
static const double DEFAULT_ERROR_LIMIT = 0.25;

void calibration_release(struct calibration *calibration)
{
    text_release(&calibration->notes);
    arena_release(&calibration->arena);
    *calibration = (struct calibration){0};
}

/* Sets the numbers of the device that the header of the points states. The key of such a header line is the number's
 * name ("device.sm_count"); lines with other keys are skipped. */
static enum status set_numbers_stated_by_header(struct calibration *c, const struct points *points,
                                                struct diag *diag)
{
    for (size_t i = 0; i < points->header_count; i++) {
        const struct points_header_line *key = &points->header_line[i];
        const struct cost_fact *fact = NULL;
        for (size_t k = 0; k < c->cost.facts.count && !fact; k++)
            if (strcmp(c->cost.facts.row[k].name, key->key) == 0)
                fact = &c->cost.facts.row[k];
        double *slot, value;
        const struct cost_param *param = fact ? calibrate_find_param(c, key->key, &slot) : NULL;
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
        calibrate_record_derived(c, key->key, slot, fact->unit, value, CALIBRATE_STATED,
                                 "stated by the header of the points");
    }
    return STATUS_OK;
}

/* Raises device.peak_flop_per_s, which is the base's, to the fitted rate of products if that is higher: the points then
 * come from a device with another data sheet than the base's. */
static void raise_peak_to_fitted_rate(struct calibration *c)
{
    double reached = fmax(c->cost.matmul_flop_per_s, c->cost.matmul_f32_flop_per_s);
    bool fitted = false;
    for (size_t i = 0; i < c->number_count; i++)
        fitted |= strncmp(c->number[i].name, "matmul.", 7) == 0;
    if (fitted && reached > c->cost.device_peak_flop_per_s)
        calibrate_record_derived(
            c, "device.peak_flop_per_s", &c->cost.device_peak_flop_per_s, UNIT_FLOP_PER_S, reached,
            CALIBRATE_DERIVED,
            "the rate of large products, which is above the base's peak; put the data "
            "sheet's number here");
}

static enum status check_points_of_one_device(const struct points *points, struct diag *diag)
{
    const char *device = NULL;
    for (size_t i = 0; i < points->header_count; i++) {
        const struct points_header_line *key = &points->header_line[i];
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

/* The members of a calibration that a fit changes, as they were before the fit. A refused fit is undone with them. */
struct calibration_checkpoint {
    struct device_cost cost;
    size_t family_count, number_count, notes_size;
};

static struct calibration_checkpoint save_calibration_checkpoint(const struct calibration *c)
{
    return (struct calibration_checkpoint){c->cost, c->family_count, c->number_count,
                                           c->notes.size};
}

static void restore_checkpoint(struct calibration *c, const struct calibration_checkpoint *mark)
{
    c->cost = mark->cost;
    c->family_count = mark->family_count;
    c->number_count = mark->number_count;
    c->notes.size = mark->notes_size;
    if (c->notes.data != NULL)
        c->notes.data[mark->notes_size] = '\0';
}

static void record_family_fallback(struct calibration *c, const char *name,
                                   bool has_kept_base_numbers, bool disturbed)
{
    assert(c->fallback_count < CALIBRATE_FAMILIES_MAX);
    c->fallback[c->fallback_count++] =
        (struct calibrate_fallback){name, has_kept_base_numbers, disturbed};
}

/* Fits a family whose points other programs may have disturbed. If the fit is refused because such
 * points lie too far from it, their fastest times are fitted; if that is refused as well, the
 * family's numbers stay as in the base. In both cases it returns STATUS_OK. If the first fit fails
 * for another reason, it returns that status without a message. */
static enum status fit_or_fall_back_if_disturbed(const struct calibrate_problem *family,
                                                 calibrate_family_function *function)
{
    struct calibration *c = family->calibration;
    struct calibrate_options fastest = *family->options;
    struct calibration_checkpoint before = save_calibration_checkpoint(c);
    struct calibrate_problem problem = *family;
    struct diag discarded_messages = {0};
    fastest.fits_p10_times = true;
    enum status status = function(&problem, &discarded_messages);
    if (status == STATUS_NO && problem.was_refused_as_disturbed) {
        restore_checkpoint(c, &before);
        problem = *family;
        problem.options = &fastest;
        diag_clear(&discarded_messages);
        status = function(&problem, &discarded_messages);
        if (status == STATUS_NO)
            restore_checkpoint(c, &before);
        if (status == STATUS_OK || status == STATUS_NO) {
            record_family_fallback(c, problem.name, status == STATUS_NO, true);
            status = STATUS_OK;
        }
    }
    diag_release(&discarded_messages);
    if (status != STATUS_OK)
        restore_checkpoint(c, &before);
    return status;
}

/* Fits a family whose points have few sizes. If the fit of all its numbers is refused, only rates and shares are
 * fitted. If that is refused too, it returns the status without a message and leaves all numbers as they were. */
static enum status fit_rates_if_few_sizes(const struct calibrate_problem *family,
                                          calibrate_family_function *function)
{
    struct calibration *c = family->calibration;
    struct calibration_checkpoint before = save_calibration_checkpoint(c);
    struct calibrate_problem problem = *family;
    struct diag discarded_messages = {0};
    enum status status = function(&problem, &discarded_messages);
    if (status == STATUS_NO) {
        restore_checkpoint(c, &before);
        problem = *family;
        problem.fits_rates_only = true;
        status = function(&problem, &discarded_messages);
        if (status == STATUS_OK)
            text_printf(&c->notes,
                        "%s: the sizes of the recorded steps tell no more than rates; starts and "
                        "ramps stay as the base has them\n",
                        problem.name);
    }
    diag_release(&discarded_messages);
    if (status != STATUS_OK)
        restore_checkpoint(c, &before);
    return status;
}

/* Fits a family as the options say. A refused fit leaves the family's numbers as they were. */
static enum status fit_family(const struct calibrate_problem *family,
                              calibrate_family_function *function, struct diag *diag)
{
    struct calibration *c = family->calibration;
    struct calibration_checkpoint before = save_calibration_checkpoint(c);
    struct calibrate_problem problem = *family;
    if (family->options->fits_rates_only_if_few_sizes &&
        fit_rates_if_few_sizes(family, function) == STATUS_OK)
        return STATUS_OK;
    if (family->options->falls_back_if_disturbed &&
        fit_or_fall_back_if_disturbed(family, function) == STATUS_OK)
        return STATUS_OK;
    enum status status = function(&problem, diag);
    if (status == STATUS_NO) {
        restore_checkpoint(c, &before);
        record_family_fallback(c, problem.name, true, false);
    }
    return status;
}

/* True if a family whose name is `name`, or begins with it, was fitted or refused. */
static bool was_family_fitted_or_refused(const struct calibration *c, const char *name)
{
    size_t size = strlen(name);
    bool found = false;
    for (size_t i = 0; i < c->family_count; i++)
        found |= strncmp(c->family[i].name, name, size) == 0;
    for (size_t i = 0; i < c->fallback_count; i++)
        found |= strncmp(c->fallback[i].name, name, size) == 0;
    return found;
}

/* Lists the families that have no points. Attention without any points is listed as a whole. If only one
 * direction of an implementation has points, the other one is listed; implementations without points are not. */
static void list_unmeasured_families(struct calibration *c)
{
    static const char *const names[] = {
        "device.kernel_start_s", "memory", "matmul", "attention", "host", "cpu"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!was_family_fitted_or_refused(c, names[i]))
            c->unmeasured_families[c->unmeasured_family_count++] = names[i];
    for (int k = 0; k < ATTENTION_IMPL_COUNT * ATTENTION_PASS_COUNT; k++) {
        const char *impl =
            arena_printf(&c->arena, "attention.%s.",
                         attention_impl_name((enum attention_impl)(k / ATTENTION_PASS_COUNT)));
        const char *name =
            arena_printf(&c->arena, "%s%s", impl, cost_pass_names[k % ATTENTION_PASS_COUNT]);
        if (was_family_fitted_or_refused(c, impl) && !was_family_fitted_or_refused(c, name))
            c->unmeasured_families[c->unmeasured_family_count++] = name;
    }
}

/* Sets cost->memory_s_per_tensor_s (m below): for each second of products and attention at the
 * highest clock, the seconds of memory-bound kernels (cost_power_limited_rate_share()). Leaves it as it
 * is if the base has no power limit, or no watts of memory-bound kernels below that limit, or if no
 * products and no attention were recorded in steps.
 * Recorded seconds of products and attention are at the step's lower clock. Let q be the recorded
 * seconds of memory-bound kernels per recorded second of products and attention, share the step's
 * clock over the highest one, P the watts that products and attention would draw at the highest
 * clock, M the watts of memory-bound kernels, and L the power limit. With m = q / share, the
 * equation P share^2 - (L - M) m share = L becomes P share^2 = L + (L - M) q. */
static void set_memory_s_per_tensor_s(struct device_cost *cost, const struct points *points)
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
    cost->memory_s_per_tensor_s = q * sqrt(fmax(1, cost->device_tensor_power / left));
}

enum status calibrate_device(struct calibration *c, const struct points *points,
                             const struct device_cost *base,
                             const struct calibrate_options *options, struct diag *diag)
{
    static const struct {
        calibrate_family_function *fit;
        int impls, passes;
    } families[] = {
        {calibrate_kernel_start, 1, 1},
        {calibrate_memory_bandwidth, 1, 1},
        {calibrate_matmul, 1, 1},
        {calibrate_attention, ATTENTION_IMPL_COUNT, ATTENTION_PASS_COUNT},
        {calibrate_host_issue, 1, 1},
        {calibrate_host_work, 1, 1},
    };
    _Static_assert(ARRAY_LEN(families) == CALIBRATE_NON_ATTENTION_FAMILIES + 1, "each has a place");
    *c = (struct calibration){
        .cost = *base, .median_p90_over_p10_of_points = noise_median_p90_over_p10_of_all(points)};
    /* measured points correct the formula, which is to be fitted without them */
    c->cost.points = (struct cost_points){0};
    enum status status = check_points_of_one_device(points, diag);
    if (status == STATUS_OK && base->is_ideal)
        status = diag_error(diag, (struct loc){.name = base->name}, STATUS_BAD_INPUT,
                            "an ideal device has nothing to calibrate");
    if (status == STATUS_OK)
        status = set_numbers_stated_by_header(c, points, diag);
    if (status != STATUS_OK)
        return status;
    set_memory_s_per_tensor_s(&c->cost, points);
    const struct point **point = heap_alloc(points->count + 1, sizeof(const struct point *));
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        for (int k = 0; k < families[i].impls * families[i].passes; k++) {
            const struct calibrate_problem problem = {
                .calibration = c,
                .options = options,
                .all_points = points,
                .point = point,
                .rms_error_limit =
                    options->rms_error_limit > 0 ? options->rms_error_limit : DEFAULT_ERROR_LIMIT,
                .impl = k / families[i].passes,
                .direction = k % families[i].passes,
            };
            enum status one = fit_family(&problem, families[i].fit, diag);
            if (status == STATUS_OK || (status == STATUS_NO && one != STATUS_OK))
                status = one; /* bad input is a worse fault than a refused fit */
        }
    free((void *)point);
    if (status == STATUS_OK && c->family_count + c->fallback_count == 0)
        status = diag_error(diag, (struct loc){0}, STATUS_NO,
                            "no point measures work that a device file describes");
    if ((status == STATUS_OK || status == STATUS_NO) && c->family_count > 0) {
        list_unmeasured_families(c);
        raise_peak_to_fitted_rate(c);
        if (noise_shows_disturbance(c->median_p90_over_p10_of_points, 0))
            text_puts(&c->notes,
                      "device.jitter: what others disturbed says nothing of it; it stays "
                      "as the base has it\n");
        else
            calibrate_jitter(c, points);
    }
    return status;
}
