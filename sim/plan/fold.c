#include "sim/plan/fold.h"
#include "sim/plan/fold_flows.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void fold_release(struct fold *fold)
{
    free(fold->class_of_rank);
    free(fold->rank_of_class);
    free(fold->class_ranks);
    free(fold->row);
    free(fold->class_of_channel);
    free(fold->channel_of_class);
    free(fold->flow_begin);
    free(fold->flow);
    free(fold->bytes_per_s);
    free(fold->link_begin);
    free(fold->link);
    *fold = (struct fold){0};
}

/* ---- colours ---- */

enum { RANKS, CHANNELS, FLOWS, LINKS, SORTS };

/* Colours are 64-bit hashes of everything that distinguishes a node so far. A node's next colour is computed from its
 * own and the sum of its neighbours' mixed colours, so their order does not matter. */
struct colours {
    uint32_t count[SORTS];
    uint64_t *now[SORTS], *sum[SORTS];
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t mix2(uint64_t a, uint64_t b)
{
    return mix(a + 0x9e3779b97f4a7c15u + mix(b));
}

static uint64_t bits(double value)
{
    uint64_t b;
    memcpy(&b, &value, sizeof b);
    return b;
}

/* Returns a hash of all durations that depend on a rank's place. */
static uint64_t place_colour(const struct sim_plan *plan, uint32_t rank)
{
    uint64_t h = 0;
    for (uint32_t s = 0; plan->place_of_rank != NULL && s < plan->ir->shape_count; s++)
        if (plan->costs->place_work_s[s] != NULL)
            h = mix2(h, bits(plan_duration_s(plan, rank, s)));
    return h;
}

static void colours_init(struct colours *c, const struct sim_plan *plan)
{
    uint32_t count[SORTS] = {plan->rank_count, plan->channel_count, plan->flows.count,
                             plan->platform.link_count};
    for (int s = 0; s < SORTS; s++) {
        c->count[s] = count[s];
        c->now[s] = heap_alloc(count[s] + 1u, sizeof *c->now[s]);
        c->sum[s] = heap_alloc(count[s] + 1u, sizeof *c->sum[s]);
    }
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        uint64_t h = plan->role_of_rank[r];
        for (uint32_t g = 0; g < plan->ir->guard_count; g++)
            h = mix2(h, plan->passes[(size_t)r * plan->ir->guard_count + g]);
        if (plan->place_of_rank != NULL)
            h = mix2(h, place_colour(plan, r));
        c->now[RANKS][r] = mix2(RANKS, h);
    }
    for (uint32_t k = 0; k < plan->channel_count; k++) {
        const struct channel *channel = &plan->channel[k];
        uint64_t h = mix2(CHANNELS, channel->line);
        for (uint32_t v = 0; v < plan->line[channel->line].variants; v++) {
            const struct transfer *t = &plan->transfer[channel->transfer_begin + v];
            h = mix2(h, bits(t->latency_s));
            for (uint32_t f = 0; f < t->flow_count; f++)
                c->now[FLOWS][t->flow_begin + f] =
                    mix2(mix2(FLOWS, v), bits(plan->flows.bytes[t->flow_begin + f]));
        }
        c->now[CHANNELS][k] = h;
    }
    for (uint32_t l = 0; l < plan->platform.link_count; l++)
        c->now[LINKS][l] = mix2(LINKS, bits(plan->platform.bytes_per_s[l]));
}

static void colours_release(struct colours *c)
{
    for (int s = 0; s < SORTS; s++) {
        free(c->now[s]);
        free(c->sum[s]);
    }
}

/* Adds an edge of the graph with a label: mixes each end's colour into the sum of the other end. */
static void join(struct colours *c, int sort_a, uint32_t a, int sort_b, uint32_t b, uint64_t label)
{
    c->sum[sort_a][a] += mix2(c->now[sort_b][b], label);
    c->sum[sort_b][b] += mix2(c->now[sort_a][a], label);
}

static void refine(struct colours *c, const struct sim_plan *plan, const struct pruned *pruned)
{
    for (int s = 0; s < SORTS; s++)
        memset(c->sum[s], 0, c->count[s] * sizeof *c->sum[s]);
    for (uint32_t r = 0; r < plan->rank_count; r++)
        for (uint32_t l = 0; l < plan->line_count; l++) {
            uint32_t send = plan->endpoint[(size_t)r * plan->line_count + l];
            uint32_t receive = plan->receive[(size_t)r * plan->line_count + l];
            if (send != IR_NONE)
                join(c, RANKS, r, CHANNELS, send, 2 * l);
            if (receive != IR_NONE)
                join(c, RANKS, r, CHANNELS, receive, 2 * l + 1);
        }
    for (uint32_t k = 0; k < plan->channel_count; k++) {
        const struct channel *channel = &plan->channel[k];
        for (uint32_t v = 0; v < plan->line[channel->line].variants; v++) {
            const struct transfer *t = &plan->transfer[channel->transfer_begin + v];
            for (uint32_t f = t->flow_begin; f < t->flow_begin + t->flow_count; f++) {
                join(c, CHANNELS, k, FLOWS, f, 0);
                for (uint32_t i = pruned->link_begin[f]; i < pruned->link_begin[f + 1]; i++)
                    join(c, FLOWS, f, LINKS, pruned->link[i], 0);
            }
        }
    }
    for (int s = 0; s < SORTS; s++)
        for (uint32_t i = 0; i < c->count[s]; i++)
            c->now[s][i] = mix2(c->now[s][i], c->sum[s][i]);
}

