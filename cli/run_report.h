/* cli/run_report.h: what `longhaul run` prints and leaves behind. */
#ifndef CLI_RUN_REPORT_H
#define CLI_RUN_REPORT_H

#include "base/diag.h"
#include "base/text.h"
#include "exec/agreement.h"
#include "exec/exec.h"
#include "schedule/ir.h"

#include <stdint.h>

/* Appends a table with the error of every tensor, and the verdict. */
void run_report_agreement(struct text *out, const struct agreement *agreement);

/* Appends a line per step: its loss, and with reference (else NULL) the reference's and how far
 * off it is. */
void run_report_curve(struct text *out, const double *loss, const double *reference, uint32_t steps,
                      double tolerance);

/* Appends what ran, how long a step took and what memory it had. what: "longhaul-3m, ulysses". */
void run_report_times(struct text *out, const char *what, const char *backend, const struct ir *ir,
                      const struct exec_result *result);

/* Writes ops.csv, memory.csv and trace.json of the median step into a folder, which is made when
 * it is not there. */
enum status run_report_save(const struct exec_result *result, const char *folder,
                            struct diag *diag);

#endif
