/* Does one job of the search for the fastest in a child process (predict/plan/fastest_parts.h). `odds` is the
 * probability with which a configuration has to fit to be taken. */
#include "base/digest.h"
#include "predict/bounds.h"
#include "predict/plan/fastest_parts.h"
#include "predict/plan/repairs.h"
#include "predict/plan/room.h"
#include "predict/plan/shortened.h"
#include "schedule/config/resolve_config.h"

#include <math.h>

/* Makes *o OUTCOME_DOES_NOT_FIT with this verdict. If *o is OUTCOME_DOES_NOT_FIT already, it keeps its verdict unless
 * the new one lacks fewer bytes. */
static void keep_nearest_verdict(struct outcome *o, const struct verdict *verdict)
{
    double lacks = verdict_missing_bytes(verdict);
    if (o->kind == OUTCOME_DOES_NOT_FIT && lacks >= o->missing_bytes)
        return;
    o->kind = OUTCOME_DOES_NOT_FIT;
    o->verdict = *verdict;
    o->missing_bytes = lacks;
}

/* If activations are offloaded by ratio, the numbers of pieces of the loss and of the feed-forward part change which
 * activations move. So the last repair may need more memory than another, by at most this share of the device's memory
 * (tests/cli/test_space.c). */
#define OFFLOAD_RATIO_ERROR_SHARE 0.1

/* Returns the share of the device's memory by which a repair that should need the least memory may need more than
 * another one: because of OFFLOAD_RATIO_ERROR_SHARE, or because allocators keep other caches. */
static double last_repair_error_share(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_RATIO ? OFFLOAD_RATIO_ERROR_SHARE
                                                      : RESERVED_VERDICT_MARGIN_SHARE;
}

/* Returns the probability with which a candidate has to fit. It is 0.5, and not what the setup asks for, if the
 * candidate may become the best of those that fit with a lower probability. */
static double required_fits_probability(const struct rate_search *s,
                                        const struct candidate_search *node,
                                        const struct outcome *o)
{
    bool may_be_less_probable = o->packed_set == NULL && s->best->less_probable_gpu_count == 0;
    return may_be_less_probable && node->rate_bound > s->best->less_probable_best.rate_bound
               ? 0.5
               : s->setup->fits_probability;
}

/* True if the candidate cannot fit on the device with any repair; then *o gets the verdict of the last one if that
 * lacks fewer bytes than the verdict that it has (keep_nearest_verdict()). Only the last repair is tried, which needs
 * the least device memory, up to last_repair_error_share(). If it does not fit even in a memory that is larger by that
 * share, none does. Returns false if host memory is too small with it: other repairs may need less of that. */
static bool is_unfit_with_last_repair(const struct setup *setup, const struct repairs *repairs,
                                      double odds, struct outcome *o)
{
    struct request request;
    struct choices c;
    struct verdict verdict;
    if (!repairs_apply_last(&request, repairs) ||
        resolve_choices(&c, &request, NULL, NULL) != STATUS_OK)
        return false;
    if (!room_bound_lacks_memory(&verdict, setup, &request, odds) &&
        !shortened_lacks_memory(&verdict, setup, &request, odds)) {
        const struct prediction_question question = {
            .setup = setup, .request = &request, .skips_offsets = true};
        struct prediction p = {0};
        bool made = prediction_memory(&p, &question, NULL, NULL) == STATUS_OK;
        verdict = p.verdict;
        prediction_release(&p);
        if (!made)
            return false;
    }
    if (room_lacks_memory(LIMIT_HOST, setup, &c, &verdict, 0, odds) ||
        !room_lacks_memory(LIMIT_DEVICE, setup, &c, &verdict, last_repair_error_share(&c), odds))
        return false;
    keep_nearest_verdict(o, &verdict);
    return true;
}

/* True if the candidate cannot fit with any repair. o->verdict is that of the candidate without repairs: if host memory
 * is too small for it, no repair helps. Otherwise is_unfit_with_last_repair() decides. */
