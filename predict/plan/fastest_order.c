/* Chooses the candidates that take the next step in the search for the fastest (predict/plan/fastest_parts.h). */
#include "base/arena.h"
#include "predict/plan/fastest_parts.h"
#include "schedule/choices/strategies.h"

#include <math.h>

/* The results of a round's jobs may make further jobs unnecessary. So at most ROUND_WHOLE jobs of a round are whole
 * steps, and at most ROUND_LONG are of candidates with more than LONG_OPS ops. */
enum { ROUND_WHOLE = 4, ROUND_LONG = 2 };
#define LONG_OPS 1e6

/* Candidates with more ops than this on the ranks of all stages together, by the upper bound of step_max_ops(), are
 * not searched for the best of each strategy. */
#define RUNNER_UP_OPS 3e6

/* Returns the row of the layer that a candidate's next step measures; SEARCH_NO_LAYER: that step measures none. */
static uint32_t layer_of_next_step(const struct rate_search *s, const struct search_node *node)
{
    if (node->next_stage != STAGE_LAYER)
        return SEARCH_NO_LAYER;
    return s->layer[node->least_layer_row].has_sums ? node->own_layer_row : node->least_layer_row;
}

static bool is_long_job(const struct rate_search *s, const struct search_job *job)
{
    return job->stage != STAGE_LAYER && s->node[job->node_index].max_ops > LONG_OPS;
}

/* Adds the next step of a candidate to the round, unless another job does the same step, or a job for the other
 * placement of its stages may show that the candidate does not fit. Returns whether it was added. */
static bool add_job(struct rate_search *s, size_t i, bool layers)
{
    const struct search_node *node = &s->node[i];
    struct search_job job = {(enum search_stage)node->next_stage, i,
                             layers ? layer_of_next_step(s, node) : SEARCH_NO_LAYER};
    size_t whole = 0, many = 0;
    if (job.stage == STAGE_LAYER && !layers)
        job.stage = STAGE_SHORT;
    for (size_t k = 0; k < s->job_count; k++) {
        whole += s->job[k].stage == STAGE_WHOLE;
        many += is_long_job(s, &s->job[k]);
        if (s->job[k].node_index == i ||
            (s->job[k].node_index == node->other_placement && job.stage != STAGE_LAYER) ||
            (job.layer_row != SEARCH_NO_LAYER && s->job[k].layer_row == job.layer_row))
            return false;
    }
    if (s->job_count == SEARCH_ROUND ||
        (job.stage == STAGE_WHOLE && whole == (fastest_has_answer(s) ? ROUND_WHOLE : 1)) ||
        (is_long_job(s, &job) && many == ROUND_LONG))
        return false;
    s->job[s->job_count++] = job;
    return true;
}

/* An order of candidates: true if a comes before b. */
typedef bool candidate_order_fn(const struct rate_search *s, size_t a, size_t b);

/* True if candidate a comes before candidate b: it has the higher bound; or, if these are equal, it takes less to
 * predict; or, if these are equal, it needs less memory. */
static bool highest_bound_first(const struct rate_search *s, size_t a, size_t b)
{
    const struct search_node *x = &s->node[a], *y = &s->node[b];
    if (x->rate_bound != y->rate_bound)
        return x->rate_bound > y->rate_bound;
    if (x->max_ops != y->max_ops)
        return x->max_ops < y->max_ops;
    return s->best->space.row[a].gpu_lower_bound_bytes <
           s->best->space.row[b].gpu_lower_bound_bytes;
}

/* True if candidate a comes before candidate b. Candidates that may need little memory come first, since they most
 * likely fit; among these, those that are predicted fastest, and then those that recompute most. */
static bool least_memory_first(const struct rate_search *s, size_t a, size_t b)
{
    const struct candidate *row = s->best->space.row;
    bool x = row[a].gpu_lower_bound_bytes <= s->little_memory_bytes,
         y = row[b].gpu_lower_bound_bytes <= s->little_memory_bytes;
    if (x != y)
        return x;
    if (s->node[a].max_ops != s->node[b].max_ops)
        return s->node[a].max_ops < s->node[b].max_ops;
    return row[a].step_lower_bound_s != row[b].step_lower_bound_s
               ? row[a].step_lower_bound_s > row[b].step_lower_bound_s
               : highest_bound_first(s, a, b);
}

