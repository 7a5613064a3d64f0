#include "sim/platform/rings.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>

/* Making a path of n links costs SimGrid O(n^2), and each of its flows O(n). So a ring with more than RING_LINKS_MAX
 * links becomes one flow per domain; the ring still ends when the slowest of these flows does. A ring uses two links of
 * the fabric per member (out and in), and a ring between domains at least four more per domain: PCIe lanes and NIC, out
 * and in. */
enum { RING_LINKS_MAX = 200, FABRIC_LINKS_PER_MEMBER = 2, NIC_LINKS_PER_DOMAIN = 4 };

/* The flow of a ring that is being built: one flow through all domains, or, with `is_per_domain`, one for each
 * domain. */
struct ring_flow_builder {
    struct flow_table *flows;
    bool is_per_domain, is_open;
};

/* Begins the links of one domain, each of which carries `bytes`: opens a flow unless one is open. */
static void begin_ring_flows_in_domain(struct ring_flow_builder *ring, double bytes)
{
    if (!ring->is_open)
        flow_open(ring->flows, bytes);
    ring->is_open = true;
}

static void close_open_ring_flow(struct ring_flow_builder *ring)
{
    if (ring->is_open)
        flow_close(ring->flows);
    ring->is_open = false;
}

static void end_ring_flows_in_domain(struct ring_flow_builder *ring)
{
    if (ring->is_per_domain)
        close_open_ring_flow(ring);
}

/* ---- members by domain ---- */

void members_init(struct members *m, const struct platform *p, const uint32_t *member,
                  uint32_t count)
{
    *m = (struct members){.member_count = count, .ranks_by_group_index = member};
    m->ranks_grouped_by_domain = heap_alloc(count, sizeof *m->ranks_grouped_by_domain);
    m->domain = heap_alloc(count, sizeof *m->domain);
    uint32_t domains = (uint32_t)((p->cluster->nodes - 1) / p->cluster->domain_nodes + 1);
    uint32_t *row = heap_zalloc(domains, sizeof *row); /* 1 + row of the domain */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *r = &row[cluster_place_of_rank(p->cluster, member[i]).domain];
        if (*r == 0) {
            m->domain[m->domain_count] = (struct domain_span){.is_planned = true};
            *r = ++m->domain_count;
        }
        m->domain[*r - 1].count++;
    }
    for (uint32_t d = 0, begin = 0; d < m->domain_count; begin += m->domain[d++].count) {
        m->domain[d].begin = begin;
        if (m->domain[d].count > m->largest_domain_size)
            m->largest_domain_size = m->domain[d].count;
    }
    uint32_t *next = heap_zalloc(m->domain_count, sizeof *next);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = row[cluster_place_of_rank(p->cluster, member[i]).domain] - 1;
        m->ranks_grouped_by_domain[m->domain[d].begin + next[d]++] = member[i];
    }
    free(next);
    free(row);
}

void members_release(struct members *m)
{
    free(m->ranks_grouped_by_domain);
    free(m->domain);
    free(m->exit_ranks_of_domains);
}

/* ---- rings ---- */

/* Adds every port that the rings inside one domain use. On a mesh the library builds count - 1 parallel rings, so that
 * the link of every pair carries a part of the bytes. */
static void add_domain_ring(struct platform *p, struct flow_table *flows, const uint32_t *rank,
                            uint32_t count)
{
    if (p->cluster->fabric.kind == FABRIC_MESH) {
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t j = 0; j < count; j++)
                if (i != j)
                    route_add_fabric(p, flows, rank[i], rank[j]);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        route_add_fabric(p, flows, rank[i], rank[(i + 1) % count]);
}

static void add_fabric_rings(struct platform *p, struct flow_table *flows, const struct members *m,
                             double bytes)
{
    bool mesh = p->cluster->fabric.kind == FABRIC_MESH;
    struct ring_flow_builder ring = {
        flows, .is_per_domain = mesh || FABRIC_LINKS_PER_MEMBER * m->member_count > RING_LINKS_MAX};
    for (uint32_t d = 0; d < m->domain_count; d++) {
        uint32_t count = m->domain[d].count;
        if (count < 2 || !m->domain[d].is_planned)
            continue;
        begin_ring_flows_in_domain(&ring, bytes / p->cluster->fabric.ring_efficiency /
                                              (mesh ? count - 1 : 1));
        add_domain_ring(p, flows, m->ranks_grouped_by_domain + m->domain[d].begin, count);
        end_ring_flows_in_domain(&ring);
    }
    close_open_ring_flow(&ring);
}

/* Lists the first member of each distinct NIC of a domain, in member order; returns their number. */
static uint32_t list_domain_exits(const struct platform *p, const struct members *m, uint32_t d,
                                  uint32_t *exit_ranks_of_domains)
{
    const struct cluster *c = p->cluster;
    const uint32_t *rank = m->ranks_grouped_by_domain + m->domain[d].begin;
    uint32_t exit_count = 0;
    for (uint32_t i = 0; i < m->domain[d].count; i++) {
        struct cluster_place at = cluster_place_of_rank(c, rank[i]);
        bool seen = false;
        for (uint32_t k = 0; k < exit_count && !seen; k++) {
            struct cluster_place other = cluster_place_of_rank(c, exit_ranks_of_domains[k]);
            seen = other.node == at.node && c->nic_of_gpu[other.gpu] == c->nic_of_gpu[at.gpu];
        }
        if (!seen)
            exit_ranks_of_domains[exit_count++] = rank[i];
    }
    return exit_count;
}

