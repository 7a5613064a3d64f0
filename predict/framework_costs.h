/* predict/framework_costs.h: the costs of a framework's code around experts and attention, where it does not run one
 * kernel by one call for each op. The router, biases of experts, clamps and scaled RoPE run operator by operator; the
 * products of experts are a call for each expert; CUDA graphs launch ops without the host; and some ops cost nothing,
 * since another kernel does their work (docs/costs.md, "The host", "CUDA graphs", "Biases of experts"). */
#ifndef LONGHAUL_PREDICT_FRAMEWORK_COSTS_H
#define LONGHAUL_PREDICT_FRAMEWORK_COSTS_H

#include "predict/prediction.h"

/* Changes the seconds of the shapes of p's schedule that cost other times in the framework of p's profile.
 * work_s[shape]: the seconds on the device; issue_s[shape]: those of the thread that issues ops. Does nothing for an
 * ideal device, and for schedules from files. */
void framework_costs_add(const struct prediction *p, const struct device_cost *cost, double *work_s,
                         double *issue_s);

#endif
