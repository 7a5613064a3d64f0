/* predict/observe_issue.h: derives measured points of the issuing thread from a recording of the PyTorch profiler on
 * a GPU (traces/kineto_issue.h).
 *
 * Each recorded step gives one point for each of the following numbers of the host of which it has calls. Launch: the
 * mean of the step's launches. Op: a launch plus the time that passes between launches, per operator that launches
 * kernels. Collective or copy: its call plus the time before it. Wait: the time before the call, plus the time from the
 * end of what it waited for to its own end. The overhead of the profiler is part of all of them. */
#ifndef PREDICT_OBSERVE_ISSUE_H
#define PREDICT_OBSERVE_ISSUE_H

#include "models/points.h"
#include "traces/kineto_issue.h"

/* Appends the points of a recording of one rank. name: the name of the recording. Appends to *notes a line that says
 * what was counted and what was left out. */
void append_points_of_observed_issue(const struct kineto_host_calls *issue, uint32_t rank,
                                     const char *name, struct points *points, struct text *notes);

#endif
