/* predict/plan/sensitivity.h: the step of one configuration on machines each of which differs from its own in one
 * part. */
#ifndef PREDICT_PLAN_SENSITIVITY_H
#define PREDICT_PLAN_SENSITIVITY_H

#include "base/diag.h"
#include "predict/intervals.h"

enum { SENSITIVITIES = 6 };

struct machine_step {
    double step_s; /* 0: the prediction failed */
};

/* sensitivity_name() returns the name of change i of SENSITIVITIES in text ("NICs twice as fast"), sensitivity_key()
 * its key in JSON ("nic_2x"). */
const char *sensitivity_name(int i);
const char *sensitivity_key(int i);

/* Predicts the request in a child process with the spreads of its machine (predict/spreads.h), which a search leaves
 * out, and fills *intervals if that succeeds. Does nothing unless spreads_are_needed(). */
enum status sensitivity_intervals(struct intervals *intervals, struct setup *setup,
                                  const struct request *request, struct diag *diag);

/* Simulates the request on a machine with each of the changes, in child processes; *setup does not change. */
enum status sensitivities_find(struct machine_step sensitivity[SENSITIVITIES], struct setup *setup,
                               const struct request *request, struct diag *diag);

#endif
