/* Implements the search of predict/plan/best.h for the longest sequence and over numbers of GPUs. */
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

struct longest_search_round {
    struct setup *setup;
    const struct request *given_request;
    const struct space_open *open;
    const struct candidate
        *first_candidate_of_round;     /* the candidate of the first job of the round */
    const struct outcome *best_so_far; /* NULL: none yet */
};

/* ---- one candidate, in a child process ---- */

/* The state of a candidate after some of its repairs. A repair is skipped if the first length above those that are
 * known to fit, of this candidate or of the best one so far, does not fit with the repair or is not on the ladder. */
struct longest_search_state {
    bool do_choices_allow_any_length; /* the choices allow some length, with one of the repairs */
    bool has_skipped_repairs;         /* one of the repairs was skipped */
    /* no longer length is tried at all, so other repairs need not be tried */
    bool has_reached_ladder_end;
    int64_t tokens;         /* the longest sequence that fits; 0: none */
    struct request request; /* the request that has it; unset if tokens is 0 */
    struct verdict verdict; /* the verdict of `request` */
    /* longer sequences than `tokens` may fit: the lengths ended there */
    bool may_longer_than_ladder_fit;
    /* the verdict on the shortest length of the ladder, with the last repair with which no length fitted; empty: with
     * every repair that was tried some length fitted */
    struct verdict unfit_verdict_of_shortest_length;
    struct length_ladder ladder; /* the lengths that are tried with the last repair */
    /* this length and longer ones do not fit with any repair */
    int64_t shortest_never_fitting_tokens;
};

/* True if a length fits. A length from *never on does not fit, and is not built. Sets *never to the length if its
 * schedule needs more host memory than there is: no repair reduces these bytes (tests/cli/test_space.c), except where
 * part of the activations is offloaded by ratio. */
static bool does_length_fit(const struct longest_search_round *round, const struct request *request,
                            int64_t tokens, int64_t *never)
{
    struct request asked = *request;
    const struct prediction_question question = {
        .setup = round->setup, .request = &asked, .skips_offsets = true};
    struct prediction p = {0};
    struct verdict least;
    bool fits = false;
    asked.seq = tokens;
    if (tokens >= *never ||
        room_bound_lacks_memory(&least, round->setup, &asked, round->setup->fits_probability))
        return false;
    if (prediction_memory(&p, &question, NULL, NULL) == STATUS_OK) {
        fits = room_fits_asked_probability(round->setup, &p.verdict);
        if (p.choices.activations != CHOICE_ACTIVATIONS_RATIO &&
            verdict_margin_bytes(&p.verdict, LIMIT_HOST) < 0)
            *never = tokens;
    }
    prediction_release(&p);
    return fits;
}

/* Searches for the longest sequence that fits with the repair that the request has, and is longer than `known` tokens.
 * Updates *r. If `known` is above 0, the first length above it is tried first, since with most repairs it does not fit:
 * if so, the search ends. */
static void search_longer_with_repair(const struct longest_search_round *round,
                                      struct request *request, int64_t known,
                                      struct longest_search_state *r)
{
    struct length_ladder ladder;
    struct longest longest;
    if (ladder_make(&ladder, request, NULL) != STATUS_OK)
        return;
    const int64_t next =
        (known / ladder.first_length_or_step_tokens + 1) * ladder.first_length_or_step_tokens;
    r->do_choices_allow_any_length = true;
    r->ladder = ladder;
    r->has_reached_ladder_end = next > ladder_longest_tokens(&ladder);
    if (r->has_reached_ladder_end ||
        (known > 0 && !does_length_fit(round, request, next, &r->shortest_never_fitting_tokens))) {
        r->has_skipped_repairs = true;
        return;
    }
    if (longest_find(&longest, round->setup, request, &ladder, next, NULL, NULL) != STATUS_OK)
        return;
    if (longest.tokens == 0)
        r->unfit_verdict_of_shortest_length = longest.verdict_of_shortest_unfit;
    if (longest.tokens <= r->tokens)
        return;
    request->seq = longest.tokens;
    r->tokens = longest.tokens;
    r->request = *request;
    r->verdict = longest.verdict;
    r->may_longer_than_ladder_fit = longest.shortest_unfit_tokens == 0;
}

/* Fills the outcome of a candidate with what is known before it is simulated, which it may never be. */
static void fill_unsimulated_outcome(struct outcome *o, const struct longest_search_state *r)
{
    o->kind = !r->do_choices_allow_any_length           ? OUTCOME_REFUSED
              : r->tokens > 0 || r->has_skipped_repairs ? OUTCOME_BOUND_NOT_BETTER
                                                        : OUTCOME_DOES_NOT_FIT;
    o->ladder = r->ladder;
    o->sequence_tokens = r->tokens;
    o->is_open_ended = r->may_longer_than_ladder_fit || r->has_reached_ladder_end;
    o->verdict = r->tokens > 0 ? r->verdict : r->unfit_verdict_of_shortest_length;
    if (r->tokens > 0)
        o->request = r->request;
    if (o->kind == OUTCOME_DOES_NOT_FIT)
        o->missing_bytes = verdict_missing_bytes(&r->unfit_verdict_of_shortest_length);
}

