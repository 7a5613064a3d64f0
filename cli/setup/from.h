/* cli/setup/from.h: --from: reads options from the launch files of training frameworks. */
#ifndef CLI_SETUP_FROM_H
#define CLI_SETUP_FROM_H

#include "cli/common/options.h"

/* Reads the files of --from and, if all arguments are launch files, the arguments, and takes both
 * out of *options. Adds their options to those of the command line, which override them. Prints to
 * standard error the options that were understood, as a line that can be pasted, and the settings
 * that were not. Does nothing if there is no such file. Refuses recipes in Python, and --from
 * together with a schedule file. search: the command searches the layout, as `plan` does; only
 * options of the workload (workload[] in from.c) are taken from the files, and of these not the length if the longest
 * sequence is searched.
 * refused: the options that the command refuses, which are not taken from the files. */
enum status apply_options_from_launch_files(struct options *options, bool search,
                                            const struct refused_option *refused,
                                            struct diag *diag);

#endif
