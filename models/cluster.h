/* models/cluster.h: machines and networks as plain numbers.
 *
 * A cluster is `nodes` equal nodes: GPUs joined by a fabric, PCIe switches on
 * sockets, NICs, one host. It holds data only. The simulator decides which links a
 * message occupies; the device's cost file says what a kernel costs (models/cost.h).
 * All numbers are SI: bytes, bytes/s, seconds, flop/s. A bandwidth is that of one
 * direction unless its comment says otherwise.
 *
 * Clusters are JSON files (docs/clusters.md). Every number in a file has a source;
 * `facts` lists all numbers with their sources.
 *
 * All tables and texts live in the arena given to cluster_load(). */
#ifndef MODELS_CLUSTER_H
#define MODELS_CLUSTER_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "models/number_origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLUSTER_MAX_NODES = 65536,
    CLUSTER_MAX_GPUS_PER_NODE = 1024, /* only the ideal cluster may have more in one node */
    CLUSTER_MAX_GPUS = 1 << 20
};

struct device {
    const char *name;            /* "a100-80g" */
    const char *cost_name;       /* of models/presets/devices/COST.json, or the path of a file */
    double peak_bf16_flop_per_s; /* dense bf16, as in the data sheet */
    double memory_bytes;         /* nominal */
    /* bytes of memory that the data sheet has and the driver does not report (ECC, page tables, firmware) */
    double driver_bytes;
    /* bytes of a process's CUDA context and loaded libraries, before any communicator or workspace */
    double cuda_context_bytes;
    double usable_bytes; /* derived: memory_bytes - driver_bytes - cuda_context_bytes */
    double memory_bytes_per_s;
    double compute_capability; /* CUDA's: 8.0; 0: not said */
    /* number of multiprocessors that NCCL's kernel takes from other kernels, while a send/receive pair runs, and while
     * a collective runs */
    double message_sms, collective_sms;
    int64_t sm_count;
};

enum fabric_kind {
    FABRIC_SWITCH,   /* every GPU has one port each way into a non-blocking switch */
    FABRIC_MESH,     /* every pair of GPUs has a link of its own each way */
    FABRIC_PCIE,     /* no links between GPUs: peers use their PCIe lanes and switch uplinks */
    FABRIC_LOOPBACK, /* cluster_share_gpu(): the ranks of the node share one GPU */
    FABRIC_KIND_COUNT
};

/* The network between the GPUs of one domain: domain_nodes nodes whose GPUs share one switch (NVL72: 18 hosts of 4
 * GPUs). In most clusters a domain is one node. */
struct fabric {
    enum fabric_kind kind;
    double bytes_per_s; /* nominal; SWITCH: a GPU's port; MESH: a pair's link; PCIE: 0, unused */
    /* share of bytes_per_s (PCIE: of the lanes of a GPU, pcie.h2d and d2h) that ring collectives reach, in (0, 1] */
    double ring_efficiency;
    /* share of bytes_per_s that an all-to-all of 4 or more GPUs reaches */
    double all_to_all_efficiency;
    double peer_bytes_per_s; /* the rate of one send/receive pair, which uses few channels */
    /* the number of ranks of the communicator in which a pair reaches peer_bytes_per_s. In a smaller communicator a
     * pair has more channels, and its rate is higher; 0: the rate is the same in all communicators */
    int64_t ranks_from_which_peer_rate_holds;
    /* the rate between two GPUs in an all-to-all, if all_to_all_channels_bytes_per_s is unknown; also the highest rate
     * of a single message */
    double all_to_all_peer_bytes_per_s;
    /* the rate of all channels of an all-to-all together, with the part that goes to the GPU itself; 0: unknown */
    double all_to_all_channels_bytes_per_s;
    double latency_s; /* latency of a message, or of each step of a collective */
    /* seconds to start a collective, added once to the latency of its steps */
    double collective_latency_s;
    double peer_latency_s; /* seconds to start a send/receive pair, added to latency_s */
    /* a reduce-scatter moves as many bytes as an all-reduce: gloo runs an all-reduce and keeps a part */
    bool reduce_scatter_as_all_reduce;
};

/* Messages between ranks that share a GPU: copies within its memory. */
struct loopback {
    double bytes_per_s; /* rate of copies, each byte read once and written once; 0: not known */
    /* seconds of each copy; for a message or a collective a rank makes one copy or several */
    double latency_s;
};

struct pcie {
    double nominal_bytes_per_s; /* a GPU's lanes */
    /* rate of a large pinned copy on a GPU's lanes, with no other traffic */
    double h2d_bytes_per_s;
    double d2h_bytes_per_s;
    /* the bytes/s that copies in both directions together reach; 0: each direction reaches its own rate */
    double both_ways_total_bytes_per_s;
    /* bytes/s of the link from a PCIe switch to its socket, which all devices below the switch share */
    double pcie_switch_uplink_bytes_per_s;
    double latency_s; /* latency of a copy */
    /* number of switches per node; if GPUs are wired straight to a socket, each counts as having a switch */
    int64_t pcie_switches_per_node;
};

