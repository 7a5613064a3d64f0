/* sim/scheduler/leap.h: periods that are left out while the events run.
 *
 * How many layers pass before the times of one follow from those before is not known ahead where ranks
 * drift against each other. So the list is taken whole, and each of its runs of equal periods
 * (sim/plan/depth.h) is watched: when some periods in a row came one and the same time behind the one before
 * on all ranks, the hosts go on with the last periods of the run, and those between never happen. What
 * waits for an op that was left out waits for the one as far back from the last.
 *
 * So that nobody has begun what is to be left out, hosts issue a run only some periods ahead of the one
 * that all ranks have ended. Where that held anything up the times are worth nothing, and the one who
 * asked is told (leap.late). The times are those of a shorter list in any case: whether those of the whole
 * one follow is for depth_expand() to say. */
#ifndef SIM_LEAP_H
#define SIM_LEAP_H

#include "sim/scheduler/scheduler_state.h"

/* Watches the runs of s->times; none: nothing happens. */
void leap_init(struct scheduler *s);

/* An op has ended, and has told those that need it. */
void leap_ended(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s);

/* The next op that the host of a rank issues, if it may; skips ops that are left out. */
bool leap_may_issue(const struct scheduler *s, struct rank_state *rank_state);

/* An op starts: not behind the clock? */
void leap_check_date(struct scheduler *s, double date_s);

/* The run is over: events in front of a gap stand for those that were left out. */
void leap_count_events(struct scheduler *s);

#endif
