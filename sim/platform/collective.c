#include "sim/platform/collective.h"
#include "sim/platform/rings.h"

#include "base/arena.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The share of a ring's bandwidth that NCCL assumes for a tree when it chooses between them (src/graph/tuning.cc, the
 * factor on the tree's bus bandwidth for protocol Simple). */
static const double tree_efficiency = 0.92;

/* ---- all-to-all ---- */

/* The distance between two members of a domain: on one PCIe switch, on one socket, or on two sockets. Without
 * FABRIC_PCIE all members count as on one switch. */
enum { NEAR_SWITCH, NEAR_SOCKET, NEAR_FAR, NEAR_COUNT };

static int nearness_of_ranks_in_domain(const struct platform *p, uint32_t a, uint32_t b)
{
    const struct cluster *c = p->cluster;
    if (c->fabric.kind != FABRIC_PCIE)
        return NEAR_SWITCH;
    int64_t switch_a = c->switch_of_gpu[cluster_place_of_rank(c, a).gpu];
    int64_t switch_b = c->switch_of_gpu[cluster_place_of_rank(c, b).gpu];
    if (switch_a == switch_b)
        return NEAR_SWITCH;
    return c->socket_of_switch[switch_a] == c->socket_of_switch[switch_b] ? NEAR_SOCKET : NEAR_FAR;
}

/* Numbers of the caps: limits in bytes/s of a rank's flows (LINK_RATE_CAP_OF_FLOW). The flow to one peer has CAP_PAIR;
 * the flow to all peers at one distance in the domain has CAP_NEAR + NEAR_...; the flow to other domains has
 * CAP_NETWORK, or CAP_NETWORK + 1 if these are on other leaf switches. Caps of pairs are numbered on their own
 * (PLATFORM_RANK_PAIR_CAP_BIT); the other caps of a rank begin CAP_STRIDE after those of the rank before it. */
enum { CAP_PAIR, CAP_NEAR, CAP_NETWORK = CAP_NEAR + NEAR_COUNT, CAP_STRIDE = CAP_NETWORK + 2 };

static uint32_t flow_cap_index(uint32_t rank, uint32_t peer_or_zero, int what)
{
    return what == CAP_PAIR
               ? PLATFORM_RANK_PAIR_CAP_BIT | (rank * PLATFORM_CAP_PEERS + peer_or_zero)
               : rank * CAP_STRIDE + (uint32_t)what;
}

/* Returns the cap in bytes/s of a member's flow to `peers` peers of its domain. overhead: bytes on the wire for each
 * byte of payload. NCCL distributes its channels evenly over all ranks of a communicator, the sender included
 * (src/enqueue.cc), so the share peers / (peers + 1) of the rate of all channels goes to the peers. If that rate is not
 * known, each pair of ranks has a rate of its own. */
static double exchange_cap_bytes_per_s(const struct fabric *fabric, uint32_t peers, double overhead)
{
    double channels = fabric->all_to_all_channels_bytes_per_s;
    double cap = channels > 0 ? channels * peers / (peers + 1.0)
                              : peers * fabric->all_to_all_peer_bytes_per_s;
    return cap * overhead;
}

/* Adds the flows of member i of domain d to its peers in that domain, `piece` bytes to each: on a mesh one flow per
 * peer, else one flow per distance, over the member's own ports. */
static void add_exchange_in_domain(struct platform *p, struct flow_table *flows,
                                   const struct members *m, uint32_t d, uint32_t i, double piece,
                                   uint32_t key)
{
    const struct fabric *fabric = &p->cluster->fabric;
    const uint32_t *rank = m->ranks_grouped_by_domain + m->domain[d].begin;
    double overhead = 1 / fabric->all_to_all_efficiency;
    uint32_t peers[NEAR_COUNT] = {0}, peer[NEAR_COUNT] = {0};
    for (uint32_t j = 0; j < m->domain[d].count; j++) {
        if (j == i)
            continue;
        if (fabric->kind == FABRIC_MESH) {
            flow_open(flows, piece * overhead);
            route_add_exchange_with_peer(p, flows, rank[i], rank[j]);
            route_add_link(p, flows, LINK_RATE_CAP_OF_FLOW, key,
                           flow_cap_index(rank[i], j, CAP_PAIR),
                           fabric->all_to_all_peer_bytes_per_s * overhead);
            flow_close(flows);
            continue;
        }
        int near = nearness_of_ranks_in_domain(p, rank[i], rank[j]);
        peers[near]++;
        peer[near] = rank[j];
    }
    for (int near = 0; near < NEAR_COUNT; near++) {
        if (peers[near] == 0)
            continue;
        flow_open(flows, peers[near] * piece * overhead);
        route_add_exchange_with_peer(p, flows, rank[i], peer[near]);
        route_add_link(p, flows, LINK_RATE_CAP_OF_FLOW, key,
                       flow_cap_index(rank[i], 0, CAP_NEAR + near),
                       exchange_cap_bytes_per_s(fabric, peers[near], overhead));
        flow_close(flows);
    }
}

