/* predict/validate/subsequence_row.h: published figures about what is kept of a layer, and of its subsequences. */
#ifndef PREDICT_VALIDATE_SUBSEQUENCE_ROW_H
#define PREDICT_VALIDATE_SUBSEQUENCE_ROW_H

#include "base/diag.h"
#include "base/text.h"
#include "predict/setup/setup.h"
#include "traces/measurements.h"

#include <stdbool.h>

/* Plain bytes, since it crosses a process. */
struct subsequence_answer {
    double kept_bytes; /* of the row's tokens in all layers, without recomputation */
    /* Bytes and seconds of one layer's first and last subsequence, partitioned by flops with attention as if every token
       saw all others [0], and halved [1]; and the time in which they go to the host. */
    double first_bytes[2], last_bytes[2], first_s[2], last_s[2];
};

/* Whether a row is about that. */
bool subsequence_row(const struct measurement *row);
/* Whether it has what the answer takes; why gets what is missing. */
bool subsequence_supported(const struct measurement *row, struct text *why);
enum status subsequence_predict(struct subsequence_answer *answer, const struct measurement *row,
                                const struct setup_change *change, struct diag *diag);
/* The answer to the row's metric, by either balance of attention. */
double subsequence_value(const struct subsequence_answer *answer, enum measurement_metric metric,
                         bool halved);

#endif
