/* sim/scheduler/engine.h: links, timers and flows over SimGrid, as C functions.
 *
 * The functions call the module longhaul_simgrid.so (sim/simgrid/), which the first simulation loads: loading SimGrid
 * takes four fifths of the time in which the program starts, and most commands simulate nothing.
 *
 * A flow moves bytes over all its links at one rate; flows share links max-min fairly. A timer fires at a date. When a
 * flow or a timer ends, `done` is called with the tag with which it was started, while engine_now_s() is the date of
 * the end; `done` may start new timers and flows. SimGrid's state is global and its clock never goes back: one engine
 * per process (sim/child.c forks).
 *
 * A flow takes exactly bytes / rate: SimGrid's network model is not used, and the caller adds latency by a timer before
 * the flow starts. No C++ exception leaves these functions: the first one makes engine_run() fail with its message. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*engine_done_fn)(void *context, int64_t tag);

/* A function that the engine calls before SimGrid's clock advances, again and again until it returns false. until_s:
 * the date of SimGrid's next event in seconds; infinite if there is none, so that the clock would stop. In it the
 * scheduler finishes the ops up to until_s that need no flow. It may set timers, but must not start flows, since
 * SimGrid's clock is still at an earlier date. */
typedef bool (*engine_before_advance_fn)(void *context, double until_s);

/* The functions of the module, which the functions of this header call. version() sets the version of SimGrid with
 * which the module runs. */
struct engine_calls {
    void (*init)(engine_done_fn done, engine_before_advance_fn ahead, void *context,
                 const double *link_bytes_per_s, uint32_t links);
    double (*now_s)(void);
    void (*set_timer)(double date_s, int64_t tag);
    void (*start_flow)(const uint32_t *link, uint32_t count, double bytes, int64_t tag);
    const char *(*run)(void);
    void (*version)(int *major, int *minor, int *patch);
};

/* Loads the module, once in a process. Call it before the process forks children that simulate, so that they share the
 * module. */
enum status engine_load(struct diag *diag);

/* engine_append_simgrid_module_path() appends the path of the module's file; engine_version() sets the version of
 * SimGrid. For both the module must be loaded. */
void engine_append_simgrid_module_path(struct text *out);
void engine_version(int *major, int *minor, int *patch);

/* Starts the engine of this process, for which the module must be loaded. Link l < links is a link of one direction
 * with link_bytes_per_s[l], an array of the caller that must stay valid as long as flows start. ahead: NULL if there is
 * nothing to do before the clock advances. */
void engine_init(engine_done_fn done, engine_before_advance_fn ahead, void *context,
                 const double *link_bytes_per_s, uint32_t links);

/* Returns the simulated date in seconds. */
double engine_now_s(void);

/* Sets a timer that fires at date_s >= engine_now_s(). Timers of one date fire in the order they were set. */
void engine_set_timer(double date_s, int64_t tag);

/* A flow moves a whole number of parts of a byte, at least 1; this many parts are one byte. */
enum { ENGINE_PARTS_PER_BYTE = 1024 };

/* Starts a flow of `bytes` now. It occupies link[0..count) at one rate: the hops of a message, or every port of a
 * collective. A link must not be named twice. tag: a number >= 0 that `done` receives when the flow ends. */
void engine_start_flow(const uint32_t *link, uint32_t count, double bytes, int64_t tag);

/* Runs until no timer and no flow is left. Returns NULL, or the text of an error in static memory. */
const char *engine_run(void);

#ifdef __cplusplus
}
#endif

#endif