static bool is_unfit_with_every_repair(const struct setup *setup, const struct repairs *repairs,
                                       double odds, struct outcome *o)
{
    struct choices c;
    if (resolve_choices(&c, &o->request, NULL, NULL) == STATUS_OK &&
        room_lacks_memory(LIMIT_HOST, setup, &c, &o->verdict, last_repair_error_share(&c), odds))
        return true;
    return is_unfit_with_last_repair(setup, repairs, odds, o);
}

/* Tries the candidate's repairs, from the next one on, by bounds and short steps. At the first with which the candidate
 * may fit, fills a->bound_s, and the next step is the whole one. If there is none, the candidate is done. */
static void estimate_by_short_steps(const struct rate_search *s,
                                    const struct candidate_search *node, struct candidate_answer *a)
{
    struct outcome *o = &a->outcome;
    struct repairs repairs = repairs_make(s->given_request, s->open, &o->request);
    struct request request;
    double odds = required_fits_probability(s, node, o);
    a->next_candidate_step = SEARCH_STEP_DONE;
    for (a->next_repair_number = 0; repairs_apply_next(&request, &repairs);
         a->next_repair_number++) {
        struct verdict verdict;
        struct choices refused;
        if (a->next_repair_number < node->next_repair_number ||
            resolve_choices(&refused, &request, NULL, NULL) != STATUS_OK)
            continue;
        if (room_bound_lacks_memory(&verdict, s->setup, &request, odds) ||
            shortened_lacks_memory(&verdict, s->setup, &request, odds)) {
            keep_nearest_verdict(o, &verdict);
            if (a->next_repair_number == 0 &&
                is_unfit_with_every_repair(s->setup, &repairs, odds, o))
                return;
            continue;
        }
        a->next_candidate_step = SEARCH_STEP_WHOLE;
        a->bound_s = shortened_step_s(s->setup, &request) * (1 - SHORTENED_ERROR_SHARE);
        return;
    }
}

/* Simulates a configuration that fits with a lower probability than the setup asks for, and fills *less_probable. */
static void simulate_less_probable(const struct outcome *o, const struct request *request,
                                   struct prediction *p, struct outcome *less_probable)
{
    if (prediction_time(p, NULL) != STATUS_OK)
        return;
    *less_probable = *o;
    less_probable->request = *request;
    less_probable->verdict = p->verdict;
    outcome_fill_times(less_probable, p);
}

/* Predicts the whole step with the candidate's next repair. If the step is too slow to be of interest, only lowers the
 * candidate's bound. If it fits, simulates it, and the candidate is done. If it does not fit or cannot be built, the
 * next step is short steps with the repair after it; or the candidate is done, if no repair can make it fit. */
static void predict_whole_step(const struct rate_search *s, const struct candidate_search *node,
                               struct candidate_answer *a)
{
    struct outcome *o = &a->outcome;
    struct repairs repairs = repairs_make(s->given_request, s->open, &o->request);
    struct request request;
    const struct prediction_question question = {.setup = s->setup,
                                                 .request = &request,
                                                 .skips_offsets = true,
                                                 .skips_cause_of_documents = true,
                                                 .rate_to_exceed = s->rate_to_exceed};
    struct prediction p = {0};
    a->next_candidate_step = SEARCH_STEP_DONE;
    for (unsigned i = 0; i <= node->next_repair_number; i++)
        if (!repairs_apply_next(&request, &repairs))
            return;
    a->next_repair_number = (uint8_t)(node->next_repair_number + 1);
    if (prediction_memory(&p, &question, NULL, NULL) != STATUS_OK) {
        a->next_candidate_step = SEARCH_STEP_SHORT;
    } else if (
        p.is_slower_than_rate_to_exceed) { /* it may be simulated later, as the best of its strategy */
        a->next_repair_number = node->next_repair_number;
        a->next_candidate_step = SEARCH_STEP_WHOLE;
        a->rate_bound = p.tokens_per_s_gpu;
    } else if (room_fits_asked_probability(s->setup, &p.verdict)) {
        o->request = request;
        o->verdict = p.verdict;
        if (prediction_time(&p, NULL) == STATUS_OK)
            outcome_fill_times(o, &p);
    } else {
        keep_nearest_verdict(o, &p.verdict);
        double odds = required_fits_probability(s, node, o);
        if (p.verdict.fits && odds < s->setup->fits_probability)
            simulate_less_probable(o, &request, &p, &a->less_probable_outcome);
        bool beyond = node->next_repair_number == 0 &&
                      is_unfit_with_every_repair(s->setup, &repairs, odds, o);
        a->next_candidate_step = beyond ? SEARCH_STEP_DONE : SEARCH_STEP_SHORT;
    }
    prediction_release(&p);
}

