/* cli/validate/run_residuals.h: the residuals of validated runs, and how often intervals hold the measured value.
 *
 * A row per run of a whole step: of published figures tokens per second, MFU and step times that count, of one run
 * once; and all measured training steps. Times of a part of the model are left out, for an operator's error is no
 * step's. Memory is that of the sources whose figures
 * follow from the configurations that they state, and of rows that ran with the very options that are predicted. */
#ifndef CLI_VALIDATE_RUN_RESIDUALS_H
#define CLI_VALIDATE_RUN_RESIDUALS_H

#include "predict/validate/external_validation.h"
#include "predict/validate/validation.h"
#include "traces/residuals.h"

/* Adds the rows of both kinds of file. */
void run_residuals_add(struct residuals *residuals, const struct validation *validation,
                       const struct external_validation *external);

/* Appends the errors of the runs by source, device, framework and scale, with the coverage and the median
 * half-width of their intervals, which follow from the residuals of `from` without the source of the run. */
void run_residuals_print(struct text *out, const struct residuals *runs,
                         const struct residuals *from);

#endif
