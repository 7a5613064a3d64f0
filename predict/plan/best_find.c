/* The search of predict/plan/best.h. */
#include "base/digest.h"
#include "base/interrupt.h"
#include "predict/bounds.h"
#include "predict/plan/all_batches.h"
#include "predict/plan/best.h"
#include "predict/plan/fastest.h"
#include "predict/plan/repairs.h"
#include "predict/plan/room.h"
#include "predict/progress.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"

#include <math.h>
#include <stdlib.h>

enum { ROUND = 16 }; /* candidates that are predicted at a time */

struct round {
    struct setup *setup;
    const struct request *given_request;
    const struct space_open *open;
    const struct candidate *candidate; /* of the round's first job */
    const struct outcome *incumbent;   /* NULL: none yet */
};

/* ---- one candidate, in a child ---- */

/* What a candidate reaches with the repairs that were tried so far. */
struct reached {
    bool is_built;          /* a repair allows some length */
    bool is_skipped;        /* a repair was not searched: it reaches no longer length than known */
    bool has_ladder_end;    /* the ladder ends at known lengths: other repairs are not tried */
    int64_t tokens;         /* the longest sequence that fits; 0: none */
    struct request request; /* of that sequence */
    struct verdict verdict; /* of that sequence */
    bool open_ended;        /* longer sequences may fit than that */
    struct verdict
        next_verdict;     /* of the shortest length with the last repair, if it does not fit */
    struct ladder ladder; /* of the last repair */
    int64_t never_fits;   /* no repair makes this length fit, nor a longer one */
};

/* True if a length fits. If the host lacks memory for it, *never becomes that length: no repair reduces what the host
 * needs, unless shares of activations are offloaded (tests/cli/test_space.c). */
static bool fits_at(const struct round *round, const struct request *request, int64_t tokens,
                    int64_t *never)
{
    struct request asked = *request;
    const struct prediction_question question = {
        .setup = round->setup, .request = &asked, .skip_offsets = true};
    struct prediction p = {0};
    struct verdict least;
    bool fits = false;
    asked.seq = tokens;
    if (tokens >= *never ||
        room_bound_lacks(&least, round->setup, &asked, round->setup->fits_probability))
        return false;
    if (prediction_memory(&p, &question, NULL, NULL) == STATUS_OK) {
        fits = room_fits(round->setup, &p.verdict);
        if (p.choices.activations != CHOICE_ACTIVATIONS_RATIO &&
            verdict_margin_bytes(&p.verdict, LIMIT_HOST) < 0)
            *never = tokens;
    }
    prediction_release(&p);
    return fits;
}

/* Looks for a sequence that is longer than `known` tokens and fits with one repair, which the request has. The length
 * just above `known` is asked about first, since most repairs do not reach it. */
static void lengthen_with(const struct round *round, struct request *request, int64_t known,
                          struct reached *r)
{
    struct ladder ladder;
    struct longest longest;
    if (ladder_of(&ladder, request, NULL) != STATUS_OK)
        return;
    const int64_t next = (known / ladder.first + 1) * ladder.first;
    r->is_built = true;
    r->ladder = ladder;
    r->has_ladder_end = next > ladder_end(&ladder);
    if (r->has_ladder_end || (known > 0 && !fits_at(round, request, next, &r->never_fits))) {
        r->is_skipped = true;
        return;
    }
    if (longest_find(&longest, round->setup, request, &ladder, next, NULL, NULL) != STATUS_OK)
        return;
    if (longest.tokens == 0)
        r->next_verdict = longest.next_verdict;
    if (longest.tokens <= r->tokens)
        return;
    request->seq = longest.tokens;
    r->tokens = longest.tokens;
    r->request = *request;
    r->verdict = longest.verdict;
    r->open_ended = longest.next == 0;
}

/* Fills the outcome of a candidate that was not simulated. */
static void take_reached(struct outcome *o, const struct reached *r)
{
    o->kind = !r->is_built                     ? OUTCOME_REFUSED
              : r->tokens > 0 || r->is_skipped ? OUTCOME_SLOWER
                                               : OUTCOME_UNFIT;
    o->ladder = r->ladder;
    o->tokens = r->tokens;
    o->open_ended = r->open_ended || r->has_ladder_end;
    o->verdict = r->tokens > 0 ? r->verdict : r->next_verdict;
    if (r->tokens > 0)
        o->request = r->request;
    if (o->kind == OUTCOME_UNFIT)
        o->missing_bytes = verdict_missing_bytes(&r->next_verdict);
}

