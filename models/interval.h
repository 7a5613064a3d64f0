/* models/interval.h: the 90 % interval of a prediction, from the residuals of measured runs of the same class.
 *
 * Rows of one source share one bias, so sources are counted and not rows. m(s) is the mean of the squares of the
 * residuals of source s; it estimates bias^2 + scatter^2 of a run that another source would measure. The variance of
 * a class of runs is
 *
 *     v(class) = (sum of m(s) over the n sources with rows in it + 2 v(wider class)) / (n + 2)
 *
 * Classes narrow in steps: all runs, those on the device, those of the framework among these, and those of the scale
 * among these; a class with few sources keeps most of the wider class's variance. If no source measured a device,
 * framework or scale, its class is the wider one, with the variance of the mean residual between the measured
 * devices, frameworks or scales added. The interval is exp(-spread) to exp(+spread) times the prediction, spread =
 * t(0.95, sources) sqrt(v). Squares are taken about zero, because the prediction is not corrected for the mean
 * residual. */
#ifndef MODELS_INTERVAL_H
#define MODELS_INTERVAL_H

#include "base/text.h"
#include "traces/residuals.h"

#include <stdbool.h>
#include <stddef.h>

/* The traits by which runs are grouped. */
enum interval_trait { TRAIT_DEVICE, TRAIT_FRAMEWORK, TRAIT_SCALE, TRAIT_COUNT };

/* The run that is predicted; texts as in struct residual. */
struct interval_run {
    const char *device, *framework;
    bool several;
};

struct interval {
    double spread;             /* of the logarithm; NAN: there is no interval */
    size_t runs, sources;      /* of the narrowest class that has any */
    bool is_like[TRAIT_COUNT]; /* traits that the runs of this class share with the predicted run */
    bool is_new[TRAIT_COUNT];  /* traits that no run has */
};

/* Returns the interval of a run from the residuals of the set ""; without: a source whose rows are left out, or NULL.
 * There is no interval where fewer than two sources are left. */
struct interval interval_make(const struct residuals *residuals, enum residual_of of,
                              struct interval_run run, const char *without);

/* Return the ends of the interval of a predicted value; NAN: there is none. */
double interval_low(const struct interval *interval, double predicted);
double interval_high(const struct interval *interval, double predicted);

/* Appends a description of the runs on which an interval rests: "22 runs of 1 source on a100, with profile deepspeed,
 * on several nodes", "150 runs of 8 sources on several nodes, none of them with profile megatron, and nothing was
 * measured on h200". */
void interval_put_from(struct text *out, const struct interval *interval, struct interval_run run);

#endif
