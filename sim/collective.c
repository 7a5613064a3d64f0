#include "sim/collective.h"

#include "base/arena.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A path of n links costs SimGrid O(n^2) when it is made and O(n) per flow: beyond this many a
 * ring is one flow per domain, which ends with the slowest of them all the same. */
enum { RING_LINKS_MAX = 200 };

/* What a tree reaches of a ring's bandwidth in NCCL's own choice of algorithm (src/graph/tuning.cc,
 * the factor on the tree's bus bandwidth for protocol Simple). */
static const double tree_efficiency = 0.92;

static uint32_t domain_of(const struct platform *p, uint32_t rank)
{
    return (uint32_t)cluster_place(p->cluster, rank).domain;
}

/* ---- members by domain ---- */

struct span {
    uint32_t begin, count;
};

struct members {
    uint32_t count;
    uint32_t *rank; /* grouped by domain, in index order within one */
    uint32_t domain_count;
    struct span *domain;
    uint32_t largest; /* members of the largest domain */
};

static void members_init(struct members *m, const struct platform *p, const uint32_t *member,
                         uint32_t count)
{
    *m = (struct members){.count = count};
    m->rank = heap_alloc(count, sizeof *m->rank);
    m->domain = heap_alloc(count, sizeof *m->domain);
    uint32_t domains = (uint32_t)((p->cluster->nodes - 1) / p->cluster->domain_nodes + 1);
    uint32_t *row = heap_zalloc(domains, sizeof *row); /* 1 + row of the domain */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *r = &row[domain_of(p, member[i])];
        if (*r == 0) {
            m->domain[m->domain_count] = (struct span){0, 0};
            *r = ++m->domain_count;
        }
        m->domain[*r - 1].count++;
    }
    for (uint32_t d = 0, begin = 0; d < m->domain_count; begin += m->domain[d++].count) {
        m->domain[d].begin = begin;
        if (m->domain[d].count > m->largest)
            m->largest = m->domain[d].count;
    }
    uint32_t *next = heap_zalloc(m->domain_count, sizeof *next);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = row[domain_of(p, member[i])] - 1;
        m->rank[m->domain[d].begin + next[d]++] = member[i];
    }
    free(next);
    free(row);
}

static void members_release(struct members *m)
{
    free(m->rank);
    free(m->domain);
}

/* ---- rings ---- */

/* Every port that the rings inside one domain use. On a mesh the library lays count - 1 rings
 * side by side, so that every pair's link carries its part. */
static void add_domain_ring(struct platform *p, struct flow_table *flows, const uint32_t *rank,
                            uint32_t count)
{
    if (p->cluster->fabric.kind == FABRIC_MESH) {
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t j = 0; j < count; j++)
                if (i != j)
                    route_fabric(p, flows, rank[i], rank[j]);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        route_fabric(p, flows, rank[i], rank[(i + 1) % count]);
}

static void add_fabric_rings(struct platform *p, struct flow_table *flows, const struct members *m,
                             double bytes)
{
    bool mesh = p->cluster->fabric.kind == FABRIC_MESH;
    bool apart = mesh || 2 * m->count > RING_LINKS_MAX;
    bool open = false;
    for (uint32_t d = 0; d < m->domain_count; d++) {
        uint32_t count = m->domain[d].count;
        if (count < 2)
            continue;
        if (!open)
            flow_open(flows, bytes / p->cluster->fabric.efficiency / (mesh ? count - 1 : 1));
        open = !apart;
        add_domain_ring(p, flows, m->rank + m->domain[d].begin, count);
        if (apart)
            flow_close(flows);
    }
    if (open)
        flow_close(flows);
}

/* The first member of each distinct NIC of a domain, in member order; how many. */
static uint32_t exits_of(const struct platform *p, const struct members *m, uint32_t d,
                         uint32_t *exit_rank)
{
    const struct cluster *c = p->cluster;
    const uint32_t *rank = m->rank + m->domain[d].begin;
    uint32_t exits = 0;
    for (uint32_t i = 0; i < m->domain[d].count; i++) {
        struct cluster_place at = cluster_place(c, rank[i]);
        bool seen = false;
        for (uint32_t k = 0; k < exits && !seen; k++) {
            struct cluster_place other = cluster_place(c, exit_rank[k]);
            seen = other.node == at.node && c->nic_of_gpu[other.gpu] == c->nic_of_gpu[at.gpu];
        }
        if (!seen)
            exit_rank[exits++] = rank[i];
    }
    return exits;
}

/* The library builds one ring per NIC, each leaving the domains through another of them, so the
 * domain with the fewest NICs says how many rings there are. Row d of exit_rank[][largest] holds
 * the members through which they leave domain d. */
