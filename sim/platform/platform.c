#include "sim/platform/platform.h"

#include "base/arena.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void platform_release(struct platform *platform)
{
    free(platform->bytes_per_s);
    free(platform->link);
    for (int kind = 0; kind < LINK_KIND_COUNT; kind++)
        free(platform->of_kind[kind].first_link);
    *platform = (struct platform){0};
}

void flow_table_release(struct flow_table *flows)
{
    free(flows->bytes);
    free(flows->link_begin);
    free(flows->link);
    *flows = (struct flow_table){0};
}

/* ---- links by (kind, owner, part) ---- */

/* The links of a kind are kept in lists. Returns the number of the list of the link with owner a and part b: the owner;
 * for the cap of a rank's flow to one peer, the rank; for another cap, the cap's number. */
static uint32_t link_owner_index(enum link_kind kind, uint32_t a, uint32_t b)
{
    if (kind != LINK_RATE_CAP_OF_FLOW)
        return a;
    return b & PLATFORM_RANK_PAIR_CAP_BIT ? (b & ~PLATFORM_RANK_PAIR_CAP_BIT) / PLATFORM_CAP_PEERS
                                          : b;
}

static uint32_t *first_link_slot_of_owner(struct platform *p, enum link_kind kind, uint32_t index)
{
    struct links_of_kind *of = &p->of_kind[kind];
    if (index >= of->capacity) {
        uint32_t old = of->capacity;
        of->capacity = (uint32_t)heap_next_capacity(old, (size_t)index + 1);
        of->first_link = heap_realloc(of->first_link, of->capacity, sizeof *of->first_link);
        memset(of->first_link + old, 0xff, (of->capacity - old) * sizeof *of->first_link);
    }
    return &of->first_link[index];
}

static uint32_t find_or_add_link(struct platform *p, enum link_kind kind, uint32_t a, uint32_t b,
                                 double bytes_per_s)
{
    uint32_t *first = first_link_slot_of_owner(p, kind, link_owner_index(kind, a, b));
    for (uint32_t i = *first; i != UINT32_MAX; i = p->link[i].next)
        if (p->link[i].owner == a && p->link[i].part == b)
            return i;
    size_t capacity = p->allocated_link_count;
    p->bytes_per_s =
        heap_grow(p->bytes_per_s, &capacity, p->link_count + 1u, sizeof *p->bytes_per_s);
    p->link = heap_grow(p->link, &p->allocated_link_count, p->link_count + 1u, sizeof *p->link);
    p->bytes_per_s[p->link_count] = bytes_per_s;
    p->link[p->link_count] = (struct platform_link){(uint8_t)kind, a, b, *first};
    *first = p->link_count;
    return p->link_count++;
}

/* ---- flows ---- */

void flow_open(struct flow_table *flows, double bytes)
{
    size_t capacity = flows->flow_capacity;
    flows->bytes = heap_grow(flows->bytes, &capacity, flows->flow_count + 2u, sizeof *flows->bytes);
    flows->link_begin = heap_grow(flows->link_begin, &flows->flow_capacity, flows->flow_count + 2u,
                                  sizeof *flows->link_begin);
    flows->bytes[flows->flow_count] = bytes;
    flows->link_begin[flows->flow_count++] = flows->link_count;
    flows->link_begin[flows->flow_count] = flows->link_count;
}

void flow_close(struct flow_table *flows)
{
    uint32_t last = flows->flow_count - 1;
    if (flows->bytes[last] > 0 && flows->link_begin[last] < flows->link_count)
        return;
    flows->link_count = flows->link_begin[last];
    flows->flow_count = last;
}

void route_add_link(struct platform *platform, struct flow_table *flows, enum link_kind kind,
                    uint32_t a, uint32_t b, double bytes_per_s)
{
    if (!(bytes_per_s > 0) || isinf(bytes_per_s))
        return;
    uint32_t id = find_or_add_link(platform, kind, a, b, bytes_per_s);
    for (uint32_t i = flows->link_begin[flows->flow_count - 1]; i < flows->link_count; i++)
        if (flows->link[i] == id)
            return;
    flows->link = heap_grow(flows->link, &flows->allocated_link_count, flows->link_count + 1u,
                            sizeof *flows->link);
    flows->link[flows->link_count++] = id;
    flows->link_begin[flows->flow_count] = flows->link_count;
}

/* ---- routes to and from GPUs, NICs and memories ---- */

static uint32_t node_of_rank(const struct platform *p, uint32_t rank)
{
    return (uint32_t)cluster_place_of_rank(p->cluster, rank).node;
}

