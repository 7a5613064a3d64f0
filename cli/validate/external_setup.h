/* cli/validate/external_setup.h: the args of a measured training step read by the option tables of `predict`. */
#ifndef CLI_VALIDATE_EXTERNAL_SETUP_H
#define CLI_VALIDATE_EXTERNAL_SETUP_H

#include "predict/validate/external_validation.h"

/* An external_setup_function. Files that args name are relative to the folder of the CSV; where args name no
 * profile, it is the strategy's own. */
enum status external_setup(struct setup *setup, const struct external_run *row, struct diag *diag);

#endif
