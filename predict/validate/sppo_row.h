/* predict/validate/sppo_row.h: predicts rows of SPPO's paper: its speed-ups, and the longest lengths and the steps of
 * SPPO and its baselines.
 *
 * A speed-up's Megatron baseline runs on the ranks and stages that Table 4 tuned for it. The paper does not state how
 * that baseline fills its pipeline with one sequence: with SPPO's subsequences it is scored, and with whole sequences
 * it is printed as well. DeepSpeed is scored with FPDT's chunks, and printed without them as well. */
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

/* sppo_cell() sets *cell to configuration i of Table 4; false: there is none. sppo_time() predicts its step. */
bool sppo_cell(struct sppo_cell *cell, size_t i);
struct sppo_time {
    double step_s, tokens_per_s_gpu;
    struct verdict verdict;
    struct shared_units shared; /* of SPPO_MULTIPLEXED: what was chosen */
};
enum status sppo_time(struct sppo_time *time, const struct sppo_cell *cell, enum sppo_system system,
                      struct diag *diag);

/* sppo_row(): true for rows that sppo_predict() answers. sppo_step_row(): true for rows of one step, whose request
 * sppo_setup() fills. */
bool sppo_row(const struct measurement *row);
bool sppo_step_row(const struct measurement *row);
bool sppo_supported(const struct measurement *row, struct text *why);
enum status sppo_predict(struct sppo_answer *answer, const struct measurement *row,
                         const struct setup_change *change, struct diag *diag);
enum status sppo_setup(struct setup *setup, const struct measurement *row, struct diag *diag);

#endif
