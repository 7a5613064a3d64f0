/* schedule/step/finalize.h: the finished list of a role becomes rows of a schedule. */
#ifndef SCHEDULE_STEP_FINALIZE_H
#define SCHEDULE_STEP_FINALIZE_H

#include "schedule/emit/op_list.h"
#include "schedule/memory_plan/plan_offsets.h"

/* Adds role e->role with its program to *out: ops in list order, buffers that are touched, waits for
 * every data dependency between streams that nothing else implies, free sets, arena offsets. Of several
 * roles each is packed quickly, and lifetimes_tighten() has the last word; *figures: what packing took.
 * The draft e->ir then has no ops and buffers, and all its other tables, for the next role. */
void finalize_role(const struct emit *e, const struct program *program, struct ir *out,
                   struct lifetimes_figures *figures);
/* When all roles are there: gives *out those other tables; e->ir is of no further use. */
void finalize(const struct emit *e, struct ir *out);

#endif
