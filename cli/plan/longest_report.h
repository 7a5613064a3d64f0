/* cli/plan/longest_report.h: `plan --longest`: the longest sequence of one configuration, with its
 * certificate. */
#ifndef CLI_PLAN_LONGEST_REPORT_H
#define CLI_PLAN_LONGEST_REPORT_H

#include "base/text.h"
#include "predict/alternatives.h"
#include "predict/plan/longest.h"

struct flip { /* an option, and the longest sequence with it */
    const char *option;
    int64_t tokens; /* 0: refused, or nothing fits */
};

struct longest_report {
    bool brief; /* set by the caller: the length alone, neither simulated nor with other options */
    struct longest longest;
    struct ladder ladder;
    struct request request;             /* degrees filled in */
    struct prediction at, beyond;       /* simulated; empty where there is none */
    struct flip flip[ALTERNATIVES_MAX]; /* longest first */
    size_t flips;
    bool flips_asked; /* false: schedules are too large to search each option */
};

/* All that is reported. STATUS_NO: nothing fits. *report must be all-zero but for `brief`; release it in
 * either case. After a signal that base/interrupt.h has noted, the report holds what was known by then. */
enum status longest_report_make(struct longest_report *report, const struct setup *setup,
                                struct diag *diag);
void longest_report_release(struct longest_report *report);

void longest_report_print(struct text *out, const struct longest_report *report);

/* Adds the error of a report that a signal ended: what it lacks. */
enum status longest_report_ended(const struct longest_report *report, struct diag *diag);
void longest_report_print_json(struct text *out, const struct longest_report *report);

#endif
