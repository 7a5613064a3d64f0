/* schedule/config/sppo.h: sets the degrees that a request for strategy sppo (arXiv 2503.10377) leaves open.
 *
 * The paper's solver (section 5.3) compares all products of tensor ranks, inside a node if possible, and stages that
 * use all GPUs, with numbers of subsequences of 2K to 16K tokens on average. This code takes one point of that space;
 * `longhaul plan` searches the space. */
#ifndef SCHEDULE_CONFIG_SPPO_H
#define SCHEDULE_CONFIG_SPPO_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Mean numbers of tokens of a subsequence: the least and the most of section 5.3, and the one that sppo_fill_degrees()
 * takes. */
enum { SPPO_TOKENS_MIN = 2048, SPPO_TOKENS_MAX = 16384, SPPO_TOKENS = 8192 };

/* Sets the numbers of tensor ranks, stages and subsequences that are open. Given values stay, even if they do not fit.
 * Does nothing if the number of ranks or the length is not set, or if there would be only one subsequence, for example
 * because the sequence is short. */
void sppo_fill_degrees(struct request *request);

/* Adds notes to *note: which values were filled in; and, if activations are offloaded by ratio but a step has only one
 * unit, that nothing is offloaded. */
void sppo_add_notes_on_filled(const struct choices *choices, const struct request *asked,
                              struct diag *note);

#endif
