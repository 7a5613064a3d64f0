/* predict/validate/measured_row.h: a row of measurements as a question that can be predicted.
 *
 * What a row leaves out takes the default of its source, as traces/published/README.md states them;
 * one table holds these. A row that asks for what the program does not know is unsupported, with
 * the reason; nothing is taken for something else. */
#ifndef PREDICT_VALIDATE_MEASURED_ROW_H
#define PREDICT_VALIDATE_MEASURED_ROW_H

#include "base/diag.h"
#include "base/text.h"
#include "models/mfu.h"
#include "predict/setup/setup.h"
#include "traces/measurements.h"

#include <stdbool.h>

/* The values of options that rows of a source leave out. */
struct source_defaults {
    const char *source; /* NULL: any other */
    enum mfu_convention convention;
    int dtype, activations, weights; /* as in struct request */
    int64_t loss_chunks;
    bool compile;
    const char *llama_fields; /* set for models named llama*; NULL: nothing */
    bool compares_memory;     /* its peak_hbm follows from its configuration */
    const char *assumed;      /* for people */
};

const struct source_defaults *measured_defaults(const char *source);

/* Whether the row can be predicted; if not, why says the reason in a few words that rows share. */
bool measured_supported(const struct measurement *row, struct text *why);

/* Loads model and cluster and fills the request. The row must be supported. */
enum status measured_setup(struct setup *setup, const struct measurement *row, struct diag *diag);

/* Whether two rows were measured on the same run: all columns agree that say what was run. */
bool measured_same_run(const struct measurement *a, const struct measurement *b);

/* Longest lengths are looked for down to this one. */
#define MEASURED_SHORTEST 32768

/* max_seq_len of a run that is a lower bound by its note. */
bool measured_lower_bound(const struct measurement *row);

#endif