static uint32_t ring_exits(const struct platform *p, const struct members *m, uint32_t *exit_rank)
{
    uint32_t rings = UINT32_MAX;
    for (uint32_t d = 0; d < m->domain_count; d++) {
        uint32_t exits = exits_of(p, m, d, exit_rank + (size_t)d * m->largest);
        if (exits < rings)
            rings = exits;
    }
    return rings;
}

static uint32_t *new_exits(const struct members *m)
{
    return heap_alloc((size_t)m->domain_count * m->largest, sizeof(uint32_t));
}

static void add_nic_rings(struct platform *p, struct flow_table *flows, const struct members *m,
                          double bytes)
{
    uint32_t *exit_rank = new_exits(m);
    uint32_t rings = ring_exits(p, m, exit_rank);
    bool apart = 4 * rings * m->domain_count > RING_LINKS_MAX;
    for (uint32_t d = 0; d < m->domain_count; d++) {
        if (apart || d == 0)
            flow_open(flows, bytes / rings);
        for (uint32_t k = 0; k < rings; k++) {
            route_nic_out(p, flows, exit_rank[(size_t)d * m->largest + k]);
            route_nic_in(p, flows, exit_rank[(size_t)d * m->largest + k]);
        }
        if (apart || d + 1 == m->domain_count)
            flow_close(flows);
    }
    /* Domains stand in the order of their leaves, so each leaf is left and entered once per ring;
     * with rails every ring has leaves of its own. */
    flow_open(flows, p->cluster->network.rails ? bytes / rings : bytes);
    for (uint32_t d = 0; d < m->domain_count; d++)
        for (uint32_t k = 0; k < rings; k++) {
            uint32_t from = exit_rank[(size_t)d * m->largest + k];
            uint32_t to = exit_rank[(size_t)((d + 1) % m->domain_count) * m->largest + k];
            if (platform_crosses_leaves(p, from, to)) {
                route_leaf_up(p, flows, from);
                route_leaf_down(p, flows, to);
            }
        }
    flow_close(flows);
    free(exit_rank);
}

static void add_rings(struct platform *p, struct flow_table *flows, const struct members *m,
                      double bytes)
{
    add_fabric_rings(p, flows, m, bytes);
    if (m->domain_count > 1)
        add_nic_rings(p, flows, m, bytes);
}

/* A piece passes count - 1 hops, of which one per further domain goes through NICs. */
static double ring_latency_s(const struct platform *p, const struct members *m)
{
    return (m->count - m->domain_count) * platform_latency_s(p, false) +
           (m->domain_count - 1) * platform_latency_s(p, true);
}

/* Towards the root: a chain inside each domain, a binary tree between them. */
static double tree_latency_s(const struct platform *p, const struct members *m)
{
    return (m->largest - 1) * platform_latency_s(p, false) +
           ceil(log2(m->domain_count)) * platform_latency_s(p, true);
}

static double direct_latency_s(const struct platform *p, const struct members *m)
{
    return platform_latency_s(p, m->domain_count > 1);
}

/* Time of a ring's bytes when nothing else uses the ports. */
static double ring_bytes_s(const struct platform *p, const struct members *m, double bytes)
{
    const struct cluster *c = p->cluster;
    double fabric = c->fabric.bytes_per_s * c->fabric.efficiency *
                    (c->fabric.kind == FABRIC_MESH ? m->largest - 1 : 1);
    double seconds = m->largest > 1 && fabric > 0 ? bytes / fabric : 0;
    if (m->domain_count > 1) {
        uint32_t *exit_rank = new_exits(m);
        double nics = ring_exits(p, m, exit_rank) * c->nic.bytes_per_s * c->nic.efficiency;
        free(exit_rank);
        if (bytes / nics > seconds)
            seconds = bytes / nics;
    }
    return seconds;
}

/* ---- all-to-all ---- */

/* The peers of one domain, by what lies between. */
enum { NEAR_SWITCH, NEAR_SOCKET, NEAR_FAR, NEAR_COUNT };

static int nearness(const struct platform *p, uint32_t a, uint32_t b)
{
    const struct cluster *c = p->cluster;
    if (c->fabric.kind != FABRIC_PCIE)
        return NEAR_SWITCH;
    int64_t switch_a = c->switch_of_gpu[cluster_place(c, a).gpu];
    int64_t switch_b = c->switch_of_gpu[cluster_place(c, b).gpu];
    if (switch_a == switch_b)
        return NEAR_SWITCH;
    return c->socket_of_switch[switch_a] == c->socket_of_switch[switch_b] ? NEAR_SOCKET : NEAR_FAR;
}

