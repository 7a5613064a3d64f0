#include "traces/kineto_launch.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* ---- steps ---- */

static int compare_steps(const void *left, const void *right)
{
    const struct kineto_profiler_step *a = left, *b = right;
    return a->start_us < b->start_us ? -1 : a->start_us > b->start_us;
}

void kineto_steps_find(struct kineto_steps *steps, const struct kineto_events *events)
{
    static const char prefix[] = "ProfilerStep#";
    *steps = (struct kineto_steps){heap_alloc(events->event_count + 1, sizeof *steps->steps), 0};
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = &events->events[i];
        const char *name = events->name[event->name];
        if (event->type == KINETO_ANNOTATION && strncmp(name, prefix, sizeof prefix - 1) == 0) {
            long number = strtol(name + sizeof prefix - 1, NULL, 10);
            int32_t kept = number >= 0 && number < INT32_MAX ? (int32_t)number : INT32_MAX;
            steps->steps[steps->step_count++] =
                (struct kineto_profiler_step){event->start_us, event->end_us, kept};
        }
    }
    if (steps->step_count > 0)
        qsort(steps->steps, steps->step_count, sizeof *steps->steps, compare_steps);
}

void kineto_steps_release(struct kineto_steps *steps)
{
    free(steps->steps);
    *steps = (struct kineto_steps){0};
}

int32_t kineto_step_at(const struct kineto_steps *steps, double time_us)
{
    if (steps->step_count == 0)
        return 0;
    size_t low = 0, high = steps->step_count; /* the last step that has started is low - 1 */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (steps->steps[middle].start_us <= time_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && time_us < steps->steps[low - 1].end_us ? steps->steps[low - 1].number : -1;
}

/* ---- the operator that launched a kernel ---- */

static int compare_operators_by_launch_id(const void *left, const void *right)
{
    const struct kineto_operator_with_launch_id *a = left, *b = right;
    if (a->launch_id != b->launch_id)
        return a->launch_id < b->launch_id ? -1 : 1;
    return a->event_index < b->event_index ? -1 : a->event_index > b->event_index;
}

void kineto_launchers_find(struct kineto_launchers *l, const struct kineto_events *events,
                           const uint32_t *inner)
{
    size_t room = events->event_count + 1;
    *l = (struct kineto_launchers){heap_alloc(room, sizeof *l->operators_by_id),
                                   heap_alloc(room, sizeof *l->calls_by_id), 0, 0};
    for (uint32_t i = 0; i < events->event_count; i++) {
        const struct kineto_event *event = &events->events[i];
        if (event->type == KINETO_OPERATOR && event->external_id != 0)
            l->operators_by_id[l->operator_count++] =
                (struct kineto_operator_with_launch_id){event->external_id, i};
        if (event->type == KINETO_CALL && event->correlation != 0 && inner[i] != NONE)
            l->calls_by_id[l->call_count++] =
                (struct kineto_operator_with_launch_id){event->correlation, inner[i]};
    }
    qsort(l->operators_by_id, l->operator_count, sizeof *l->operators_by_id,
          compare_operators_by_launch_id);
    qsort(l->calls_by_id, l->call_count, sizeof *l->calls_by_id, compare_operators_by_launch_id);
}

void kineto_launchers_release(struct kineto_launchers *l)
{
    free(l->operators_by_id);
    free(l->calls_by_id);
    *l = (struct kineto_launchers){0};
}

static uint32_t find_launcher(const struct kineto_operator_with_launch_id *launcher, size_t count,
                              uint64_t id)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (launcher[middle].launch_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return id != 0 && low < count && launcher[low].launch_id == id ? launcher[low].event_index
                                                                   : NONE;
}

uint32_t kineto_launcher_of(const struct kineto_launchers *l, const struct kineto_event *kernel)
{
    uint32_t found = find_launcher(l->calls_by_id, l->call_count, kernel->correlation);
    return found != NONE
               ? found
               : find_launcher(l->operators_by_id, l->operator_count, kernel->external_id);
}
