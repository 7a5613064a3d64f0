#include "predict/alternatives.h"

#include "predict/bounds.h"
#include "predict/workers.h"
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/config/resolve_config.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If a request does not fit in memory, at most this many options are added to it, one in each round. */
enum { ROUNDS = 4 };

/* The limit of one round of trials: it predicts as many requests of the size of the given one as have OPS_MAX ops
 * together (a processor builds and simulates half a million to three million ops a second), or TRIES_MIN if these are
 * fewer. */
enum { OPS_MAX = 1000000, TRIES_MIN = 2 };

/* An option, or a pair of options, is named as faster only if the step with it takes less than this share of the step
 * without it. */
#define WORTHWHILE_STEP_RATIO_MAX 0.995

/* The member of a request that an option sets. */
enum request_field_of_option {
    FIELD_ACTIVATIONS,
    FIELD_WEIGHTS,
    FIELD_OPTIMIZER,
    FIELD_LOSS_CHUNKS,
    FIELD_FFN_CHUNKS,
    FIELD_LATENTS,   /* what head ranks exchange in latent attention */
    FIELD_ATTENTION, /* kernels for which the device has no costs are refused */
};

static const struct alternative_option {
    const char *text; /* "--zero 3" */
    enum request_field_of_option field;
    int value;
} option_table[] = {
    {"--checkpoint none", FIELD_ACTIVATIONS, CHOICE_ACTIVATIONS_KEEP},
    {"--checkpoint selective++", FIELD_ACTIVATIONS, CHOICE_ACTIVATIONS_SELECTIVE},
    {"--checkpoint full", FIELD_ACTIVATIONS, CHOICE_ACTIVATIONS_FULL},
    {"--checkpoint offload", FIELD_ACTIVATIONS, CHOICE_ACTIVATIONS_OFFLOAD},
    {"--checkpoint selective++offload", FIELD_ACTIVATIONS, CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD},
    {"--zero 1", FIELD_WEIGHTS, CHOICE_WEIGHTS_ZERO1},
    {"--zero 2", FIELD_WEIGHTS, CHOICE_WEIGHTS_ZERO2},
    {"--zero 3", FIELD_WEIGHTS, CHOICE_WEIGHTS_ZERO3},
    {"--weights hsdp", FIELD_WEIGHTS, CHOICE_WEIGHTS_HSDP},
    {"--optimizer device", FIELD_OPTIMIZER, CHOICE_OPTIMIZER_DEVICE},
    {"--optimizer host", FIELD_OPTIMIZER, CHOICE_OPTIMIZER_HOST},
    {"--loss-chunks 8", FIELD_LOSS_CHUNKS, 8},
    {"--loss-chunks 64", FIELD_LOSS_CHUNKS, 64},
    {"--ffn-chunks 8", FIELD_FFN_CHUNKS, 8},
    {"--ffn-chunks 64", FIELD_FFN_CHUNKS, 64},
    {"--mla-exchange latent", FIELD_LATENTS, MLA_EXCHANGE_LATENT},
    {"--attention fa2", FIELD_ATTENTION, ATTENTION_FA2},
    {"--attention fa3", FIELD_ATTENTION, ATTENTION_FA3},
    {"--attention cudnn", FIELD_ATTENTION, ATTENTION_CUDNN},
};

_Static_assert(ARRAY_LEN(option_table) + 1 <= ALTERNATIVES_MAX, "ALTERNATIVES_MAX");

static bool has_latents_to_send(const struct choices *c)
{
    struct choices sends = *c;
    sends.mla_exchange = MLA_EXCHANGE_LATENT;
    return derived_sends_latents(&sends);
}

/* True if the choices already have the value that the option would set, or a larger number of chunks, or if the option
 * is of latents and the step sends none. */
static bool is_option_set_or_exceeded(const struct choices *c,
                                      const struct alternative_option *option)
{
    switch (option->field) {
    case FIELD_ACTIVATIONS:
        return c->activations == option->value;
    case FIELD_WEIGHTS:
        return c->weights == option->value;
    case FIELD_OPTIMIZER:
        return c->optimizer == option->value;
    case FIELD_LOSS_CHUNKS:
        return c->loss_chunks >= (uint32_t)option->value;
    case FIELD_FFN_CHUNKS:
        return c->ffn_chunks >= (uint32_t)option->value;
    case FIELD_LATENTS:
        return c->mla_exchange == option->value || !has_latents_to_send(c);
    case FIELD_ATTENTION:
        return c->attention_impl == option->value;
    }
    return true;
}