/* True if the domain, or one of its neighbours in the ring, is planned. */
static bool domain_is_next_to_planned(const struct members *m, uint32_t d)
{
    uint32_t before = d == 0 ? m->domain_count - 1 : d - 1, after = (d + 1) % m->domain_count;
    return m->domain[before].is_planned || m->domain[d].is_planned || m->domain[after].is_planned;
}

void members_find_rings(struct members *m, const struct platform *p)
{
    int64_t most = p->cluster->nic.max_rings_between_domains; /* 0: no limit */
    m->ring_count = most > 0 ? (uint32_t)most : UINT32_MAX;
    m->exit_ranks_of_domains = heap_alloc((size_t)m->domain_count * m->largest_domain_size,
                                          sizeof *m->exit_ranks_of_domains);
    for (uint32_t d = 0; d < m->domain_count; d++) {
        if (!domain_is_next_to_planned(m, d))
            continue;
        uint32_t exit_count = list_domain_exits(
            p, m, d, m->exit_ranks_of_domains + (size_t)d * m->largest_domain_size);
        if (exit_count < m->ring_count)
            m->ring_count = exit_count;
    }
}

/* Adds the links of rings between leaves. Domains are in the order of their leaves, so each ring leaves and enters a
 * leaf once; with rails every ring has leaves of its own. */
static void add_leaf_rings(struct platform *p, struct flow_table *flows, const struct members *m,
                           double bytes)
{
    flow_open(flows, p->cluster->network.has_rails ? bytes / m->ring_count : bytes);
    for (uint32_t d = 0; d < m->domain_count; d++) {
        uint32_t next = (d + 1) % m->domain_count;
        bool leaves = m->domain[d].is_planned, enters = m->domain[next].is_planned;
        for (uint32_t k = 0; (leaves || enters) && k < m->ring_count; k++) {
            uint32_t from = m->exit_ranks_of_domains[(size_t)d * m->largest_domain_size + k];
            uint32_t to = m->exit_ranks_of_domains[(size_t)next * m->largest_domain_size + k];
            if (!platform_crosses_leaves(p, from, to))
                continue;
            if (leaves)
                route_add_leaf(p, flows, from, true);
            if (enters)
                route_add_leaf(p, flows, to, false);
        }
    }
    flow_close(flows);
}

static void add_nic_rings(struct platform *p, struct flow_table *flows, const struct members *m,
                          double bytes)
{
    struct ring_flow_builder ring = {
        flows,
        .is_per_domain = NIC_LINKS_PER_DOMAIN * m->ring_count * m->domain_count > RING_LINKS_MAX};
    for (uint32_t d = 0; d < m->domain_count; d++) {
        if (!m->domain[d].is_planned)
            continue;
        begin_ring_flows_in_domain(&ring, bytes / m->ring_count);
        for (uint32_t k = 0; k < m->ring_count; k++) {
            route_add_nic(p, flows,
                          m->exit_ranks_of_domains[(size_t)d * m->largest_domain_size + k], true);
            route_add_nic(p, flows,
                          m->exit_ranks_of_domains[(size_t)d * m->largest_domain_size + k], false);
        }
        end_ring_flows_in_domain(&ring);
    }
    close_open_ring_flow(&ring);
    add_leaf_rings(p, flows, m, bytes);
}

void rings_add_flows(struct platform *p, struct flow_table *flows, const struct members *m,
                     double bytes)
{
    add_fabric_rings(p, flows, m, bytes);
    if (m->domain_count > 1)
        add_nic_rings(p, flows, m, bytes);
}

double rings_latency_s(const struct platform *p, const struct members *m)
{
    return (m->member_count - m->domain_count) * platform_latency_s(p, false) +
           (m->domain_count - 1) * platform_latency_s(p, true);
}

double rings_tree_latency_s(const struct platform *p, const struct members *m)
{
    return (m->largest_domain_size - 1) * platform_latency_s(p, false) +
           ceil(log2(m->domain_count)) * platform_latency_s(p, true);
}

double members_farthest_message_latency_s(const struct platform *p, const struct members *m)
{
    return platform_latency_s(p, m->domain_count > 1);
}

double rings_transfer_s(const struct platform *p, const struct members *m, double bytes)
{
    const struct cluster *c = p->cluster;
    double fabric = c->fabric.bytes_per_s * c->fabric.ring_efficiency *
                    (c->fabric.kind == FABRIC_MESH ? m->largest_domain_size - 1 : 1);
    double seconds = m->largest_domain_size > 1 && fabric > 0 ? bytes / fabric : 0;
    if (m->domain_count > 1) {
        double nic = c->nic.bytes_per_s * c->nic.efficiency,
               staged = c->nic.host_staged_bytes_per_s;
        if (!c->nic.gpudirect && staged > 0 && staged < nic)
            nic = staged;
        seconds = fmax(seconds, bytes / (m->ring_count * nic));
    }
    return seconds;
}

double rings_occupied_sms(const struct platform *p, const struct members *m)
{
    const struct device *device = &p->cluster->device;
    if (m->domain_count == 1 || device->collective_sms == 0)
        return device->collective_sms;
    return fmin((double)cluster_inter_domain_channel_count(p->cluster, m->ring_count),
                device->collective_sms);
}
