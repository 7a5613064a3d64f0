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
    *steps = (struct kineto_steps){heap_alloc(events->count + 1, sizeof *steps->step), 0};
    for (uint32_t i = 0; i < events->count; i++) {
        const struct kineto_event *event = &events->event[i];
        const char *name = events->name[event->name];
        if (event->type == KINETO_ANNOTATION && strncmp(name, prefix, sizeof prefix - 1) == 0) {
            long number = strtol(name + sizeof prefix - 1, NULL, 10);
            int32_t kept = number >= 0 && number < INT32_MAX ? (int32_t)number : INT32_MAX;
            steps->step[steps->count++] =
                (struct kineto_profiler_step){event->start_us, event->end_us, kept};
        }
    }
    if (steps->count > 0)
        qsort(steps->step, steps->count, sizeof *steps->step, compare_steps);
}

void kineto_steps_release(struct kineto_steps *steps)
{
    free(steps->step);
    *steps = (struct kineto_steps){0};
}

int32_t kineto_step_at(const struct kineto_steps *steps, double time_us)
{
    if (steps->count == 0)
        return 0;
    size_t low = 0, high = steps->count; /* the last step that has started is low - 1 */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (steps->step[middle].start_us <= time_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && time_us < steps->step[low - 1].end_us ? steps->step[low - 1].number : -1;
}

/* ---- the operator that launched a kernel ---- */

static int compare_launchers(const void *left, const void *right)
{
    const struct kineto_launch *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

void kineto_launchers_find(struct kineto_launchers *l, const struct kineto_events *events,
                           const uint32_t *inner)
{
    size_t room = events->count + 1;
    *l = (struct kineto_launchers){heap_alloc(room, sizeof *l->operator_of),
                                   heap_alloc(room, sizeof *l->call_of), 0, 0};
    for (uint32_t i = 0; i < events->count; i++) {
        const struct kineto_event *event = &events->event[i];
        if (event->type == KINETO_OPERATOR && event->external != 0)
            l->operator_of[l->operators++] = (struct kineto_launch){event->external, i};
        if (event->type == KINETO_CALL && event->correlation != 0 && inner[i] != NONE)
            l->call_of[l->calls++] = (struct kineto_launch){event->correlation, inner[i]};
    }
    qsort(l->operator_of, l->operators, sizeof *l->operator_of, compare_launchers);
    qsort(l->call_of, l->calls, sizeof *l->call_of, compare_launchers);
}

void kineto_launchers_release(struct kineto_launchers *l)
{
    free(l->operator_of);
    free(l->call_of);
    *l = (struct kineto_launchers){0};
}

static uint32_t find_launcher(const struct kineto_launch *launcher, size_t count, uint64_t id)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (launcher[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return id != 0 && low < count && launcher[low].id == id ? launcher[low].event : NONE;
}

uint32_t kineto_launcher_of(const struct kineto_launchers *l, const struct kineto_event *kernel)
{
    uint32_t found = find_launcher(l->call_of, l->calls, kernel->correlation);
    return found != NONE ? found : find_launcher(l->operator_of, l->operators, kernel->external);
}