bool fastest_is_open(const struct rate_search *s, size_t i, double above)
{
    return s->node[i].next_stage != STAGE_DONE && s->node[i].rate_bound > above &&
           (s->only_strategy < 0 || (s->best->space.row[i].strategy == s->only_strategy &&
                                     s->node[i].max_ops <= RUNNER_UP_OPS));
}

size_t fastest_open_above(const struct rate_search *s, double above)
{
    size_t open = 0;
    for (size_t i = 0; i < s->best->space.candidate_count; i++)
        open += fastest_is_open(s, i, above);
    return open;
}

/* Sets little_memory_bytes: a quarter more than the least of all open candidates. */
static void find_little_memory(struct rate_search *s, double above)
{
    double least = HUGE_VAL;
    for (size_t i = 0; i < s->best->space.candidate_count; i++)
        if (fastest_is_open(s, i, above))
            least = fmin(least, s->best->space.row[i].gpu_lower_bound_bytes);
    s->little_memory_bytes = 1.25 * least;
}

/* The candidates that come first in an order. Of candidates that would simulate the same layer, it has only one. */
struct first_candidates {
    size_t node[SEARCH_ROUND + SEARCH_ROUND / 2], count;
};

static void insert_candidate(struct first_candidates *f, const struct rate_search *s,
                             candidate_order_fn *before, bool layers, size_t i)
{
    uint32_t layer = layers ? layer_of_next_step(s, &s->node[i]) : SEARCH_NO_LAYER;
    size_t last = f->count;
    if (f->count == ARRAY_LEN(f->node) && !before(s, i, f->node[f->count - 1]))
        return;
    for (size_t k = 0; k < f->count && layer != SEARCH_NO_LAYER; k++)
        if (layer_of_next_step(s, &s->node[f->node[k]]) == layer) {
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

/* Adds the next steps of the first candidates of an order to the round, at most `most` of them. Only candidates count
 * that have reached stage `from` and may be better than `above`. layers false: candidates do short steps without
 * waiting for the time of their layers. */
static void add_first_jobs(struct rate_search *s, candidate_order_fn *before, size_t most,
                           enum search_stage from, bool layers, double above)
{
    struct first_candidates firsts = {.count = 0};
    size_t added = 0;
    for (size_t i = 0; i < s->best->space.candidate_count; i++)
        if (s->node[i].next_stage >= from && fastest_is_open(s, i, above))
            insert_candidate(&firsts, s, before, layers, i);
    for (size_t k = 0; k < firsts.count && added < most; k++)
        added += add_job(s, firsts.node[k], layers);
}

/* Adds jobs of those candidates of one strategy that most likely fit. Strategies take turns, since all layouts of one
 * of them may need too much memory. */
static void add_least_memory_jobs(struct rate_search *s, size_t most, double above)
{
    size_t strategies;
    int all = s->only_strategy;
    strategies_list(&strategies);
    for (size_t i = 0; i < strategies; i++) {
        s->only_strategy = (int)(s->strategy_in_turn++ % strategies);
        if (fastest_open_above(s, above) > 0)
            break;
    }
    find_little_memory(s, above);
    add_first_jobs(s, least_memory_first, most, STAGE_LAYER, false, above);
    s->only_strategy = all;
}

void fastest_choose_jobs(struct rate_search *s, double above)
{
    s->job_count = 0;
    if (fastest_has_answer(s) || s->only_strategy >= 0) {
        add_first_jobs(s, highest_bound_first, 1, STAGE_WHOLE, true, above);
        add_first_jobs(s, highest_bound_first, 2, STAGE_SHORT, true, above);
        add_first_jobs(s, highest_bound_first, SEARCH_ROUND, STAGE_LAYER, true, above);
    } else {
        add_least_memory_jobs(s, SEARCH_ROUND / 4, above);
        add_least_memory_jobs(s, SEARCH_ROUND / 4, above);
        add_first_jobs(s, s->best->goal == GOAL_GPUS ? least_memory_first : highest_bound_first,
                       SEARCH_ROUND, STAGE_LAYER, s->best->goal != GOAL_GPUS, above);
    }
}
