/* predict/validate/subsequence_row.h: predicts published bytes of saved activations, of a sequence in all layers or of
 * its first and last subsequence in one layer, and the seconds to copy the latter to the host. */
#ifndef PREDICT_VALIDATE_SUBSEQUENCE_ROW_H
#define PREDICT_VALIDATE_SUBSEQUENCE_ROW_H

#include "base/diag.h"
#include "base/text.h"
#include "predict/setup/setup.h"
#include "traces/measurements.h"

#include <stdbool.h>

/* Plain bytes, since it crosses a process. */
struct subsequence_answer {
    double kept_bytes; /* activations of the row's tokens in all layers, without recomputation */
    /* Bytes of one layer's activations for the first and the last subsequence, and the seconds to copy them to the
     * host. Subsequences are cut by flops: [0] with attention as if every token attended to all others, [1] with half
     * of it. */
    double first_bytes[2], last_bytes[2], first_s[2], last_s[2];
};

/* True if the metric of a row is about saved activations or subsequences. */
bool subsequence_row(const struct measurement *row);
/* True if the row can be predicted; else *why names the first field or option that is missing or not known. */
bool subsequence_supported(const struct measurement *row, struct text *why);
enum status subsequence_predict(struct subsequence_answer *answer, const struct measurement *row,
                                const struct setup_change *change, struct diag *diag);
/* Returns the value of a metric; halved: with attention's flops halved in the partition. */
double subsequence_value(const struct subsequence_answer *answer, enum measurement_metric metric,
                         bool halved);

#endif
