/* sim/platform/message.h: a message, copy or kernel of one rank as a latency and a set of flows. */
#ifndef SIM_MESSAGE_H
#define SIM_MESSAGE_H

#include "sim/platform/platform.h"

/* Flows [flow_begin, flow_begin + flow_count) of a flow table; none: only the latency. */
struct transfer {
    double latency_s;
    uint32_t flow_begin, flow_count;
};

/* Makes the transfer of one message: a shift, or a send and its receive. Messages with the same key and number share
 * the rate that one pair's channel reaches. A message of a rank to itself takes no time. */
struct transfer message_make(struct platform *platform, struct flow_table *flows, uint32_t from,
                             uint32_t to, double bytes, uint32_t ranks, uint32_t key,
                             uint32_t number);

/* Makes the transfer of a copy between a rank's device and its host's memory. */
struct transfer copy_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                          double bytes, bool to_device, bool pageable);

/* Makes the transfer of host work that moves bytes through host memory, and takes alone_s when nothing else does. */
struct transfer host_work_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                               double bytes, double alone_s, uint32_t key, uint32_t variant);

/* Makes the transfer of a kernel that takes alone_s seconds when no other kernel runs. by_memory: memory bandwidth
 * limits it, which the ranks on one GPU share. */
struct transfer kernel_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                            double alone_s, bool by_memory);

/* Adds the flow of a message that leaves its domain, out of one NIC and into another. Messages with equal keys and
 * numbers share a cap. */
void message_between_domains(struct platform *platform, struct flow_table *flows, uint32_t from,
                             uint32_t to, double bytes, uint32_t key, uint32_t number);

/* Makes the transfer of a message between ranks that share a GPU: its receiver fetches it (loopback.c). */
struct transfer loopback_message(struct platform *platform, struct flow_table *flows, uint32_t to,
                                 double bytes);
/* Flows over processors and device memory carry time instead of bytes: one second of uncontended use is this many
 * units. */
extern const double device_time_per_s;

#endif