/* Caps of one group's flows are told apart by the rank and what it talks to. */
enum { CAP_PAIR, CAP_NEAR, CAP_NETWORK = CAP_NEAR + NEAR_COUNT, CAP_STRIDE = CAP_NETWORK + 2 };

static uint32_t cap_index(uint32_t rank, uint32_t peer_or_zero, int what)
{
    return what == CAP_PAIR ? 0x80000000u | (rank * 1024u + peer_or_zero)
                            : rank * CAP_STRIDE + (uint32_t)what;
}

/* What limits a member's flow to `peers` peers of its domain, on a port of so much overhead: what one
 * pair reaches, and the channels, which copy the member's own piece as well. */
static double exchange_cap(const struct fabric *fabric, uint32_t peers, double overhead)
{
    double pairs = peers * fabric->all_to_all_peer_bytes_per_s;
    double channels = fabric->all_to_all_channels_bytes_per_s * peers / (peers + 1.0);
    return (channels > 0 && channels < pairs ? channels : pairs) * overhead;
}

/* One flow per pair on a mesh, else one per member and nearness over the member's own ports. */
static void add_exchange_in_domain(struct platform *p, struct flow_table *flows,
                                   const struct members *m, uint32_t d, uint32_t i, double piece,
                                   uint32_t key)
{
    const struct fabric *fabric = &p->cluster->fabric;
    const uint32_t *rank = m->rank + m->domain[d].begin;
    double overhead = 1 / fabric->all_to_all_efficiency;
    uint32_t peers[NEAR_COUNT] = {0}, peer[NEAR_COUNT] = {0};
    for (uint32_t j = 0; j < m->domain[d].count; j++) {
        if (j == i)
            continue;
        if (fabric->kind == FABRIC_MESH) {
            flow_open(flows, piece * overhead);
            route_exchange(p, flows, rank[i], rank[j]);
            route_link(p, flows, LINK_CAP, key, cap_index(rank[i], j, CAP_PAIR),
                       fabric->all_to_all_peer_bytes_per_s * overhead);
            flow_close(flows);
            continue;
        }
        int near = nearness(p, rank[i], rank[j]);
        peers[near]++;
        peer[near] = rank[j];
    }
    for (int near = 0; near < NEAR_COUNT; near++) {
        if (peers[near] == 0)
            continue;
        flow_open(flows, peers[near] * piece * overhead);
        route_exchange(p, flows, rank[i], peer[near]);
        route_link(p, flows, LINK_CAP, key, cap_index(rank[i], 0, CAP_NEAR + near),
                   exchange_cap(fabric, peers[near], overhead));
        flow_close(flows);
    }
}

/* A member's bytes to and from all other domains: out of and into its own NIC at one rate; a flow
 * of its own for those that cross the leaves. */
static void add_exchange_between_domains(struct platform *p, struct flow_table *flows,
                                         const struct members *m, uint32_t d, uint32_t me,
                                         double piece, uint32_t key)
{
    uint32_t peers[2] = {0};
    for (uint32_t e = 0; e < m->domain_count; e++)
        if (e != d)
            peers[platform_crosses_leaves(p, me, m->rank[m->domain[e].begin])] +=
                m->domain[e].count;
    for (int across = 0; across < 2; across++) {
        if (peers[across] == 0)
            continue;
        flow_open(flows, peers[across] * piece);
        route_nic_out(p, flows, me);
        route_nic_in(p, flows, me);
        if (across) {
            route_leaf_up(p, flows, me);
            route_leaf_down(p, flows, me);
        }
        route_link(p, flows, LINK_CAP, key, cap_index(me, 0, CAP_NETWORK + across),
                   peers[across] * p->cluster->nic.peer_bytes_per_s);
        flow_close(flows);
    }
}

/* From one member to one of another domain. */
static void add_network_piece(struct platform *p, struct flow_table *flows, uint32_t from,
                              uint32_t to, double bytes, uint32_t key)
{
    flow_open(flows, bytes);
    route_nic_out(p, flows, from);
    route_nic_in(p, flows, to);
    if (platform_crosses_leaves(p, from, to)) {
        route_leaf_up(p, flows, from);
        route_leaf_down(p, flows, to);
    }
    route_link(p, flows, LINK_CAP, key, cap_index(from, to, CAP_PAIR),
               p->cluster->nic.peer_bytes_per_s);
    flow_close(flows);
}

/* ---- kinds ---- */

