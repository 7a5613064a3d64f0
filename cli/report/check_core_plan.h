/* cli/report/check_core_plan.h: core plans, as longhaul check verifies and weighs them. */
#ifndef CLI_REPORT_CHECK_CORE_PLAN_H
#define CLI_REPORT_CHECK_CORE_PLAN_H

#include "cli/common/options.h"

#include <stdbool.h>

/* True if a file begins as a core plan does. False if it cannot be read; standard input ("-") is never one. */
bool check_core_plan_is(const char *path);

/* Verifies the plan of a file by the rule `coverage`, and prints its balance and the rows that travel. */
enum status check_core_plan(const char *path, const struct options *options, struct diag *diag);

#endif
