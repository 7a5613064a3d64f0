/* schedule/recorded/recorded.h: a schedule made of a recorded training step.
 *
 * Operators become ops of kind `opaque`, which are simulated and never executed; records and waits of streams become
 * waits of ops; collectives keep their groups, which become groups of a mesh. Every rank runs the list of the recorded
 * one: one recording stands for all ranks. docs/own-program.md says what is exact.
 *
 * The folder schedule/recorded/ makes schedules of recorded training steps. */
#ifndef SCHEDULE_RECORDED_H
#define SCHEDULE_RECORDED_H

#include "base/diag.h"
#include "schedule/ir/ir.h"
#include "traces/step_recording.h"

/* Makes *ir, which must be empty, of a recording. name stands for the recording in messages. It is an error if a group
 * of ranks is no group of a mesh, or an operator lacks what its cost follows from. Offsets are not planned: the
 * allocator's replay says what memory the step takes. event_of: NULL, or gets an array on the heap that has the event of
 * each op, IR_NONE for the ops without cost that stand for allocations. */
enum status recorded_make(struct ir *ir, const struct step_recording *recording, const char *name,
                          uint32_t **event_of, struct diag *diag);

#endif
