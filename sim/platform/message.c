#include "sim/platform/message.h"

/* Returns the rate in bytes/s between two ranks of a communicator of `ranks` ranks. The number of channels that NCCL
 * gives a send or receive falls with the size of the communicator, so that an exchange with all ranks uses each channel
 * once or a few times (src/enqueue.cc). So the rate that was measured among ranks_from_which_peer_rate_holds ranks
 * grows in a smaller communicator, up to the rate of a pair in an all-to-all. */
static double pair_bytes_per_s(const struct fabric *fabric, uint32_t ranks)
{
    double reached = fabric->peer_bytes_per_s, most = fabric->all_to_all_peer_bytes_per_s;
    if (ranks == 0 || fabric->ranks_from_which_peer_rate_holds <= ranks)
        return reached;
    reached *= (double)fabric->ranks_from_which_peer_rate_holds / ranks;
    return reached < most ? reached : most;
}

void message_add_flow_between_domains(struct platform *platform, struct flow_table *flows,
                                      uint32_t from, uint32_t to, double bytes, uint32_t key,
                                      uint32_t number)
{
    flow_open(flows, bytes);
    route_add_link(platform, flows, LINK_RATE_CAP_OF_FLOW, key, number,
                   platform->cluster->nic.peer_bytes_per_s);
    route_add_nic(platform, flows, from, true);
    if (platform_crosses_leaves(platform, from, to)) {
        route_add_leaf(platform, flows, from, true);
        route_add_leaf(platform, flows, to, false);
    }
    route_add_nic(platform, flows, to, false);
    flow_close(flows);
}

double message_add_flows(struct platform *platform, struct flow_table *flows, uint32_t from,
                         uint32_t to, double bytes, uint32_t ranks, uint32_t key, uint32_t number)
{
    const struct cluster *c = platform->cluster;
    if (from == to)
        return 0;
    if (c->fabric.kind == FABRIC_LOOPBACK)
        return loopback_add_message_flows(platform, flows, to, bytes);
    bool between = cluster_place_of_rank(c, from).domain != cluster_place_of_rank(c, to).domain;
    if (between) {
        message_add_flow_between_domains(platform, flows, from, to, bytes, key, number);
    } else {
        flow_open(flows, bytes / c->fabric.ring_efficiency);
        route_add_link(platform, flows, LINK_RATE_CAP_OF_FLOW, key, number,
                       pair_bytes_per_s(&c->fabric, ranks) / c->fabric.ring_efficiency);
        route_add_fabric(platform, flows, from, to);
        flow_close(flows);
    }
    return platform_latency_s(platform, between) +
           (between ? c->nic.peer_latency_s : c->fabric.peer_latency_s);
}

double copy_add_flows(struct platform *platform, struct flow_table *flows, uint32_t rank,
                      double bytes, bool to_device, bool pageable)
{
    flow_open(flows, bytes);
    route_add_copy(platform, flows, rank, to_device, pageable);
    flow_close(flows);
    return platform->cluster->pcie.latency_s;
}

void host_work_add_flows(struct platform *platform, struct flow_table *flows, uint32_t rank,
                         double bytes, double uncontended_s, uint32_t key, uint32_t variant)
{
    flow_open(flows, bytes);
    route_add_link(platform, flows, LINK_RATE_CAP_OF_FLOW, key, variant, bytes / uncontended_s);
    route_add_host_memory(platform, flows, rank);
    flow_close(flows);
}

void kernel_add_flows(struct platform *platform, struct flow_table *flows, uint32_t rank,
                      double uncontended_s, bool memory_bound)
{
    uint32_t device = platform_lowest_rank_on_gpu(platform, rank);
    flow_open(flows, uncontended_s * device_time_per_s);
    route_add_link(platform, flows, LINK_GPU_PROCESSORS, device, 0, device_time_per_s);
    if (memory_bound && platform->cluster->fabric.kind == FABRIC_LOOPBACK)
        route_add_link(platform, flows, LINK_DEVICE_MEMORY, device, 0, device_time_per_s);
    flow_close(flows);
}
