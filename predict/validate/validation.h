/* predict/validate/validation.h: predicts published figures: rows to runs, runs to answers, answers to outcomes.
 *
 * A row's `args` are options of the command `predict`, which the caller reads. Rows with the same args share a
 * prediction. Runs are predicted in child processes, as many at once as there are cores. Verdicts and longest lengths
 * depend only on memory, so they take no simulation. A longest length is searched among the layouts of the row's group
 * "lengths", or, without such a group, among the length of the args times powers of two. */
#ifndef PREDICT_VALIDATE_VALIDATION_H
#define PREDICT_VALIDATE_VALIDATION_H

#include "base/diag.h"
#include "predict/intervals.h"
#include "predict/operator_times.h"
#include "predict/prediction.h"
#include "predict/validate/baseline.h"
#include "predict/validate/perturbation.h"
#include "traces/external.h"

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
    double mfu,
        mfu_other; /* by the convention of the args; with the other factor for recomputation */
    struct operator_times operator; /* of a part of the model (--scope) */
    bool counts_recompute;          /* the convention counts recomputation, and the run has none */
    double speedup;                 /* over the run of column `against` */
    double saved;                   /* bytes of saved activations, or seconds to copy them */
    bool has_baseline;
    struct baseline baseline; /* the step in closed form */
    int64_t longest;          /* of a search: the longest that fits; 0: none */
    struct verdict beyond;    /* of a search: at the next length; of a speed-up: of the other run */
};

/* One row, judged. */
struct validated {
    struct external_result result;
    size_t run;        /* of validation.answer[]; SIZE_MAX: the row is a layout */
    bool counted;      /* in the means */
    const char *other; /* why it is not counted, or what the reader should know; NULL: nothing */
};

/* Loads the model, cluster and request that args describe into *setup, which must be all-zero, and the convention by
 * which MFU is counted. Files that args name are relative to the folder of the CSV file. Data that *setup points to is
 * allocated in setup->arena. */
typedef enum status run_setup_function(struct setup *setup, enum mfu_convention *mfu,
                                       const char *args, const char *csv, struct diag *diag);

struct validation {
    /* Set by the caller: changes of every run's machine. validation_run() fills the other members. */
    const struct perturbation *perturbation;
    size_t perturbations;
    run_setup_function *load;
    struct arena arena;
    const struct external_runs *rows;
    struct validated *row; /* rows->count */
    struct run_answer *answer;
    size_t run_count;
    const size_t *first_row; /* of each run */
    bool *timed;             /* of each run */
};

/* Searches for longest lengths go no lower, in tokens. */
#define VALIDATION_SHORTEST 32768

/* The key of the group of layouts among which a longest length is searched. */
#define VALIDATION_LENGTHS "lengths"

enum status validation_run(struct validation *validation, const struct external_runs *rows,
                           struct diag *diag);
void validation_release(struct validation *validation);

/* The steps of validation_run(), for a caller that runs the predictions: plan the runs, predict each (in a child
 * process, whose answer the caller copies to answer[run]), and judge the rows. */
void validation_plan(struct validation *validation, const struct external_runs *rows);
void validation_predict(const struct validation *validation, size_t run, struct run_answer *answer);
void validation_judge(struct validation *validation);

/* Writes the first message as one line into error[0..room): with the option that it is about, without the word
 * "error". */
void validation_put_error(char *error, size_t room, const struct diag *diag);

/* True if two rows are about one run: their source, place, framework, model and args agree. */
bool validation_same_run(const struct external_run *a, const struct external_run *b);

/* True if two rows have the same source, place and metric. */
bool validation_same_table(const struct validation *validation, size_t a, size_t b);

#endif
