/* predict/validate/external_validation.h: predicts training steps that others measured, from the options in their
 * rows.
 *
 * A row's `args` are options of the command `predict`, which the caller reads. Rows of one file with the same args,
 * GPUs, length and batch share a prediction, made in a child process. A measured run did fit in memory: a prediction
 * that says otherwise is a wrong verdict, and its time is scored nevertheless.
 *
 * Errors of times are of speed: measured / predicted - 1 of seconds, predicted / measured - 1 of tokens per second. A
 * positive error means that the step is predicted faster than measured. Errors of memory are predicted / measured
 * - 1. */
#ifndef PREDICT_VALIDATE_EXTERNAL_VALIDATION_H
#define PREDICT_VALIDATE_EXTERNAL_VALIDATION_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "predict/intervals.h"
#include "predict/prediction.h"
#include "predict/validate/validation.h"
#include "traces/external.h"

#include <stdbool.h>
#include <stddef.h>

/* The result of one prediction. It holds no pointers, because it is passed between processes. */
struct external_answer {
    bool has_succeeded;
    char error[256];
    struct similarity similarity;
    double step_s;
    double peak_bytes; /* live bytes of tensors at their peak, on the rank whose peak is highest */
    struct reserved reserved;
    struct verdict verdict;
    int64_t node_count;
};

struct external_validation {
    struct arena arena;
    run_setup_function *setup_loader;
    const struct external_runs *runs;
    struct external_prediction *result; /* [runs->row_count] */
    /* [runs->row_count] the index of the row's prediction in answer[] */
    size_t *answer_index_of_each_row;
    struct external_answer *answer;
    size_t answer_count;
    /* [answer_count] the first row that each prediction serves */
    const size_t *first_row_of_each_answer;
};

enum status external_validation_run(struct external_validation *validation,
                                    const struct external_runs *runs, run_setup_function *load,
                                    struct diag *diag);
void external_validation_release(struct external_validation *validation);

/* Returns whether a row was measured on the device `name`, which is the name in the row or a kind ("a100" of
 * "a100_80gb"). */
bool external_row_is_of_gpu(const struct external_run *row, const char *name);

/* Returns the name of the predicted figure with which a figure of memory is compared; NULL for MEMORY_KIND_NONE. */
const char *external_compared_memory_name(enum external_memory_kind kind);

/* Returns the error of a row's predicted time; NAN if it does not count, for the reason in the row's column `counts`,
 * or if the prediction failed. */
double external_row_time_error_if_counted(const struct external_validation *validation, size_t row);
/* Returns the error of a row's predicted memory; NAN if the row has none, if its source does not say which memory it
 * prints, or if the prediction failed. */
double external_row_memory_error_if_counted(const struct external_validation *validation,
                                            size_t row);

/* A figure of reserved memory is large if it is at least this share of what the device has for the process. */
#define LARGE_RESERVED_SHARE 0.4
/* Returns the error of a row's memory if it is a large figure of reserved memory; else NAN. */
double external_row_large_reserved_error(const struct external_validation *validation, size_t row);

#endif
