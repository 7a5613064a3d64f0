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

/* The search for the best configuration of a strategy ends when no other configuration of that strategy may be faster
 * by more than this share, or than the gap that the user allows if that is larger. */
#define RUNNER_UP_GAP_SHARE 0.01

/* ---- layers ---- */

static uint32_t find_or_add_layer(struct rate_search *s, const struct layer_key *key)
{
    for (uint32_t i = 0; i < s->layer_count; i++)
        if (layer_keys_equal(&s->layer[i].key, key))
            return i;
    if (s->layer_count == s->capacity) {
        s->capacity = (uint32_t)heap_next_capacity(s->capacity, s->layer_count + 1);
        s->layer = heap_realloc(s->layer, s->capacity, sizeof *s->layer);
    }
    s->layer[s->layer_count] = (struct timed_layer){.key = *key};
    return s->layer_count++;
}

static void find_layers_of_candidate(struct rate_search *s, size_t i)
{
    const struct request *request = &s->best->space.row[i].request;
    struct candidate_search *node = &s->node[i];
    struct layer_key key;
    struct choices c;
    node->least_layer_row = node->own_layer_row = SEARCH_NO_LAYER;
    node->next_candidate_step = SEARCH_STEP_SHORT;
    if (resolve_choices(&c, request, NULL, NULL) != STATUS_OK)
        return;
    node->upper_bound_of_ops = step_max_ops_of_rank(&c) * c.pp;
    if (!layer_key_make(&key, &c, request, true))
        return;
    node->next_candidate_step = SEARCH_STEP_LAYER;
    node->least_layer_row = find_or_add_layer(s, &key);
    if (layer_key_make(&key, &c, request, false))
        node->own_layer_row = find_or_add_layer(s, &key);
}

static double tokens_per_s_gpu_of_step(const struct candidate *c, double step_s)
{
    return c->step_tokens / step_s / (double)c->request.ranks;
}

/* Lowers a candidate's rate_bound to the bound that follows from the times of its two layers (least_layer_row,
 * own_layer_row), as far as they are known. Once both steps of its own layer were taken, its next step is
 * SEARCH_STEP_SHORT. */
static void lower_rate_bound_by_layer_times(struct rate_search *s, size_t i)
{
    const struct candidate *candidate = &s->best->space.row[i];
    struct candidate_search *node = &s->node[i];
    const struct timed_layer *least = &s->layer[node->least_layer_row],
                             *own = &s->layer[node->own_layer_row];
    struct layer_lower_bound layer = {least->layer_time.kernels_s, own->layer_time.issue_s,
                                      fmax(least->layer_time.step_s, own->layer_time.step_s)};
    struct resolved resolved;
    if (resolved_make(&resolved, s->setup, &candidate->request, NULL, NULL) == STATUS_OK &&
        layer.step_s > 0)
        node->rate_bound =
            fmin(node->rate_bound,
                 tokens_per_s_gpu_of_step(
                     candidate, bound_step_from_layer_s(s->setup, &resolved.choices, &layer)));
    resolved_release(&resolved);
    if (own->has_step)
        node->next_candidate_step = SEARCH_STEP_SHORT;
}

/* ---- the outcome of a candidate ---- */

static void finish_candidate(struct rate_search *s, size_t i, enum outcome_kind kind)
{
    struct outcome *o = &s->best->row[i];
    o->kind = kind;
    o->rate_bound = s->node[i].rate_bound;
    s->node[i].next_candidate_step = SEARCH_STEP_DONE;
}

/* ---- the same candidate with another placement of stages ---- */

struct key_without_stage_placement {
    uint64_t key;
    size_t candidate_index;
};

static int compare_placement_keys(const void *left, const void *right)
{
    const struct key_without_stage_placement *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->candidate_index < b->candidate_index ? -1 : 1;
}

/* Finds, for each candidate, the one that differs from it only in the placement of stages. Their schedules differ only
 * in which ranks are neighbours, and so in NCCL's buffers. Candidates of pipeline msp get none: their stages share
 * subsequences, and how many depends on the placement. */
