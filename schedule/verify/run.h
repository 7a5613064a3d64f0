/* schedule/verify/run.h: running a schedule without time, for the deadlock rule.
 *
 * Every actor (exchange.h) goes through its role's list as its host and its streams would; an op ends as soon as
 * nothing holds it. An actor's collective waits for all actors of its party: those whose ranks share instances of the
 * group with its own ranks, directly or through other actors. */
#ifndef SCHEDULE_VERIFY_RUN_H
#define SCHEDULE_VERIFY_RUN_H

#include "schedule/verify/rules.h"

#include <stdbool.h>
#include <stdint.h>

/* Lists of the ops of each role: one for each stream, and a last one, of the host, with the ops that block it. A
 * blocking copy is in two lists. IR_NONE ends a list. */
struct op_lists_by_stream {
    uint32_t *first;                    /* (roles, streams + 1): the first op of each list */
    uint32_t *next;                     /* [ops] the next op of the same stream */
    uint32_t *next_op_that_blocks_host; /* [ops] the next op that blocks the host */
};

struct untimed_schedule_run {
    struct verifier *v;
    const struct ir *ir;
    const struct communicating_ops_of_roles *ops;
    const struct actors *actors;
    const struct op_lists_by_stream *op_lists;
    uint32_t *next_op; /* (actors, streams + 1): the first op of each list that has not ended */
    /* (actors, streams + 1): the next op of each list is a collective that has arrived at its rendezvous */
    bool *next_collective_has_arrived;
    /* (groups, actors): the number of the actor's first rendezvous with its party. Its further ones have the numbers
     * that follow. UINT64_MAX: the actor issues no collective in the group */
    uint64_t *first_rendezvous;
    /* [rendezvous_count] how many actors must arrive, and how many have arrived */
    uint32_t *expected_actors, *arrived_actors;
    uint64_t rendezvous_count;
    /* [messages] the actor that sends or receives it has reached the op; set only if it has a matching message */
    bool *message_has_arrived;
};

void op_lists_make_by_stream(struct op_lists_by_stream *lanes, const struct ir *ir);
void op_lists_release(struct op_lists_by_stream *lanes);

/* Prepares a run in which no op has ended. All arguments must outlive the run. Messages of the actors must have been
 * matched. */
void run_begin(struct untimed_schedule_run *run, struct verifier *v,
               const struct communicating_ops_of_roles *ops, const struct actors *actors,
               const struct op_lists_by_stream *lanes);
void run_release(struct untimed_schedule_run *run);

/* Runs the schedule as far as possible. Returns an actor that has not reached its end; IR_NONE if all have. */
uint32_t run_until_blocked(struct untimed_schedule_run *run);

/* ---- the state of an actor ---- */

/* Returns the list in which an op is: its stream's, or, if it is only on the host, the last one, whose number is
 * ir->stream_count. */
uint32_t run_find_list_of_op(const struct ir *ir, uint32_t op);
/* Returns the op that blocks the actor's host, after which nothing has been issued. IR_NONE: everything has been
 * issued. */
uint32_t run_get_op_that_blocks_host(const struct untimed_schedule_run *run, uint32_t actor);
/* Returns the op at the head of a stream; IR_NONE: all its ops have ended. */
uint32_t run_get_head_op_of_stream(const struct untimed_schedule_run *run, uint32_t actor,
                                   uint32_t stream);
/* Returns the first op for which `op` waits and that has not ended; IR_NONE if there is none. */
uint32_t run_find_unmet_wait(const struct untimed_schedule_run *run, uint32_t actor, uint32_t op);
/* Returns the row of a send or receive in run->actors->message. */
uint32_t run_get_message_row(const struct untimed_schedule_run *run, uint32_t actor, uint32_t op);

#endif
