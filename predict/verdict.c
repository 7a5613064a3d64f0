#include "predict/verdict.h"

#include "base/units.h"
#include "schedule/reserved/reserved.h"

#include <float.h>
#include <math.h>

const char *prediction_limit_name(enum limiting_memory_kind limit)
{
    static const char *const names[LIMIT_COUNT] = {"device memory", "host memory"};
    return names[limit];
}

double verdict_margin_bytes(const struct verdict *verdict, enum limiting_memory_kind limit)
{
    if (verdict->available_bytes[limit] == UINT64_MAX)
        return DBL_MAX;
    return (double)verdict->available_bytes[limit] - (double)verdict->needed_bytes[limit];
}

double verdict_missing_bytes(const struct verdict *verdict)
{
    double sum = 0;
    for (int limit = 0; limit < LIMIT_COUNT; limit++)
        sum += fmax(0, -verdict_margin_bytes(verdict, (enum limiting_memory_kind)limit));
    return sum;
}

static bool is_nearly_full(const struct verdict *v, enum limiting_memory_kind limit)
{
    return v->available_bytes[limit] != UINT64_MAX &&
           fabs(verdict_margin_bytes(v, limit)) <
               RESERVED_VERDICT_MARGIN_SHARE * (double)v->available_bytes[limit];
}

const char *const verdict_words[VERDICT_WORD_COUNT] = {"Fits", "Probably fits",
                                                       "Probably does not fit", "Does not fit"};

enum verdict_word verdict_word(double p)
{
    return p >= VERDICT_SURE_PROBABILITY       ? VERDICT_FITS
           : p >= 0.5                          ? VERDICT_PROBABLY_FITS
           : p >= 1 - VERDICT_SURE_PROBABILITY ? VERDICT_PROBABLY_FAILS
                                               : VERDICT_FAILS;
}

void verdict_put_probability(struct text *out, double probability)
{
    const int tenths = (int)lround(10 * probability);
    if (probability >= VERDICT_SURE_PROBABILITY || probability < 1 - VERDICT_SURE_PROBABILITY)
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

bool verdict_is_full_by_cache(const struct verdict *v)
{
    return v->fits && v->is_by_reserved_memory && !v->is_tight && is_nearly_full(v, LIMIT_DEVICE);
}

void verdict_put_probability_or_cache(struct text *out, const struct verdict *v)
{
    struct text odds = {0};
    verdict_put_probability(&odds, v->fits_probability);
    if (odds.size > 0) {
        text_printf(out, "; it fits %s", odds.data);
    } else if (verdict_is_full_by_cache(v) && v->limiting_memory == LIMIT_DEVICE) {
        text_puts(out, "; ");
        units_put_gib(out, (double)v->cache_bytes);
        text_puts(out, " of it are cache, which the allocator gives back when it must");
    }
    text_release(&odds);
}

double verdict_needed_share(const struct verdict *verdict, enum limiting_memory_kind limit)
{
    if (verdict->available_bytes[limit] == UINT64_MAX)
        return 0;
    return (double)verdict->needed_bytes[limit] /
           (double)(verdict->available_bytes[limit] > 0 ? verdict->available_bytes[limit] : 1);
}

void verdict_print(struct text *out, const struct verdict *v, enum limiting_memory_kind limit)
{
    double margin = verdict_margin_bytes(v, limit);
    text_puts(out, "needs ");
    units_put_gib(out, (double)v->needed_bytes[limit]);
    if (margin == DBL_MAX) {
        text_puts(out, " of infinite memory");
        return;
    }
    text_puts(out, " of ");
    units_put_gib(out, (double)v->available_bytes[limit]);
    text_puts(out, " (");
    units_put_gib(out, fabs(margin));
    text_puts(out, margin < 0 ? " too much)" : " free)");
}
