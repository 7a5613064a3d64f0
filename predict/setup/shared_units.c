#include "predict/setup/shared_units.h"

#include "base/arena.h"
#include "models/work.h"
#include "predict/setup/unit_rates.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/emit/tensor_parallel.h"
#include "schedule/pipeline/multiplex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sharing counts as faster only if the step takes less than this share of the step without it; the replay is no more
 * accurate than that. */
#define SHARING_WORTHWHILE_RATIO_MAX 0.998

/* ---- the costs of a layer ---- */

struct unit_sharing_costs {
    struct unit_rates unit;
    /* collectives of tensor-parallel ranks in the forward */
    double tensor_collectives_s_per_token;
    /* the collectives of tensor ranks go through the NICs that stages use for their messages */
    bool tensor_collectives_use_nics;
    double send_keys_s_per_token; /* time to send the keys and values of a token to another stage */
    /* time to send the weights of a layer to another stage; 0: every stage has them */
    double send_weights_s_per_layer;
    double send_gradient_s_per_layer; /* time to send the gradients of the weights of a layer */
    double head_s_per_token;          /* time of a token in the head */
};

static double nics_bytes_per_s(const struct cluster *c)
{
    return (double)c->nic.count * c->nic.bytes_per_s * c->nic.efficiency;
}

static double fabric_bytes_per_s(const struct cluster *c)
{
    if (c->fabric.kind == FABRIC_PCIE)
        return c->pcie.d2h_bytes_per_s * c->fabric.ring_efficiency;
    if (c->fabric.kind == FABRIC_LOOPBACK)
        return c->loopback.bytes_per_s;
    return c->fabric.bytes_per_s * c->fabric.ring_efficiency;
}

static struct unit_sharing_costs sharing_costs_of(const struct setup *setup,
                                                  const struct choices *c)
{
    const struct cluster *cluster = &setup->cluster;
    const struct transformer *m = c->model;
    struct transformer share = tensor_share_of_model(m, c->tp, 1);
    struct unit_sharing_costs costs = {.unit = unit_rates_of(setup, c)};
    double element_bytes = (double)dtype_bytes((enum dtype)c->dtype), tp = c->tp;
    double on_node =
        (double)(c->ranks < cluster->gpus_per_node ? c->ranks : cluster->gpus_per_node);
    /* distance in the mesh from a stage's rank to that of the next stage, in units of tp ranks */
    int64_t apart = c->stage_placement == STAGES_OUTER ? c->dp : 1;
    bool one_node = c->tp * apart * c->pp <= cluster->gpus_per_node || cluster->nic.count == 0;
    double tensor_bytes_per_s = fabric_bytes_per_s(cluster);
    double stage_bytes_per_s = one_node ? tensor_bytes_per_s : nics_bytes_per_s(cluster) / on_node;
    costs.tensor_collectives_use_nics = c->tp > cluster->gpus_per_node && !one_node;
    if (costs.tensor_collectives_use_nics) /* their rings go over all NICs of a node */
        tensor_bytes_per_s = nics_bytes_per_s(cluster);
    double linear = (double)transformer_layer_linear_flops_per_token(m);
    costs.head_s_per_token =
        costs.unit.products_s_per_token * (double)transformer_head_flops_per_token(m) / linear;
    /* attention and feed-forward part have an all-gather and a reduce-scatter each */
    costs.tensor_collectives_s_per_token =
        4 * (tp - 1) / tp * (double)m->hidden * element_bytes / tensor_bytes_per_s;
    costs.send_keys_s_per_token =
        (double)(transformer_kv_columns(&share) + transformer_v_columns(&share)) * element_bytes /
        stage_bytes_per_s;
    double weights = (double)transformer_largest_layer_parameters(m) / tp;
    costs.send_gradient_s_per_layer =
        weights * (double)dtype_bytes((enum dtype)c->profile->grad_dtype) / stage_bytes_per_s;
    costs.send_weights_s_per_layer =
        c->helpers == MSP_WEIGHTS_REPLICATE ? 0 : weights * element_bytes / stage_bytes_per_s;
    return costs;
}

