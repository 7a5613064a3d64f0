/* cli/setup/read_setup.h: the options of a command read into a setup. */
#ifndef CLI_SETUP_READ_SETUP_H
#define CLI_SETUP_READ_SETUP_H

#include "cli/common/options.h"
#include "predict/setup/setup.h"

#include <stdbool.h>

/* Loads what the options name. An absent --model or --seq is an error, unless the schedule comes
 * from a file; there, options that describe a configuration are. */
enum status setup_load(struct setup *setup, const struct options *options, bool from_file,
                       struct diag *diag);

/* The same of a configuration whose length is looked for, or given. */
enum status setup_load_open(struct setup *setup, const struct options *options, struct diag *diag);

/* Refuses what describes a configuration or a machine: a file that is looked at alone has its own,
 * and asks for none. */
enum status setup_of_file(const struct options *options, struct diag *diag);

/* Reads the choices of other options about the model and the cluster that are loaded. */
enum status setup_choose(struct setup *setup, const struct options *options, struct diag *diag);

/* The same as setup_load() for a run on this machine. Without --cluster there are as many ranks as
 * --gpus says, or one, on one node. A file may come with the --model that it was made for. */
enum status setup_load_run(struct setup *setup, const struct options *options, bool from_file,
                           struct diag *diag);

#endif
