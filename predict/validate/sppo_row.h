/* predict/validate/sppo_row.h: rows of SPPO's paper: its speed-ups, the longest lengths that it and its baselines run, and
 * steps of them.
 *
 * A speed-up's Megatron baseline runs on the ranks and stages that Table 4 tuned for it. How it fills its
 * pipeline with one sequence is not stated: the same subsequences are scored, and whole sequences are printed
 * beside. DeepSpeed is scored in FPDT's chunks, and told without. */
#ifndef PREDICT_VALIDATE_SPPO_ROW_H
#define PREDICT_VALIDATE_SPPO_ROW_H

#include "base/diag.h"
#include "base/text.h"
#include "predict/validate/sppo_run.h"
#include "traces/measurements.h"

#include <stdbool.h>

/* Plain bytes, since it crosses a process. */
struct sppo_answer {
    double speedup,
        speedup_other;     /* the second: against the other reading of the baseline; NAN: none */
    double speedup_shared; /* with multiplexed partitioning; NAN: not asked for */
    int64_t longest, longest_other;   /* by two readings of the row */
    int64_t longest_scored;           /* Megatron's: the longer of them */
    char scored_as[32], other_as[48]; /* what the readings are; other_as empty: there is none */
    struct verdict verdict, beyond;
};

/* Table 4's configurations, and what a step of each takes. False: there are no more. */
bool sppo_cell(struct sppo_cell *cell, size_t i);
struct sppo_time {
    double step_s, tokens_per_s_gpu;
    struct verdict verdict;
    struct shared_units shared; /* of SPPO_MULTIPLEXED: what was chosen */
};
enum status sppo_time(struct sppo_time *time, const struct sppo_cell *cell, enum sppo_system system,
                      struct diag *diag);

/* Rows that sppo_predict() answers, and those of one step, which sppo_setup() makes ready. */
bool sppo_row(const struct measurement *row);
bool sppo_step_row(const struct measurement *row);
bool sppo_supported(const struct measurement *row, struct text *why);
enum status sppo_predict(struct sppo_answer *answer, const struct measurement *row,
                         const struct setup_change *change, struct diag *diag);
enum status sppo_setup(struct setup *setup, const struct measurement *row, struct diag *diag);

#endif
