/* cli/plan/ranking.h: what the reports of a search say about its configurations: each strategy's best, how much
 * slower a configuration is than the winner, and the command that predicts a configuration. */
#ifndef CLI_PLAN_RANKING_H
#define CLI_PLAN_RANKING_H

#include "cli/plan/report.h"

/* The results of a search among the configurations of one strategy. */
struct strategy_results {
    const struct outcome *best; /* the best one that was simulated; NULL: none was */
    /* of the configurations that do not fit, the one that lacks the least memory; NULL: there is none */
    const struct outcome *nearest_unfit;
    /* The configuration that was tried with the longest sequence, among those whose search ended before memory was
     * full (outcome.is_open_ended), so that longer sequences may fit. NULL: there is none. */
    const struct outcome *longest_open_ended_outcome;
    /* numbers of configurations: all; those that cannot be better than the winner; those that were not searched */
    size_t member_count, slower_count, unsearched_count;
    double rate_bound; /* a rate in tokens/s/GPU that no member exceeds */
};
struct strategy_results plan_strategy_results(const struct best *best, uint8_t strategy);

/* Returns the cause whose time per sequence exceeds that in the winner's step most, and sets *by_s to the difference
 * in seconds. If no cause takes longer, or if causes are not known, sets *by_s to 0; the returned cause then has no
 * meaning. */
enum cause plan_slower_cause(const struct outcome *outcome, const struct outcome *winner,
                             double *by_s);

/* Appends by how much an outcome is slower than the winner, and why: " (-3.2 %; per sequence 1.2 s
 * more: pipeline fill)"; without the cause if no cause takes longer. Appends " (as fast)" if the
 * difference would be printed as 0. */
void plan_put_slowdown(struct text *out, const struct outcome *outcome,
                       const struct outcome *winner);
/* Appends the GiB that a GPU needs. If it is not sure that they fit, appends how likely they do: "78.8 GiB (fits in 8
 * of 10 cases)". Otherwise, if the GPU is nearly full only because its allocator has a cache, appends how much of them
 * is cache: "78.8 GiB (9.80 GiB of it cache)". */
void plan_put_needed_device_memory(struct text *out, const struct verdict *verdict);
/* plan_put_base_command() appends a command without the options of a configuration. plan_put_row_options() appends
 * these options, with --seq if the length was searched for. Both together predict the configuration. */
void plan_put_row_options(struct text *out, const struct plan_report *report,
                          const struct outcome *outcome);
void plan_put_base_command(struct text *out, const struct plan_report *report);

/* Returns the seconds of a step. With packed documents it is the median over the steps that were predicted. */
double plan_step_s(const struct outcome *outcome);
/* Appends why a configuration does not count as fitting: "2.31 GiB too much", or, if it is only less likely to fit than
 * was asked for, "fits at most in 6 of 10 cases". */
void plan_put_unfit_reason(struct text *out, const struct outcome *outcome);
/* Appends ", 90 % at most 6.9 s, worst 7.2 s in 8 batches" if sequences are packed from documents. */
void plan_put_batch_spread(struct text *out, const struct outcome *outcome);
/* Appends ", faster than the best in 2 of 8 batches" if the outcome was predicted on several packed batches, or ",
 * in 1 batch" if on one. Appends nothing without documents. */
void plan_put_batches_won(struct text *out, const struct outcome *outcome);

/* Appends the rate of a strategy that lost, "310.2 tokens/s/GPU (-3.2 %; ...)", or, if the longest
 * sequence is searched for, its longest sequence; or why it has none. */
void plan_put_strategy_result(struct text *out, const struct plan_report *report,
                              const struct strategy_results *family);

/* Prints which kernels of attention the strategies were predicted with, if these differ. */
void plan_print_attention_kernels(const struct screen *screen, const struct best *best);

#endif
