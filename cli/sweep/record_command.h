/* cli/sweep/record_command.h: the recordings that the command of `sweep --record-cmd` makes, one for each world size,
 * length, batch and device. */
#ifndef CLI_SWEEP_RECORD_COMMAND_H
#define CLI_SWEEP_RECORD_COMMAND_H

#include "base/diag.h"
#include "base/text.h"

#include <stdint.h>

/* What a recording depends on, beside the files that the command names. 0, or NULL: it is not given, and the variable
 * is not set. */
struct record_command {
    const char *command; /* for sh */
    const char *folder;  /* in which recordings are kept */
    int64_t world;       /* LONGHAUL_RECORD_WORLD_SIZE */
    int64_t length;      /* LONGHAUL_RECORD_LENGTH, tokens of a sequence */
    int64_t batch;       /* LONGHAUL_RECORD_BATCH, sequences of a step */
    const char *device;  /* LONGHAUL_RECORD_DEVICE, by its name in longhaul */
};

/* Appends the path of the recording, which is made if the folder does not have it. The command has to write it to
 * $LONGHAUL_RECORD_OUTPUT; what it prints goes into a file beside the recording. Processes that need the same recording
 * wait for the first of them. A command that fails, is killed or writes no recording is an error with the last line
 * that it printed, and leaves no recording. */
enum status record_command_run(const struct record_command *run, struct text *path,
                               struct diag *diag);

/* Continues a digest (base/digest.h) with the command and the bytes of the files that it names. */
uint64_t record_command_digest(uint64_t sum, const char *command);

#endif
