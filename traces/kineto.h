/* traces/kineto.h: reads recordings of the PyTorch profiler (Kineto's Chrome trace JSON) as traces.
 *
 * If GPU kernels were recorded, they are the rows, on a stream per GPU stream ("gpu0.7"); otherwise the operators of
 * the CPU are, on a stream per thread ("cpu.1"). Of nested operators only the outermost one that does work itself is a
 * row, so that no time counts twice.
 *
 * The columns of a row:
 *   kind    the recorded name
 *   region  the class of that name (traces/kernel_class.h); in phase "optimizer" it is "optimizer", except for messages
 *           and copies
 *   phase   "backward" or "recompute" inside the autograd engine, "optimizer" inside an optimizer, else "forward";
 *           empty for a kernel whose operator is unknown
 *   flops   of a matrix product, from the recorded shapes of its inputs; 0: unknown
 *   bytes   of a copy or a collective
 *   step    the number of the profiler's step; 0 if no steps were recorded. Rows outside of the steps are left out.
 *   op      a running number
 * Times count from the first event.
 *
 * Kernels take class (except messages and copies), phase, step and flops from the operator that launched them, which
 * the recording names by the "correlation" of the launch, or else by "External id". The header has "made_by" and, for
 * distributed runs, "ranks".
 * The format is that of pytorch/kineto, libkineto/src/output_json.cpp. */
#ifndef TRACES_KINETO_H
#define TRACES_KINETO_H

#include "base/diag.h"
#include "traces/kineto_issue.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* True if a text starts with '{', or with '[' and then '{' or ']', so that it can be such a
 * recording but no CSV. */
bool kineto_recognise(const char *data, size_t size);

/* Adds the rows of data[0..size) to the trace, stream by stream in order of start. name stands for the text
 * in messages; with a fault nothing is added. A recording without any row is a fault. */
enum status kineto_parse(struct trace *trace, const char *name, const char *data, size_t size,
                         struct diag *diag);

/* Does what kineto_parse() does, and sums up the calls of the issuing threads in *issue, which must be all-zero and is
 * released by the caller. *issue stays empty if no kernels were recorded. */
enum status kineto_parse_with_host_calls(struct trace *trace, struct kineto_host_calls *issue,
                                         const char *name, const char *data, size_t size,
                                         struct diag *diag);

#endif