static void apply_option(struct request *r, const struct alternative_option *option)
{
    switch (option->field) {
    case FIELD_ACTIVATIONS:
        r->activations = option->value;
        break;
    case FIELD_WEIGHTS:
        r->weights = option->value;
        r->shard = 0;
        break;
    case FIELD_OPTIMIZER:
        r->optimizer = option->value;
        break;
    case FIELD_LOSS_CHUNKS:
        r->loss_chunks = option->value;
        break;
    case FIELD_FFN_CHUNKS:
        r->ffn_chunks = option->value;
        break;
    case FIELD_LATENTS:
        r->mla_exchange = option->value;
        break;
    case FIELD_ATTENTION:
        r->attention_impl = option->value;
        break;
    }
}

size_t alternatives_option_count(void)
{
    return ARRAY_LEN(option_table);
}

const char *alternatives_option_text(size_t i)
{
    return option_table[i].text;
}

void alternatives_set_option(struct request *request, size_t i)
{
    apply_option(request, &option_table[i]);
}

struct alternative_trial_result {
    bool could_request_be_predicted; /* the request was legal, and could be predicted */
    struct verdict verdict;
    double step_s;
};

struct trials {
    const struct setup *setup;
    const struct request *request; /* the options are set in copies of it */
    /* NULL: the trial sets the profile `ideal` instead of an option */
    const struct alternative_option *option[ALTERNATIVES_MAX];
    bool is_exact;           /* steps are simulated exactly (struct prediction_question) */
    bool asks_only_verdicts; /* only verdicts are found, no step is simulated */
};

static struct prediction_question question_of_trial(const struct setup *setup,
                                                    const struct request *request, bool exact)
{
    return (struct prediction_question){.setup = setup,
                                        .request = request,
                                        .is_exact = exact,
                                        .skips_offsets = true,
                                        .skips_cause_of_documents = true};
}

static void predict_trial_job(void *context, size_t job, void *result)
{
    const struct trials *trials = context;
    struct alternative_trial_result *trial = result;
    struct request request = *trials->request;
    struct prediction p = {0};
    bool ideal = trials->option[job] == NULL;
    if (ideal)
        request.profile = PROFILE_IDEAL;
    else
        apply_option(&request, trials->option[job]);
    const struct prediction_question question =
        question_of_trial(trials->setup, &request, trials->is_exact);
    enum status status = prediction_memory(&p, &question, NULL, NULL);
    if (status == STATUS_OK && (ideal || (p.verdict.fits && !trials->asks_only_verdicts)))
        status = prediction_time(&p, NULL);
    trial->could_request_be_predicted = status == STATUS_OK;
    trial->verdict = p.verdict;
    trial->step_s = p.sim.step_s;
    prediction_release(&p);
}

/* Returns the largest number of requests that one round predicts, by OPS_MAX and TRIES_MIN. */
static size_t max_tries_per_round(const struct prediction *base)
{
    size_t ops = repeats_whole_op_count(&base->ir.repeats, REPEATS_ALL_ROLES, base->ir.op.count),
           tries = OPS_MAX / (ops + 1);
    return tries > TRIES_MIN ? tries : TRIES_MIN;
}

/* An option that is not refused, and the lower bound of the request with it (lower_bound_with_option()). */
struct option_with_lower_bound {
    const struct alternative_option *option;
    double lower_bound_s_or_bytes;
};

/* Returns a lower bound for the request with the option: seconds of a step or, with trials->asks_only_verdicts, bytes
 * of a GPU. Returns a negative number if the request is refused. */
static double lower_bound_with_option(const struct trials *trials,
                                      const struct alternative_option *option)
{
    struct request request = *trials->request;
    struct choices c;
    apply_option(&request, option);
    if (resolve_choices(&c, &request, NULL, NULL) != STATUS_OK)
        return -1;
    if (!trials->asks_only_verdicts)
        return bound_step_s(trials->setup, &c);
    return bound_state_bytes(trials->setup, &c) + bound_optimizer_bytes(&c) +
           bound_saved_device_bytes(&c);
}

