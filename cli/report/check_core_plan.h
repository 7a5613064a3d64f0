/* cli/report/check_core_plan.h: core plans, as longhaul check verifies and weighs them. */
#ifndef CLI_REPORT_CHECK_CORE_PLAN_H
#define CLI_REPORT_CHECK_CORE_PLAN_H

#include "base/text.h"
#include "cli/common/options.h"

/* Verifies a plan, the text of a file, by the rule `coverage`, and prints its balance and the rows that travel. */
enum status check_core_plan(const char *name, const struct text *text,
                            const struct options *options, struct diag *diag);

#endif
