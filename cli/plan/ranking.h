/* cli/plan/ranking.h: what the reports of a search say of its configurations: each strategy's best, how far one is
 * behind the winner, and the command that predicts it. */
#ifndef CLI_PLAN_RANKING_H
#define CLI_PLAN_RANKING_H

#include "cli/plan/report.h"

/* The configurations of one strategy. */
struct family {
    const struct outcome *best, *nearest; /* that was simulated; of those that do not fit */
    const struct outcome *cut; /* of those that were not asked about longer lengths, the longest */
    size_t members, slower, left;
    double most; /* tokens/s/GPU that no member exceeds */
};
struct family plan_family_of(const struct best *best, uint8_t strategy);

/* The cause that takes most longer than in the winner's step, and by how much for each sequence; 0: none does. */
enum cause plan_slower_cause(const struct outcome *outcome, const struct outcome *winner,
                             double *by_s);

/* Appends " (-3.2 %; pipeline fill takes 1.2 s longer per sequence)", or " (as fast)". */
void plan_put_loss(struct text *out, const struct outcome *outcome, const struct outcome *winner);
/* Appends "78.8 GiB (9.80 GiB of it cache)". */
void plan_put_device(struct text *out, const struct verdict *verdict);
/* Appends the options that predict a configuration, and the command that they complete. */
void plan_put_options(struct text *out, const struct plan_report *report,
                      const struct outcome *outcome);
void plan_put_command(struct text *out, const struct plan_report *report);

/* Prints which kernels of attention the strategies were predicted with, where they differ. */
void plan_print_kernels(const struct screen *screen, const struct best *best);

#endif
