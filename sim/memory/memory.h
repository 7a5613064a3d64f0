/* sim/memory/memory.h: live bytes over simulated time.
 *
 * A buffer is live from the start of its first writer (first in list order) to the end of the last op of its free
 * set, or to the end of the step if it has none; persistent and bound buffers are live during the whole step,
 * and not counted if they have BUFFER_PART (schedule/ir/ir.h). At equal dates, buffers that end return their bytes
 * before buffers that start take theirs. Host memory is also summed over the ranks of a node.
 *
 * The folder sim/memory/ holds how live bytes change in simulated time, and their peaks. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "models/cluster.h"
#include "sim/result/sim_result.h"
#include "traces/trace.h"

/* Fills result->peak and result->highest_node_peak_by_memory from the times in *result. Returns false for a short list
 * whose memory changes do not repeat around the periods that it leaves out; the peaks then mean nothing. Peaks name ops
 * and buffers of the short list, but their dates and bytes are those of the whole list. */
bool memory_fill_peaks(const struct ir *ir, const struct cluster *cluster,
                       struct sim_result *result);

/* Appends the live bytes of one rank: a row per date and (memory, category) that changes at it. */
void memory_add_trace_rows(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                           struct trace *trace);

/* The moment at which one buffer, in any memory, starts (added_bytes > 0) or stops (added_bytes < 0) being live. */
struct memory_event {
    double time_s;
    uint32_t buffer; /* buffer_id */
    int64_t added_bytes;
};

/* Fills *events with the events of one rank, in the order of time, and returns their number; the caller frees the
 * array. */
size_t memory_list_events(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                          struct memory_event **events);

#endif
