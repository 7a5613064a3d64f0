/* cli/validate/external_setup.h: the args of a measured run read by the option tables of `predict`. */
#ifndef CLI_VALIDATE_EXTERNAL_SETUP_H
#define CLI_VALIDATE_EXTERNAL_SETUP_H

#include "predict/validate/validation.h"

/* A run_setup_function. Where args name no profile, it is the strategy's own. */
enum status external_setup(struct setup *setup, enum mfu_convention *mfu, const char *args,
                           const char *csv, struct diag *diag);

#endif
