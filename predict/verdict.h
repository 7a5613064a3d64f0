/* predict/verdict.h: whether the memory that a configuration needs is available, and by which margin. */
#ifndef PREDICT_VERDICT_H
#define PREDICT_VERDICT_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum prediction_limit { LIMIT_DEVICE, LIMIT_HOST, LIMIT_COUNT };

/* Bytes needed and available: of one device, and of one node's host. */
struct verdict {
    bool fits; /* what is needed is at most what is available: fits_probability >= 0.5 */
    double
        fits_probability; /* by the interval of memory: the lowest of both memories, whose errors are one error */
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
/* What is said of a probability: "Fits" from VERDICT_SURE on, "Probably fits" from 0.5, "Probably does not fit" from 1 -
 * VERDICT_SURE, else "Does not fit". */
enum verdict_word {
    VERDICT_FITS,
    VERDICT_PROBABLY,
    VERDICT_HARDLY,
    VERDICT_FAILS,
    VERDICT_WORD_COUNT
};
#define VERDICT_SURE 0.9
enum verdict_word verdict_word(double fits_probability);
extern const char *const verdict_words[VERDICT_WORD_COUNT];

/* Appends the odds of an unsure verdict, "in 3 of 4 cases", "in 6 of 10 cases"; nothing for a sure one. */
void verdict_put_odds(struct text *out, double probability);

/* True if it fits, and a device seems full only because of its allocator's cache. */
bool verdict_is_cached(const struct verdict *verdict);
/* Appends the odds of an unsure verdict, or how much of a device that seems full is cache, or nothing. */
void verdict_put_odds_or_cache(struct text *out, const struct verdict *verdict);
/* Returns the needed share of a memory; above 1 it does not fit. */
double verdict_share(const struct verdict *verdict, enum prediction_limit limit);
/* Returns available - needed, in bytes; DBL_MAX where the memory is infinite. */
double verdict_margin(const struct verdict *verdict, enum prediction_limit limit);
/* Returns the missing bytes, summed over all memories; 0: it fits. */
double verdict_missing(const struct verdict *verdict);

const char *prediction_limit_name(enum prediction_limit limit);

#endif
