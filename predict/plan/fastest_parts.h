/* predict/plan/fastest_parts.h: types and functions that the sources of the search for the fastest share
 * (predict/plan/fastest.h). fastest.c runs the rounds, fastest_order.c chooses the jobs of a round, and fastest_steps.c
 * does one job in a child process.
 *
 * A job takes the next step of a candidate: it times a layer (SEARCH_STEP_LAYER), extrapolates from short steps
 * (SEARCH_STEP_SHORT), or predicts the whole step (SEARCH_STEP_WHOLE). Before the last two a repair is chosen
 * (predict/plan/repairs.h). A candidate is done (SEARCH_STEP_DONE) if it was simulated, refused, or does not fit with
 * any repair. It is open as long as it is not done and its bound exceeds the rate that it has to exceed. */
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

/* The next step of a candidate (not a pipeline's stage). */
enum candidate_next_step {
    SEARCH_STEP_LAYER,
    SEARCH_STEP_SHORT,
    SEARCH_STEP_WHOLE,
    SEARCH_STEP_DONE
};

/* The state of one candidate. */
struct candidate_search {
    double rate_bound; /* tokens/s/GPU that it cannot exceed, as far as is known */
    /* an upper bound of its schedule's ops, on one rank of each stage, summed over stages */
    double upper_bound_of_ops;
    /* rows of rate_search.layer. own_layer_row: the candidate's layer; least_layer_row: the same layer without
     * recomputation and offload, which takes no longer. SEARCH_NO_LAYER: no layer of the candidate is timed */
    uint32_t least_layer_row, own_layer_row;
    uint8_t next_candidate_step; /* enum candidate_next_step */
    /* how many repairs were found not to suffice, and so the number of the next one, counted from 0 */
    uint8_t next_repair_number;
    /* the candidate that differs only in the placement of stages; the candidate itself: there is none */
    size_t other_placement;
};

/* A layer that several candidates share. It is timed in two steps (predict/plan/layer_time.h): first
 * layer_kernel_sums(), then layer_simulated_s(). A member of layer_time is 0 if it could not be found. */
struct timed_layer {
    struct layer_key key;
    struct layer_lower_bound layer_time;
    bool has_kernel_sums, has_step; /* the first and the second step were taken */
};

struct search_job {
    enum candidate_next_step step_to_take; /* the step of the candidate that the job takes */
    size_t candidate_index;                /* the candidate: index in rate_search.node */
    /* SEARCH_STEP_LAYER: the row of rate_search.layer that the job times; other steps: SEARCH_NO_LAYER */
    uint32_t timed_layer_row_of_job;
};

/* The answer of a job's child process. All-zero: a signal ended the child. SEARCH_STEP_LAYER fills is_answered and
 * layer_time; the other steps fill all members but layer_time. */
struct candidate_answer {
    bool is_answered;
    enum candidate_next_step next_candidate_step;
    uint8_t next_repair_number; /* as in struct candidate_search, after this job */
    struct layer_lower_bound layer_time;
    double bound_s;    /* no step of the candidate is shorter; 0: not known */
    double rate_bound; /* tokens/s/GPU that the candidate cannot exceed; 0: not known */
    struct outcome outcome;
    struct outcome less_probable_outcome; /* OUTCOME_SIMULATED, or else there is none */
};

struct rate_search {
    struct best *best;
    struct setup *setup;
    const struct request *given_request;
    const struct space_open *open;
    struct candidate_search *node;
    struct timed_layer *layer;
    uint32_t layer_count, capacity;
    struct search_job job[SEARCH_ROUND];
    uint64_t job_digest[SEARCH_ROUND]; /* the digest under which the result of each job is kept */
    size_t job_count;
    size_t strategy_in_turn;     /* the strategy whose turn it is in add_least_memory_jobs() */
    int searched_strategy_index; /* only candidates of this row of strategies_list(); -1: all */
    struct outcome best_so_far;
    double began_s; /* when the search began, in seconds of a monotonic clock */
    /* for add_least_memory_jobs(): candidates that may need no more bytes than this come first */
    double little_memory_bytes_max;
    double rate_to_exceed; /* tokens/s/GPU: a candidate that cannot be faster is not simulated */
    /* the highest rates (tokens/s/GPU) of simulated candidates, the highest first; 0: fewer were simulated */
    double fastest_tokens_per_s_gpu[COMPARED_ROWS];
};

/* True if a configuration that fits was found. */
static inline bool fastest_has_found_a_fit(const struct rate_search *s)
{
    return s->best_so_far.kind == OUTCOME_SIMULATED;
}

/* True if candidate i takes part in the search, is not done, and has a bound that exceeds `above`. With
 * searched_strategy_index set, only candidates of that strategy without very many ops take part. */
bool fastest_is_candidate_open_above_rate(const struct rate_search *search, size_t i, double above);
/* Returns how many candidates are open (fastest_is_candidate_open_above_rate()). */
size_t fastest_count_open_above_rate(const struct rate_search *search, double above);

/* Chooses the jobs of a round among the candidates that are open above `above`. As long as none is known to fit, up to
 * half of the jobs are for candidates that most likely fit; the others are for those with the highest bounds or, with
 * GOAL_GPUS, also for those that most likely fit. Later, and in the search for the best of a strategy, one whole step
 * and two short steps of candidates that have come so far are first; then come those with the highest bounds. */
void fastest_choose_jobs(struct rate_search *search, double above);

/* Does a job; it is a workers_job_fn. context: the search; result: a struct candidate_answer. */
void fastest_run_job(void *context, size_t number, void *result);

/* Returns a digest of what a job's answer depends on besides the options and files of the question: the layer that it
 * times, or the candidate and what the search knows of it. */
uint64_t fastest_job_digest(const struct rate_search *search, const struct search_job *job);

#endif
