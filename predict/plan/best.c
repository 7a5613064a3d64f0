#include "predict/plan/best.h"

#include "base/interrupt.h"
#include "predict/bounds.h"
#include "predict/plan/all_batches.h"
#include "predict/plan/repairs.h"
#include "predict/plan/shortened.h"
#include "predict/progress.h"
#include "predict/setup/subsequences.h"
#include "predict/workers.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Candidates that are predicted at a time; few where their order is nearly that of their times. */
enum { ROUND = 16, ROUND_ESTIMATED = 4 };

void best_release(struct best *best)
{
    space_release(&best->space);
    free(best->row);
    *best = (struct best){0};
}

struct round {
    enum goal goal;
    struct setup *setup;
    const struct request *given;
    const struct space_open *open;
    const struct candidate *candidate; /* of the round's first job */
    const struct outcome *incumbent;   /* NULL: none yet */
    double to_exceed;                  /* tokens/s/GPU: what is no faster is not simulated */
};

/* ---- one candidate, in a child ---- */

/* Resizes the child's own copy of the cluster to fewer GPUs. */
static bool resize(struct round *round, int64_t gpus)
{
    struct setup *setup = round->setup;
    return setup->cluster.gpus == gpus ||
           cluster_resize(&setup->cluster, &setup->arena, 0, gpus, NULL) == STATUS_OK;
}

void outcome_take_times(struct outcome *o, const struct prediction *p)
{
    const struct stages *stages = &p->stages;
    o->kind = OUTCOME_TIMED;
    o->most = p->tokens_per_s_gpu;
    o->step_s = p->sim.step_s;
    o->intervals = intervals_of(p);
    o->sequences = (double)prediction_sequences(p);
    o->explained = o->sample == NULL || !p->skip_documents;
    memcpy(o->cause_s, p->waterfall.cause_s, sizeof o->cause_s);
    for (int cause = 0; cause < CAUSE_COUNT && stages->count > 1; cause++) {
        o->cause_s[cause] = 0;
        for (uint32_t i = 0; i < stages->count; i++)
            o->cause_s[cause] +=
                stages->of[i].cause_s[cause] * stages->ranks[i] / p->sim.rank_count;
    }
    if (o->sample != NULL)
        o->spread = step_spread_of(&o->step_s, 1);
    o->bubble = stages->count > 1 ? stages->to_step : 0;
    o->exposed = o->step_s > 0 ? o->cause_s[CAUSE_OFFLOAD] / o->step_s : 0;
}

/* Notes the verdict that came nearest to fitting. */
static void note_unfit(struct outcome *o, const struct verdict *verdict)
{
    double lacks = verdict_missing(verdict);
    if (o->kind != OUTCOME_REFUSED && lacks >= o->missing_bytes)
        return;
    o->kind = OUTCOME_UNFIT;
    o->verdict = *verdict;
    o->missing_bytes = lacks;
}

/* True if a GPU lacks memory with every repair. Only the last repair is tried: if it exceeds the memory by more than
 * RESERVED_ERROR, so do the others, since they need the same memory up to an allocator's cache, or more. They need no
 * more host memory, which must suffice. Always false if shares of activations are offloaded, since these depend on
 * the pieces (tests/cli/test_space.c). */
static bool is_beyond_repair(const struct setup *setup, const struct repairs *repairs,
                             struct outcome *o)
{
    struct request request;
    struct choices c;
    struct verdict verdict;
    if (!repairs_last(&request, repairs) ||
        compose_resolve(&c, &request, NULL, NULL) != STATUS_OK ||
        c.activations == CHOICE_ACTIVATIONS_RATIO)
        return false;
    if (!shortened_lacks(&verdict, setup, &request)) {
        struct prediction p = {.skip_arenas = true};
        bool made = prediction_memory(&p, setup, &request, NULL, NULL) == STATUS_OK;
        verdict = p.verdict;
        prediction_release(&p);
        if (!made)
            return false;
    }
    if (verdict_margin(&verdict, LIMIT_HOST) < 0 ||
        verdict_margin(&verdict, LIMIT_DEVICE) >=
            -RESERVED_ERROR * (double)verdict.available[LIMIT_DEVICE])
        return false;
    note_unfit(o, &verdict);
    return true;
}

