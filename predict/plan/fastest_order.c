/* Chooses the candidates that take the next step in the search for the fastest (predict/plan/fastest_parts.h). */
#include "base/arena.h"
#include "predict/plan/fastest_parts.h"
#include "schedule/choices/strategies.h"

#include <math.h>

/* Limits of the jobs of a round that take long, since the results of others may make them unnecessary: at most
 * ROUND_WHOLE whole steps (one, as long as no candidate is known to fit), and at most ROUND_LONG jobs of candidates
 * with more than LONG_JOB_OPS ops. */
enum { ROUND_WHOLE = 4, ROUND_LONG = 2 };
#define LONG_JOB_OPS 1e6

/* Candidates with more ops than this (upper_bound_of_ops of struct candidate_search) take no part in the search for the
 * best of each strategy. */
#define RUNNER_UP_OPS_MAX 3e6

/* Returns the row of the layer that a candidate's next step times; SEARCH_NO_LAYER: that step times no layer. */
static uint32_t row_of_layer_timed_next(const struct rate_search *s,
                                        const struct candidate_search *node)
{
    if (node->next_candidate_step != SEARCH_STEP_LAYER)
        return SEARCH_NO_LAYER;
    return s->layer[node->least_layer_row].has_kernel_sums ? node->own_layer_row
                                                           : node->least_layer_row;
}

static bool is_long_job(const struct rate_search *s, const struct search_job *job)
{
    return job->step_to_take != SEARCH_STEP_LAYER &&
           s->node[job->candidate_index].upper_bound_of_ops > LONG_JOB_OPS;
}

/* Adds the next step of a candidate to the round, and returns whether it was added. It is not if the round is full, or
 * has as many whole steps or long jobs as it may; if it has a job of the candidate; if another job times the same
 * layer; or if the step is more than a layer, and the candidate with the other placement of stages has a job, which may
 * show that neither fits. Without `layers`, a candidate whose next step is a layer takes short steps instead. */
static bool add_job_of_next_step(struct rate_search *s, size_t i, bool layers)
{
    const struct candidate_search *node = &s->node[i];
    struct search_job job = {(enum candidate_next_step)node->next_candidate_step, i,
                             layers ? row_of_layer_timed_next(s, node) : SEARCH_NO_LAYER};
    size_t whole = 0, many = 0;
    if (job.step_to_take == SEARCH_STEP_LAYER && !layers)
        job.step_to_take = SEARCH_STEP_SHORT;
    for (size_t k = 0; k < s->job_count; k++) {
        whole += s->job[k].step_to_take == SEARCH_STEP_WHOLE;
        many += is_long_job(s, &s->job[k]);
        if (s->job[k].candidate_index == i ||
            (s->job[k].candidate_index == node->other_placement &&
             job.step_to_take != SEARCH_STEP_LAYER) ||
            (job.timed_layer_row_of_job != SEARCH_NO_LAYER &&
             s->job[k].timed_layer_row_of_job == job.timed_layer_row_of_job))
            return false;
    }
    if (s->job_count == SEARCH_ROUND ||
        (job.step_to_take == SEARCH_STEP_WHOLE &&
         whole == (fastest_has_found_a_fit(s) ? ROUND_WHOLE : 1)) ||
        (is_long_job(s, &job) && many == ROUND_LONG))
        return false;
    s->job[s->job_count++] = job;
    return true;
}

/* An order of candidates: true if a comes before b. */
typedef bool candidate_order_fn(const struct rate_search *s, size_t a, size_t b);

/* True if candidate a comes before candidate b. The first difference decides: the higher bound of the rate is first,
 * then fewer ops, which take less time to predict, then the fewer bytes that a GPU needs at least. */
static bool higher_rate_bound_first(const struct rate_search *s, size_t a, size_t b)
{
    const struct candidate_search *x = &s->node[a], *y = &s->node[b];
    if (x->rate_bound != y->rate_bound)
        return x->rate_bound > y->rate_bound;
    if (x->upper_bound_of_ops != y->upper_bound_of_ops)
        return x->upper_bound_of_ops < y->upper_bound_of_ops;
    return s->best->space.row[a].gpu_lower_bound_bytes <
           s->best->space.row[b].gpu_lower_bound_bytes;
}

/* True if candidate a comes before candidate b. Candidates that may need little memory (at most
 * little_memory_bytes_max) come first, since they most likely fit. Then the first difference decides: fewer ops are
 * first, which take less time to predict; then the longer lower bound of the step, since recomputation makes it longer;
 * then higher_rate_bound_first(). */
static bool little_memory_first(const struct rate_search *s, size_t a, size_t b)
{
    const struct candidate *row = s->best->space.row;
    bool x = row[a].gpu_lower_bound_bytes <= s->little_memory_bytes_max,
         y = row[b].gpu_lower_bound_bytes <= s->little_memory_bytes_max;
    if (x != y)
        return x;
    if (s->node[a].upper_bound_of_ops != s->node[b].upper_bound_of_ops)
        return s->node[a].upper_bound_of_ops < s->node[b].upper_bound_of_ops;
    return row[a].step_lower_bound_s != row[b].step_lower_bound_s
               ? row[a].step_lower_bound_s > row[b].step_lower_bound_s
               : higher_rate_bound_first(s, a, b);
}

