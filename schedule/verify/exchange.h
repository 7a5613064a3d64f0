/* schedule/verify/exchange.h: which ranks communicate in which ops.
 *
 * Ranks whose messages look the same are merged into one actor: the ranks of a role; or, if sends and receives
 * distinguish them (by guards, or by a place at the end of a pipeline), the ranks at the same place of equal
 * components. A component is a set of ranks that messages connect. So a pipeline of 8 stages over 512 replicas has 8
 * actors, not 4096. */
#ifndef SCHEDULE_VERIFY_EXCHANGE_H
#define SCHEDULE_VERIFY_EXCHANGE_H

#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

/* The communicating ops of each role, in list order. */
struct exchange_ops {
    uint32_t *op;    /* of all lists, one after the other */
    uint32_t *begin; /* (roles * (groups + 1) + 1): the lists of role r from r * (groups + 1) on */
    uint32_t *ordinal; /* per op: its place in its list */
};

/* The collectives of a role in one group; its sends and receives have the number after the groups. */
struct sequence {
    const uint32_t *op;
    uint32_t count;
};

static inline struct sequence sequence_of(const struct exchange_ops *ops, const struct ir *ir,
                                          uint32_t role, uint32_t group)
{
    const uint32_t *begin = ops->begin + (size_t)role * (ir->group_count + 1) + group;
    return (struct sequence){.op = ops->op + begin[0], .count = begin[1] - begin[0]};
}

/* A send or receive of an actor; the k-th of its role's list. */
struct message {
    uint32_t op;
    uint32_t actor, peer; /* peer: IR_NONE when the guard says no, or there is none */
    uint32_t partner;     /* row of the message that matches this one, or IR_NONE */
    bool absent;          /* the guard says no */
};

struct actors {
    uint32_t count, ranks;
    uint32_t *of_rank;       /* IR_NONE: a rank without a role */
    uint32_t *rank;          /* per actor: the lowest of its ranks */
    uint16_t *role;          /* per actor */
    uint32_t *message_begin; /* (actors + 1) */
    struct message *message;
    bool too_many; /* messages were not matched: there are more than MESSAGES_MAX */
};

#define MESSAGES_MAX (1u << 25)

struct exchange {
    bool made;
    struct exchange_ops ops;
    struct actors actors; /* folded */
};

struct verifier;

/* Returns the exchange, which the first call makes. */
const struct exchange *verify_exchange(struct verifier *v);
void exchange_release(struct exchange *exchange);

/* Fills actors: every rank is one of its own (fold false), or there are as few as there can be. */
void actors_make(struct actors *actors, struct verifier *v, const struct exchange_ops *ops,
                 bool fold);
void actors_release(struct actors *actors);

#endif
