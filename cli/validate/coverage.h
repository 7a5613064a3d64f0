/* cli/validate/coverage.h: whether intervals hold: the share of runs inside, by feature and by laboratory, both for
 * errors at first sight and for those of today's model. Also whether the probabilities of fitting hold, by bins. */
#ifndef CLI_VALIDATE_COVERAGE_H
#define CLI_VALIDATE_COVERAGE_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/validate/external_validation.h"
#include "predict/validate/validation.h"

/* A class of runs, and how many of them are within their intervals. */
struct coverage {
    const char *name; /* name of a feature or of a laboratory */
    size_t run_count, inside_count, laboratory_count;
    /* the share of runs inside their intervals in each laboratory, as a mean over laboratories */
    double mean_laboratory_share;
    double half_width; /* median of (high - low) / 2 over the predicted value */
};

/* Fills out[0..coverage_max_classes()) with the classes that have runs, the class "all" first, and returns their
 * number. first: a run counts with its error when it was first predicted (or the present error, if that is not known),
 * and its interval comes from the rows of other laboratories. Else: a run counts with its present error, and intervals
 * come from all rows. */
size_t coverage_make(struct coverage *out, const struct residuals *runs,
                     const struct evidence *evidence, bool first);
size_t coverage_max_classes(const struct residuals *runs);

/* Appends tables of coverage by the number of unmeasured features, by feature and by laboratory. */
void coverage_print(struct text *out, const struct residuals *runs,
                    const struct evidence *evidence);

/* Appends how well the predicted probability to fit is calibrated, over all runs that ran or ran out of memory: by bins
 * of it, and with the Brier score. */
void coverage_print_fits(struct text *out, const struct validation *figures,
                         const struct external_validation *steps);

#endif
