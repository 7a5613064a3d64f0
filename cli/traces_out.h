/* cli/traces_out.h: the files that `predict -o DIR` leaves behind. */
#ifndef CLI_TRACES_OUT_H
#define CLI_TRACES_OUT_H

#include "base/diag.h"
#include "cli/report.h"

#include <stdbool.h>

/* Writes ops.csv, memory.csv, trace.json and prediction.json, and with emit_ir schedule.ir, into a
 * folder, which is made when it is not there. The traces hold one rank of each class that was
 * simulated. */
enum status traces_write(const struct report *report, const char *folder, bool emit_ir,
                         struct diag *diag);

#endif
