/* cli/measure/compared.h: a predicted and a measured trace, read from files and compared. */
#ifndef CLI_MEASURE_COMPARED_H
#define CLI_MEASURE_COMPARED_H

#include "base/diag.h"
#include "traces/compare.h"
#include "traces/explain.h"
#include "traces/kineto_issue.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* All-zero is empty. */
struct compared {
    struct trace predicted, measured;
    struct comparison comparison; /* borrows both */
};

/* A measured trace and the kind of program that recorded it. */
struct recording {
    struct trace trace;
    bool foreign; /* recorded by the PyTorch profiler */
};

/* True if a text holds op rows (ops.csv) or is a recording of the PyTorch profiler. */
bool recording_recognise(const char *data, size_t size);

/* Reads a folder of predict -o or run -o, an ops.csv, or a recording of the PyTorch profiler. *recording must be
 * all-zero; the caller releases its trace in either case. issue: all-zero; receives the calls of the issuing threads
 * if the profiler recorded a GPU, and the caller releases it; NULL: the calls are not needed. */
enum status recording_load(struct recording *recording, struct kineto_issue *issue,
                           const char *path, struct diag *diag);

/* Reads and compares a predicted and a measured trace. Each path is a folder of predict -o or run -o or an ops.csv;
 * `measured` may also be a recording of the PyTorch profiler. *compared must be all-zero; release it even after an
 * error. */
enum status compared_make(struct compared *compared, const char *predicted, const char *measured,
                          struct diag *diag);
/* Explains the difference between a prediction and a measured run: measured[0..count) is one trace of `run`, or
 * recordings of the PyTorch profiler, one file per rank. *explanation must be all-zero; release it even after an
 * error. */
enum status compared_explain(struct explanation *explanation, const char *predicted,
                             const char *const *measured, size_t count, struct diag *diag);
void compared_release(struct compared *compared);

#endif
