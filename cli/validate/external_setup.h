/* cli/validate/external_setup.h: reads the args of a measured run by the option tables of `predict`. */
#ifndef CLI_VALIDATE_EXTERNAL_SETUP_H
#define CLI_VALIDATE_EXTERNAL_SETUP_H

#include "predict/validate/validation.h"

/* Reads `args` into a setup, as run_setup_function (predict/validate/validation.h) says. If `args` name no profile, it
 * is the strategy's own. */
enum status external_setup_read_args(struct setup *setup, enum mfu_convention *mfu,
                                     const char *args, const char *csv, struct diag *diag);

#endif
