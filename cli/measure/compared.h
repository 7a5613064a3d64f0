/* cli/measure/compared.h: a predicted and a measured trace, read from files and compared. */
#ifndef CLI_MEASURE_COMPARED_H
#define CLI_MEASURE_COMPARED_H

#include "base/diag.h"
#include "base/text.h"
#include "traces/compare.h"
#include "traces/explain.h"
#include "traces/kineto_issue.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* A predicted and a measured trace, and their comparison. All-zero is empty. */
struct compared {
    struct trace predicted, measured;
    struct comparison comparison; /* the comparison borrows both traces */
    /* the text of the measured file, if the PyTorch profiler wrote it; otherwise empty */
    struct text recording;
};

/* A trace that was read, predicted or measured, and what kind of program recorded it. */
struct recording {
    struct trace trace;
    bool is_from_pytorch; /* the PyTorch profiler recorded it; false: `predict` or `run` wrote it */
};

/* Returns whether a text is a file of ops (ops.csv) or a recording of the PyTorch profiler. */
bool recording_has_known_format(const char *data, size_t size);

/* Reads a folder that `predict -o` or `run -o` wrote, an ops.csv, or a recording of the PyTorch
 * profiler. *recording must be all-zero, and the caller releases its trace, even after an error.
 * issue: NULL, or an all-zero struct, which the caller releases; if the profiler recorded a GPU,
 * *issue receives the calls of the issuing threads. */
enum status recording_load(struct recording *recording, struct kineto_host_calls *issue,
                           const char *path, struct diag *diag);

/* Reads a predicted and a measured trace, and compares them. Each path is a folder that `predict -o` or `run -o` wrote,
 * or an ops.csv; `measured` may also be a recording of the PyTorch profiler. *compared must be all-zero; release it
 * even after an error. */
enum status compared_make(struct compared *compared, const char *predicted, const char *measured,
                          struct diag *diag);
/* Explains the difference between a prediction and a measured run. measured[count]: one trace of `run`, or recordings
 * of the PyTorch profiler, each of another rank. *explanation must be all-zero; release it even after an error. */
enum status compared_explain(struct explanation *explanation, const char *predicted,
                             const char *const *measured, size_t count, struct diag *diag);
void compared_release(struct compared *compared);

#endif
