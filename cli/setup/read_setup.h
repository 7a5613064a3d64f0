/* cli/setup/read_setup.h: reads the options of a command into a setup. */
#ifndef CLI_SETUP_READ_SETUP_H
#define CLI_SETUP_READ_SETUP_H

#include "cli/common/options.h"
#include "predict/setup/setup.h"

#include <stdbool.h>

/* Loads the model, cluster and configuration that the options describe; fails unless --model, --seq and --cluster are
 * given. from_file: the schedule comes from a file, so only --cluster is needed, and options that describe a model or a
 * configuration are errors, except --attention and --profile. */
enum status setup_load(struct setup *setup, const struct options *options, bool from_file,
                       struct diag *diag);

/* Does the same as setup_load() without a file, but --seq may be missing, and --loopback is not read. It is for `plan`,
 * which may search for the length. */
enum status setup_load_without_length(struct setup *setup, const struct options *options,
                                      struct diag *diag);

/* Refuses all options that describe a model, a configuration or a machine: for commands that only read the file of a
 * schedule. */
enum status setup_refuse_for_schedule_file(const struct options *options, struct diag *diag);

/* Reads only the choices, into a setup whose model and cluster are loaded already. These may have been loaded with
 * other options. */
enum status setup_read_choices(struct setup *setup, const struct options *options,
                               struct diag *diag);

/* Does the same as setup_load(), for a run on this machine, which has neither costs nor intervals. Without --cluster,
 * the number of ranks is that of --gpus or --loopback, or 1, all on one node. With a schedule from a file, the options
 * of clusters and of choices are refused, and --model may name the model for which the schedule was made. */
enum status setup_load_run(struct setup *setup, const struct options *options, bool from_file,
                           struct diag *diag);

#endif
