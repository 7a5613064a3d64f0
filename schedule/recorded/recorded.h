/* schedule/recorded/recorded.h: a schedule made of a recorded training step.
 *
 * Operators become ops of kind `opaque`, which are simulated and never executed. Records and waits of streams become
 * waits of ops. Collectives keep their groups, which become groups of a mesh. One recording represents all ranks, which
 * run its list. A pipeline needs a recording of one rank of each stage, which represents all ranks of its stage; sends
 * and receives between the stages are matched. docs/own-program.md says what is exact.
 *
 * The folder schedule/recorded/ makes schedules of recorded training steps. */
#ifndef SCHEDULE_RECORDED_H
#define SCHEDULE_RECORDED_H

#include "base/diag.h"
#include "schedule/ir/ir.h"
#include "traces/step_recording.h"

/* Makes *ir, which must be empty, from `count` >= 1 recordings; each becomes a role. Messages name a recording by its
 * `name`. It is an error if the groups of ranks are not groups of one mesh, if the cost of an operator cannot be
 * computed from what was recorded, if the recordings are not of one rank of each stage, or if their sends and receives
 * do not match. Offsets are not planned, since the allocator's replay says how much memory the step takes. event_of_op:
 * NULL, or receives an array on the heap: for each op the event in the recording of its role; IR_NONE for ops without
 * cost, which stand for allocations. */
enum status recorded_make_schedule(struct ir *ir, const struct step_recording *recording,
                                   uint32_t count, uint32_t **event_of_op, struct diag *diag);

#endif
