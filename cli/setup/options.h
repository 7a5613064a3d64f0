/* cli/setup/options.h: the options that say what a prediction is about, as tables that commands share. */
#ifndef CLI_SETUP_OPTIONS_H
#define CLI_SETUP_OPTIONS_H

#include "cli/options.h"

/* --model, --cluster and how much of it; --strategy and the five choices. */
extern const struct option_set setup_model_options, setup_cluster_options, setup_choice_options;

#endif
