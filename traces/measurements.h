/* traces/measurements.h: published or own measurements, one figure per row of a CSV file.
 *
 * The columns and their meaning are in traces/published/README.md. Every row keeps the text of
 * its columns as written, so that it can be printed again beside a prediction, and the values
 * read from them. The reader refuses invalid rows (no number where one belongs, an option that is not
 * key=value, a unit that its metric never has); it keeps metrics and options that it does not know, and
 * the caller decides whether a row is unsupported. */
#ifndef TRACES_MEASUREMENTS_H
#define TRACES_MEASUREMENTS_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum measurement_column {
    MEASUREMENT_SOURCE,
    MEASUREMENT_TABLE,
    MEASUREMENT_SYSTEM,
    MEASUREMENT_MODEL,
    MEASUREMENT_CLUSTER,
    MEASUREMENT_GPUS,
    MEASUREMENT_SEQ_LEN,
    MEASUREMENT_OPTIONS,
    MEASUREMENT_METRIC,
    MEASUREMENT_VALUE,
    MEASUREMENT_UNIT,
    MEASUREMENT_NOTE,
    MEASUREMENT_COLUMN_COUNT
};

/* The quantity of a value, from which its unit follows. */
enum measurement_quantity {
    QUANTITY_NONE,           /* no unit: a verdict, or an unknown metric */
    QUANTITY_FRACTION,       /* "fraction" */
    QUANTITY_RATIO,          /* "ratio" */
    QUANTITY_TOKENS,         /* "tokens" */
    QUANTITY_TOKENS_PER_GPU, /* "tokens/s/gpu" */
    QUANTITY_SECONDS,        /* "s" "ms" "us" */
    QUANTITY_BYTES,          /* "B" "MB" "GB" "TB", "MiB" "GiB" "TiB" */
    QUANTITY_COUNT
};

/* The way in which a prediction is compared with the value. */
enum measurement_score {
    SCORE_RELATIVE, /* relative error */
    SCORE_LENGTH,   /* a longest length: right or wrong by the grid of the source */
    SCORE_VERDICT,  /* right or wrong */
    SCORE_COUNT
};

/* METRIC(symbol, name, quantity, score) */
#define MEASUREMENT_METRICS(METRIC)                                                                \
    METRIC(TGS, "tgs", TOKENS_PER_GPU, RELATIVE)                                                   \
    METRIC(MFU, "mfu", FRACTION, RELATIVE)                                                         \
    METRIC(STEP_MS, "step_ms", SECONDS, RELATIVE)                                                  \
    METRIC(ATTENTION_MS, "attention_ms", SECONDS, RELATIVE)                                        \
    METRIC(SEQALLTOALL_MS, "seqalltoall_ms", SECONDS, RELATIVE)                                    \
    METRIC(ROTATION_US, "rotation_us", SECONDS, RELATIVE)                                          \
    METRIC(COMM_OVER_COMPUTE, "comm_over_compute", RATIO, RELATIVE)                                \
    METRIC(PEAK_HBM, "peak_hbm", BYTES, RELATIVE)                                                  \
    METRIC(ACTIVATION_MEMORY, "activation_memory", BYTES, RELATIVE)                                \
    METRIC(FIRST_SUBSEQUENCE_ACTIVATION, "first_subsequence_activation", BYTES, RELATIVE)          \
    METRIC(LAST_SUBSEQUENCE_ACTIVATION, "last_subsequence_activation", BYTES, RELATIVE)            \
    METRIC(FIRST_OFFLOAD_MS, "first_offload_ms", SECONDS, RELATIVE)                                \
    METRIC(LAST_OFFLOAD_MS, "last_offload_ms", SECONDS, RELATIVE)                                  \
    METRIC(SPEEDUP, "speedup", RATIO, RELATIVE)                                                    \
    METRIC(MAX_SEQ_LEN, "max_seq_len", TOKENS, LENGTH)                                             \
    METRIC(VERDICT, "verdict", NONE, VERDICT)

