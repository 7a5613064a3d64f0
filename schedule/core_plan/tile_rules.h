/* schedule/core_plan/tile_rules.h: named rules that say which rank computes which tile of attention, for tokens that
 * schedule/core_plan/deal_rules.h deals.
 *
 * A row is sent straight from its owner to the rank that reads it, once in a round, and only if a pair of the round
 * needs it. Sources: ring attention (arXiv 2310.01889), LoongTrain's double ring (2406.18485), TokenRing (2412.20501),
 * BurstEngine's backward (2509.19836), DistCA's planner (2510.18121) for `move`, and DCP (2510.10620) for `blocks`: its
 * balance of blocks with a slack of 20 %, but found by the greedy rule of `move` and not by its partition of
 * hypergraphs. */
#ifndef SCHEDULE_CORE_PLAN_TILE_RULES_H
#define SCHEDULE_CORE_PLAN_TILE_RULES_H

#include "schedule/core_plan/deal_rules.h"
#include "schedule/core_plan/row_bytes.h"

/* The most tiles that are made of a sequence; a prediction with as many takes about a minute. */
enum { TILE_RULE_TILES_MAX = 1 << 22 };

/* Returns about how many tiles a rule makes of a sequence of one document; 0 if the rule has no tiles. Rings make as
 * many with several documents. In each step of a ring a rank has two slices of queries and two of keys, and half of the
 * four pairs of slices are visible. The rules `move` and `blocks` cut every run of queries at the owners of the keys
 * before it. */
double tile_rules_estimate_tiles(const struct deal_choice *choice, uint32_t ranks, int64_t tokens);

/* Returns the tiles of a sequence whose tokens were dealt by the choice's rule; NULL: the rule has no tiles. windows:
 * those with which deal_by_rule() dealt them. bytes: the bytes of rows, by which DEAL_MOVE_QUERIES and
 * DEAL_CHUNKS_THEN_MOVE_QUERIES compare slices. */
struct tile_plan *tile_rules_plan(struct arena *arena, const struct deal_choice *choice,
                                  const struct document_list *documents,
                                  struct attention_windows_of_layers windows,
                                  const struct row_bytes *bytes);

#endif
