/* sim/platform/message.h: a message, copy or kernel of one rank as a latency and a set of flows. */
#ifndef SIM_MESSAGE_H
#define SIM_MESSAGE_H

#include "sim/platform/platform.h"

/* Each function of this header adds the flows of one transfer; those that return a number return the transfer's latency
 * in seconds. This one adds a message: one of a shift, or a send and its receive. Messages with equal keys and numbers
 * share the rate of one channel between two ranks. A message of a rank to itself takes no time. ranks: the size of the
 * communicator. */
double message_add_flows(struct platform *platform, struct flow_table *flows, uint32_t from,
                         uint32_t to, double bytes, uint32_t ranks, uint32_t key, uint32_t number);

/* Adds a copy between a rank's device and its host's memory. pageable: that memory is pageable, and not pinned. */
double copy_add_flows(struct platform *platform, struct flow_table *flows, uint32_t rank,
                      double bytes, bool to_device, bool pageable);

/* Adds host work that moves bytes through host memory, and takes uncontended_s seconds if nothing else uses that
 * memory. Work with equal keys and variants shares a cap. */
void host_work_add_flows(struct platform *platform, struct flow_table *flows, uint32_t rank,
                         double bytes, double uncontended_s, uint32_t key, uint32_t variant);

/* Adds a kernel that takes uncontended_s seconds if no other kernel runs. Kernels share the processors of their GPU.
 * memory_bound: memory bandwidth limits the kernel; if ranks share the GPU, it shares that bandwidth, too. */
void kernel_add_flows(struct platform *platform, struct flow_table *flows, uint32_t rank,
                      double uncontended_s, bool memory_bound);

/* Adds the flow of a message that leaves its domain, out of one NIC and into another. Messages with equal keys and
 * numbers share a cap. */
void message_add_flow_between_domains(struct platform *platform, struct flow_table *flows,
                                      uint32_t from, uint32_t to, double bytes, uint32_t key,
                                      uint32_t number);

/* Adds a message between ranks that share a GPU: the receiver, rank `to`, fetches it (loopback.c). */
double loopback_add_message_flows(struct platform *platform, struct flow_table *flows, uint32_t to,
                                  double bytes);
/* Flows over processors and device memory move time instead of bytes: one second of uncontended use counts as this many
 * bytes. */
extern const double device_time_per_s;

#endif
