#include "predict/verdict.h"

#include "base/units.h"
#include "schedule/reserved/reserved.h"

#include <float.h>
#include <math.h>

const char *prediction_limit_name(enum prediction_limit limit)
{
    static const char *const names[LIMIT_COUNT] = {"device memory", "host memory"};
    return names[limit];
}

double verdict_margin(const struct verdict *verdict, enum prediction_limit limit)
{
    if (verdict->available[limit] == UINT64_MAX)
        return DBL_MAX;
    return (double)verdict->available[limit] - (double)verdict->needed[limit];
}

double verdict_missing(const struct verdict *verdict)
{
    double sum = 0;
    for (int limit = 0; limit < LIMIT_COUNT; limit++)
        sum += fmax(0, -verdict_margin(verdict, (enum prediction_limit)limit));
    return sum;
}

static bool is_near(const struct verdict *v, enum prediction_limit limit)
{
    return v->available[limit] != UINT64_MAX &&
           fabs(verdict_margin(v, limit)) < RESERVED_ERROR * (double)v->available[limit];
}

const char *const verdict_words[VERDICT_WORD_COUNT] = {"Fits", "Probably fits",
                                                       "Probably does not fit", "Does not fit"};

enum verdict_word verdict_word(double p)
{
    return p >= VERDICT_SURE       ? VERDICT_FITS
           : p >= 0.5              ? VERDICT_PROBABLY
           : p >= 1 - VERDICT_SURE ? VERDICT_HARDLY
                                   : VERDICT_FAILS;
}

void verdict_put_odds(struct text *out, double probability)
{
    const int tenths = (int)lround(10 * probability);
    if (probability >= VERDICT_SURE || probability < 1 - VERDICT_SURE)
        return;
    if (fabs(probability - 0.75) < 0.025)
        text_puts(out, "in 3 of 4 cases");
    else if (fabs(probability - 0.25) < 0.025)
        text_puts(out, "in 1 of 4 cases");
    else if (tenths == 5)
        text_puts(out, "in 1 of 2 cases");
    else
        text_printf(out, "in %d of 10 cases", tenths < 2 ? 2 : tenths > 8 ? 8 : tenths);
}

bool verdict_is_cached(const struct verdict *v)
{
    return v->fits && v->by_reserved && !v->is_tight && is_near(v, LIMIT_DEVICE);
}

void verdict_put_odds_or_cache(struct text *out, const struct verdict *v)
{
    struct text odds = {0};
    verdict_put_odds(&odds, v->fits_probability);
    if (odds.size > 0) {
        text_printf(out, "; it fits %s", odds.data);
    } else if (verdict_is_cached(v) && v->limit == LIMIT_DEVICE) {
        text_puts(out, "; ");
        units_put_gib(out, (double)v->cache);
        text_puts(out, " of it are cache, which the allocator gives back when it must");
    }
    text_release(&odds);
}

double verdict_share(const struct verdict *verdict, enum prediction_limit limit)
{
    if (verdict->available[limit] == UINT64_MAX)
        return 0;
    return (double)verdict->needed[limit] /
           (double)(verdict->available[limit] > 0 ? verdict->available[limit] : 1);
}

void verdict_print(struct text *out, const struct verdict *v, enum prediction_limit limit)
{
    double margin = verdict_margin(v, limit);
    text_puts(out, "needs ");
    units_put_gib(out, (double)v->needed[limit]);
    if (margin == DBL_MAX) {
        text_puts(out, " of infinite memory");
        return;
    }
    text_puts(out, " of ");
    units_put_gib(out, (double)v->available[limit]);
    text_puts(out, " (");
    units_put_gib(out, fabs(margin));
    text_puts(out, margin < 0 ? " too much)" : " free)");
}
