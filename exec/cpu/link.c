#include "exec/cpu/link.h"

#include "exec/run.h"

#include <time.h>

/* The longest sleep in seconds: within this time a thread notices that the run has stopped. */
static const double LONGEST_SLEEP_S = 0.05;

void cpu_link_init(struct emulated_link *link, struct exec_emulated_link_limits limits)
{
    *link = (struct emulated_link){.limits = limits};
    pthread_mutex_init(&link->lock, NULL);
}

void cpu_link_release(struct emulated_link *link)
{
    pthread_mutex_destroy(&link->lock);
}

double cpu_link_send_and_get_arrival_s(struct emulated_link *link, double now_s, double bytes)
{
    if (link->limits.bytes_per_s <= 0)
        return now_s + link->limits.latency_s;
    pthread_mutex_lock(&link->lock);
    double begin_s = link->idle_from_s > now_s ? link->idle_from_s : now_s;
    double end_s = link->idle_from_s = begin_s + bytes / link->limits.bytes_per_s;
    pthread_mutex_unlock(&link->lock);
    return end_s + link->limits.latency_s;
}

void cpu_sleep_until(double until_s, const atomic_bool *stop)
{
    double now_s = run_now_s();
    while (now_s < until_s && !atomic_load_explicit(stop, memory_order_relaxed)) {
        double next_s = until_s - now_s > LONGEST_SLEEP_S ? now_s + LONGEST_SLEEP_S : until_s;
        struct timespec t = {.tv_sec = (time_t)next_s};
        t.tv_nsec = (long)((next_s - (double)t.tv_sec) * 1e9);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        now_s = run_now_s();
    }
}
