/* traces/external.h: measured runs, one figure of a run or one training step per row of a CSV file.
 *
 * A row holds what the source published about the run (layout, batch, recomputation, system, figure) and `args`: the
 * options of `longhaul predict` that describe the run. A row with measured_step_s is a training step. Any other row is
 * a figure, which is compared by its metric. The columns may be in any order. A file must have those of kind NEEDED
 * (id, source, framework, gpu, metric, args) and may lack others; they are then empty. A column marked with * must not
 * be empty in a training step, and may be in a figure:
 *
 *   id                    name of the row, different from all others
 *   source                who published it
 *   laboratory            name that all sources of one author or one code share; empty: the source
 *   place                 the table or page where the source printed it; may be empty
 *   set                   empty, or the name of a later collection, whose steps have tables and means of their own
 *   framework             what ran it: a framework with its version, or the name of a system in a paper that compares
 *                         systems
 *   model, gpu            as the source names them; gpu: "a100_80gb", "h100-96g-500W"
 *   gpus *, seq_len *     of the run; tokens of one sequence
 *   micro_batch *         sequences that a rank group processes at a time
 *   global_batch *        sequences of one step
 *   tp, cp, pp, vpp, dp   degrees of parallelism as stated; may be empty
 *   sharding, recompute, attention   words of the source; may be empty
 *   metric, value, unit   the figure (MEASUREMENT_METRICS); of a training step what was printed
 *   how                   "printed", "read off" a picture, "own" measurement, or another word; may be empty
 *   measured_step_s *     seconds of one step, which follow from the figure
 *   second_metric, second_value       what else was printed (EXTERNAL_SECOND_METRICS); both or neither
 *   group                 what a row is compared with: "split=3;window=1" are rows that differ in the split only, and
 *                         in the window only; "lengths=NAME" are layouts among which a longest length is searched
 *   against               of a speed-up: options of the run by which it divides
 *   as_run                "yes", or the choices of the run that `args` only approximates: "nearest: ..."
 *   counts                "yes" or empty; "least": a longest length is a lower bound; or the reason why the row is in
 *                         no mean and no interval
 *   args                  words as a shell reads them; files that they name are relative to the CSV's folder
 *   note                  what is odd about the row, or not stated: it is only printed, and decides nothing
 *
 * The reader refuses a row without id, source, framework, gpu, metric or args, a count or a time that is missing or not
 * positive, a unit that its metric never has, a figure that is no value of its metric, and an id that is given twice.
 * Every row keeps the text of its columns as written, so that it can be printed again beside a prediction. */
#ifndef TRACES_EXTERNAL_H
#define TRACES_EXTERNAL_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "traces/measurements.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* COLUMN(symbol, name, kind, about): the columns of the file. Kinds: NEEDED, a text that is never empty; TEXT, one that
 * may be; COUNT, a whole number, or empty; NUMBER, a number, or empty. about: what docs/schema/rows.json says of it;
 * NULL: nothing. */