static int64_t gpu_of_rank(const struct platform *p, uint32_t rank)
{
    return cluster_place_of_rank(p->cluster, rank).gpu;
}

uint32_t platform_lowest_rank_on_gpu(const struct platform *platform, uint32_t rank)
{
    bool shared = platform->cluster->fabric.kind == FABRIC_LOOPBACK;
    return shared ? rank - (uint32_t)gpu_of_rank(platform, rank) : rank;
}

static void add_pcie_uplink_to_flow(struct platform *p, struct flow_table *flows, bool up,
                                    uint32_t node, int64_t pcie_switch)
{
    route_add_link(p, flows, up ? LINK_PCIE_UPLINK_UP : LINK_PCIE_UPLINK_DOWN, node,
                   (uint32_t)pcie_switch, p->cluster->pcie.pcie_switch_uplink_bytes_per_s);
}

/* Adds the link from the socket of one PCIe switch of a node to that of another, if they differ. */
static void add_route_between_sockets(struct platform *p, struct flow_table *flows, uint32_t node,
                                      int64_t from, int64_t to)
{
    const struct cluster *c = p->cluster;
    int64_t from_socket = c->socket_of_switch[from], to_socket = c->socket_of_switch[to];
    if (from_socket != to_socket)
        route_add_link(p, flows, LINK_BETWEEN_SOCKETS, node,
                       (uint32_t)(from_socket * 256 + to_socket), c->host.socket_link_bytes_per_s);
}

/* Adds the links from one PCIe switch of a node to another: none within one switch, else the two uplinks, and the
 * link between sockets if the switches are on different ones. */
static void add_route_between_pcie_switches(struct platform *p, struct flow_table *flows,
                                            uint32_t node, int64_t from, int64_t to)
{
    if (from == to)
        return;
    add_pcie_uplink_to_flow(p, flows, true, node, from);
    add_route_between_sockets(p, flows, node, from, to);
    add_pcie_uplink_to_flow(p, flows, false, node, to);
}

static void add_pcie_lanes_to_flow(struct platform *p, struct flow_table *flows, bool up,
                                   uint32_t rank)
{
    route_add_link(p, flows, up ? LINK_PCIE_LANES_UP : LINK_PCIE_LANES_DOWN,
                   platform_lowest_rank_on_gpu(p, rank), 0, p->cluster->pcie.nominal_bytes_per_s);
}

void route_add_fabric(struct platform *platform, struct flow_table *flows, uint32_t from,
                      uint32_t to)
{
    const struct cluster *c = platform->cluster;
    double bytes_per_s = c->fabric.bytes_per_s;
    switch (c->fabric.kind) {
    case FABRIC_SWITCH:
        route_add_link(platform, flows, LINK_FABRIC_OUT, from, 0, bytes_per_s);
        route_add_link(platform, flows, LINK_FABRIC_IN, to, 0, bytes_per_s);
        break;
    case FABRIC_MESH:
        route_add_link(platform, flows, LINK_MESH_PAIR, from, to, bytes_per_s);
        break;
    case FABRIC_LOOPBACK: /* is not reached: sim/platform/loopback.c adds its flows */
    case FABRIC_PCIE:
    default:
        add_pcie_lanes_to_flow(platform, flows, true, from);
        add_route_between_pcie_switches(platform, flows, node_of_rank(platform, from),
                                        c->switch_of_gpu[gpu_of_rank(platform, from)],
                                        c->switch_of_gpu[gpu_of_rank(platform, to)]);
        add_pcie_lanes_to_flow(platform, flows, false, to);
        break;
    }
}

/* With FABRIC_PCIE, the GPU's own links are its lanes and, if the peer is on another PCIe switch, the uplink of its
 * switch, both in both directions. Of the two directions between sockets it adds only that towards the peer. */
void route_add_exchange_with_peer(struct platform *platform, struct flow_table *flows,
                                  uint32_t rank, uint32_t peer)
{
    const struct cluster *c = platform->cluster;
    if (c->fabric.kind != FABRIC_PCIE) {
        route_add_fabric(platform, flows, rank, c->fabric.kind == FABRIC_MESH ? peer : rank);
        return;
    }
    uint32_t node = node_of_rank(platform, rank);
    int64_t own = c->switch_of_gpu[gpu_of_rank(platform, rank)];
    int64_t other = c->switch_of_gpu[gpu_of_rank(platform, peer)];
    add_pcie_lanes_to_flow(platform, flows, true, rank);
    add_pcie_lanes_to_flow(platform, flows, false, rank);
    if (own == other)
        return;
    add_pcie_uplink_to_flow(platform, flows, true, node, own);
    add_pcie_uplink_to_flow(platform, flows, false, node, own);
    add_route_between_sockets(platform, flows, node, own, other);
}

