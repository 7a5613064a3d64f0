#include "predict/intervals.h"
#include "models/work.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Fills the features that follow from choices. */
static void add_choices(struct similarity *like, const struct prediction *p)
{
    const struct choices *c = &p->choices;
    const bool alone = c->attention == CHOICE_ATTENTION_LOCAL;
    double tokens = (double)c->micro_batch * (double)c->seq, split = (double)c->cp * c->hp * c->tp;
    like->tp = c->tp;
    like->pp = c->pp;
    like->gpus = c->ranks;
    like->seq_len = c->seq;
    like->sequences = c->global_batch;
    like->parameters = transformer_parameters(c->model);
    like->host_optimizer = c->optimizer == CHOICE_OPTIMIZER_HOST;
    like->layer_s = 2 * (double)like->parameters / (double)c->model->layers * tokens / split /
                    p->setup->cluster.device.peak_flop_per_s;
    snprintf(like->attention, sizeof like->attention, "%s",
             attention_impl_name((enum attention_impl)c->attention_impl));
    snprintf(like->context, sizeof like->context, "%s",
             alone ? "none" : attention_names[c->attention]);
    snprintf(like->activations, sizeof like->activations, "%s", activations_names[c->activations]);
}

struct similarity similarity_of(const struct prediction *p)
{
    struct similarity like = {.several = p->setup->cluster.nodes > 1};
    const char *device = p->setup->cluster.device.name;
    const char *framework = p->profile != NULL ? p->profile->name : "none";
    bool ideal = p->setup->cost.ideal || p->setup->cluster.ideal || strcmp(framework, "ideal") == 0;
    if (ideal || p->choices.scope != SCOPE_STEP || device == NULL)
        return like;
    snprintf(like.device, sizeof like.device, "%.*s", (int)strcspn(device, "-_ "), device);
    snprintf(like.framework, sizeof like.framework, "%s", framework);
    if (p->has_choices)
        add_choices(&like, p);
    return like;
}

struct interval_run similarity_run(const struct similarity *like)
{
    return (struct interval_run){like->device, like->framework, like->several};
}

struct residual similarity_residual(const struct similarity *like)
{
    return (struct residual){.laboratory = "",
                             .set = "",
                             .device = like->device,
                             .framework = like->framework,
                             .attention = like->attention,
                             .context = like->context,
                             .activations = like->activations,
                             .host_optimizer = like->host_optimizer,
                             .several = like->several,
                             .tp = like->tp,
                             .pp = like->pp,
                             .gpus = like->gpus,
                             .seq_len = like->seq_len,
                             .sequences = like->sequences,
                             .parameters = like->parameters,
                             .layer_s = like->layer_s,
                             .value = {NAN, NAN},
                             .first = NAN};
}

/* The error of a step that is predicted from numbers measured on its own machine, as a standard deviation of the
 * logarithm: docs/accuracy/intervals.md, "Machines that were measured"; tests/cli/recorded_steps.cmd checks it. */
static const double OF_MODEL = 0.1;

/* Two-sided 90 % of a normal. */
static const double NORMAL_90 = 1.645;

/* Returns the spread of the interval of a step on a machine some of whose numbers were measured or estimated.
 * published: the spread of a step that rests on calibrated numbers of presets. The errors of measured numbers are
 * independent, part by part; those of all others are taken as one common error. */
static double spread_of_machine(const struct spreads *spreads, double published)
{
    double of_model = (1 - spreads_unmeasured(spreads)) * OF_MODEL;
    double squares = of_model * of_model, others = 0;
    for (int part = 0; part < SPREAD_PART_COUNT; part++) {
        squares += spreads->measured[part] * spreads->measured[part];
        others += spreads->others[part] * hypot(published, NORMAL_90 * spreads->estimated[part]);
    }
    return hypot(NORMAL_90 * sqrt(squares), others);
}

struct intervals intervals_of(const struct prediction *p)
{
    struct intervals intervals = {.like = similarity_of(p),
                                  .of = {{.spread = NAN}, {.spread = NAN}}};
    struct residuals residuals = {0};
    struct diag unread = {0};
    if (intervals.like.device[0] != '\0' &&
        residuals_load_shipped(&residuals, &unread) == STATUS_OK)
        for (int i = 0; i < RESIDUAL_COUNT; i++)
            intervals.of[i] = interval_make(&residuals, (enum residual_of)i,
                                            similarity_run(&intervals.like), NULL);
    struct interval *time = &intervals.of[RESIDUAL_TIME];
    bool judged = !time->is_new[TRAIT_DEVICE]; /* published steps judge estimates too */
    bool own = spread_is_known(&p->setup->cost, &p->setup->cluster) ||
               (!judged && spreads_matter(p->setup));
    if (own && !p->spreads.known)
        time->spread = NAN;
    if (own && !isnan(time->spread)) {
        intervals.spreads = p->spreads;
        for (int part = 0; part < SPREAD_PART_COUNT && judged; part++)
            intervals.spreads.estimated[part] = 0;
        time->spread = spread_of_machine(&intervals.spreads, time->spread);
    }
    diag_release(&unread);
    residuals_release(&residuals);
    return intervals;
}

