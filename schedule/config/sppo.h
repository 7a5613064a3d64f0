/* schedule/config/sppo.h: the degrees of SPPO (arXiv 2503.10377) that a request leaves open.
 *
 * Its solver (section 5.3) looks at products of tensor ranks, inside a node where it can, and stages
 * that make all GPUs, and at numbers of subsequences with 2K to 16K tokens on average. What is
 * filled in here is one point of that space; `longhaul plan` searches it. */
#ifndef SCHEDULE_CONFIG_SPPO_H
#define SCHEDULE_CONFIG_SPPO_H

#include "base/diag.h"
#include "schedule/choices/choices.h"

/* Mean tokens of a subsequence: the bounds of section 5.3, and what is filled in. */
enum { SPPO_TOKENS_MIN = 2048, SPPO_TOKENS_MAX = 16384, SPPO_TOKENS = 8192 };

/* Fills tensor ranks, stages and subsequences where they are open. Does nothing where ranks or length are unset, or where
 * a sequence would not make two subsequences. What is given stays, even if it does not fit. */
void sppo_fill(struct request *request);

/* Notes what was filled in, and, of ratios for a step of one unit, that nothing leaves. */
void sppo_note(const struct choices *choices, const struct request *asked, struct diag *note);

#endif