static double layer_count_of_chunk(const struct choices *c, uint32_t chunk)
{
    struct layer_range layers = pipeline_layers_of_chunk(c, chunk);
    return layers.end - layers.first;
}

static double tokens_of_subsequence(const struct choices *c, uint32_t subsequence)
{
    return (double)(pipeline_tokens_before_subsequence(c, subsequence + 1) -
                    pipeline_tokens_before_subsequence(c, subsequence));
}

/* Returns the seconds in which the weights of one layer are sent to a stage; 0 if every stage has all weights. If
 * stages hold parts of the weights (MSP_WEIGHTS_SHARD), a stage's own part is not sent. In two cases the owner sends
 * all parts all the same: in the forwards of subsequence 0, and of the first of the shared last subsequences. */
static double remote_weights_s(const struct choices *c, const struct unit_sharing_costs *costs,
                               const struct chunk_task *task, double stages, bool forward)
{
    uint32_t s = task->subsequence;
    bool first = forward && (s == 0 || s == multiplex_first_of_back_subsequences(c, task->chunk));
    bool parts = c->helpers == MSP_WEIGHTS_SHARD && !first;
    return costs->send_weights_s_per_layer * (parts ? (stages - 1) / stages : 1);
}

/* Returns the seconds of a task on the stage with the last piece, whose tokens attend to the most keys. They are those
 * of all layers of the chunk, and in the last chunk also of the head. The backward has twice the products and one and a
 * half times the collectives, since the input of a product is gathered again for the gradient of the weights. */
static double seconds_of_chunk_task(const struct choices *c, const struct unit_sharing_costs *costs,
                                    const struct chunk_task *task, uint32_t stages, bool forward)
{
    double k = stages, tokens = tokens_of_subsequence(c, task->subsequence), own = tokens / k;
    double to = (double)pipeline_tokens_before_subsequence(c, task->subsequence + 1),
           from = to - own;
    double pairs = (to * to - from * from) / 2;
    double tensor = own * costs->tensor_collectives_s_per_token * (forward ? 1 : 1.5);
    double gather = tokens * costs->send_keys_s_per_token * (k - 1) / k;
    double alone = own * costs->unit.products_s_per_token * (forward ? 1 : 2) + tensor +
                   pairs * (forward ? costs->unit.attention_s_per_pair
                                    : costs->unit.backward_attention_s_per_pair);
    double layer = alone, net = gather + (costs->tensor_collectives_use_nics ? tensor : 0);
    net += remote_weights_s(c, costs, task, k, forward);
    if (c->helpers == MSP_WEIGHTS_SHARD &&
        !forward) /* the gradients of each unit are summed at once */
        net += costs->send_gradient_s_per_layer * (k - 1) / k;
    if (stages > 1)
        layer = fmax(alone + gather, net);
    double head = task->chunk + 1 == c->pp ? own * costs->head_s_per_token * (forward ? 1 : 2) : 0;
    return layer_count_of_chunk(c, task->chunk) * layer + head;
}

/* ---- the replay: task after task ---- */

struct shared_units_replay {
    const struct choices *choices;
    const struct unit_sharing_costs *costs;
    /* [stages] compute_free_at_s: the time from which the stage can compute; network_free_at_s: the time at which its
     * messages end, which run beside computation */
    double *compute_free_at_s, *network_free_at_s;
    /* [chunks x subsequences] the time at which each unit of the present pass ends */
    double *unit_end_s;
    /* [chunks x subsequences] the time at which each unit's keys and values, or their gradients, have arrived */
    double *keys_arrival_s_of_each_unit;
};

