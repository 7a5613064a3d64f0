#include "sim/traffic/fold.h"
#include "sim/traffic/fold_flows.h"

#include "schedule/ir/id_map.h"

#include <stdlib.h>
#include <string.h>

void fold_release(struct fold *fold)
{
    free(fold->class_of_rank);
    free(fold->rank_of_class);
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
    uint64_t *current[SORTS], *sum[SORTS];
    /* the classes of nodes with equal colours, numbered by their first members */
    uint32_t classes[SORTS];
    uint32_t *class_of[SORTS], *first[SORTS];
};

static uint64_t mix_hash(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t mix2(uint64_t a, uint64_t b)
{
    return mix_hash(a + 0x9e3779b97f4a7c15u + mix_hash(b));
}

static uint64_t bits(double value)
{
    uint64_t b;
    memcpy(&b, &value, sizeof b);
    return b;
}

/* Returns a hash of all durations that depend on a rank's place. */
static uint64_t place_colour(const struct traffic *traffic, uint32_t rank)
{
    uint64_t h = 0;
    for (uint32_t s = 0; traffic->place_of_rank != NULL && s < traffic->ir->shape_count; s++)
        if (traffic->costs->place_work_s[s] != NULL)
            h = mix2(h, bits(traffic_duration_s(traffic, rank, s)));
    return h;
}

static void colours_init(struct colours *c, const struct traffic *traffic)
{
    uint32_t count[SORTS] = {traffic->rank_count, traffic->channel_count, traffic->flows.count,
                             traffic->platform.link_count};
    for (int s = 0; s < SORTS; s++) {
        c->count[s] = count[s];
        c->current[s] = heap_alloc(count[s] + 1u, sizeof *c->current[s]);
        c->sum[s] = heap_alloc(count[s] + 1u, sizeof *c->sum[s]);
        c->class_of[s] = heap_alloc(count[s] + 1u, sizeof *c->class_of[s]);
        c->first[s] = heap_alloc(count[s] + 1u, sizeof *c->first[s]);
    }
    for (uint32_t r = 0; r < traffic->rank_count; r++) {
        uint64_t h = traffic->role_of_rank[r];
        for (uint32_t g = 0; g < traffic->ir->guard_count; g++)
            h = mix2(h, traffic->passes[(size_t)r * traffic->ir->guard_count + g]);
        if (traffic->place_of_rank != NULL)
            h = mix2(h, place_colour(traffic, r));
        c->current[RANKS][r] = mix2(RANKS, h);
    }
    for (uint32_t k = 0; k < traffic->channel_count; k++)
        c->current[CHANNELS][k] = mix2(CHANNELS, traffic->channel[k].comm);
    for (uint32_t t = 0; t < traffic->transfer_count; t++) {
        const struct transfer *of = &traffic->transfer[t];
        uint64_t *channel = &c->current[CHANNELS][of->channel];
        *channel = mix2(*channel, bits(of->latency_s));
        for (uint32_t f = of->flow_begin; f < of->flow_begin + of->flow_count; f++)
            c->current[FLOWS][f] =
                mix2(mix2(FLOWS, t - traffic->channel[of->channel].transfer_begin),
                     bits(traffic->flows.bytes[f]));
    }
    for (uint32_t l = 0; l < traffic->platform.link_count; l++)
        c->current[LINKS][l] = mix2(LINKS, bits(traffic->platform.bytes_per_s[l]));
}

/* Adds an edge of the graph with a label: each end's colour, mixed with the label, is added to the sum of the other
 * end. */
static void join_colours(struct colours *c, int sort_a, uint32_t a, int sort_b, uint32_t b,
                         uint64_t label)
{
    c->sum[sort_a][a] += mix2(c->current[sort_b][b], label);
    c->sum[sort_b][b] += mix2(c->current[sort_a][a], label);
}

static void refine_colours(struct colours *c, const struct traffic *traffic,
                           const struct pruned *pruned)
{
    for (int s = 0; s < SORTS; s++)
        memset(c->sum[s], 0, c->count[s] * sizeof *c->sum[s]);
    for (uint32_t r = 0; r < traffic->rank_count; r++)
        for (uint32_t l = 0; l < traffic->comm_count; l++) {
            uint32_t send = traffic->endpoint[(size_t)r * traffic->comm_count + l];
            uint32_t receive = traffic->receive[(size_t)r * traffic->comm_count + l];
            if (send != IR_NONE)
                join_colours(c, RANKS, r, CHANNELS, send, 2 * l);
            if (receive != IR_NONE)
                join_colours(c, RANKS, r, CHANNELS, receive, 2 * l + 1);
        }
    for (uint32_t t = 0; t < traffic->transfer_count; t++) {
        const struct transfer *of = &traffic->transfer[t];
        for (uint32_t f = of->flow_begin; f < of->flow_begin + of->flow_count; f++) {
            join_colours(c, CHANNELS, of->channel, FLOWS, f, 0);
            for (uint32_t i = pruned->link_begin[f]; i < pruned->link_begin[f + 1]; i++)
                join_colours(c, FLOWS, f, LINKS, pruned->link[i], 0);
        }
    }
    for (int s = 0; s < SORTS; s++)
        for (uint32_t i = 0; i < c->count[s]; i++)
            c->current[s][i] = mix2(c->current[s][i], c->sum[s][i]);
}

/* ---- classes, numbered by their first member ---- */

static void number_classes(struct colours *c, int sort)
{
    const uint64_t *colour = c->current[sort];
    uint32_t *first = c->first[sort], classes = 0;
    struct id_map known = {0}; /* the colours of the classes */
    for (uint32_t i = 0; i < c->count[sort]; i++) {
        struct id_probe p = id_map_start(&known, colour[i]);
        bool found = false;
        while (!found && id_map_next(&known, &p))
            found = colour[first[p.row]] == colour[i];
        if (!found) {
            id_map_add(&known, colour[i], p.row = classes);
            first[classes++] = i;
        }
        c->class_of[sort][i] = p.row;
    }
    id_map_release(&known);
    c->classes[sort] = classes;
}

static uint32_t count_classes(struct colours *c)
{
    uint32_t classes = 0;
    for (int s = 0; s < SORTS; s++) {
        number_classes(c, s);
        classes += c->classes[s];
    }
    return classes;
}

/* Refines the colours until the number of classes stays the same. */
static void fold_by_colour(struct colours *c, const struct traffic *traffic,
                           const struct pruned *pruned)
{
    for (uint32_t before = 0, after = count_classes(c); after > before;) {
        refine_colours(c, traffic, pruned);
        before = after;
        after = count_classes(c);
    }
}

/* Makes every node a class of its own. */
static void number_all(struct colours *c)
{
    for (int s = 0; s < SORTS; s++) {
        c->classes[s] = c->count[s];
        for (uint32_t i = 0; i < c->count[s]; i++)
            c->class_of[s][i] = c->first[s][i] = i;
    }
}

void fold_make(struct fold *fold, const struct traffic *traffic, const struct pruned *pruned,
               bool exact)
{
    struct colours c;
    colours_init(&c, traffic);
    if (exact)
        number_all(&c);
    else
        fold_by_colour(&c, traffic, pruned);
    *fold = (struct fold){.exact = exact,
                          .class_count = c.classes[RANKS],
                          .class_of_rank = c.class_of[RANKS],
                          .rank_of_class = c.first[RANKS],
                          .channel_class_count = c.classes[CHANNELS],
                          .class_of_channel = c.class_of[CHANNELS],
                          .channel_of_class = c.first[CHANNELS]};
    struct fold_network network = {c.classes[FLOWS], c.classes[LINKS], c.class_of[FLOWS],
                                   c.class_of[LINKS]};
    fold_flows(fold, traffic, pruned, exact ? NULL : &network);
    for (int s = 0; s < SORTS; s++) {
        free(c.current[s]);
        free(c.sum[s]);
        /* the colours of ranks and channels are kept for the fold */
        if (s == FLOWS || s == LINKS) {
            free(c.class_of[s]);
            free(c.first[s]);
        }
    }
    fold->row = heap_zalloc(fold->class_count + 1u, sizeof *fold->row);
    for (uint32_t k = 0; k < fold->class_count; k++) {
        uint32_t role = traffic->role_of_rank[fold->rank_of_class[k]];
        fold->row[k + 1] = fold->row[k] + (role == IR_NONE ? 0 : traffic->ir->role[role].op_count);
    }
}