struct form {
    struct platform *platform;
    struct flow_table *flows;
    const struct work *work;
    const struct members *members;
    const uint32_t *member; /* in the order of their index */
    uint32_t key;
    double bytes; /* send buffer of one rank */
};

/* Channels take one peer after another: what they do inside the domains is not hidden behind the
 * messages between them. */
static double in_turn_s(const struct form *f)
{
    double channels = f->platform->cluster->fabric.all_to_all_channels_bytes_per_s;
    if (f->members->domain_count == 1 || !(channels > 0))
        return 0;
    return f->bytes * f->members->largest / f->members->count / channels;
}

static double all_to_all(const struct form *f)
{
    const struct members *m = f->members;
    for (uint32_t d = 0; d < m->domain_count; d++)
        for (uint32_t i = 0; i < m->domain[d].count; i++) {
            uint32_t me = m->rank[m->domain[d].begin + i];
            double piece = f->bytes / m->count;
            add_exchange_in_domain(f->platform, f->flows, m, d, i, piece, f->key);
            add_exchange_between_domains(f->platform, f->flows, m, d, me, piece, f->key);
        }
    return direct_latency_s(f->platform, m) + in_turn_s(f);
}

/* What is gathered leaves and enters every port once, but for the port's own part. */
static double gather(const struct form *f, double port_bytes)
{
    add_rings(f->platform, f->flows, f->members, port_bytes);
    return f->work->collective.algorithm == ALGORITHM_DIRECT
               ? direct_latency_s(f->platform, f->members)
               : ring_latency_s(f->platform, f->members);
}

static double all_gather(const struct form *f)
{
    return gather(f, (f->members->count - 1) * f->bytes);
}

static double reduce_scatter(const struct form *f)
{
    return gather(f, (f->members->count - 1) * f->bytes / f->members->count);
}

static double all_reduce(const struct form *f)
{
    const struct members *m = f->members;
    double port_bytes = 2 * (m->count - 1) * f->bytes / m->count;
    double ring_s = 2 * ring_latency_s(f->platform, m);
    double tree_s = 2 * tree_latency_s(f->platform, m);
    double alone_s = ring_bytes_s(f->platform, m, port_bytes);
    int64_t algorithm = f->work->all_reduce.algorithm;
    if (algorithm == ALGORITHM_AUTO && tree_s + alone_s / tree_efficiency < ring_s + alone_s)
        algorithm = ALGORITHM_TREE;
    bool tree = algorithm == ALGORITHM_TREE;
    add_rings(f->platform, f->flows, m, tree ? port_bytes / tree_efficiency : port_bytes);
    return tree ? tree_s : ring_s;
}

/* A chain from the root through all others, pipelined. */
static double broadcast(const struct form *f)
{
    add_rings(f->platform, f->flows, f->members, f->bytes);
    return f->work->broadcast.algorithm == ALGORITHM_TREE ? tree_latency_s(f->platform, f->members)
                                                          : ring_latency_s(f->platform, f->members);
}

/* The root's part of an all-to-all inside its domain; to each member of another a message. */
static double scatter(const struct form *f)
{
    const struct members *m = f->members;
    uint32_t root = f->member[f->work->broadcast.root];
    double piece = f->bytes / m->count;
    for (uint32_t d = 0; d < m->domain_count; d++) {
        const uint32_t *rank = m->rank + m->domain[d].begin;
        uint32_t at = 0;
        while (at < m->domain[d].count && rank[at] != root)
            at++;
        if (at < m->domain[d].count) {
            add_exchange_in_domain(f->platform, f->flows, m, d, at, piece, f->key);
            continue;
        }
        for (uint32_t i = 0; i < m->domain[d].count; i++)
            add_network_piece(f->platform, f->flows, root, rank[i], piece, f->key);
    }
    return direct_latency_s(f->platform, m);
}

/* Messages round a ring that start when all members are there. */
static double shift_together(const struct form *f)
{
    const struct members *m = f->members;
    double latency_s = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        int64_t to = (i + f->work->p2p.by) % m->count;
        struct transfer message =
            message_make(f->platform, f->flows, f->member[i],
                         f->member[to < 0 ? to + m->count : to], f->bytes, m->count, f->key, i);
        latency_s = message.latency_s > latency_s ? message.latency_s : latency_s;
    }
    return latency_s;
}

static double barrier(const struct form *f)
{
    (void)f;
    return 0; /* what the host calls take is in their issue time */
}