/* Finds the longest sequence of a candidate over its repairs, and simulates it if it is longer than that of the best
 * candidate so far. */
static void lengthen_it(const struct round *round, struct outcome *o)
{
    const int64_t beaten = round->incumbent != NULL ? round->incumbent->tokens : 0;
    struct repairs repairs = repairs_make(round->given_request, round->open, &o->request);
    struct reached reached = {.never_fits = INT64_MAX};
    struct request request;
    while (!reached.has_ladder_end && repairs_next(&request, &repairs))
        lengthen_with(round, &request, reached.tokens > beaten ? reached.tokens : beaten, &reached);
    take_reached(o, &reached);
    const struct prediction_question question = {
        .setup = round->setup, .request = &o->request, .skip_offsets = true};
    struct prediction p = {0};
    if (o->tokens > beaten && prediction_make(&p, &question, NULL) == STATUS_OK)
        outcome_take_times(o, &p);
    prediction_release(&p);
}

static void try_candidate(void *context, size_t job, void *result)
{
    struct round *round = context;
    const struct candidate *c = &round->candidate[job];
    struct outcome *o = result;
    o->request = c->request;
    o->strategy = c->strategy;
    lengthen_it(round, o);
}

/* Returns a digest of all on which a candidate's outcome depends: what the longest so far is, too. */
static uint64_t key_of(const struct round *round, const struct candidate *c)
{
    int64_t beaten = round->incumbent != NULL ? round->incumbent->tokens : 0;
    return digest_add(outcome_key(round->setup, round->open, c), &beaten, sizeof beaten);
}

/* ---- the search ---- */

/* Orders by the bytes that a GPU needs at least, fewest first; then by those that do not grow with the length. */
static int roomier_first(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->least_bytes != b->least_bytes)
        return a->least_bytes < b->least_bytes ? -1 : 1;
    return a->fixed_bytes != b->fixed_bytes ? (a->fixed_bytes < b->fixed_bytes ? -1 : 1) : 0;
}

static void skip(struct outcome *o, const struct candidate *c, enum outcome_kind kind)
{
    *o = (struct outcome){.kind = kind,
                          .request = c->request,
                          .strategy = c->strategy,
                          .rate_bound = c->tokens / c->bound_s / (double)c->request.ranks,
                          .tokens = c->request.seq};
}

/* Fills a row for every candidate with the longest sequence that fits, in the order of the bytes that lie on a GPU
 * whatever the length. */
static enum status find_longest(struct best *best, struct setup *setup,
                                const struct space_open *open, struct diag *diag)
{
    struct request given = setup->request;
    struct round round = {.setup = setup, .given_request = &given, .open = open};
    struct outcome incumbent;
    double available = setup->cluster.device.memory_bytes - setup->cluster.device.driver_bytes;
    struct candidate *row = best->space.row;
    struct progress progress;
    enum status status = STATUS_OK;
    size_t next = 0;
    if (best->limits.to_beat != NULL) {
        incumbent = *best->limits.to_beat;
        round.incumbent = &incumbent;
    }
    qsort(row, best->count, sizeof *row, roomier_first);
    progress_begin(&progress, best->count, 0);
    while (next < best->count && status == STATUS_OK && interrupt_signal() == 0) {
        struct candidate batch[ROUND];
        struct outcome out[ROUND];
        uint64_t key[ROUND];
        size_t place[ROUND], jobs = 0;
        for (; next < best->count && jobs < ROUND; next++) {
            /* the optimizer's part may go to the host */
            double least = row[next].fixed_bytes - (given.optimizer < 0 ? row[next].host_bytes : 0);
            place[jobs] = next;
            if (least <= available) {
                batch[jobs++] = row[next];
                continue;
            }
            skip(&best->row[next], &row[next], OUTCOME_NO_ROOM);
            best->row[next].missing_bytes = least - available;
        }
        progress.done_before_run = next - jobs;
        round.candidate = batch;
        for (size_t i = 0; i < jobs && best->limits.kept.answer_file != NULL; i++)
            key[i] = key_of(&round, &batch[i]);
        status = kept_jobs_run(&best->limits.kept, key, jobs, sizeof out[0], try_candidate, &round,
                               out, &progress, diag);
        for (size_t i = 0; i < jobs && status == STATUS_OK; i++) {
            if (out[i].request.model == NULL) { /* an interrupt ended it */
                skip(&best->row[place[i]], &batch[i], OUTCOME_LEFT);
                continue;
            }
            outcome_adopt(&out[i], &batch[i]);
            best->row[place[i]] = out[i];
            if (out[i].kind == OUTCOME_TIMED &&
                (round.incumbent == NULL || best_is_better(best->goal, &out[i], &incumbent))) {
                incumbent = out[i];
                round.incumbent = &incumbent;
            }
        }
    }
    for (; next < best->count; next++)
        skip(&best->row[next], &row[next], OUTCOME_LEFT);
    progress_end();
    return status;
}

