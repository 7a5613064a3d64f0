#include "cli/space.h"

#include <stdlib.h>
#include <string.h>

enum { DIVISORS_MAX = 64, STAGES_MAX = 16 };

void space_release(struct space *space)
{
    free(space->row);
    *space = (struct space){0};
}

/* ---- bounds ---- */

/* The rate of the largest products, and of attention's largest heads: no shape is faster. */
static double product_flop_per_s(const struct device_cost *cost, const struct choices *c)
{
    if (c->dtype == DTYPE_F32)
        return cost->matmul_f32_flop_per_s;
    return cost->matmul_flop_per_s *
           (cost->clock == COST_CLOCK_BURST ? cost->matmul_burst_factor : 1);
}

static double attention_flop_per_s(const struct device_cost *cost, const struct choices *c,
                                   enum attention_direction pass)
{
    const struct cost_attention *a = &cost->attention[c->attention_impl][pass];
    double most = 0;
    for (size_t i = 0; i < a->dims; i++)
        most = a->flop_per_s[i] > most ? a->flop_per_s[i] : most;
    return most > 0 ? most : cost->device_peak_flop_per_s;
}

/* What GPUs must compute in a step, each kind of work at its highest rate: a product forward and two
 * backward; attention forward and 2.5 times as much backward; attention again where layers are
 * recomputed (of the rest, an ideal framework may leave out some). */
static double compute_bound_s(const struct setup *setup, const struct choices *c)
{
    const struct transformer *t = c->model;
    const struct device_cost *cost = &setup->cost;
    double sequences = (double)c->global_batch, tokens = sequences * (double)c->seq;
    double layers = (double)t->layers;
    double products = 3 * (layers * tokens * (double)transformer_linear_flops_per_token(t) +
                           tokens * (double)transformer_head_flops_per_token(t));
    double attention = layers * sequences * transformer_attention_flops(t, c->seq, true);
    bool again =
        c->activations == CHOICE_ACTIVATIONS_FULL || c->activations == CHOICE_ACTIVATIONS_OFFLOAD;
    double forwards = again ? 2 : 1;
    if (cost->ideal)
        return (products + (forwards + 2.5) * attention) /
               (setup->cluster.device.peak_flop_per_s * (double)c->ranks);
    return (products / product_flop_per_s(cost, c) +
            forwards * attention / attention_flop_per_s(cost, c, ATTENTION_FORWARD_PASS) +
            2.5 * attention / attention_flop_per_s(cost, c, ATTENTION_BACKWARD_PASS)) /
           (double)c->ranks;
}

/* Ranks over which a state is cut, beside tensor and pipeline ranks. */
static double shards_of(const struct choices *c, enum weights_choice from)
{
    if (c->weights == CHOICE_WEIGHTS_HSDP)
        return c->shard;
    bool cut = c->weights != CHOICE_WEIGHTS_REPLICATED && c->weights >= from;
    return cut ? (double)c->ranks / c->tp / c->pp : 1;
}

/* Parameters, cut as the choice says, and the process' context; the optimizer has 12 bytes each. */
static double state_bytes(const struct setup *setup, const struct choices *c)
{
    double share = (double)transformer_parameters(c->model) / c->tp / c->pp;
    return share * (double)dtype_bytes((enum dtype)c->dtype) / shards_of(c, CHOICE_WEIGHTS_ZERO3) +
           setup->cluster.device.context_bytes;
}

static double optimizer_bytes(const struct choices *c)
{
    double share = (double)transformer_parameters(c->model) / c->tp / c->pp;
    if (c->optimizer == CHOICE_OPTIMIZER_HOST)
        return 0;
    return 12 * share / shards_of(c, CHOICE_WEIGHTS_ZERO1);
}

/* The inputs of all layers of a micro-batch lie on the device when its backward begins. */
static double input_bytes(const struct choices *c)
{
    if (c->activations == CHOICE_ACTIVATIONS_OFFLOAD)
        return 0;
    double rows = (double)c->micro_batch * (double)c->seq / c->cp / c->hp / c->tp;
    if (c->pp > 1) /* micro-batches may be cut, and stages drop inputs early */
        return 0;
    return (double)c->model->layers * rows * (double)c->model->hidden *
           (double)dtype_bytes((enum dtype)c->dtype);
}

/* ---- the walk ---- */

struct walk {
    struct space *space;
    const struct setup *setup;
    struct space_open open;
    uint8_t strategy;
    const struct strategy *row;
};

static void add(struct walk *w, const struct request *request)
{
    struct space *space = w->space;
    struct choices c;
    if (compose_resolve(&c, request, NULL, NULL) != STATUS_OK)
        return;
    uint32_t sharing = c.ranks / c.tp / c.pp;
    bool is_zero3 = c.weights == CHOICE_WEIGHTS_HSDP && c.shard >= sharing;
    bool is_alone = sharing == 1 && c.weights != CHOICE_WEIGHTS_REPLICATED;
    if ((is_zero3 || is_alone) && w->setup->request.weights < 0)
        return;
    if (space->count == space->capacity) {
        space->capacity = heap_next_capacity(space->capacity, space->count + 1);
        space->row = heap_realloc(space->row, space->capacity, sizeof *space->row);
    }
    double host = optimizer_bytes(&c), fixed = state_bytes(w->setup, &c) + host;
    space->row[space->count++] = (struct candidate){
        .request = *request,
        .strategy = w->strategy,
        .tokens = (double)c.global_batch * (double)c.seq,
        .bound_s = compute_bound_s(w->setup, &c),
        .least_bytes = fixed + input_bytes(&c),
        .fixed_bytes = fixed,
        .host_bytes = host,
    };
}

