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
    /* the runs of owner 0, then those of owner 1 and so on; those of one owner in ascending order of positions */
    const struct token_run *run;
    /* [rank_count + 1] the row of each owner's first run in `run`; the last element is the number of runs */
    const uint32_t *first_run;
};

/* One share of a deal: the next row_count tokens of the sequence go to `owner`. */
struct token_share {
    int64_t row_count;
    uint32_t owner;
};

/* Deals a sequence from its first token on: each share is the next tokens. Neighbouring shares of one owner become one
 * run. Every share must have at least 1 row, and an owner below `ranks`. The result is in the arena. */
struct token_deal *deal_make_from_shares(struct arena *arena, uint32_t ranks,
                                         const struct token_share *share, uint32_t count);
/* A run of tokens, and the rank that owns it. */
struct owned_run {
    const struct token_run *run;
    uint32_t owner;
};
/* Returns the runs of all ranks in the order of the sequence, as an array of deal->first_run[deal->rank_count] elements
 * on the heap. */
struct owned_run *deal_runs_sorted_by_position(const struct token_deal *deal);
/* Returns shares from which deal_make_from_shares() makes an equal deal, one for each run, as an array on the heap, and
 * sets *count to their number. */
struct token_share *deal_shares_of_runs(const struct token_deal *deal, uint32_t *count);
/* True if both deals have the same number of ranks and give every token to the same rank. NULL is equal only to
 * NULL. */
bool deal_is_equal(const struct token_deal *a, const struct token_deal *b);

/* Returns the number of rows that a rank owns. */
int64_t deal_rows_of_rank(const struct token_deal *deal, uint32_t rank);
/* True if all ranks own equally many tokens. */
bool deal_is_even(const struct token_deal *deal);
/* Returns the run in which a rank's row lies. The rank must have that row. */
const struct token_run *deal_run_of_row(const struct token_deal *deal, uint32_t rank, int64_t row);
/* Returns how many of a rank's rows are tokens before a position of the sequence. */
int64_t deal_rows_below(const struct token_deal *deal, uint32_t rank, int64_t position);

#endif
