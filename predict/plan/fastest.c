#include "predict/plan/fastest.h"

#include "base/c_locale.h"
#include "base/digest.h"
#include "base/interrupt.h"
#include "predict/bounds.h"
#include "predict/plan/all_batches.h"
#include "predict/plan/layer_time.h"
#include "predict/plan/repairs.h"
#include "predict/plan/room.h"
#include "predict/plan/shortened.h"
#include "predict/progress.h"
#include "predict/setup/resolved.h"
#include "predict/workers.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Jobs of a round, and at most how many of them are whole steps, or are of candidates with more than LONG_OPS ops: what
 * one of these finds spares others. */
enum { ROUND = 16, ROUND_WHOLE = 4, ROUND_LONG = 2 };
#define LONG_OPS 1e6

enum { NO_LAYER = UINT32_MAX };

/* The best of a strategy is searched for until no other one may be faster by more than this share. */
#define RUNNER_UP_GAP 0.01
/* Candidates with more ops on the ranks of all stages together, by the upper bound of step_ops_at_most(), are left
 * out of that. */
#define RUNNER_UP_OPS 3e6

/* What a candidate does next. */
enum search_stage { STAGE_LAYER, STAGE_SHORT, STAGE_WHOLE, STAGE_DONE };

struct search_node {
    double most;         /* tokens/s/GPU that it cannot exceed, as far as is known */
    double ops;          /* of its schedule, one rank of each stage, at most */
    uint32_t least, own; /* rows of search.layer: one that recomputes nothing, and its own */
    uint8_t stage, repair;
};

/* A layer that several candidates share. Members of `time` are 0 where they cannot be found. */
struct layer {
    struct layer_key key;
    struct bound_layer time;
    bool has_sums, has_step; /* these have been looked for */
};

struct job {
    enum search_stage stage;
    size_t node;
    uint32_t layer; /* STAGE_LAYER: its sums if these are not known, else its step */
};

/* What a child finds. All-zero: a signal ended it. */
struct candidate_answer {
    bool answered;
    enum search_stage next;
    uint8_t repair;
    struct bound_layer layer;
    double bound_s, most; /* seconds, tokens/s/GPU; 0: not known */
    struct outcome outcome, gamble;
};

struct rate_search {
    struct best *best;
    struct setup *setup;
    const struct request *given;
    const struct space_open *open;
    struct search_node *node;
    struct layer *layer;
    uint32_t layers, capacity;
    struct job job[ROUND];
    uint64_t key[ROUND]; /* of the jobs' results, where these are kept */
    size_t jobs;
    size_t turn;  /* whose it is in choose_roomy() */
    int strategy; /* only candidates of this row of strategies_list(); -1: all */
    struct outcome incumbent;
    double began_s;
    double little_bytes;       /* roomiest_first() */
    double to_exceed;          /* tokens/s/GPU: what is no faster is not simulated */
    double top[COMPARED_ROWS]; /* of the fastest, over packed documents; 0: none yet */
};

static bool has_answer(const struct rate_search *s)
{
    return s->incumbent.kind == OUTCOME_TIMED;
}

/* ---- one step of a candidate, in a child ---- */

/* Notes the verdict that came nearest to fitting. */
static void note_unfit(struct outcome *o, const struct verdict *verdict)
{
    double lacks = verdict_missing(verdict);
    if (o->kind == OUTCOME_UNFIT && lacks >= o->missing_bytes)
        return;
    o->kind = OUTCOME_UNFIT;
    o->verdict = *verdict;
    o->missing_bytes = lacks;
}

/* Where activations are offloaded by ratio, how much of them leaves depends on the pieces of the loss and the
 * feed-forward part, so that the last repair may need more than another one: by no more than this share of the memory
 * (tests/cli/test_space.c). */
#define RATIO_ERROR 0.1

static double repaired_error(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_RATIO ? RATIO_ERROR : RESERVED_ERROR;
}

/* Returns the least probability of fitting at which a candidate is worth a simulation: what the setup asks, or 0.5 as
 * long as it may beat best->gamble, the fastest configuration so far that fits in only half of the cases. */
