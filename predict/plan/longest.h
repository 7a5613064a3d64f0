/* predict/plan/longest.h: the longest sequence of a configuration that fits, and why the next one does not.
 *
 * Memory follows from the schedule, so each length costs a schedule and no simulation. More tokens
 * need more memory, so a bisection finds the longest length that fits. That length and, if there is one, the
 * next one were both tried. */
#ifndef PREDICT_PLAN_LONGEST_H
#define PREDICT_PLAN_LONGEST_H

#include "base/diag.h"
#include "predict/prediction.h"
#include "predict/progress.h"
#include "predict/setup/setup.h"

#include <stdbool.h>
#include <stdint.h>

/* The lengths that may be tried, the shortest first; each is a rung of the ladder. With `do_lengths_double`, rung k has
 * first_length_or_step_tokens x 2^k tokens, else first_length_or_step_tokens x (too_short_multiple_count + k + 1). */
struct length_ladder {
    /* with `do_lengths_double`, the shortest length; else the step between lengths, which are multiples of it */
    int64_t first_length_or_step_tokens;
    uint32_t length_count;
    /* number of multiples of first_length_or_step_tokens that are too short, for example less than one chunk */
    uint32_t too_short_multiple_count;
    bool do_lengths_double;
    bool ends_with_chunk_limit; /* the longest length has LONGEST_CHUNKS chunks */
};

/* Returns the length of a rung, in tokens. */
int64_t ladder_tokens_of_rung(const struct length_ladder *ladder, uint32_t rung);

/* ladder_longest_tokens() returns the longest length of a ladder. ladder_end_reason() returns why the ladder has no
 * longer ones, as "more than 32 chunks; ...". */
int64_t ladder_longest_tokens(const struct length_ladder *ladder);
const char *ladder_end_reason(const struct length_ladder *ladder);

enum { LONGEST_CHUNKS = 32 }; /* the most chunks of a sequence that are asked about */

/* Returns a length of at least 2M tokens that every degree of `ranks` ranks divides. */
int64_t longest_length_all_degrees_divide(int64_t ranks);

/* Sets *ladder to the lengths that the choices of a request allow: multiples of 1K tokens or, if the choices do not
 * allow these, of the smallest multiple of 1K that they allow. The shortest length has a whole chunk, and on every rank
 * a token for each piece of the loss and of the feed-forward part. The longest is 4G tokens, or 32 chunks for a
 * sequence in chunks. Degrees that the request leaves open are set in *request, as for a length that all degrees
 * divide. It is an error if the choices cannot be resolved. */
enum status ladder_make(struct length_ladder *ladder, struct request *request, struct diag *diag);

struct longest {
    int64_t tokens; /* 0: not even the shortest length fits */
    /* the shortest length that is known not to fit; 0: none is known. Unless `is_interrupted`, it is the length after
     * `tokens`, and 0 means that all lengths of the ladder fit */
    int64_t shortest_unfit_tokens;
    struct verdict verdict; /* the verdict on `tokens`; empty if that is 0 */
    /* the verdict on shortest_unfit_tokens; empty if that is 0 */
    struct verdict verdict_of_shortest_unfit;
    struct reserved reserved;    /* the reserved memory at `tokens` */
    uint32_t built_length_count; /* lengths that were built */
    /* an interrupt ended the search: lengths between tokens and shortest_unfit_tokens were not tried */
    bool is_interrupted;
    char refusal_of_shortest_unfit
        [160]; /* why shortest_unfit_tokens cannot be built; empty: it can, and does not fit */
};

/* True if longer sequences than `tokens` may fit: all lengths of the ladder fit, or the search was interrupted. */
static inline bool longest_is_lower_bound(const struct longest *l)
{
    return l->tokens > 0 && (l->is_interrupted || l->shortest_unfit_tokens == 0);
}

/* Finds the longest length of the ladder that fits. Fails if no schedule of the shortest length can be built. guess:
 * the length that is tried first; 0: the shortest. progress: NULL, or one that has begun. A signal that
 * base/interrupt.h has noted ends the search after the current length. */
enum status longest_find(struct longest *longest, const struct setup *setup,
                         const struct request *request, const struct length_ladder *ladder,
                         int64_t guess, struct progress *progress, struct diag *diag);

#endif
