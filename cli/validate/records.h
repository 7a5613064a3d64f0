/* cli/validate/records.h: compares recorded predictions (cli/report/record.h) with the values that were measured
 * later. */
#ifndef CLI_VALIDATE_RECORDS_H
#define CLI_VALIDATE_RECORDS_H

#include "base/diag.h"
#include "base/text.h"

/* Appends a line for each recorded prediction. For those that have measured values it also appends their number, the
 * errors, and how often the recorded interval contains the measured step. Nothing is predicted anew. */
enum status validation_print_records(struct text *out, const char *path, struct diag *diag);

#endif
