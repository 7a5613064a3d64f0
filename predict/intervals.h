/* predict/intervals.h: the 90 % intervals of a prediction, from measured runs like it (models/interval.h). */
#ifndef PREDICT_INTERVALS_H
#define PREDICT_INTERVALS_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/prediction.h"
#include "predict/similarity.h"

#include <stdbool.h>

/* The 90 % intervals of a whole step, for its time and for device memory, from the residuals that ship with the
 * program. There are none for a part of a model, on ideal hardware, with profile `ideal`, and if no residuals are
 * found. On two sorts of machine the time has an interval only after spreads_find(): machines of which numbers were
 * measured, and machines whose device has estimated numbers and no measured run. The struct has no pointers, so it can
 * be passed between processes. */
struct intervals {
    struct similarity similarity;
    struct interval intervals_by_quantity[RESIDUAL_COUNT];
    /* the spreads of the machine's numbers, if they are part of the time's interval; else all-zero */
    struct spreads spreads;
};
struct intervals intervals_of_prediction(const struct prediction *prediction);

/* True if there is an interval for this figure. */
bool intervals_are_known(const struct intervals *intervals, enum residual_quantity of);

/* Appends "54.3 to 80.6": the ends of a value's interval, each divided by `unit`, with three significant digits, or as
 * whole numbers from 100 on. */
void intervals_put_low_to_high(struct text *out, const struct interval *interval, double value,
                               double unit);

/* Appends `before`, the text of intervals_put_low_to_high() and a closing bracket, " (90 %: 54.3 to 80.6)", if there is
 * an interval. */
void intervals_put_in_brackets(struct text *out, const char *before,
                               const struct interval *interval, double value, double unit);

/* Appends an interval with these ends, as intervals_put_low_to_high() does. */
void intervals_put_ends(struct text *out, double low, double high);

/* Appends the features of an interval that were never measured and that add INTERVAL_NOTABLE_DEVIATION or more to its
 * standard deviation, the largest first and three at most: "tensor parallelism with torchtitan (10 %), fa3 on h200 (6
 * %)". adds: each is followed by what it adds, in brackets. */
void intervals_put_unmeasured(struct text *out, const struct intervals *intervals,
                              enum residual_quantity of, bool adds);

/* Appends the intervals of time and memory that are known, each with its evidence: "time -18 to +42 %, never measured:
 * ...; memory ...". */
void intervals_put_time_and_memory(struct text *out, const struct intervals *intervals);

/* Appends the evidence for an interval: the features of intervals_put_unmeasured(), or, if there are none, that all
 * that the step consists of was measured. Two clauses may follow: one on the user's own runs, if any moved the
 * interval, and, for the time, one on the largest error of estimates, if the step depends on any. If numbers of the
 * machine were measured, the text for the time begins with these: "65 % of the step goes with figures that were
 * measured on this machine, whose spreads move it by this much: products 16 %; not measured are links within a node (35
 * % of it)". If nearly all of the step goes with measured numbers, nothing else follows. */
void intervals_put_evidence(struct text *out, const struct intervals *intervals,
                            enum residual_quantity of);

/* Appends the line "interval   90 %: time ..." if there is an interval. */
void intervals_put_line(struct text *out, const struct intervals *intervals);

#endif