struct nic {
    int64_t count;            /* number per node; 0: the cluster has only one domain */
    double bytes_per_s;       /* nominal, one direction */
    double efficiency;        /* share of bytes_per_s that many flows together reach, (0, 1] */
    double peer_bytes_per_s;  /* the rate of one send/receive pair */
    double latency_s;         /* wire and switches, one way */
    double message_latency_s; /* added per message or per step of a collective by the library */
    /* seconds to start a send/receive pair, added to latency_s and message_latency_s */
    double peer_latency_s;
    /* the most rings of a collective between domains, each over another NIC; 0: one ring for each NIC that the
     * collective's ranks of a domain have */
    int64_t max_rings_between_domains;
    bool gpudirect; /* the NIC reads GPU memory over the GPU's lanes, without the host's memory */
    /* without gpudirect: bytes/s at which one GPU moves data through host memory to its NIC, or from it; 0: the rate of
     * its lanes */
    double host_staged_bytes_per_s;
};

/* The network between nodes. All-zero: it is non-blocking. */
struct network {
    bool has_rails; /* NIC k of every node of a leaf group is attached to leaf switch k */
    /* number of nodes under one leaf switch (with rails: under one set of leaf switches); 0: all nodes */
    int64_t nodes_per_leaf_switch;
    double oversubscription; /* bandwidth below a leaf over bandwidth above it; >= 1; 0: as 1 */
};

struct host {
    double memory_bytes;
    double os_reserved_bytes; /* operating system, file cache, daemons */
    int64_t sockets;
    /* bytes/s of one socket's memory, reads and writes together, as STREAM measures it */
    double memory_bytes_per_s;
    double socket_link_bytes_per_s;       /* between two sockets; 0 when there is one socket */
    double d2h_to_pageable_bytes_per_s;   /* one copy to freshly allocated pageable memory */
    double h2d_from_pageable_bytes_per_s; /* one copy from pageable memory */
    /* bytes/s of host memory that AdamW moves on all cores; 0: it is cpu.stream_fraction (in the device's costs) times
     * the memory_bytes_per_s of all sockets together */
    double adam_bytes_per_s;
};

/* One field of a cluster file (a number, word or table) and where it comes from. It records what was read;
 * cluster_resize() and cluster_share_gpu() change the cluster, but not its facts. */
struct cluster_fact {
    const char *path; /* "nic.bandwidth" */
    /* as it is written in the file: "200 Gb/s"; a scaled rate: in GB/s */
    const char *value_as_written;
    const char *source; /* as it is written in the file; or "given", "scaled with nic.bandwidth" */
    enum number_origin origin;
    size_t entries_of_table_value; /* number of entries of a table; 0: the value is no table */
    /* relative spread of a number that `calibrate` fitted on this machine; 0: the number was not fitted */
    double spread;
    struct loc at; /* the file and line that say so */
};

struct cluster_facts {
    size_t count, capacity;
    struct cluster_fact *row; /* in the order of the table of models/cluster_fields.c */
};

struct cluster {
    const char *name, *summary;
    /* Nodes of up to four GPUs may be boards with or without a switch. If the one-line form does not say which, this is
     * the line for boards without a switch ("2x4xh100:board=mesh"), for a message; else NULL. */
    const char *line_with_mesh_board;
    bool is_ideal; /* infinite links and memory (INFINITY), zero latency, work takes flops / peak */

    int64_t nodes;         /* in use */
    int64_t gpus_per_node; /* of a whole node, in use or not; tables below have an entry for each */
    int64_t gpus;          /* in use: nodes * gpus_per_node, or fewer on one partial node, which
                            * keeps the whole host and all NICs */
    int64_t domain_nodes;  /* nodes in use whose GPUs share one fabric; >= 1 */
    /* the file's domain_nodes, set by cluster_resize(); 0: not set */
    int64_t domain_nodes_in_file;

    struct device device;
    struct fabric fabric;
    struct loopback loopback;
    struct pcie pcie;
    struct nic nic;
    struct network network;
    struct host host;

    const int64_t
        *switch_of_gpu;        /* [gpus_per_node] PCIe switch in 0..pcie.pcie_switches_per_node-1 */
    const int64_t *nic_of_gpu; /* [gpus_per_node] NIC in 0..nic.count-1; NULL when nic.count is 0 */
    const int64_t *switch_of_nic;    /* [nic.count] PCIe switch; NULL when nic.count is 0 */
    const int64_t *socket_of_switch; /* [pcie.pcie_switches_per_node] socket in 0..host.sockets-1 */

    struct cluster_facts facts;
};

/* The place where a rank runs: its node, its GPU and its domain. */
struct cluster_place {
    int64_t node, gpu; /* gpu: index within its node */
    /* ranks of one domain communicate over the fabric, ranks of different domains over NICs */
    int64_t domain;
};

