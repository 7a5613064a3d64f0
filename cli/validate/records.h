/* cli/validate/records.h: compares recorded predictions (cli/report/record.h) with the values that were measured
 * later. */
#ifndef CLI_VALIDATE_RECORDS_H
#define CLI_VALIDATE_RECORDS_H

#include "base/diag.h"
#include "base/text.h"

/* Appends some lines for each recorded prediction: its command, its version, the predicted step and, if it was
 * measured, the errors. A last line has totals: how many predictions are recorded and measured, the errors, and how
 * many measured steps are within the recorded intervals. Nothing is predicted again. */
enum status validation_print_record_file(struct text *out, const char *path, struct diag *diag);

#endif
