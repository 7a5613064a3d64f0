#include "sim/traffic/fold.h"
#include "sim/traffic/fold_flows.h"

#include "schedule/ir/id_map.h"

#include <stdlib.h>
#include <string.h>

void fold_release(struct fold *fold)
{
    free(fold->class_of_rank);
    free(fold->lowest_rank_by_class);
    free(fold->first_op_row_by_class);
    free(fold->class_by_channel);
    free(fold->lowest_channel_by_class);
    free(fold->flow_begin_by_transfer);
    free(fold->flow);
    free(fold->bytes_per_s);
    free(fold->link_begin);
    free(fold->link);
    *fold = (struct fold){0};
}

/* ---- colours ---- */

/* The sorts of nodes of the graph whose nodes are coloured. Edges join a rank with its channels, a channel with its
 * flows and a flow with its links. */
enum { RANKS, CHANNELS, FLOWS, LINKS, SORTS };

/* The colours of nodes: 64-bit hashes of everything that is known so far to distinguish a node. The next colour of a
 * node is computed from its own and the sum of its neighbours' mixed colours, so the order of the neighbours does not
 * matter. */
struct colours {
    uint32_t node_count[SORTS];
    uint64_t *colour[SORTS], *neighbour_sum[SORTS];
    /* classes of nodes with equal colours, in the order of their first nodes */
    uint32_t class_count[SORTS];
    uint32_t *class_of_node[SORTS], *first_node_of_class[SORTS];
};

static uint64_t mix_hash(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    return mix_hash(a + 0x9e3779b97f4a7c15u + mix_hash(b));
}

static uint64_t double_bits(double value)
{
    uint64_t b;
    memcpy(&b, &value, sizeof b);
    return b;
}

/* Returns a hash of all durations that depend on a rank's place. */
static uint64_t hash_of_durations(const struct traffic *traffic, uint32_t rank)
{
    uint64_t h = 0;
    for (uint32_t s = 0; traffic->place_of_rank != NULL && s < traffic->ir->shape_count; s++)
        if (traffic->costs->work_s_by_place[s] != NULL)
            h = hash_pair(h, double_bits(traffic_kernel_duration_s(traffic, rank, s)));
    return h;
}

static void colours_init(struct colours *c, const struct traffic *traffic)
{
    uint32_t count[SORTS] = {traffic->rank_count, traffic->channel_count, traffic->flows.flow_count,
                             traffic->platform.link_count};
    for (int s = 0; s < SORTS; s++) {
        c->node_count[s] = count[s];
        c->colour[s] = heap_alloc(count[s] + 1u, sizeof *c->colour[s]);
        c->neighbour_sum[s] = heap_alloc(count[s] + 1u, sizeof *c->neighbour_sum[s]);
        c->class_of_node[s] = heap_alloc(count[s] + 1u, sizeof *c->class_of_node[s]);
        c->first_node_of_class[s] = heap_alloc(count[s] + 1u, sizeof *c->first_node_of_class[s]);
    }
    for (uint32_t r = 0; r < traffic->rank_count; r++) {
        uint64_t h = traffic->role_of_rank[r];
        for (uint32_t g = 0; g < traffic->ir->guard_count; g++)
            h = hash_pair(h,
                          traffic->guard_passes_by_rank[(size_t)r * traffic->ir->guard_count + g]);
        if (traffic->place_of_rank != NULL)
            h = hash_pair(h, hash_of_durations(traffic, r));
        c->colour[RANKS][r] = hash_pair(RANKS, h);
    }
    for (uint32_t k = 0; k < traffic->channel_count; k++)
        c->colour[CHANNELS][k] = hash_pair(CHANNELS, traffic->channel[k].comm_class);
    for (uint32_t t = 0; t < traffic->transfer_count; t++) {
        const struct transfer *of = &traffic->transfer[t];
        uint64_t *channel = &c->colour[CHANNELS][of->channel];
        *channel = hash_pair(*channel, double_bits(of->latency_s));
        for (uint32_t f = of->flow_begin; f < of->flow_begin + of->flow_count; f++)
            c->colour[FLOWS][f] = hash_pair(
                hash_pair(FLOWS, t - traffic->channel[of->channel].first_transfer_of_channel),
                double_bits(traffic->flows.bytes[f]));
    }
    for (uint32_t l = 0; l < traffic->platform.link_count; l++)
        c->colour[LINKS][l] = hash_pair(LINKS, double_bits(traffic->platform.bytes_per_s[l]));
}

/* Adds an edge of the graph with a label: each end's colour, mixed with the label, is added to the sum of the other
 * end. */
static void add_edge_to_sums(struct colours *c, int sort_a, uint32_t a, int sort_b, uint32_t b,
                             uint64_t label)
{
    c->neighbour_sum[sort_a][a] += hash_pair(c->colour[sort_b][b], label);
    c->neighbour_sum[sort_b][b] += hash_pair(c->colour[sort_a][a], label);
}

