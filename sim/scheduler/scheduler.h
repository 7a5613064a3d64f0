/* sim/scheduler/scheduler.h: the event core: dependency counters, hosts that issue, events that meet.
 *
 * Every op counts what it still waits for: its issue, the op before it on its stream, its
 * waits. An op whose duration is known when it starts ends at a known date, which is handed to
 * its successors at once, ahead of the clock: kernels, hosts and rendezvous_count cost no
 * event of the engine. Only what moves bytes over links does: one timer for the latency and the
 * flows. Hence dates handed on are never before the engine's clock, and often after it.
 *
 * One call simulates one step and fills times of every class's ops. */
#ifndef SIM_SCHEDULER_H
#define SIM_SCHEDULER_H

#include "base/text.h"
#include "sim/plan/depth.h"
#include "sim/plan/fold.h"
#include "sim/plan/plan.h"

struct scheduler;

struct schedule_times {
    double *start_s, *end_s;  /* rows of the classes one behind the other, all 0 before */
    uint64_t *transfers_done; /* [transfer_count] events of each, by a class's lowest channel; of a
                                 sample, those of the whole list */
    double step_s;
    uint64_t flows, timers; /* started in the engine */
    struct depth_run
        *run; /* [run_count] whose periods may be left out (sim/scheduler/leap.h): kept and */
    uint32_t run_count; /* first_kept then say which; rows of those are not written */
    uint32_t ahead;     /* periods that hosts issue beyond the one that all ranks have ended last */
    bool late;          /* leaving periods out was too late: the times are worth nothing */
};

/* Rows of class c in the arrays: from begin[c] to begin[c + 1]; into begin[class_count + 1]. */
void schedule_rows(const struct sim_plan *plan, const struct fold *fold, size_t *begin);

/* The tables of one run, which nothing has happened in. They refer to plan and fold. */
struct scheduler *schedule_new(const struct sim_plan *plan, const struct fold *fold);
void schedule_free(struct scheduler *s);

/* Runs the step, once; the arrays are the caller's. On STATUS_BAD_INPUT (the schedule cannot end)
 * and STATUS_SYSTEM (the engine failed), one line without its end is in *why. May be called once per
 * process when there are flows. */
enum status schedule_run(struct scheduler *s, struct schedule_times *times, struct text *why);

#endif
