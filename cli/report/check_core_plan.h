/* cli/report/check_core_plan.h: what `longhaul check FILE.plan` prints of a core plan, which says by a table which rank
 * computes which tile of attention (docs/core-plans.md). */
#ifndef CLI_REPORT_CHECK_CORE_PLAN_H
#define CLI_REPORT_CHECK_CORE_PLAN_H

#include "base/text.h"
#include "cli/common/options.h"

/* Verifies a plan, the text of a file, by the rule `coverage` (each visible pair is computed once). For a correct plan
 * prints how evenly ranks share the pairs, and how many rows of queries, keys and values are sent between ranks; for a
 * wrong one only that it is wrong. With --quiet prints nothing. */
enum status check_core_plan(const char *name, const struct text *text,
                            const struct options *options, struct diag *diag);

#endif
