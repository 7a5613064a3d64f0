/* cli/validate/run_residuals.h: the residuals of validated runs, and how often intervals contain the measured value.
 *
 * A run of a whole step has at most one row. A run of published figures is represented by the first of its figures that
 * counts in a mean and is tokens per second, MFU or the time of a step. Times of a part of the model are left out,
 * since the error of an operator is not that of a step. Memory is used from sources whose figures follow from the
 * configurations that they state, and from rows that ran with exactly the options that are predicted. */
#ifndef CLI_VALIDATE_RUN_RESIDUALS_H
#define CLI_VALIDATE_RUN_RESIDUALS_H

#include "models/interval.h"
#include "predict/validate/external_validation.h"
#include "predict/validate/validation.h"
#include "traces/residuals.h"

/* Adds the rows of both kinds of file. Their errors at first sight are taken from the file that ships with the
 * program. */
enum status run_residuals_add_runs(struct residuals *residuals, const struct validation *validation,
                                   const struct external_validation *external, struct diag *diag);

/* Appends the errors of the runs' times by source, device, framework and scale, and those of their memory by source.
 * Each line has the share of runs inside their intervals and the median half width of these. A run's interval is
 * made without the rows of the run's laboratory. */
void run_residuals_print(struct text *out, const struct residuals *runs,
                         const struct evidence *evidence);

#endif
