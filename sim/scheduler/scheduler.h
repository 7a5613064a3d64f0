/* sim/scheduler/scheduler.h: the event core: dependency counters, hosts that issue, rendezvous.
 *
 * Every op counts the dependencies that have not ended: its issue, the op before it on its stream, its waits. If an
 * op's duration is known when it starts, its end date is passed to its successors at once, ahead of the clock: kernels,
 * hosts and rendezvous need no event of the engine. Only ops that move bytes over links in use do: one timer for the
 * latency, and the flows (for flows without contention see sim/scheduler/uncontended.h). So the dates that are passed
 * on are never before the engine's clock, and often after it.
 *
 * One call simulates one step and fills the times of every class's ops.
 *
 * The folder sim/scheduler/ runs the bound ops in simulated time: hosts issue them, streams run them, and links are
 * shared. */
#ifndef SIM_SCHEDULER_H
#define SIM_SCHEDULER_H

#include "base/text.h"
#include "sim/traffic/fold.h"
#include "sim/traffic/traffic.h"

struct scheduler;

struct schedule_times {
    double *start_s, *end_s; /* rows as in fold.first_op_row_by_class, all 0 before the run */
    /* [transfer_count] how often each transfer ended, counted at the lowest channel of its class; ops that a short list
     * leaves out are included. */
    uint64_t *times_each_transfer_ended;
    double step_s;
    uint64_t flows_started, timer_set_count; /* as in struct sim_counts */
};

/* Makes the tables of one run that has not started. They refer to traffic and fold. */
struct scheduler *scheduler_new(const struct traffic *traffic, const struct fold *fold);
void scheduler_free(struct scheduler *s);

/* Runs the step once, and fills the caller's arrays in *times. Returns STATUS_BAD_INPUT if the
 * schedule cannot end, or if a send and the receive that it meets have different numbers of bytes;
 * STATUS_SYSTEM if the engine failed. In both cases *why holds one line of text without a line end. If there
 * are flows, it may be called once per process. */
enum status scheduler_run(struct scheduler *s, struct schedule_times *times, struct text *why);

#endif
