/* exec/cpu/link.h: an emulated link with a given bandwidth and latency.
 *
 * Ops that move bytes over a link take turns in the order in which they reach it. The thread that waits sleeps, so
 * that the cores of the machine are free to compute, and the overlap of computation and transfers can be measured. */
#ifndef EXEC_CPU_LINK_H
#define EXEC_CPU_LINK_H

#include "exec/exec.h"

#include <pthread.h>
#include <stdatomic.h>

struct emulated_link {
    struct exec_emulated_link_limits limits;
    pthread_mutex_t lock;
    double idle_from_s; /* time at which all bytes put on the link so far have left it */
};

void cpu_link_init(struct emulated_link *link, struct exec_emulated_link_limits limits);
void cpu_link_release(struct emulated_link *link);

/* Puts bytes that are ready at the time now_s on the link, after all earlier ones, and returns the time at which they
 * have arrived. On a link whose bandwidth is not limited (0) they do not wait for earlier ones. */
double cpu_link_send_and_get_arrival_s(struct emulated_link *link, double now_s, double bytes);

/* Sleeps until the monotonic clock reads until_s or *stop is true. */
void cpu_sleep_until(double until_s, const atomic_bool *stop);

#endif