static double odds_asked(const struct rate_search *s, const struct search_node *node,
                         const struct outcome *o)
{
    bool gambles = o->packed_set == NULL && s->best->gamble_gpus == 0;
    return gambles && node->most > s->best->gamble.most ? 0.5 : s->setup->fits_probability;
}

/* True if memory lacks with every repair, by the last one only: if it lacks more than RESERVED_ERROR of the device's
 * memory, so do the others, since they need the same memory up to an allocator's cache, or more. They need no more host
 * memory, which must suffice. */
static bool is_beyond_last(const struct setup *setup, const struct repairs *repairs, double odds,
                           struct outcome *o)
{
    struct request request;
    struct choices c;
    struct verdict verdict;
    if (!repairs_last(&request, repairs) || resolve_choices(&c, &request, NULL, NULL) != STATUS_OK)
        return false;
    if (!room_bound_lacks(&verdict, setup, &request, odds) &&
        !shortened_lacks(&verdict, setup, &request, odds)) {
        const struct prediction_question question = {
            .setup = setup, .request = &request, .skip_arenas = true};
        struct prediction p = {0};
        bool made = prediction_memory(&p, &question, NULL, NULL) == STATUS_OK;
        verdict = p.verdict;
        prediction_release(&p);
        if (!made)
            return false;
    }
    if (room_lacks_in(LIMIT_HOST, setup, &c, &verdict, 0, odds) ||
        !room_lacks_in(LIMIT_DEVICE, setup, &c, &verdict, repaired_error(&c), odds))
        return false;
    note_unfit(o, &verdict);
    return true;
}

/* True if memory lacks with every repair; the outcome has the verdict without any. No repair reduces what a node's host
 * needs. */
static bool is_beyond_repair(const struct setup *setup, const struct repairs *repairs, double odds,
                             struct outcome *o)
{
    struct choices c;
    if (resolve_choices(&c, &o->request, NULL, NULL) == STATUS_OK &&
        room_lacks_in(LIMIT_HOST, setup, &c, &o->verdict, repaired_error(&c), odds))
        return true;
    return is_beyond_last(setup, repairs, odds, o);
}

/* Takes the next repair with which short steps do not show that memory lacks, and estimates its time. */
static void shorten_it(const struct rate_search *s, const struct search_node *node,
                       struct candidate_answer *a)
{
    struct outcome *o = &a->outcome;
    struct repairs repairs = repairs_make(s->given, s->open, &o->request);
    struct request request;
    double odds = odds_asked(s, node, o);
    a->next = STAGE_DONE;
    for (a->repair = 0; repairs_next(&request, &repairs); a->repair++) {
        struct verdict verdict;
        struct choices refused;
        if (a->repair < node->repair ||
            resolve_choices(&refused, &request, NULL, NULL) != STATUS_OK)
            continue;
        if (room_bound_lacks(&verdict, s->setup, &request, odds) ||
            shortened_lacks(&verdict, s->setup, &request, odds)) {
            note_unfit(o, &verdict);
            if (a->repair == 0 && is_beyond_repair(s->setup, &repairs, odds, o))
                return;
            continue;
        }
        a->next = STAGE_WHOLE;
        a->bound_s = shortened_step_s(s->setup, &request) * (1 - SHORTENED_ERROR);
        return;
    }
}

/* Times a configuration that fits less surely than the setup asks, but in half of the cases. */
static void take_gamble(const struct outcome *o, const struct request *request,
                        struct prediction *p, struct outcome *gamble)
{
    if (prediction_time(p, NULL) != STATUS_OK)
        return;
    *gamble = *o;
    gamble->request = *request;
    gamble->verdict = p->verdict;
    outcome_take_times(gamble, p);
}