bool intervals_known(const struct intervals *intervals, enum residual_of of)
{
    return !isnan(intervals->of[of].spread);
}

void intervals_put_beside(struct text *out, const char *before, const struct interval *interval,
                          double value, double unit)
{
    if (isnan(interval->spread))
        return;
    text_puts(out, before);
    intervals_put(out, interval, value, unit);
    text_putc(out, ')');
}

/* Appends a value with three digits, without an exponent. */
static void put_rounded(struct text *out, double value)
{
    int digits = value > 0 ? (int)floor(log10(value)) : 0;
    text_printf(out, "%.*f", digits >= 2 ? 0 : digits > -8 ? 2 - digits : 10, value);
}

void intervals_put_ends(struct text *out, double low, double high)
{
    put_rounded(out, low);
    text_puts(out, " to ");
    put_rounded(out, high);
}

void intervals_put(struct text *out, const struct interval *interval, double value, double unit)
{
    intervals_put_ends(out, interval_low(interval, value) / unit,
                       interval_high(interval, value) / unit);
}

/* Parts that take less of a step than this, or that move it by less, are not named. */
static const double NAMED = 0.005, NAMED_CHANGE = 0.0005;

static void put_measured(struct text *out, const struct spreads *spreads)
{
    size_t count = 0;
    text_printf(out, "%.0f %% of the step goes with figures that were measured on this machine",
                100 * (1 - spreads_unmeasured(spreads)));
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spreads->measured[part] > NAMED_CHANGE)
            text_printf(out, "%s%s %.2g %%",
                        count++ == 0 ? ", whose spreads move it by this much: " : ", ",
                        spread_part_name((enum spread_part)part), 100 * spreads->measured[part]);
}

static void put_others(struct text *out, const struct spreads *spreads)
{
    size_t count = 0;
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spreads->others[part] > NAMED)
            text_printf(out, "%s%s%s (%.0f %% of it)", count++ == 0 ? "; not measured are " : ", ",
                        spreads->spread[part] > 0 ? "other figures of " : "",
                        spread_part_name((enum spread_part)part), 100 * spreads->others[part]);
}

/* Appends the largest error of an estimate that a part of the step rests on. */
static void put_estimates(struct text *out, const struct spreads *spreads)
{
    double most = 0;
    for (int part = 0; part < SPREAD_PART_COUNT; part++)
        if (spreads->others[part] > NAMED)
            most = fmax(most, spreads->estimated[part]);
    if (most > 0)
        text_printf(out, ", and by the error of %.0f %% that the device's file gives its estimates",
                    100 * most);
}

void intervals_put_evidence(struct text *out, const struct intervals *intervals,
                            enum residual_of of)
{
    const struct spreads *spreads = &intervals->spreads;
    bool measured = of == RESIDUAL_TIME && spreads_measured(spreads);
    if (measured) {
        put_measured(out, spreads);
        if (spreads_unmeasured(spreads) < NAMED)
            return;
        put_others(out, spreads);
        text_puts(out, ", which are judged by ");
    }
    interval_put_from(out, &intervals->of[of], similarity_run(&intervals->like));
    if (of == RESIDUAL_TIME)
        put_estimates(out, spreads);
}

void intervals_put_from(struct text *out, const struct intervals *intervals)
{
    static const char *const names[RESIDUAL_COUNT] = {"time", "memory"};
    bool first = true;
    for (int i = 0; i < RESIDUAL_COUNT; i++) {
        const struct interval *interval = &intervals->of[i];
        if (!intervals_known(intervals, (enum residual_of)i))
            continue;
        text_printf(out, "%s%s %+.0f to %+.0f %%, ", first ? "" : "; ", names[i],
                    100 * (interval_low(interval, 1) - 1), 100 * (interval_high(interval, 1) - 1));
        intervals_put_evidence(out, intervals, (enum residual_of)i);
        first = false;
    }
}

void intervals_put_line(struct text *out, const struct intervals *intervals)
{
    struct text from = {0};
    intervals_put_from(&from, intervals);
    if (from.size > 0)
        text_printf(out, "%-11s90 %%: %s\n", "interval", from.data);
    text_release(&from);
}
