/* cli/validate/check_rows.h: checks rows of measurements before they are added: what is missing, and what contradicts
 * itself. Nothing is simulated.
 *
 * The folder cli/validate/ prints the results of `validate`. */
#ifndef CLI_VALIDATE_CHECK_ROWS_H
#define CLI_VALIDATE_CHECK_ROWS_H

#include "base/diag.h"
#include "base/text.h"

/* Checks a CSV of measured runs. Appends a line for each fault, then the number of rows and of faulty rows, and then
 * how many training steps have seconds that could not be checked, if there are any. Returns STATUS_NO if some row is
 * faulty. A file that is not such a CSV, or has no rows, is an error. */
enum status validation_check_rows(struct text *out, const char *path, struct diag *diag);

#endif