static void refine_colours(struct colours *c, const struct traffic *traffic,
                           const struct pruned *pruned)
{
    for (int s = 0; s < SORTS; s++)
        memset(c->neighbour_sum[s], 0, c->node_count[s] * sizeof *c->neighbour_sum[s]);
    for (uint32_t r = 0; r < traffic->rank_count; r++)
        for (uint32_t l = 0; l < traffic->comm_class_count; l++) {
            uint32_t send =
                traffic->channel_by_rank_and_comm[(size_t)r * traffic->comm_class_count + l];
            uint32_t receive =
                traffic
                    ->receive_channel_by_rank_and_comm[(size_t)r * traffic->comm_class_count + l];
            if (send != IR_NONE)
                add_edge_to_sums(c, RANKS, r, CHANNELS, send, 2 * l);
            if (receive != IR_NONE)
                add_edge_to_sums(c, RANKS, r, CHANNELS, receive, 2 * l + 1);
        }
    for (uint32_t t = 0; t < traffic->transfer_count; t++) {
        const struct transfer *of = &traffic->transfer[t];
        for (uint32_t f = of->flow_begin; f < of->flow_begin + of->flow_count; f++) {
            add_edge_to_sums(c, CHANNELS, of->channel, FLOWS, f, 0);
            for (uint32_t i = pruned->link_begin[f]; i < pruned->link_begin[f + 1]; i++)
                add_edge_to_sums(c, FLOWS, f, LINKS, pruned->link[i], 0);
        }
    }
    for (int s = 0; s < SORTS; s++)
        for (uint32_t i = 0; i < c->node_count[s]; i++)
            c->colour[s][i] = hash_pair(c->colour[s][i], c->neighbour_sum[s][i]);
}

/* ---- classes, in the order of their first members ---- */

static void number_classes(struct colours *c, int sort)
{
    const uint64_t *colour = c->colour[sort];
    uint32_t *first = c->first_node_of_class[sort], classes = 0;
    struct id_map known = {0}; /* the colours of the classes */
    for (uint32_t i = 0; i < c->node_count[sort]; i++) {
        struct id_probe p = id_map_begin_probe(&known, colour[i]);
        bool found = false;
        while (!found && id_map_next_row_with_hash(&known, &p))
            found = colour[first[p.row]] == colour[i];
        if (!found) {
            id_map_add(&known, colour[i], p.row = classes);
            first[classes++] = i;
        }
        c->class_of_node[sort][i] = p.row;
    }
    id_map_release(&known);
    c->class_count[sort] = classes;
}

static uint32_t count_classes(struct colours *c)
{
    uint32_t classes = 0;
    for (int s = 0; s < SORTS; s++) {
        number_classes(c, s);
        classes += c->class_count[s];
    }
    return classes;
}

/* Refines the colours until the number of classes stays the same. */
static void refine_until_stable(struct colours *c, const struct traffic *traffic,
                                const struct pruned *pruned)
{
    for (uint32_t before = 0, after = count_classes(c); after > before;) {
        refine_colours(c, traffic, pruned);
        before = after;
        after = count_classes(c);
    }
}

/* Makes every node a class of its own. */
static void make_every_node_a_class(struct colours *c)
{
    for (int s = 0; s < SORTS; s++) {
        c->class_count[s] = c->node_count[s];
        for (uint32_t i = 0; i < c->node_count[s]; i++)
            c->class_of_node[s][i] = c->first_node_of_class[s][i] = i;
    }
}

void fold_make(struct fold *fold, const struct traffic *traffic, const struct pruned *pruned,
               bool exact)
{
    struct colours c;
    colours_init(&c, traffic);
    if (exact)
        make_every_node_a_class(&c);
    else
        refine_until_stable(&c, traffic, pruned);
    *fold = (struct fold){.is_exact = exact,
                          .class_count = c.class_count[RANKS],
                          .class_of_rank = c.class_of_node[RANKS],
                          .lowest_rank_by_class = c.first_node_of_class[RANKS],
                          .channel_class_count = c.class_count[CHANNELS],
                          .class_by_channel = c.class_of_node[CHANNELS],
                          .lowest_channel_by_class = c.first_node_of_class[CHANNELS]};
    struct flow_and_link_classes network = {c.class_count[FLOWS], c.class_count[LINKS],
                                            c.class_of_node[FLOWS], c.class_of_node[LINKS]};
    fold_flows(fold, traffic, pruned, exact ? NULL : &network);
    for (int s = 0; s < SORTS; s++) {
        free(c.colour[s]);
        free(c.neighbour_sum[s]);
        /* the classes of ranks and channels belong to the fold now */
        if (s == FLOWS || s == LINKS) {
            free(c.class_of_node[s]);
            free(c.first_node_of_class[s]);
        }
    }
    fold->first_op_row_by_class =
        heap_zalloc(fold->class_count + 1u, sizeof *fold->first_op_row_by_class);
    for (uint32_t k = 0; k < fold->class_count; k++) {
        uint32_t role = traffic->role_of_rank[fold->lowest_rank_by_class[k]];
        fold->first_op_row_by_class[k + 1] =
            fold->first_op_row_by_class[k] +
            (role == IR_NONE ? 0 : traffic->ir->role[role].op_count);
    }
}
