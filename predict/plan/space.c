#include "predict/plan/space.h"

#include "predict/bounds.h"
#include "predict/setup/choice_rows.h"
#include "predict/setup/resolved.h"
#include "predict/setup/subsequences.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/config/sppo.h"
#include "schedule/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum { DIVISORS_MAX = 64, STAGES_MAX = 16 };

void space_release(struct space *space)
{
    free(space->row);
    *space = (struct space){0};
}

/* ---- configurations that are the same schedule ---- */

/* The choices that determine a schedule and its times. Members without an effect are 0, so that two configurations
 * with the same schedule have the same bytes. */
struct schedule_identity {
    int64_t choice[CHOICE_NAME_COUNT];
    double offload_ratio;
    uint32_t ring_ranks_per_node;
    int attention_choice, is_adaptive, may_jitter;
};

/* True if the prediction adds jitter to the step: it does on a device whose costs have jitter, if the step has more
 * ranks than any measured step with which the strategy was compared, since the slowest of more ranks is later
 * (predict/prediction_time.c). */
static bool may_jitter(const struct setup *setup, const struct choices *c,
                       const struct strategy *row)
{
    return setup->cost.device_jitter > 0 && !setup->cost.is_ideal && c->ranks > 1 &&
           (int64_t)c->ranks > row->max_compared_ranks;
}

static void schedule_identity_make(struct schedule_identity *id, const struct setup *setup,
                                   const struct choices *c, const struct request *request,
                                   const struct strategy *row)
{
    struct choices simplest = *c;
    const uint32_t sharing = c->ranks / c->tp / c->pp;
    /* in a step of one unit nothing is offloaded by ratio */
    const bool is_offloaded_by_ratio =
        c->activations == CHOICE_ACTIVATIONS_RATIO && pipeline_unit_count(c) > 1;
    if (c->activations == CHOICE_ACTIVATIONS_RATIO && !is_offloaded_by_ratio)
        simplest.activations = CHOICE_ACTIVATIONS_KEEP;
    /* a single rank shares no weights, and HSDP with one copy of the weights is ZeRO-3 */
    if (sharing == 1)
        simplest.weights = CHOICE_WEIGHTS_REPLICATED;
    else if (c->weights == CHOICE_WEIGHTS_HSDP && c->shard >= sharing)
        simplest.weights = CHOICE_WEIGHTS_ZERO3;
    if (simplest.weights != CHOICE_WEIGHTS_HSDP)
        simplest.shard = 0;
    memset(id, 0, sizeof *id);
    choices_fill_identity(id->choice, &simplest);
    id->attention_choice = c->attention;
    id->ring_ranks_per_node = c->ring_ranks_per_node;
    id->may_jitter = may_jitter(setup, c, row);
    id->is_adaptive = is_offloaded_by_ratio && request->must_compute_offload_hidden_bytes;
    id->offload_ratio = is_offloaded_by_ratio ? c->offload_ratio : 0;
}

/* ---- the walk ----
 *
 * The space is walked by nested functions. Each tries the values of one choice, and calls the next one for each value:
 * strategies, degrees, expert ranks, the exchange of latent attention, placements of stages, rings with core plans and
 * layouts, windows and placements of rings, chunks, and policies (weights and activations, or subsequences). The last
 * one calls add_candidate_of_request(), which adds a candidate if the request is legal and new. A choice that the user
 * made has only that value. */

struct space_walk {
    struct space *space;
    const struct setup *setup;
    struct space_open open;
    uint8_t strategy;
    const struct strategy *strategy_row;
    /* also search combinations that a search over strategies leaves out: tensor ranks and stages that the user gives,
     * with any strategy; strategies of subsequences for whole sequences, and the others for several subsequences */
    bool searches_unusual_combinations;
    /* search only configurations that has_schedule_of_simpler_strategy() is true for; false: search only the others */
    bool walks_simpler_schedules_only;
    struct schedule_identity *added_identities; /* the identities of the rows that were added */
    size_t added_count, capacity;
};

