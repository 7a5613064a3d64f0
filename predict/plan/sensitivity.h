/* predict/plan/sensitivity.h: the step of one configuration on changed machines, in each of which one part is faster or
 * slower. Another function finds the intervals of a configuration. */
#ifndef PREDICT_PLAN_SENSITIVITY_H
#define PREDICT_PLAN_SENSITIVITY_H

#include "base/diag.h"
#include "predict/intervals.h"

enum { SENSITIVITIES = 6 };

struct step_time_of_sensitivity {
    double step_s; /* 0: the prediction failed */
};

/* sensitivity_name() returns the name of change i of SENSITIVITIES in text ("NICs twice as fast"),
 * sensitivity_json_key() its key in JSON ("nic_2x"). */
const char *sensitivity_name(int i);
const char *sensitivity_json_key(int i);

/* Fills *intervals by a prediction of the request with the spreads of its machine (predict/spreads.h). The predictions
 * of a search leave the spreads out. This prediction runs in a child process; if it fails there, *intervals stays as it
 * is. Does nothing unless spreads_are_needed(). */
enum status sensitivity_find_intervals(struct intervals *intervals, struct setup *setup,
                                       const struct request *request, struct diag *diag);

/* Simulates the request on the machine with each of the changes, in child processes, and fills sensitivity[i] for
 * change i. The caller's *setup does not change. */
enum status sensitivities_find(struct step_time_of_sensitivity sensitivity[SENSITIVITIES],
                               struct setup *setup, const struct request *request,
                               struct diag *diag);

#endif
