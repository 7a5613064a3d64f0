/* traces/kineto_launch.h: the operators that launched kernels, and the profiler's steps. Private to
 * the readers of recordings of the PyTorch profiler. */
#ifndef TRACES_KINETO_LAUNCH_H
#define TRACES_KINETO_LAUNCH_H

#include "traces/kineto_events.h"

#include <stddef.h>
#include <stdint.h>

/* The profiler's steps in the order of their starts. All-zero: none were recorded. */
struct kineto_steps {
    struct kineto_profiler_step {
        double start_us, end_us;
        int32_t number;
    } * steps;
    size_t step_count;
};

void kineto_steps_find(struct kineto_steps *steps, const struct kineto_events *events);
void kineto_steps_release(struct kineto_steps *steps);
/* Returns the number of the profiler's step that runs at an instant; -1: no step runs then. If no steps were recorded,
 * it is 0. */
int32_t kineto_step_at(const struct kineto_steps *steps, double time_us);

/* An operator, and an identifier by which the kernels that it launched name it. */
struct kineto_operator_with_launch_id {
    uint64_t launch_id;   /* "External id" of the operator, or "correlation" of a call inside it */
    uint32_t event_index; /* the operator */
};

/* The operators that may have launched kernels, sorted by identifier: by their own, and by those of the calls that they
 * made. */
struct kineto_launchers {
    struct kineto_operator_with_launch_id *operators_by_id, *calls_by_id;
    size_t operator_count, call_count;
};

/* Fills *launchers; release it. inner[event_count]: for a call of the GPU's runtime, the operator around it;
 * UINT32_MAX: there is none, or the event is no call. */
void kineto_launchers_find(struct kineto_launchers *launchers, const struct kineto_events *events,
                           const uint32_t *inner);
void kineto_launchers_release(struct kineto_launchers *launchers);
/* Returns the operator that launched a kernel, as the index of its event; UINT32_MAX: it is not known. The correlation
 * of the launch is tried before the "External id", because in recordings of 2022 no operator has the "External id" of a
 * kernel. */
uint32_t kineto_launcher_of(const struct kineto_launchers *launchers,
                            const struct kineto_event *kernel);

#endif