/* Reduces trials->option[first..count) to the `tries` options with the lowest bounds, which keep their order, and
 * returns the new count. Options that are refused are dropped, and count nowhere. Options whose bound is `limit` or
 * more are dropped, and count in best->tried_count. Options that are neither, but are not among the `tries`, count in
 * best->skipped_count. */
static size_t keep_options_with_lowest_bounds(struct trials *trials, size_t first, size_t count,
                                              size_t tries, double limit, struct alternative *best)
{
    struct option_with_lower_bound bounded_options[ALTERNATIVES_MAX];
    size_t legal = 0, kept = first;
    for (size_t i = first; i < count; i++) {
        double bound = lower_bound_with_option(trials, trials->option[i]);
        if (bound >= limit)
            best->tried_count++;
        else if (bound >= 0)
            bounded_options[legal++] = (struct option_with_lower_bound){trials->option[i], bound};
    }
    for (size_t i = 0; i < legal; i++) {
        size_t lower = 0;
        for (size_t k = 0; k < legal; k++)
            lower += bounded_options[k].lower_bound_s_or_bytes <
                         bounded_options[i].lower_bound_s_or_bytes ||
                     (bounded_options[k].lower_bound_s_or_bytes ==
                          bounded_options[i].lower_bound_s_or_bytes &&
                      k < i);
        if (lower < tries)
            trials->option[kept++] = bounded_options[i].option;
        else
            best->skipped_count++;
    }
    return kept;
}

/* True if a step of `a` is faster than one of `b`, or as fast up to rounding and needs less memory of a GPU. */
static bool is_better_trial(const struct alternative_trial_result *a,
                            const struct alternative_trial_result *b)
{
    if (fabs(a->step_s - b->step_s) > 1e-9 * b->step_s)
        return a->step_s < b->step_s;
    return a->verdict.needed_bytes[LIMIT_DEVICE] < b->verdict.needed_bytes[LIMIT_DEVICE];
}

static enum status find_fastest_option(struct alternative *best, const struct prediction *base,
                                       struct trials *trials, struct diag *diag)
{
    struct alternative_trial_result trial[ALTERNATIVES_MAX];
    size_t count = 0, fastest = SIZE_MAX;
    trials->option[count++] = NULL;
    for (size_t i = 0; base->verdict.fits && i < ARRAY_LEN(option_table); i++)
        if (!is_option_set_or_exceeded(&base->choices, &option_table[i]))
            trials->option[count++] = &option_table[i];
    count = keep_options_with_lowest_bounds(trials, 1, count, max_tries_per_round(base) - 1,
                                            base->sim.step_s * WORTHWHILE_STEP_RATIO_MAX, best);
    enum status status =
        workers_run(count, sizeof trial[0], predict_trial_job, trials, trial, NULL, diag);
    if (status != STATUS_OK)
        return status;
    best->ideal_step_s = trial[0].could_request_be_predicted ? trial[0].step_s : 0;
    for (size_t i = 1; i < count; i++) {
        if (!trial[i].could_request_be_predicted)
            continue;
        best->tried_count++;
        if (trial[i].verdict.fits &&
            trial[i].step_s < base->sim.step_s * WORTHWHILE_STEP_RATIO_MAX &&
            (fastest == SIZE_MAX || is_better_trial(&trial[i], &trial[fastest])))
            fastest = i;
    }
    if (fastest == SIZE_MAX)
        return STATUS_OK;
    snprintf(best->options, sizeof best->options, "%s", trials->option[fastest]->text);
    best->verdict = trial[fastest].verdict;
    best->step_s = trial[fastest].step_s;
    return STATUS_OK;
}

/* Sets in *request the option that, of those that are predicted (keep_options_with_lowest_bounds()), lowers the missing
 * memory most, appends it to best->options, and stores its verdict in best->verdict. Bit f of *used: no option may set
 * enum request_field_of_option f any more; the function adds the bit of the field that it sets. Returns STATUS_NO if no
 * option lowers the missing memory. */
