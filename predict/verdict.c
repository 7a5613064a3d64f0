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

bool verdict_close(const struct verdict *v)
{
    if (v->fits)
        return is_near(v, LIMIT_HOST) || (v->by_reserved ? v->tight : is_near(v, LIMIT_DEVICE));
    for (int limit = 0; limit < LIMIT_COUNT; limit++)
        if (verdict_margin(v, (enum prediction_limit)limit) < 0 &&
            !is_near(v, (enum prediction_limit)limit))
            return false;
    return true;
}

bool verdict_is_cached(const struct verdict *v)
{
    return v->fits && v->by_reserved && !v->tight && is_near(v, LIMIT_DEVICE);
}

void verdict_put_close(struct text *out, const struct verdict *v)
{
    if (verdict_close(v)) {
        text_puts(out, "; too close to call");
    } else if (verdict_is_cached(v) && v->limit == LIMIT_DEVICE) {
        text_puts(out, "; ");
        units_put_gib(out, (double)v->cache);
        text_puts(out, " of it are cache, which the allocator gives back when it must");
    }
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