static void find_other_placements(struct rate_search *s)
{
    const struct space *space = &s->best->space;
    struct key_without_stage_placement *key = heap_zalloc(space->candidate_count + 1, sizeof *key);
    size_t count = 0;
    for (size_t i = 0; i < space->candidate_count; i++) {
        struct candidate placed = space->row[i];
        s->node[i].other_placement = i;
        if (placed.request.pp <= 1 || placed.request.dp <= 1 ||
            placed.request.pipeline == CHOICE_PIPELINE_MSP)
            continue;
        placed.request.stage_placement = STAGES_OUTER;
        key[count++] =
            (struct key_without_stage_placement){outcome_digest(s->setup, s->open, &placed), i};
    }
    qsort(key, count, sizeof *key, compare_placement_keys);
    for (size_t k = 1; k < count; k++)
        if (key[k].key == key[k - 1].key) {
            s->node[key[k].candidate_index].other_placement = key[k - 1].candidate_index;
            s->node[key[k - 1].candidate_index].other_placement = key[k].candidate_index;
        }
    free(key);
}

/* True if a candidate with this verdict would not fit even without NCCL's buffers. Then the candidate with the other
 * placement of stages, which needs the same bytes apart from these buffers, does not fit either. verdict: that of the
 * repair with which the fewest bytes are missing. */
static bool other_placement_lacks_memory(const struct verdict *verdict)
{
    struct verdict least = *verdict;
    uint64_t *needed = &least.needed_bytes[LIMIT_DEVICE];
    *needed -= least.nccl_bytes < *needed ? least.nccl_bytes : *needed;
    return verdict_missing_bytes(&least) > 0;
}

/* If a candidate's answer is that it does not fit with some repairs, and the candidate with the other placement of
 * stages cannot fit with them either, gives that one the same outcome and skips these repairs for it. Does nothing if
 * the answer has a less probable outcome, which the other placement may exceed. */
static void apply_answer_to_other_placement(struct rate_search *s, size_t i,
                                            const struct candidate_answer *a)
{
    const size_t t = s->node[i].other_placement;
    struct candidate_search *other = &s->node[t];
    struct outcome *o = &s->best->row[t];
    if (t == i || other->next_candidate_step == SEARCH_STEP_DONE ||
        a->outcome.kind != OUTCOME_DOES_NOT_FIT ||
        a->less_probable_outcome.kind == OUTCOME_SIMULATED ||
        !other_placement_lacks_memory(&a->outcome.verdict) ||
        (a->next_candidate_step != SEARCH_STEP_DONE &&
         other->next_repair_number >= a->next_repair_number))
        return;
    const struct candidate *candidate = &s->best->space.row[t];
    *o = a->outcome;
    o->request = candidate->request;
    outcome_restore_pointers(o, candidate);
    other->next_repair_number = a->next_repair_number;
    if (a->next_candidate_step == SEARCH_STEP_DONE)
        other->next_candidate_step = SEARCH_STEP_DONE;
    else if (other->next_candidate_step == SEARCH_STEP_WHOLE)
        other->next_candidate_step = SEARCH_STEP_SHORT;
}

/* ---- the search ---- */

/* Makes a row and a node for each candidate. A candidate is done (OUTCOME_OVER_MEMORY_BOUND) if its lower bound of
 * bytes exceeds the memory that the driver leaves of the device, even after what a move of the optimizer to the host
 * may save. */
static void begin_search(struct rate_search *s)
{
    struct best *best = s->best;
    const struct device *device = &s->setup->cluster.device;
    double available = device->memory_bytes - device->driver_bytes;
    for (size_t i = 0; i < best->space.candidate_count; i++) {
        const struct candidate *c = &best->space.row[i];
        /* a repair may move the optimizer to the host, which saves bytes_saved_by_host_optimizer on the GPU */
        double least = c->gpu_lower_bound_bytes -
                       (s->given_request->optimizer < 0 ? c->bytes_saved_by_host_optimizer : 0);
        best->row[i] = (struct outcome){.kind = OUTCOME_REFUSED,
                                        .request = c->request,
                                        .strategy = c->strategy,
                                        .packed_set = c->packed_set,
                                        .sequence_tokens = c->request.seq};
        s->node[i] = (struct candidate_search){
            .rate_bound = tokens_per_s_gpu_of_step(c, c->step_lower_bound_s)};
        if (least > available) {
            finish_candidate(s, i, OUTCOME_OVER_MEMORY_BOUND);
            best->row[i].missing_bytes = least - available;
        } else {
            find_layers_of_candidate(s, i);
        }
    }
    find_other_placements(s);
}

