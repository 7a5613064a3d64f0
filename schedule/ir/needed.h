/* schedule/ir/needed.h: which rows of keys each context rank needs from the others, for exchanges in which no rank gets
 * more than it needs.
 *
 * A rank needs a token if it does not own it and one of its queries sees it. Needed rows are kept in the order of their
 * positions. Directly after an exchange they are sorted by sender instead: the rows of context rank 0 come first, and
 * those of each sender are in the order of its own rows. Which rows these are follows from the layout, the documents
 * and the window, so that ops name only the sequence and the window, and with tiles the round (`exchange`, `take_rows`,
 * `add_rows`, attention with mask PLAN). */
#ifndef SCHEDULE_NEEDED_H
#define SCHEDULE_NEEDED_H

#include "schedule/ir/documents.h"
#include "schedule/ir/layout.h"

#include <stddef.h>
#include <stdint.h>

/* Positions begin_position ... end_position - 1, which queries of a rank see. The rank needs those that it does not
 * own. needed_rows_before: the number of needed rows in the ranges before this one. */
struct seen_position_range {
    int64_t begin_position, end_position, needed_rows_before;
};

/* The tokens of a sequence that one context rank needs; all-zero is empty. */
struct needed_tokens {
    const struct token_layout *layout;
    const struct document_list *documents;
    uint32_t context_rank;
    struct seen_position_range *range; /* ascending; heap */
    size_t range_count, capacity;
    int64_t row_count; /* all needed rows */
};

/* Finds the tokens that a context rank needs. window: 0: none. documents must not be NULL, and the gathered positions
 * of the layout must ascend (schedule/ir/layout.h). *needed keeps both pointers; the memory that it has from an earlier
 * call is used again. */
void needed_find_tokens(struct needed_tokens *needed, const struct token_layout *layout,
                        const struct document_list *documents, uint32_t context, int64_t window);
void needed_release(struct needed_tokens *needed);

/* Returns how many needed rows are tokens before a position. */
int64_t needed_rows_below(const struct needed_tokens *needed, int64_t position);
/* Returns how many rows of `owner` the rank needs; 0 if it is the rank itself. */
int64_t needed_row_count_of_owner(const struct needed_tokens *needed, uint32_t owner);

/* Fills rows[rank * cp + owner] with the number of rows of `owner` that `rank` needs, for all context ranks. */
void needed_rows_of_all_pairs(int64_t *rows, const struct token_layout *layout,
                              const struct document_list *documents, int64_t window);

/* The most rows that any rank of a sequence sends and receives. */
struct needed_max_rows {
    int64_t sent_rows, received_rows;
};
struct needed_max_rows needed_max_rows(const struct token_layout *layout,
                                       const struct document_list *documents, int64_t window);

/* The rows that a rank sends, or those that it receives, sorted by the other rank, which is called the peer. */
struct needed_rows {
    /* [cp + 1] index in `row` of the first row of each peer; the last element is the number of rows; on the heap */
    int64_t *first_row_by_peer;
    /* for sent rows: the number of the row among the rank's own rows; for received rows: its index among all needed
     * rows in the order of positions or, in a round of a tile plan, its packed row; on the heap */
    int64_t *row;
};
/* A rank's own rows among the packed rows that it reads in a round of a tile plan. */
struct own_packed_rows {
    int64_t row_count;
    /* [row_count] for each row, its packed row and its row among the rank's own rows; on the heap */
    int64_t *packed_row, *own_row;
};
/* List the rows that a context rank sends to each other rank, and the rows that it receives from each. The caller
 * releases the lists. */
void needed_list_sent(struct needed_rows *rows, const struct token_layout *layout,
                      const struct document_list *documents, uint32_t context, int64_t window);
void needed_list_received(struct needed_rows *rows, const struct token_layout *layout,
                          const struct document_list *documents, uint32_t context, int64_t window);
void needed_rows_release(struct needed_rows *rows);

#endif
