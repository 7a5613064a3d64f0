/* traces/perfetto.h: a trace as Chrome trace-event JSON, for ui.perfetto.dev and chrome://tracing.
 *
 * A process per rank (pid is the rank) with a thread per stream, named and in the order compute,
 * communication, copies, host; one complete event per op with its op id, layer, chunk, step,
 * phase, region, bytes and flops as arguments, those that an op has not left out; a counter per
 * memory and category and one for each memory's sum. The header of the trace is under
 * "otherData". Times are microseconds with three decimals; starts and ends are rounded
 * apart, so ops that follow each other without a gap still do. */
#ifndef TRACES_PERFETTO_H
#define TRACES_PERFETTO_H

#include "base/diag.h"
#include "base/text.h"
#include "traces/trace.h"

/* name stands for the output in messages. The one fault is a time that no such file can hold:
 * beyond 4e9 s either way. */
enum status perfetto_print(const struct trace *trace, struct text *out, const char *name,
                           struct diag *diag);

#endif
