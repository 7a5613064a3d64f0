/* sim/scheduler/engine.h: links, paths, timers and flows over SimGrid, as eight C functions.
 *
 * A flow moves bytes over all links of its path at one rate; flows share links max-min
 * fairly. A timer fires at a date. Both call `done` with the tag they were started with,
 * while engine_now_s() is the date of their end; new timers and flows may be started from
 * there. SimGrid's state is global and its clock never goes back: one engine per process
 * (sim/sim.c forks).
 *
 * What a flow takes is exactly bytes / rate: SimGrid's network model is not used, and
 * latency is paid by the caller with a timer before the flow starts. No C++ exception
 * leaves these functions: the first one makes engine_run() fail with its words. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*engine_done_fn)(void *context, int64_t tag);

void engine_init(engine_done_fn done, void *context);

/* A link of one direction, shared max-min by the flows that cross it; its id. */
int engine_link(double bytes_per_s);

/* A set of links, each named once, that a flow occupies all at the same rate: the hops
 * of a message, or every port of a collective. Any number of flows may use a path. */
int engine_path(const int *links, int count);

/* The simulated date. */
double engine_now_s(void);

/* Fires at date_s >= engine_now_s(). Timers of one date fire in the order they were set. */
void engine_timer(double date_s, int64_t tag);

/* What needs no link may be done ahead of the clock: before the clock goes on, `ahead` is called until
 * it returns false, each time with the date that it will go on to (infinite: to none). It may set
 * timers, and start no flows. */
typedef bool (*engine_ahead_fn)(void *context, double until_s);
void engine_run_ahead(engine_ahead_fn ahead);

/* What a flow moves: parts of a byte, whole ones and at least 1. */
enum { ENGINE_BYTE_PARTS = 1024 };

/* Starts now. tag >= 0. */
void engine_flow(int path, double bytes, int64_t tag);

/* Runs until nothing is left. NULL, or what went wrong (static memory). */
const char *engine_run(void);

#ifdef __cplusplus
}
#endif

#endif