/* True if a configuration with the same schedule was added before, by another strategy or other choices. If not, notes
 * that this configuration is added. */
static bool is_schedule_known_else_note(struct space_walk *w, const struct choices *c,
                                        const struct request *request)
{
    struct schedule_identity id;
    schedule_identity_make(&id, w->setup, c, request, w->strategy_row);
    for (size_t i = 0; i < w->added_count; i++)
        if (memcmp(&w->added_identities[i], &id, sizeof id) == 0)
            return true;
    if (w->added_count == w->capacity) {
        w->capacity = heap_next_capacity(w->capacity, w->added_count + 1);
        w->added_identities =
            heap_realloc(w->added_identities, w->capacity, sizeof *w->added_identities);
    }
    w->added_identities[w->added_count++] = id;
    return false;
}

static void add_candidate(struct space_walk *w, const struct request *request,
                          const struct choices *c, const struct packed_set *packed_set)
{
    int64_t padding =
        packed_set != NULL ? packed_set->batch[packed_set->typical_batch].padding_tokens : 0;
    struct space *space = w->space;
    double host = bound_optimizer_bytes(c), fixed = bound_state_bytes(w->setup, c) + host;
    if (space->candidate_count == space->capacity) {
        space->capacity = heap_next_capacity(space->capacity, space->candidate_count + 1);
        space->row = heap_realloc(space->row, space->capacity, sizeof *space->row);
    }
    space->row[space->candidate_count++] = (struct candidate){
        .request = *request,
        .packed_set = packed_set,
        .strategy = w->strategy,
        .step_tokens = (double)c->global_batch * (double)c->seq - (double)padding,
        .step_lower_bound_s = bound_step_s(w->setup, c),
        .gpu_lower_bound_bytes = fixed + bound_saved_device_bytes(c),
        .length_independent_bytes = fixed,
        .bytes_saved_by_host_optimizer = host,
    };
}

static bool is_expressible_or_unrestricted(const struct space_open *open, const struct choices *c)
{
    return open->only_framework == NULL || expressible_by_framework(*open->only_framework, c);
}

bool space_allows_request(const struct space_open *open, const struct request *request)
{
    struct choices c;
    return resolve_choices(&c, request, NULL, NULL) == STATUS_OK &&
           is_expressible_or_unrestricted(open, &c);
}

/* True if the configuration has the schedule of a simpler strategy, because one of its degrees is 1: Ulysses with one
 * head rank, for example, is local attention. */
static bool has_schedule_of_simpler_strategy(const struct strategy *row, const struct choices *c)
{
    bool whole = c->tp == 1 && c->pp == 1 && c->subsequences == 1;
    return c->attention != row->attention || (row->fills_tp && whole);
}

/* True if the configuration has the attention of a simpler strategy, which the framework runs with another profile than
 * the one of this strategy. Then it is left to that strategy. */
static bool is_run_by_other_profile(const struct space_walk *w, const struct choices *c)
{
    struct strategy left = *w->strategy_row;
    left.attention = c->attention;
    return w->open.only_framework != NULL && w->open.uses_own_profile &&
           strcmp(expressible_default_profile(*w->open.only_framework, &left), c->profile->name) !=
               0;
}

/* Gives the request the documents of the typical batch of its packed set, and sets *packed_set to the packed set; NULL:
 * documents are not packed in this search. Returns false if the documents cannot be packed into the request's steps. */
static bool set_documents_of_typical_batch(const struct space_walk *w, struct request *request,
                                           struct choices *c, const struct packed_set **packed_set)
{
    *packed_set = NULL;
    if (w->open.packed_sets == NULL)
        return true;
    if (packed_sets_find_or_pack(packed_set, w->open.packed_sets, request, c, NULL) != STATUS_OK)
        return false;
    request->documents = &(*packed_set)->documents;
    return resolve_choices(c, request, NULL, NULL) == STATUS_OK;
}

/* Adds a candidate for a request, unless its choices do not resolve, the framework cannot express them or runs them by
 * a simpler strategy's profile (is_run_by_other_profile()), its documents cannot be packed, its schedule was added
 * before, or it belongs to the other pass (walks_simpler_schedules_only). */
