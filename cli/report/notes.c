/* The last lines of a prediction: how sure it is, what to beware of, a whole training, what to try next. */
#include "cli/report/report.h"

#include "base/units.h"
#include "predict/intervals.h"
#include "schedule/choices/profile.h"
#include "sim/even.h"

#include <math.h>
#include <string.h>

/* Where the host takes more of a step than this, what a profile says of it decides. */
#define HOST_DECIDES 0.3
/* The share of compute time from which costs outside of calibration are worth a line. */
#define EXTRAPOLATED_SHOWN 0.005
/* Peaks of costs and cluster that are so many times apart are of different devices. */
#define OTHER_DEVICE 1.25

/* Appends that nobody compared steps on so many ranks, and what is known of the slowest of them. */
static void print_scale(struct text *out, const struct prediction *p)
{
    text_printf(out, "%sextrapolated to %u ranks: its steps were compared on ",
                out->size > 0 ? "; " : "", p->sim.rank_count);
    if (p->compared_ranks > 0)
        text_printf(out, "%lld at most", (long long)p->compared_ranks);
    else
        text_puts(out, "none");
    double relative = p->setup->cost.device_jitter;
    if (relative > 0) {
        text_printf(out, ", and jitter of %.2g %% a kernel adds ", 100 * relative);
        units_put(out, UNIT_SECONDS, p->jitter_s);
    } else {
        text_puts(out, ", and jitter between ranks was not measured");
    }
}

/* Appends that costs are of a device that is much faster or slower than the cluster's. */
static void print_other_device(struct text *out, const struct setup *setup)
{
    double costs = setup->cost.device_peak_flop_per_s, peak = setup->cluster.device.peak_flop_per_s;
    if (setup->cost.ideal || (costs < peak * OTHER_DEVICE && costs * OTHER_DEVICE > peak))
        return;
    text_printf(out, "%scosts are of %s (", out->size > 0 ? "; " : "", setup->cost.name);
    units_put(out, UNIT_FLOP_PER_S, costs);
    text_puts(out, " at peak), and the GPUs have ");
    units_put(out, UNIT_FLOP_PER_S, peak);
    text_puts(out, ": MFU and HFU are shares of that");
}

/* Appends that ranks of a ring, which --exact tells apart, were taken alike, and what that may cost. */
static void print_even(struct text *out, const struct prediction *p)
{
    text_printf(
        out, "%sthe %u ranks of the ring are taken as even: the step is within %g %% of --exact's",
        out->size > 0 ? "; " : "", p->sim.even_ranks, 100 * EVEN_BOUND);
}

void report_put_beware(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct intervals intervals = intervals_of(p);
    const struct interval *time = &intervals.of[RESIDUAL_TIME];
    double host = p->sim.step_s > 0 ? p->waterfall.cause_s[CAUSE_HOST] / p->sim.step_s : 0;
    if (r->warning != NULL)
        text_puts(out, r->warning);
    print_other_device(out, p->setup);
    /* Where steps were measured on the device, their errors say what its costs are worth. */
    if (p->extrapolated_share >= EXTRAPOLATED_SHOWN &&
        (isnan(time->spread) || time->is_new[TRAIT_DEVICE])) {
        text_printf(out, "%s%.0f %% of compute time lies outside calibration",
                    out->size > 0 ? "; " : "", 100 * p->extrapolated_share);
        if (p->extrapolated.size > 0)
            text_printf(out, ": %s", p->extrapolated.data);
    }
    if (host > HOST_DECIDES && p->checkpoints_cost_host) {
        text_printf(out,
                    "%sthe host decides %.0f %% of the step: %g ms per checkpoint on the host, "
                    "fitted to runs of >= 8K tokens a GPU: docs/accuracy.md",
                    out->size > 0 ? "; " : "", 100 * host, 1e3 * p->profile->host_per_checkpoint_s);
    }
    if (p->sim.even_ranks > 0)
        print_even(out, p);
    if (p->beyond_compared)
        print_scale(out, p);
}

static void print_beware(struct text *out, const struct report *r)
{
    struct text all = {0};
    report_put_beware(&all, r);
    if (all.size > 0)
        text_printf(out, "%-11s%s\n", "beware", all.data);
    text_release(&all);
}

/* Tokens of a training, in the units that --tokens takes. */
static void put_total(struct text *out, double tokens)
{
    double unit = tokens >= 1e12 ? 1e12 : tokens >= 1e9 ? 1e9 : 1;
    text_put_double(out, tokens / unit);
    text_puts(out, unit == 1e12 ? "T" : unit == 1e9 ? "B" : "");
}

static void print_training(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    if (!(r->total_tokens > 0))
        return;
    double steps = ceil(r->total_tokens / prediction_tokens(p)), seconds = steps * p->sim.step_s;
    double hours = seconds / 3600 * prediction_gpus(p);
    text_printf(out, "%-11s", "training");
    put_total(out, r->total_tokens);
    text_printf(out, " tokens in %.0f steps: %.2f days, %.0f GPU-hours", steps, seconds / 86400,
                hours);
    if (r->price > 0)
        text_printf(out, ", %.0f at %g an hour", hours * r->price, r->price);
    text_putc(out, '\n');
}

static void put_left_out(struct text *out, const struct alternative *best)
{
    if (best->left_out > 0)
        text_printf(out, "; %zu more would each take as long as this prediction", best->left_out);
}

static void print_next(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct alternative *best = r->best;
    if (best == NULL)
        return;
    text_printf(out, "%-11s", "next");
    if (best->ideal_step_s > 0 && strcmp(p->choices.profile->name, "ideal") != 0) {
        text_puts(out, "profile ideal: ");
        report_put_time(out, best->ideal_step_s, p->sim.step_s);
        double share = 100 * (1 - best->ideal_step_s / p->sim.step_s);
        text_printf(out,
                    share >= 0 ? " (%.1f %% of the step is this implementation); "
                               : " (%.1f %% more than this implementation); ",
                    fabs(share));
    }
    if (best->options[0] == '\0') {
        text_printf(out,
                    p->verdict.fits ? "none of %zu other options is faster"
                                    : "none of %zu other options makes it fit",
                    best->tried);
        put_left_out(out, best);
        text_putc(out, '\n');
        return;
    }
    text_printf(out, "%s: ", best->options);
    if (best->step_s > 0) {
        text_puts(out, "step ");
        report_put_time(out, best->step_s, p->sim.step_s);
        if (p->verdict.fits)
            text_printf(out, " (%.1f %% less)", 100 * (1 - best->step_s / p->sim.step_s));
        text_puts(out, ", ");
    }
    text_printf(out, "%s ", prediction_limit_name(best->verdict.limit));
    verdict_print(out, &best->verdict, best->verdict.limit);
    text_puts(out, best->verdict.fits ? "" : "; still too much");
    put_left_out(out, best);
    text_putc(out, '\n');
}

void report_print_notes(struct text *out, const struct report *report)
{
    const struct intervals intervals = intervals_of(report->prediction);
    intervals_put_line(out, &intervals);
    print_beware(out, report);
    print_training(out, report);
    print_next(out, report);
}
