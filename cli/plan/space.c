#include "cli/plan/space.h"

#include "cli/predict/bounds.h"
#include "cli/setup/request_options.h"
#include "cli/setup/subsequences.h"
#include "schedule/pipeline/sppo.h"

#include <stdlib.h>
#include <string.h>

enum { DIVISORS_MAX = 64, STAGES_MAX = 16 };

void space_release(struct space *space)
{
    free(space->row);
    *space = (struct space){0};
}

/* ---- the walk ---- */

struct walk {
    struct space *space;
    const struct setup *setup;
    struct space_open open;
    uint8_t strategy;
    const struct strategy *row;
};

static void keep(struct walk *w, const struct request *request, const struct choices *c)
{
    struct space *space = w->space;
    double host = bound_optimizer_bytes(c), fixed = bound_state_bytes(w->setup, c) + host;
    if (space->count == space->capacity) {
        space->capacity = heap_next_capacity(space->capacity, space->count + 1);
        space->row = heap_realloc(space->row, space->capacity, sizeof *space->row);
    }
    space->row[space->count++] = (struct candidate){
        .request = *request,
        .strategy = w->strategy,
        .tokens = (double)c->global_batch * (double)c->seq,
        .bound_s = bound_step_s(w->setup, c),
        .least_bytes = fixed + bound_kept_bytes(c),
        .fixed_bytes = fixed,
        .host_bytes = host,
    };
}

static bool is_expressed(const struct space_open *open, const struct choices *c)
{
    return open->only == NULL || expressible(*open->only, c);
}

bool space_allows(const struct space_open *open, const struct request *request)
{
    struct choices c;
    return compose_resolve(&c, request, NULL, NULL) == STATUS_OK && is_expressed(open, &c);
}

static void add(struct walk *w, const struct request *request)
{
    struct choices c;
    struct filled_request filled;
    if (compose_resolve(&c, request, NULL, NULL) != STATUS_OK)
        return;
    uint32_t sharing = c.ranks / c.tp / c.pp;
    bool is_zero3 = c.weights == CHOICE_WEIGHTS_HSDP && c.shard >= sharing;
    bool is_alone = sharing == 1 && c.weights != CHOICE_WEIGHTS_REPLICATED;
    if ((is_zero3 || is_alone) && w->setup->request.weights < 0)
        return;
    /* of one unit nothing leaves */
    if (c.activations == CHOICE_ACTIVATIONS_RATIO && c.subsequences * c.accumulation == 1 &&
        w->setup->request.activations < 0 && !w->row->subsequences)
        return;
    if (!is_expressed(&w->open, &c))
        return;
    if (subsequences_fill(&filled, w->setup, request, NULL) == STATUS_OK &&
        compose_resolve(&c, &filled.request, NULL, NULL) == STATUS_OK)
        keep(w, request, &c);
    filled_request_release(&filled);
}

/* The values of a field: the given one, or all from low to high (both included). */
struct values {
    int from, to;
};

static struct values open_values(int given, int count)
{
    return given >= 0 ? (struct values){given, given} : (struct values){0, count - 1};
}

/* A strategy of subsequences keeps its own policies: Megatron's sharded optimizer where there is
 * something to share, and ratios in place of recomputation. */
static void walk_pieces(struct walk *w, struct request request)
{
    /* of a sequence whose length is looked for; of a step, beside other strategies and alone: a bubble
       of (P - 1) / 256 is none to shrink, and schedules grow with them. The longest subsequences are always there: with
       many micro-batches all make more units, and they may be all that fits. */
    enum { PIECES = 64, UNITS_BESIDE = 64, UNITS_ALONE = 256 };
    int64_t most = w->open.strategy ? UNITS_BESIDE : UNITS_ALONE;
    int64_t batches = request.global_batch / (request.dp > 0 ? request.dp : 1) /
                      (request.micro_batch > 0 ? request.micro_batch : 1);
    bool shares = request.ranks > request.tp * request.pp;
    if (request.weights < 0)
        request.weights = shares ? CHOICE_WEIGHTS_ZERO1 : CHOICE_WEIGHTS_REPLICATED;
    if (request.subsequences > 0 || w->open.length) {
        request.subsequences = request.subsequences > 0 ? request.subsequences : PIECES;
        add(w, &request);
        return;
    }
    bool any = false;
    for (int64_t tokens = SPPO_TOKENS_MAX; tokens >= SPPO_TOKENS_MIN; tokens /= 2) {
        request.subsequences = request.seq / tokens;
        int64_t units = request.subsequences * (batches > 0 ? batches : 1);
        if (request.subsequences < 2 || request.subsequences < request.pp || (any && units > most))
            continue;
        add(w, &request);
        any = true;
    }
}

static void walk_policies(struct walk *w, struct request request)
{
    if (w->row->subsequences) {
        walk_pieces(w, request);
        return;
    }
    struct values weights = open_values(w->setup->request.weights, CHOICE_WEIGHTS_COUNT);
    struct values activations =
        open_values(w->setup->request.activations, CHOICE_ACTIVATIONS_COUNT);
    for (request.weights = weights.from; request.weights <= weights.to; request.weights++)
        for (request.activations = activations.from; request.activations <= activations.to;
             request.activations++)
            add(w, &request);
}

/* Chunks of a sequence: those that make 2 to 32 of it; where none does, the strategy's own, if it was asked
 * for by name. */