/* Adds one flow for a member's bytes to `peers` members of other domains, out of its own NIC, and for as many bytes
 * from them, into its own NIC. across: 1 if these members are on other leaf switches, else 0. */
static void add_flow_between_domains(struct platform *p, struct flow_table *flows, uint32_t me,
                                     int across, double bytes, uint32_t peers, uint32_t key)
{
    flow_open(flows, bytes);
    route_add_nic(p, flows, me, true);
    route_add_nic(p, flows, me, false);
    if (across) {
        route_add_leaf(p, flows, me, true);
        route_add_leaf(p, flows, me, false);
    }
    route_add_link(p, flows, LINK_RATE_CAP_OF_FLOW, key,
                   flow_cap_index(me, 0, CAP_NETWORK + across),
                   peers * p->cluster->nic.peer_bytes_per_s);
    flow_close(flows);
}

/* Adds a member's bytes to and from all other domains: one flow for the domains on its own leaf switch, and one for
 * those on other leaf switches. Both go out of and into its own NIC. */
static void add_exchange_between_domains(struct platform *p, struct flow_table *flows,
                                         const struct members *m, uint32_t d, uint32_t me,
                                         double piece, uint32_t key)
{
    uint32_t peers[2] = {0};
    for (uint32_t e = 0; e < m->domain_count; e++)
        if (e != d)
            peers[platform_crosses_leaves(p, me, m->ranks_grouped_by_domain[m->domain[e].begin])] +=
                m->domain[e].count;
    for (int across = 0; across < 2; across++)
        if (peers[across] > 0)
            add_flow_between_domains(p, flows, me, across, peers[across] * piece, peers[across],
                                     key);
}

/* ---- kinds of collectives ---- */

struct collective_call {
    struct platform *platform;
    struct flow_table *flows;
    const struct work *work;
    const struct members *members;
    uint32_t key;
    double bytes; /* bytes of the send buffer of one rank */
    const struct exchange_bytes *exchange;
};

/* Returns the seconds in which NCCL's channels serve the peers inside a domain. They come in addition to the time of
 * the flows between domains, since a channel serves one peer after another. Returns 0 if there is one domain, or if the
 * rate of all channels is not known. */
static double channel_time_inside_domains_s(const struct collective_call *f)
{
    double channels = f->platform->cluster->fabric.all_to_all_channels_bytes_per_s;
    if (f->members->domain_count == 1 || !(channels > 0))
        return 0;
    return f->bytes * f->members->largest_domain_size / f->members->member_count / channels;
}

/* Returns the probability that, of `experts` experts, `copies` that are drawn without repetition contain at least one
 * of the rank's `own`. */
static double probability_of_any_own_expert(int64_t experts, int64_t copies, double own)
{
    double missed = 1;
    for (int64_t i = 0; i < copies && missed > 0; i++)
        missed *= fmax(0, (double)(experts - i) - own) / (double)(experts - i);
    return 1 - missed;
}

/* Adds the flows of an all-to-all that sends a token once to each rank which has some of its experts, and returns the
 * latency in seconds. A token goes to another domain once, over the sender's NIC, and a rank there forwards it to the
 * other ranks of its domain. So the links inside a domain also carry all rows that its ranks receive from outside,
 * except those that the first receiver keeps. Both kinds of flows run at once (docs/simulation.md, "Dispatchers"). */
static double add_token_sends_once_per_rank(const struct collective_call *f)
{
    const struct members *m = f->members;
    const struct work *work = f->work;
    const double tokens = (double)(work->all_to_all.ahead + work->all_to_all.back) *
                          (double)dtype_bytes((enum dtype)work->in);
    const double own = (double)work->all_to_all.experts / m->member_count;
    const double arriving = work->all_to_all.even
                                ? tokens * m->member_count *
                                      probability_of_any_own_expert(work->all_to_all.experts,
                                                                    work->all_to_all.once, own)
                                : f->bytes;
    for (uint32_t d = 0; d < m->domain_count; d++)
        for (uint32_t i = 0; m->domain[d].is_planned && i < m->domain[d].count; i++) {
            uint32_t me = m->ranks_grouped_by_domain[m->domain[d].begin + i], domains[2] = {0};
            double bytes[2] = {0};
            add_exchange_in_domain(f->platform, f->flows, m, d, i, arriving / m->domain[d].count,
                                   f->key);
            for (uint32_t e = 0; e < m->domain_count; e++) {
                if (e == d)
                    continue;
                const bool across = platform_crosses_leaves(
                    f->platform, me, m->ranks_grouped_by_domain[m->domain[e].begin]);
                domains[across]++;
                bytes[across] += tokens * probability_of_any_own_expert(work->all_to_all.experts,
                                                                        work->all_to_all.once,
                                                                        own * m->domain[e].count);
            }
            for (int across = 0; across < 2; across++)
                if (domains[across] > 0)
                    add_flow_between_domains(f->platform, f->flows, me, across, bytes[across],
                                             domains[across], f->key);
        }
    return members_farthest_message_latency_s(f->platform, m);
}

