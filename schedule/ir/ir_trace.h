/* schedule/ir/ir_trace.h: the rows and the header of a trace (traces/trace.h) that follow from the schedule which was
 * simulated or executed. */
#ifndef SCHEDULE_IR_TRACE_H
#define SCHEDULE_IR_TRACE_H

#include "schedule/ir/ir.h"
#include "traces/trace.h"

/* Appends the row of an op of a rank, which ran from start_s to end_s. */
void ir_trace_op(const struct ir *ir, uint32_t rank, uint32_t op, double start_s, double end_s,
                 struct trace *trace);

/* Sets the header keys `stages`, the number of pipeline stages, and `stage_of.RANK` of every rank that has a row of an
 * op. Sets nothing if the schedule has one stage. */
void ir_trace_stages(const struct ir *ir, struct trace *trace);

#endif
