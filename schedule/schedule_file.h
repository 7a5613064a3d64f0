/* schedule/schedule_file.h: a schedule from a file, ready to be verified, run and predicted.
 *
 * The folder schedule/ makes schedules, reads and verifies them: what runs on which rank and stream, and after
 * what. */
#ifndef SCHEDULE_SCHEDULE_FILE_H
#define SCHEDULE_SCHEDULE_FILE_H

#include "base/diag.h"
#include "base/text.h"
#include "schedule/ir/ir.h"
#include "traces/step_recording.h"

/* The recorded steps that schedule_load() found, one for each role, by rank. All-zero: the file is a schedule. */
struct schedule_recordings {
    struct step_recording *recording;
    uint32_t count;
    uint32_t *event_of_op; /* the event of each op, as recorded_make_schedule() gives it */
};
void schedule_recordings_release(struct schedule_recordings *recorded);

/* Reads a schedule as ir_load() does, or recorded steps (traces/step_recording.h), of which it makes a schedule without
 * offsets; *recorded, which must be NULL or all-zero, then receives the recordings. Several files, or a folder with
 * files *.json or *.json.gz, are the recordings of the stages of one pipeline. If a schedule gives no buffer an offset
 * (text with loops never does), offsets are planned as by step_build(), unless some op waits for a later op or for an
 * op of another role, or an op of another role frees a buffer; the verifier reports these. */
enum status schedule_load(struct ir *ir, const char *const *path, size_t count,
                          struct schedule_recordings *recorded, struct diag *diag);
/* Does what schedule_load() does, with the text of one file; messages begin with `name`. */
enum status schedule_parse(struct ir *ir, const char *name, const struct text *text,
                           struct schedule_recordings *recorded, struct diag *diag);

#endif