bool fastest_is_candidate_open_above_rate(const struct rate_search *s, size_t i, double above)
{
    return s->node[i].next_candidate_step != SEARCH_STEP_DONE && s->node[i].rate_bound > above &&
           (s->searched_strategy_index < 0 ||
            (s->best->space.row[i].strategy == s->searched_strategy_index &&
             s->node[i].upper_bound_of_ops <= RUNNER_UP_OPS_MAX));
}

size_t fastest_count_open_above_rate(const struct rate_search *s, double above)
{
    size_t open = 0;
    for (size_t i = 0; i < s->best->space.candidate_count; i++)
        open += fastest_is_candidate_open_above_rate(s, i, above);
    return open;
}

/* Sets little_memory_bytes_max to 1.25 times the smallest gpu_lower_bound_bytes of the open candidates. */
static void set_little_memory_bytes_max(struct rate_search *s, double above)
{
    double least = HUGE_VAL;
    for (size_t i = 0; i < s->best->space.candidate_count; i++)
        if (fastest_is_candidate_open_above_rate(s, i, above))
            least = fmin(least, s->best->space.row[i].gpu_lower_bound_bytes);
    s->little_memory_bytes_max = 1.25 * least;
}

/* The candidates that come first in an order. Of several whose next step times the same layer, only the first is among
 * them. */
struct first_candidates {
    size_t node[SEARCH_ROUND + SEARCH_ROUND / 2], count;
};

static void insert_candidate(struct first_candidates *f, const struct rate_search *s,
                             candidate_order_fn *before, bool layers, size_t i)
{
    uint32_t layer = layers ? row_of_layer_timed_next(s, &s->node[i]) : SEARCH_NO_LAYER;
    size_t last = f->count;
    if (f->count == ARRAY_LEN(f->node) && !before(s, i, f->node[f->count - 1]))
        return;
    for (size_t k = 0; k < f->count && layer != SEARCH_NO_LAYER; k++)
        if (row_of_layer_timed_next(s, &s->node[f->node[k]]) == layer) {
            if (!before(s, i, f->node[k]))
                return;
            last = k; /* i takes its place, or an earlier one */
            break;
        }
    if (last == f->count && f->count < ARRAY_LEN(f->node))
        f->count++;
    else if (last == f->count)
        last--;
    for (; last > 0 && before(s, i, f->node[last - 1]); last--)
        f->node[last] = f->node[last - 1];
    f->node[last] = i;
}

/* Adds to the round the next steps of the candidates that come first in an order, at most `most`. Only open candidates
 * whose bound exceeds `above` and whose next step is `from` or a later one are taken. Without `layers`, candidates take
 * short steps without waiting for the time of their layers. */
static void add_jobs_of_first_candidates(struct rate_search *s, candidate_order_fn *before,
                                         size_t most, enum candidate_next_step from, bool layers,
                                         double above)
{
    struct first_candidates firsts = {.count = 0};
    size_t added = 0;
    for (size_t i = 0; i < s->best->space.candidate_count; i++)
        if (s->node[i].next_candidate_step >= from &&
            fastest_is_candidate_open_above_rate(s, i, above))
            insert_candidate(&firsts, s, before, layers, i);
    for (size_t k = 0; k < firsts.count && added < most; k++)
        added += add_job_of_next_step(s, firsts.node[k], layers);
}

/* Adds at most `most` jobs for the candidates of one strategy that most likely fit. Strategies take turns from call to
 * call, since all candidates of one of them may need too much memory. */
static void add_least_memory_jobs(struct rate_search *s, size_t most, double above)
{
    size_t strategies;
    int all = s->searched_strategy_index;
    strategies_list(&strategies);
    for (size_t i = 0; i < strategies; i++) {
        s->searched_strategy_index = (int)(s->strategy_in_turn++ % strategies);
        if (fastest_count_open_above_rate(s, above) > 0)
            break;
    }
    set_little_memory_bytes_max(s, above);
    add_jobs_of_first_candidates(s, little_memory_first, most, SEARCH_STEP_LAYER, false, above);
    s->searched_strategy_index = all;
}

void fastest_choose_jobs(struct rate_search *s, double above)
{
    s->job_count = 0;
    if (fastest_has_found_a_fit(s) || s->searched_strategy_index >= 0) {
        add_jobs_of_first_candidates(s, higher_rate_bound_first, 1, SEARCH_STEP_WHOLE, true, above);
        add_jobs_of_first_candidates(s, higher_rate_bound_first, 2, SEARCH_STEP_SHORT, true, above);
        add_jobs_of_first_candidates(s, higher_rate_bound_first, SEARCH_ROUND, SEARCH_STEP_LAYER,
                                     true, above);
    } else {
        add_least_memory_jobs(s, SEARCH_ROUND / 4, above);
        add_least_memory_jobs(s, SEARCH_ROUND / 4, above);
        add_jobs_of_first_candidates(
            s, s->best->goal == GOAL_GPUS ? little_memory_first : higher_rate_bound_first,
            SEARCH_ROUND, SEARCH_STEP_LAYER, s->best->goal != GOAL_GPUS, above);
    }
}
