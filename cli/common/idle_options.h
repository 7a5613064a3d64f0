/* cli/common/idle_options.h: notes about options that were given but change nothing, or less than they say, because the
 * configuration lacks the part that they set.
 *
 * A command that makes several configurations adds each of them: only options that none of them uses are noted.
 *
 * The folder cli/common/ holds what commands share: options, tables, the head of JSON, HTML pages, the layout of a
 * screen, progress. */
#ifndef CLI_COMMON_IDLE_OPTIONS_H
#define CLI_COMMON_IDLE_OPTIONS_H

#include "cli/common/options.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>
#include <stdint.h>

/* Which options the user gave, and which of them had an effect in some configuration. An option that was given and had
 * an effect in none is idle. The options are those with notes in predict/setup/choices.def; an option may have several,
 * each with its own condition, so there is a bit for each note and not for each option. given_bits: the user gave the
 * option of the note. used_bits: in a configuration that was added, the note does not apply. All-zero is the state
 * before the first configuration. */
struct idle_options {
    uint64_t given_bits, used_bits;
};

/* Returns whether the user gave any option that has no effect, or less than it says, in some configurations. */
bool is_possibly_idle_option_given(const struct options *options);

/* Sets the bits of the options that were given, and of those that a configuration uses. r: the request that the options
 * make; c: the choices that follow from it. */
void idle_options_add_configuration(struct idle_options *idle, const struct options *options,
                                    const struct request *r, const struct choices *c);

/* Returns whether every option that was given is used, so that further configurations cannot change the notes. */
bool idle_options_are_all_used(const struct idle_options *idle);

/* Adds to `note` each note of a given option that applies in every configuration that was added. */
void idle_options_add_notes(const struct idle_options *idle, struct diag *note);

/* Adds to `note` each note of a given option that applies in this configuration. For a command that makes only one. */
void note_idle_options_of_prediction(const struct options *options, const struct request *r,
                                     const struct choices *c, struct diag *note);

#endif
