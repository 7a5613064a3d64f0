/* exec/cpu/link.h: a link that is as slow as it is asked to be.
 *
 * Ops that move bytes over a link come one after the other in the order in which they reach it.
 * The thread that waits sleeps, so that overlap of computation and transfers can be measured on
 * the cores that are there. */
#ifndef EXEC_CPU_LINK_H
#define EXEC_CPU_LINK_H

#include "exec/exec.h"

#include <pthread.h>
#include <stdatomic.h>

struct cpu_link {
    struct exec_link limits;
    pthread_mutex_t lock;
    double free_s; /* when what was put on it so far has left it */
};

void cpu_link_init(struct cpu_link *link, struct exec_link limits);
void cpu_link_release(struct cpu_link *link);

/* Puts bytes on the link that were ready at the time now_s; returns when they have arrived. */
double cpu_link_arrival(struct cpu_link *link, double now_s, double bytes);

/* Sleeps until the monotonic clock reads until_s, or *stop. */
void cpu_sleep_until(double until_s, const atomic_bool *stop);

#endif
