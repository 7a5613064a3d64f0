/* cli/measure/compared.h: a predicted and a measured trace, read from files and compared. */
#ifndef CLI_MEASURE_COMPARED_H
#define CLI_MEASURE_COMPARED_H

#include "base/diag.h"
#include "traces/compare.h"
#include "traces/trace.h"

/* All-zero is empty. */
struct compared {
    struct trace predicted, measured;
    struct comparison comparison; /* borrows both */
};

/* Each path is a folder of predict -o or run -o, an ops.csv, or, of the measured one, a recording of
 * the PyTorch profiler. *compared must be all-zero; release it in either case. */
enum status compared_make(struct compared *compared, const char *predicted, const char *measured,
                          struct diag *diag);
void compared_release(struct compared *compared);

#endif
