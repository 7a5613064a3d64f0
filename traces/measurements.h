/* traces/measurements.h: the metrics of published figures, their units, and the outcomes of a comparison with a
 * prediction. */
#ifndef TRACES_MEASUREMENTS_H
#define TRACES_MEASUREMENTS_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

/* The quantity of a value, from which its unit follows. */
enum measurement_quantity {
    QUANTITY_NONE,            /* no unit: a verdict, or no value at all */
    QUANTITY_FRACTION,        /* "fraction" */
    QUANTITY_RATIO,           /* "ratio" */
    QUANTITY_TOKENS,          /* "tokens" */
    QUANTITY_TOKENS_PER_GPU,  /* "tokens/s/gpu" */
    QUANTITY_TOKENS_PER_S,    /* "tokens/s" */
    QUANTITY_SEQUENCES_PER_S, /* "sequences/s" */
    QUANTITY_FLOP_PER_S,      /* "Tflop/s" */
    QUANTITY_SECONDS,         /* "s" "ms" "us" */
    QUANTITY_BYTES,           /* "B" "MB" "GB" "TB", "MiB" "GiB" "TiB" */
    QUANTITY_COUNT
};

/* The way in which a prediction is compared with the value. */
enum measurement_score {
    SCORE_RELATIVE, /* relative error */
    SCORE_LENGTH, /* a longest length: right if it fits and the next one that the source tried does not */
    SCORE_VERDICT, /* right or wrong: fits or does not fit */
    SCORE_NONE,    /* there is no value */
    SCORE_COUNT
};

/* METRIC(symbol, name, quantity, score): the metrics. traces/published/README.md explains those
 * whose names do not. */
#define MEASUREMENT_METRICS(METRIC)                                                                \
    METRIC(TGS, "tgs", TOKENS_PER_GPU, RELATIVE)                                                   \
    METRIC(MFU, "mfu", FRACTION, RELATIVE)                                                         \
    METRIC(STEP_MS, "step_ms", SECONDS, RELATIVE)                                                  \
    METRIC(TOKENS_PER_S, "tokens_per_s", TOKENS_PER_S, RELATIVE)                                   \
    METRIC(SEQUENCES_PER_S, "sequences_per_s", SEQUENCES_PER_S, RELATIVE)                          \
    METRIC(TFLOPS, "tflops", FLOP_PER_S, RELATIVE)                                                 \
    METRIC(ATTENTION_MS, "attention_ms", SECONDS, RELATIVE)                                        \
    METRIC(SEQALLTOALL_MS, "seqalltoall_ms", SECONDS, RELATIVE)                                    \
    METRIC(ROTATION_US, "rotation_us", SECONDS, RELATIVE)                                          \
    METRIC(COMM_OVER_COMPUTE, "comm_over_compute", RATIO, RELATIVE)                                \
    METRIC(PEAK_HBM, "peak_hbm", BYTES, RELATIVE)                                                  \
    METRIC(RESERVED_MEMORY, "reserved_memory", BYTES, RELATIVE)                                    \
    METRIC(ACTIVATION_MEMORY, "activation_memory", BYTES, RELATIVE)                                \
    METRIC(FIRST_SUBSEQUENCE_ACTIVATION, "first_subsequence_activation", BYTES, RELATIVE)          \
    METRIC(LAST_SUBSEQUENCE_ACTIVATION, "last_subsequence_activation", BYTES, RELATIVE)            \
    METRIC(FIRST_OFFLOAD_MS, "first_offload_ms", SECONDS, RELATIVE)                                \
    METRIC(LAST_OFFLOAD_MS, "last_offload_ms", SECONDS, RELATIVE)                                  \
    METRIC(SPEEDUP, "speedup", RATIO, RELATIVE)                                                    \
    METRIC(MAX_SEQ_LEN, "max_seq_len", TOKENS, LENGTH)                                             \
    METRIC(VERDICT, "verdict", NONE, VERDICT)                                                      \
    METRIC(LAYOUT, "layout", NONE, NONE)

enum measurement_metric {
#define METRIC(symbol, name, quantity, score) METRIC_##symbol,
    MEASUREMENT_METRICS(METRIC)
#undef METRIC
        METRIC_COUNT
};

struct measurement_metric_info {
    const char *name;
    enum measurement_quantity quantity;
    enum measurement_score score;
};

/* One row for each metric. */
extern const struct measurement_metric_info measurement_metrics[METRIC_COUNT];

/* Sets *metric to the metric with that name; returns false if there is none. */
bool measurement_find_metric(const char *name, enum measurement_metric *metric);

/* Sets *scale to the factor that converts a metric's value in that unit to s, bytes or flop/s; a metric of another
 * quantity has only one unit, and the factor 1. Returns false if the metric has no such unit; *right then receives the
 * units that it has: "'s', 'ms', 'us'". */
bool measurement_find_scale_of_unit(enum measurement_metric metric, const char *unit, double *scale,
                                    struct text *right);

/* Returns the word that may stand in place of a metric's number: "OOM", "model does not fit"; NULL: none may. */
const char *measurement_word_instead_of_number(enum measurement_metric metric);

/* The outcome of a row. The names are those printed: "ok", "right", ... */
enum measurement_outcome {
    OUTCOME_OK,                /* predicted; the relative error says how well */
    OUTCOME_RIGHT,             /* a verdict or length that agrees */
    OUTCOME_WRONG,             /* a verdict or length that does not agree */
    OUTCOME_PUBLISHED_ZERO,    /* the published value is 0, so there is no relative error */
    OUTCOME_NOT_COMPARABLE,    /* there is nothing to compare */
    OUTCOME_PREDICTION_FAILED, /* the prediction failed */
    OUTCOME_COUNT
};
const char *measurement_outcome_name(enum measurement_outcome outcome);

/* Appends the field of the column `status`: "ok", "error: why". why may be NULL, and may hold several messages, one per
 * line. */
void measurement_append_status(struct text *out, enum measurement_outcome outcome, const char *why);

#endif