/* ---- classes, numbered by their first member ---- */

static uint32_t number_classes(const uint64_t *colour, uint32_t count, uint32_t *class_of,
                               uint32_t **first)
{
    size_t size = 64;
    while (size < 2 * (size_t)count)
        size *= 2;
    uint32_t *slot = heap_alloc(size, sizeof *slot);
    memset(slot, 0xff, size * sizeof *slot);
    *first = heap_alloc(count + 1u, sizeof **first);
    uint32_t classes = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t at = (size_t)colour[i] & (size - 1);
        while (slot[at] != IR_NONE && colour[(*first)[slot[at]]] != colour[i])
            at = (at + 1) & (size - 1);
        if (slot[at] == IR_NONE) {
            slot[at] = classes;
            (*first)[classes++] = i;
        }
        class_of[i] = slot[at];
    }
    free(slot);
    return classes;
}

static uint32_t count_classes(const struct colours *c)
{
    uint32_t classes = 0;
    for (int s = 0; s < SORTS; s++) {
        uint32_t *class_of = heap_alloc(c->count[s] + 1u, sizeof *class_of), *first;
        classes += number_classes(c->now[s], c->count[s], class_of, &first);
        free(class_of);
        free(first);
    }
    return classes;
}

static void number_all(uint32_t count, uint32_t *class_of, uint32_t **first)
{
    *first = heap_alloc(count + 1u, sizeof **first);
    for (uint32_t i = 0; i < count; i++)
        class_of[i] = (*first)[i] = i;
}

static void fold_by_colour(struct fold *fold, const struct sim_plan *plan,
                           const struct pruned *pruned)
{
    struct colours colours;
    colours_init(&colours, plan);
    for (uint32_t before = 0, after = count_classes(&colours); after > before;) {
        refine(&colours, plan, pruned);
        before = after;
        after = count_classes(&colours);
    }
    fold->class_count = number_classes(colours.now[RANKS], plan->rank_count, fold->class_of_rank,
                                       &fold->rank_of_class);
    fold->channel_class_count = number_classes(colours.now[CHANNELS], plan->channel_count,
                                               fold->class_of_channel, &fold->channel_of_class);
    struct fold_network network;
    uint32_t *first;
    network.class_of_flow = heap_alloc(plan->flows.count + 1u, sizeof(uint32_t));
    network.class_of_link = heap_alloc(plan->platform.link_count + 1u, sizeof(uint32_t));
    network.flow_classes =
        number_classes(colours.now[FLOWS], plan->flows.count, network.class_of_flow, &first);
    free(first);
    network.link_classes = number_classes(colours.now[LINKS], plan->platform.link_count,
                                          network.class_of_link, &first);
    free(first);
    fold_flows(fold, plan, pruned, &network);
    free(network.class_of_flow);
    free(network.class_of_link);
    colours_release(&colours);
}

void fold_make(struct fold *fold, const struct sim_plan *plan, const struct pruned *pruned,
               bool exact)
{
    *fold = (struct fold){.exact = exact};
    fold->class_of_rank = heap_alloc(plan->rank_count, sizeof *fold->class_of_rank);
    fold->class_of_channel = heap_alloc(plan->channel_count + 1u, sizeof *fold->class_of_channel);
    if (exact) {
        fold->class_count = plan->rank_count;
        fold->channel_class_count = plan->channel_count;
        number_all(plan->rank_count, fold->class_of_rank, &fold->rank_of_class);
        number_all(plan->channel_count, fold->class_of_channel, &fold->channel_of_class);
        fold_flows(fold, plan, pruned, NULL);
    } else {
        fold_by_colour(fold, plan, pruned);
    }
    fold->class_ranks = heap_zalloc(fold->class_count, sizeof *fold->class_ranks);
    for (uint32_t r = 0; r < plan->rank_count; r++)
        fold->class_ranks[fold->class_of_rank[r]]++;
    fold->row = heap_zalloc(fold->class_count + 1u, sizeof *fold->row);
    for (uint32_t c = 0; c < fold->class_count; c++) {
        uint32_t role = plan->role_of_rank[fold->rank_of_class[c]];
        fold->row[c + 1] = fold->row[c] + (role == IR_NONE ? 0 : plan->ir->role[role].op_count);
    }
}