static void add_candidate_of_request(struct space_walk *w, const struct request *asked)
{
    struct choices c;
    struct request request = *asked;
    const struct packed_set *packed_set;
    if (resolve_choices(&c, &request, NULL, NULL) != STATUS_OK)
        return;
    if (has_schedule_of_simpler_strategy(w->strategy_row, &c) != w->walks_simpler_schedules_only ||
        !is_expressible_or_unrestricted(&w->open, &c) || is_run_by_other_profile(w, &c) ||
        !set_documents_of_typical_batch(w, &request, &c, &packed_set) ||
        is_schedule_known_else_note(w, &c, &request))
        return;
    if (!resolved_needs_costs(&request)) {
        add_candidate(w, &request, &c, packed_set);
        return;
    }
    struct resolved resolved;
    if (resolved_make(&resolved, w->setup, &request, NULL, NULL) == STATUS_OK)
        add_candidate(w, &request, &resolved.choices, packed_set);
    resolved_release(&resolved);
}

/* The values of a choice that are tried, from `first` to `to`, both included. */
struct value_range {
    int first, to;
};

static struct value_range value_range_to_try(int given, int count)
{
    return given >= 0 ? (struct value_range){given, given} : (struct value_range){0, count - 1};
}

/* True if the user's options allow the way in which a strategy of subsequences shares weights (`weights`) and keeps
 * activations (offloaded by ratio). With other ways the strategy is searched only if the user named it. */
static bool allows_policies_of_subsequences(const struct request *given, int weights)
{
    return (given->weights < 0 || given->weights == weights) &&
           (given->activations < 0 || given->activations == CHOICE_ACTIVATIONS_RATIO);
}

/* Tries numbers of subsequences, with the policies of a strategy of subsequences. */
static void walk_subsequences(struct space_walk *w, struct request request)
{
    /* PIECES: the number of subsequences if the length of the sequence is searched for and the user does not give the
     * number. UNITS_*: the most units of a step are UNITS_OF_STAGE for each stage, with which the bubble is 3 %, but at
     * least UNITS_LEAST and at most UNITS_MOST: more only make schedules longer. The longest subsequences are tried
     * even if they make more units, as they may with many micro-batches. */
    enum { PIECES = 64, UNITS_LEAST = 64, UNITS_OF_STAGE = 32, UNITS_MOST = 256 };
    int64_t most = UNITS_OF_STAGE * request.pp;
    most = most < UNITS_LEAST ? UNITS_LEAST : most > UNITS_MOST ? UNITS_MOST : most;
    int64_t batches = request.global_batch / (request.dp > 0 ? request.dp : 1) /
                      (request.micro_batch > 0 ? request.micro_batch : 1);
    bool shares = request.ranks > request.tp * request.pp;
    int own = shares ? CHOICE_WEIGHTS_ZERO1 : CHOICE_WEIGHTS_REPLICATED;
    if (w->open.strategy && !allows_policies_of_subsequences(&w->setup->request, own))
        return;
    if (request.weights < 0)
        request.weights = own;
    if (request.subsequences > 0 || w->open.length) {
        request.subsequences = request.subsequences > 0 ? request.subsequences : PIECES;
        add_candidate_of_request(w, &request);
        return;
    }
    bool any = false;
    for (int64_t tokens = SPPO_TOKENS_MAX; tokens >= SPPO_TOKENS_MIN; tokens /= 2) {
        request.subsequences = request.seq / tokens;
        int64_t units = request.subsequences * (batches > 0 ? batches : 1);
        if (request.subsequences < 2 || request.subsequences < request.pp || (any && units > most))
            continue;
        add_candidate_of_request(w, &request);
        any = true;
    }
}

/* True for choices of activations that are searched only if the user asks for them: those that recompute part of a
 * layer, or part of the layers. */
