/* cli/plan/report.h: the result of a search: the ranking, why each strategy lost, and the winner's step on machines
 * each of which differs from the given one in one property. */
#ifndef CLI_PLAN_REPORT_H
#define CLI_PLAN_REPORT_H

#include "base/text.h"
#include "cli/common/rows.h"
#include "cli/common/screen.h"
#include "predict/plan/best.h"
#include "predict/plan/probable.h"
#include "predict/plan/sensitivity.h"
#include "predict/plan/split.h"

/* The tables of `plan --json` whose rows the screen shows as sentences. PLAN_OUTCOME: a configuration; PLAN_BATCHES:
 * its steps over packed batches; PLAN_FAMILY: the configurations of a strategy. */
enum { PLAN_OUTCOME, PLAN_BATCHES, PLAN_FAMILY, PLAN_TABLE_COUNT };
extern const struct row_table plan_tables[PLAN_TABLE_COUNT];

#define PLAN_STRATEGIES_MAX 16 /* at least as many as there are strategies */

struct plan_report {
    struct best *best; /* plan_report_make() completes the intervals of the rows that are shown */
    /* the probability with which the winner fits, and a better configuration that fits with a lower probability */
    const struct fits_probabilities_of_winner *fits_probabilities;
    struct setup *setup;        /* the setup that was searched */
    size_t shown_row_count;     /* how many rows of the ranking are printed */
    bool has_details;           /* all details are found and printed, which JSON always has */
    const char *only_framework; /* the framework to which the search was restricted; NULL: none */
    /* a command with the options that all rows share; plan_put_base_command() and plan_put_row_options() complete it to
     * the command that predicts a row */
    const char *base_command;
    struct step_time_of_sensitivity sensitivity[SENSITIVITIES]; /* filled only if has_details */
    /* [strategies] the seconds per sequence by which the best configuration of a strategy is slower than the winner,
     * split by what causes them; known only for strategies that lost, if has_details */
    struct lag_by_cause lag_by_cause_by_strategy[PLAN_STRATEGIES_MAX];
};

/* Completes the report: the intervals of the rows that are shown. With report->has_details also
 * simulates the winner on other machines, each of which differs from the given one in one property.
 * Unless the goal is the longest sequence it then splits the loss of each strategy that lost, too,
 * for which it simulates the strategy's best configuration with profile `ideal`. Does nothing if no
 * configuration was simulated. */
enum status plan_report_make(struct plan_report *report, struct diag *diag);

enum { PLAN_LABEL = 11 }; /* columns of the label that a line of the details begins with */

/* Append the report. plan_report_print(): one screen, which begins with the answer. plan_report_print_details(): all
 * details; report->has_details must be set. plan_report_print_json(): the report as JSON. */
void plan_report_print(const struct screen *screen, const struct plan_report *report);
void plan_report_print_details(struct text *out, const struct plan_report *report);
void plan_report_print_json(struct text *out, const struct plan_report *report);

#endif
