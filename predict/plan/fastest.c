#include "predict/plan/fastest.h"

#include "base/c_locale.h"
#include "base/interrupt.h"
#include "predict/bounds.h"
#include "predict/plan/fastest_parts.h"
#include "predict/progress.h"
#include "predict/setup/resolved.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* The best of a strategy is searched for until no other one may be faster by more than this share. */
#define RUNNER_UP_GAP 0.01
/* ---- layers ---- */

static uint32_t layer_of(struct rate_search *s, const struct layer_key *key)
{
    for (uint32_t i = 0; i < s->layers; i++)
        if (layer_keys_equal(&s->layer[i].key, key))
            return i;
    if (s->layers == s->capacity) {
        s->capacity = (uint32_t)heap_next_capacity(s->capacity, s->layers + 1);
        s->layer = heap_realloc(s->layer, s->capacity, sizeof *s->layer);
    }
    s->layer[s->layers] = (struct search_layer){.key = *key};
    return s->layers++;
}

static void find_layers(struct rate_search *s, size_t i)
{
    const struct request *request = &s->best->space.row[i].request;
    struct search_node *node = &s->node[i];
    struct layer_key key;
    struct choices c;
    node->least_layer_row = node->own_layer_row = SEARCH_NO_LAYER;
    node->stage = STAGE_SHORT;
    if (resolve_choices(&c, request, NULL, NULL) != STATUS_OK)
        return;
    node->ops = step_ops_at_most(&c) * c.pp;
    if (!layer_key_make(&key, &c, request, true))
        return;
    node->stage = STAGE_LAYER;
    node->least_layer_row = layer_of(s, &key);
    if (layer_key_make(&key, &c, request, false))
        node->own_layer_row = layer_of(s, &key);
}

static double rate_of(const struct candidate *c, double step_s)
{
    return c->tokens / step_s / (double)c->request.ranks;
}

/* Lowers a candidate's bound to that of the layers that are known. */
static void take_layers(struct rate_search *s, size_t i)
{
    const struct candidate *candidate = &s->best->space.row[i];
    struct search_node *node = &s->node[i];
    const struct search_layer *least = &s->layer[node->least_layer_row],
                              *own = &s->layer[node->own_layer_row];
    struct bound_layer layer = {least->time.kernels_s, own->time.issue_s,
                                fmax(least->time.step_s, own->time.step_s)};
    struct resolved resolved;
    if (resolved_make(&resolved, s->setup, &candidate->request, NULL, NULL) == STATUS_OK &&
        layer.step_s > 0)
        node->rate_bound =
            fmin(node->rate_bound,
                 rate_of(candidate, bound_step_from_layer_s(s->setup, &resolved.choices, &layer)));
    resolved_release(&resolved);
    if (own->has_step)
        node->stage = STAGE_SHORT;
}

/* ---- the search ---- */

static void skip(struct rate_search *s, size_t i, enum outcome_kind kind)
{
    struct outcome *o = &s->best->row[i];
    o->kind = kind;
    o->rate_bound = s->node[i].rate_bound;
    s->node[i].stage = STAGE_DONE;
}

/* ---- twins ---- */

struct twin_key {
    uint64_t key;
    size_t node;
};

static int by_key(const void *left, const void *right)
{
    const struct twin_key *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->node < b->node ? -1 : 1;
}

/* Finds the candidates that differ only in the placement of stages: their schedules differ only in which ranks are
 * neighbours, and so in NCCL's buffers. How many subsequences stages share depends on the placement, so that of those
 * none are twins. */
static void find_twins(struct rate_search *s)
{
    const struct space *space = &s->best->space;
    struct twin_key *key = heap_zalloc(space->count + 1, sizeof *key);
    size_t count = 0;
    for (size_t i = 0; i < space->count; i++) {
        struct candidate placed = space->row[i];
        s->node[i].other_placement = i;
        if (placed.request.pp <= 1 || placed.request.dp <= 1 ||
            placed.request.pipeline == CHOICE_PIPELINE_MSP)
            continue;
        placed.request.stage_placement = STAGES_OUTER;
        key[count++] = (struct twin_key){outcome_key(s->setup, s->open, &placed), i};
    }
    qsort(key, count, sizeof *key, by_key);
    for (size_t k = 1; k < count; k++)
        if (key[k].key == key[k - 1].key) {
            s->node[key[k].node].other_placement = key[k - 1].node;
            s->node[key[k - 1].node].other_placement = key[k].node;
        }
    free(key);
}

/* True if a candidate lacks memory even without NCCL's buffers. Its twin, which differs only in how stages are placed,
 * needs the same but for these buffers, so no repair that was tried makes the twin fit either. verdict: of the repair
 * that lacks least. */
static bool twin_lacks(const struct verdict *verdict)
{
    struct verdict least = *verdict;
    uint64_t *needed = &least.needed_bytes[LIMIT_DEVICE];
    *needed -= least.nccl_bytes < *needed ? least.nccl_bytes : *needed;
    return verdict_missing_bytes(&least) > 0;
}

