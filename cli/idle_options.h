/* cli/idle_options.h: options that were given and change nothing, since what they are about is not in
 * the configuration that was made of all of them. */
#ifndef CLI_IDLE_OPTIONS_H
#define CLI_IDLE_OPTIONS_H

#include "cli/options.h"
#include "schedule/compose.h"

/* Adds a note for each of them to `note`. `r` is what was asked for, `c` what became of it. */
void idle_options_note(const struct options *options, const struct request *r,
                       const struct choices *c, struct diag *note);

#endif
