/* Which candidates take the next step, of the search for the fastest (predict/plan/fastest_parts.h). */
#include "base/arena.h"
#include "predict/plan/fastest_parts.h"
#include "schedule/choices/strategies.h"

#include <math.h>

/* At most how many jobs of a round are whole steps, or are of candidates with more than LONG_OPS ops: what one of these
 * finds spares others. */
enum { ROUND_WHOLE = 4, ROUND_LONG = 2 };
#define LONG_OPS 1e6

/* Candidates with more ops on the ranks of all stages together, by the upper bound of step_ops_at_most(), are left
 * out of that. */
#define RUNNER_UP_OPS 3e6

/* Returns the layer that a candidate's next step looks at; SEARCH_NO_LAYER: that step is another one. */
static uint32_t next_layer(const struct rate_search *s, const struct search_node *node)
{
    if (node->stage != STAGE_LAYER)
        return SEARCH_NO_LAYER;
    return s->layer[node->least_layer_row].has_sums ? node->own_layer_row : node->least_layer_row;
}

static bool is_long(const struct rate_search *s, const struct search_job *job)
{
    return job->stage != STAGE_LAYER && s->node[job->node].ops > LONG_OPS;
}

/* Adds the next step of a candidate to the round, unless another one takes it already, or its twin may tell that it
 * does not fit. */
static bool add_job(struct rate_search *s, size_t i, bool layers)
{
    const struct search_node *node = &s->node[i];
    struct search_job job = {(enum search_stage)node->stage, i,
                             layers ? next_layer(s, node) : SEARCH_NO_LAYER};
    size_t whole = 0, many = 0;
    if (job.stage == STAGE_LAYER && !layers)
        job.stage = STAGE_SHORT;
    for (size_t k = 0; k < s->jobs; k++) {
        whole += s->job[k].stage == STAGE_WHOLE;
        many += is_long(s, &s->job[k]);
        if (s->job[k].node == i ||
            (s->job[k].node == node->other_placement && job.stage != STAGE_LAYER) ||
            (job.layer != SEARCH_NO_LAYER && s->job[k].layer == job.layer))
            return false;
    }
    if (s->jobs == SEARCH_ROUND ||
        (job.stage == STAGE_WHOLE && whole == (fastest_has_answer(s) ? ROUND_WHOLE : 1)) ||
        (is_long(s, &job) && many == ROUND_LONG))
        return false;
    s->job[s->jobs++] = job;
    return true;
}

/* An order of candidates: true if a comes before b. */
typedef bool order_fn(const struct rate_search *s, size_t a, size_t b);

/* The highest bound comes first; of equal ones, what takes least to predict, and then what needs least memory. */
static bool highest_first(const struct rate_search *s, size_t a, size_t b)
{
    const struct search_node *x = &s->node[a], *y = &s->node[b];
    if (x->rate_bound != y->rate_bound)
        return x->rate_bound > y->rate_bound;
    if (x->ops != y->ops)
        return x->ops < y->ops;
    return s->best->space.row[a].least_bytes < s->best->space.row[b].least_bytes;
}

/* True if candidate a comes before candidate b: candidates that may need little memory come first, since they most
 * likely fit; among these, the ones that are predicted fastest, and then the ones that recompute most. */
static bool roomiest_first(const struct rate_search *s, size_t a, size_t b)
{
    const struct candidate *row = s->best->space.row;
    bool x = row[a].least_bytes <= s->little_bytes, y = row[b].least_bytes <= s->little_bytes;
    if (x != y)
        return x;
    if (s->node[a].ops != s->node[b].ops)
        return s->node[a].ops < s->node[b].ops;
    return row[a].bound_s != row[b].bound_s ? row[a].bound_s > row[b].bound_s
                                            : highest_first(s, a, b);
}

bool fastest_is_open(const struct rate_search *s, size_t i, double above)
{
    return s->node[i].stage != STAGE_DONE && s->node[i].rate_bound > above &&
           (s->strategy < 0 ||
            (s->best->space.row[i].strategy == s->strategy && s->node[i].ops <= RUNNER_UP_OPS));
}

size_t fastest_open_above(const struct rate_search *s, double above)
{
    size_t open = 0;
    for (size_t i = 0; i < s->best->space.count; i++)
        open += fastest_is_open(s, i, above);
    return open;
}

/* Finds out what little memory is: a quarter more than the least of all open candidates. */
static void find_little(struct rate_search *s, double above)
{
    double least = HUGE_VAL;
    for (size_t i = 0; i < s->best->space.count; i++)
        if (fastest_is_open(s, i, above))
            least = fmin(least, s->best->space.row[i].least_bytes);
    s->little_bytes = 1.25 * least;
}

/* The candidates that come first; of those that would simulate the same layer only one. */
struct first_candidates {
    size_t node[SEARCH_ROUND + SEARCH_ROUND / 2], count;
};

static void put_first(struct first_candidates *f, const struct rate_search *s, order_fn *before,
                      bool layers, size_t i)
{
    uint32_t layer = layers ? next_layer(s, &s->node[i]) : SEARCH_NO_LAYER;
    size_t last = f->count;
    if (f->count == ARRAY_LEN(f->node) && !before(s, i, f->node[f->count - 1]))
        return;
    for (size_t k = 0; k < f->count && layer != SEARCH_NO_LAYER; k++)
        if (next_layer(s, &s->node[f->node[k]]) == layer) {
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

/* Adds the first candidates of an order to the round, at most `most` of them, of those from a stage on that may be
 * better than `above`. Unless `layers`, they take short steps without waiting for the time of their layers. */
static void choose_jobs(struct rate_search *s, order_fn *before, size_t most,
                        enum search_stage from, bool layers, double above)
{
    struct first_candidates firsts = {.count = 0};
    size_t added = 0;
    for (size_t i = 0; i < s->best->space.count; i++)
        if (s->node[i].stage >= from && fastest_is_open(s, i, above))
            put_first(&firsts, s, before, layers, i);
    for (size_t k = 0; k < firsts.count && added < most; k++)
        added += add_job(s, firsts.node[k], layers);
}

/* Adds the candidates of one strategy that most likely fit. Strategies take turns, since all layouts of one may need
 * too much. */
static void choose_roomy(struct rate_search *s, size_t most, double above)
{
    size_t strategies;
    int all = s->strategy;
    strategies_list(&strategies);
    for (size_t i = 0; i < strategies; i++) {
        s->strategy = (int)(s->roomy_turn++ % strategies);
        if (fastest_open_above(s, above) > 0)
            break;
    }
    find_little(s, above);
    choose_jobs(s, roomiest_first, most, STAGE_LAYER, false, above);
    s->strategy = all;
}

void fastest_choose_jobs(struct rate_search *s, double above)
{
    s->jobs = 0;
    if (fastest_has_answer(s) || s->strategy >= 0) {
        choose_jobs(s, highest_first, 1, STAGE_WHOLE, true, above);
        choose_jobs(s, highest_first, 2, STAGE_SHORT, true, above);
        choose_jobs(s, highest_first, SEARCH_ROUND, STAGE_LAYER, true, above);
    } else {
        choose_roomy(s, SEARCH_ROUND / 4, above);
        choose_roomy(s, SEARCH_ROUND / 4, above);
        choose_jobs(s, s->best->goal == GOAL_GPUS ? roomiest_first : highest_first, SEARCH_ROUND,
                    STAGE_LAYER, s->best->goal != GOAL_GPUS, above);
    }
}