static enum status add_best_memory_option(struct alternative *best, struct request *request,
                                          unsigned *used, const struct prediction *base,
                                          struct diag *diag)
{
    struct trials trials = {.setup = base->setup, .request = request, .asks_only_verdicts = true};
    struct alternative_trial_result trial[ALTERNATIVES_MAX];
    struct choices choices;
    size_t count = 0, least = SIZE_MAX;
    enum status status = resolve_choices(&choices, request, NULL, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < ARRAY_LEN(option_table); i++)
        if (!is_option_set_or_exceeded(&choices, &option_table[i]) &&
            (*used >> option_table[i].field & 1u) == 0)
            trials.option[count++] = &option_table[i];
    count = keep_options_with_lowest_bounds(&trials, 0, count, max_tries_per_round(base), DBL_MAX,
                                            best);
    status = workers_run(count, sizeof trial[0], predict_trial_job, &trials, trial, NULL, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        if (!trial[i].could_request_be_predicted)
            continue;
        best->tried_count++;
        if (verdict_missing_bytes(&trial[i].verdict) < verdict_missing_bytes(&best->verdict) &&
            (least == SIZE_MAX || verdict_missing_bytes(&trial[i].verdict) <
                                      verdict_missing_bytes(&trial[least].verdict)))
            least = i;
    }
    if (least == SIZE_MAX)
        return STATUS_NO;
    size_t size = strlen(best->options);
    snprintf(best->options + size, sizeof best->options - size, "%s%s", size > 0 ? " " : "",
             trials.option[least]->text);
    best->verdict = trial[least].verdict;
    apply_option(request, trials.option[least]);
    *used |= 1u << trials.option[least]->field;
    return STATUS_OK;
}

static enum status find_fitting_options(struct alternative *best, const struct prediction *base,
                                        struct diag *diag)
{
    struct request changed = *base->question.request;
    unsigned used = 1u << FIELD_ATTENTION; /* attention kernels hardly change the memory */
    enum status status = STATUS_OK;
    best->verdict = base->verdict;
    for (int round = 0; round < ROUNDS && status == STATUS_OK && !best->verdict.fits; round++)
        status = add_best_memory_option(best, &changed, &used, base, diag);
    if (status != STATUS_OK && status != STATUS_NO)
        return status;
    if (!best->verdict.fits)
        return STATUS_OK;
    struct prediction p = {0};
    const struct prediction_question question =
        question_of_trial(base->setup, &changed, base->question.is_exact);
    status = prediction_make(&p, &question, diag);
    best->step_s = p.sim.step_s;
    prediction_release(&p);
    return status;
}

enum status alternatives_find_best(struct alternative *best, const struct prediction *base,
                                   struct diag *diag)
{
    *best = (struct alternative){0};
    struct trials trials = {.setup = base->setup,
                            .request = base->question.request,
                            .is_exact = base->question.is_exact};
    enum status status = find_fastest_option(best, base, &trials, diag);
    if (status == STATUS_OK && !base->verdict.fits)
        status = find_fitting_options(best, base, diag);
    return status;
}

/* ---- suggestions ---- */

struct suggestion_trial_result {
    double fits_probability;
    bool fits; /* allocator and host memory suffice, and the step was simulated */
    uint64_t allocator_bytes;
    double step_s;
};

struct suggestion_trials_input {
    const struct setup *setup;
    const struct request *request;
    uint64_t allocator_limit_bytes;
    struct suggestion_pair {
        /* second: NULL for an option by itself */
        const struct alternative_option *first, *second;
    } pair[SUGGESTIONS_MAX]; /* the first single_option_count are the options by themselves */
    size_t single_option_count;
};

uint64_t alternatives_allocator_bytes(const struct prediction *p)
{
    return p->reserved.bytes[RESERVED_TENSORS] + p->reserved.bytes[RESERVED_WORKSPACES] +
           p->reserved.bytes[RESERVED_BUCKETS] + p->reserved.bytes[RESERVED_POSITION_TABLES];
}

