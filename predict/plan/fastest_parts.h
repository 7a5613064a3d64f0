/* predict/plan/fastest_parts.h: what the sources of the search for the fastest share (predict/plan/fastest.h):
 * fastest.c runs the rounds, fastest_order.c chooses what a round looks at, fastest_steps.c takes one step of a
 * candidate in a child process. */
#ifndef PREDICT_PLAN_FASTEST_PARTS_H
#define PREDICT_PLAN_FASTEST_PARTS_H

#include "predict/plan/all_batches.h"
#include "predict/plan/best.h"
#include "predict/plan/layer_time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEARCH_ROUND = 16 }; /* jobs of a round */

enum { SEARCH_NO_LAYER = UINT32_MAX };

/* The next step of a candidate. */
enum search_stage { STAGE_LAYER, STAGE_SHORT, STAGE_WHOLE, STAGE_DONE };

struct search_node {
    double rate_bound; /* tokens/s/GPU that it cannot exceed, as far as is known */
    double max_ops;    /* an upper bound of the ops of its schedule, on one rank of each stage */
    /* rows of rate_search.layer: own_layer_row of the candidate's own layer, least_layer_row of the same layer without
     * recomputation */
    uint32_t least_layer_row, own_layer_row;
    uint8_t next_stage, repair;
    /* the candidate that differs only in the placement of stages; the candidate itself: there is none */
    size_t other_placement;
};

/* A layer that several candidates share. A member of layer_time is 0 if it could not be found. */
struct search_layer {
    struct layer_key key;
    struct bound_layer layer_time;
    bool has_sums, has_step; /* these have been looked for */
};

struct search_job {
    enum search_stage stage;
    size_t node_index;
    /* STAGE_LAYER: the row of rate_search.layer of which the job finds the sums, or, if these are known, the step */
    uint32_t layer_row;
};

/* The answer of a child process. All-zero: a signal ended the child. */
struct candidate_answer {
    bool is_answered;
    enum search_stage next_stage;
    uint8_t repair;
    struct bound_layer layer_time;
    double bound_s, rate_bound; /* seconds, tokens/s/GPU; 0: not known */
    struct outcome outcome, less_probable_outcome;
};

struct rate_search {
    struct best *best;
    struct setup *setup;
    const struct request *given_request;
    const struct space_open *open;
    struct search_node *node;
    struct search_layer *layer;
    uint32_t layer_count, capacity;
    struct search_job job[SEARCH_ROUND];
    uint64_t job_digest[SEARCH_ROUND]; /* the digest under which the result of each job is kept */
    size_t job_count;
    size_t strategy_in_turn; /* the strategy whose turn it is in add_least_memory_jobs() */
    int only_strategy;       /* only candidates of this row of strategies_list(); -1: all */
    struct outcome best_so_far;
    double began_s;
    /* for least_memory_first(): candidates that may need no more bytes than this come first */
    double little_memory_bytes;
    double rate_to_exceed; /* tokens/s/GPU: what is no faster is not simulated */
    /* with packed documents: tokens/s/GPU of the fastest candidates; 0: not known yet */
    double fastest_rates[COMPARED_ROWS];
};

/* True if a configuration that fits was found. */
static inline bool fastest_has_answer(const struct rate_search *s)
{
    return s->best_so_far.kind == OUTCOME_SIMULATED;
}

/* True if a candidate is not done, and may be better than `above`. */
bool fastest_is_open(const struct rate_search *search, size_t i, double above);
/* Returns how many candidates are not done and may be better than `above`. */
size_t fastest_open_above(const struct rate_search *search, double above);

/* Chooses the jobs of a round among the candidates whose bound exceeds `above`. As long as none is known to fit, up to
 * half of the jobs are candidates that most likely fit, and the others those with the highest bounds. Later the
 * candidates that need only one or two more steps come first, then those with the highest bounds. */
void fastest_choose_jobs(struct rate_search *search, double above);

/* Takes the step of a job, a workers_job_fn: context is the search, result a struct candidate_answer. */
void fastest_run_job(void *context, size_t number, void *result);

/* Returns a digest of everything on which a job's answer depends: the layer that it measures, or the candidate and what
 * is known about it. */
uint64_t fastest_job_key(const struct rate_search *search, const struct search_job *job);

#endif