/* Takes what a candidate's answer says of its twin's memory: the repairs with which it does not fit. A gamble is the
 * candidate's own, since the twin's may be faster. */
static void take_twin(struct rate_search *s, size_t i, const struct candidate_answer *a)
{
    const size_t t = s->node[i].other_placement;
    struct search_node *twin = &s->node[t];
    struct outcome *o = &s->best->row[t];
    if (t == i || twin->stage == STAGE_DONE || a->outcome.kind != OUTCOME_UNFIT ||
        a->risky_outcome.kind == OUTCOME_TIMED || !twin_lacks(&a->outcome.verdict) ||
        (a->next != STAGE_DONE && twin->repair >= a->repair))
        return;
    const struct candidate *candidate = &s->best->space.row[t];
    *o = a->outcome;
    o->request = candidate->request;
    outcome_adopt(o, candidate);
    twin->repair = a->repair;
    if (a->next == STAGE_DONE)
        twin->stage = STAGE_DONE;
    else if (twin->stage == STAGE_WHOLE)
        twin->stage = STAGE_SHORT;
}

/* Makes a row and a node for each candidate. What has no room for its states is done. */
static void begin_search(struct rate_search *s)
{
    struct best *best = s->best;
    const struct device *device = &s->setup->cluster.device;
    double available = device->memory_bytes - device->driver_bytes;
    for (size_t i = 0; i < best->space.count; i++) {
        const struct candidate *c = &best->space.row[i];
        /* the optimizer's part may go to the host */
        double least = c->least_bytes - (s->given_request->optimizer < 0 ? c->host_bytes : 0);
        best->row[i] = (struct outcome){.kind = OUTCOME_REFUSED,
                                        .request = c->request,
                                        .strategy = c->strategy,
                                        .packed_set = c->packed_set,
                                        .tokens = c->request.seq};
        s->node[i] = (struct search_node){.rate_bound = rate_of(c, c->bound_s)};
        if (least > available) {
            skip(s, i, OUTCOME_NO_ROOM);
            best->row[i].missing_bytes = least - available;
        } else {
            find_layers(s, i);
        }
    }
    find_twins(s);
}

/* Notes the best outcome so far, and the rate that others must exceed. Over packed documents that rate is below the
 * best one's, since the fastest few are compared on other batches later. */
static void note_timed(struct rate_search *s, const struct outcome *o)
{
    double rate = o->rate_bound;
    if (best_is_better(s->best->goal, o, &s->incumbent))
        s->incumbent = *o;
    for (size_t i = 0; i < COMPARED_ROWS; i++)
        if (rate > s->fastest_rates[i]) {
            double lower = s->fastest_rates[i];
            s->fastest_rates[i] = rate;
            rate = lower;
        }
    s->to_exceed = s->incumbent.rate_bound;
    if (o->packed_set != NULL)
        s->to_exceed = fmax(s->incumbent.rate_bound / (1 + DOCUMENTS_MARGIN),
                            s->fastest_rates[COMPARED_ROWS - 1]);
}