/* clang-format off */
#define EXTERNAL_COLUMNS(COLUMN) \
    COLUMN(ID, "id", NEEDED, NULL) \
    COLUMN(SOURCE, "source", NEEDED, NULL) \
    COLUMN(LABORATORY, "laboratory", TEXT, "The name that all sources of one author or one code share; empty: the source.") \
    COLUMN(PLACE, "place", TEXT, "The table or page where the source printed it.") \
    COLUMN(SET, "set", TEXT, "A later collection of rows, whose steps have means of their own; empty: none.") \
    COLUMN(FRAMEWORK, "framework", NEEDED, "What ran it.") \
    COLUMN(MODEL, "model", TEXT, NULL) \
    COLUMN(GPU, "gpu", NEEDED, NULL) \
    COLUMN(GPUS, "gpus", COUNT, NULL) \
    COLUMN(SEQ_LEN, "seq_len", COUNT, NULL) \
    COLUMN(MICRO_BATCH, "micro_batch", COUNT, NULL) \
    COLUMN(GLOBAL_BATCH, "global_batch", COUNT, NULL) \
    COLUMN(TP, "tp", COUNT, NULL) \
    COLUMN(CP, "cp", COUNT, NULL) \
    COLUMN(PP, "pp", COUNT, NULL) \
    COLUMN(VPP, "vpp", COUNT, NULL) \
    COLUMN(DP, "dp", COUNT, NULL) \
    COLUMN(SHARDING, "sharding", TEXT, NULL) \
    COLUMN(RECOMPUTE, "recompute", TEXT, NULL) \
    COLUMN(ATTENTION, "attention", TEXT, NULL) \
    COLUMN(METRIC, "metric", NEEDED, NULL) \
    COLUMN(VALUE, "value", TEXT, "The published value.") \
    COLUMN(UNIT, "unit", TEXT, NULL) \
    COLUMN(HOW, "how", TEXT, "How the figure was obtained: printed, read off, own.") \
    COLUMN(STEP_S, "measured_step_s", NUMBER, NULL) \
    COLUMN(SECOND_METRIC, "second_metric", TEXT, NULL) \
    COLUMN(SECOND_VALUE, "second_value", TEXT, NULL) \
    COLUMN(GROUP, "group", TEXT, "What the row is compared with.") \
    COLUMN(AGAINST, "against", TEXT, "Of a speed-up: options of the run by which it divides.") \
    COLUMN(AS_RUN, "as_run", TEXT, NULL) \
    COLUMN(COUNTS, "counts", TEXT, "yes or empty, least, or the reason why the error is part of no mean and no interval.") \
    COLUMN(ARGS, "args", NEEDED, "Options of predict that describe the run.") \
    COLUMN(NOTE, "note", TEXT, NULL)
/* clang-format on */

enum external_column {
#define COLUMN(symbol, name, kind, about) EXTERNAL_##symbol,
    EXTERNAL_COLUMNS(COLUMN)
#undef COLUMN
        EXTERNAL_COLUMN_COUNT
};

/* METRIC(symbol, name, kind, scale): the metrics of the column `second_metric`. value * scale is in bytes, in flop/s
 * or a fraction. kind: a value of enum external_memory_kind without its prefix; NONE: the metric is no memory. */
#define EXTERNAL_SECOND_METRICS(METRIC)                                                            \
    METRIC(MFU, "mfu", NONE, 0.01)       /* percent by the source's own count */                   \
    METRIC(TFLOPS, "tflops", NONE, 1e12) /* flop/s of a GPU by the source's own count */           \
    METRIC(ALLOCATED, "memory_allocated_gib", ALLOCATED, 1073741824.0)                             \
    METRIC(RESERVED_GIB, "memory_gib", RESERVED, 1073741824.0)                                     \
    METRIC(UNSTATED_GB, "memory_gb", UNNAMED, 1e9)                                                 \
    METRIC(UNSTATED_GIB, "memory_unstated_gib", UNNAMED, 1073741824.0)

enum external_second_metric {
    EXTERNAL_NO_SECOND_METRIC,
#define METRIC(symbol, name, kind, scale) EXTERNAL_METRIC_##symbol,
    EXTERNAL_SECOND_METRICS(METRIC)
#undef METRIC
        EXTERNAL_METRIC_COUNT
};

/* Which memory a second figure measures. */
enum external_memory_kind {
    MEMORY_KIND_NONE,      /* no figure of memory */
    MEMORY_KIND_ALLOCATED, /* the most that tensors held */
    MEMORY_KIND_RESERVED,  /* the most that PyTorch's allocator reserved */
    MEMORY_KIND_UNNAMED,   /* the source does not say which */
    MEMORY_KIND_COUNT
};

struct external_run {
    struct loc place; /* the place of the row, for messages */
    /* the cells as they are written, never NULL */
    const char *cells[EXTERNAL_COLUMN_COUNT];
    int64_t gpus, seq_len, micro_batch, global_batch; /* 0: not given */
    enum measurement_metric metric;
    /* false: cells[EXTERNAL_VALUE] is the value: "OOM", "model does not fit", or "" */
    bool is_number;
    double value; /* in the unit of the row */
    /* value * si_factor is in s, bytes or flop/s, or in the only unit of the metric
     * (measurement_find_scale_of_unit()) */
    double si_factor;
    double step_s;       /* the time of a training step; 0: the row is a figure */
    bool is_counted;     /* the row counts in means and intervals */
    bool is_lower_bound; /* a longest length is only a lower bound */
    enum external_second_metric second_metric;
    double second_value; /* the second figure, in bytes, flop/s or as a fraction; 0: none */
};