/* Predicts the whole step with the candidate's repair. If it does not fit, the next repair has to be tried. */
static void predict_it(const struct rate_search *s, const struct search_node *node,
                       struct candidate_answer *a)
{
    struct outcome *o = &a->outcome;
    struct repairs repairs = repairs_make(s->given, s->open, &o->request);
    struct request request;
    const struct prediction_question question = {.setup = s->setup,
                                                 .request = &request,
                                                 .skip_arenas = true,
                                                 .skip_causes = true,
                                                 .to_exceed = s->to_exceed};
    struct prediction p = {0};
    a->next = STAGE_DONE;
    for (unsigned i = 0; i <= node->repair; i++)
        if (!repairs_next(&request, &repairs))
            return;
    a->repair = (uint8_t)(node->repair + 1);
    if (prediction_memory(&p, &question, NULL, NULL) != STATUS_OK) {
        a->next = STAGE_SHORT;
    } else if (p.slower) { /* it is simulated later, if its strategy has no better one */
        a->repair = node->repair;
        a->next = STAGE_WHOLE;
        a->most = p.tokens_per_s_gpu;
    } else if (room_fits(s->setup, &p.verdict)) {
        o->request = request;
        o->verdict = p.verdict;
        if (prediction_time(&p, NULL) == STATUS_OK)
            outcome_take_times(o, &p);
    } else {
        note_unfit(o, &p.verdict);
        double odds = odds_asked(s, node, o);
        if (p.verdict.fits && odds < s->setup->fits_probability)
            take_gamble(o, &request, &p, &a->gamble);
        bool beyond = node->repair == 0 && is_beyond_repair(s->setup, &repairs, odds, o);
        a->next = beyond ? STAGE_DONE : STAGE_SHORT;
    }
    prediction_release(&p);
}

/* Resizes the child's own copy of the cluster to fewer GPUs. */
static bool resize(struct setup *setup, int64_t gpus)
{
    return setup->cluster.gpus == gpus ||
           cluster_resize(&setup->cluster, &setup->arena, 0, gpus, NULL) == STATUS_OK;
}

static void take_layer(const struct rate_search *s, const struct layer *layer,
                       const struct request *request, struct candidate_answer *a)
{
    a->layer = layer->time;
    if (!layer->has_sums)
        a->layer = layer_sums(s->setup, request, &layer->key);
    else
        a->layer.step_s = fmax(a->layer.step_s, layer_step_s(s->setup, request, &layer->key));
}

static void take_step(void *context, size_t number, void *result)
{
    struct rate_search *s = context;
    const struct job *job = &s->job[number];
    const struct candidate *c = &s->best->space.row[job->node];
    const struct search_node *node = &s->node[job->node];
    struct candidate_answer *a = result;
    a->answered = true;
    a->next = STAGE_DONE;
    if (job->stage != STAGE_LAYER)
        a->outcome = s->best->row[job->node];
    s->setup->padding =
        c->packed_set != NULL ? c->packed_set->batch[c->packed_set->typical].padding : 0;
    if (!resize(s->setup, c->request.ranks))
        return;
    if (job->stage == STAGE_LAYER)
        take_layer(s, &s->layer[job->layer], &c->request, a);
    else if (job->stage == STAGE_SHORT)
        shorten_it(s, node, a);
    else
        predict_it(s, node, a);
}

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
    s->layer[s->layers] = (struct layer){.key = *key};
    return s->layers++;
}