enum measurement_metric {
    METRIC_UNKNOWN,
#define METRIC(symbol, name, quantity, score) METRIC_##symbol,
    MEASUREMENT_METRICS(METRIC)
#undef METRIC
        METRIC_COUNT
};

struct measurement_metric_info {
    const char *name; /* "" for METRIC_UNKNOWN */
    enum measurement_quantity quantity;
    enum measurement_score score;
};

/* Rows of METRIC_COUNT. */
extern const struct measurement_metric_info measurement_metrics[METRIC_COUNT];

struct measurement_option {
    const char *key, *value; /* neither is empty */
};

struct measurement {
    struct loc at;                              /* of the row, for messages */
    const char *text[MEASUREMENT_COLUMN_COUNT]; /* as written, never NULL */

    int64_t gpus, seq_len; /* 0: not given */
    const struct measurement_option *option;
    size_t option_count;

    enum measurement_metric metric;
    bool is_number; /* false: text[MEASUREMENT_VALUE] is the value ("OOM", "model does not fit") */
    double value;   /* in the unit of the row */
    /* The factor that converts from the row's unit: value * scale is in s, bytes, tokens, tokens/s/GPU or a pure
     * number. It is 1 for an unknown metric. */
    double scale;
};

struct measurements {
    struct arena arena;
    struct measurement *row;
    size_t count, capacity;
};

void measurements_release(struct measurements *measurements);

/* Adds the rows of data[0..size); name stands for the text in messages and must outlive the rows.
 * The columns `predicted`, `relative_error` and `status` of an earlier comparison may follow the
 * twelve; they are dropped. */
enum status measurements_parse(struct measurements *measurements, const char *name,
                               const char *data, size_t size, struct diag *diag);
enum status measurements_load(struct measurements *measurements, const char *path,
                              struct diag *diag);

/* Returns the name of a column: "system", "model", ... */
const char *measurement_column_name(enum measurement_column column);

/* Returns the value of an option, or NULL if the row lacks it. */
const char *measurement_option(const struct measurement *row, const char *key);

/* Returns the first option whose key is not in known[0..count), or NULL. */
const struct measurement_option *measurement_unknown_option(const struct measurement *row,
                                                            const char *const *known, size_t count);

/* The outcome of a row. The names are those printed: "ok", "right", ... */
enum measurement_outcome {
    OUTCOME_OK,          /* predicted; the relative error says how well */
    OUTCOME_RIGHT,       /* a verdict or length that agrees */
    OUTCOME_WRONG,       /* a verdict or length that does not agree */
    OUTCOME_ZERO,        /* a published 0 has no relative error */
    OUTCOME_UNSUPPORTED, /* the row asks for what the program does not know */
    OUTCOME_ERROR,       /* the prediction failed */
    OUTCOME_COUNT
};
const char *measurement_outcome_name(enum measurement_outcome outcome);

/* Appends the field of a column `status`: "ok", "error: why". why may be NULL, or hold messages, one per line. */
void measurement_put_status(struct text *out, enum measurement_outcome outcome, const char *why);

struct measurement_result {
    enum measurement_outcome outcome;
    double predicted;           /* in the unit of the row; NAN: none */
    const char *predicted_text; /* not NULL: printed in its place ("OOM") */
    double relative_error; /* predicted / value - 1, of step_ms value / predicted - 1; NAN: none */
    const char *why;       /* not NULL: the status reads "error: why" */
};

/* Prints all rows as they were read, with result[i] of row i in the columns predicted,
 * relative_error and status. Numbers have six significant digits, whole predicted ones all their digits. */
void measurements_print(const struct measurements *measurements,
                        const struct measurement_result *result, struct text *out);
enum status measurements_save(const struct measurements *measurements,
                              const struct measurement_result *result, const char *path,
                              struct diag *diag);

#endif
