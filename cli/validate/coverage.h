/* cli/validate/coverage.h: how often intervals contain the measured value, by feature and by laboratory: for the
 * errors of today's model, and for errors at first sight, which are those when a run was first predicted. Also which
 * share of runs fits, by the probability with which they were predicted to fit. */
#ifndef CLI_VALIDATE_COVERAGE_H
#define CLI_VALIDATE_COVERAGE_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/validate/external_validation.h"
#include "predict/validate/validation.h"

/* A class of runs, and how many of them are within their intervals. A class has all runs, those of one laboratory, or
 * those whose intervals are wider because certain features, or a certain number of features, were never measured. A run
 * may be in several classes. */
struct coverage {
    const char *name; /* as the table prints it: "all", "pipelines", or the name of a laboratory */
    size_t run_count, inside_count, laboratory_count;
    /* the share of runs inside their intervals in each laboratory, as a mean over laboratories */
    double mean_laboratory_share;
    double median_half_width_share; /* median of (high - low) / 2 over the predicted value */
};

/* Fills out[0..coverage_max_class_count()) with the classes that have runs, the class "all" first, and returns their
 * number. If `first`, a run counts with its error at first sight (with its present one, if that is not known), and its
 * interval is made from the rows of other laboratories. Otherwise it counts with its present error, and its interval is
 * made from all rows. */
size_t coverage_make(struct coverage *out, const struct residuals *runs,
                     const struct evidence *evidence, bool first);
size_t coverage_max_class_count(const struct residuals *runs);

/* Appends two tables of coverage, of the present errors and of those at first sight. Each has the classes of
 * coverage_make(). */
void coverage_print(struct text *out, const struct residuals *runs,
                    const struct evidence *evidence);

/* Appends which share of runs fits, by the probability with which they were predicted to fit, and the Brier score of
 * these probabilities. The runs are those that ran or ran out of memory. */
void coverage_print_verdict_reliability(struct text *out, const struct validation *figures,
                                        const struct external_validation *steps);

#endif
