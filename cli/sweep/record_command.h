/* cli/sweep/record_command.h: the recordings that the command of `sweep --record-cmd` makes: one for each
 * combination of world size, length, batch and device. With --record-stages each combination has one for each stage
 * instead. */
#ifndef CLI_SWEEP_RECORD_COMMAND_H
#define CLI_SWEEP_RECORD_COMMAND_H

#include "base/diag.h"
#include "base/text.h"

#include <stdint.h>

/* The command of --record-cmd, and the options that it gets as environment variables. A variable is not set if its
 * number is 0 or its text is NULL. */
struct record_command {
    const char *command;     /* for sh */
    uint64_t digest;         /* record_command_digest() of the command */
    const char *folder;      /* the folder in which recordings are kept */
    int64_t world_size;      /* LONGHAUL_RECORD_WORLD_SIZE */
    int64_t stage_count;     /* LONGHAUL_RECORD_STAGES; 0: one recording stands for all ranks */
    int64_t sequence_tokens; /* LONGHAUL_RECORD_LENGTH, tokens of a sequence */
    int64_t batch_sequences; /* LONGHAUL_RECORD_BATCH, sequences of a step */
    /* the name of the device in longhaul. LONGHAUL_RECORD_DEVICE is the recorder's name of it, and is not set if the
     * recorder has none. */
    const char *device;
};

/* Appends the path of the recording, and makes the recording if the folder does not have it. The command has to write
 * it to $LONGHAUL_RECORD_OUTPUT; what it prints goes to a file next to the recording. Processes that need the same
 * recording wait for the first of them. If the command fails, is killed or writes no recording, that is an error with
 * the last line that it printed, and nothing is left in the recording's place.
 *
 * With several stages the path is a folder, with a recording of the first rank of each stage; the ranks of a stage are
 * consecutive. The command runs once for each stage, with LONGHAUL_RECORD_RANK set. If it fails for one, the stages
 * recorded before are kept. It is an error if the number of ranks is not a multiple of the number of stages. */
enum status record_command_make_recordings(const struct record_command *run, struct text *path,
                                           struct diag *diag);

/* Returns the digest (base/digest.h) of a command and of the bytes of the files that it names. */
uint64_t record_command_digest(const char *command);

#endif
