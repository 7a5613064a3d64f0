/* sim/scheduler/uncontended.h: events whose flows have their links for themselves.
 *
 * Flows that share no link with any other that moves need no solver: each runs at the width of its
 * narrowest link (of those of one event that share it, at an equal part), and when they end is known when
 * they start. They stay out of the engine until another event wants one of their links; then what is
 * left of them is handed to the engine, which decides from there on. docs/simulation.md, "Flows that are
 * alone", says why this is exact. With --exact all flows are the engine's. */
#ifndef SIM_ALONE_H
#define SIM_ALONE_H

#include "sim/scheduler/scheduler_state.h"

void uncontended_init(struct scheduler *s);

/* Starts an event's flows at s->now_s when they have their links for themselves; *end_s is then when
 * the last of them ends. */
bool uncontended_begin(struct scheduler *s, size_t e, double *end_s);

/* Before the engine starts an event's flows: it gets what is left of all that hold one of their links. */
void uncontended_hand_over(struct scheduler *s, size_t e);

/* The flows of an event have ended. */
void uncontended_leave(struct scheduler *s, size_t e);

#endif
