/* traces/perfetto.h: a trace as Chrome trace-event JSON, for ui.perfetto.dev and chrome://tracing.
 *
 * Each rank is a process (pid is the rank) with a named thread per stream, in the order compute,
 * communication, copies, host, others. Each op is a complete event with its op id, layer, chunk, step,
 * micro, phase, region, bytes and flops as arguments, as far as the op has them. Each rank has a counter
 * per memory and category, and one for the sum of each memory. The header of the trace is under
 * "otherData". Times are microseconds with three decimals. Starts and ends are rounded separately, so
 * that an op which starts when another ends does so in the file, too. */
#ifndef TRACES_PERFETTO_H
#define TRACES_PERFETTO_H

#include "base/diag.h"
#include "base/text.h"
#include "traces/trace.h"

/* Appends the JSON. name stands for the output in messages. The only error is a time beyond +-4e9 s, which such a
 * file cannot hold. */
enum status perfetto_print(const struct trace *trace, struct text *out, const char *name,
                           struct diag *diag);

#endif