/* Fills a row for every candidate, and ranks the rows. */
static enum status search(struct best *best, struct setup *setup, const struct space_open *open,
                          struct diag *diag)
{
    best->count = best->space.count;
    best->row = heap_realloc(best->row, best->count + 1, sizeof *best->row);
    enum status status = best->goal == GOAL_LONGEST ? find_longest(best, setup, open, diag)
                                                    : fastest_find(best, setup, open, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < best->count; i++)
        best->kinds[best->row[i].kind]++;
    best_rank(best);
    if (best->count == 0 || best->row[0].kind != OUTCOME_TIMED)
        return STATUS_NO;
    return best->row[0].packed_set != NULL ? all_batches_rank(best, setup, diag) : STATUS_OK;
}

/* Returns the next larger number of GPUs to search: parts of a node, then nodes, each twice as many. */
static int64_t more_gpus(const struct cluster *cluster, int64_t gpus)
{
    int64_t next = 2 * gpus;
    if (gpus < cluster->gpus_per_node && next > cluster->gpus_per_node)
        next = cluster->gpus_per_node;
    return next > cluster->gpus && gpus < cluster->gpus ? cluster->gpus : next;
}

enum status best_find(struct best *best, enum plan_goal goal, struct setup *setup,
                      struct space_open open, struct diag *diag)
{
    best->goal = goal;
    best->gpus = (size_t)setup->cluster.gpus;
    open.length = goal == GOAL_LONGEST;
    if (goal == GOAL_LONGEST) { /* bounds are of a length that all degrees divide, or the last */
        int64_t seq = longest_long(setup->cluster.gpus), most = setup->model.max_positions;
        bool ends = setup->model.positions == POSITIONS_LEARNED && most < seq;
        setup->request.seq = ends ? most : seq;
    }
    if (goal != GOAL_GPUS) {
        enum status status = space_add(&best->space, setup, setup->cluster.gpus, open, diag);
        return status == STATUS_OK ? search(best, setup, &open, diag) : status;
    }
    for (int64_t gpus = 1; gpus <= setup->cluster.gpus; gpus = more_gpus(&setup->cluster, gpus)) {
        struct diag unread = {0};
        const struct best last = *best;
        best_release(best);
        *best = (struct best){.goal = goal,
                              .gpus = (size_t)gpus,
                              .limits = last.limits,
                              .risky_best = last.risky_best,
                              .risky_gpus = last.risky_gpus,
                              .smaller_left = last.smaller_left || last.hit_time_limit};
        enum status status = space_add(&best->space, setup, gpus, open,
                                       gpus == setup->cluster.gpus ? diag : &unread);
        diag_release(&unread);
        if (status == STATUS_OK)
            status = search(best, setup, &open, diag);
        if (best->risky_gpus == 0 && best->risky_best.kind == OUTCOME_TIMED)
            best->risky_gpus = (size_t)gpus;
        if (status == STATUS_OK || status == STATUS_SYSTEM || gpus == setup->cluster.gpus ||
            interrupt_signal() != 0)
            return status;
    }
    return STATUS_NO;
}
