/* cli/report/record.h: a prediction that is recorded before the step is measured, as one line of JSON.
 *
 * A line holds the date, the program's version and commit, the command, the prediction, and `measured`, whose members
 * are null until somebody measures the step and fills them in. `longhaul validate --records` reads such lines
 * (cli/validate/records.h). docs/commands.md has the members. */
#ifndef CLI_REPORT_RECORD_H
#define CLI_REPORT_RECORD_H

#include "base/diag.h"
#include "base/json.h"
#include "cli/report/report.h"

/* Appends the line to a file, which is created if it does not exist. The report must be of a whole step. */
enum status record_append_prediction(const char *path, const struct report *report,
                                     struct diag *diag);

/* Appends to the file the record of a prediction.json whose step took measured_s seconds. */
enum status record_append_with_measured_step(const char *path, struct json_node prediction,
                                             double measured_s, struct diag *diag);

#endif
