/* predict/verdict.h: whether the memory that a configuration needs is available, and by which margin. */
#ifndef PREDICT_VERDICT_H
#define PREDICT_VERDICT_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum limiting_memory_kind { LIMIT_DEVICE, LIMIT_HOST, LIMIT_COUNT };

/* The verdict on whether a step fits: the bytes that it needs and those that are available, on one device and on the
 * host of one node. */
struct verdict {
    /* the needed bytes are at most the available ones; fits_probability is then at least 0.5, unless the user's own
     * runs shift it */
    bool fits;
    /* by the interval of memory: the lower of the probabilities of device and host, whose errors are assumed to be the
     * same. 0 or 1, as `fits` says, unless is_by_reserved_memory is set */
    double fits_probability;
    /* the memory of which the larger share is needed; of equal shares the device's */
    enum limiting_memory_kind limiting_memory;
    uint64_t needed_bytes[LIMIT_COUNT];
    uint64_t available_bytes[LIMIT_COUNT]; /* UINT64_MAX: infinite */
    /* the device's needed bytes are those that the framework's allocator reserves */
    bool is_by_reserved_memory;
    bool is_tight; /* the device's memory suffices, but would not if it were a little smaller */
    /* among the device's needed bytes: those in which there is no tensor, and which the allocator gives back before it
     * fails */
    uint64_t cache_bytes;
    /* among the device's needed bytes: buffers of communicators, whose size depends on which ranks are neighbours */
    uint64_t nccl_bytes;
};

/* Appends "needs 61.2 GiB of 79.1 GiB (17.9 GiB free)" for one of the memories, or "(5.0 GiB too much)", or "of
 * infinite memory". */
void verdict_print(struct text *out, const struct verdict *verdict,
                   enum limiting_memory_kind limit);
/* The words for a probability: "Fits" from VERDICT_SURE_PROBABILITY on, "Probably fits" from 0.5, "Probably does not
 * fit" from 1 - VERDICT_SURE_PROBABILITY, else "Does not fit". */
enum verdict_word {
    VERDICT_FITS,
    VERDICT_PROBABLY_FITS,
    VERDICT_PROBABLY_FAILS,
    VERDICT_FAILS,
    VERDICT_WORD_COUNT
};
#define VERDICT_SURE_PROBABILITY 0.9
enum verdict_word verdict_word(double fits_probability);
extern const char *const verdict_words[VERDICT_WORD_COUNT];

/* Appends the odds if the verdict is not sure, as "in 3 of 4 cases"; appends nothing for a sure verdict. */
void verdict_put_probability(struct text *out, double probability);

/* True if the step fits, and the device seems nearly full only because its allocator has a cache. */
bool verdict_is_full_by_cache(const struct verdict *verdict);
/* If it is not sure whether the step fits, appends the odds. If it is sure, and the limiting memory is the device's,
 * which seems nearly full only because its allocator has a cache, appends how many bytes are cache. Appends nothing
 * otherwise. */
void verdict_put_probability_or_cache(struct text *out, const struct verdict *verdict);
/* Returns needed / available bytes of a memory; if it is above 1, the step does not fit. 0: the memory is infinite. */
double verdict_needed_share(const struct verdict *verdict, enum limiting_memory_kind limit);
/* Returns available - needed in bytes; DBL_MAX for an infinite memory. */
double verdict_margin_bytes(const struct verdict *verdict, enum limiting_memory_kind limit);
/* Returns the sum over all memories of the bytes that are missing; 0 if the step fits. */
double verdict_missing_bytes(const struct verdict *verdict);

const char *prediction_limit_name(enum limiting_memory_kind limit);

#endif
