/* cli/validate/records.h: predictions that were written down (cli/report/record.h), beside what was measured
 * later. */
#ifndef CLI_VALIDATE_RECORDS_H
#define CLI_VALIDATE_RECORDS_H

#include "base/diag.h"
#include "base/text.h"

/* Appends a line for each recorded prediction, and of those that have measured values the number, the errors and
 * how often the recorded interval holds the measured step. Nothing is predicted anew. */
enum status validation_print_records(struct text *out, const char *path, struct diag *diag);

#endif