/* Predicts the candidate with the first repair with which it fits. A candidate that is no faster than the incumbent
 * with the first is dropped at once, whether or not it fits, since the other repairs take longer. */
static void time_it(struct round *round, struct outcome *o)
{
    struct repairs repairs = repairs_make(round->given, round->open, &o->request);
    struct request request;
    for (bool first = true; repairs_next(&request, &repairs); first = false) {
        struct prediction p = {
            .skip_arenas = true, .skip_documents = true, .to_exceed = round->to_exceed};
        struct verdict early;
        if (shortened_lacks(&early, round->setup, &request)) {
            note_unfit(o, &early);
            continue;
        }
        if (prediction_memory(&p, round->setup, &request, NULL, NULL) != STATUS_OK) {
            prediction_release(&p);
            continue;
        }
        if (!p.slower)
            note_unfit(o, &p.verdict);
        if (p.slower || p.verdict.fits) {
            o->request = request;
            o->kind = OUTCOME_SLOWER;
            o->most = p.tokens_per_s_gpu;
            if (!p.slower && prediction_time(&p, false, NULL) == STATUS_OK)
                outcome_take_times(o, &p);
            prediction_release(&p);
            return;
        }
        prediction_release(&p);
        if (first && is_beyond_repair(round->setup, &repairs, o))
            return;
    }
}

/* True if the bounds of the choices (predict/bounds.h) show that they do not fit. */
static bool lacks_room(const struct setup *setup, const struct choices *c)
{
    const struct cluster *cluster = &setup->cluster;
    double device = cluster->device.memory_bytes - cluster->device.driver_bytes;
    double host = cluster->host.memory_bytes - cluster->host.reserved_bytes;
    double on_node = fmin((double)c->ranks, (double)cluster->gpus_per_node);
    return bound_state_bytes(setup, c) + bound_optimizer_bytes(c) + bound_kept_bytes(c) > device ||
           on_node * bound_host_bytes(c) > host;
}

/* True if bounds show, without a schedule, that the length of a request does not fit. */
static bool is_too_long(const struct setup *setup, const struct request *asked)
{
    struct choices c;
    struct filled_request filled;
    bool lacks = subsequences_fill(&filled, setup, asked, NULL) == STATUS_OK &&
                 compose_resolve(&c, &filled.request, NULL, NULL) == STATUS_OK &&
                 lacks_room(setup, &c);
    filled_request_release(&filled);
    return lacks;
}

/* The answer for a length: it fits; or it never fits, since it needs too much host memory, which repairs do not reduce
 * (unless shares of activations are offloaded: tests/cli/test_space.c); or, with neither set, a repair may help. */
struct reach {
    bool fits, never;
};

static struct reach reach_of(const struct round *round, const struct request *request,
                             int64_t tokens)
{
    struct prediction p = {.skip_arenas = true};
    struct request asked = *request;
    struct reach reach = {0};
    asked.seq = tokens;
    if (is_too_long(round->setup, &asked))
        return reach;
    if (prediction_memory(&p, round->setup, &asked, NULL, NULL) == STATUS_OK)
        reach = (struct reach){.fits = p.verdict.fits,
                               .never = p.choices.activations != CHOICE_ACTIVATIONS_RATIO &&
                                        verdict_margin(&p.verdict, LIMIT_HOST) < 0};
    prediction_release(&p);
    return reach;
}

