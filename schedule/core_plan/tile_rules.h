/* schedule/core_plan/tile_rules.h: named rules that say who computes which tile of attention, for tokens that
 * schedule/core_plan/deal_rules.h deals.
 *
 * All rows travel straight from their owner to the rank that reads them, once a round, and only if some query sees
 * them. Sources: ring attention (arXiv 2310.01889), LoongTrain's double ring (2406.18485), TokenRing (2412.20501),
 * BurstEngine's backward (2509.19836), DistCA's planner (2510.18121; move), DCP's balance of blocks with a slack of 20
 * % (2510.10620; blocks, by the greedy rule of move in place of its hypergraphs). */
#ifndef SCHEDULE_CORE_PLAN_TILE_RULES_H
#define SCHEDULE_CORE_PLAN_TILE_RULES_H

#include "schedule/core_plan/deal_rules.h"
#include "schedule/core_plan/row_bytes.h"

/* The most tiles that are made of a sequence; a prediction with as many takes about a minute. */
enum { TILE_RULE_MOST = 1 << 22 };

/* Returns about how many tiles a rule makes of a sequence of one document (of several documents there are fewer); 0 if
 * the rule has no tiles. In each step of a ring a rank has two slices of queries and two of keys, and half of their
 * pairs of slices are visible. The rules `move` and `blocks` cut every run of queries by the owners of the keys before
 * it. */
double tile_rules_estimate_tiles(const struct deal_choice *choice, uint32_t ranks, int64_t tokens);

/* Returns the tiles of a sequence whose tokens were dealt by the choice's rule; NULL: the rule has no tiles. windows:
 * the windows with which deal_by_rule() dealt them. bytes: the bytes of rows by which DEAL_MOVE and DEAL_BLOCKS weigh
 * what they move. */
struct tile_plan *tile_rules_plan(struct arena *arena, const struct deal_choice *choice,
                                  const struct document_list *documents,
                                  struct deal_windows windows, const struct row_bytes *bytes);

#endif