static void walk_chunks(struct walk *w, struct request request)
{
    enum { CHUNKS_MAX = 32 };
    if (w->row->attention != CHOICE_ATTENTION_FPDT || w->setup->request.chunk > 0) {
        walk_policies(w, request);
        return;
    }
    if (w->open.length) {
        request.chunk = 524288; /* of which 16M tokens are 32 */
        walk_policies(w, request);
        return;
    }
    bool any = false;
    for (request.chunk = 32768; request.chunk <= 524288; request.chunk *= 2)
        if (2 * request.chunk <= request.seq && CHUNKS_MAX * request.chunk >= request.seq) {
            walk_policies(w, request);
            any = true;
        }
    request.chunk = w->setup->request.chunk;
    if (!any && !w->open.strategy)
        walk_policies(w, request);
}

static void walk_rings(struct walk *w, struct request request)
{
    int64_t windows = request.cp < request.gpus_per_node ? request.cp : request.gpus_per_node;
    bool places = w->open.placement && request.cp > 1 && request.hp > 1;
    for (int placement = 0; placement < (places ? PLACEMENT_COUNT : 1); placement++) {
        if (places)
            request.placement = placement;
        if (w->setup->request.window > 0 || request.cp == 1) {
            walk_chunks(w, request);
            continue;
        }
        for (request.window = 1; request.window <= windows && request.window < request.cp;
             request.window *= 2)
            if (request.cp % request.window == 0)
                walk_policies(w, request);
    }
}

/* Both places of stages, where one node does not hold all and memory alone is not the question. */
static void walk_places(struct walk *w, struct request request)
{
    bool places = w->open.stage_placement && !w->open.length && request.pp > 1 && request.dp > 1 &&
                  request.ranks > request.gpus_per_node;
    for (int i = 0; i < (places ? STAGE_PLACEMENT_COUNT : 1); i++) {
        if (places)
            request.stage_placement = i;
        walk_rings(w, request);
    }
}

static bool is_open(int64_t given, int64_t value)
{
    return given <= 0 || given == value;
}

/* Whether a strategy makes of these degrees what a simpler one is there for. */
static bool is_corner(const struct walk *w, int64_t tp, int64_t cp, int64_t hp)
{
    if (!w->open.strategy)
        return false;
    struct attention_axes axes = attention_axes[w->row->attention];
    if (w->row->attention == CHOICE_ATTENTION_LOCAL)
        return w->row->tensor && tp == 1;
    return axes.corner && ((axes.cp && cp == 1) || (axes.hp && hp == 1));
}

static void walk_degrees(struct walk *w, struct request request)
{
    const struct request *given = &w->setup->request;
    struct attention_axes axes = attention_axes[w->row->attention];
    int64_t stages = given->pp > STAGES_MAX ? given->pp : STAGES_MAX;
    for (int64_t tp = 1; tp <= (w->row->tensor || given->tp > 1 ? request.ranks : 1); tp++)
        for (int64_t pp = 1; pp <= (w->row->tensor || given->pp > 1 ? stages : 1); pp++)
            for (int64_t cp = 1; cp <= (axes.cp ? request.ranks : 1); cp++) {
                if (request.ranks % (tp * pp * cp) != 0)
                    continue;
                int64_t rest = request.ranks / (tp * pp * cp);
                for (int64_t hp = 1; hp <= (axes.hp ? rest : 1); hp++) {
                    if (rest % hp != 0 || !is_open(given->tp, tp) || !is_open(given->pp, pp) ||
                        !is_open(given->cp, cp) || !is_open(given->hp, hp) ||
                        !is_open(given->dp, rest / hp) || is_corner(w, tp, cp, hp))
                        continue;
                    request.tp = tp;
                    request.pp = pp;
                    request.cp = cp;
                    request.hp = hp;
                    request.dp = rest / hp;
                    walk_places(w, request);
                }
            }
}

enum status space_add(struct space *space, const struct setup *setup, int64_t gpus,
                      struct space_open open, struct diag *diag)
{
    size_t strategies, before = space->count;
    const struct strategy *table = compose_strategies(&strategies);
    struct walk w = {space, setup, open, 0, NULL};
    for (size_t s = 0; s < strategies; s++) {
        struct request request = setup->request;
        if (!open.strategy && strcmp(table[s].name, request.strategy) != 0)
            continue;
        if (open.strategy && table[s].subsequences && request.subsequences == 1)
            continue; /* then it is the strategy whose sequences it cuts */
        request.strategy = table[s].name;
        if (open.only != NULL && request_is_published(&request))
            request.profile = expressible_profile(*open.only, &table[s]);
        if (open.strategy)
            subsequences_open(&request, setup);
        request.ranks = gpus;
        if (request.gpus_per_node > gpus)
            request.gpus_per_node = gpus;
        w.strategy = (uint8_t)s;
        w.row = &table[s];
        walk_degrees(&w, request);
    }
    enum status status = STATUS_OK;
    if (space->count == before && open.only != NULL) {
        struct space all = {0};
        open.only = NULL;
        status = space_add(&all, setup, gpus, open, diag);
        space_release(&all);
        return status == STATUS_OK ? STATUS_NO : status;
    }
    if (space->count == before) { /* as if it had been asked for alone */
        struct request request = setup->request;
        struct choices choices;
        request.ranks = gpus;
        status = compose_resolve(&choices, &request, NULL, diag);
        if (status == STATUS_OK)
            status = diag_error(diag, (struct loc){.name = "--gpus"}, STATUS_BAD_INPUT,
                                "no product of the given degrees makes %lld GPU%s", (long long)gpus,
                                gpus == 1 ? "" : "s");
    }
    return status;
}