static double add_all_to_all(const struct collective_call *f)
{
    const struct members *m = f->members;
    if (f->work->all_to_all.once > 0)
        return add_token_sends_once_per_rank(f);
    for (uint32_t d = 0; d < m->domain_count; d++)
        for (uint32_t i = 0; m->domain[d].is_planned && i < m->domain[d].count; i++) {
            uint32_t me = m->ranks_grouped_by_domain[m->domain[d].begin + i];
            double piece = f->bytes / m->member_count;
            add_exchange_in_domain(f->platform, f->flows, m, d, i, piece, f->key);
            add_exchange_between_domains(f->platform, f->flows, m, d, me, piece, f->key);
        }
    return members_farthest_message_latency_s(f->platform, m) + channel_time_inside_domains_s(f);
}

/* The bytes of a member in an exchange, by the links that they cross: those that it sends or those that it receives,
 * whichever are more. The first NEAR_COUNT elements are for peers in its domain, by distance. The last two are for
 * peers in other domains: on its leaf, and across leaves. */
struct exchange_load {
    double bytes[NEAR_COUNT + 2];
    uint32_t peer_count[NEAR_COUNT + 2], peer[NEAR_COUNT + 2]; /* how many peers, and one of them */
};

/* Returns the index in the group of each member in the order of m->ranks_grouped_by_domain, on the heap. */
static uint32_t *list_group_indices(const struct members *m)
{
    uint32_t *index = heap_alloc(m->member_count, sizeof *index);
    for (uint32_t i = 0; i < m->member_count; i++)
        for (uint32_t k = 0; k < m->member_count; k++)
            if (m->ranks_by_group_index[k] == m->ranks_grouped_by_domain[i])
                index[i] = k;
    return index;
}

static struct exchange_load exchange_load_of_member(const struct collective_call *f,
                                                    const uint32_t *index, uint32_t d, uint32_t me)
{
    const struct members *m = f->members;
    const double *pair = f->exchange->bytes_by_member_pair;
    double sent[NEAR_COUNT + 2] = {0}, received[NEAR_COUNT + 2] = {0};
    struct exchange_load load = {0};
    for (uint32_t e = 0; e < m->domain_count; e++)
        for (uint32_t i = m->domain[e].begin; i < m->domain[e].begin + m->domain[e].count; i++) {
            double out = pair[(size_t)index[me] * m->member_count + index[i]],
                   in = pair[(size_t)index[i] * m->member_count + index[me]];
            if (i == me || out + in <= 0)
                continue;
            int class =
                e == d ? nearness_of_ranks_in_domain(f->platform, m->ranks_grouped_by_domain[me],
                                                     m->ranks_grouped_by_domain[i])
                       : NEAR_COUNT + platform_crosses_leaves(f->platform,
                                                              m->ranks_grouped_by_domain[me],
                                                              m->ranks_grouped_by_domain[i]);
            sent[class] += out;
            received[class] += in;
            load.peer_count[class]++;
            load.peer[class] = m->ranks_grouped_by_domain[i];
        }
    for (int class = 0; class < NEAR_COUNT + 2; class ++)
        load.bytes[class] = fmax(sent[class], received[class]);
    return load;
}

/* Raises the bytes and the number of peers of each member's load to the largest of all members. Each class of peers
 * (its distances in the domain, other domains, other leaf switches) is raised separately, and stays 0 for a member
 * without such peers. */
static void raise_loads_to_largest(struct exchange_load *load, uint32_t count)
{
    for (int class = 0; class < NEAR_COUNT + 2; class ++) {
        double most = 0;
        uint32_t peers = 0;
        for (uint32_t i = 0; i < count; i++) {
            most = fmax(most, load[i].bytes[class]);
            peers = load[i].peer_count[class] > peers ? load[i].peer_count[class] : peers;
        }
        for (uint32_t i = 0; i < count; i++)
            if (load[i].peer_count[class] > 0) {
                load[i].bytes[class] = most;
                load[i].peer_count[class] = peers;
            }
    }
}

