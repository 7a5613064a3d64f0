/* cli/common/idle_options.h: options that were given and change nothing, or less than they say, since what they
 * are about is not in the configuration that was made of all of them.
 *
 * A command that makes several configurations adds each: only what none of them uses is noted. */
#ifndef CLI_COMMON_IDLE_OPTIONS_H
#define CLI_COMMON_IDLE_OPTIONS_H

#include "cli/common/options.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows of a table, a bit each. All-zero: nothing was added. */
struct idle_options {
    uint32_t given, used;
};

/* Whether any that it knows of was given. */
bool idle_options_given(const struct options *options);

/* `r` is what was asked for by the options, `c` what became of it. */
void idle_options_add(struct idle_options *idle, const struct options *options,
                      const struct request *r, const struct choices *c);

/* Whether all that were given are used: no further configuration changes the notes. */
bool idle_options_none(const struct idle_options *idle);

/* Adds a note for each that is not used to `note`. */
void idle_options_note(const struct idle_options *idle, struct diag *note);

/* Both, where there is one configuration. */
void idle_options_note_of(const struct options *options, const struct request *r,
                          const struct choices *c, struct diag *note);

#endif
