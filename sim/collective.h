/* sim/collective.h: a communication as one latency and a set of flows.
 *
 * The flows start together once the latency has passed, and the communication ends when
 * all have ended. How many bytes cross which port follows from the algorithm; how the ports
 * are shared with everything else is the engine's business. docs/simulation.md, "Collectives",
 * derives each form and says what it leaves out. */
#ifndef SIM_COLLECTIVE_H
#define SIM_COLLECTIVE_H

#include "models/work.h"
#include "sim/platform.h"

/* Flows [flow_begin, flow_begin + flow_count) of a flow table; none: only the latency. */
struct transfer {
    double latency_s;
    uint32_t flow_begin, flow_count;
};

/* A collective or a barrier among the ranks member[0..count), in the order of their index. `key`
 * names the links that cap this group's flows: equal keys share a cap. A group of one rank
 * moves nothing and takes no time. */
struct transfer collective_make(struct platform *platform, struct flow_table *flows,
                                const struct work *work, const uint32_t *member, uint32_t count,
                                uint32_t key);

/* One message of a shift or of a send and its receive. Messages of one key and number share what
 * one pair's channel reaches. A message to oneself takes no time. */
struct transfer message_make(struct platform *platform, struct flow_table *flows, uint32_t from,
                             uint32_t to, double bytes, uint32_t ranks, uint32_t key,
                             uint32_t number);

/* A copy between a rank's device and its host's memory. */
struct transfer copy_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                          double bytes, bool to_device, bool pageable);

/* Work of the host that moves bytes through its memory, and takes alone_s when alone. */
struct transfer host_work_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                               double bytes, double alone_s, uint32_t key, uint32_t variant);

/* A kernel that takes alone_s when it has the processors for itself; by_memory: memory limits it, and
 * it shares that too where ranks share a GPU. */
struct transfer kernel_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                            double alone_s, bool by_memory);

/* ---- loopback.c: the same between ranks that share a GPU ---- */

/* A collective, as exec/cuda's loopback makes it: every member fetches its own part from the others' buffers. */
struct transfer loopback_collective(struct platform *platform, struct flow_table *flows,
                                    const struct work *work, const uint32_t *member,
                                    uint32_t count);
/* The receiver of a message fetches it. */
struct transfer loopback_message(struct platform *platform, struct flow_table *flows, uint32_t to,
                                 double bytes);
/* Flows over processors and device memory carry time: seconds of use alone by this. */
extern const double device_time_per_s;

#endif