/* Finds the longest sequence that a candidate reaches with any of its repairs, and fills its outcome. If that sequence
 * is longer than that of the best candidate so far, simulates it. */
static void find_longest_of_candidate(const struct longest_search_round *round, struct outcome *o)
{
    const int64_t tokens_to_exceed =
        round->best_so_far != NULL ? round->best_so_far->sequence_tokens : 0;
    struct repairs repairs = repairs_make(round->given_request, round->open, &o->request);
    struct longest_search_state reached = {.shortest_never_fitting_tokens = INT64_MAX};
    struct request request;
    while (!reached.has_reached_ladder_end && repairs_apply_next(&request, &repairs))
        search_longer_with_repair(
            round, &request, reached.tokens > tokens_to_exceed ? reached.tokens : tokens_to_exceed,
            &reached);
    fill_unsimulated_outcome(o, &reached);
    const struct prediction_question question = {
        .setup = round->setup, .request = &o->request, .skips_offsets = true};
    struct prediction p = {0};
    if (o->sequence_tokens > tokens_to_exceed && prediction_make(&p, &question, NULL) == STATUS_OK)
        outcome_fill_times(o, &p);
    prediction_release(&p);
}

static void try_candidate_job(void *context, size_t job, void *result)
{
    struct longest_search_round *round = context;
    const struct candidate *c = &round->first_candidate_of_round[job];
    struct outcome *o = result;
    o->request = c->request;
    o->strategy = c->strategy;
    find_longest_of_candidate(round, o);
}

/* Returns a digest of what a candidate's outcome depends on besides the options and files of the question: the
 * candidate, and the longest sequence so far. */
static uint64_t candidate_digest(const struct longest_search_round *round,
                                 const struct candidate *c)
{
    int64_t tokens_to_exceed = round->best_so_far != NULL ? round->best_so_far->sequence_tokens : 0;
    return digest_add(outcome_digest(round->setup, round->open, c), &tokens_to_exceed,
                      sizeof tokens_to_exceed);
}

/* ---- the search ---- */

/* Orders candidates by the bytes that a GPU needs at least, fewest first; of equal ones, by the part of these bytes
 * that does not grow with the length. */
static int compare_gpu_lower_bounds(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->gpu_lower_bound_bytes != b->gpu_lower_bound_bytes)
        return a->gpu_lower_bound_bytes < b->gpu_lower_bound_bytes ? -1 : 1;
    return a->length_independent_bytes != b->length_independent_bytes
               ? (a->length_independent_bytes < b->length_independent_bytes ? -1 : 1)
               : 0;
}

static void fill_skipped_row(struct outcome *o, const struct candidate *c, enum outcome_kind kind)
{
    *o = (struct outcome){.kind = kind,
                          .request = c->request,
                          .strategy = c->strategy,
                          .rate_bound =
                              c->step_tokens / c->step_lower_bound_s / (double)c->request.ranks,
                          .sequence_tokens = c->request.seq};
}

/* Fills a row for every candidate; those that are searched get the longest sequence that they reach. Those that need
 * the least memory are taken first (compare_gpu_lower_bounds()), since others are then likely to be skipped. */
