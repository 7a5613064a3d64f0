/* schedule/ir/deal.h: which context rank owns which tokens of a sequence, run by run, for layout DEALT.
 *
 * A run is a range of consecutive tokens that one rank owns. A rank's rows are the tokens of its runs in ascending
 * order of their positions. */
#ifndef SCHEDULE_DEAL_H
#define SCHEDULE_DEAL_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct token_run {
    int64_t first_position; /* position of the first token in the sequence */
    int64_t first_row;      /* row of the first token among the owner's rows */
    int64_t row_count;
};

struct token_deal {
    uint32_t rank_count;
    /* sorted by owner; the runs of an owner are in ascending order of positions */
    const struct token_run *run;
    /* [ranks + 1] the first run of each owner; the last element is the number of runs */
    const uint32_t *first_run;
};

/* One share of a deal: the next row_count tokens of the sequence go to `owner`. */
struct token_share {
    int64_t row_count;
    uint32_t owner;
};

/* Deals a sequence: each share is the next tokens of the sequence, from its first token on. Neighbouring shares of
 * one owner become one run. Every share must have at least 1 row, and an owner below `ranks`. The result is in the
 * arena. */
struct token_deal *deal_make_from_shares(struct arena *arena, uint32_t ranks,
                                         const struct token_share *share, uint32_t count);
/* A run of tokens, and the rank that owns it. */
struct owned_run {
    const struct token_run *run;
    uint32_t owner;
};
/* Returns the runs of all ranks, deal->first_run[deal->rank_count] of them, in the order of the sequence, on the
 * heap. */
struct owned_run *deal_sorted_runs(const struct token_deal *deal);
/* Returns the shares of which deal_make_from_shares() would make this deal, as an array on the heap in the order of the
 * sequence, and sets *count to their number. */
struct token_share *deal_shares(const struct token_deal *deal, uint32_t *count);
/* True if both deal every token to the same rank; NULL is equal only to NULL. */
bool deal_is_equal(const struct token_deal *a, const struct token_deal *b);

/* Returns the number of rows that a rank owns. */
int64_t deal_rows_of_rank(const struct token_deal *deal, uint32_t rank);
/* True if all ranks own equally many tokens. */
bool deal_is_even(const struct token_deal *deal);
/* Returns the run in which a rank's row lies. The rank must have that row. */
const struct token_run *deal_run_at(const struct token_deal *deal, uint32_t rank, int64_t row);
/* Returns how many rows of a rank lie before a position. */
int64_t deal_rows_below(const struct token_deal *deal, uint32_t rank, int64_t position);

#endif
