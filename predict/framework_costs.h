/* predict/framework_costs.h: what a framework's code around experts and attention takes, where that is not one kernel
 * and one call each: its router operator by operator, a call for each expert's product, biases that are added apart,
 * and what CUDA graphs launch (docs/costs.md, "The host", "CUDA graphs", "Biases of experts"). */
#ifndef LONGHAUL_PREDICT_FRAMEWORK_COSTS_H
#define LONGHAUL_PREDICT_FRAMEWORK_COSTS_H

#include "predict/prediction.h"

/* Changes the seconds of those shapes of p's schedule for which the framework takes other times: work_s[shape], the
 * seconds on the device, and issue_s[shape], those of the thread that issues ops. */
void framework_costs_add(const struct prediction *p, const struct device_cost *cost, double *work_s,
                         double *issue_s);

#endif
