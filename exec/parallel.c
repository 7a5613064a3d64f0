#define _GNU_SOURCE /* sched_getaffinity() */
#include "exec/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { THREADS_MAX = 256 };

struct thread_part {
    parallel_body *body;
    void *context;
    uint64_t begin, end;
};

static void *run_part(void *argument)
{
    const struct thread_part *part = argument;
    part->body(part->context, part->begin, part->end);
    return NULL;
}

void parallel_for(uint32_t threads, uint64_t count, uint64_t grain, parallel_body *body,
                  void *context)
{
    pthread_t thread[THREADS_MAX];
    struct thread_part part[THREADS_MAX];
    uint64_t grains = (count + grain - 1) / grain,
             most = threads < THREADS_MAX ? threads : THREADS_MAX;
    uint64_t parts = grains < most ? grains : most, started = 0;
    if (parts == 0)
        return;
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t begin = grains * i / parts * grain, end = grains * (i + 1) / parts * grain;
        part[i] = (struct thread_part){body, context, begin, end < count ? end : count};
    }
    while (started + 1 < parts &&
           pthread_create(&thread[started], NULL, run_part, &part[started]) == 0)
        started++;
    /* this thread's part, and parts that got no thread */
    for (uint64_t i = started; i < parts; i++)
        run_part(&part[i]);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

uint32_t parallel_threads_per_rank(uint32_t ranks, uint32_t processes)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    uint32_t all = online > 0 ? (uint32_t)online : 1, share = all / (ranks * processes);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && (uint32_t)CPU_COUNT(&set) < all)
        share = (uint32_t)CPU_COUNT(&set) / ranks;
    return share > 0 ? share : 1;
}
