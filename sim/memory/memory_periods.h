/* sim/memory/memory_periods.h: peaks of live bytes from the few periods that were simulated.
 *
 * Where a run of periods is steady, what comes and goes in the time of one comes and goes again a
 * period later, of other buffers. So live bytes rise or fall by the same from period to period, and of
 * the periods left out only the last can hold a peak. docs/simulation.md, "Memory over time". */
#ifndef SIM_MEMORY_PERIODS_H
#define SIM_MEMORY_PERIODS_H

#include "sim/plan/periods.h"
#include "sim/sim.h"

/* The short list and its times, of one class of ranks after the other. */
struct memory_periods {
    const struct periods *periods;
    const struct depth_cut *cut; /* from the outside inwards */
    int cuts;
    const double *start_s, *end_s;
};

/* Fills result->peak and result->host as memory_peaks() does. Returns false when they cannot be told
 * from the short list; they are not filled then. */
bool memory_peaks_of_periods(const struct ir *ir, const struct cluster *cluster,
                             const struct memory_periods *from, struct sim_result *result);

#endif
