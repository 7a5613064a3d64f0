/* predict/spreads.h: by how much a step changes when the numbers of its machine are wrong. It predicts the step again
 * with each part of the numbers changed (models/spread.h). docs/accuracy/intervals.md, "Machines that were measured",
 * has the method. */
#ifndef PREDICT_SPREADS_H
#define PREDICT_SPREADS_H

#include "base/diag.h"
#include "models/spread.h"
#include "predict/setup/setup.h"

#include <stdbool.h>

struct prediction;

/* The effect of each part. All-zero: the numbers of the machine are a preset's, and the errors of published steps say
 * how certain a prediction is. Plain bytes, because they are passed between processes. */
struct spreads {
    bool known; /* a number was measured on the machine, or its device is an estimate */
    double spread[SPREAD_PART_COUNT]; /* of the measured numbers of a part; 0: none was measured */
    /* Logarithm of the step with the part's measured numbers slower by their spreads over the step as it is. */
    double measured[SPREAD_PART_COUNT];
    /* For each part, the share of the step that depends on its unmeasured numbers: the logarithm of the step's growth
     * if they are slowed by a factor, divided by the logarithm of that factor; 0 or more. */
    double others[SPREAD_PART_COUNT];
    double estimated
        [SPREAD_PART_COUNT]; /* relative error of these, where they are estimates; else 0 */
};

/* True if any number was measured on the machine. */
bool spreads_measured(const struct spreads *spreads);

/* Returns the share of the step that goes with numbers that were not measured, at most 1. */
double spreads_unmeasured(const struct spreads *spreads);

/* True if a number of the machine was measured on it, or its device's products are an estimate. */
bool spreads_matter(const struct setup *setup);

/* Simulates the step again, in child processes, with each part of the machine's numbers changed. Makes *spreads
 * all-zero, without a simulation, on ideal hardware and unless spreads_matter(). STATUS_NO: with some numbers changed
 * the step cannot be simulated. The prediction must have been simulated. */
enum status spreads_find(struct spreads *spreads, const struct prediction *prediction,
                         struct diag *diag);

#endif
