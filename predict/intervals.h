/* predict/intervals.h: the 90 % intervals of a prediction, from measured runs like it (models/interval.h). */
#ifndef PREDICT_INTERVALS_H
#define PREDICT_INTERVALS_H

#include "base/text.h"
#include "models/interval.h"
#include "predict/prediction.h"
#include "predict/similarity.h"

#include <stdbool.h>

/* The 90 % intervals of a whole step, for times and for device memory, from the residuals that ship with the program.
 * There are none for a part of a model, none for ideal hardware or profile ideal (no measured run is similar), and
 * none if no residuals are found. Times have none before spreads_find() on a machine with measured numbers, and on a
 * device with estimated numbers of which there is no measured run. Plain bytes: the struct can be copied between
 * processes. */
struct intervals {
    struct similarity like;
    struct interval of[RESIDUAL_COUNT];
    struct spreads
        spreads; /* of the machine, where some of its numbers were measured: in the interval of times */
};
struct intervals intervals_of(const struct prediction *prediction);

/* True if there is an interval for this figure. */
bool intervals_known(const struct intervals *intervals, enum residual_of of);

/* Appends "54.3 to 80.6": the ends of a value's interval, divided by `unit`, with three digits each. */
void intervals_put(struct text *out, const struct interval *interval, double value, double unit);

/* If there is an interval, appends `before`, the text of intervals_put() and a bracket: " (90 %: 54.3 to 80.6)". */
void intervals_put_beside(struct text *out, const char *before, const struct interval *interval,
                          double value, double unit);

/* Appends an interval with these ends, as intervals_put() does. */
void intervals_put_ends(struct text *out, double low, double high);

/* Appends what was never measured of an interval, the three largest: "tensor parallelism with torchtitan (10 %), fa3 on
 * h200 (6 %)"; nothing where all was. adds: with what each adds to the standard deviation. */
void intervals_put_unmeasured(struct text *out, const struct intervals *intervals,
                              enum residual_of of, bool adds);

/* Appends "time -18 to +42 %, never measured: ...; memory ...". */
void intervals_put_from(struct text *out, const struct intervals *intervals);

/* Appends what an interval rests on: what was never measured, or that all was. For times, if numbers of the machine were
 * measured, these come first: "65 % of the step goes with figures that were measured on this machine, whose spreads move it
 * by this much: products 16 %; not measured are links within a node (35 % of it)". */
void intervals_put_evidence(struct text *out, const struct intervals *intervals,
                            enum residual_of of);

/* Appends the line "interval   90 %: time ...", where there is an interval. */
void intervals_put_line(struct text *out, const struct intervals *intervals);

#endif
