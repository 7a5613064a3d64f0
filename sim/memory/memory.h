/* sim/memory/memory.h: live bytes over simulated time.
 *
 * A buffer is live from the start of its first writer (first in list order) to the end of
 * the last op of its free set, or of the step when it has none; persistent and bound buffers
 * are live during the whole step. At one date, what ends is given back before what starts
 * takes. Host memories are also added up over the ranks of a node. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "models/cluster.h"
#include "sim/result/sim_result.h"
#include "traces/trace.h"

/* Fills result->peak and result->host from the times in *result. Returns false for a sample whose changes at gaps do not
 * repeat. Ops and buffers of peaks are the sample's, dates and bytes the whole list's. */
bool memory_peaks(const struct ir *ir, const struct cluster *cluster, struct sim_result *result);

/* Appends the live bytes of one rank, a row per (memory, category) and change. */
void memory_trace(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                  struct trace *trace);

/* One buffer that comes (bytes > 0) or goes, of any memory. */
struct memory_event {
    double time_s;
    uint32_t buffer; /* buffer_id */
    int64_t bytes;
};

/* The events of one rank in the order of time; the caller frees the array. */
size_t memory_events(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                     struct memory_event **events);

#endif
