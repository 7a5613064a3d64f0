/* schedule/step/finalize.h: turns the finished list of a role into rows of a schedule. */
#ifndef SCHEDULE_STEP_FINALIZE_H
#define SCHEDULE_STEP_FINALIZE_H

#include "schedule/emit/op_list.h"
#include "schedule/memory_plan/plan_offsets.h"

/* Appends role e->role with its list to *out: the ops in list order, the buffers that ops use, the waits, free sets and
 * arena offsets; for a whole step also the persistent buffers that no op uses. An op gets a wait for every data
 * dependency between streams that no other wait implies. If there are several roles, each is packed quickly, and
 * offsets_replan_largest() later packs the largest again. *figures receives the bytes of the arenas.
 *
 * Afterwards the tables of e->ir have no ops and no buffers; they keep the rows that roles share (shapes, names, groups
 * and the like). Returns false if *out is a short list (out->repeats) that does not represent the whole list. */
bool finalize_role(const struct emit *e, const struct op_list *list, struct ir *out,
                   struct offsets_memory_figures *figures);
/* Exchanges the tables that roles share between e->ir and *out, once all roles have been appended: *out then has those
 * of the step, and e->ir is of no further use. */
void finalize_move_shared_tables(const struct emit *e, struct ir *out);

#endif
