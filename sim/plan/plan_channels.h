/* sim/plan/plan_channels.h: the second half of plan_make(): lines become channels and transfers. */
#ifndef SIM_PLAN_CHANNELS_H
#define SIM_PLAN_CHANNELS_H

#include "sim/plan/plan.h"

/* Whether roles that share an instance of a group issue the same collectives on it. */
enum status plan_check_groups(const struct plan *plan, const char *name, struct diag *diag);

/* Fills channels, transfers and endpoints. */
enum status plan_add_channels(struct plan *plan, const char *name, struct diag *diag);

#endif
