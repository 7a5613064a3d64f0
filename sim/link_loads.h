/* sim/link_loads.h: what each link carried in a step. */
#ifndef SIM_LINK_LOADS_H
#define SIM_LINK_LOADS_H

#include "sim/child.h"
#include "sim/sim.h"

/* Fills the loads of a result, whose step is known, and finds the busiest link. */
void link_loads_fill(struct sim_result *result, const struct child_run *run);

#endif
