/* traces/external.h: training steps that others measured, one run per row of a CSV file.
 *
 * A row holds what the source published about the run (layout, batch, recomputation, framework, figure), the
 * seconds of a step that follow from it, and `args`: the options of `longhaul predict` that describe the run.
 * The columns, which a file may have in any order; it may lack those that may be empty:
 *
 *   id                    name of the row, different from all others
 *   source                who published it
 *   laboratory            name that all sources of one author or one code share; empty: the source
 *   place                 where the source printed it; may be empty
 *   set                   empty, or the name of a later collection, whose rows have tables and means of their own
 *   model, gpu            as the source names them; gpu: "a100_80gb", "h100-96g-500W"
 *   gpus, seq_len         of the run; tokens of one sequence
 *   micro_batch           sequences that a rank group processes at a time
 *   global_batch          sequences of one step
 *   tp, cp, pp, vpp, dp   degrees of parallelism as stated
 *   sharding, recompute, attention, framework   words of the source
 *   measured_step_s       seconds of one step
 *   unit_published, value_published   what was printed (EXTERNAL_UNITS)
 *   second_metric, second_value       what else was printed (EXTERNAL_METRICS); both or neither
 *   as_run                "yes", or the choices of the run that `args` only approximates: "nearest: ..."
 *   counts                "yes" or empty, or the reason why the row's time is in no mean and no interval
 *   args                  words as a shell reads them; files that they name are relative to the CSV's folder
 *   note                  what is odd about the row, or not stated: it is only printed, and decides nothing
 *
 * The reader refuses a row without id, source, gpu, framework or args, a number that is missing or not positive
 * (degrees may be empty), an unknown unit or metric, and an id that is given twice. Every row
 * keeps the text of its columns as written, so that it can be printed again beside a prediction. */
#ifndef TRACES_EXTERNAL_H
#define TRACES_EXTERNAL_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "traces/measurements.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* COLUMN(symbol, name) */
#define EXTERNAL_COLUMNS(COLUMN)                                                                   \
    COLUMN(ID, "id")                                                                               \
    COLUMN(SOURCE, "source")                                                                       \
    COLUMN(LABORATORY, "laboratory")                                                               \
    COLUMN(PLACE, "place")                                                                         \
    COLUMN(SET, "set")                                                                             \
    COLUMN(MODEL, "model")                                                                         \
    COLUMN(GPU, "gpu")                                                                             \
    COLUMN(GPUS, "gpus")                                                                           \
    COLUMN(SEQ_LEN, "seq_len")                                                                     \
    COLUMN(MICRO_BATCH, "micro_batch")                                                             \
    COLUMN(GLOBAL_BATCH, "global_batch")                                                           \
    COLUMN(TP, "tp")                                                                               \
    COLUMN(CP, "cp")                                                                               \
    COLUMN(PP, "pp")                                                                               \
    COLUMN(VPP, "vpp")                                                                             \
    COLUMN(DP, "dp")                                                                               \
    COLUMN(SHARDING, "sharding")                                                                   \
    COLUMN(RECOMPUTE, "recompute")                                                                 \
    COLUMN(ATTENTION, "attention")                                                                 \
    COLUMN(FRAMEWORK, "framework")                                                                 \
    COLUMN(STEP_S, "measured_step_s")                                                              \
    COLUMN(PUBLISHED_UNIT, "unit_published")                                                       \
    COLUMN(PUBLISHED_VALUE, "value_published")                                                     \
    COLUMN(SECOND_METRIC, "second_metric")                                                         \
    COLUMN(SECOND_VALUE, "second_value")                                                           \
    COLUMN(AS_RUN, "as_run")                                                                       \
    COLUMN(COUNTS, "counts")                                                                       \
    COLUMN(ARGS, "args")                                                                           \
    COLUMN(NOTE, "note")

enum external_column {
#define COLUMN(symbol, name) EXTERNAL_##symbol,
    EXTERNAL_COLUMNS(COLUMN)
#undef COLUMN
        EXTERNAL_COLUMN_COUNT
};

