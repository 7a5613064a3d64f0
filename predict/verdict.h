/* predict/verdict.h: whether the memory that a configuration needs is available, and by which margin. */
#ifndef PREDICT_VERDICT_H
#define PREDICT_VERDICT_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum prediction_limit { LIMIT_DEVICE, LIMIT_HOST, LIMIT_COUNT };

/* Bytes needed and available: of one device, and of one node's host. */
struct verdict {
    bool fits;
    enum prediction_limit limit; /* the one that fails, or the one nearer to its end */
    uint64_t needed[LIMIT_COUNT];
    uint64_t available[LIMIT_COUNT]; /* UINT64_MAX: infinite */
    bool by_reserved;                /* the device's figure is a framework's */
    bool tight;                      /* it fits, but not with a little less device memory */
    /* bytes of the device's figure that hold no tensor, and that the allocator gives back rather than fail */
    uint64_t cache;
};

/* Appends "needs 61.2 GiB of 79.1 GiB (17.9 GiB free)" of a limit. */
void verdict_print(struct text *out, const struct verdict *verdict, enum prediction_limit limit);
/* True if the verdict is closer than the memory model's error: a memory is nearly full even without an allocator's
 * cache, or is too small by less than that error. */
bool verdict_close(const struct verdict *verdict);
/* True if it fits, and a device seems full only because of its allocator's cache. */
bool verdict_is_cached(const struct verdict *verdict);
/* Appends "; too close to call", or how much of a device that seems full is cache, or nothing. */
void verdict_put_close(struct text *out, const struct verdict *verdict);
/* Returns the needed share of a memory; above 1 it does not fit. */
double verdict_share(const struct verdict *verdict, enum prediction_limit limit);
/* Returns available - needed, in bytes; DBL_MAX where the memory is infinite. */
double verdict_margin(const struct verdict *verdict, enum prediction_limit limit);
/* Returns the missing bytes, summed over all memories; 0: it fits. */
double verdict_missing(const struct verdict *verdict);

const char *prediction_limit_name(enum prediction_limit limit);

#endif
