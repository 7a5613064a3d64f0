/* predict/validate/validation.h: predicts published figures. Rows of a table give runs, each run is predicted, and the
 * answer is compared with the rows. A row's `args` are options of the command `predict`, which the caller reads. Rows
 * with the same args, GPUs and length share a prediction, unless a metric needs one of its own (a longest length, a
 * speed-up, saved activations). Runs are predicted in child processes, as many at once as there are cores. Verdicts and
 * longest lengths depend only on memory, so they are not simulated. A longest length is searched among the layouts of
 * the row's group "lengths", or, without such a group, among the length of the args times powers of two. */
#ifndef PREDICT_VALIDATE_VALIDATION_H
#define PREDICT_VALIDATE_VALIDATION_H

#include "base/diag.h"
#include "predict/intervals.h"
#include "predict/operator_times.h"
#include "predict/prediction.h"
#include "predict/validate/baseline.h"
#include "predict/validate/error_means.h"
#include "predict/validate/perturbation.h"
#include "traces/external.h"

#include <stdbool.h>
#include <stddef.h>

/* The result of one run. It holds no pointers, because it is passed between processes. */
struct validated_run {
    bool has_succeeded;
    char error[256];
    /* the verdict on the length of the row; if lengths are searched: on the longest that fits, or, if doubled lengths
     * are searched and none fits, on the shortest */
    struct verdict verdict;
    struct reserved reserved;
    struct similarity similarity;
    double step_s, tokens_per_s_gpu;
    /* mfu: by the convention of the run's args. mfu_other_factor: the same, but with recomputed flops if the run
     * recomputes nothing, and without them if it recomputes */
    double mfu, mfu_other_factor;
    struct operator_times operator_times; /* the times of a part of the model (--scope) */
    /* the source's convention counts recomputed flops, but the run recomputes nothing */
    bool counts_recompute;
    /* the run's rate, divided by that of the run in column `against` */
    double speedup;
    double activation_bytes_or_copy_s; /* bytes of saved activations, or the seconds to copy them */
    bool has_baseline;
    struct baseline baseline; /* the step by the closed form */
    int64_t longest_tokens;   /* if lengths are searched: the longest that fits; 0: none fits */
    /* if lengths are searched: the verdict on the next longer length; for a speed-up: the verdict on the run that
     * column `against` names */
    struct verdict verdict_on_next_length_or_against;
};

/* A row and how it compares with its prediction. */
struct validated_row {
    struct external_prediction result;
    size_t run_index;     /* index in answer[] of the validation; SIZE_MAX: the row is a layout */
    bool counts_in_means; /* the error counts in the means */
    /* why the error does not count, or another note for the reader; NULL: no note */
    const char *remark;
};

/* Loads the model, cluster and request of `args` into *setup, which must be all-zero, and sets *mfu to the convention
 * by which MFU is counted. csv: the CSV file, to whose folder paths in args are relative. Memory comes from
 * setup->arena. */
typedef enum status run_setup_function(struct setup *setup, enum mfu_convention *mfu,
                                       const char *args, const char *csv, struct diag *diag);

struct validation {
    /* The caller sets perturbation, perturbation_count (which change the machine of every run) and setup_loader;
     * validation_run() sets the other members. */
    const struct perturbation *perturbation;
    size_t perturbation_count;
    run_setup_function *setup_loader;
    struct arena arena;
    const struct external_runs *rows;
    struct validated_row *row; /* [rows->row_count] */
    struct validated_run *answer;
    size_t run_count;
    const size_t *first_row_of_each_run; /* [run_count] the first row that each run serves */
    bool *does_run_need_times;           /* [run_count] the run needs times */
};

/* The number of tokens down to which a search for the longest length that fits halves the published length. */
#define VALIDATION_SHORTEST_TOKENS 32768

/* The key of the group of layouts among which a longest length is searched. */
#define VALIDATION_LENGTHS_KEY "lengths"

enum status validation_run(struct validation *validation, const struct external_runs *rows,
                           struct diag *diag);
void validation_release(struct validation *validation);

/* The steps of validation_run(), for a caller that runs the predictions: plan the runs, predict each (in a child
 * process, whose answer the caller copies to answer[run]), and judge the rows. */
void validation_plan_runs(struct validation *validation, const struct external_runs *rows);
void validation_predict(const struct validation *validation, size_t run,
                        struct validated_run *answer);
void validation_judge(struct validation *validation);

/* Writes the first message of diag as one line into error[0..room): with the option that it is about, but without the
 * word "error". */
void validation_put_error(char *error, size_t room, const struct diag *diag);

/* Fails if the prediction has other GPUs, another length or another global batch than the row's columns state. A column
 * that is 0 states none. */
enum status validation_check_columns(const struct external_run *row, const struct prediction *p,
                                     struct diag *diag);

/* Returns the relative error of a predicted figure for a row, in the unit of row->value: predicted / published - 1. For
 * a step's time it is published / predicted - 1, the error of tokens per second, which are the same measurement. */
double validation_relative_error(const struct external_run *row, double predicted);

/* Returns whether two rows are of one run: their source, place, framework, model and args agree. */
bool validation_are_rows_of_one_run(const struct external_run *a, const struct external_run *b);

/* Returns whether two rows have the same source, place and metric. */
bool validation_are_rows_of_one_table(const struct validation *validation, size_t a, size_t b);

/* Sums up the errors of the rows from row `row` on that have its table and count in means, and sets done[] of each. */
struct error_means validation_table_means(const struct validation *validation, size_t row,
                                          bool *done);

#endif
