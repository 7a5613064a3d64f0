/* cli/validate/check_rows.h: rows of measurements looked through before they are added: what is missing, what
 * contradicts itself. Nothing is simulated. */
#ifndef CLI_VALIDATE_CHECK_ROWS_H
#define CLI_VALIDATE_CHECK_ROWS_H

#include "base/diag.h"
#include "base/text.h"

/* Appends a line for each fault of a CSV of either kind, and how many rows have one; STATUS_NO where any has. A file
 * that is no such CSV is an error. */
enum status validation_check_rows(struct text *out, const char *path, struct diag *diag);

#endif
