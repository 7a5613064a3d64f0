/* cli/plan/longest_report.h: `plan --longest`: the longest sequence of one configuration and its
 * certificate as text and as JSON. */
#ifndef CLI_PLAN_LONGEST_REPORT_H
#define CLI_PLAN_LONGEST_REPORT_H

#include "cli/common/rows.h"
#include "cli/common/screen.h"
#include "predict/plan/longest_certificate.h"

extern const struct row_table longest_table; /* options that make a longer sequence fit, in JSON */

/* Appends one screen, which begins with the answer. If `all`, it also has what fills memory at the next length. */
void longest_report_print(const struct screen *screen, const struct longest_certificate *report,
                          bool all);

/* Adds the error message for a search that a signal ended. It says what the report lacks. */
enum status longest_report_add_interrupt_error(const struct longest_certificate *report,
                                               struct diag *diag);
void longest_report_print_json(struct text *out, const struct longest_certificate *report);

#endif
