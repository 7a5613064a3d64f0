/* sim/platform/collective.h: a communication of a group as one latency and a set of flows.
 *
 * The flows start together once the latency has passed, and the communication ends when
 * all have ended. How many bytes cross which port follows from the algorithm; how the ports
 * are shared with everything else is the engine's business. docs/simulation.md, "Collectives",
 * derives each form and says what it leaves out. */
#ifndef SIM_COLLECTIVE_H
#define SIM_COLLECTIVE_H

#include "models/work.h"
#include "sim/platform/message.h"
#include "sim/platform/rings.h"

/* The bytes of an exchange between each pair of members. bytes_by_member_pair[from * members + to]: by index in the
 * group. counts_members_as_largest: every member counts as many bytes as the member that has the most, separately for
 * each sort of peers: those of its domain, by distance; those of other domains on its leaf switch; those on other leaf
 * switches. */
struct exchange_bytes {
    const double *bytes_by_member_pair;
    bool counts_members_as_largest;
};

/* Adds the flows of a collective or a barrier among a group's members, and returns the latency in seconds. Only links
 * of planned domains get flows. A barrier, and a group of one rank, move nothing and take no time. key: names the links
 * that cap this group's flows; groups with equal keys share a cap. exchange: the bytes of an EXCHANGE; NULL for other
 * kinds. */
double collective_add_flows(struct platform *platform, struct flow_table *flows,
                            const struct work *work, const struct members *members, uint32_t key,
                            const struct exchange_bytes *exchange);

/* Does what collective_add_flows() does for ranks that share a GPU, where exec/cuda's loopback runs a collective: every
 * member fetches its own part from the others' buffers (loopback.c). */
double loopback_add_collective_flows(struct platform *platform, struct flow_table *flows,
                                     const struct work *work, const uint32_t *member,
                                     uint32_t count, const struct exchange_bytes *exchange);

#endif