/* Makes the outcome the best one so far if it is better, and sets the rate that others must exceed. With packed
 * documents that rate is lower than the best one's, so that several of the fastest are found and compared on other
 * batches. */
static void keep_best_outcome(struct rate_search *s, const struct outcome *o)
{
    double rate = o->rate_bound;
    if (best_is_better(s->best->goal, o, &s->best_so_far))
        s->best_so_far = *o;
    for (size_t i = 0; i < COMPARED_ROWS; i++)
        if (rate > s->fastest_tokens_per_s_gpu[i]) {
            double lower = s->fastest_tokens_per_s_gpu[i];
            s->fastest_tokens_per_s_gpu[i] = rate;
            rate = lower;
        }
    s->rate_to_exceed = s->best_so_far.rate_bound;
    if (o->packed_set != NULL)
        s->rate_to_exceed = fmax(s->best_so_far.rate_bound / (1 + OTHER_BATCHES_RATE_MARGIN_SHARE),
                                 s->fastest_tokens_per_s_gpu[COMPARED_ROWS - 1]);
}

static void apply_job_answer_to_candidate(struct rate_search *s, const struct search_job *job,
                                          const struct candidate_answer *a)
{
    struct candidate_search *node = &s->node[job->candidate_index];
    if (job->step_to_take == SEARCH_STEP_LAYER) {
        struct timed_layer *layer = &s->layer[job->timed_layer_row_of_job];
        layer->has_step = layer->has_kernel_sums;
        layer->has_kernel_sums = true;
        layer->layer_time = a->layer_time;
        for (size_t i = 0; i < s->best->space.candidate_count; i++)
            if (s->node[i].next_candidate_step == SEARCH_STEP_LAYER &&
                (s->node[i].least_layer_row == job->timed_layer_row_of_job ||
                 s->node[i].own_layer_row == job->timed_layer_row_of_job) &&
                s->layer[s->node[i].least_layer_row].has_kernel_sums)
                lower_rate_bound_by_layer_times(s, i);
        return;
    }
    apply_answer_to_other_placement(s, job->candidate_index, a);
    node->next_candidate_step = (uint8_t)a->next_candidate_step;
    node->next_repair_number = a->next_repair_number;
    if (a->bound_s > 0)
        node->rate_bound =
            fmin(node->rate_bound,
                 tokens_per_s_gpu_of_step(&s->best->space.row[job->candidate_index], a->bound_s));
    if (a->rate_bound > 0)
        node->rate_bound = fmin(node->rate_bound, a->rate_bound);
    s->best->row[job->candidate_index] = a->outcome;
    if (a->outcome.kind == OUTCOME_SIMULATED)
        keep_best_outcome(s, &a->outcome);
    if (a->less_probable_outcome.kind == OUTCOME_SIMULATED &&
        best_is_better(s->best->goal, &a->less_probable_outcome, &s->best->less_probable_best))
        s->best->less_probable_best = a->less_probable_outcome;
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
    double search_time_limit_s = s->best->limits.time_limit_s;
    return interrupt_caught_signal_number() != 0 ||
           (search_time_limit_s > 0 && now_s() - s->began_s >= search_time_limit_s);
}

static enum status run_round(struct rate_search *s, double above, struct progress *progress,
                             struct diag *diag)
{
    struct candidate_answer answer[SEARCH_ROUND];
    fastest_choose_jobs(s, above);
    for (size_t i = 0; i < s->job_count && s->best->limits.kept_jobs.answer_file != NULL; i++)
        s->job_digest[i] = fastest_job_digest(s, &s->job[i]);
    enum status status =
        kept_jobs_run(&s->best->limits.kept_jobs, s->job_digest, s->job_count, sizeof answer[0],
                      fastest_run_job, s, answer, progress, diag);
    for (size_t i = 0; i < s->job_count && status == STATUS_OK; i++) {
        const struct candidate *c = &s->best->space.row[s->job[i].candidate_index];
        if (!answer[i].is_answered)
            continue;
        outcome_restore_pointers(&answer[i].outcome, c);
        outcome_restore_pointers(&answer[i].less_probable_outcome, c);
        apply_job_answer_to_candidate(s, &s->job[i], &answer[i]);
    }
    return status;
}

/* Writes "390.2 tokens/s/GPU (fits: 97 %), at most 4.1 % more" into note[0..size). If no configuration that fits is
 * known, the note stays as it was. */
