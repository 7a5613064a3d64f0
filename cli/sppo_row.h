/* cli/sppo_row.h: SPPO's own rows: its speed-ups, and the longest lengths that it and its baseline run.
 *
 * The paper (arXiv 2503.10377, Table 4) gives tensor ranks, stages and subsequences for each model and
 * length; subsequences are balanced by flops with full attention, as its Figure 5 shows. The baseline
 * recomputes layers; how it fills its pipeline with one sequence is not stated: the same subsequences are
 * scored, and whole sequences told beside. */
#ifndef CLI_SPPO_ROW_H
#define CLI_SPPO_ROW_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/prediction.h"
#include "traces/measurements.h"

#include <stdbool.h>

/* Plain bytes, since it crosses a process. */
struct sppo_answer {
    double speedup, speedup_whole;  /* the second: against whole sequences; NAN: not asked for */
    double speedup_shared;          /* with multiplexed partitioning; NAN: not asked for */
    int64_t longest, longest_tuned; /* the second: of (all GPUs, 1); 0: not asked for */
    int64_t longest_shared;         /* with multiplexed partitioning; -1: not asked for */
    struct verdict verdict, beyond;
};

/* Table 4's configurations, and what a step of each takes. */
struct sppo_cell {
    const char *model;
    int64_t tokens, pieces, tp, pp;
};
enum sppo_system {
    SPPO_NONE, /* nothing to the host */
    SPPO_FULL,
    SPPO_ADAPTIVE,
    SPPO_MULTIPLEXED, /* adaptive, and stages share the subsequences that are predicted to pay */
    SPPO_SYSTEM_COUNT
};
extern const char *const sppo_system_names[SPPO_SYSTEM_COUNT];
/* False: there are no more. */
bool sppo_cell(struct sppo_cell *cell, size_t i);
struct sppo_time {
    double step_s;
    struct verdict verdict;
    struct shared_units shared; /* of SPPO_MULTIPLEXED: what was chosen */
};
enum status sppo_time(struct sppo_time *time, size_t cell, enum sppo_system system,
                      struct diag *diag);

bool sppo_row(const struct measurement *row);
bool sppo_supported(const struct measurement *row, struct text *why);
enum status sppo_predict(struct sppo_answer *answer, const struct measurement *row,
                         const struct setup_change *change, struct diag *diag);

#endif
