/* schedule/ir/tile_plan.h: which context rank computes which tile of a sequence's attention, in which round.
 *
 * A tile is a range of queries by a range of keys. Its rank computes the pairs of the tile that the mask shows, whoever
 * owns the rows. In a round a rank first gets the keys and queries of its tiles from their owners, then computes, and
 * then returns what belongs to rows of others: outputs and the gradients of queries and keys.
 *
 * The rows of a rank in a round have a packed order. Keys are in the order of their positions, each once. Queries are
 * in the order of their positions; where the keys of one query are not consecutive among the rank's packed keys, the
 * query comes again after the others, once for each further range of keys, and its results are merged as those of other
 * tiles are. Rows whose pairs are all hidden do not count, so a tile may exceed what is visible. docs/ir.md, "Tiles of
 * a plan". */
#ifndef SCHEDULE_TILE_PLAN_H
#define SCHEDULE_TILE_PLAN_H

#include "base/arena.h"
#include "schedule/ir/deal.h"

#include <stdbool.h>
#include <stdint.h>

/* The most parts of a pass: its rounds, multiplied by the ranks of the plan. */
enum { TILE_PARTS_MAX = 1 << 22 };

/* A tile of attention: query_count consecutive queries see key_count consecutive keys. rank and round: the rank that
 * computes it, and when. is_backward_tile: only the backward has the tile. */
struct core_tile {
    int64_t first_query, query_count, first_key, key_count;
    uint32_t rank, round;
    bool is_backward_tile;
};

enum plan_pass { PLAN_FORWARD, PLAN_BACKWARD, PLAN_PASS_COUNT };
enum plan_keys_or_queries { PLAN_KEYS, PLAN_QUERIES, PLAN_OPERANDS };

/* A run of tokens at consecutive positions that one rank owns and that a rank, the owner or another, reads in its
 * packed rows. packed_row: the packed row of the first token; owner_row: its row among the owner's rows. */
struct plan_run {
    int64_t first_position, row_count, packed_row, owner_row;
    uint32_t owner;
};

/* A strip: query_count consecutive queries, in packed rows from packed_row on. They see the packed keys at positions
 * key_begin to key_end - 1, except those that the mask hides. */
struct plan_query_strip {
    int64_t first_query, query_count, packed_row, key_begin, key_end;
};

/* The data that one rank reads in one round: its packed keys and queries, and the strips that say which keys the
 * queries see. */
struct plan_round_data_of_rank {
    struct {
        const struct plan_run *run; /* ascending in `packed_row` */
        uint32_t run_count;
        int64_t rows; /* packed rows */
    } of[PLAN_OPERANDS];
    const struct plan_query_strip *strip; /* ascending in `packed_row` */
    uint32_t strip_count;
};

/* The most rows that any rank has in a round: rows that it reads (packed), sends to others, and receives. */
struct max_rows_of_any_rank_in_round {
    int64_t packed_rows, sent_rows, received_rows;
};

struct tile_plan {
    const struct core_tile *tile;
    uint32_t tile_count;
    /* The widest window, in tokens, for which the plan is made: rows that it hides are not read. 0: the plan is made
     * for any window, and none of its rows is left out because of one. */
    int64_t window;
    uint32_t rank_count, round_count[PLAN_PASS_COUNT];
    /* the backward has tiles of its own; false: it has those of the forward */
    bool has_backward_tiles;
    /* [rounds][ranks] and [rounds][PLAN_OPERANDS]; rounds: those of the forward and then, if the backward has tiles of
     * its own, those of the backward */
    const struct plan_round_data_of_rank *part;
    const struct max_rows_of_any_rank_in_round *max_rows_by_round;
};

/* Makes the plan of a sequence that is dealt, with documents that end at end[]. The tiles, which are copied, must be
 * within the sequence and name ranks of the deal. window: as in struct tile_plan. The result is in the arena. */
struct tile_plan *tile_plan_make(struct arena *arena, const struct token_deal *deal,
                                 const int64_t *end, uint32_t documents,
                                 const struct core_tile *tile, uint32_t tiles, int64_t window);
/* True if both have the same tiles in the same order and the same window; NULL is equal only to NULL. */
bool tile_plan_is_equal(const struct tile_plan *a, const struct tile_plan *b);

/* Returns what a rank reads in a round of a pass. The round must be below plan->round_count[pass]. */
const struct plan_round_data_of_rank *
tile_plan_part(const struct tile_plan *plan, enum plan_pass pass, uint32_t round, uint32_t rank);
/* Returns the most rows of any rank in a round; zeros if the plan has fewer rounds. */
struct max_rows_of_any_rank_in_round tile_plan_max_rows_of_any_rank(const struct tile_plan *plan,
                                                                    enum plan_pass pass,
                                                                    uint32_t round,
                                                                    enum plan_keys_or_queries what);
/* Returns how many packed keys of a part lie before a position. */
int64_t tile_plan_key_count_below(const struct plan_round_data_of_rank *part, int64_t position);
/* Returns how many packed rows of a part a rank owns. */
int64_t tile_plan_row_count_of_owner(const struct plan_round_data_of_rank *part,
                                     enum plan_keys_or_queries what, uint32_t owner);

#endif
