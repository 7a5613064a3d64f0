/* schedule/verify/verify.h: checks whether a schedule is right. Rules have names, and each gives a guarantee.
 *
 * All rules run. The first ten failures of each rule are reported, each with a counterexample: the ops, the buffers and
 * element ranges, and a rank on which it goes wrong; further ones are counted. A schedule that passes can neither
 * deadlock nor race nor read what was not written, whatever the ops cost. Order inside a rank is checked once per role
 * (guards never change it); communication between ranks is checked once for all instances of a group that look the
 * same. docs/ir.md, "Verifier rules", is the reference.
 *
 * The folder schedule/verify/ checks a schedule against rules, and shows a counterexample for each rule that it
 * breaks. */
#ifndef SCHEDULE_VERIFY_VERIFY_H
#define SCHEDULE_VERIFY_VERIFY_H

#include "base/diag.h"
#include "schedule/ir/ir.h"

#include <stddef.h>
#include <stdint.h>

#define VERIFY_RULE_COUNT 20
#define VERIFY_MESSAGES_SHOWN_MAX                                                                  \
    10 /* the most messages of one rule; further ones are only counted */

/* The most bytes of each memory that one rank's planned arena may take; 0: no limit. */
struct verify_arena_limits {
    uint64_t bytes[MEMORY_COUNT];
};

struct verify_result {
    uint64_t failure_count;
    char what_was_checked_text[96]; /* what the rule has looked at: "41216 ops of 4 roles" */
};

struct verify_report {
    struct verify_result result[VERIFY_RULE_COUNT]; /* in the order of verify_rule_name() */
};

/* verify_rule_name() returns the name of a rule, verify_rule_guarantee() what it guarantees, in the order in which
 * rules run; rule < VERIFY_RULE_COUNT. */
const char *verify_rule_name(size_t rule);
const char *verify_rule_guarantee(size_t rule);

/* Runs all rules. Returns STATUS_NO if one fails: then diag has a message for each failure, "name: error: rule: what",
 * at most VERIFY_MESSAGES_SHOWN_MAX for each rule, and a note with the number of further failures. name: the schedule's
 * name in messages. limits, report and diag may be NULL. The schedule does not change, except for the look-up tables of
 * its names. */
enum status verify(const struct ir *ir, const struct verify_arena_limits *limits, const char *name,
                   struct verify_report *report, struct diag *diag);

#endif