/* The values of a field: the given one, or all from low to high (both included). */
struct values {
    int from, to;
};

static struct values open_values(int given, int count)
{
    return given >= 0 ? (struct values){given, given} : (struct values){0, count - 1};
}

static void walk_policies(struct walk *w, struct request request)
{
    struct values weights = open_values(w->setup->request.weights, CHOICE_WEIGHTS_COUNT);
    struct values activations =
        open_values(w->setup->request.activations, CHOICE_ACTIVATIONS_COUNT);
    for (request.weights = weights.from; request.weights <= weights.to; request.weights++)
        for (request.activations = activations.from; request.activations <= activations.to;
             request.activations++)
            add(w, &request);
}

static bool has_ring(const struct strategy *strategy)
{
    return strategy->attention == CHOICE_ATTENTION_RING ||
           strategy->attention == CHOICE_ATTENTION_2D;
}

/* Chunks of a sequence: those that make 2 to 32 of it. */
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
    for (request.chunk = 32768; request.chunk <= 524288; request.chunk *= 2)
        if (2 * request.chunk <= request.seq && CHUNKS_MAX * request.chunk >= request.seq)
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

static bool is_open(int64_t given, int64_t value)
{
    return given <= 0 || given == value;
}

/* Whether a strategy makes of these degrees what a simpler one is there for. */
static bool is_corner(const struct walk *w, int64_t tp, int64_t cp, int64_t hp)
{
    if (!w->open.strategy)
        return false;
    switch ((enum attention_choice)w->row->attention) {
    case CHOICE_ATTENTION_LOCAL:
        return w->row->tensor && tp == 1;
    case CHOICE_ATTENTION_ULYSSES:
        return hp == 1;
    case CHOICE_ATTENTION_RING:
        return cp == 1;
    case CHOICE_ATTENTION_2D:
        return cp == 1 || hp == 1;
    default:
        return false;
    }
}

static void walk_degrees(struct walk *w, struct request request)
{
    const struct request *given = &w->setup->request;
    bool has_cp = has_ring(w->row);
    bool has_hp =
        w->row->attention != CHOICE_ATTENTION_LOCAL && w->row->attention != CHOICE_ATTENTION_RING;
    for (int64_t tp = 1; tp <= (w->row->tensor || given->tp > 1 ? request.ranks : 1); tp++)
        for (int64_t pp = 1; pp <= (w->row->tensor || given->pp > 1 ? STAGES_MAX : 1); pp++)
            for (int64_t cp = 1; cp <= (has_cp ? request.ranks : 1); cp++) {
                if (request.ranks % (tp * pp * cp) != 0)
                    continue;
                int64_t rest = request.ranks / (tp * pp * cp);
                for (int64_t hp = 1; hp <= (has_hp ? rest : 1); hp++) {
                    if (rest % hp != 0 || !is_open(given->tp, tp) || !is_open(given->pp, pp) ||
                        !is_open(given->cp, cp) || !is_open(given->hp, hp) ||
                        !is_open(given->dp, rest / hp) || is_corner(w, tp, cp, hp))
                        continue;
                    request.tp = tp;
                    request.pp = pp;
                    request.cp = cp;
                    request.hp = hp;
                    request.dp = rest / hp;
                    walk_rings(w, request);
                }
            }
}

/* The walk leaves to a strategy its attention, pipeline and profile. One that has them all from an
 * earlier row (sppo from megatron-sp) makes the same choices over again: what else it is called for,
 * uneven subsequences, are asked for by name. */
static bool is_twin(const struct strategy *table, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (table[i].attention == table[row].attention &&
            table[i].pipeline == table[row].pipeline && table[i].tensor == table[row].tensor &&
            strcmp(table[i].profile, table[row].profile) == 0)
            return true;
    return false;
}

enum status space_add(struct space *space, const struct setup *setup, int64_t gpus,
                      struct space_open open, struct diag *diag)
{
    size_t strategies, before = space->count;
    const struct strategy *table = compose_strategies(&strategies);
    struct walk w = {space, setup, open, 0, NULL};
    for (size_t s = 0; s < strategies; s++) {
        struct request request = setup->request;
        if (open.strategy ? is_twin(table, s) : strcmp(table[s].name, request.strategy) != 0)
            continue;
        request.strategy = table[s].name;
        request.ranks = gpus;
        if (request.gpus_per_node > gpus)
            request.gpus_per_node = gpus;
        w.strategy = (uint8_t)s;
        w.row = &table[s];
        walk_degrees(&w, request);
    }
    enum status status = STATUS_OK;
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
