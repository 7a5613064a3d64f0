/* sim/platform/rings.h: the members of a group by the domains that they lie in, and rings over them.
 *
 * A ring is pipelined, so its slowest port decides its time. It is therefore one flow over all ports of the fabric,
 * and one over all NICs, each with the bytes that one port carries. docs/simulation.md, "Collectives". */
#ifndef SIM_RINGS_H
#define SIM_RINGS_H

#include "sim/platform/platform.h"

#include <stdbool.h>

struct members {
    uint32_t member_count;
    const uint32_t *rank_by_index; /* ranks in the order of their index in the group; borrowed */
    /* the members grouped by domain, in the order of their index inside each */
    uint32_t *rank_by_domain;
    uint32_t domain_count;
    struct domain_span {
        uint32_t begin, count; /* rows of rank_by_domain[] */
        bool is_planned; /* its links take part; false: it is a replica of one that is planned */
    } * domain;
    uint32_t largest_domain_size; /* members of the largest domain */
    uint32_t ring_count;          /* number of rings between domains */
    /* [domain_count][largest_domain_size]: row d has the members through which the rings leave domain d */
    uint32_t *exit_rank;
};

/* Fills *m from member[0..count), which stand in the order of their index; marks all domains as planned. Release in
 * any case. */
void members_init(struct members *m, const struct platform *p, const uint32_t *member,
                  uint32_t count);

/* Finds how rings leave the domains; to be called once it is known which domains are planned, before the functions
 * below. The library builds one ring per NIC, each of which leaves a domain through another NIC, so the domain whose
 * members use the fewest NICs decides how many rings there are; nic.ring_count limits them, too. Only the rows of
 * planned domains and of their neighbours in the ring are filled. */
void members_find_rings(struct members *m, const struct platform *p);
void members_release(struct members *m);

/* Returns the latency in seconds of one message between the members that are furthest apart. */
double members_latency_s(const struct platform *p, const struct members *m);

/* Adds the flows of rings in which every port carries `bytes`. */
void rings_add_flows(struct platform *p, struct flow_table *flows, const struct members *m,
                     double bytes);

/* Returns the seconds that the rings of rings_add_flows() take when nothing else uses the ports. */
double rings_transfer_s(const struct platform *p, const struct members *m, double bytes);

/* Returns the multiprocessors that a collective's thread blocks occupy on each member: one for each of NCCL's channels.
 * Inside a domain these are device.collective_sms; between domains they follow from the number of rings
 * (cluster_inter_domain_channels()), and are not more than that. */
double rings_occupied_sms(const struct platform *p, const struct members *m);

/* Returns the latency in seconds of a ring: a piece passes count - 1 hops, of which one for each domain but one goes
 * through NICs. */
double rings_latency_s(const struct platform *p, const struct members *m);

/* Returns the latency in seconds of a tree towards the root: a chain inside each domain, a binary tree between
 * them. */
double rings_tree_latency_s(const struct platform *p, const struct members *m);

#endif