static void try_suggestion(void *context, size_t job, void *result)
{
    const struct suggestion_trials_input *trials = context;
    const struct suggestion_pair *pair = &trials->pair[job];
    struct suggestion_trial_result *trial = result;
    struct request request = *trials->request;
    struct prediction p = {0};
    const struct prediction_question question = question_of_trial(trials->setup, &request, false);
    apply_option(&request, pair->first);
    if (pair->second != NULL)
        apply_option(&request, pair->second);
    if (prediction_memory(&p, &question, NULL, NULL) == STATUS_OK) {
        trial->allocator_bytes = alternatives_allocator_bytes(&p);
        trial->fits_probability =
            prediction_fits_probability(p.setup, &p.choices, (double)trial->allocator_bytes,
                                        (double)trials->allocator_limit_bytes);
        trial->fits = trial->allocator_bytes <= trials->allocator_limit_bytes &&
                      p.verdict.needed_bytes[LIMIT_HOST] <= p.verdict.available_bytes[LIMIT_HOST];
        if (trial->fits && prediction_time(&p, NULL) == STATUS_OK)
            trial->step_s = p.sim.step_s;
        trial->fits = trial->fits && p.is_simulated;
    }
    prediction_release(&p);
}

static int compare_suggestions(const void *left, const void *right)
{
    const struct suggestion *a = left, *b = right;
    if (a->step_s != b->step_s)
        return a->step_s < b->step_s ? -1 : 1;
    return strcmp(a->options, b->options);
}

/* Fills pair[] with the options that have an effect on the choices, first each by itself, then each two that set
 * different fields, as far as there is room. Attention kernels are left out. Returns the number of elements that it
 * filled. */
static size_t list_options_and_pairs(struct suggestion_trials_input *trials,
                                     const struct choices *choices)
{
    struct suggestion_pair *pair = trials->pair;
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(option_table); i++)
        if (!is_option_set_or_exceeded(choices, &option_table[i]) &&
            option_table[i].field != FIELD_ATTENTION)
            pair[count++] = (struct suggestion_pair){.first = &option_table[i]};
    trials->single_option_count = count;
    for (size_t i = 0; i < trials->single_option_count; i++)
        for (size_t k = i + 1; k < trials->single_option_count && count < SUGGESTIONS_MAX; k++)
            if (pair[i].first->field != pair[k].first->field)
                pair[count++] = (struct suggestion_pair){pair[i].first, pair[k].first};
    return count;
}

/* True if trial number i fits and, if it is of two options, takes less than the share WORTHWHILE_STEP_RATIO_MAX of the
 * step with each of them that fits by itself. */
static bool is_suggestion(const struct suggestion_trials_input *trials,
                          const struct suggestion_trial_result *trial, size_t i)
{
    const struct suggestion_pair *pair = &trials->pair[i];
    if (pair->second == NULL || !trial[i].fits)
        return trial[i].fits;
    for (size_t k = 0; k < trials->single_option_count; k++) {
        const struct alternative_option *single = trials->pair[k].first;
        if ((pair->first == single || pair->second == single) && trial[k].fits &&
            trial[k].step_s * WORTHWHILE_STEP_RATIO_MAX <= trial[i].step_s)
            return false;
    }
    return true;
}

enum status alternatives_rank_suggestions(struct suggestion *suggestion, size_t *count,
                                          size_t *tried, const struct prediction *base,
                                          uint64_t most_bytes, struct diag *diag)
{
    struct suggestion_trials_input trials = {.setup = base->setup,
                                             .request = base->question.request,
                                             .allocator_limit_bytes = most_bytes};
    struct suggestion_trial_result trial[SUGGESTIONS_MAX];
    size_t jobs = list_options_and_pairs(&trials, &base->choices);
    enum status status =
        workers_run(jobs, sizeof trial[0], try_suggestion, &trials, trial, NULL, diag);
    *tried = jobs;
    *count = 0;
    for (size_t i = 0; i < jobs && status == STATUS_OK; i++) {
        const struct suggestion_pair *pair = &trials.pair[i];
        if (!is_suggestion(&trials, trial, i))
            continue;
        struct suggestion *r = &suggestion[(*count)++];
        *r = (struct suggestion){.allocator_bytes = trial[i].allocator_bytes,
                                 .fits_probability = trial[i].fits_probability,
                                 .step_s = trial[i].step_s};
        snprintf(r->options, sizeof r->options, "%s%s%s", pair->first->text,
                 pair->second != NULL ? " " : "", pair->second != NULL ? pair->second->text : "");
    }
    if (*count > 0)
        qsort(suggestion, *count, sizeof *suggestion, compare_suggestions);
    return status;
}
