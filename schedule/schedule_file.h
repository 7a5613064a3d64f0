/* schedule/schedule_file.h: a schedule from a file, ready to be verified, run and predicted.
 *
 * The folder schedule/ makes schedules, reads and verifies them: what runs on which rank and stream, and after
 * what. */
#ifndef SCHEDULE_SCHEDULE_FILE_H
#define SCHEDULE_SCHEDULE_FILE_H

#include "base/diag.h"
#include "schedule/ir/ir.h"

/* Does the same as ir_load(), and reads recorded steps too (traces/step_recording.h): *recorded, unless NULL, says
 * that the file is one, of which a schedule without offsets is made. If the file gives no buffer an offset (text with loops never does), it then plans
 * offsets as step_build() does, unless some op waits for a later op or one of another role, or a buffer is freed by
 * an op of another role; the verifier reports these. */
enum status schedule_load(struct ir *ir, const char *path, bool *recorded, struct diag *diag);

#endif
