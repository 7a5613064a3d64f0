/* traces/compare.h: compares a predicted trace with a measured one.
 *
 * Rows of the two become pairs. Our own traces are joined by (rank, op): both name the ops of one schedule. A
 * measured (rank, op) that occurs N times ran in N steps, and its time is the median over them. Foreign traces have
 * no op ids; their rows are aligned with the predicted ones (traces/align.h). Rows without a partner are counted; if
 * on either side less than COMPARE_MATCHED_SHARE_MIN of the time has partners, there is no verdict.
 *
 * Errors are predicted / measured - 1, so a positive one means that the predicted time is too long. */
#ifndef TRACES_COMPARE_H
#define TRACES_COMPARE_H

#include "base/arena.h"
#include "base/diag.h"
#include "traces/stats.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPARE_MATCHED_SHARE_MIN 0.9

/* A predicted and a measured time of the same work. Texts live in the traces. */
struct compare_pair {
    uint32_t rank;
    uint32_t op; /* id in the schedule; the first op's if the pair has several */
    const char *kind, *stream, *phase;
    int32_t layer;                          /* -1: none */
    uint32_t predicted_rows, measured_rows; /* rows of one step; 1 and 1 for our own traces */
    /* seconds of all predicted rows, and of all measured rows of one step (the median over steps) */
    double predicted_s, measured_s;
};

struct compare_side {
    size_t rows, unmatched_rows; /* over all steps */
    double busy_s, unmatched_s;  /* sums of row times in one step (mean over steps) */
    const struct trace *trace;
    double step_s; /* seconds of the median step */
};

struct compare_memory {
    uint32_t rank;
    const char *memory; /* the name of the memory: "hbm" */
    /* peaks or, in comparison.planned_memory, planned bytes */
    double predicted_bytes, measured_bytes;
};

/* Seconds of one step in which a rank's streams of one role (copies, messages) are busy, and seconds of these in
 * which no compute stream is busy (exposed); means over the compared ranks. */
struct compare_exposed {
    double predicted_busy_s, predicted_exposed_s;
    double measured_busy_s, measured_exposed_s;
};

/* The period of items that repeats in the forward pass: those of a layer. */
struct compare_layer_period {
    size_t item_count;   /* items (struct align_item) of one period; 0: nothing repeats */
    size_t repeat_count; /* number of whole periods */
};

/* All-zero is empty. Borrows the traces that it was made from. */
struct comparison {
    struct compare_pair *pairs;
    size_t pair_count, pair_capacity;
    struct compare_side predicted, measured;
    size_t measured_steps;
    double shortest_step_s, longest_step_s;
    /* measured ranks that the prediction lacks; they are not compared */
    size_t unpredicted_rank_count;
    size_t compared_rank_count;
    /* the share of the time that pairs cover, on the side where it is smaller */
    double matched_time_share;

    bool is_profiler_trace;
    struct compare_layer_period predicted_period, measured_period; /* set only for foreign traces */

    struct compare_memory *peak_memory;
    size_t peak_memory_count, peak_memory_capacity;
    /* planned bytes of rank 0, from the headers: "arena_bytes.hbm" */
    struct compare_memory *planned_memory;
    size_t planned_memory_count, planned_memory_capacity;
    struct compare_exposed exposed_time_by_stream_role[ROLE_COUNT]; /* our own traces only */
};

void comparison_release(struct comparison *comparison);

/* Joins our own traces. If the prediction has a single rank, that represents all ranks, since equal ranks are simulated
 * once. name: the name of the measured trace in messages. It is an error if a trace has no rows, if no measured rank is
 * predicted, or if a measured rank is not below the number of ranks in the prediction's header. */
enum status compare_with_longhaul_trace(struct comparison *comparison,
                                        const struct trace *predicted, const struct trace *measured,
                                        const char *name, struct diag *diag);

/* Aligns a recording, a trace from traces/kineto.h, with the predicted rows of its rank, or of the
 * only predicted rank. Arguments are those of compare_with_longhaul_trace(). It is an error if a trace has no rows,
 * if several ranks were predicted but not the recorded one, or if a step has too many items to
 * align. */
enum status compare_with_profiler_trace(struct comparison *comparison,
                                        const struct trace *predicted, const struct trace *measured,
                                        const char *name, struct diag *diag);

/* Returns the MHz of the multiprocessors at which a trace's header says that a kind of work ran: "sm_clock_mhz.KIND",
 * else "sm_clock_mhz"; 0: it says neither. */
double comparison_clock_mhz_of_header(const struct trace *trace, const char *kind);

double comparison_signed_relative_error(double predicted,
                                        double measured); /* NAN if measured is 0 */

enum compare_grouping { BY_KIND, BY_STREAM, BY_PHASE, BY_RANK, BY_COUNT };
const char *compare_grouping_name(enum compare_grouping by);

struct compare_group {
    const char *name; /* NULL: the group is a rank */
    uint32_t rank;
    size_t pair_count;
    double predicted_s, measured_s; /* sums over all ranks */
    double absolute_error_s;        /* sum of |predicted - measured| over its pairs */
    bool is_on_compute_stream;      /* some of its pairs are on streams with the role compute */
};

/* Returns the number of groups and puts them into *groups, those with the most measured time first; the caller frees
 * the array. */
size_t compare_list_groups(const struct comparison *comparison, enum compare_grouping by,
                           struct compare_group **groups);

struct compare_op {
    const struct compare_pair *pair_of_lowest_rank; /* the pair of the lowest rank */
    size_t rank_count;
    double predicted_s, measured_s, absolute_error_s; /* sums over ranks */
    double share_of_total_error; /* this op's share of absolute_error_s over all ops */
};

/* Returns the number of ops and puts them into *ops, those with the largest absolute_error_s first; the caller frees
 * the array. */
size_t compare_list_ops(const struct comparison *comparison, struct compare_op **ops);

enum compare_verdict { VERDICT_WITHIN, VERDICT_BEYOND, VERDICT_NONE };

/* Returns VERDICT_NONE if matched_time_share is less than COMPARE_MATCHED_SHARE_MIN. Else it returns VERDICT_WITHIN if
 * the step time and all peaks of memory that both sides have are within +-tolerance (0.15: 15 %) and planned arenas
 * agree to the byte, and VERDICT_BEYOND if not. */
enum compare_verdict compare_verdict_of(const struct comparison *comparison, double tolerance);

/* Returns the step time that a trace's header states ("step_s"), or `otherwise_s` if it states none. */
double comparison_step_s_of_header(const struct trace *trace, double otherwise_s);

/* comparison_add_pair() appends an all-zero pair and returns it. comparison_finish() is called
 * after the last pair was added: it sets matched_time_share, and compares memory and, for our own
 * traces, exposed times. Only compare_own.c and compare_foreign.c call these two. */
struct compare_pair *comparison_add_pair(struct comparison *comparison);
void comparison_finish(struct comparison *comparison, const struct trace *predicted,
                       const struct trace *measured);
/* Returns the median of value[0..count), count > 0; sorts the array. */
double comparison_sort_and_find_median(double *value, size_t count);

#endif