static void add_exchange_load_flows(const struct collective_call *f, uint32_t me,
                                    const struct exchange_load *load)
{
    const struct cluster *cluster = f->platform->cluster;
    const struct fabric *fabric = &cluster->fabric;
    double overhead = 1 / fabric->all_to_all_efficiency;
    for (int class = 0; class < NEAR_COUNT + 2; class ++) {
        bool near = class < NEAR_COUNT, across = class == NEAR_COUNT + 1;
        if (load->peer_count[class] == 0)
            continue;
        if (!near) {
            add_flow_between_domains(f->platform, f->flows, me, across, load->bytes[class],
                                     load->peer_count[class], f->key);
            continue;
        }
        flow_open(f->flows, load->bytes[class] * overhead);
        route_add_exchange_with_peer(f->platform, f->flows, me, load->peer[class]);
        route_add_link(f->platform, f->flows, LINK_RATE_CAP_OF_FLOW, f->key,
                       flow_cap_index(me, 0, CAP_NEAR + class),
                       exchange_cap_bytes_per_s(fabric, load->peer_count[class], overhead));
        flow_close(f->flows);
    }
}

/* Adds flows of an exchange as add_all_to_all() does, with each member's own bytes. On a mesh, whose links connect
 * pairs, a member is taken to send equally many bytes to each peer of its domain. */
static double add_exchange(const struct collective_call *f)
{
    const struct members *m = f->members;
    const double channels = f->platform->cluster->fabric.all_to_all_channels_bytes_per_s;
    uint32_t *index = list_group_indices(m);
    struct exchange_load *load = heap_alloc(m->member_count, sizeof *load);
    double in_turn = 0;
    for (uint32_t d = 0; d < m->domain_count; d++)
        for (uint32_t i = m->domain[d].begin; i < m->domain[d].begin + m->domain[d].count; i++)
            load[i] = exchange_load_of_member(f, index, d, i);
    if (f->exchange->counts_members_as_largest)
        raise_loads_to_largest(load, m->member_count);
    for (uint32_t d = 0; d < m->domain_count; d++)
        for (uint32_t i = 0; i < m->domain[d].count; i++) {
            const struct exchange_load *own = &load[m->domain[d].begin + i];
            uint32_t me = m->ranks_grouped_by_domain[m->domain[d].begin + i];
            double near = 0;
            for (int class = 0; class < NEAR_COUNT; class ++)
                near += own->bytes[class];
            in_turn = fmax(in_turn, near);
            if (!m->domain[d].is_planned)
                continue;
            if (f->platform->cluster->fabric.kind == FABRIC_MESH && m->domain[d].count > 1) {
                struct exchange_load far = *own;
                add_exchange_in_domain(f->platform, f->flows, m, d, i,
                                       near / (m->domain[d].count - 1), f->key);
                for (int class = 0; class < NEAR_COUNT; class ++)
                    far.peer_count[class] = 0;
                add_exchange_load_flows(f, me, &far);
            } else
                add_exchange_load_flows(f, me, own);
        }
    free(load);
    free(index);
    if (m->domain_count == 1 || !(channels > 0) || m->largest_domain_size < 2)
        in_turn = 0;
    else /* the own part counts as that of a peer, as in channel_time_inside_domains_s() */
        in_turn *= m->largest_domain_size / (m->largest_domain_size - 1.0) / channels;
    return members_farthest_message_latency_s(f->platform, m) + in_turn;
}

/* Adds the rings of a gather or of a reduce-scatter. port_bytes: as many bytes leave each port as enter it: all of
 * the gather's result, or of the reduction's operand, except the port's own part. Returns the latency. */
static double add_gather_rings(const struct collective_call *f, double port_bytes)
{
    rings_add_flows(f->platform, f->flows, f->members, port_bytes);
    return f->work->collective.algorithm == ALGORITHM_DIRECT
               ? members_farthest_message_latency_s(f->platform, f->members)
               : rings_latency_s(f->platform, f->members);
}

static double add_all_gather(const struct collective_call *f)
{
    return add_gather_rings(f, (f->members->member_count - 1) * f->bytes);
}

static double add_reduce_scatter(const struct collective_call *f)
{
    double bytes = (f->members->member_count - 1) * f->bytes / f->members->member_count;
    if (!f->platform->cluster->fabric.reduce_scatter_as_all_reduce)
        return add_gather_rings(f, bytes);
    rings_add_flows(f->platform, f->flows, f->members, 2 * bytes);
    return 2 * rings_latency_s(f->platform, f->members);
}