static enum status find_longest_of_all_candidates(struct best *best, struct setup *setup,
                                                  const struct space_open *open, struct diag *diag)
{
    struct request given = setup->request;
    struct longest_search_round round = {.setup = setup, .given_request = &given, .open = open};
    struct outcome best_outcome;
    double available = setup->cluster.device.memory_bytes - setup->cluster.device.driver_bytes;
    struct candidate *row = best->space.row;
    struct progress progress;
    enum status status = STATUS_OK;
    size_t next = 0;
    if (best->limits.outcome_to_beat != NULL) {
        best_outcome = *best->limits.outcome_to_beat;
        round.best_so_far = &best_outcome;
    }
    qsort(row, best->row_count, sizeof *row, compare_gpu_lower_bounds);
    progress_begin(&progress, best->row_count, 0);
    while (next < best->row_count && status == STATUS_OK && interrupt_caught_signal_number() == 0) {
        struct candidate batch[ROUND];
        struct outcome out[ROUND];
        uint64_t key[ROUND];
        size_t place[ROUND], jobs = 0;
        for (; next < best->row_count && jobs < ROUND; next++) {
            /* a repair may move the optimizer, and with it this part of the bytes, to the host */
            double least = row[next].length_independent_bytes -
                           (given.optimizer < 0 ? row[next].bytes_saved_by_host_optimizer : 0);
            place[jobs] = next;
            if (least <= available) {
                batch[jobs++] = row[next];
                continue;
            }
            fill_skipped_row(&best->row[next], &row[next], OUTCOME_OVER_MEMORY_BOUND);
            best->row[next].missing_bytes = least - available;
        }
        progress.jobs_done_before_run = next - jobs;
        round.first_candidate_of_round = batch;
        for (size_t i = 0; i < jobs && best->limits.kept_jobs.answer_file != NULL; i++)
            key[i] = candidate_digest(&round, &batch[i]);
        status = kept_jobs_run(&best->limits.kept_jobs, key, jobs, sizeof out[0], try_candidate_job,
                               &round, out, &progress, diag);
        for (size_t i = 0; i < jobs && status == STATUS_OK; i++) {
            if (out[i].request.model == NULL) { /* an interrupt ended it */
                fill_skipped_row(&best->row[place[i]], &batch[i], OUTCOME_NOT_SEARCHED);
                continue;
            }
            outcome_restore_pointers(&out[i], &batch[i]);
            best->row[place[i]] = out[i];
            if (out[i].kind == OUTCOME_SIMULATED &&
                (round.best_so_far == NULL || best_is_better(best->goal, &out[i], &best_outcome))) {
                best_outcome = out[i];
                round.best_so_far = &best_outcome;
            }
        }
    }
    for (; next < best->row_count; next++)
        fill_skipped_row(&best->row[next], &row[next], OUTCOME_NOT_SEARCHED);
    progress_end();
    return status;
}

/* Fills a row for every candidate of best->space, and ranks the rows. Returns STATUS_NO if none was simulated. */
static enum status search_candidates(struct best *best, struct setup *setup,
                                     const struct space_open *open, struct diag *diag)
{
    best->row_count = best->space.candidate_count;
    best->row = heap_realloc(best->row, best->row_count + 1, sizeof *best->row);
    enum status status = best->goal == GOAL_LONGEST
                             ? find_longest_of_all_candidates(best, setup, open, diag)
                             : fastest_find(best, setup, open, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < best->row_count; i++)
        best->outcome_count_of_kind[best->row[i].kind]++;
    best_sort_rows(best);
    if (best->row_count == 0 || best->row[0].kind != OUTCOME_SIMULATED)
        return STATUS_NO;
    return best->row[0].packed_set != NULL ? all_batches_compare_and_rank(best, setup, diag)
                                           : STATUS_OK;
}

/* Returns the number of GPUs to search after `gpus`: twice as many. If that would pass over a whole node, it is the
 * GPUs of a node; if it would pass over all GPUs of the cluster, it is all of them. After all of them it is more than
 * the cluster has. */
static int64_t next_gpu_count(const struct cluster *cluster, int64_t gpus)
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
    best->gpu_count = (size_t)setup->cluster.gpus;
    open.length = goal == GOAL_LONGEST;
    /* bounds are for a length that all degrees divide, but for no more tokens than the model has learned positions */
    if (goal == GOAL_LONGEST) {
        int64_t seq = longest_length_all_degrees_divide(setup->cluster.gpus),
                most = setup->model.max_positions;
        bool ends = setup->model.positions == POSITIONS_LEARNED && most < seq;
        setup->request.seq = ends ? most : seq;
    }
    if (goal != GOAL_GPUS) {
        enum status status =
            space_add_candidates_of_gpus(&best->space, setup, setup->cluster.gpus, open, diag);
        return status == STATUS_OK ? search_candidates(best, setup, &open, diag) : status;
    }
    for (int64_t gpus = 1; gpus <= setup->cluster.gpus;
         gpus = next_gpu_count(&setup->cluster, gpus)) {
        struct diag unread = {0};
        const struct best last = *best;
        best_release(best);
        *best = (struct best){.goal = goal,
                              .gpu_count = (size_t)gpus,
                              .limits = last.limits,
                              .less_probable_best = last.less_probable_best,
                              .less_probable_gpu_count = last.less_probable_gpu_count,
                              .has_unfinished_search_on_fewer_gpus =
                                  last.has_unfinished_search_on_fewer_gpus || last.hit_time_limit};
        enum status status = space_add_candidates_of_gpus(
            &best->space, setup, gpus, open, gpus == setup->cluster.gpus ? diag : &unread);
        diag_release(&unread);
        if (status == STATUS_OK)
            status = search_candidates(best, setup, &open, diag);
        if (best->less_probable_gpu_count == 0 &&
            best->less_probable_best.kind == OUTCOME_SIMULATED)
            best->less_probable_gpu_count = (size_t)gpus;
        if (status == STATUS_OK || status == STATUS_SYSTEM || gpus == setup->cluster.gpus ||
            interrupt_caught_signal_number() != 0)
            return status;
    }
    return STATUS_NO;
}
