/* predict/validate/measured_row.h: turns a row of measurements into a request that can be predicted.
 *
 * Options that a row leaves out take the default of its source, as traces/published/README.md states it;
 * one table holds these. A row that needs a feature that is not modelled is unsupported, with the reason: no
 * feature is replaced by another. */
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
    const char *source;     /* NULL: any other */
    const char *laboratory; /* as in struct residual; NULL: the source itself */
    enum mfu_convention convention;
    int dtype, activations, weights; /* as in struct request */
    int64_t loss_chunks;
    bool compile;
    const char *llama_fields; /* set for models named llama*; NULL: nothing */
    bool compares_memory;     /* its peak_hbm follows from its configuration */
    bool allocator_only;      /* its peak_hbm is what PyTorch's allocator reserved */
    const char *assumed;      /* for people */
};

const struct source_defaults *measured_defaults(const char *source);

/* True if the row can be predicted; else *why gets the reason in a few words, the same for all such rows. */
bool measured_supported(const struct measurement *row, struct text *why);

/* Loads model and cluster and fills the request. The row must be supported. */
enum status measured_setup(struct setup *setup, const struct measurement *row, struct diag *diag);

/* True if two rows were measured on the same run: all columns that describe the run agree. */
bool measured_same_run(const struct measurement *a, const struct measurement *b);

/* Tokens: a search for the longest length goes no lower. */
#define MEASURED_SHORTEST 32768

/* True if a number of the row's cluster was inferred from this very run, as its note says: its speed is no test. */
bool measured_inferred_from(const struct measurement *row);

/* True if the row's max_seq_len is only a lower bound, as its note says. */
bool measured_lower_bound(const struct measurement *row);

#endif