static double add_all_reduce(const struct collective_call *f)
{
    const struct members *m = f->members;
    double port_bytes = 2 * (m->member_count - 1) * f->bytes / m->member_count;
    double ring_s = 2 * rings_latency_s(f->platform, m);
    double tree_s = 2 * rings_tree_latency_s(f->platform, m);
    double alone_s = rings_transfer_s(f->platform, m, port_bytes);
    int64_t algorithm = f->work->all_reduce.algorithm;
    if (algorithm == ALGORITHM_AUTO && tree_s + alone_s / tree_efficiency < ring_s + alone_s)
        algorithm = ALGORITHM_TREE;
    bool tree = algorithm == ALGORITHM_TREE;
    rings_add_flows(f->platform, f->flows, m, tree ? port_bytes / tree_efficiency : port_bytes);
    return tree ? tree_s : ring_s;
}

/* Adds a pipelined chain from the root through all other members, or to the root for a sum; returns the latency. */
static double add_broadcast(const struct collective_call *f)
{
    rings_add_flows(f->platform, f->flows, f->members, f->bytes);
    return f->work->broadcast.algorithm == ALGORITHM_TREE
               ? rings_tree_latency_s(f->platform, f->members)
               : rings_latency_s(f->platform, f->members);
}

/* Adds a scatter: inside its domain the root sends as in an all-to-all; to each member of another domain it sends a
 * message. Returns the latency. */
static double add_scatter(const struct collective_call *f)
{
    const struct members *m = f->members;
    uint32_t root = f->members->ranks_by_group_index[f->work->broadcast.root];
    double piece = f->bytes / m->member_count;
    for (uint32_t d = 0; d < m->domain_count; d++) {
        const uint32_t *rank = m->ranks_grouped_by_domain + m->domain[d].begin;
        uint32_t at = 0;
        while (at < m->domain[d].count && rank[at] != root)
            at++;
        if (at < m->domain[d].count) {
            add_exchange_in_domain(f->platform, f->flows, m, d, at, piece, f->key);
            continue;
        }
        for (uint32_t i = 0; i < m->domain[d].count; i++)
            message_add_flow_between_domains(f->platform, f->flows, root, rank[i], piece, f->key,
                                             flow_cap_index(root, rank[i], CAP_PAIR));
    }
    return members_farthest_message_latency_s(f->platform, m);
}

/* Adds the messages of a shift around a ring, all of which start once all members have arrived.
 * Returns the highest latency of a message. */
static double add_shift(const struct collective_call *f)
{
    const struct members *m = f->members;
    double latency_s = 0;
    for (uint32_t i = 0; i < m->member_count; i++) {
        int64_t to = (i + f->work->p2p.by) % m->member_count;
        latency_s =
            fmax(latency_s,
                 message_add_flows(f->platform, f->flows, m->ranks_by_group_index[i],
                                   m->ranks_by_group_index[to < 0 ? to + m->member_count : to],
                                   f->bytes, m->member_count, f->key, i));
    }
    return latency_s;
}

static double (*const add_flows_of_kind[WORK_KIND_COUNT])(const struct collective_call *) = {
    [WORK_ALL_TO_ALL] = add_all_to_all,
    [WORK_ALL_GATHER] = add_all_gather,
    [WORK_REDUCE_SCATTER] = add_reduce_scatter,
    [WORK_ALL_REDUCE] = add_all_reduce,
    [WORK_REDUCE] = add_broadcast,
    [WORK_BROADCAST] = add_broadcast,
    [WORK_SCATTER] = add_scatter,
    [WORK_EXCHANGE] = add_exchange,
    [WORK_SHIFT] = add_shift,
};

double collective_add_flows(struct platform *platform, struct flow_table *flows,
                            const struct work *work, const struct members *members, uint32_t key,
                            const struct exchange_bytes *exchange)
{
    if (members->member_count < 2 || work->kind == WORK_BARRIER)
        return 0; /* no flows: the host's calls for a barrier are in its issue time */
    assert(add_flows_of_kind[work->kind]);
    if (platform->cluster->fabric.kind == FABRIC_LOOPBACK)
        return loopback_add_collective_flows(platform, flows, work, members->ranks_by_group_index,
                                             members->member_count, exchange);
    struct collective_call call = {
        platform, flows, work, members, key, (double)work_payload_bytes(work), exchange};
    double latency_s = add_flows_of_kind[work->kind](&call);
    return work->kind == WORK_SHIFT ? latency_s
                                    : latency_s + platform->cluster->fabric.collective_latency_s;
}
