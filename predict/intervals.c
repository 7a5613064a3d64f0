#include "predict/intervals.h"

#include "models/mfu.h"
#include "models/work.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The model's own error of a step that is predicted from numbers measured on its own machine, as a standard deviation
 * of the logarithm. docs/accuracy/intervals.md, "Machines that were measured", derives it, and
 * tests/cli/recorded/recorded_steps.cmd checks it. */
static const double OF_MODEL = 0.1;

/* With a probability of 90 % a normal variable is within this many standard deviations of its mean. */
static const double NORMAL_90 = 1.645;

/* Returns the half width of the 90 % interval of a step, as a logarithm, on a machine with measured or estimated
 * numbers. published: the half width if all numbers were presets' calibrated ones. The errors of measured numbers are
 * taken as independent from part to part, those of all other numbers as one common error. */
static double machine_half_width(const struct spreads *spreads, double published)
{
    double of_model = (1 - spreads_unmeasured_share(spreads)) * OF_MODEL;
    double squares = of_model * of_model, others = 0;
    for (int part = 0; part < SPREAD_PART_COUNT; part++) {
        squares += spreads->log_step_growth_by_measured_part[part] *
                   spreads->log_step_growth_by_measured_part[part];
        others += spreads->share_of_unmeasured_by_part[part] *
                  hypot(published, NORMAL_90 * spreads->estimate_error[part]);
    }
    return hypot(NORMAL_90 * sqrt(squares), others);
}

/* If the fast end of a step's interval is faster than the model's flops at the device's peak, raises it to the time
 * that these take, but not above the predicted time, and the slow end to the fast one if it is below it. The model's
 * flops do not count recomputation, since implementations differ in it, nor copies that experts drop, since nothing
 * computes them. For a schedule from a file all executed flops count in place of the model's. Products in 8 or 4 bits
 * have a higher peak; their share of the model's flops is taken to be their share of the executed flops. */
static void raise_low_end_to_peak_flops_time(struct interval *time, const struct prediction *p)
{
    const double mfu = p->has_choices ? prediction_mfu(p, MFU_LONGHAUL) : INFINITY;
    const double flops = mfu > exp(time->low) ? sim_flops(&p->ir, &p->sim) : 0;
    if (flops == 0)
        return;
    const double share =
        fmin(mfu, prediction_hfu(p)) * sim_bf16_equivalent_flops(&p->ir, &p->sim) / flops;
    time->low = fmax(time->low, fmin(log(share), 0));
    time->high = fmax(time->high, time->low);
}

struct intervals intervals_of_prediction(const struct prediction *p)
{
    const struct interval none = {.low = NAN, .high = NAN, .log_standard_deviation = NAN};
    struct intervals intervals = {
        .similarity =
            prediction_is_recorded(p)
                ? similarity_of_recorded(
                      p->setup, attention_impl_name((enum attention_impl)p->choices.attention_impl))
                : similarity_of(p->setup, p->has_choices ? &p->choices : NULL, p->profile),
        .intervals_by_quantity = {none, none}};
    const struct residual run = similarity_make_residual(&intervals.similarity);
    struct interval *time = &intervals.intervals_by_quantity[RESIDUAL_TIME];
    if (intervals.similarity.device[0] == '\0')
        return intervals;
    for (int i = 0; i < RESIDUAL_COUNT; i++)
        intervals.intervals_by_quantity[i] =
            interval_of_run(&p->setup->evidence, (enum residual_quantity)i, &run, NULL);
    /* if steps were published of this device, their errors include the errors of its estimated numbers, and
     * estimate_error must not count these once more */
    bool includes_estimate_errors = time->device_is_measured;
    bool needs_spreads = spread_has_measured_number(&p->setup->cost, &p->setup->cluster) ||
                         (!includes_estimate_errors && spreads_are_needed(p->setup));
    if (needs_spreads && !p->spreads.is_known)
        *time = none;
    if (needs_spreads && interval_is_known(time)) {
        intervals.spreads = p->spreads;
        for (int part = 0; part < SPREAD_PART_COUNT && includes_estimate_errors; part++)
            intervals.spreads.estimate_error[part] = 0;
        time->low = -machine_half_width(&intervals.spreads, -time->low);
        time->high = machine_half_width(&intervals.spreads, time->high);
    }
    if (interval_is_known(time))
        raise_low_end_to_peak_flops_time(time, p);
    return intervals;
}

bool intervals_are_known(const struct intervals *intervals, enum residual_quantity of)
{
    return interval_is_known(&intervals->intervals_by_quantity[of]);
}

void intervals_put_in_brackets(struct text *out, const char *before,
                               const struct interval *interval, double value, double unit)
{
    if (!interval_is_known(interval))
        return;
    text_puts(out, before);
    intervals_put_low_to_high(out, interval, value, unit);
    text_putc(out, ')');
}

/* Appends a value with three significant digits (four where rounding adds one), as a whole number from 100 on, with at
 * most 10 decimals, and never with an exponent. */
static void put_3_significant_digits(struct text *out, double value)
{
    int digits = value > 0 ? (int)floor(log10(value)) : 0;
    text_printf(out, "%.*f", digits >= 2 ? 0 : digits > -8 ? 2 - digits : 10, value);
}

void intervals_put_ends(struct text *out, double low, double high)
{
    put_3_significant_digits(out, low);
    text_puts(out, " to ");
    put_3_significant_digits(out, high);
}