static double latest_end_of_stages_s(const double *at, struct stages_sharing_subsequence of)
{
    double most = 0;
    for (uint32_t i = of.first_stage; i < of.first_stage + of.count; i++)
        most = fmax(most, at[i]);
    return most;
}

static void set_times_of_stage_span(double *at, struct stages_sharing_subsequence of, double value)
{
    for (uint32_t i = of.first_stage; i < of.first_stage + of.count; i++)
        at[i] = value;
}

/* Sends messages for `seconds` on all stages of the span, beside their computation. They start at `begin`, or later,
 * when all messages that these stages send already have ended. Returns the time at which they end. */
static double send_beside_compute(struct shared_units_replay *r,
                                  struct stages_sharing_subsequence span, double begin,
                                  double seconds)
{
    double end = fmax(begin, latest_end_of_stages_s(r->network_free_at_s, span)) + seconds;
    set_times_of_stage_span(r->network_free_at_s, span, end);
    return end;
}

static double *element_of_unit_table(const struct shared_units_replay *r, double *table,
                                     uint32_t chunk, uint32_t subsequence)
{
    return &table[chunk * r->choices->subsequences + subsequence];
}

/* Delays the computation of a stage by its messages, if the collectives of tensor-parallel ranks use the same NICs. */
static void delay_stage_by_nic_messages(struct shared_units_replay *r, uint32_t stage,
                                        double seconds)
{
    if (r->costs->tensor_collectives_use_nics)
        r->compute_free_at_s[stage] += seconds;
}

/* Passes the keys and values of a unit from its owner to the stages before it, one after the other. */
static void send_keys_to_earlier_stages(struct shared_units_replay *r,
                                        const struct chunk_task *task, double end)
{
    double seconds = layer_count_of_chunk(r->choices, task->chunk) *
                     tokens_of_subsequence(r->choices, task->subsequence) *
                     r->costs->send_keys_s_per_token;
    for (uint32_t stage = task->chunk; stage-- > 0;) {
        end = send_beside_compute(r, (struct stages_sharing_subsequence){stage, 1}, end, seconds);
        delay_stage_by_nic_messages(r, stage, seconds);
    }
    *element_of_unit_table(r, r->keys_arrival_s_of_each_unit, task->chunk, task->subsequence) = end;
}

/* Passes gradients of keys and values back. After the backward of subsequence s, stages 0 to `chunk` sum the gradients
 * of subsequence s - 2 along a chain of stages that ends at their owner, stage `chunk`. If s is the first of the shared
 * last subsequences (back_begin), they sum those of s - 1, too. */
static void pass_key_gradients_to_owner(struct shared_units_replay *r,
                                        const struct chunk_task *task, double end)
{
    enum { AHEAD = 2 };
    struct stages_sharing_subsequence all = {0, task->chunk + 1};
    uint32_t back_begin = multiplex_first_of_back_subsequences(r->choices, task->chunk),
             s = task->subsequence;
    for (uint32_t ahead = s == back_begin ? 1 : AHEAD; ahead <= AHEAD && ahead <= s; ahead++) {
        double seconds = layer_count_of_chunk(r->choices, task->chunk) *
                         tokens_of_subsequence(r->choices, s - ahead) *
                         r->costs->send_keys_s_per_token;
        *element_of_unit_table(r, r->keys_arrival_s_of_each_unit, task->chunk, s - ahead) =
            send_beside_compute(r, all, end, seconds);
        for (uint32_t stage = 0; stage < all.count; stage++)
            delay_stage_by_nic_messages(r, stage, seconds);
    }
}

/* Runs a forward task on the stages that share it. It begins when these stages can compute, the chunk before has done
 * the same subsequence, and the chunk has done the subsequence before. A shared last subsequence also waits for the
 * keys and values of those that are not shared. */