static void take_answer(struct rate_search *s, const struct search_job *job,
                        const struct candidate_answer *a)
{
    struct search_node *node = &s->node[job->node];
    if (job->stage == STAGE_LAYER) {
        struct search_layer *layer = &s->layer[job->layer];
        layer->has_step = layer->has_sums;
        layer->has_sums = true;
        layer->time = a->layer;
        for (size_t i = 0; i < s->best->space.count; i++)
            if (s->node[i].stage == STAGE_LAYER &&
                (s->node[i].least_layer_row == job->layer ||
                 s->node[i].own_layer_row == job->layer) &&
                s->layer[s->node[i].least_layer_row].has_sums)
                take_layers(s, i);
        return;
    }
    take_twin(s, job->node, a);
    node->stage = (uint8_t)a->next;
    node->repair = a->repair;
    if (a->bound_s > 0)
        node->rate_bound =
            fmin(node->rate_bound, rate_of(&s->best->space.row[job->node], a->bound_s));
    if (a->rate_bound > 0)
        node->rate_bound = fmin(node->rate_bound, a->rate_bound);
    s->best->row[job->node] = a->outcome;
    if (a->outcome.kind == OUTCOME_TIMED)
        note_timed(s, &a->outcome);
    if (a->risky_outcome.kind == OUTCOME_TIMED &&
        best_is_better(s->best->goal, &a->risky_outcome, &s->best->risky_best))
        s->best->risky_best = a->risky_outcome;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* True if the search has to end: a signal arrived, or the time of --within is spent. */
static bool is_time_over(const struct rate_search *s)
{
    double within_s = s->best->limits.within_s;
    return interrupt_signal() != 0 || (within_s > 0 && now_s() - s->began_s >= within_s);
}

static enum status take_round(struct rate_search *s, double above, struct progress *progress,
                              struct diag *diag)
{
    struct candidate_answer answer[SEARCH_ROUND];
    fastest_choose_jobs(s, above);
    for (size_t i = 0; i < s->jobs && s->best->limits.kept.answer_file != NULL; i++)
        s->key[i] = fastest_job_key(s, &s->job[i]);
    enum status status = kept_jobs_run(&s->best->limits.kept, s->key, s->jobs, sizeof answer[0],
                                       fastest_take_step, s, answer, progress, diag);
    for (size_t i = 0; i < s->jobs && status == STATUS_OK; i++) {
        const struct candidate *c = &s->best->space.row[s->job[i].node];
        if (!answer[i].is_answered)
            continue;
        outcome_adopt(&answer[i].outcome, c);
        outcome_adopt(&answer[i].risky_outcome, c);
        take_answer(s, &s->job[i], &answer[i]);
    }
    return status;
}

/* Writes "390.2 tokens/s/GPU (fits: 97 %), at most 4.1 % more". */
static void note_best(const struct rate_search *s, char *note, size_t size)
{
    double most = 0;
    for (size_t i = 0; i < s->best->space.count; i++)
        if (fastest_is_open(s, i, most))
            most = s->node[i].rate_bound;
    if (fastest_has_answer(s))
        c_snprintf(note, size, "%.1f tokens/s/GPU (fits: %.0f %%), at most %.1f %% more",
                   s->incumbent.rate_bound, 100 * s->incumbent.verdict.fits_probability,
                   100 * fmax(0, most / s->incumbent.rate_bound - 1));
}

/* Lets rounds take steps until no candidate may be better by more than the gap, or a limit ends the search. Sets *above
 * to the rate up to which nothing is left open. */
static enum status search(struct rate_search *s, double *above, struct progress *progress,
                          struct diag *diag)
{
    size_t all = s->best->space.count, open;
    enum status status = STATUS_OK;
    char note[96] = "";
    progress->note = note;
    for (;;) {
        *above = s->to_exceed * (1 + s->best->limits.gap);
        note_best(s, note, sizeof note);
        open = fastest_open_above(s, *above);
        if (open == 0 || status != STATUS_OK || is_time_over(s))
            break;
        progress->done_before_run = all - open;
        status = take_round(s, *above, progress, diag);
    }
    progress->note = NULL;
    s->best->hit_time_limit = open > 0 && status == STATUS_OK && interrupt_signal() == 0;
    return status;
}

/* Begins to search among the candidates of one strategy, from the best of them that was simulated. */
static void take_strategy(struct rate_search *s, int strategy)
{
    s->strategy = strategy;
    s->incumbent = (struct outcome){0};
    for (size_t i = 0; i < s->best->space.count; i++) {
        const struct outcome *o = &s->best->row[i];
        if (o->strategy == strategy && best_is_better(s->best->goal, o, &s->incumbent))
            s->incumbent = *o;
    }
    s->to_exceed = s->incumbent.rate_bound;
}

/* Searches for the best of each strategy, for a few rounds at most, or until no other candidate of the strategy may be
 * faster by more than RUNNER_UP_GAP, or than the gap that was asked for. */
static enum status find_runners_up(struct rate_search *s, struct progress *progress,
                                   struct diag *diag)
{
    enum { ROUNDS_MAX = 12 };
    size_t strategies;
    enum status status = STATUS_OK;
    double gap = fmax(RUNNER_UP_GAP, s->best->limits.gap);
    strategies_list(&strategies);
    progress->done_before_run = progress->job_count;
    progress->note = "the best of each other strategy";
    for (int strategy = 0; strategy < (int)strategies; strategy++) {
        take_strategy(s, strategy);
        for (int round = 0; round < ROUNDS_MAX && status == STATUS_OK; round++) {
            double above = s->to_exceed * (1 + gap);
            if (fastest_open_above(s, above) == 0 || is_time_over(s))
                break;
            status = take_round(s, above, progress, diag);
        }
    }
    progress->note = NULL;
    return status;
}

enum status fastest_find(struct best *best, struct setup *setup, const struct space_open *open,
                         struct diag *diag)
{
    struct request given = setup->request;
    struct rate_search s = {.best = best,
                            .setup = setup,
                            .given_request = &given,
                            .open = open,
                            .strategy = -1,
                            .began_s = now_s(),
                            .node = heap_zalloc(best->space.count + 1, sizeof *s.node)};
    struct progress progress;
    double above = 0;
    begin_search(&s);
    progress_begin(&progress, best->space.count, 0);
    enum status status = search(&s, &above, &progress, diag);
    bool any = best->limits.gap >= 1; /* any answer will do */
    if (status == STATUS_OK && fastest_has_answer(&s) && s.incumbent.packed_set == NULL && !any)
        status = find_runners_up(&s, &progress, diag);
    progress_end();
    for (size_t i = 0; i < best->space.count; i++)
        if (s.node[i].stage != STAGE_DONE)
            skip(&s, i, s.node[i].rate_bound <= above ? OUTCOME_SLOWER : OUTCOME_LEFT);
    free(s.node);
    free(s.layer);
    return status;
}
