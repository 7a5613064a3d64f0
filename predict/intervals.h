/* predict/intervals.h: the 90 % intervals of a prediction, from measured runs like it (models/interval.h). */
#ifndef PREDICT_INTERVALS_H
#define PREDICT_INTERVALS_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/prediction.h"
#include "predict/similarity.h"

#include <stdbool.h>

/* The 90 % intervals of a whole step, for its time and for device memory, from the residuals that ship with the
 * program. There are none for a part of a model; none on ideal hardware or with profile `ideal`, since no measured run
 * is similar; and none if no residuals are found. On two sorts of machine the time has an interval only after
 * spreads_find(): if numbers were measured on it, and if its device has estimated numbers and no measured run. The
 * struct has no pointers, so it can be passed between processes. */
struct intervals {
    struct similarity similarity;
    struct interval of_quantity[RESIDUAL_COUNT];
    /* the spreads of the numbers of the machine, which are part of the interval of the time if some were measured */
    struct spreads spreads;
};
struct intervals intervals_of(const struct prediction *prediction);

/* True if there is an interval for this figure. */
bool intervals_are_known(const struct intervals *intervals, enum residual_of of);

/* Appends "54.3 to 80.6": the ends of a value's interval, each divided by `unit`, with three digits. */
void intervals_put(struct text *out, const struct interval *interval, double value, double unit);

/* Appends `before`, the text of intervals_put() and a closing bracket, " (90 %: 54.3 to 80.6)", if there is an
 * interval. */
void intervals_put_in_brackets(struct text *out, const char *before,
                               const struct interval *interval, double value, double unit);

/* Appends an interval with these ends, as intervals_put() does. */
void intervals_put_ends(struct text *out, double low, double high);

/* Appends the features of an interval that were never measured, three at most: "tensor parallelism with torchtitan (10
 * %), fa3 on h200 (6 %)". Appends nothing if all were measured. adds: the text has in brackets what each adds to the
 * standard deviation. */
void intervals_put_unmeasured(struct text *out, const struct intervals *intervals,
                              enum residual_of of, bool adds);

/* Appends the intervals of both figures, and what was never measured: "time -18 to +42 %, never measured: ...; memory
 * ...". */
void intervals_put_both(struct text *out, const struct intervals *intervals);

/* Appends the evidence for an interval: the features that were never measured, or that all of them were. If numbers of
 * the machine were measured, the text for times begins with these: "65 % of the step goes with figures that were
 * measured on this machine, whose spreads move it by this much: products 16 %; not measured are links within a node (35
 * % of it)". */
void intervals_put_evidence(struct text *out, const struct intervals *intervals,
                            enum residual_of of);

/* Appends the line "interval   90 %: time ..." if there is an interval. */
void intervals_put_line(struct text *out, const struct intervals *intervals);

#endif