struct external_runs {
    struct arena arena;
    struct external_run *rows;
    size_t row_count, capacity;
};

void external_release(struct external_runs *runs);

/* Returns the name of a column: "gpu", "args", ... */
const char *external_column_name(enum external_column column);

/* Returns which memory a second metric measures; MEMORY_KIND_NONE: none. */
enum external_memory_kind external_metric_memory_kind(enum external_second_metric metric);
/* Returns the word for a kind in output: "allocated", "reserved", "unnamed"; "" for MEMORY_KIND_NONE. */
const char *external_memory_kind_name(enum external_memory_kind kind);

/* True if the row's column `as_run` is "yes": `args` describe the run exactly, and do not only approximate it. */
bool external_is_run_as_described(const struct external_run *run);

/* Returns the laboratory of a row: its source where the row names none. */
const char *external_laboratory(const struct external_run *run);

/* True if a row belongs to a set of rows (column `set`). "" is the set of the rows whose column is empty. */
bool external_is_in_set(const struct external_run *run, const char *set);

/* Returns the value of `key` in a row's column `group` ("3" for "split" in "split=3;window=1") and sets *size to its
 * size; the value does not end in NUL. Returns NULL if the column has no such key. */
const char *external_value_of_group_key(const struct external_run *run, const char *key,
                                        size_t *size);

/* True if both rows have the key in their column `group`, with the same value. */
bool external_are_in_same_group(const struct external_run *a, const struct external_run *b,
                                const char *key);

/* True if no row before row i belongs to its set. */
bool external_is_first_of_set(const struct external_runs *runs, size_t i);

/* Adds the rows of data[0..size). name stands for the text in messages and must outlive the rows. The text may be the
 * output of external_print(): the columns of results are then dropped. */
enum status external_parse(struct external_runs *runs, const char *name, const char *data,
                           size_t size, struct diag *diag);
enum status external_load(struct external_runs *runs, const char *path, struct diag *diag);

/* Adds the rows that ship with the program and that `validate` compares by default. */
enum status external_load_shipped(struct external_runs *runs, struct diag *diag);

/* The prediction for a row. A number that is NAN is not known. */
struct external_prediction {
    /* for a training step, OUTCOME_WRONG means that it was predicted not to fit although it ran */
    enum measurement_outcome outcome;
    double predicted; /* for a figure: the predicted value in the unit of the row */
    /* for a figure: a text that is printed in place of the value, such as "OOM"; NULL: none */
    const char *predicted_text;
    /* For times of steps it is measured / predicted - 1, which is positive if the prediction is faster. For other
     * figures it is predicted / value - 1, which is positive if the predicted value is larger. */
    double relative_error;
    double step_s; /* for a training step: its predicted seconds */
    double peak_bytes, reserved_bytes;
    /* for a training step: the predicted bytes that are compared with the second metric; NAN: there are none, as where
     * that metric is not of memory */
    double predicted_memory_bytes;
    double memory_error; /* predicted / measured - 1 of the memory figure that is compared */
    /* the reason that is printed after the outcome in the status, "error: ...": why there is no prediction, why it is
     * wrong, or why its error does not count in means; NULL: no reason is given */
    const char *status_reason;
};

/* Returns a result of OUTCOME_PREDICTION_FAILED in which every number is NAN. */
struct external_prediction external_make_unknown_prediction(void);

/* external_print_columns() appends the line of column names, those of results included.
 * external_print() appends all rows as they were read, each with the columns of its result,
 * result[i] for row i. Numbers have six significant digits, but bytes and predicted whole numbers
 * have all their digits. */
void external_print_columns(struct text *out);
void external_print(const struct external_runs *runs, const struct external_prediction *result,
                    struct text *out);

#endif