static void lengthen_it(struct round *round, struct outcome *o)
{
    int64_t beaten = round->incumbent != NULL ? round->incumbent->tokens : 0;
    int64_t never = INT64_MAX; /* a length that no repair makes fit */
    struct repairs repairs = repairs_make(round->given, round->open, &o->request);
    struct request request;
    while (repairs_next(&request, &repairs)) {
        struct ladder ladder;
        struct longest longest;
        if (ladder_of(&ladder, &request, NULL) != STATUS_OK)
            continue;
        int64_t hurdle = beaten > o->tokens ? beaten : o->tokens;
        int64_t next = (hurdle / ladder.first + 1) * ladder.first;
        if (o->kind == OUTCOME_REFUSED)
            o->kind = OUTCOME_UNFIT;
        o->ladder = ladder;
        if (next > ladder_end(&ladder)) { /* lists of more chunks are not made to learn so much */
            o->kind = OUTCOME_SLOWER;
            o->open_ended = true;
            break;
        }
        struct reach reach = {.fits = hurdle == 0};
        if (hurdle > 0 && next < never)
            reach = reach_of(round, &request, next);
        if (reach.never)
            never = next;
        if (!reach.fits) {
            if (beaten > 0 && o->kind == OUTCOME_UNFIT)
                o->kind = OUTCOME_SLOWER; /* it may fit, but is no longer than another */
            continue;
        }
        if (longest_find(&longest, round->setup, &request, &ladder, next, NULL, NULL) != STATUS_OK)
            continue;
        if (longest.tokens == 0 && o->kind == OUTCOME_UNFIT) {
            o->missing_bytes = verdict_missing(&longest.beyond);
            o->verdict = longest.beyond;
        }
        if (longest.tokens <= o->tokens)
            continue;
        request.seq = longest.tokens;
        o->kind = OUTCOME_SLOWER;
        o->tokens = longest.tokens;
        o->open_ended = longest.next == 0;
        o->verdict = longest.at;
        o->request = request;
    }
    struct prediction p = {.skip_arenas = true};
    if (o->tokens > beaten &&
        prediction_make(&p, round->setup, &o->request, false, NULL) == STATUS_OK)
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
    o->sample = c->sample;
    round->setup->padding = c->sample != NULL ? c->sample->batch[c->sample->typical].padding : 0;
    o->kind = OUTCOME_REFUSED;
    o->tokens = round->goal == GOAL_LONGEST ? 0 : c->request.seq;
    if (!resize(round, c->request.ranks))
        return;
    if (round->goal == GOAL_LONGEST)
        lengthen_it(round, o);
    else
        time_it(round, o);
}

/* ---- the search ---- */

static double most_of(const struct candidate *c)
{
    return c->tokens / c->bound_s / (double)c->request.ranks;
}

static int faster_first(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    double x = most_of(a), y = most_of(b);
    if (x != y)
        return x > y ? -1 : 1;
    return a->least_bytes != b->least_bytes ? (a->least_bytes < b->least_bytes ? -1 : 1) : 0;
}

/* Orders by the bytes that a GPU needs at least, fewest first; then by those that do not grow with the length. */
static int roomier_first(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->least_bytes != b->least_bytes)
        return a->least_bytes < b->least_bytes ? -1 : 1;
    return a->fixed_bytes != b->fixed_bytes ? (a->fixed_bytes < b->fixed_bytes ? -1 : 1) : 0;
}

bool best_is_better(enum goal goal, const struct outcome *a, const struct outcome *b)
{
    if ((a->kind == OUTCOME_TIMED) != (b->kind == OUTCOME_TIMED))
        return a->kind == OUTCOME_TIMED;
    if (a->kind != OUTCOME_TIMED)
        return false;
    if (goal == GOAL_LONGEST && a->tokens != b->tokens)
        return a->tokens > b->tokens;
    return a->spread.steps != b->spread.steps ? a->spread.steps > b->spread.steps
                                              : a->most > b->most;
}

void best_rank(struct best *best)
{
    for (size_t i = 1; i < best->count; i++)
        for (size_t k = i; k > 0 && best_is_better(best->goal, &best->row[k], &best->row[k - 1]);
             k--) {
            struct outcome swap = best->row[k];
            best->row[k] = best->row[k - 1];
            best->row[k - 1] = swap;
        }
}

static void skip(struct outcome *o, const struct candidate *c, enum outcome_kind kind)
{
    *o = (struct outcome){.kind = kind,
                          .request = c->request,
                          .strategy = c->strategy,
                          .sample = c->sample,
                          .most = most_of(c),
                          .tokens = c->request.seq};
}

/* Returns a lower bound of the bytes that the candidate needs on a GPU, without those that may go to the host. */
static double least_bytes(const struct best *best, const struct request *given,
                          const struct candidate *c)
{
    double least = best->goal == GOAL_LONGEST ? c->fixed_bytes : c->least_bytes;
    return given->optimizer < 0 ? least - c->host_bytes : least;
}

