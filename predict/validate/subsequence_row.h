/* predict/validate/subsequence_row.h: predicts published bytes of saved activations, of a sequence in all layers or of
 * its first and last subsequence in one layer, and the seconds to copy the latter to the host. */
#ifndef PREDICT_VALIDATE_SUBSEQUENCE_ROW_H
#define PREDICT_VALIDATE_SUBSEQUENCE_ROW_H

#include "base/diag.h"
#include "predict/setup/setup.h"
#include "traces/measurements.h"

#include <stdbool.h>

/* Returns whether a metric is about saved activations or about subsequences. */
bool subsequence_predicts_metric(enum measurement_metric metric);

/* Predicts the figure of a row for whose metric subsequence_predicts_metric() is true, in bytes or seconds. The setup's
 * request has the tokens of the sequence; for a figure about a subsequence, it also has the number of subsequences and
 * how they are cut. Activations are those of one rank without recomputation, by profile megatron. */
enum status subsequence_predict_row_figure(double *value, const struct setup *setup,
                                           enum measurement_metric metric, struct diag *diag);

#endif
