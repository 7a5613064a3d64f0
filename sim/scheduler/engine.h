/* sim/scheduler/engine.h: links, paths, timers and flows over SimGrid, as eight C functions.
 *
 * A flow moves bytes over all links of its path at one rate; flows share links max-min fairly. A timer fires at a
 * date. Both call `done` with the tag with which they were started, while engine_now_s() is the date of their end;
 * new timers and flows may be started from there. SimGrid's state is global and its clock never goes back: one engine
 * per process (sim/child.c forks).
 *
 * A flow takes exactly bytes / rate: SimGrid's network model is not used, and the caller adds latency by a timer
 * before the flow starts. No C++ exception leaves these functions: the first one makes engine_run() fail with its
 * message. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*engine_done_fn)(void *context, int64_t tag);

void engine_init(engine_done_fn done, void *context);

/* Makes a link of one direction, shared max-min by the flows that cross it; returns its id. */
int engine_link(double bytes_per_s);

/* Makes a path and returns its id. A path is a set of links, each named once, all of which a flow occupies at one
 * rate: the hops of a message, or every port of a collective. Any number of flows may use a path. */
int engine_path(const int *links, int count);

/* Returns the simulated date in seconds. */
double engine_now_s(void);

/* Sets a timer that fires at date_s >= engine_now_s(). Timers of one date fire in the order they were set. */
void engine_timer(double date_s, int64_t tag);

/* Lets the caller handle events that need no flow here before the clock reaches them: before the clock advances,
 * `ahead` is called until it returns false, each time with the date to which the clock will advance (infinite: it will
 * stop). `ahead` may set timers, but must not start flows. */
typedef bool (*engine_ahead_fn)(void *context, double until_s);
void engine_run_ahead(engine_ahead_fn ahead);

/* A flow moves a whole number of these parts of a byte, at least 1. */
enum { ENGINE_BYTE_PARTS = 1024 };

/* Starts a flow of `bytes` over a path now. tag >= 0. */
void engine_flow(int path, double bytes, int64_t tag);

/* Runs until no timer and no flow is left. Returns NULL, or the text of an error in static memory. */
const char *engine_run(void);

#ifdef __cplusplus
}
#endif

#endif