/* Resizes this child process's own copy of the cluster. Returns false if the cluster cannot have that number of
 * GPUs. */
static bool resize_cluster_to_gpus(struct setup *setup, int64_t gpus)
{
    return setup->cluster.gpus == gpus ||
           cluster_resize(&setup->cluster, &setup->arena, 0, gpus, NULL) == STATUS_OK;
}

static void time_layer(const struct rate_search *s, const struct timed_layer *layer,
                       const struct request *request, struct candidate_answer *a)
{
    a->layer_time = layer->layer_time;
    if (!layer->has_kernel_sums)
        a->layer_time = layer_kernel_sums(s->setup, request, &layer->key);
    else
        a->layer_time.step_s =
            fmax(a->layer_time.step_s, layer_simulated_s(s->setup, request, &layer->key));
}

void fastest_run_job(void *context, size_t number, void *result)
{
    struct rate_search *s = context;
    const struct search_job *job = &s->job[number];
    const struct candidate *c = &s->best->space.row[job->candidate_index];
    const struct candidate_search *node = &s->node[job->candidate_index];
    struct candidate_answer *a = result;
    a->is_answered = true;
    a->next_candidate_step = SEARCH_STEP_DONE;
    if (job->step_to_take != SEARCH_STEP_LAYER)
        a->outcome = s->best->row[job->candidate_index];
    s->setup->padding_tokens =
        c->packed_set != NULL ? c->packed_set->batch[c->packed_set->typical_batch].padding_tokens
                              : 0;
    if (!resize_cluster_to_gpus(s->setup, c->request.ranks))
        return;
    if (job->step_to_take == SEARCH_STEP_LAYER)
        time_layer(s, &s->layer[job->timed_layer_row_of_job], &c->request, a);
    else if (job->step_to_take == SEARCH_STEP_SHORT)
        estimate_by_short_steps(s, node, a);
    else
        predict_whole_step(s, node, a);
}

uint64_t fastest_job_digest(const struct rate_search *s, const struct search_job *job)
{
    const struct candidate *c = &s->best->space.row[job->candidate_index];
    const struct candidate_search *node = &s->node[job->candidate_index];
    const struct outcome *o = &s->best->row[job->candidate_index];
    uint64_t key;
    if (job->step_to_take == SEARCH_STEP_LAYER) {
        const struct timed_layer *layer = &s->layer[job->timed_layer_row_of_job];
        const struct request request = layer_request_of_one_layer(&c->request, &layer->key);
        key = outcome_request_digest(s->setup, &request, c->request.ranks);
        return digest_add(key, &layer->has_kernel_sums, sizeof layer->has_kernel_sums);
    }
    const double state[] = {job->step_to_take,
                            node->next_repair_number,
                            required_fits_probability(s, node, o),
                            job->step_to_take == SEARCH_STEP_WHOLE ? s->rate_to_exceed : 0,
                            o->kind,
                            o->missing_bytes,
                            o->verdict.fits_probability};
    key = digest_add(outcome_digest(s->setup, s->open, c), state, sizeof state);
    return digest_add(key, o->verdict.needed_bytes, sizeof o->verdict.needed_bytes);
}
