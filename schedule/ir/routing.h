/* schedule/ir/routing.h: how many copies of tokens each expert gets, and of which tokens.
 *
 * A list has an integer share for each expert, and each layer has a list. A rank deals the n k copies of its n tokens
 * to the experts by the shares of the layer: exact shares of n k are rounded by largest remainders, and no expert gets
 * more than n, since the k experts of a token differ. Copies are in the order of experts, and slot j n + t is copy j of
 * token t, as in even routing (models/work.h). All ranks deal n tokens by the same list, so they have the same counts,
 * and an expert gets as many copies from each of them.
 *
 * With a capacity an expert takes at most ceil(factor n k / experts) copies of a rank's tokens, but not more than n,
 * and drops the others: those of the last tokens or, by probability, copies spread over all tokens. Probability does
 * not depend on the router's weights, since dealing replaces its choice. With padding each expert gets exactly that
 * many rows, some of which may be no copies. With `deals_experts_in_shuffled_order` slots are dealt to experts in a
 * shuffled order, so that the experts of a token are on as many ranks as chance would put them on; in the order of
 * experts they are on more.
 *
 * A caller who asks for a schedule makes one of these and passes it as `routing` of struct request; step_build() copies
 * it into the schedule. All memory comes from the arena that is passed. */
#ifndef SCHEDULE_ROUTING_H
#define SCHEDULE_ROUTING_H

#include "base/arena.h"
#include "models/work.h"

#include <stdbool.h>
#include <stdint.h>

enum { ROUTING_SHARE_MAX = 1000000, ROUTING_EXPERTS_MAX = 65536 };

/* The copies that are dropped when an expert gets more than its capacity. POSITION: those of the last tokens
 * (Megatron-LM's --moe-token-drop-policy position). PROBABILITY: those with the least probability
 * (--moe-token-drop-policy probs); the model drops copies that are evenly spread over all tokens. */
enum token_drop_policy { TOKEN_DROP_PROBABILITY, TOKEN_DROP_POSITION, TOKEN_DROP_COUNT };

struct expert_capacity {
    /* the most copies that an expert takes, over the mean number of copies of an expert, in millionths; 0: no copy is
     * dropped */
    int64_t capacity_factor_millionths;
    int64_t pads;        /* 1: each expert gets as many rows as it has capacity */
    int64_t drop_policy; /* enum token_drop_policy */
};

enum { CAPACITY_UNIT = 1000000, CAPACITY_MAX = 1000 * CAPACITY_UNIT };

struct routing {
    struct expert_capacity capacity;
    bool deals_experts_in_shuffled_order; /* experts of a token are on as many ranks as by chance */
    /* the experts of a layer, and the copies of a token, which are at most as many; both 0: routing is even */
    uint32_t expert_count, copies_per_token;
    uint32_t layer_count;
    uint32_t list_count;
    /* [list_count][experts], from 0 to ROUTING_SHARE_MAX, not all 0; no two lists are equal */
    const int64_t **expert_shares_by_list;
    /* [layer_count] row of expert_shares_by_list; ROUTING_NO_SHARE_LIST: not set */
    uint32_t *share_list_by_layer;
    /* name of the choice, for reports; NULL: none; borrowed. routing_copy() leaves it out, so a schedule has none. */
    const char *name;
};

#define ROUTING_NO_SHARE_LIST UINT32_MAX /* in share_list_by_layer: no list was set */

/* Begins the routing of `layers` layers, none of which has a list of shares yet. */
void routing_init(struct routing *routing, struct arena *arena, uint32_t experts, uint32_t copies,
                  uint32_t layers);
/* Does what routing_init() does, and gives all layers one list of equal shares. */
void routing_init_even(struct routing *routing, struct arena *arena, uint32_t experts,
                       uint32_t copies, uint32_t layers);
/* Gives a layer a list of shares, which is copied. */
void routing_set_shares(struct routing *routing, struct arena *arena, uint32_t layer,
                        const int64_t *share);
void routing_copy(struct routing *to, struct arena *arena, const struct routing *from);

/* Returns the most rows that an expert takes of a rank's `rows` tokens; 0: there is no limit. */
int64_t routing_expert_capacity(const struct routing *routing, int64_t rows);
/* Fills dealt[experts] with the number of copies of `rows` tokens that are dealt to each expert, and first[experts]
 * with the first slot of each. */
void routing_deal_copies(const struct routing *routing, uint32_t list, int64_t rows, int64_t *dealt,
                         int64_t *first);
/* True if an expert keeps a copy that was dealt to it, and does not drop it. The expert has `dealt` slots from slot
 * `first` on; the copy is in the index-th of them, counted from 0. */
bool routing_keeps_copy(const struct routing *routing, int64_t rows, int64_t dealt, int64_t first,
                        int64_t index);
/* Fills count[experts] with the number of rows that each expert gets if `rows` tokens are routed by list number `list`,
 * padding included. */
void routing_rows_of_experts(const struct routing *routing, uint32_t list, int64_t rows,
                             int64_t *count);

/* Returns how many rows all experts together get of `rows` tokens, padding included. */
int64_t routing_kept_rows(const struct routing *routing, uint32_t list, int64_t rows);

/* The rank that gets the most copies if each of `ranks` ranks, with experts / ranks experts each, deals `rows` tokens.
 * copies: how many of its copies come from each rank, padding included; median: the median of that number over all
 * ranks, the upper one of two. */
struct routing_fullest_rank {
    uint32_t rank;
    int64_t copies, median;
};
struct routing_fullest_rank routing_find_fullest_rank(const struct routing *routing, uint32_t list,
                                                      int64_t rows, uint32_t ranks);

/* Returns how many of a rank's `rows` tokens have at least one expert on a rank: the most over all `ranks` ranks. If
 * `tokens` is not NULL, fills tokens[ranks] with the number for each rank. Copies that exceed a capacity count, too. */
int64_t routing_count_arrived_tokens(const struct routing *routing, uint32_t list, int64_t rows,
                                     uint32_t ranks, int64_t *tokens);

/* Returns why the parameters of a work with a route do not fit the routing, in words that may follow "and"; NULL if
 * they fit or the work has no route. group: the group "ep" of the ranks with different experts, IR_NONE if every rank
 * has all experts; ranks: the number of its members. */
const char *routing_why_work_unfit(const struct routing *routing, const struct work *work,
                                   uint32_t group, uint32_t ranks);

#endif
