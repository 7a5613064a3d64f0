/* schedule/verify/run.h: running a schedule without time, for the deadlock rule.
 *
 * Every actor (exchange.h) goes through its role's list as its host and its streams would; an op ends as soon as
 * nothing holds it. An actor's collective waits for all actors that have a rank in the same instance of the group as
 * one of its own ranks. */
#ifndef SCHEDULE_VERIFY_RUN_H
#define SCHEDULE_VERIFY_RUN_H

#include "schedule/verify/rules.h"

#include <stdbool.h>
#include <stdint.h>

/* Lists of the ops of each role: those of each stream, and, numbered after the streams, those that hold the host. A
 * blocking copy is in two lists. IR_NONE ends a list. */
struct lanes {
    uint32_t *first;        /* (roles, streams + 1) */
    uint32_t *next;         /* per op: the next of its stream */
    uint32_t *next_on_host; /* per op that holds the host: the next such op */
};

struct untimed_run {
    struct verifier *v;
    const struct ir *ir;
    const struct exchange_ops *ops;
    const struct actors *actors;
    const struct lanes *lanes;
    uint32_t *head; /* (actors, streams + 1): the first op of each list that has not ended */
    bool *at_head;  /* (actors, streams + 1): has reached the others it must meet; last: the host */
    /* (groups, actors): the number of the first meeting of the party in which an actor meets others; UINT64_MAX: the
     * actor is not in the group */
    uint64_t *party;
    uint32_t *expected, *arrived; /* per meeting: actors that must come, and that have come */
    uint64_t meetings;
    bool *has_arrived; /* per message */
};

void lanes_make(struct lanes *lanes, const struct ir *ir);
void lanes_release(struct lanes *lanes);

/* All arguments must outlive the run. Messages of the actors must have been matched. */
void run_begin(struct untimed_run *run, struct verifier *v, const struct exchange_ops *ops,
               const struct actors *actors, const struct lanes *lanes);
void run_release(struct untimed_run *run);

/* Runs as far as possible; returns an actor that has not come to its end, or IR_NONE. */
uint32_t run_all(struct untimed_run *run);

/* --- where an actor stands --- */

/* Returns the stream in whose list an op is, or the number after the streams for one that is only on the host. */
uint32_t run_place_of(const struct ir *ir, uint32_t op);
/* Returns the op that holds the actor's host; nothing after it has been issued. IR_NONE: all has been issued. */
uint32_t run_host_op(const struct untimed_run *run, uint32_t actor);
/* Returns the op at the head of a stream, or IR_NONE when all have ended. */
uint32_t run_head_op(const struct untimed_run *run, uint32_t actor, uint32_t stream);
/* Returns the first op that `op` waits for and that has not ended, or IR_NONE. */
uint32_t run_unmet_wait(const struct untimed_run *run, uint32_t actor, uint32_t op);
/* Returns the row of a send or receive in run->actors->message. */
uint32_t run_message_of(const struct untimed_run *run, uint32_t actor, uint32_t op);

#endif