static bool is_tried_only_if_asked(int activations)
{
    return activations == CHOICE_ACTIVATIONS_SELECTIVE_OP ||
           activations == CHOICE_ACTIVATIONS_SELECTIVE_LAYER ||
           activations == CHOICE_ACTIVATIONS_SELECTIVE_CORE;
}

/* Tries the ways to share weights and to keep activations; for a strategy of subsequences, numbers of subsequences. */
static void walk_weights_and_activations(struct space_walk *w, struct request request)
{
    if (w->strategy_row->fills_subsequences) {
        walk_subsequences(w, request);
        return;
    }
    struct value_range weights =
        value_range_to_try(w->setup->request.weights, CHOICE_WEIGHTS_COUNT);
    struct value_range activations =
        value_range_to_try(w->setup->request.activations, CHOICE_ACTIVATIONS_COUNT);
    for (request.weights = weights.first; request.weights <= weights.to; request.weights++)
        for (request.activations = activations.first; request.activations <= activations.to;
             request.activations++)
            if (!is_tried_only_if_asked(request.activations) || activations.first == activations.to)
                add_candidate_of_request(w, &request);
}

/* Tries chunk lengths for FPDT: the user's, if it is given; 512K tokens, if the length of the sequence is searched for;
 * else the powers of two from 32K to 512K that cut the sequence into 2 to 32 chunks, and the strategy's default. Other
 * strategies have no chunks. */
static void walk_chunks(struct space_walk *w, struct request request)
{
    enum { CHUNKS_MAX = 32 };
    if (w->strategy_row->attention != CHOICE_ATTENTION_FPDT || w->setup->request.chunk_tokens > 0) {
        walk_weights_and_activations(w, request);
        return;
    }
    if (w->open.length) {
        request.chunk_tokens = 524288; /* 16M tokens are 32 such chunks, the most that are tried */
        walk_weights_and_activations(w, request);
        return;
    }
    for (request.chunk_tokens = 32768; request.chunk_tokens <= 524288; request.chunk_tokens *= 2)
        if (2 * request.chunk_tokens <= request.seq &&
            CHUNKS_MAX * request.chunk_tokens >= request.seq)
            walk_weights_and_activations(w, request);
    request.chunk_tokens = w->setup->request.chunk_tokens;
    walk_weights_and_activations(w, request);
}

/* Tries the placements of context and head ranks, if they are open, and the windows of a double ring, unless the user
 * gives one: powers of two below cp that divide it, at most the GPUs of a node. */
static void walk_placements_and_ring_windows(struct space_walk *w, struct request request)
{
    int64_t windows = request.cp < request.gpus_per_node ? request.cp : request.gpus_per_node;
    bool places = w->open.placement && request.cp > 1;
    for (int placement = 0; placement < (places ? PLACEMENT_COUNT : 1); placement++) {
        if (places)
            request.placement = placement;
        if (w->setup->request.ring_window > 0 || request.cp == 1) {
            walk_chunks(w, request);
            continue;
        }
        for (request.ring_window = 1;
             request.ring_window <= windows && request.ring_window < request.cp;
             request.ring_window *= 2)
            if (request.cp % request.ring_window == 0)
                walk_weights_and_activations(w, request);
    }
}

/* Tries the rules of core plans (docs/core-plans.md): those that assign tokens to ranks (`rules`), with the given
 * rotation and, if --rotate is open, also with only the needed keys sent. If --rotate is open, also tries the rules
 * that assign tiles of attention to ranks (`tiles`), and needed keys without a core plan. */
static void walk_core_plans(struct space_walk *w, struct request request)
{
    /* chunks of 1024 and 4096 are not tried, as their results are between those of their neighbours
     * (docs/core-plans.md) */
    static const char *const rules[] = {"per-document", "degree", "chunks:512", "chunks:2048",
                                        "chunks:8192"},
                             *const tiles[] = {"zigzag-ring", "gather",     "token-ring",
                                               "move",        "blocks:512", "blocks:2048"};
    const int given = request.rotation;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int needed = 0; needed < (given == ROTATE_PROFILE ? 2 : 1); needed++) {
            request.core_plan = rules[i];
            request.rotation = needed ? ROTATE_NEEDED_ROWS : given;
            walk_placements_and_ring_windows(w, request);
        }
    if (given != ROTATE_PROFILE)
        return;
    request.rotation = given; /* with tiles, the plan itself says which keys are sent */
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        request.core_plan = tiles[i];
        walk_placements_and_ring_windows(w, request);
    }
    request.core_plan = NULL;
    request.rotation = ROTATE_NEEDED_ROWS;
    walk_placements_and_ring_windows(w, request);
}

