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

/* The ops of each role by stream, and those that hold the host. */
struct lanes {
    uint32_t *op;            /* (ops) */
    uint32_t *begin;         /* (roles * streams + 1) */
    uint32_t *place;         /* per op: its place in its lane */
    uint32_t *blocker;       /* ops that hold the host, of all roles */
    uint32_t *blocker_begin; /* (roles + 1) */
};

struct untimed_run {
    struct verifier *v;
    const struct ir *ir;
    const struct exchange_ops *ops;
    const struct actors *actors;
    const struct lanes *lanes;
    uint32_t *host; /* per actor: place of the op that holds the host, among the blockers */
    uint32_t *head; /* (actors, streams): ops that have ended */
    bool *at_head;  /* (actors, streams + 1): has reached the others it must meet; last: the host */
    uint32_t *
        party; /* (groups, actors): the party in which an actor meets others; IR_NONE: not in the group */
    uint64_t *party_begin;        /* per party: its first meeting */
    uint32_t *expected, *arrived; /* per meeting: actors that must come, and that have come */
    uint32_t parties;
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

/* Returns the op that holds the actor's host; nothing after it has been issued. IR_NONE: all has been issued. */
uint32_t run_host_op(const struct untimed_run *run, uint32_t actor);
/* Returns the op at the head of a stream, or IR_NONE when all have ended. */
uint32_t run_head_op(const struct untimed_run *run, uint32_t actor, uint32_t stream);
/* Returns the first op that `op` waits for and that has not ended, or IR_NONE. */
uint32_t run_unmet_wait(const struct untimed_run *run, uint32_t actor, uint32_t op);
/* Returns how many collectives an actor has in a group. */
uint32_t run_sequence_length(const struct untimed_run *run, uint32_t actor, uint32_t group);
/* Returns the row of a send or receive in run->actors->message. */
uint32_t run_message_of(const struct untimed_run *run, uint32_t actor, uint32_t op);

#endif
