/* traces/explain.h: explains why a measured step takes longer than the predicted one. It splits the step of each rank
 * into parts, measured and predicted, and finds the causes of the differences.
 *
 * The time of a rank's step is divided among parts (enum explain_part). An instant counts for the first of these that
 * applies:
 *   - kernels run: the parts of their classes, or of work that the schedule does not have, in equal shares;
 *   - a message runs, and all its ranks have arrived: messages;
 *   - a copy, or work on a host stream, runs: copies;
 *   - a message waits for its last rank, or the rank has ended and others have not: waits;
 *   - nothing runs: idle.
 * Recordings of other programs are treated like our own traces. The parts of a rank add up to its step.
 *
 * A rank that waits does not show why. So the difference is explained on the rank that waits least, for which the
 * others wait. The time that only this rank takes longer than predicted is its own (a late rank, a slow link); the time
 * that the others take longer, too, is common. In recordings each rank has a clock of its own; the clocks are shifted
 * so that messages end at the same time on all ranks. */
#ifndef TRACES_EXPLAIN_H
#define TRACES_EXPLAIN_H

#include "base/arena.h"
#include "base/diag.h"
#include "traces/explain_part.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct explain_rank {
    uint32_t rank;
    double predicted_s[EXPLAIN_PART_COUNT], measured_s[EXPLAIN_PART_COUNT]; /* means over steps */
};

/* One cause; all causes of an explanation add up to the difference of the steps. */
struct explain_cause {
    const char *name; /* "late rank" */
    const char *text; /* "rank 1: its kernels take 20.3 % longer than those of other ranks" */
    int64_t rank;     /* the rank that has the cause; -1: all ranks */
    double seconds;   /* measured less predicted */
};

enum { EXPLAIN_CAUSES_MAX = 2 * EXPLAIN_PART_COUNT };

/* All-zero is empty. */
struct explanation {
    struct arena arena;
    struct explain_rank *times_of_ranks; /* ascending by rank */
    size_t rank_count;
    /* index in times_of_ranks[] of the rank that waits least, for which the others wait */
    size_t least_waiting_rank_index;
    size_t measured_steps;          /* number of measured steps */
    double predicted_s, measured_s; /* step times of the rank that waits least */
    /* The smallest comparison.matched_time_share of the measured traces (traces/compare.h). Below
     * COMPARE_MATCHED_SHARE_MIN, the causes may come from work that does not correspond. */
    double matched_time_share;
    struct explain_cause cause[EXPLAIN_CAUSES_MAX]; /* in descending order of |seconds| */
    size_t cause_count;
};

/* Explains `count` measured traces: one of ours with all its ranks, or (foreign) recordings of the PyTorch profiler,
 * one per rank; names[] are the names of the traces for messages. If the prediction has a single rank, it represents
 * all ranks. */
enum status explain_measured_against_predicted(struct explanation *explanation,
                                               const struct trace *predicted,
                                               const struct trace *const *measured,
                                               const char *const *names, size_t count, bool foreign,
                                               struct diag *diag);
void explanation_release(struct explanation *explanation);

#endif