/* Tries a ring as the request has it. Also tries core plans, if these are open, and with packed documents the layout
 * that cuts each document, and not the whole sequence, into zigzag slices, if that is open. */
static void walk_ring_layouts(struct space_walk *w, struct request request)
{
    bool layouts = w->open.ring_layout && request.core_plan == NULL &&
                   w->open.packed_sets != NULL && request.cp > 1;
    walk_placements_and_ring_windows(w, request);
    if (w->open.are_core_plans_open && request.cp > 1)
        walk_core_plans(w, request);
    request.ring_layout = RING_ZIGZAG_DOCUMENTS;
    if (layouts)
        walk_placements_and_ring_windows(w, request);
}

/* Tries both placements of stages if they are open and make a difference. They make none on one node, nor for memory,
 * which is all that counts in the search for the longest sequence. */
static void walk_stage_placements(struct space_walk *w, struct request request)
{
    bool places = w->open.stage_placement && !w->open.length && request.pp > 1 && request.dp > 1 &&
                  request.ranks > request.gpus_per_node;
    for (int i = 0; i < (places ? STAGE_PLACEMENT_COUNT : 1); i++) {
        if (places)
            request.stage_placement = i;
        walk_ring_layouts(w, request);
    }
}

/* True if a value may be tried: the user gave no degree (0 or less), or gave this value. */
static bool may_try_value_of_degree(int64_t given, int64_t value)
{
    return given <= 0 || given == value;
}

/* Tries both exchanges of latent attention, if they are open. If ranks exchange nothing, the two are one configuration,
 * which is added once. */
static void walk_latents(struct space_walk *w, struct request request)
{
    const bool both = w->open.mla_exchange && request.model->kv_latent > 0;
    for (int i = 0; i < (both ? MLA_EXCHANGE_COUNT : 1); i++) {
        if (both)
            request.mla_exchange = i;
        walk_stage_placements(w, request);
    }
}

/* Tries the degrees of expert parallelism that divide the experts and are multiples of the tensor degree.
 * resolve_choices() later refuses those that do not go with the other degrees. */
static void walk_experts(struct space_walk *w, struct request request)
{
    const int64_t given = w->setup->request.ep, experts = request.model->experts;
    if (experts == 0) {
        walk_latents(w, request);
        return;
    }
    for (int64_t ep = 1; ep <= experts && ep <= request.ranks / request.pp; ep++) {
        if (experts % ep != 0 || ep % request.tp != 0 || !may_try_value_of_degree(given, ep))
            continue;
        request.ep = ep;
        walk_latents(w, request);
    }
}

/* Tries all degrees that the strategy has, whose product is the number of ranks, and that agree with the user's. It
 * tries more than STAGES_MAX stages only if the user gives more. */
