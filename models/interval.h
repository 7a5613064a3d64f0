/* models/interval.h: the 90 % interval of a prediction, derived from the measured runs that resemble it.
 *
 * A step whose features were all measured is off by a standard deviation s0 of r = log(measured / predicted). Each
 * feature that no measured run has adds its variance v(k) (traces/deviations.h):
 *
 *     s^2  = s0^2 + sum of v(k)
 *     low  = predicted x exp(-q s)                             q: Student's t, 5 degrees of freedom, 95 %
 *     high = predicted x exp(+q s (2 - s0^2 / s^2))            of times; of memory exp(+q s)
 *
 * What is unmeasured mostly slows a step, so that part of s counts double on the slow side. A measured run is one of
 * traces/published/residuals.csv whose source is off by at most 15 % (root mean square) today: a source that the model
 * does not explain measures nothing. docs/accuracy/intervals.md has the rules, their derivation and how they hold. */
#ifndef MODELS_INTERVAL_H
#define MODELS_INTERVAL_H

#include "base/diag.h"
#include "base/text.h"
#include "traces/deviations.h"
#include "traces/residuals.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The mechanisms of which a layout may consist. One with none of the first four has
 * MECHANISM_DATA_PARALLEL_ONLY. */
enum mechanism {
    MECHANISM_TENSOR,
    MECHANISM_PIPELINE,
    MECHANISM_CONTEXT, /* context parallelism of the kind that the run uses: rings, Ulysses, ... */
    MECHANISM_HOST_OPTIMIZER,
    MECHANISM_DATA_PARALLEL_ONLY, /* none of the others */
    MECHANISM_COUNT
};

/* The data from which intervals are made. All-zero: there are no intervals. */
struct evidence {
    struct residuals runs; /* measured runs of published sources */
    /* [runs] true if the run measures the figure and the model explains its source: the root mean square of the
     * source's errors is at most 15 %. evidence_mark_explained_runs() sets it. */
    bool *is_run_residual_explained[RESIDUAL_COUNT];
    /* the standard deviation that each unmeasured feature adds */
    struct deviations feature_standard_deviations;
    struct residuals own_runs; /* the user's own measured runs */
};

/* Loads the data that ships with the program. If the data folder does not have it, there are no intervals. */
enum status evidence_load_shipped(struct evidence *evidence, struct diag *diag);
/* Sets is_run_residual_explained from `runs`; call it again when `runs` has changed. */
void evidence_mark_explained_runs(struct evidence *evidence);
void evidence_release(struct evidence *evidence);

/* A feature of a run that no measured run has, with its variance. */
struct unmeasured_feature {
    uint8_t feature; /* enum interval_feature */
    /* enum mechanism, for FEATURE_MECHANISM, FEATURE_ELSEWHERE and FEATURE_EXCHANGE; else MECHANISM_COUNT */
    uint8_t mechanism;
    double variance;
};

enum { UNMEASURED_MAX = 12 };

/* Features with a smaller standard deviation are not named to the user: many intervals have such ones, because many
 * layers are slightly short. */
#define INTERVAL_NOTABLE_DEVIATION 0.05

/* An interval. The struct has no pointers, so it can be copied between processes. */
struct interval {
    /* logarithms of the two ends, each over the predicted value; NAN: there is no interval */
    double low, high;
    double log_standard_deviation; /* the standard deviation s of the logarithm */
    double log_shift_by_own_runs;  /* what the user's own runs add to the logarithms of both ends */
    uint32_t own_run_count;        /* number of these runs */
    bool device_is_measured;       /* some run was measured on the device */
    uint32_t unmeasured_count;
    struct unmeasured_feature unmeasured[UNMEASURED_MAX]; /* largest first */
};

/* Returns the interval of a prediction. run: its features; the residuals in it are not read. without: a laboratory
 * whose measured runs do not count; NULL: all count. */
struct interval interval_of_run(const struct evidence *evidence, enum residual_quantity of,
                                const struct residual *run, const char *without);

/* True if there is an interval: false if its ends are NAN. */
bool interval_is_known(const struct interval *interval);

/* Return the ends of the interval of a predicted value; NAN: there is none. */
double interval_low(const struct interval *interval, double predicted);
double interval_high(const struct interval *interval, double predicted);

/* Returns the interval of 1 / value: from that of a step's seconds it makes that of tokens per second. */
struct interval interval_of_reciprocal(const struct interval *interval);

/* Returns the probability that the bytes a step needs, predicted as `needed`, are at most `limit`. Without shift by own
 * runs it is 0.5 if the two are equal. Without an interval it is 1 if needed <= limit, else 0. */
double interval_fit_probability(const struct interval *interval, double needed, double limit);

/* Appends the name of an unmeasured feature of a run: "tensor parallelism with torchtitan", "fa3 on h200". */
void interval_put_unmeasured(struct text *out, const struct unmeasured_feature *unmeasured,
                             const struct residual *run);

#endif
