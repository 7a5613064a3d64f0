/* sim/plan/plan_parts.h: the parts of plan_make(), in their order. */
#ifndef SIM_PLAN_PARTS_H
#define SIM_PLAN_PARTS_H

#include "sim/plan/plan.h"

/* plan_lines.c: fills the arrays per op, and the lines with their ops and variants. */
void plan_add_lines(struct sim_plan *plan);

/* plan_check.c: fails unless roles that share an instance of a group issue the same collectives on it. */
enum status plan_check_groups(const struct sim_plan *plan, const char *name, struct diag *diag);

/* plan_channels.c: fills channels, participants and endpoints. Fails on a send to an index that is no rank. */
enum status plan_add_channels(struct sim_plan *plan, const char *name, struct diag *diag);

/* plan_transfers.c: fills transfers and flows. */
void plan_add_transfers(struct sim_plan *plan);

static inline const char *plan_kind_name(const struct ir *ir, uint32_t op)
{
    return work_kind_info(ir->op.kind[op])->name;
}

#endif
