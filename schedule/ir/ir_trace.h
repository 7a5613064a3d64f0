/* schedule/ir/ir_trace.h: fills those rows and header keys of a trace (traces/trace.h) that follow from the schedule
 * which was simulated or executed. */
#ifndef SCHEDULE_IR_TRACE_H
#define SCHEDULE_IR_TRACE_H

#include "schedule/ir/ir.h"
#include "traces/trace.h"

/* Appends the row of an op that a rank ran from start_s to end_s. */
void ir_trace_append_row_of_op(const struct ir *ir, uint32_t rank, uint32_t op, double start_s,
                               double end_s, struct trace *trace);

/* Sets the header keys of a pipeline: `stages`, the number of stages, and `stage_of.RANK` for every rank that has ops
 * in the trace. Sets none if the schedule has one stage. */
void ir_trace_set_stage_header_keys(const struct ir *ir, struct trace *trace);

#endif