static void find_layers(struct rate_search *s, size_t i)
{
    const struct request *request = &s->best->space.row[i].request;
    struct search_node *node = &s->node[i];
    struct layer_key key;
    struct choices c;
    node->least = node->own = NO_LAYER;
    node->stage = STAGE_SHORT;
    if (resolve_choices(&c, request, NULL, NULL) != STATUS_OK)
        return;
    node->ops = step_ops_at_most(&c) * c.pp;
    if (!layer_key_make(&key, &c, request, true))
        return;
    node->stage = STAGE_LAYER;
    node->least = layer_of(s, &key);
    if (layer_key_make(&key, &c, request, false))
        node->own = layer_of(s, &key);
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
    const struct layer *least = &s->layer[node->least], *own = &s->layer[node->own];
    struct bound_layer layer = {least->time.kernels_s, own->time.issue_s,
                                fmax(least->time.step_s, own->time.step_s)};
    struct resolved resolved;
    if (resolved_make(&resolved, s->setup, &candidate->request, NULL, NULL) == STATUS_OK &&
        layer.step_s > 0)
        node->most =
            fmin(node->most,
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
    o->most = s->node[i].most;
    s->node[i].stage = STAGE_DONE;
}

/* Makes a row and a node for each candidate. What has no room for its states is done. */
static void begin(struct rate_search *s)
{
    struct best *best = s->best;
    const struct device *device = &s->setup->cluster.device;
    double available = device->memory_bytes - device->driver_bytes;
    for (size_t i = 0; i < best->space.count; i++) {
        const struct candidate *c = &best->space.row[i];
        /* the optimizer's part may go to the host */
        double least = c->least_bytes - (s->given->optimizer < 0 ? c->host_bytes : 0);
        best->row[i] = (struct outcome){.kind = OUTCOME_REFUSED,
                                        .request = c->request,
                                        .strategy = c->strategy,
                                        .packed_set = c->packed_set,
                                        .tokens = c->request.seq};
        s->node[i] = (struct search_node){.most = rate_of(c, c->bound_s)};
        if (least > available) {
            skip(s, i, OUTCOME_NO_ROOM);
            best->row[i].missing_bytes = least - available;
        } else {
            find_layers(s, i);
        }
    }
}

/* Notes the best outcome so far, and the rate that others must exceed. Over packed documents that rate is below the
 * best one's, since the fastest few are compared on other batches later. */
static void note_timed(struct rate_search *s, const struct outcome *o)
{
    double rate = o->most;
    if (best_is_better(s->best->goal, o, &s->incumbent))
        s->incumbent = *o;
    for (size_t i = 0; i < COMPARED_ROWS; i++)
        if (rate > s->top[i]) {
            double lower = s->top[i];
            s->top[i] = rate;
            rate = lower;
        }
    s->to_exceed = s->incumbent.most;
    if (o->packed_set != NULL)
        s->to_exceed = fmax(s->incumbent.most / (1 + DOCUMENTS_MARGIN), s->top[COMPARED_ROWS - 1]);
}

/* Returns the layer that a candidate's next step looks at; NO_LAYER: that step is another one. */
static uint32_t next_layer(const struct rate_search *s, const struct search_node *node)
{
    if (node->stage != STAGE_LAYER)
        return NO_LAYER;
    return s->layer[node->least].has_sums ? node->own : node->least;
}

static bool is_long(const struct rate_search *s, const struct job *job)
{
    return job->stage != STAGE_LAYER && s->node[job->node].ops > LONG_OPS;
}

/* Adds the next step of a candidate to the round, unless another one takes it already. */
static bool add_job(struct rate_search *s, size_t i, bool layers)
{
    const struct search_node *node = &s->node[i];
    struct job job = {(enum search_stage)node->stage, i, layers ? next_layer(s, node) : NO_LAYER};
    size_t whole = 0, many = 0;
    if (job.stage == STAGE_LAYER && !layers)
        job.stage = STAGE_SHORT;
    for (size_t k = 0; k < s->jobs; k++) {
        whole += s->job[k].stage == STAGE_WHOLE;
        many += is_long(s, &s->job[k]);
        if (s->job[k].node == i || (job.layer != NO_LAYER && s->job[k].layer == job.layer))
            return false;
    }
    if (s->jobs == ROUND ||
        (job.stage == STAGE_WHOLE && whole == (has_answer(s) ? ROUND_WHOLE : 1)) ||
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
    if (x->most != y->most)
        return x->most > y->most;
    if (x->ops != y->ops)
        return x->ops < y->ops;
    return s->best->space.row[a].least_bytes < s->best->space.row[b].least_bytes;
}

/* What may need little memory comes first, since it most likely fits; of that, what takes least to predict, and then
 * what recomputes most. */
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

/* True if a candidate is not done, and may be better than `above`. */
static bool is_open(const struct rate_search *s, size_t i, double above)
{
    return s->node[i].stage != STAGE_DONE && s->node[i].most > above &&
           (s->strategy < 0 ||
            (s->best->space.row[i].strategy == s->strategy && s->node[i].ops <= RUNNER_UP_OPS));
}

/* Returns how many candidates are not done and may be better than `above`. */
static size_t open_above(const struct rate_search *s, double above)
{
    size_t open = 0;
    for (size_t i = 0; i < s->best->space.count; i++)
        open += is_open(s, i, above);
    return open;
}

/* Finds out what little memory is: a quarter more than the least of all open candidates. */
static void find_little(struct rate_search *s, double above)
{
    double least = HUGE_VAL;
    for (size_t i = 0; i < s->best->space.count; i++)
        if (is_open(s, i, above))
            least = fmin(least, s->best->space.row[i].least_bytes);
    s->little_bytes = 1.25 * least;
}

/* The candidates that come first; of those that would simulate the same layer only one. */
struct firsts {
    size_t node[ROUND + ROUND / 2], count;
};

static void put_first(struct firsts *f, const struct rate_search *s, order_fn *before, bool layers,
                      size_t i)
{
    uint32_t layer = layers ? next_layer(s, &s->node[i]) : NO_LAYER;
    size_t last = f->count;
    if (f->count == ARRAY_LEN(f->node) && !before(s, i, f->node[f->count - 1]))
        return;
    for (size_t k = 0; k < f->count && layer != NO_LAYER; k++)
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
static void choose(struct rate_search *s, order_fn *before, size_t most, enum search_stage from,
                   bool layers, double above)
{
    struct firsts firsts = {.count = 0};
    size_t added = 0;
    for (size_t i = 0; i < s->best->space.count; i++)
        if (s->node[i].stage >= from && is_open(s, i, above))
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
        s->strategy = (int)(s->turn++ % strategies);
        if (open_above(s, above) > 0)
            break;
    }
    find_little(s, above);
    choose(s, roomiest_first, most, STAGE_LAYER, false, above);
    s->strategy = all;
}

/* Chooses the jobs of a round: the candidates with the highest bounds; but without an answer some that most likely fit,
 * and later some of those that may soon be a better answer. */
static void choose_jobs(struct rate_search *s, double above)
{
    s->jobs = 0;
    if (has_answer(s) || s->strategy >= 0) {
        choose(s, highest_first, 1, STAGE_WHOLE, true, above);
        choose(s, highest_first, 2, STAGE_SHORT, true, above);
        choose(s, highest_first, ROUND, STAGE_LAYER, true, above);
    } else {
        choose_roomy(s, ROUND / 4, above);
        choose_roomy(s, ROUND / 4, above);
        choose(s, s->best->goal == GOAL_GPUS ? roomiest_first : highest_first, ROUND, STAGE_LAYER,
               s->best->goal != GOAL_GPUS, above);
    }
}

static void take_answer(struct rate_search *s, const struct job *job,
                        const struct candidate_answer *a)
{
    struct search_node *node = &s->node[job->node];
    if (job->stage == STAGE_LAYER) {
        struct layer *layer = &s->layer[job->layer];
        layer->has_step = layer->has_sums;
        layer->has_sums = true;
        layer->time = a->layer;
        for (size_t i = 0; i < s->best->space.count; i++)
            if (s->node[i].stage == STAGE_LAYER &&
                (s->node[i].least == job->layer || s->node[i].own == job->layer) &&
                s->layer[s->node[i].least].has_sums)
                take_layers(s, i);
        return;
    }
    node->stage = (uint8_t)a->next;
    node->repair = a->repair;
    if (a->bound_s > 0)
        node->most = fmin(node->most, rate_of(&s->best->space.row[job->node], a->bound_s));
    if (a->most > 0)
        node->most = fmin(node->most, a->most);
    s->best->row[job->node] = a->outcome;
    if (a->outcome.kind == OUTCOME_TIMED)
        note_timed(s, &a->outcome);
    if (a->gamble.kind == OUTCOME_TIMED &&
        best_is_better(s->best->goal, &a->gamble, &s->best->gamble))
        s->best->gamble = a->gamble;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_late(const struct rate_search *s)
{
    double within_s = s->best->limits.within_s;
    return interrupted() != 0 || (within_s > 0 && now_s() - s->began_s >= within_s);
}

/* Returns a digest of all on which a job's answer depends: the layer that it looks at, or the candidate and what is known
 * of it. */
static uint64_t key_of(const struct rate_search *s, const struct job *job)
{
    const struct candidate *c = &s->best->space.row[job->node];
    const struct search_node *node = &s->node[job->node];
    const struct outcome *o = &s->best->row[job->node];
    uint64_t key;
    if (job->stage == STAGE_LAYER) {
        const struct layer *layer = &s->layer[job->layer];
        const struct request request = layer_request(&c->request, &layer->key);
        key = outcome_request_key(s->setup, &request, c->request.ranks);
        return digest_add(key, &layer->has_sums, sizeof layer->has_sums);
    }
    const double state[] = {job->stage,
                            node->repair,
                            odds_asked(s, node, o),
                            job->stage == STAGE_WHOLE ? s->to_exceed : 0,
                            o->kind,
                            o->missing_bytes,
                            o->verdict.fits_probability};
    key = digest_add(outcome_key(s->setup, s->open, c), state, sizeof state);
    return digest_add(key, o->verdict.needed, sizeof o->verdict.needed);
}

static enum status take_round(struct rate_search *s, double above, struct progress *progress,
                              struct diag *diag)
{
    struct candidate_answer answer[ROUND];
    choose_jobs(s, above);
    for (size_t i = 0; i < s->jobs && s->best->limits.kept.file != NULL; i++)
        s->key[i] = key_of(s, &s->job[i]);
    enum status status = kept_jobs_run(&s->best->limits.kept, s->key, s->jobs, sizeof answer[0],
                                       take_step, s, answer, progress, diag);
    for (size_t i = 0; i < s->jobs && status == STATUS_OK; i++) {
        const struct candidate *c = &s->best->space.row[s->job[i].node];
        if (!answer[i].answered)
            continue;
        outcome_adopt(&answer[i].outcome, c);
        outcome_adopt(&answer[i].gamble, c);
        take_answer(s, &s->job[i], &answer[i]);
    }
    return status;
}

/* Writes "390.2 tokens/s/GPU (fits: 97 %), at most 4.1 % more". */
static void note_best(const struct rate_search *s, char *note, size_t size)
{
    double most = 0;
    for (size_t i = 0; i < s->best->space.count; i++)
        if (is_open(s, i, most))
            most = s->node[i].most;
    if (has_answer(s))
        c_snprintf(note, size, "%.1f tokens/s/GPU (fits: %.0f %%), at most %.1f %% more",
                   s->incumbent.most, 100 * s->incumbent.verdict.fits_probability,
                   100 * fmax(0, most / s->incumbent.most - 1));
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
        open = open_above(s, *above);
        if (open == 0 || status != STATUS_OK || is_late(s))
            break;
        progress->base = all - open;
        status = take_round(s, *above, progress, diag);
    }
    progress->note = NULL;
    s->best->late = open > 0 && status == STATUS_OK && interrupted() == 0;
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
    s->to_exceed = s->incumbent.most;
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
    progress->base = progress->total;
    progress->note = "the best of each other strategy";
    for (int strategy = 0; strategy < (int)strategies; strategy++) {
        take_strategy(s, strategy);
        for (int round = 0; round < ROUNDS_MAX && status == STATUS_OK; round++) {
            double above = s->to_exceed * (1 + gap);
            if (open_above(s, above) == 0 || is_late(s))
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
                            .given = &given,
                            .open = open,
                            .strategy = -1,
                            .began_s = now_s(),
                            .node = heap_zalloc(best->space.count + 1, sizeof *s.node)};
    struct progress progress;
    double above = 0;
    begin(&s);
    progress_begin(&progress, best->space.count, 0);
    enum status status = search(&s, &above, &progress, diag);
    bool any = best->limits.gap >= 1; /* any answer will do */
    if (status == STATUS_OK && has_answer(&s) && s.incumbent.packed_set == NULL && !any)
        status = find_runners_up(&s, &progress, diag);
    progress_end();
    for (size_t i = 0; i < best->space.count; i++)
        if (s.node[i].stage != STAGE_DONE)
            skip(&s, i, s.node[i].most <= above ? OUTCOME_SLOWER : OUTCOME_LEFT);
    free(s.node);
    free(s.layer);
    return status;
}
