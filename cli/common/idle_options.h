/* cli/common/idle_options.h: notes about options that were given but change nothing, or less than they say, because
 * the configuration lacks the part that they set.
 *
 * A command that makes several configurations adds each of them: only options that none of them uses are noted.
 *
 * The folder cli/common/ holds what all commands share: options, tables, JSON, the layout of a screen, progress. */
#ifndef CLI_COMMON_IDLE_OPTIONS_H
#define CLI_COMMON_IDLE_OPTIONS_H

#include "cli/common/options.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>
#include <stdint.h>

/* Sets of notes. Each note of predict/setup/choices.def, which says when an option has no effect, has a bit.
 * given_bits: the user gave the option. used_bits: a configuration that was added uses the option, so that the note
 * does not apply. All-zero is the state before the first configuration. */
struct idle_options {
    uint64_t given_bits, used_bits;
};

/* Returns whether the user gave any of the options that have notes. */
bool is_possibly_idle_option_given(const struct options *options);

/* Notes which options were given and which of them a configuration uses. r: the request that the options make; c: the
 * choices that follow from it. */
void idle_options_add_configuration(struct idle_options *idle, const struct options *options,
                                    const struct request *r, const struct choices *c);

/* Returns whether every option that was given is used, so that further configurations cannot change the notes. */
bool idle_options_are_all_used(const struct idle_options *idle);

/* Adds to `note` a message for each given option that no configuration uses. */
void idle_options_add_notes(const struct idle_options *idle, struct diag *note);

/* Adds to `note` a message for each given option that a configuration does not use. For a command that makes only
 * one configuration. */
void note_idle_options_of_prediction(const struct options *options, const struct request *r,
                                     const struct choices *c, struct diag *note);

#endif