void intervals_put_low_to_high(struct text *out, const struct interval *interval, double value,
                               double unit)
{
    intervals_put_ends(out, interval_low(interval, value) / unit,
                       interval_high(interval, value) / unit);
}

/* The text names a part that was not measured if it takes more than the share NAMED of the step, and a measured part if
 * its spread changes the logarithm of the step by more than NAMED_CHANGE. */
static const double NAMED = 0.005, NAMED_CHANGE = 0.0005;

static void put_measured_parts(struct text *out, const struct spreads *spreads)
{
    size_t count = 0;
    text_printf(out, "%.0f %% of the step goes with figures that were measured on this machine",
                100 * (1 - spreads_unmeasured_share(spreads)));
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spreads->log_step_growth_by_measured_part[part] > NAMED_CHANGE)
            text_printf(out, "%s%s %.2g %%",
                        count++ == 0 ? ", whose spreads move it by this much: " : ", ",
                        spread_part_name((enum spread_machine_part)part),
                        100 * spreads->log_step_growth_by_measured_part[part]);
}

static void put_unmeasured_parts(struct text *out, const struct spreads *spreads)
{
    size_t count = 0;
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spreads->share_of_unmeasured_by_part[part] > NAMED)
            text_printf(out, "%s%s%s (%.0f %% of it)", count++ == 0 ? "; not measured are " : ", ",
                        spreads->largest_relative_spread_by_part[part] > 0 ? "other figures of "
                                                                           : "",
                        spread_part_name((enum spread_machine_part)part),
                        100 * spreads->share_of_unmeasured_by_part[part]);
}

/* Appends a clause on the largest error among those of the estimates that the step depends on; nothing if there is
 * none. */
static void put_largest_estimate_error(struct text *out, const struct spreads *spreads)
{
    double most = 0;
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spreads->share_of_unmeasured_by_part[part] > NAMED)
            most = fmax(most, spreads->estimate_error[part]);
    if (most > 0)
        text_printf(out, ", and by the error of %.0f %% that the device's file gives its estimates",
                    100 * most);
}

/* A line names at most this many unmeasured features. */
enum { NAMED_FEATURES = 3 };

void intervals_put_unmeasured(struct text *out, const struct intervals *intervals,
                              enum residual_quantity of, bool adds)
{
    const struct interval *interval = &intervals->intervals_by_quantity[of];
    const struct residual run = similarity_make_residual(&intervals->similarity);
    for (uint32_t i = 0; i < interval->unmeasured_count && i < NAMED_FEATURES; i++) {
        const double deviation = sqrt(interval->unmeasured[i].variance);
        if (deviation < INTERVAL_NOTABLE_DEVIATION)
            break;
        text_puts(out, i > 0 ? ", " : "");
        interval_put_unmeasured(out, &interval->unmeasured[i], &run);
        if (adds)
            text_printf(out, " (%.2g %%)", 100 * deviation);
    }
}

/* Appends a clause on the user's own runs that moved the interval; nothing if none did. */
static void put_own_runs_clause(struct text *out, const struct interval *interval)
{
    if (interval->own_run_count > 0)
        text_printf(out, "; your %u measured run%s like it move%s the middle by %+.1f %%",
                    interval->own_run_count, interval->own_run_count == 1 ? "" : "s",
                    interval->own_run_count == 1 ? "s" : "",
                    100 * expm1(interval->log_shift_by_own_runs));
}

void intervals_put_evidence(struct text *out, const struct intervals *intervals,
                            enum residual_quantity of)
{
    const struct spreads *spreads = &intervals->spreads;
    const struct interval *interval = &intervals->intervals_by_quantity[of];
    if (of == RESIDUAL_TIME && spreads_has_measured_numbers(spreads)) {
        put_measured_parts(out, spreads);
        if (spreads_unmeasured_share(spreads) < NAMED)
            return;
        put_unmeasured_parts(out, spreads);
        text_puts(out, "; ");
    }
    if (interval->unmeasured_count > 0 &&
        interval->unmeasured[0].variance >=
            INTERVAL_NOTABLE_DEVIATION * INTERVAL_NOTABLE_DEVIATION) {
        text_puts(out, "never measured: ");
        intervals_put_unmeasured(out, intervals, of, true);
    } else {
        text_puts(out, "all that it consists of was measured");
    }
    put_own_runs_clause(out, interval);
    if (of == RESIDUAL_TIME)
        put_largest_estimate_error(out, spreads);
}

void intervals_put_time_and_memory(struct text *out, const struct intervals *intervals)
{
    static const char *const names[RESIDUAL_COUNT] = {"time", "memory"};
    bool first = true;
    for (int i = 0; i < RESIDUAL_COUNT; i++) {
        const struct interval *interval = &intervals->intervals_by_quantity[i];
        if (!intervals_are_known(intervals, (enum residual_quantity)i))
            continue;
        text_printf(out, "%s%s %+.0f to %+.0f %%, ", first ? "" : "; ", names[i],
                    100 * (interval_low(interval, 1) - 1), 100 * (interval_high(interval, 1) - 1));
        intervals_put_evidence(out, intervals, (enum residual_quantity)i);
        first = false;
    }
}

void intervals_put_line(struct text *out, const struct intervals *intervals)
{
    struct text from = {0};
    intervals_put_time_and_memory(&from, intervals);
    if (from.size > 0)
        text_printf(out, "%-11s90 %%: %s\n", "interval", from.data);
    text_release(&from);
}