static void walk_degrees(struct space_walk *w, struct request request)
{
    const struct request *given = &w->setup->request;
    struct attention_axes axes = attention_axes[w->strategy_row->attention];
    int64_t stages = given->pp > STAGES_MAX ? given->pp : STAGES_MAX;
    bool has_tensor =
        w->strategy_row->fills_tp || (w->searches_unusual_combinations && given->tp > 1);
    bool has_stages =
        w->strategy_row->fills_tp || (w->searches_unusual_combinations && given->pp > 1);
    for (int64_t tp = 1; tp <= (has_tensor ? request.ranks : 1); tp++)
        for (int64_t pp = 1; pp <= (has_stages ? stages : 1); pp++)
            for (int64_t cp = 1; cp <= (axes.cp ? request.ranks : 1); cp++) {
                if (request.ranks % (tp * pp * cp) != 0)
                    continue;
                int64_t rest = request.ranks / (tp * pp * cp);
                for (int64_t hp = 1; hp <= (axes.hp ? rest : 1); hp++) {
                    if (rest % hp != 0 || !may_try_value_of_degree(given->tp, tp) ||
                        !may_try_value_of_degree(given->pp, pp) ||
                        !may_try_value_of_degree(given->cp, cp) ||
                        !may_try_value_of_degree(given->hp, hp) ||
                        !may_try_value_of_degree(given->dp, rest / hp))
                        continue;
                    request.tp = tp;
                    request.pp = pp;
                    request.cp = cp;
                    request.hp = hp;
                    request.dp = rest / hp;
                    walk_experts(w, request);
                }
            }
}

/* Tries the strategies, or the one that the user named. */
static void walk_strategies(struct space_walk *w, int64_t gpus)
{
    size_t strategies;
    const struct strategy *table = strategies_list(&strategies);
    const struct setup *setup = w->setup;
    for (size_t s = 0; s < strategies; s++) {
        struct request request = setup->request;
        if (!w->open.strategy && strcmp(table[s].name, request.strategy) != 0)
            continue;
        /* strategies of subsequences are for several subsequences, the others for whole sequences */
        if (!w->searches_unusual_combinations && request.subsequences > 0 &&
            table[s].fills_subsequences != (request.subsequences > 1))
            continue;
        request.strategy = table[s].name;
        if (w->open.only_framework != NULL && w->open.uses_own_profile)
            request.profile = expressible_default_profile(*w->open.only_framework, &table[s]);
        if (w->open.strategy)
            subsequences_set_open_choices(&request, setup);
        request.ranks = gpus;
        if (request.gpus_per_node > gpus)
            request.gpus_per_node = gpus;
        w->strategy = (uint8_t)s;
        w->strategy_row = &table[s];
        walk_degrees(w, request);
    }
}

/* Tries all configurations. One that two strategies have in common is added only for the simpler one, which is tried
 * first. */
static void walk_all_configurations(struct space_walk *w, int64_t gpus)
{
    w->walks_simpler_schedules_only = false;
    walk_strategies(w, gpus);
    w->walks_simpler_schedules_only = true;
    walk_strategies(w, gpus);
}

enum status space_add_candidates_of_gpus(struct space *space, const struct setup *setup,
                                         int64_t gpus, struct space_open open, struct diag *diag)
{
    size_t before = space->candidate_count;
    struct space_walk w = {.space = space,
                           .setup = setup,
                           .open = open,
                           .searches_unusual_combinations = !open.strategy};
    walk_all_configurations(&w, gpus);
    if (space->candidate_count == before &&
        open.strategy) { /* no strategy of the search has both of --tp 8 --cp 4 */
        w.searches_unusual_combinations = true;
        walk_all_configurations(&w, gpus);
    }
    free(w.added_identities);
    enum status status = STATUS_OK;
    if (space->candidate_count == before && open.only_framework != NULL) {
        struct space all = {0};
        open.only_framework = NULL;
        status = space_add_candidates_of_gpus(&all, setup, gpus, open, diag);
        space_release(&all);
        return status == STATUS_OK ? STATUS_NO : status;
    }
    if (space->candidate_count == before) { /* reports only the error of the given request */
        struct request request = setup->request;
        struct choices choices;
        request.ranks = gpus;
        const struct packed_set *packed_set;
        status = resolve_choices(&choices, &request, NULL, diag);
        if (status == STATUS_OK && open.packed_sets != NULL)
            status =
                packed_sets_find_or_pack(&packed_set, open.packed_sets, &request, &choices, diag);
        if (status == STATUS_OK)
            status = diag_error(diag, (struct loc){.name = "--gpus"}, STATUS_BAD_INPUT,
                                "no product of the given degrees makes %lld GPU%s", (long long)gpus,
                                gpus == 1 ? "" : "s");
    }
    return status;
}
