/* predict/validate/validation.h: predicts measurements: rows to runs, runs to answers, answers to outcomes.
 *
 * Rows of one run share its prediction. Runs are predicted in child processes, as many at once as
 * there are cores. Verdicts and longest lengths depend only on memory, so they take no simulation. */
#ifndef PREDICT_VALIDATE_VALIDATION_H
#define PREDICT_VALIDATE_VALIDATION_H

#include "base/diag.h"
#include "predict/intervals.h"
#include "predict/operator_times.h"
#include "predict/prediction.h"
#include "predict/validate/baseline.h"
#include "predict/validate/measured_row.h"
#include "predict/validate/perturbation.h"
#include "predict/validate/sppo_row.h"
#include "predict/validate/subsequence_row.h"
#include "traces/measurements.h"

#include <stdbool.h>
#include <stddef.h>

/* The result of one run. It holds no pointers, because it crosses processes. */
struct run_answer {
    bool ok;
    char error[256];
    struct verdict verdict; /* at the row's length; of a search, at the longest that fits */
    struct reserved reserved;
    struct similarity like;
    double step_s, tokens_per_s_gpu;
    double mfu, mfu_other; /* by the source's convention; with the other factor for recomputation */
    struct operator_times operator;        /* of a part of the model (--scope) */
    struct sppo_answer sppo;               /* of SPPO's speed-ups and lengths */
    struct subsequence_answer subsequence; /* of rows about saved activations */
    bool has_baseline;
    struct baseline baseline; /* the step in closed form */
    int64_t longest;          /* of a search: the longest of the doubling grid that fits; 0: none */
    struct verdict beyond;    /* of a search: at the next length */
};

/* One row, judged. */
struct validated {
    struct measurement_result result;
    size_t run;        /* of validation.answer[]; SIZE_MAX: unsupported */
    bool counted;      /* in the means */
    const char *why;   /* unsupported: the reason */
    const char *other; /* why it is not counted, or what the reader should know; NULL: nothing */
};

struct validation {
    /* Set by the caller: changes of every run's machine. validation_run() fills the other members. */
    const struct perturbation *perturbation;
    size_t perturbations;
    struct arena arena;
    const struct measurements *rows;
    struct validated *row; /* rows->count */
    struct run_answer *answer;
    size_t run_count;
    const size_t *first_row; /* of each run */
    bool *search, *timed;    /* of each run */
};

enum status validation_run(struct validation *validation, const struct measurements *rows,
                           struct diag *diag);
void validation_release(struct validation *validation);

/* The steps of validation_run(), for a caller that runs the predictions: plan the runs, predict each (in a child
 * process, whose answer the caller copies to answer[run]), and judge the rows. */
void validation_plan(struct validation *validation, const struct measurements *rows);
void validation_predict(const struct validation *validation, size_t run, struct run_answer *answer);
void validation_judge(struct validation *validation);

/* True if two rows have the same source, table and metric. */
bool validation_same_table(const struct validation *validation, size_t a, size_t b);

#endif
