/* traces/kineto_issue_parts.h: the calls of a recording as traces/kineto.c finds them. Private to traces/kineto*.c. */
#ifndef TRACES_KINETO_ISSUE_PARTS_H
#define TRACES_KINETO_ISSUE_PARTS_H

#include "traces/kineto_events.h"
#include "traces/kineto_issue.h"

/* A call. */
struct kineto_issued {
    double start_us;
    uint32_t event;          /* the call */
    uint32_t operator_event; /* of the operator that made it; UINT32_MAX: none */
    int32_t step;            /* the profiler's; -1: outside all steps */
};

/* Sums the calls of each step. issued[0..count) may have any order; it is sorted by start. */
void kineto_issue_make(struct kineto_issue *issue, const struct kineto_events *events,
                       struct kineto_issued *issued, size_t count);

#endif
