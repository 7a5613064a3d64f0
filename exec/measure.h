/* exec/measure.h: turns the measured times of a step into a trace. */
#ifndef EXEC_MEASURE_H
#define EXEC_MEASURE_H

#include "exec/run.h"
#include "traces/trace.h"

/* Adds rows to *trace: the ops that did work and whose times are known, sorted by (start, rank, op), and the live bytes
 * over time, sorted by (rank, time). A buffer is live from the start of the first op that uses it to the end of its
 * free set; a persistent buffer is live from the begin of the step on. A persistent buffer that is only part of another
 * one (BUFFER_PART) is not counted. time: (ranks, assignment.max_op_count_of_role). peak receives the most live bytes
 * of any rank. */
void measure_fill_trace(const struct exec_run *run, const struct op_time *time, struct trace *trace,
                        uint64_t peak[MEMORY_COUNT]);

#endif
