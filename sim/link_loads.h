/* sim/link_loads.h: what each link carried in a step. */
#ifndef SIM_LINK_LOADS_H
#define SIM_LINK_LOADS_H

#include "sim/child.h"
#include "sim/result/sim_result.h"

/* Fills the link loads of *result and finds the busiest link. result->step_s must be known. */
void link_loads_fill(struct sim_result *result, const struct child_run *run);

#endif
