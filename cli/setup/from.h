/* cli/setup/from.h: --from: options that the launch files of training frameworks give. */
#ifndef CLI_SETUP_FROM_H
#define CLI_SETUP_FROM_H

#include "cli/common/options.h"

/* Reads the files of --from, and arguments that are launch files, and gives their options to the command as if they
 * had been written: those that are written win. Prints to standard error what was understood, as a line that can be
 * pasted, and what was not. Nothing happens where no file is given. search: `plan` looks for a layout, so that only
 * the model, the length, the batch and the machine are taken. */
enum status from_apply(struct options *options, bool search, struct diag *diag);

#endif