static double (*const forms[WORK_KIND_COUNT])(const struct form *) = {
    [WORK_ALL_TO_ALL] = all_to_all,         [WORK_ALL_GATHER] = all_gather,
    [WORK_REDUCE_SCATTER] = reduce_scatter, [WORK_ALL_REDUCE] = all_reduce,
    [WORK_BROADCAST] = broadcast,           [WORK_BARRIER] = barrier,
    [WORK_SHIFT] = shift_together,          [WORK_SCATTER] = scatter,
};

struct transfer collective_make(struct platform *platform, struct flow_table *flows,
                                const struct work *work, const uint32_t *member, uint32_t count,
                                uint32_t key)
{
    struct transfer transfer = {.flow_begin = flows->count};
    assert(forms[work->kind]);
    if (count < 2)
        return transfer;
    if (platform->cluster->fabric.kind == FABRIC_LOOPBACK && work->kind != WORK_BARRIER)
        return loopback_collective(platform, flows, work, member, count);
    struct members members;
    members_init(&members, platform, member, count);
    struct form form = {
        platform, flows, work, &members, member, key, (double)work_payload_bytes(work)};
    transfer.latency_s = forms[work->kind](&form);
    members_release(&members);
    transfer.flow_count = flows->count - transfer.flow_begin;
    return transfer;
}

/* ---- one sender, one receiver ---- */

/* NCCL gives a send or receive channels in inverse proportion to the ranks of its communicator, so
 * that an exchange with all of them uses each once or a few times (src/enqueue.cc). */
static double pair_bytes_per_s(const struct fabric *fabric, uint32_t ranks)
{
    double reached = fabric->peer_bytes_per_s, most = fabric->all_to_all_peer_bytes_per_s;
    if (ranks == 0 || fabric->peer_ranks <= ranks)
        return reached;
    reached *= (double)fabric->peer_ranks / ranks;
    return reached < most ? reached : most;
}

struct transfer message_make(struct platform *platform, struct flow_table *flows, uint32_t from,
                             uint32_t to, double bytes, uint32_t ranks, uint32_t key,
                             uint32_t number)
{
    struct transfer transfer = {.flow_begin = flows->count};
    const struct cluster *c = platform->cluster;
    if (from == to)
        return transfer;
    if (c->fabric.kind == FABRIC_LOOPBACK)
        return loopback_message(platform, flows, to, bytes);
    bool between = domain_of(platform, from) != domain_of(platform, to);
    transfer.latency_s = platform_latency_s(platform, between) +
                         (between ? c->nic.peer_latency_s : c->fabric.peer_latency_s);
    if (between) {
        flow_open(flows, bytes);
        route_link(platform, flows, LINK_CAP, key, number, c->nic.peer_bytes_per_s);
        route_nic_out(platform, flows, from);
        if (platform_crosses_leaves(platform, from, to)) {
            route_leaf_up(platform, flows, from);
            route_leaf_down(platform, flows, to);
        }
        route_nic_in(platform, flows, to);
    } else {
        flow_open(flows, bytes / c->fabric.efficiency);
        route_link(platform, flows, LINK_CAP, key, number,
                   pair_bytes_per_s(&c->fabric, ranks) / c->fabric.efficiency);
        route_fabric(platform, flows, from, to);
    }
    flow_close(flows);
    transfer.flow_count = flows->count - transfer.flow_begin;
    return transfer;
}

struct transfer copy_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                          double bytes, bool to_device, bool pageable)
{
    struct transfer transfer = {platform->cluster->pcie.latency_s, flows->count, 0};
    flow_open(flows, bytes);
    route_copy(platform, flows, rank, to_device, pageable);
    flow_close(flows);
    transfer.flow_count = flows->count - transfer.flow_begin;
    return transfer;
}

struct transfer host_work_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                               double bytes, double alone_s, uint32_t key, uint32_t variant)
{
    struct transfer transfer = {0, flows->count, 0};
    flow_open(flows, bytes);
    route_link(platform, flows, LINK_CAP, key, variant, bytes / alone_s);
    route_host_work(platform, flows, rank);
    flow_close(flows);
    transfer.flow_count = flows->count - transfer.flow_begin;
    return transfer;
}

struct transfer kernel_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                            double alone_s, bool by_memory)
{
    struct transfer transfer = {0, flows->count, 0};
    uint32_t device = platform_device(platform, rank);
    flow_open(flows, alone_s * device_time_per_s);
    route_link(platform, flows, LINK_KERNELS, device, 0, device_time_per_s);
    if (by_memory && platform->cluster->fabric.kind == FABRIC_LOOPBACK)
        route_link(platform, flows, LINK_DEVICE, device, 0, device_time_per_s);
    flow_close(flows);
    transfer.flow_count = flows->count - transfer.flow_begin;
    return transfer;
}