static void estimate(void *context, size_t job, void *result)
{
    const struct round *round = context;
    double *seconds = result;
    *seconds = shortened_step_s(round->setup, &round->candidate[job].request);
}

/* Part of the candidates, in the order in which they are tried. */
struct loss_part {
    size_t begin, end;
    bool estimated; /* in the order of their times, nearly: few of them are tried at once */
};

struct search {
    struct best *best;
    struct round round;
    struct outcome incumbent;
    double top[COMPARED_ROWS]; /* tokens/s/GPU of the fastest, over packed documents; 0: none yet */
    double available;          /* bytes of a GPU */
    struct diag *diag;
};

/* Notes the best outcome so far, and the rate that others must exceed. Over packed documents that rate is below the
 * best one's, since the fastest few are compared on other batches later. */
static void note_timed(struct search *s, const struct outcome *o)
{
    double rate = o->most;
    if (s->round.incumbent == NULL || best_is_better(s->best->goal, o, &s->incumbent)) {
        s->incumbent = *o;
        s->round.incumbent = &s->incumbent;
    }
    for (size_t i = 0; i < COMPARED_ROWS; i++)
        if (rate > s->top[i]) {
            double lower = s->top[i];
            s->top[i] = rate;
            rate = lower;
        }
    s->round.to_exceed = s->incumbent.most;
    if (o->sample != NULL)
        s->round.to_exceed =
            fmax(s->incumbent.most / (1 + DOCUMENTS_MARGIN), s->top[COMPARED_ROWS - 1]);
}

/* True if bounds show, without a schedule, that a candidate does not fit or is no better than the incumbent. */
static bool is_skipped(struct search *s, size_t i)
{
    struct best *best = s->best;
    const struct candidate *c = &best->space.row[i];
    /* the optimizer's part may go to the host */
    double least = least_bytes(best, s->round.given, c);
    if (least > s->available) {
        skip(&best->row[i], c, OUTCOME_NO_ROOM);
        best->row[i].missing_bytes = least - s->available;
        return true;
    }
    if (best->goal == GOAL_LONGEST || most_of(c) > s->round.to_exceed)
        return false;
    skip(&best->row[i], c, OUTCOME_SLOWER);
    return true;
}

/* Raises the bounds of steps with many micro-batches, which take long to predict, to times extrapolated from shorter
 * steps (predict/plan/shortened.h), less SHORTENED_ERROR. Candidates that have been skipped stay skipped. */
static enum status estimate_all(struct search *s, struct loss_part *part)
{
    struct candidate *row = s->best->space.row, *copy;
    size_t count = 0, *place = heap_alloc(part->end - part->begin + 1, sizeof *place);
    double *seconds = heap_zalloc(part->end - part->begin + 1, sizeof *seconds);
    struct progress progress;
    copy = heap_alloc(part->end - part->begin + 1, sizeof *copy);
    for (size_t i = part->begin; i < part->end; i++)
        if (!is_skipped(s, i)) {
            place[count] = i;
            copy[count++] = row[i];
        }
    s->round.candidate = copy;
    progress_begin(&progress, count, 0);
    enum status status =
        workers_run(count, sizeof *seconds, estimate, &s->round, seconds, &progress, s->diag);
    progress_end();
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        part->estimated = part->estimated || seconds[i] > 0;
        row[place[i]].bound_s = fmax(row[place[i]].bound_s, seconds[i] * (1 - SHORTENED_ERROR));
    }
    free(place);
    free(copy);
    free(seconds);
    return status;
}

