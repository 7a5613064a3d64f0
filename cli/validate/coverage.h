/* cli/validate/coverage.h: whether intervals hold: the share of runs inside, by feature and by laboratory, at first sight
 * and with today's model; and whether P(fits) holds, by bins. */
#ifndef CLI_VALIDATE_COVERAGE_H
#define CLI_VALIDATE_COVERAGE_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/validate/external_validation.h"
#include "predict/validate/validation.h"

/* A class of runs, and how many lie inside their intervals. */
struct coverage {
    const char *name; /* of a feature, or of a laboratory */
    size_t runs, inside, laboratories;
    double by_laboratory; /* mean over laboratories of their share inside */
    double half_width;    /* median of (high - low) / 2 over the predicted value */
};

/* Fills out[0..coverage_most()) with the classes that have runs, "all" first, and returns their number. first: of errors at
 * first sight, today's where there are none, each run by the rows of other laboratories; else of today's errors by all rows. */
size_t coverage_make(struct coverage *out, const struct residuals *runs,
                     const struct evidence *evidence, bool first);
size_t coverage_most(const struct residuals *runs);

/* Appends tables of coverage by number of unmeasured features, by feature and by laboratory. */
void coverage_print(struct text *out, const struct residuals *runs,
                    const struct evidence *evidence);

/* Appends the calibration of P(fits) over all runs that ran or ran out of memory: by bins, with the Brier score. */
void coverage_print_fits(struct text *out, const struct validation *figures,
                         const struct external_validation *steps);

#endif
