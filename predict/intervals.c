#include "predict/intervals.h"
#include "schedule/choices/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    return like;
}

struct interval_run similarity_run(const struct similarity *like)
{
    return (struct interval_run){like->device, like->framework, like->several};
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
        interval_put_from(out, interval, similarity_run(&intervals->like));
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