/* Adds the links between a GPU and its NIC. A NIC with GPUDirect reads the GPU's memory over the GPU's PCIe lanes.
 * Without it the bytes pass through host memory, at nic.staged_bandwidth for one GPU, and count once on the link of
 * host memory, although they are written and read there. A flow for both directions counts once on it, too
 * (docs/simulation.md, "Platform"). */
void route_add_nic(struct platform *p, struct flow_table *flows, uint32_t rank, bool out)
{
    const struct cluster *c = p->cluster;
    uint32_t node = node_of_rank(p, rank);
    int64_t gpu = gpu_of_rank(p, rank), nic = c->nic_of_gpu[gpu];
    int64_t gpu_switch = c->switch_of_gpu[gpu], nic_switch = c->switch_of_nic[nic];
    int64_t from = out ? gpu_switch : nic_switch, to = out ? nic_switch : gpu_switch;
    add_pcie_lanes_to_flow(p, flows, out, rank);
    if (c->nic.gpudirect) {
        add_route_between_pcie_switches(p, flows, node, from, to);
    } else {
        route_add_link(p, flows, out ? LINK_NIC_STAGED_OUT : LINK_NIC_STAGED_IN, rank, 0,
                       c->nic.host_staged_bytes_per_s);
        add_pcie_uplink_to_flow(p, flows, true, node, from);
        route_add_host_memory(p, flows, rank);
        add_route_between_sockets(p, flows, node, from, to);
        add_pcie_uplink_to_flow(p, flows, false, node, to);
    }
    route_add_link(p, flows, out ? LINK_NIC_OUT : LINK_NIC_IN, node, (uint32_t)nic,
                   c->nic.bytes_per_s * c->nic.efficiency);
}

/* Returns the leaf switch of a rank. With rails, every NIC of a group of nodes has a leaf of its own. Traffic stays on
 * its rail, since NCCL first moves the data to another GPU inside the node; so it crosses leaves only to other groups
 * of nodes. */
static uint32_t leaf_switch_of_rank(const struct platform *p, uint32_t rank)
{
    const struct cluster *c = p->cluster;
    int64_t group = node_of_rank(p, rank) / c->network.nodes_per_leaf_switch;
    return (uint32_t)(c->network.has_rails
                          ? group * c->nic.count + c->nic_of_gpu[gpu_of_rank(p, rank)]
                          : group);
}

bool platform_crosses_leaves(const struct platform *platform, uint32_t from, uint32_t to)
{
    const struct network *network = &platform->cluster->network;
    return network->nodes_per_leaf_switch > 0 && network->oversubscription > 1 &&
           node_of_rank(platform, from) / network->nodes_per_leaf_switch !=
               node_of_rank(platform, to) / network->nodes_per_leaf_switch;
}

void route_add_leaf(struct platform *platform, struct flow_table *flows, uint32_t rank, bool up)
{
    const struct cluster *c = platform->cluster;
    double nics = (double)c->network.nodes_per_leaf_switch *
                  (c->network.has_rails ? 1.0 : (double)c->nic.count);
    route_add_link(platform, flows, up ? LINK_LEAF_UP : LINK_LEAF_DOWN,
                   leaf_switch_of_rank(platform, rank), 0,
                   nics * c->nic.bytes_per_s * c->nic.efficiency / c->network.oversubscription);
}

void route_add_copy(struct platform *platform, struct flow_table *flows, uint32_t rank,
                    bool to_device, bool pageable)
{
    const struct cluster *c = platform->cluster;
    route_add_link(platform, flows, to_device ? LINK_COPY_H2D : LINK_COPY_D2H,
                   platform_lowest_rank_on_gpu(platform, rank), 0,
                   to_device ? c->pcie.h2d_bytes_per_s : c->pcie.d2h_bytes_per_s);
    route_add_link(platform, flows, LINK_COPY_BOTH, platform_lowest_rank_on_gpu(platform, rank), 0,
                   c->pcie.both_ways_total_bytes_per_s);
    if (pageable)
        route_add_link(platform, flows, to_device ? LINK_PAGEABLE_H2D : LINK_PAGEABLE_D2H, rank, 0,
                       to_device ? c->host.h2d_from_pageable_bytes_per_s
                                 : c->host.d2h_to_pageable_bytes_per_s);
    add_pcie_lanes_to_flow(platform, flows, !to_device, rank);
    add_pcie_uplink_to_flow(platform, flows, !to_device, node_of_rank(platform, rank),
                            c->switch_of_gpu[gpu_of_rank(platform, rank)]);
    route_add_host_memory(platform, flows, rank);
}