static void replay_forward_task(struct shared_units_replay *r, const struct chunk_task *task)
{
    const struct choices *c = r->choices;
    struct stages_sharing_subsequence share =
        multiplex_stages_sharing_subsequence(c, task->chunk, task->subsequence);
    uint32_t s = task->subsequence,
             back_begin = multiplex_first_of_back_subsequences(c, task->chunk);
    double begin = latest_end_of_stages_s(r->compute_free_at_s, share);
    if (task->chunk > 0)
        begin = fmax(begin, *element_of_unit_table(r, r->unit_end_s, task->chunk - 1, s));
    if (s > 0)
        begin = fmax(begin, *element_of_unit_table(r, r->unit_end_s, task->chunk, s - 1));
    if (back_begin < c->subsequences && s >= back_begin)
        begin = fmax(begin, *element_of_unit_table(r, r->keys_arrival_s_of_each_unit, task->chunk,
                                                   back_begin - 1));
    double end = begin + seconds_of_chunk_task(c, r->costs, task, share.count, true);
    set_times_of_stage_span(r->compute_free_at_s, share, end);
    *element_of_unit_table(r, r->unit_end_s, task->chunk, s) = end;
    if (back_begin < c->subsequences && s < back_begin)
        send_keys_to_earlier_stages(r, task, end);
}

/* Runs a backward task on the stages that share it. It begins when these stages can compute, the next chunk has done
 * the same subsequence, and the chunk has done the next subsequence. If last subsequences are shared, the others also
 * wait for the gradients of their keys and values. */
static void replay_backward_task(struct shared_units_replay *r, const struct chunk_task *task)
{
    const struct choices *c = r->choices;
    struct stages_sharing_subsequence share =
        multiplex_stages_sharing_subsequence(c, task->chunk, task->subsequence);
    uint32_t s = task->subsequence,
             back_begin = multiplex_first_of_back_subsequences(c, task->chunk);
    double begin = latest_end_of_stages_s(r->compute_free_at_s, share);
    if (task->chunk + 1 < c->pp)
        begin = fmax(begin, *element_of_unit_table(r, r->unit_end_s, task->chunk + 1, s));
    if (s + 1 < c->subsequences)
        begin = fmax(begin, *element_of_unit_table(r, r->unit_end_s, task->chunk, s + 1));
    if (back_begin < c->subsequences && s < back_begin)
        begin =
            fmax(begin, *element_of_unit_table(r, r->keys_arrival_s_of_each_unit, task->chunk, s));
    double end = begin + seconds_of_chunk_task(c, r->costs, task, share.count, false);
    set_times_of_stage_span(r->compute_free_at_s, share, end);
    *element_of_unit_table(r, r->unit_end_s, task->chunk, s) = end;
    if (back_begin < c->subsequences && s <= back_begin)
        pass_key_gradients_to_owner(r, task, end);
    /* in the backward, unit 0 is the last of the shared first units, and unit back_begin is the last of the shared last
     * units: after each of the two the gradients of the weights are summed */
    bool sums = share.count > 1 && (s == 0 || s == back_begin);
    double k = share.count,
           whole = layer_count_of_chunk(c, task->chunk) * r->costs->send_gradient_s_per_layer;
    if (sums && c->helpers == MSP_WEIGHTS_BROADCAST)
        send_beside_compute(r, share, end, whole);
    /* Each stage's part of the sum goes to the owner. In a step this happens once, but the replay counts it in each
     * micro-batch. */
    if (sums && c->helpers == MSP_WEIGHTS_SHARD)
        send_beside_compute(r, share, end, whole * (k - 1) / k);
}

/* Returns the seconds of a step: the forwards of all tasks in their order, then their backwards in reverse order, once
 * for each micro-batch. If units are shared with MSP_WEIGHTS_REPLICATE, the sum of the gradients of all weights over
 * the stages is added. */