static void write_progress_note(const struct rate_search *s, char *note, size_t size)
{
    double most = 0;
    for (size_t i = 0; i < s->best->space.candidate_count; i++)
        if (fastest_is_candidate_open_above_rate(s, i, most))
            most = s->node[i].rate_bound;
    if (fastest_has_found_a_fit(s))
        c_snprintf(note, size, "%.1f tokens/s/GPU (fits: %.0f %%), at most %.1f %% more",
                   s->best_so_far.rate_bound, 100 * s->best_so_far.verdict.fits_probability,
                   100 * fmax(0, most / s->best_so_far.rate_bound - 1));
}

/* Runs rounds until no candidate may be faster by more than the gap that the user allows, or a limit ends the search.
 * Sets *above to the rate that a candidate must be able to exceed to stay in the search. */
static enum status search_until_gap(struct rate_search *s, double *above, struct progress *progress,
                                    struct diag *diag)
{
    size_t all = s->best->space.candidate_count, open;
    enum status status = STATUS_OK;
    char note[96] = "";
    progress->note = note;
    for (;;) {
        *above = s->rate_to_exceed * (1 + s->best->limits.rate_gap_share);
        write_progress_note(s, note, sizeof note);
        open = fastest_count_open_above_rate(s, *above);
        if (open == 0 || status != STATUS_OK || is_time_over(s))
            break;
        progress->jobs_done_before_run = all - open;
        status = run_round(s, *above, progress, diag);
    }
    progress->note = NULL;
    s->best->hit_time_limit =
        open > 0 && status == STATUS_OK && interrupt_caught_signal_number() == 0;
    return status;
}

/* Restricts the search to the candidates of one strategy. The best so far becomes the best of them that was
 * simulated. */
static void begin_search_of_strategy(struct rate_search *s, int strategy)
{
    s->searched_strategy_index = strategy;
    s->best_so_far = (struct outcome){0};
    for (size_t i = 0; i < s->best->space.candidate_count; i++) {
        const struct outcome *o = &s->best->row[i];
        if (o->strategy == strategy && best_is_better(s->best->goal, o, &s->best_so_far))
            s->best_so_far = *o;
    }
    s->rate_to_exceed = s->best_so_far.rate_bound;
}

/* Searches for the best configuration of each strategy: until no other candidate of the strategy can be faster by more
 * than RUNNER_UP_GAP_SHARE, or than the gap that the user allows if that is larger; but for at most ROUNDS_MAX rounds,
 * and no longer than --within allows. */
static enum status find_best_of_strategies(struct rate_search *s, struct progress *progress,
                                           struct diag *diag)
{
    enum { ROUNDS_MAX = 12 };
    size_t strategies;
    enum status status = STATUS_OK;
    double gap = fmax(RUNNER_UP_GAP_SHARE, s->best->limits.rate_gap_share);
    strategies_list(&strategies);
    progress->jobs_done_before_run = progress->job_count;
    progress->note = "the best of each other strategy";
    for (int strategy = 0; strategy < (int)strategies; strategy++) {
        begin_search_of_strategy(s, strategy);
        for (int round = 0; round < ROUNDS_MAX && status == STATUS_OK; round++) {
            double above = s->rate_to_exceed * (1 + gap);
            if (fastest_count_open_above_rate(s, above) == 0 || is_time_over(s))
                break;
            status = run_round(s, above, progress, diag);
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
                            .searched_strategy_index = -1,
                            .began_s = now_s(),
                            .node = heap_zalloc(best->space.candidate_count + 1, sizeof *s.node)};
    struct progress progress;
    double above = 0;
    begin_search(&s);
    progress_begin(&progress, best->space.candidate_count, 0);
    enum status status = search_until_gap(&s, &above, &progress, diag);
    bool any = best->limits.rate_gap_share >= 1; /* any answer will do */
    if (status == STATUS_OK && fastest_has_found_a_fit(&s) && s.best_so_far.packed_set == NULL &&
        !any)
        status = find_best_of_strategies(&s, &progress, diag);
    progress_end();
    for (size_t i = 0; i < best->space.candidate_count; i++)
        if (s.node[i].next_candidate_step != SEARCH_STEP_DONE)
            finish_candidate(&s, i,
                             s.node[i].rate_bound <= above ? OUTCOME_BOUND_NOT_BETTER
                                                           : OUTCOME_NOT_SEARCHED);
    free(s.node);
    free(s.layer);
    return status;
}