void route_add_host_memory(struct platform *platform, struct flow_table *flows, uint32_t rank)
{
    const struct cluster *c = platform->cluster;
    route_add_link(platform, flows, LINK_HOST_MEMORY, node_of_rank(platform, rank),
                   (uint32_t)cluster_socket_of_gpu(c, gpu_of_rank(platform, rank)),
                   c->host.memory_bytes_per_s);
}

double platform_latency_s(const struct platform *platform, bool between_domains)
{
    const struct cluster *c = platform->cluster;
    return between_domains ? c->nic.latency_s + c->nic.message_latency_s : c->fabric.latency_s;
}

/* ---- names ---- */

enum owner { OWNER_RANK, OWNER_PAIR, OWNER_NODE, OWNER_SOCKETS, OWNER_LEAF, OWNER_FLOW };

static const struct {
    enum owner owner;
    const char *text;
} link_names[LINK_KIND_COUNT] = {
    [LINK_FABRIC_OUT] = {OWNER_RANK, "fabric out"},
    [LINK_FABRIC_IN] = {OWNER_RANK, "fabric in"},
    [LINK_DEVICE_MEMORY] = {OWNER_RANK, "memory"},
    [LINK_MESH_PAIR] = {OWNER_PAIR, "fabric"},
    [LINK_PCIE_LANES_UP] = {OWNER_RANK, "pcie lanes up"},
    [LINK_PCIE_LANES_DOWN] = {OWNER_RANK, "pcie lanes down"},
    [LINK_PCIE_UPLINK_UP] = {OWNER_NODE, "pcie switch %u uplink up"},
    [LINK_PCIE_UPLINK_DOWN] = {OWNER_NODE, "pcie switch %u uplink down"},
    [LINK_HOST_MEMORY] = {OWNER_NODE, "socket %u memory"},
    [LINK_BETWEEN_SOCKETS] = {OWNER_SOCKETS, NULL},
    [LINK_NIC_OUT] = {OWNER_NODE, "nic %u out"},
    [LINK_NIC_IN] = {OWNER_NODE, "nic %u in"},
    [LINK_NIC_STAGED_OUT] = {OWNER_RANK, "to its nic through host memory"},
    [LINK_NIC_STAGED_IN] = {OWNER_RANK, "from its nic through host memory"},
    [LINK_LEAF_UP] = {OWNER_LEAF, "up"},
    [LINK_LEAF_DOWN] = {OWNER_LEAF, "down"},
    [LINK_COPY_H2D] = {OWNER_RANK, "copy engine h2d"},
    [LINK_COPY_D2H] = {OWNER_RANK, "copy engine d2h"},
    [LINK_COPY_BOTH] = {OWNER_RANK, "copies both ways"},
    [LINK_PAGEABLE_H2D] = {OWNER_RANK, "pageable copies h2d"},
    [LINK_PAGEABLE_D2H] = {OWNER_RANK, "pageable copies d2h"},
    [LINK_GPU_PROCESSORS] = {OWNER_RANK, "processors"},
    [LINK_RATE_CAP_OF_FLOW] = {OWNER_FLOW, "cap"},
};

size_t platform_link_name(const struct platform *platform, uint32_t link, char *text, size_t size)
{
    const struct platform_link *l = &platform->link[link];
    const char *name = link_names[l->kind].text;
    int length = 0;
    switch (link_names[l->kind].owner) {
    case OWNER_RANK:
        length = snprintf(text, size, "node %u gpu %lld %s", node_of_rank(platform, l->owner),
                          (long long)gpu_of_rank(platform, l->owner), name);
        break;
    case OWNER_PAIR:
        length = snprintf(
            text, size, "node %u gpu %lld %s to node %u gpu %lld", node_of_rank(platform, l->owner),
            (long long)gpu_of_rank(platform, l->owner), name, node_of_rank(platform, l->part),
            (long long)gpu_of_rank(platform, l->part));
        break;
    case OWNER_NODE: {
        char part[64];
        snprintf(part, sizeof part, name, l->part);
        length = snprintf(text, size, "node %u %s", l->owner, part);
        break;
    }
    case OWNER_SOCKETS:
        length = snprintf(text, size, "node %u socket %u to socket %u", l->owner, l->part / 256,
                          l->part % 256);
        break;
    case OWNER_LEAF:
        length = snprintf(text, size, "leaf switch %u %s", l->owner, name);
        break;
    case OWNER_FLOW:
        length = snprintf(text, size, "%s %u of message class %u", name, l->part, l->owner);
        break;
    }
    assert(length >= 0);
    return (size_t)length;
}
