/* cli/setup/from.h: --from: options that the launch files of training frameworks give. */
#ifndef CLI_SETUP_FROM_H
#define CLI_SETUP_FROM_H

#include "cli/common/options.h"

/* Reads the files of --from, and arguments that are launch files, and adds their options to the command's; options on
 * the command line override them. Prints to standard error the options that were understood, as a line that can be
 * pasted, and the settings that were not understood. Does nothing if no file is given. search: `plan` looks for a
 * layout, so only the model, the length, the batch and the machine are read. */
enum status from_apply(struct options *options, bool search, struct diag *diag);

#endif
