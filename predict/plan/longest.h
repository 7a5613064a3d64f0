/* predict/plan/longest.h: the longest sequence of a configuration that fits, and why the next one does not.
 *
 * Memory follows from the schedule, so each length costs a schedule and no simulation. More
 * tokens need more memory, so a bisection finds the last length that fits; what is reported was
 * built and judged on both sides of the boundary. */
#ifndef PREDICT_PLAN_LONGEST_H
#define PREDICT_PLAN_LONGEST_H

#include "base/diag.h"
#include "predict/prediction.h"
#include "predict/progress.h"
#include "predict/setup/setup.h"

#include <stdbool.h>
#include <stdint.h>

/* The lengths that are tried, the shortest first. With `is_doubling`, length k is shortest_tokens x 2^k, else
 * shortest_tokens x (too_short_steps + k + 1). */
struct length_ladder {
    int64_t shortest_tokens;
    uint32_t length_count;
    /* number of multiples of shortest_tokens that are too short, for example less than one chunk */
    uint32_t too_short_steps;
    bool is_doubling;
    bool ends_with_most_chunks; /* the longest length has LONGEST_CHUNKS chunks */
};

/* Returns the length of a rung, in tokens. */
int64_t ladder_length(const struct length_ladder *ladder, uint32_t rung);

/* ladder_longest_tokens() returns the last length. ladder_end_reason() returns why there is no longer one: "more than
 * 32 chunks; ...". */
int64_t ladder_longest_tokens(const struct length_ladder *ladder);
const char *ladder_end_reason(const struct length_ladder *ladder);

enum { LONGEST_CHUNKS = 32 }; /* the most chunks of a sequence that are asked about */

/* Returns a length, longer than any chunk, that every degree of `ranks` ranks divides. */
int64_t longest_divisible_length(int64_t ranks);

/* Sets *ladder to the lengths that the choices of a request allow: multiples of 1K tokens or, if the choices do not
 * allow these, of the smallest multiple of 1K that they allow. The shortest length has a whole chunk, and on every rank
 * a token for each piece of the loss and of the feed-forward part. The longest is 4G tokens, or 32 chunks for a
 * sequence in chunks. Open degrees are set for a length that all degrees divide, and stay so. It is an error if the
 * choices allow no length. */
enum status ladder_make(struct length_ladder *ladder, struct request *request, struct diag *diag);

struct longest {
    int64_t tokens; /* 0: not even the shortest length fits */
    /* the shortest length that is known not to fit. Unless `is_interrupted`, it is the length after `tokens`, or 0 if
     * all lengths of the ladder fit. If `is_interrupted`, 0 means that none is known */
    int64_t next_tokens;
    /* verdict: the verdict on `tokens`, empty if that is 0; next_verdict: the one on next_tokens */
    struct verdict verdict, next_verdict;
    struct reserved reserved; /* the reserved memory at `tokens` */
    uint32_t built_count;     /* lengths that were built */
    /* an interrupt ended the search: lengths between tokens and next_tokens were not tried */
    bool is_interrupted;
    char next_refusal[160]; /* why next_tokens cannot be built; empty: it can, and does not fit */
};

/* True if longer sequences may fit: the search came to the end of the ladder, or was ended early. */
static inline bool longest_is_lower_bound(const struct longest *l)
{
    return l->tokens > 0 && (l->is_interrupted || l->next_tokens == 0);
}

/* Finds the longest length of the ladder that fits. Fails if no schedule of the shortest length can be built. guess:
 * the length that is tried first; 0: the shortest. progress: NULL, or one that has begun. A signal that
 * base/interrupt.h has noted ends the search after the current length. */
enum status longest_find(struct longest *longest, const struct setup *setup,
                         const struct request *request, const struct length_ladder *ladder,
                         int64_t guess, struct progress *progress, struct diag *diag);

#endif
