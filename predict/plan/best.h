/* predict/plan/best.h: the best of a space of configurations, by branch and bound.
 *
 * The fastest one is searched for as predict/plan/fastest.h says. For GOAL_LONGEST the bounds are bytes, and each
 * candidate is asked only whether it fits a longer sequence than the best one so far.
 *
 * Over packed documents the search compares the typical batch of each packed set, and finds the fastest COMPARED_ROWS
 * of the outcomes within OTHER_BATCHES_RATE_MARGIN_SHARE of the best; predict/plan/all_batches.h then compares these on
 * the other batches. */
#ifndef PREDICT_PLAN_BEST_H
#define PREDICT_PLAN_BEST_H

#include "predict/kept_jobs.h"
#include "predict/plan/outcome.h"

#include <stdbool.h>

/* A configuration that is slower than the best by more than this share on its typical batch is not tried on other
 * batches. */
#define OTHER_BATCHES_RATE_MARGIN_SHARE 0.05

enum plan_goal { GOAL_SPEED, GOAL_GPUS, GOAL_LONGEST, GOAL_COUNT };

/* Limits at which a search ends early or leaves something out, and where it keeps results. All-zero: no limits, and
 * nothing is kept. */
struct search_limits {
    double time_limit_s; /* the search ends after this many seconds; 0: no limit */
    /* the search ends when no configuration can be faster than the best by more than this share. If it is 1 or more,
     * the best configurations of the other strategies are not searched for either */
    double rate_gap_share;
    /* GOAL_LONGEST: a configuration that cannot reach a longer sequence than that of this outcome is not searched;
     * NULL: all are searched. Borrowed. */
    const struct outcome *outcome_to_beat;
    struct kept_jobs kept_jobs;
};

struct best {
    enum plan_goal goal;
    struct search_limits limits; /* set by the caller */
    struct space space;
    struct outcome *row; /* one per candidate on gpu_count GPUs, best first */
    size_t row_count;
    size_t outcome_count_of_kind[OUTCOME_KIND_COUNT];
    bool hit_time_limit; /* limits.time_limit_s ended the search */
    /* OUTCOME_SIMULATED: the best configuration that fits with a lower probability than the setup asks for, but at
     * least 0.5. Other kinds: none was found. With GOAL_GPUS it is the best on the fewest GPUs on which there is one.
     * It is not searched for with GOAL_LONGEST or packed documents. */
    struct outcome less_probable_best;
    /* GOAL_GPUS: the GPUs of less_probable_best; 0: there is none */
    size_t less_probable_gpu_count;
    size_t gpu_count; /* GPUs of the rows; GOAL_GPUS: the fewest on which some configuration fits */
    /* GOAL_GPUS: a limit ended a search on fewer GPUs before it found a configuration that fits */
    bool has_unfinished_search_on_fewer_gpus;
};

/* Searches the space and fills *best, which must be all-zero except its limits; release it in either case. With
 * GOAL_LONGEST, time_limit_s and rate_gap_share have no effect, and setup->request.seq is changed. Returns STATUS_NO if
 * nothing fits. After a signal that base/interrupt.h has noted, the search ends with the outcomes known so far. */
enum status best_find(struct best *best, enum plan_goal goal, struct setup *setup,
                      struct space_open open, struct diag *diag);
void best_release(struct best *best);

/* Returns what ended the search early, for messages: "--within", "an interrupt" or "a request to end"; NULL: nothing
 * did. */
const char *best_end_reason(const struct best *best);

/* Returns the share by which some configuration that was not simulated may be faster than the best row; 0 if none may
 * be. The best row must be OUTCOME_SIMULATED. */
double best_share_unsimulated_may_gain(const struct best *best);

/* Sorts the rows, best first; of equal rows, the one that was tried first comes first. */
void best_sort_rows(struct best *best);

/* True if a comes before b in the ranking. An outcome that was simulated comes before one that was not. Of two that
 * were, the first difference decides: with GOAL_LONGEST, the longer sequence is first; then the one that was predicted
 * on more packed batches; then the higher rate. */
bool best_is_better(enum plan_goal goal, const struct outcome *a, const struct outcome *b);

#endif