/* Fills the rows of a part. */
static enum status search_part(struct search *s, const struct loss_part *part)
{
    struct best *best = s->best;
    struct progress progress;
    enum status status = STATUS_OK;
    size_t next = part->begin;
    qsort(best->space.row + part->begin, part->end - part->begin, sizeof *best->space.row,
          best->goal == GOAL_LONGEST ? roomier_first : faster_first);
    progress_begin(&progress, part->end - part->begin, 0);
    while (next < part->end && status == STATUS_OK && interrupted() == 0) {
        struct candidate batch[ROUND];
        struct outcome out[ROUND];
        size_t place[ROUND], jobs = 0;
        for (; next < part->end && jobs < (part->estimated ? ROUND_ESTIMATED : ROUND); next++)
            if (!is_skipped(s, next)) {
                place[jobs] = next;
                batch[jobs++] = best->space.row[next];
            }
        progress.base = next - part->begin - jobs;
        s->round.candidate = batch;
        status =
            workers_run(jobs, sizeof out[0], try_candidate, &s->round, out, &progress, s->diag);
        for (size_t i = 0; i < jobs && status == STATUS_OK; i++) {
            if (out[i].request.model == NULL) { /* an interrupt ended it */
                skip(&best->row[place[i]], &batch[i], OUTCOME_LEFT);
                continue;
            }
            best->row[place[i]] = out[i];
            if (out[i].kind == OUTCOME_TIMED)
                note_timed(s, &out[i]);
        }
    }
    for (; next < part->end; next++)
        skip(&best->row[next], &best->space.row[next], OUTCOME_LEFT);
    progress_end();
    return status;
}

/* Puts candidates of subsequences last, and returns how many others there are. */
static size_t part_by_subsequences(struct space *space)
{
    size_t strategies, others = 0;
    const struct strategy *table = compose_strategies(&strategies);
    for (size_t i = 0; i < space->count; i++)
        if (!table[space->row[i].strategy].subsequences) {
            struct candidate swap = space->row[i];
            space->row[i] = space->row[others];
            space->row[others++] = swap;
        }
    return others;
}

/* Fills a row for every candidate, and ranks the rows. Unless the longest sequence is sought, candidates with
 * subsequences are tried last: many of their steps, which take long to predict, are then known to be no better than the
 * best one so far. */
static enum status search(struct best *best, struct setup *setup, const struct space_open *open,
                          struct diag *diag)
{
    struct request given = setup->request;
    struct search s = {.best = best,
                       .round = {.goal = best->goal, .setup = setup, .given = &given, .open = open},
                       .available =
                           setup->cluster.device.memory_bytes - setup->cluster.device.driver_bytes,
                       .diag = diag};
    size_t others =
        best->goal == GOAL_LONGEST ? best->space.count : part_by_subsequences(&best->space);
    struct loss_part plain = {.end = others},
                     with_subsequences = {.begin = others, .end = best->space.count};
    best->count = best->space.count;
    best->row = heap_realloc(best->row, best->count + 1, sizeof *best->row);
    enum status status = search_part(&s, &plain);
    if (status == STATUS_OK && best->goal == GOAL_SPEED)
        status = estimate_all(&s, &with_subsequences);
    if (status == STATUS_OK)
        status = search_part(&s, &with_subsequences);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < best->count; i++)
        best->kinds[best->row[i].kind]++;
    best_rank(best);
    if (s.incumbent.sample != NULL)
        status = all_batches_rank(best, setup, diag);
    if (status != STATUS_OK)
        return status;
    return s.incumbent.kind == OUTCOME_TIMED ? STATUS_OK : STATUS_NO;
}

/* Returns the next larger number of GPUs to search: parts of a node, then nodes, each twice as many. */
static int64_t more_gpus(const struct cluster *cluster, int64_t gpus)
{
    int64_t next = 2 * gpus;
    if (gpus < cluster->gpus_per_node && next > cluster->gpus_per_node)
        next = cluster->gpus_per_node;
    return next > cluster->gpus && gpus < cluster->gpus ? cluster->gpus : next;
}

enum status best_find(struct best *best, enum goal goal, struct setup *setup,
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
        best_release(best);
        best->goal = goal;
        best->gpus = (size_t)gpus;
        enum status status = space_add(&best->space, setup, gpus, open,
                                       gpus == setup->cluster.gpus ? diag : &unread);
        diag_release(&unread);
        if (status == STATUS_OK)
            status = search(best, setup, &open, diag);
        if (status == STATUS_OK || status == STATUS_SYSTEM || gpus == setup->cluster.gpus ||
            interrupted() != 0)
            return status;
    }
    return STATUS_NO;
}