/* METRIC(symbol, name, scale): value * scale is in bytes, or a pure number. */
#define EXTERNAL_METRICS(METRIC)                                                                   \
    METRIC(MFU, "mfu", 0.01)       /* percent by the source's own count */                         \
    METRIC(TFLOPS, "tflops", 1e12) /* flop/s of a GPU by the source's own count */                 \
    METRIC(ALLOCATED, "memory_allocated_gib", 1073741824.0) /* most that tensors held */           \
    METRIC(RESERVED_GIB, "memory_gib", 1073741824.0)        /* reserved_bytes.all.peak */          \
    METRIC(UNSTATED_GB, "memory_gb", 1e9)                   /* which of the two is not stated */   \
    METRIC(UNSTATED_GIB, "memory_unstated_gib", 1073741824.0)

/* UNIT(symbol, name): the unit of a printed figure. */
#define EXTERNAL_UNITS(UNIT)                                                                       \
    UNIT(TGS, "tgs")                         /* tokens/s/GPU */                                    \
    UNIT(STEP_MS, "step_ms")                 /* milliseconds of a step */                          \
    UNIT(TOKENS_PER_S, "tokens_per_s")       /* of all GPUs together */                            \
    UNIT(SEQUENCES_PER_S, "sequences_per_s") /* of all GPUs together */                            \
    UNIT(TFLOPS, "tflops")                   /* Tflop/s of a GPU by the source's own count */

enum external_unit {
#define UNIT(symbol, name) EXTERNAL_UNIT_##symbol,
    EXTERNAL_UNITS(UNIT)
#undef UNIT
        EXTERNAL_UNIT_COUNT
};

enum external_metric {
    EXTERNAL_NO_METRIC,
#define METRIC(symbol, name, scale) EXTERNAL_METRIC_##symbol,
    EXTERNAL_METRICS(METRIC)
#undef METRIC
        EXTERNAL_METRIC_COUNT
};

struct external_run {
    struct loc at;                           /* of the row, for messages */
    const char *text[EXTERNAL_COLUMN_COUNT]; /* as written, never NULL */
    int64_t gpus, seq_len, micro_batch, global_batch;
    double step_s;
    enum external_unit unit; /* of the printed figure */
    double published;        /* the printed figure, in that unit */
    bool counts;             /* its time is in means and intervals */
    enum external_metric second_metric;
    double second; /* in bytes, flop/s or as a fraction; 0: none */
};

struct external_runs {
    struct arena arena;
    struct external_run *row;
    size_t count, capacity;
};

void external_release(struct external_runs *runs);

/* Returns the name of a column: "gpu", "args", ... */
const char *external_column_name(enum external_column column);

/* True if all of the row's choices are those of `args`. */
bool external_as_run(const struct external_run *run);

/* Returns the laboratory of a row: its source where the row names none. */
const char *external_laboratory(const struct external_run *run);

/* True if a row belongs to a set of rows; "" is the set of rows that name none. */
bool external_in_set(const struct external_run *run, const char *set);

/* True if no row before row i belongs to its set. */
bool external_is_first_of_set(const struct external_runs *runs, size_t i);

/* True if the text is a file of such rows: it has a column "id". */
bool external_recognise(const char *data, size_t size);

/* Adds the rows of data[0..size); name stands for the text in messages and must outlive the rows. The columns
 * of an earlier comparison (external_print()) may follow; they are dropped. */
enum status external_parse(struct external_runs *runs, const char *name, const char *data,
                           size_t size, struct diag *diag);
enum status external_load(struct external_runs *runs, const char *path, struct diag *diag);

/* The prediction for a row. A number that is NAN is not known. */
struct external_result {
    enum measurement_outcome outcome; /* OUTCOME_WRONG: predicted not to fit, yet it ran */
    double step_s;                    /* predicted seconds of a step */
    double error; /* measured / predicted step_s - 1: positive, predicted faster */
    double peak_bytes, reserved_bytes;
    double
        memory_bytes; /* the predicted figure that is compared with the second metric; NAN: none */
    double memory_error; /* predicted / measured - 1 of what is compared */
    const char *why;     /* not NULL: the status reads "error: why" */
};

/* Prints all rows as they were read, with result[i] of row i in the columns predicted_step_s,
 * relative_error, predicted_peak_bytes, predicted_reserved_bytes, memory_error and status. */
void external_print(const struct external_runs *runs, const struct external_result *result,
                    struct text *out);
enum status external_save(const struct external_runs *runs, const struct external_result *result,
                          const char *path, struct diag *diag);

#endif
