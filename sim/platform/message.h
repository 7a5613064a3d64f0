/* sim/platform/message.h: what one rank sends, copies or computes, as a latency and a set of flows. */
#ifndef SIM_MESSAGE_H
#define SIM_MESSAGE_H

#include "sim/platform/platform.h"

/* Flows [flow_begin, flow_begin + flow_count) of a flow table; none: only the latency. */
struct transfer {
    double latency_s;
    uint32_t flow_begin, flow_count;
};

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

/* A kernel that takes alone_s when it has the processors for itself; by_memory: memory bandwidth
 * limits it, which ranks on one GPU share as well. */
struct transfer kernel_make(struct platform *platform, struct flow_table *flows, uint32_t rank,
                            double alone_s, bool by_memory);

/* The one flow of a message that leaves its domain: out of one NIC and into another. Equal keys and
 * numbers share a cap. */
void message_between_domains(struct platform *platform, struct flow_table *flows, uint32_t from,
                             uint32_t to, double bytes, uint32_t key, uint32_t number);

/* Between ranks that share a GPU the receiver of a message fetches it (loopback.c). */
struct transfer loopback_message(struct platform *platform, struct flow_table *flows, uint32_t to,
                                 double bytes);
/* Flows over processors and device memory carry time: seconds of use alone by this. */
extern const double device_time_per_s;

#endif
