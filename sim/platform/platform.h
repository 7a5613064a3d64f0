/* sim/platform/platform.h: a cluster as directed links, and the links that a message crosses.
 *
 * Links are made when a route first needs them. A capacity that is infinite, or 0 because
 * the cluster has no such part, makes no link: nothing there ever limits a flow. Latencies
 * are not links; platform_latency_s() gives them. Rank r runs on GPU r % gpus_per_node of
 * node r / gpus_per_node. docs/simulation.md, "Platform", has the picture.
 *
 * The folder sim/platform/ turns a cluster into links, and messages and collectives into flows over these links. */
#ifndef SIM_PLATFORM_H
#define SIM_PLATFORM_H

#include "models/cluster.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum link_kind {
    LINK_FABRIC_OUT, /* owner: rank. A GPU's port into the switch of its domain */
    LINK_FABRIC_IN,
    /* owner: GPU. The memory of a GPU that ranks share. Flows over it move time instead of bytes (device_time_per_s):
     * the time of copies, and of kernels that memory bandwidth limits */
    LINK_DEVICE_MEMORY,
    LINK_MESH_PAIR,       /* owner, part: ranks. The link of a mesh fabric from owner to part */
    LINK_PCIE_LANES_UP,   /* owner: rank. PCIe lanes from the GPU */
    LINK_PCIE_LANES_DOWN, /* owner: rank. PCIe lanes to the GPU */
    LINK_PCIE_UPLINK_UP,  /* owner: node, part: PCIe switch. To the socket */
    LINK_PCIE_UPLINK_DOWN,
    LINK_HOST_MEMORY,     /* owner: node, part: socket. Host memory, reads and writes together */
    LINK_BETWEEN_SOCKETS, /* owner: node, part: from socket * 256 + to socket */
    LINK_NIC_OUT,         /* owner: node, part: NIC. The port of the NIC */
    LINK_NIC_IN,
    LINK_NIC_STAGED_OUT, /* owner: rank. The way of its bytes to its NIC through host memory */
    LINK_NIC_STAGED_IN,
    LINK_LEAF_UP, /* owner: leaf switch. Its links upwards, if the network is oversubscribed */
    LINK_LEAF_DOWN,
    LINK_COPY_H2D, /* owner: rank. The copy engine, by the rate that it reaches */
    LINK_COPY_D2H,
    /* owner: rank. The copy engines of both directions, with the rate that they reach together */
    LINK_COPY_BOTH,
    LINK_PAGEABLE_H2D, /* owner: rank. The host thread that moves pageable memory */
    LINK_PAGEABLE_D2H,
    LINK_GPU_PROCESSORS, /* owner: GPU. Its processors, shared by kernels of several streams */
    LINK_RATE_CAP_OF_FLOW, /* owner, part: chosen by the caller. Rate that one uncontended flow reaches */
    LINK_KIND_COUNT
};

/* The `part` of a link of kind LINK_RATE_CAP_OF_FLOW is the number of the cap. For the cap of a rank's flow to one peer
 * it is PLATFORM_RANK_PAIR_CAP_BIT | (rank * PLATFORM_CAP_PEERS + peer); for other caps it is a number without that
 * bit. */
#define PLATFORM_RANK_PAIR_CAP_BIT 0x80000000u
enum { PLATFORM_CAP_PEERS = 1024 };

struct platform {
    const struct cluster *cluster;
    uint32_t link_count;
    size_t allocated_link_count;
    double *bytes_per_s; /* [link_count] */
    struct platform_link {
        uint8_t kind;
        uint32_t owner, part;
        uint32_t next; /* the next link in the same list of links_of_kind; UINT32_MAX: none */
    } * link;
    struct links_of_kind {
        /* [capacity] the first link of each list: there is a list for each owner, or, for caps, for each rank or number
         * (link_owner_index() in platform.c). UINT32_MAX: the list is empty */
        uint32_t *first_link;
        uint32_t capacity;
    } of_kind[LINK_KIND_COUNT];
};

/* Flows, each of which moves bytes over a set of links. Flow f moves bytes[f] over each of
 * link[link_begin[f]..link_begin[f+1]). */
struct flow_table {
    uint32_t flow_count, link_count;
    double *bytes;
    uint32_t *link_begin; /* [flow_count + 1] */
    uint32_t *link;
    size_t flow_capacity, allocated_link_count;
};

void platform_release(struct platform *platform);
void flow_table_release(struct flow_table *flows);

/* Opens a flow without links; the functions below add links to the flow opened last, each
 * link once. A flow that crosses no link takes no time. */
void flow_open(struct flow_table *flows, double bytes);

/* Ends the flow opened last, and drops it if it has no bytes or no link. */
void flow_close(struct flow_table *flows);

/* Adds a link of the platform, of owner a and part b, to the open flow. Does nothing if the
 * capacity is infinite or 0, or if the flow has the link already. */
void route_add_link(struct platform *platform, struct flow_table *flows, enum link_kind kind,
                    uint32_t a, uint32_t b, double bytes_per_s);

/* Returns the lowest rank on the GPU of a rank, by which the GPU is identified. */
uint32_t platform_lowest_rank_on_gpu(const struct platform *platform, uint32_t rank);

/* Adds the links from one GPU to another of its domain to the flow opened last, as all route_ functions do. */
void route_add_fabric(struct platform *platform, struct flow_table *flows, uint32_t from,
                      uint32_t to);

/* Adds the rank's half of the links of an exchange with `peer`, a rank of its domain; the call for the peer adds the
 * other half. On a mesh it is the link to the peer, else the GPU's own links in both directions. */
void route_add_exchange_with_peer(struct platform *platform, struct flow_table *flows,
                                  uint32_t rank, uint32_t peer);

/* Adds the links from a GPU to the network through its NIC (out), or from the network to the GPU. */
void route_add_nic(struct platform *platform, struct flow_table *flows, uint32_t rank, bool out);

/* Adds the link from the leaf switch of a GPU's NIC upwards (up), or the one from above to that switch. */
void route_add_leaf(struct platform *platform, struct flow_table *flows, uint32_t rank, bool up);
/* True if a message from one GPU's NIC to another's crosses links above the leaves, and these links are narrower than
 * those below. */
bool platform_crosses_leaves(const struct platform *platform, uint32_t from, uint32_t to);

/* Adds the links of a copy between a GPU and the memory of its own socket. */
void route_add_copy(struct platform *platform, struct flow_table *flows, uint32_t rank,
                    bool to_device, bool pageable);
/* Adds the link to the memory of the socket of the rank's GPU. */
void route_add_host_memory(struct platform *platform, struct flow_table *flows, uint32_t rank);

/* Returns the latency in seconds of one message or one step of a collective, inside a domain or between domains. */
double platform_latency_s(const struct platform *platform, bool between_domains);

/* Writes the name of a link ("node 0 gpu 3 fabric out") into text[size]; returns its length. */
size_t platform_link_name(const struct platform *platform, uint32_t link, char *text, size_t size);

#endif
