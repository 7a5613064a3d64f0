/* predict/spreads.h: by how much a step changes if the numbers of its machine are wrong. spreads_find() predicts the
 * step again with each part of the numbers changed (models/spread.h). docs/accuracy/intervals.md, "Machines that were
 * measured", has the method. */
#ifndef PREDICT_SPREADS_H
#define PREDICT_SPREADS_H

#include "base/diag.h"
#include "models/spread.h"
#include "predict/setup/setup.h"

#include <stdbool.h>

struct prediction;

/* The effect of each part of the machine's numbers on the step. All-zero: spreads_find() was not called, or simulated
 * nothing, for example because all numbers are a preset's, for which the errors of published steps say how certain a
 * prediction is. The struct has no pointers, so it can be passed between processes. */
struct spreads {
    bool is_known; /* a number was measured on the machine, or the device is an estimate */
    /* the largest relative spread of the part's measured numbers; 0: none was measured */
    double largest_relative_spread_by_part[SPREAD_PART_COUNT];
    /* log(step / step on the unchanged machine) if the part's measured numbers are made slower by their spreads */
    double log_step_growth_by_measured_part[SPREAD_PART_COUNT];
    /* the share of the step that depends on those numbers of the part that were not measured, at least 0. If these
     * numbers become slower by a factor, the share is the logarithm of the step's growth, divided by the logarithm of
     * the factor */
    double share_of_unmeasured_by_part[SPREAD_PART_COUNT];
    /* the relative error of the part's numbers if they are estimates, else 0 */
    double estimate_error[SPREAD_PART_COUNT];
};

/* Returns whether any number was measured on the machine. */
bool spreads_has_measured_numbers(const struct spreads *spreads);

/* Returns the share of the step, at most 1, that depends on numbers that were not measured. */
double spreads_unmeasured_share(const struct spreads *spreads);

/* Returns whether there is anything to simulate: a number was measured on the machine, or the device's products are an
 * estimate. */
bool spreads_are_needed(const struct setup *setup);

/* Simulates the step again, in child processes, with each part of the machine's numbers changed, and fills *spreads. On
 * ideal hardware, or if spreads_are_needed() is false, it simulates nothing and makes *spreads all-zero. Returns
 * STATUS_NO, with a message, if the step cannot be simulated with some numbers changed. The prediction must have been
 * simulated. */
enum status spreads_find(struct spreads *spreads, const struct prediction *prediction,
                         struct diag *diag);

#endif
