/* sim/platform/rings.h: the members of a group by the domains that they lie in, and rings over them.
 *
 * A ring is pipelined, so its slowest port decides its time. The rings of a group therefore become few flows, each with
 * the bytes that one port carries: one over all ports of the fabric, one over all NICs, and one over the links between
 * leaf switches. On a mesh, and if a ring has many ports, there is a flow for each domain instead (rings.c).
 * docs/simulation.md, "Collectives". */
#ifndef SIM_RINGS_H
#define SIM_RINGS_H

#include "sim/platform/platform.h"

#include <stdbool.h>

struct members {
    uint32_t member_count;
    /* ranks in the order of their index in the group; borrowed */
    const uint32_t *ranks_by_group_index;
    /* the members grouped by domain; those of a domain are in the order of their index in the group */
    uint32_t *ranks_grouped_by_domain;
    uint32_t domain_count;
    struct domain_span {
        uint32_t begin, count; /* rows of ranks_grouped_by_domain[] */
        bool is_planned; /* its links take part; false: it is a replica of one that is planned */
    } * domain;
    uint32_t largest_domain_size; /* members of the largest domain */
    uint32_t ring_count;          /* number of rings between domains */
    /* [domain_count][largest_domain_size]: row d has the members through which the rings leave domain d */
    uint32_t *exit_ranks_of_domains;
};

/* Fills *m from member[0..count), the ranks in the order of their index in the group, and marks all domains as planned.
 * Release *m in any case. */
void members_init(struct members *m, const struct platform *p, const uint32_t *member,
                  uint32_t count);

/* Finds through which NICs rings leave the domains. Call it after it is known which domains are planned, and before the
 * functions below. The library builds one ring per NIC, each of which leaves a domain through a NIC of its own; so the
 * domain whose members use the fewest NICs limits the number of rings, and nic.rings does, too. In
 * exit_ranks_of_domains only the rows of planned domains and of their neighbours in the ring are filled. */
void members_find_rings(struct members *m, const struct platform *p);
void members_release(struct members *m);

/* Returns the latency in seconds of one message between the members that are furthest apart. */
double members_farthest_message_latency_s(const struct platform *p, const struct members *m);

/* Adds the flows of rings: each member sends `bytes` to others of its domain, and each domain sends `bytes` to the next
 * one, over its NICs together. */
void rings_add_flows(struct platform *p, struct flow_table *flows, const struct members *m,
                     double bytes);

/* Returns the seconds that the rings of rings_add_flows() take when nothing else uses their ports.
 * Links between leaf switches are not counted. */
double rings_transfer_s(const struct platform *p, const struct members *m, double bytes);

/* Returns the number of multiprocessors that a collective's thread blocks occupy on each member: one for each of NCCL's
 * channels. Inside a domain there are device.collective_sms; between domains the number follows from the number of
 * rings (cluster_inter_domain_channel_count()), but is at most device.collective_sms. Returns 0 if the
 * cluster has no device.collective_sms. */
double rings_occupied_sms(const struct platform *p, const struct members *m);

/* Returns the latency in seconds of a ring. A piece of data passes member_count - 1 hops. Of these, domain_count - 1 go
 * through NICs. */
double rings_latency_s(const struct platform *p, const struct members *m);

/* Returns the latency in seconds of a tree towards the root: a chain inside each domain, a binary tree between
 * them. */
double rings_tree_latency_s(const struct platform *p, const struct members *m);

#endif