/* Loads a cluster that the user named: a preset ("dgx-h100"); a file ("ours.json": a name that ends in .json or
 * contains a '/'); or one line, which starts with a digit ("2x4xh100": 2 nodes of 4 h100; docs/clusters.md). Each may
 * be followed by a ':' and numbers: "2x4xh100:nics=4,host.memory=1 TB", "dgx-h100:nic.bandwidth=400 Gb/s". The result
 * has passed cluster_check(). */
enum status cluster_load(struct cluster *cluster, struct arena *arena, const char *what,
                         struct diag *diag);

/* True if cluster_load() treats the text as the path of a file. */
bool cluster_is_file(const char *what);
/* True if cluster_load() reads the text as one line ("2x4xh100"), or as a name followed by numbers. */
bool cluster_is_in_line_form(const char *what);
/* True if the text ends in ".json", as names of files do. */
bool cluster_name_ends_in_json(const char *text);

/* Reads a cluster from the text of the file `name`. Paths in the text are relative to that file's folder. Its "base" is
 * whatever cluster_load() can load, except a file followed by numbers. */
enum status cluster_parse(struct cluster *cluster, struct arena *arena, const char *name,
                          const char *text, size_t size, struct diag *diag);

/* Returns the preset from which a one-line cluster takes its nodes, by the name of its device ("h100"); NULL: there is
 * no such device. */
const char *cluster_line_preset_of_device(const char *device);

/* True if a path ("nic.bandwidth"), or "nics" or "board", names an option that may follow a
 * cluster's name. */
bool cluster_line_may_set(const char *path);

/* Reads the one-line form, or a name with numbers after it. The result has passed cluster_check(). */
enum status cluster_parse_line(struct cluster *cluster, struct arena *arena, const char *line,
                               size_t size, struct diag *diag);

/* Sets how much of the cluster is in use, by nodes or by GPUs; 0 leaves that number open, and if both are given they
 * must agree. gpus must be less than a node, or whole nodes; otherwise the message names the two nearest counts. The
 * ideal cluster may have any number of GPUs, in one node.
 *
 * If the nodes do not fill whole domains, but divide into equal parts that are larger than half a domain, each domain
 * has one such part (64 nodes in domains of 18: 16 in each), as batch systems are asked to place jobs (Slurm's
 * --segment; Megatron-Bridge at 067f987, scripts/performance/utils/executors.py). Otherwise domains are filled one
 * after another. */
enum status cluster_resize(struct cluster *cluster, struct arena *arena, int64_t nodes,
                           int64_t gpus, struct diag *diag);

/* Refuses a cluster with impossible or contradictory values, and reports each of them with its
 * line. Rules between fields are checked only if every field is within its own limits. */
enum status cluster_check(const struct cluster *cluster, struct diag *diag);

/* Reduces the cluster to its first GPU, which `ranks` ranks share. Each rank gets an equal part of
 * the GPU's memory. The ranks share its multiprocessors, its memory bandwidth and its PCIe lanes.
 * Their messages are copies within its memory; numbers of these copies that the cluster lacks
 * (struct loopback) are taken from `copies`. An ideal cluster is refused. */
enum status cluster_share_gpu(struct cluster *cluster, struct arena *arena, int64_t ranks,
                              struct loopback copies, struct diag *diag);

/* True if a fact was measured on the machine that the cluster's file describes: the file says so in its member "how",
 * or it has a spread, as `calibrate` writes one. Other facts come from data sheets or published steps, or are
 * inferred, estimated or assumed.
 * False if fact is NULL. */
bool cluster_fact_is_measured(const struct cluster_fact *fact);

/* Returns the place of a rank in [0, gpus): ranks fill node after node. */
struct cluster_place cluster_place_of_rank(const struct cluster *cluster, int64_t rank);

/* Returns the number of channels that NCCL uses for a collective between domains, given the number of its rings: two
 * for each ring, or four on compute capability 9.0 and later if two make fewer than 16 in all (NCCL,
 * src/graph/connect.cc, ncclTopoPostset). */
int64_t cluster_inter_domain_channel_count(const struct cluster *cluster, int64_t rings);

/* Returns the socket that a GPU of a node is attached to. */
int64_t cluster_socket_of_gpu(const struct cluster *cluster, int64_t gpu);

/* Returns the fact of a path; NULL: there is none. */
const struct cluster_fact *cluster_find_fact(const struct cluster *cluster, const char *path);

/* Lists the names of all presets (models/presets.h), sorted. */
enum status cluster_presets(const char *const **names, size_t *count, struct arena *arena,
                            struct diag *diag);

/* Appends the cluster as text: every number of its file with its source and, if known, the line on
 * which it stands. */
void cluster_print_numbers_and_sources(struct text *out, const struct cluster *cluster);

#endif
