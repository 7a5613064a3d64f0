/* schedule/verify/exchange.h: which ranks communicate in which ops.
 *
 * Ranks that send and receive alike are merged into one actor. The ranks of a role without sends and receives are one
 * actor. Other ranks are compared by components: a component is a set of ranks that messages connect, directly or
 * through other ranks. Components whose ranks communicate alike share their actors, one for each rank of a component.
 * So a pipeline of 8 stages over 512 replicas has 8 actors, not 4096. */
#ifndef SCHEDULE_VERIFY_EXCHANGE_H
#define SCHEDULE_VERIFY_EXCHANGE_H

#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

/* The communicating ops of each role, in list order. */
struct communicating_ops_of_roles {
    uint32_t *op; /* the ops of all lists, one list after the other */
    /* [roles * (groups + 1) + 1] where each list begins in `op`. List r * (groups + 1) + g has the collectives of role
     * r in group g or, if g is the number of groups, the messages of role r. */
    uint32_t *begin;
    uint32_t *index_in_list_of_op; /* [ops] the op's index in its list */
};

/* The collectives of a role in one group, in list order; for group number ir->group_count, the sends and receives of
 * the role. */
struct collectives_or_messages_of_role {
    const uint32_t *op;
    uint32_t count;
};

static inline struct collectives_or_messages_of_role
sequence_of(const struct communicating_ops_of_roles *ops, const struct ir *ir, uint32_t role,
            uint32_t group)
{
    const uint32_t *begin = ops->begin + (size_t)role * (ir->group_count + 1) + group;
    return (struct collectives_or_messages_of_role){.op = ops->op + begin[0],
                                                    .count = begin[1] - begin[0]};
}

/* A send or receive of an actor. Message k of the actor is op k in its role's sequence of messages. */
struct message {
    uint32_t op;
    uint32_t actor,
        peer_actor; /* peer_actor IR_NONE: is_left_out_by_guard, or there is no such rank */
    uint32_t
        matching_message_row;  /* row of the message that matches this one; IR_NONE: none does */
    bool is_left_out_by_guard; /* the guard fails, so the op sends or receives nothing */
};

struct actors {
    uint32_t actor_count, rank_count;
    uint32_t *actor_of_rank; /* [ranks] the rank's actor; IR_NONE: the rank has no role */
    uint32_t *lowest_rank;   /* [actors] the lowest rank of each */
    uint16_t *role;          /* [actors] */
    /* [actors + 1] the row of each actor's first message; the last element is the number of messages */
    uint32_t *first_message;
    struct message *message;
    /* messages were not matched, because there are more than VERIFIED_MESSAGES_MAX */
    bool has_too_many_messages_to_match;
};

#define VERIFIED_MESSAGES_MAX (1u << 25)

struct exchange {
    bool is_made;
    struct communicating_ops_of_roles ops;
    struct actors actors; /* made by actors_make() with fold true */
};

struct verifier;

/* Returns the exchange, which the first call makes. */
const struct exchange *verify_exchange(struct verifier *v);
void exchange_release(struct exchange *exchange);

/* Makes the actors. fold false: one for each rank. fold true: ranks that communicate in the same way share one. */
void actors_make(struct actors *actors, struct verifier *v,
                 const struct communicating_ops_of_roles *ops, bool fold);
void actors_release(struct actors *actors);

#endif
