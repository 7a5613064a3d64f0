/* sim/scheduler/uncontended.h: events whose flows share no link with flows of other events.
 *
 * Such flows need no solver: each runs at the bandwidth of its narrowest link (flows of one event that share a link
 * each get an equal part), and their end is known when they start. They stay out of the engine until another event
 * needs one of their links; then their remaining bytes are moved to the engine. docs/simulation.md, "Uncontended
 * flows", says why this is exact. With --exact the engine moves all flows. */
#ifndef SIM_UNCONTENDED_H
#define SIM_UNCONTENDED_H

#include "sim/scheduler/scheduler_state.h"

/* Finds the rates of all flows and the seconds of all transfers when nothing else moves. */
void uncontended_init(struct scheduler *s);

/* Starts an event's flows at s->now_s and sets *end_s to the end of the last one. Returns false,
 * and starts nothing, if the engine has to move the flows: because other flows use one of their
 * links, because the seconds of the transfer are not known, or with --exact. */
bool uncontended_try_start_flows(struct scheduler *s, size_t e, double *end_s);

/* Moves to the engine the remaining bytes of every uncontended event that uses a link of event e,
 * and counts the flows of e among those that the engine moves. Call it before the engine starts the
 * flows of e. Does nothing with --exact. */
void uncontended_move_rivals_to_engine(struct scheduler *s, size_t e);

/* Frees the links of an event. Call it when the event's flows have ended. */
void uncontended_free_links(struct scheduler *s, size_t e);

#endif
