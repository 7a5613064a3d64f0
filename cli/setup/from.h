/* cli/setup/from.h: --from: reads options from the launch files of training frameworks. */
#ifndef CLI_SETUP_FROM_H
#define CLI_SETUP_FROM_H

#include "cli/common/options.h"

/* Reads the files of --from, and the arguments that are launch files, and adds their options to those of the command.
 * Options on the command line override them. Prints on standard error the options that were understood, as a line that
 * can be pasted, and the settings that were not understood. Without a file it does nothing. search: `plan` searches for
 * a layout, so only the model, the length, the batch and the machine are read. */
enum status from_apply(struct options *options, bool search, struct diag *diag);

#endif