static double simulated_step_s(const struct choices *c, const struct unit_sharing_costs *costs)
{
    uint32_t all = c->pp * c->subsequences;
    struct stages_sharing_subsequence stages = {0, c->pp};
    struct chunk_task *task = heap_alloc(all, sizeof *task);
    struct shared_units_replay r = {.choices = c,
                                    .costs = costs,
                                    .compute_free_at_s = heap_zalloc(c->pp, sizeof(double)),
                                    .network_free_at_s = heap_zalloc(c->pp, sizeof(double)),
                                    .unit_end_s = heap_zalloc(all, sizeof(double)),
                                    .keys_arrival_s_of_each_unit =
                                        heap_zalloc(all, sizeof(double))};
    multiplex_put_tasks_in_order(c, task);
    for (uint32_t i = 0; i < all; i++)
        replay_forward_task(&r, &task[i]);
    for (uint32_t i = all; i-- > 0;)
        replay_backward_task(&r, &task[i]);
    double step_s = c->accumulation * fmax(latest_end_of_stages_s(r.compute_free_at_s, stages),
                                           latest_end_of_stages_s(r.network_free_at_s, stages));
    if (c->helpers == MSP_WEIGHTS_REPLICATE && c->shared_units.first + c->shared_units.last > 0)
        step_s +=
            2.0 * (c->pp - 1) / c->pp * (double)c->model->layers * costs->send_gradient_s_per_layer;
    free(task);
    free(r.compute_free_at_s);
    free(r.network_free_at_s);
    free(r.unit_end_s);
    free(r.keys_arrival_s_of_each_unit);
    return step_s;
}

double shared_units_step_s(const struct setup *setup, const struct choices *choices,
                           struct shared_units shared)
{
    struct choices c = *choices;
    struct unit_sharing_costs costs = sharing_costs_of(setup, choices);
    c.shared_units = shared;
    return simulated_step_s(&c, &costs);
}

/* ---- the ranking ---- */

/* Returns whether stages can share these subsequences (multiplex_append_unmet_conditions()): for example, a shared
 * subsequence must have a token for each stage. */
static bool can_stages_share_subsequences(const struct choices *c)
{
    struct text needs = {0};
    multiplex_append_unmet_conditions(&needs, c, true);
    bool can = needs.size == 0;
    text_release(&needs);
    return can;
}

struct shared_units_worth_trying shared_units_rank_by_step_time(const struct setup *setup,
                                                                const struct choices *choices)
{
    struct choices c = *choices;
    struct unit_sharing_costs costs = sharing_costs_of(setup, choices);
    struct shared_units_worth_trying ranking = {0};
    struct shared_units none = {0, 0}, limit = {c.pp - 1, c.pp - 1};
    c.shared_units = none;
    double plain_s = simulated_step_s(&c, &costs);
    /* each round finds the fastest choice among those that share less than the choice of the round before, if it is
     * faster than sharing none */
    while (ranking.count + 1 < SHARED_UNITS_MAX) {
        struct shared_units best = none;
        double best_s = plain_s * SHARING_WORTHWHILE_RATIO_MAX;
        for (c.shared_units.first = 0; c.shared_units.first <= limit.first; c.shared_units.first++)
            for (c.shared_units.last = 0; c.shared_units.last <= limit.last;
                 c.shared_units.last++) {
                if (c.shared_units.first + c.shared_units.last == 0 ||
                    !can_stages_share_subsequences(&c))
                    continue;
                double step_s = simulated_step_s(&c, &costs);
                if (step_s >= best_s)
                    continue;
                best = c.shared_units;
                best_s = step_s;
            }
        if (best.first + best.last == 0)
            break;
        ranking.fastest_first[ranking.count++] = best;
        /* sharing last units takes the most memory, since it needs the keys and values of all units: so the next choice
         * shares no last units, and if this choice shares none either, fewer first units */
        limit = (struct shared_units){best.last > 0 ? c.pp - 1 : best.first - 1, 0};
    }
    ranking.fastest_first[ranking.count++] = none;
    return ranking;
}
