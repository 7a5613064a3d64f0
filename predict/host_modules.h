/* predict/host_modules.h: the host's time for the modules of TransformerEngine and Megatron-Core (docs/costs.md,
 * "Modules of TransformerEngine"). */
#ifndef LONGHAUL_PREDICT_HOST_MODULES_H
#define LONGHAUL_PREDICT_HOST_MODULES_H

#include "models/cost.h"
#include "schedule/ir/ir.h"

/* Adds to issue_s[shape] the seconds that modules of Megatron-Core and TransformerEngine take the host in addition to
 * one operator for each op of the shape and to one launch for each of its kernels. */
void host_modules_add(const struct ir *ir, const struct device_cost *cost, double *issue_s);

#endif
