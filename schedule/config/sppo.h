/* schedule/config/sppo.h: fills the degrees that a request for strategy sppo (arXiv 2503.10377) leaves open.
 *
 * The paper's solver (section 5.3) compares all products of tensor ranks, inside a node if possible, and stages that
 * use all GPUs, with numbers of subsequences of 2K to 16K tokens on average. This code fills in one point of that
 * space; `longhaul plan` searches it. */
#ifndef SCHEDULE_CONFIG_SPPO_H
#define SCHEDULE_CONFIG_SPPO_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Mean tokens of a subsequence: the bounds of section 5.3, and what is filled in. */
enum { SPPO_TOKENS_MIN = 2048, SPPO_TOKENS_MAX = 16384, SPPO_TOKENS = 8192 };

/* Sets the numbers of tensor ranks, stages and subsequences that are open. Does nothing if the number of ranks or the
 * length is unset, or if there would be one subsequence: because the sequence is too short for two, the pipeline has
 * none, or the user gave 1. Given values stay, even if they do not fit. */
void sppo_fill_degrees(struct request *request);

/* Notes the values that were filled in, and, if activations are offloaded by ratio in a step of one unit, that none
 * leave the device. */
void sppo_note_filled(const struct choices *choices, const struct request *asked,
                      struct diag *note);

#endif
