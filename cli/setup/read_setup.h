/* cli/setup/read_setup.h: reads the options of a command into a setup. */
#ifndef CLI_SETUP_READ_SETUP_H
#define CLI_SETUP_READ_SETUP_H

#include "cli/common/options.h"
#include "predict/setup/setup.h"

#include <stdbool.h>

/* Loads the model, cluster and configuration that the options describe. A missing --model or --seq is an error. If
 * the schedule comes from a file, options that describe a configuration are errors instead. */
enum status setup_load(struct setup *setup, const struct options *options, bool from_file,
                       struct diag *diag);

/* Works as setup_load() without a file, but --seq may be absent, for a command that searches for the length. */
enum status setup_load_open(struct setup *setup, const struct options *options, struct diag *diag);

/* Refuses options that describe a model, a configuration or a machine, for a command that only reads a schedule
 * file. */
enum status setup_of_file(const struct options *options, struct diag *diag);

/* Reads the choices of other options into a setup whose model and cluster are loaded already. */
enum status setup_choose(struct setup *setup, const struct options *options, struct diag *diag);

/* Does what setup_load() does, for a run on this machine. Without --cluster the number of ranks is that of --gpus, or
 * 1, on one node. With a schedule from a file, --model may name the model for which it was made. */
enum status setup_load_run(struct setup *setup, const struct options *options, bool from_file,
                           struct diag *diag);

#endif
